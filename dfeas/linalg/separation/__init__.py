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

Why it ends: soft margins with C -> infinity meet either a separator (every xi below 1) or, as A x = w / (C sum(xi)), weights
x = xi / sum(xi) with |Ax| -> 0, which are polished to a basic solution (``basic``: Caratheodory). A subset in conflict is a
conflict of all.
"""
