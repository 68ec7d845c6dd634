"""Cones: products of orthants, second-order and semidefinite cones, cut into blocks (Yu et al.)."""
