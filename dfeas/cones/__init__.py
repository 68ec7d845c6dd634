"""Cones: products of orthants, second-order and semidefinite cones, cut into blocks (Yu et al. 2014, section 6.2).

The points of a dataset of cones are the rows of X, the coordinates of s = X y = A*y. Each cone c is scaled by a bound of |A q|
over the extreme points q of its base, so that an orthant is a dataset of unit points. Every theorem for points then holds with
the least eigenvalue over all cones in place of the least score, and with the rank in place of their number.
"""
