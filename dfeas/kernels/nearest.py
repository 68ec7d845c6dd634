"""The hard-margin separator of points in memory from their signed Gram matrix, by block principal pivoting.

    minimise  alpha'(G + delta I) alpha / 2 - sum(alpha)   over alpha >= 0

One entry changes at a time, the one that changes most, at the cost of a row of G. A factorisation of the points that count is
worth thousands of such steps, which are enough for a separator of nearly the widest margin.

Reference: Hsieh, Chang, Lin, Keerthi and Sundararajan, A dual coordinate descent method for large-scale linear SVM, ICML 2008,
with the greedy order of Frank-Wolfe methods (Gauss-Southwell).

At the optimum y = sum_j alpha_j a_j has scores 1 - delta alpha_j where alpha_j > 0, and of at least 1 elsewhere: for small
delta y / |y| has the widest margin, 1 / |y|, and x = alpha / sum(alpha) is the point of the hull nearest to 0: both ends of the
bracket meet. Where nothing separates, alpha grows until delta stops it, and |x|_G is about sqrt(delta) or less.

delta goes down in steps, each from where the last one ended, and of more points from where that of fewer did: far from the
optimum a Gram matrix without a ridge is all rounding. It ends where rounding makes the pivots go round in circles: products of
rows have half the digits of the rows.

It begins where coordinate ascent ends (``ascend``), and often need not. Of many points few are looked at, and more as others
score low under their separator (``nearest_of``): the Gram matrix has as many rows as count, and some.

Reference: Judice and Pires 1994; Kim and Park, Fast nonnegative matrix factorization, SIAM J. Sci. Comput. 2011, section 4: all
entries that are infeasible change sides at once, and one at a time when that makes no progress three times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them
from numpy.typing import NDArray

from dfeas.errors import BadInputError
from dfeas.kernels.distances import cuts
from dfeas.kernels.kernel import NormalisedKernel, scores
from dfeas.linalg.blas import one_thread
from dfeas.linalg.points import Floats, Indices, Points, parts, row_slice, take_rows
from dfeas.linalg.separation.solver import SEPARATED, solve
from dfeas.linalg.separation.sparse_columns import column_matrix


def ascend(gram: Floats, delta: float, tolerance: float, start: Floats | None) -> tuple[Floats, bool]:
    """Coordinate ascent from nothing, or from alpha (s,) of fewer points, until the bracket is within the tolerance, or some
    steps were taken: alpha (s,) >= 0, none of them more than sqrt(s) / delta, and whether it is within the tolerance.
    """
    count = len(gram)
    alpha = np.zeros(count) if start is None else np.maximum(start, 0)
    slope = np.full(count, -1.0) if start is None else gram @ alpha + delta * alpha - 1
    step = np.empty(count)
    limit = np.sqrt(count) / delta  # of alpha, wherever the objective is below 0
    look = -(-count // 2)  # how often in a round it is looked how near to the optimum alpha is
    for taken in range(1, 2 * count + 1):  # at most so many steps for each point
        np.divide(slope, -(1 + delta), out=step)
        np.maximum(step, -alpha, out=step)
        best = int(np.abs(step).argmax())
        change = float(step[best])
        if not 0 < abs(change) < limit or not alpha[best] + change < limit:
            break  # the optimum, or G is no Gram matrix, and alpha would grow for ever
        alpha[best] += change
        slope += change * gram[best]
        slope[best] += delta * change
        if taken % look == 0:
            share = _share(alpha, slope + 1 - delta * alpha)
            if share >= 1 - tolerance:
                return alpha, True
            if share <= 0 and taken >= count:  # rounds without a separator after which others know better
                break
    return alpha, False


def _share(alpha: Floats, scores: Floats) -> float:
    """Share that the least score, over |alpha|_G, has of |alpha|_G / sum(alpha), which no margin exceeds."""
    square = float(alpha @ scores)
    return float(scores.min()) * float(alpha.sum()) / square if square > 0 else 0.0


RIDGES = tuple(10.0**-power for power in range(3, 13))
"""delta, one after the other."""
STEPS = 40
"""Systems for one delta, at most."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """What is known of s points."""

    x: Floats  # (s,) the direction that separates best, of any length
    low: float  # least score of x, over |x|_G; 0 when |x|_G is
    weight: Floats  # (s,) on the simplex: nearest to 0
    upper: float  # its length: no unit vector has a larger margin
    steps: int

    @property
    def separates(self) -> bool:
        return self.low > 0

    def join(self, other: Nearest) -> Nearest:
        """The better ends of both, and the steps of the other one."""
        best, nearer = other if other.low > self.low else self, other if other.upper < self.upper else self
        return Nearest(best.x, best.low, nearer.weight, nearer.upper, other.steps)


def nearest(gram: Floats, start: Floats | None = None, tolerance: float = 0.05) -> Nearest:
    """The widest separator of points with a Gram matrix (s, s) whose diagonal is 1, up to ``tolerance``, or a conflict.
    ``start`` (s,) is alpha of what was known of some of them.
    """
    with one_thread(of_scipy=True):
        steps = 1
        # a larger delta is no start: scores of what separates fewer points would be below zero, 1 - delta alpha_j
        ridges = [delta for delta in RIDGES if start is None or delta * float(start.max(initial=0.0)) <= 1]
        if start is not None and 0 < len(ridges) < len(RIDGES):
            known, resolved = _lower_ridge(gram, start > 0, ridges, tolerance, None, steps)
            if resolved:
                return known
            steps = known.steps
        alpha, near = ascend(gram, RIDGES[0], tolerance, start)
        active = alpha > 0 if alpha.any() else np.ones(len(gram), bool)
        best = _better(None, gram, alpha / alpha.sum(), steps) if near else None
        if best is not None and best.low >= (1 - tolerance) * best.upper:
            return best
        return _lower_ridge(gram, active, RIDGES, tolerance, best, steps)[0]


def _lower_ridge(
    gram: Floats, active: NDArray[np.bool_], ridges: Sequence[float], tolerance: float, best: Nearest | None, steps: int
) -> tuple[Nearest, bool]:
    """The better of what was known and what one delta after the other gives; false where the pivots go round in circles."""
    for delta in ridges:
        alpha, active, taken = _pivot(gram, delta, active)
        steps += taken
        best = _better(best, gram, alpha / alpha.sum(), steps)
        if taken == STEPS or best.low >= (1 - tolerance) * best.upper:
            break
    assert best is not None
    return best, taken < STEPS


def _better(known: Nearest | None, gram: Floats, x: Floats, steps: int) -> Nearest:
    """With new weights, where they are better at either end."""
    found = Nearest(x, least_score(gram, x), x, length_of(gram, x), steps)
    return found if known is None else known.join(found)


def by_rows(gram: Floats, known: Nearest, tolerance: float | None) -> Nearest:
    """What the linear solver says of the points in coordinates of their span, where it is better. G = F F' by Cholesky with
    pivots (LAPACK's dpstrf), which stops at rounding: row j of F (s, r) is point j, and r of the rows are a triangle, so that
    any y in the span is an expansion over these.
    """
    # Cholesky stops where what is left of every K(x, x) = 1 is below this
    lower, pivots, rank, _ = scipy.linalg.lapack.dpstrf(gram, tol=1e-13, lower=1)
    order, r = np.asarray(pivots, np.int64) - 1, int(rank)
    factor = np.zeros((len(gram), r))
    factor[order] = np.tril(lower)[:, :r]
    matrix = column_matrix(factor, np.ones(len(factor)))
    solution = solve(matrix)
    if tolerance is not None and solution.outcome == SEPARATED:
        solution = solve(matrix, solution, tolerance / 4).with_upper(solution)
    weight = np.zeros(len(gram))
    weight[solution.rows] = solution.weight
    x = np.zeros(len(gram))
    x[order[:r]] = scipy.linalg.solve_triangular(factor[order[:r]], solution.y, trans=1, lower=True, check_finite=False)
    steps = known.steps + solution.steps
    return known.join(Nearest(x, least_score(gram, x), weight, length_of(gram, weight), steps))


def indefinite(gram: Floats) -> BadInputError:
    """What is said of a kernel that is none."""
    least = float(np.linalg.eigvalsh(gram)[0])
    return BadInputError(f"the kernel is not positive definite: its least eigenvalue on {len(gram)} points is {least:.3g}")


def require_definite(gram: Floats) -> None:
    """Raise BadInputError for a matrix (s, s) with an eigenvalue that is negative by more than the first ridge."""
    with one_thread(of_scipy=True):
        if scipy.linalg.lapack.dpotrf(gram + RIDGES[0] * np.eye(len(gram)), overwrite_a=1)[1]:
            raise indefinite(gram)


def length_of(gram: Floats, x: Floats) -> float:
    """|x|_G of amounts (s,). Raises BadInputError when the square is negative by more than rounding."""
    square = float(x @ (gram @ x))
    # |x|_G^2 may be below zero by so much, for weights that sum to one: rounding
    if square < -1e-10 * float(np.abs(x).sum()) ** 2:
        raise indefinite(gram)
    return float(np.sqrt(max(0.0, square)))


def least_score(gram: Floats, x: Floats) -> float:
    """The least entry of Gx / |x|_G; 0 when that is no number."""
    length = length_of(gram, x)
    return float((gram @ x).min()) / length if 0 < length < np.inf else 0.0


def _pivot(gram: Floats, delta: float, active: NDArray[np.bool_]) -> tuple[Floats, NDArray[np.bool_], int]:
    """alpha (s,) >= 0, which entries are positive, and systems solved."""
    fewest, tries = len(gram) + 1, 3
    alpha = np.zeros(len(gram))
    rounding = 1e-9  # entries and scores that are negative by no more are zero
    for step in range(1, STEPS + 1):
        rows = np.flatnonzero(active)
        alpha[:] = 0
        alpha[rows] = _solve_system(gram, rows, delta)
        slope = alpha[rows] @ gram[rows] - 1 if 2 * len(rows) < len(gram) else gram @ alpha - 1
        wrong = np.where(active, alpha < -rounding * np.abs(alpha).max(), slope < -rounding)
        count = int(wrong.sum())
        if not count or step == STEPS:
            break
        if count < fewest:
            fewest, tries = count, 3
        elif tries > 0:
            tries -= 1
        else:
            wrong[: np.flatnonzero(wrong)[-1]] = False
        active = active ^ wrong
        if not active.any():
            active[0] = True
    alpha = np.maximum(alpha, 0)
    if not alpha.any():
        alpha[int(active.argmax())] = 1.0
    return alpha, alpha > 0, step


def _solve_system(gram: Floats, rows: NDArray[np.int64], delta: float) -> Floats:
    """(M + delta I)^-1 1, M a part of G as rounding left it: to be positive definite it may need more than delta."""
    chosen, n = np.ix_(rows, rows), len(rows)
    for ridge in (delta, *RIDGES[::-1]):
        system = gram[chosen]
        system.flat[:: n + 1] += max(delta, ridge)
        # M is its own transpose, which LAPACK takes without a copy
        factor, info = scipy.linalg.lapack.dpotrf(system.T, lower=1, overwrite_a=1, clean=0)
        if info == 0:
            return np.asarray(scipy.linalg.lapack.dpotrs(factor, np.ones((n, 1)), lower=1)[0][:, 0])
    raise indefinite(gram[chosen])


def nearest_of(matrix: Matrix, points: Points, labels: Floats, start: Floats | None, tolerance: float | None) -> Nearest:
    """What ``nearest`` says of points (s, m), with x of length 1, from the Gram matrix of few of them. Few make the separator;
    of all others those that it scores lowest join these, at most as many as there are, until it scores none below the share of
    the widest margin that was asked for: the upper end of few is one of all. None leaves, so it ends. Low is of all points
    where few are separated. ``start`` (s,) is alpha of what was known.
    """
    close = 0.05 if tolerance is None else min(0.05, tolerance / 4)  # how near to the widest margin a separator is
    x = np.zeros(len(labels)) if start is None else start
    few = np.flatnonzero(x)
    if not len(few) or matrix.kernel.name == "callable":  # a function of Python may be no kernel, which all may show
        most = 128 if matrix.kernel.name != "callable" else len(labels)  # points that are looked at first
        few = np.unique(np.linspace(0, len(labels) - 1, min(most, len(labels))).astype(np.int64))
    elif len(few) < len(labels):
        few = np.append(few, _lowest(_score(matrix.kernel, points, labels, x), few, np.inf))
    while True:
        gram = matrix.signed_gram(take_rows(points, few), labels[few])
        found = nearest(gram, x[few], close)
        # a separator of a smaller share of the upper end is looked for in coordinates, which have all digits
        if found.low < 0.5 * found.upper:
            found = by_rows(gram, found, tolerance)
        weight, length, low = np.zeros(len(labels)), length_of(gram, found.x), found.low
        x, weight[few] = np.zeros(len(labels)), found.weight
        x[few] = found.x / length if length > 0 else 0.0
        fresh = few[:0]
        if found.separates and len(few) < len(labels):
            score = _score(matrix.kernel, points, labels, x)
            low, fresh = min(low, float(score.min())), _lowest(score, few, (1 - close) * found.upper)
        if not len(fresh):
            return Nearest(x, low, weight, found.upper, found.steps)
        few, x = np.append(few, fresh), x / found.low


def _score(kernel: NormalisedKernel, points: Points, labels: Floats, x: Floats) -> Floats:
    used = np.flatnonzero(x)
    return scores(kernel, take_rows(points, used), (x * labels)[used], points, False) * labels


def _lowest(score: Floats, few: Indices, level: float) -> Indices:
    """Points with the lowest scores below a level that are not among few, at most as many."""
    score = score.copy()
    score[few] = np.inf
    return np.argsort(score, kind="stable")[: min(len(few), int((score < level).sum()))]


@dataclass
class Matrix:
    """The Gram matrix of the points that were asked for last, without signs: classes begin with the same points."""

    kernel: NormalisedKernel
    _points: Points | None = None
    _values: Floats | None = None

    def signed_gram(self, points: Points, labels: Floats) -> Floats:
        """G (s, s) of points (s, m) in float64, K(x, x) = 1. Raises BadInputError for a function that is no kernel."""
        if self._values is None or self._points is None or not _equal(self._points, points):
            self._values = None  # before there is another one
            self._points, self._values = points, gram(self.kernel, points)
        signed = self._values * labels[:, None]
        signed *= labels
        return np.asarray(signed)


def _equal(points: Points, others: Points) -> bool:
    alike = points.shape == others.shape and points.dtype == others.dtype
    return alike and all(map(np.array_equal, parts(points), parts(others)))


def gram(kernel: NormalisedKernel, points: Points) -> Floats:
    """K (s, s) of points (s, m), normalised. Raises BadInputError when a function is not symmetric or not positive definite."""
    count = points.shape[0]
    values = np.empty((count, count))
    tiles = cuts(count)
    middle = kernel.middle(points)
    prepared = [kernel.prepare(row_slice(points, part), False, middle) for part in tiles]
    for i, here in enumerate(tiles):
        for j, there in enumerate(tiles[i:], i):
            tile = kernel.tile(prepared[i][0], prepared[j][1])
            if kernel.name == "callable":
                other = tile.T if i == j else kernel.tile(prepared[j][0], prepared[i][1]).T
                _compare(tile, other)
                tile = (tile + other) / 2
            elif i == j:
                tile = (tile + tile.T) / 2
            values[here, there], values[there, here] = tile, tile.T
    if kernel.name == "callable":
        require_definite(values)
    else:
        np.fill_diagonal(values, kernel.nonzero(points))
    return values


def _compare(one: NDArray[np.floating], other: NDArray[np.floating]) -> None:
    apart = np.abs(one - other)
    if apart.max() > 1e-6:  # K(x, z) and K(z, x) differ by no more
        place = np.unravel_index(int(apart.argmax()), apart.shape)
        raise BadInputError(
            f"the kernel is not symmetric: K(x, z) = {one[place]:.6g} and K(z, x) = {other[place]:.6g} for two points"
        )
