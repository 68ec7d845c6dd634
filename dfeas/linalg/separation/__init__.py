"""Separate columns in memory: a separator with its margin, or weights on few columns that sum to zero.

    units in which no feature is as small as rounding, where features differ by more than 2^36      columns.py: even_units
    features of one size, where they differ by more than 30                                         columns.py: equilibrate
    first, unless the widest margin is asked, in the precision of the points                        solver.py: fast
      rows <- the lowest under the start, or columns from all over: 4 d                             rounds.py: Round
      for C = 1, 100, ..: minimise |w|^2/2 + C/2 sum max(0, 1 - a'w)^2 by Newton steps on the rows  newton.py: minimise
        all scores on the rows > 0.3: score all columns; none far below: w separates, or those join  rounds.py: grow
        a conflict among the heaviest weights x = slack / sum(slack): it is one of all              conflict.py: among_heavy
      moderate C tell nothing: a conflict among the rows, or                                        solver.py: _among_first
    then in float64                                                                                 solver.py: _grow
      rows <- the lowest of all, and some of all that weigh
      repeat
        rows in coordinates in which they reach as far in all directions, by a QR                   rescaling.py: rescale
        for C = 1, 100, ..: minimise                                                                solver.py: _raise_C
          all scores > 0.3: a separator; or the widest margin: of those that touch it               solver.py: _polish
          |Ax| is small: x has a basic solution with |Ax| <= 2e-15: a conflict                      conflict.py: find_conflict
        neither: again in the coordinates of those inside of the margin, 8 times at most            rescaling.py: turn
        a conflict, or all rows: that is the answer; else score all columns
        none below half of the lowest of the rows: w separates; else the lowest join, as many as there are

With scores of all columns that few have wrong a separator is looked for without these stages first:

    rows <- the lowest, three times as many as are wrong; a step on every second                    solver.py: separate_from
    for C = what so dense columns weigh, 100 times that, ..: minimise
      all scores on the rows > 0.02, or the first time few are wrong: score all columns
        none far below: w separates; else the lowest join, twice as many as are wrong

Why it ends: soft margins with C -> infinity meet either a separator (every xi below 1) or, as A x = w / (C sum(xi)), weights
x = xi / sum(xi) with |Ax| -> 0, which are polished to a basic solution (``basic``: Caratheodory). A subset in conflict is a
conflict of all.
"""

from msgspec import Struct


class SeparationThresholds(Struct, frozen=True):
    """What decides which way a separation goes, each with the measurement, or the bound, that set it."""

    # of the loop over C
    first_c: float = 1.0
    factor: float = 100.0  # from one C to the next
    plain_c: float = 1e4  # as far as this before columns are seen rescaled, where there is room for that
    moderate_c: float = 1e8  # as far where there is none, and in each of the other coordinates; |Ax| <= 1 / sqrt(C) then
    last_c: float = 1e20  # in float64, where columns are not rescaled
    enough: float = 0.3  # scores above this are good enough for a separator: 1 would be outside of the soft margin
    early: float = 0.02  # the same of many columns: of few the margin found is worth some steps
    rough: float = 0.05  # share of active columns that may still change when C is raised
    costly: int = 2000  # columns of a basis up to which the few that conflict are looked for where |Ax| is a verdict:
    # 2000 x 20,000 with one wrong label takes 20 s instead of 4, and 4000 x 20,000 did not end in 70
    longer: int = 3  # times the products until |Ax| is below eps, with which a separator is still looked for then

    # of a separator near to where all columns are seen from
    near_c: float = 1e5  # the least C to begin with: half-spaces 20,000 x 100 take 5 Newton steps, with 1e4 twice as many
    dense: float = 10.0  # C over d^-3 (columns for each unit of score)^2: six shapes take as long with 3, a third more with 0.3
    few_wrong: float = 0.03  # share of the first columns that may be wrong when all are scored: half-spaces take 5 steps for 8
    light_c: float = 30.0  # the same of all columns at once: 4000 x 2000 takes 2 steps, with 10 or 100 up to 6
    thin_c: float = 1e12  # the last: of 200,000 x 100 points three are on the wrong side, as near as 1000 others, with 1e8
    wrong: int = 3  # times as many of the lowest are solved as are wrong: with two and four it takes as long, or a tenth longer

    # of the columns that are solved
    first: int = 4  # for each feature; later there are twice as many as before
    clear: float = 0.25  # columns that wait are right if they score above this share of the lowest score of the others
    hopeless: float = 0.05  # share of the first that are wrong from which they are like a conflict: 22 of 1,600 of a halfspace
    large: int = 1 << 22  # entries from which columns are many: all of fewer at once take less than a tenth of a second
    far: float = -1.0  # score below which a column is in a conflict that needs no other coordinates, where a QR is dear
    rescalings: int = 8  # by the columns inside of the margin, at most
    rescaled_bytes: int = 64 << 20  # of columns in other coordinates
    exchanges: int = 30  # times that others take the place of a part that may not grow: condition 1e10 in 24 MiB

    # of conflicts
    small: float = 3e-6  # |Ax| below which columns are looked at in float64, if at all: the margin is tiny, or there is none
    dear: float = 1e9  # flops of a factorisation, of which few are made
    close: float = 1e-9  # |Ax| instead of ``small`` where it is dear: near less exact weights a basis often has a negative one
    again: float = 100.0  # times less |Ax| is until a conflict is looked for once more
    few: int = 64  # heaviest columns of which one may always be looked for
    vanished: float = 2e-15  # |sum x_j b_j| of unit columns, sum(x) = 1, that is rounding of float64 and nothing else

    # of Newton steps
    resolved: float = 1e-13  # a Cholesky factor is used while (1/C) / trace is above this
    cg_steps: int = 10  # products that conjugate gradients take, times C to ``cg_power``: halfspace 4000 x 100,000 takes 4
    cg_power: float = 0.25  # for C = 1 and 25 for 1e4; an entry of a product is as dear as one of a Gram matrix
    heavy: int = 1 << 26  # multiplications from which a Gram matrix is avoided: 2000 x 600 take 14 ms, and 47 with 1 << 30
    gathered: float = 0.7  # share of active columns up to which they are copied: a step of 4000 x 2000 takes 16 ms, with 0.5 24
    gathered_bytes: int = 64 << 20  # of all up to which that is so, of more a half: 100,000 x 1000 had 670 MiB in place of 608
    forcing: float = 0.1  # share of the gradient at which conjugate gradients end (inexact Newton; Dembo, Eisenstat, Steihaug
    # 1982): 7 times fewer products than 1e-4 on halfspace 20,000 x 20,000, as active columns change before more digits help
    exact: float = 1e-4  # the same where the optimum itself is wanted
    within: float = 1e-4  # error of scores by which a step may go, where not all active columns need to be known

    # of memory and threads
    direct: int = 4000  # largest system that is factorised
    direct_sparse: int = 1200  # the same of sparse columns: conjugate gradients are faster from there on
    basis_bytes: int = 256 << 20  # largest float64 copy of dense columns: a basis of wider ones is not looked for
    tile_bytes: int = 4 << 20  # of float64 copies of rows
    groups: int = 4  # pieces of work that may be done side by side
    narrow: float = 2.0**-21  # error of products in float32 with unit columns, beside |v| or sum(x): eight times the usual
    worth: int = 1 << 19  # entries below which one thread is as fast as several


AT = SeparationThresholds()
