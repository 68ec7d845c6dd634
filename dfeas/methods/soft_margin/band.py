"""The soft margin of points in memory, beside a linear term that stands for all others.

    min_w  w'Qw/2 - g'w + sum_j c_j max(0, 1 - b_j'w),      b_j = l_j x_j, over the points in memory

where Q is diagonal: 1, and of a bias 1/s^2, or 0 where it is free. It is solved

by the method of multipliers (Hestenes 1969; Rockafellar 1976) with Newton steps inside (Yin and Li 2019): with multipliers
0 <= a_j <= c_j and a width 1/tau,

    alpha_j(w) = clip(a_j + tau c_j (1 - b_j'w), 0, c_j),    0 = Qw - g - sum_j alpha_j(w) b_j

is solved by Newton steps, whose matrix is Q + tau sum c_j b_j b_j' over the points that are not clipped, and an exact line
search; then a <- alpha, and tau grows. Any alpha in the box bounds the minimum from below: sum alpha_j less the largest t'w -
w'Qw/2, t = g + sum alpha_j b_j, which is |t|^2 / 2 for Q = I. Of a free bias t must be 0, so points that are not clipped give
what is missing. Few points are not clipped: a step costs one product with all points, and a Gram matrix of those few.

From the minimum w of one of them the others are not far. So a point far from the margin at w stands for its line there, which
is nowhere above its hinge: what is left is a small band, whose lower bound is one of the whole. Where the whole at the small
one's minimum is above that by more than is wanted, because far points changed their side, it is solved from there.

Points are rows in float64, dense or sparse; products are cut into pieces alike on any machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dfeas.linalg.blas import cut_evenly, one_thread, side_by_side
from dfeas.linalg.points import (
    Floats,
    Indices,
    Tile,
    combine_rows,
    gather_rows,
    is_dense,
    moments,
    norms,
    products,
    tile,
    times_rows,
)
from dfeas.linalg.routines import solve_positive
from dfeas.linalg.separation.newton import conjugate_gradients
from dfeas.passes.block import Columns
from dfeas.records import replace

DIRECT = 4000
"""Largest system that is factorised; beyond it conjugate gradients, by products with the points only."""
DIRECT_SPARSE = 500
"""The same where points are sparse, and products cost little beside a factorisation."""
NARROW = 128
"""Features up to which the system is one of features: products of points with each other lose those of a small scale."""


class SignedRows(Struct, frozen=True):
    """r points of m features in memory."""

    values: Tile  # (r, m) float64, C order or CSR

    @classmethod
    def of(cls, columns: Columns, centre: Floats | None = None) -> SignedRows:
        """Of dense points a centre (m - 1,) is subtracted, but from the intercept, which comes last."""
        if not is_dense(columns.points):
            return cls(columns.multiply_by(np.ones(len(columns))))
        rows = columns.unit()
        if centre is not None:
            for cut in cut_evenly(len(rows), 4):  # with a quarter of the memory
                rows[cut] -= np.multiply.outer(rows[cut, -1], np.append(centre, 0.0))
        return cls(rows)

    def __len__(self) -> int:
        return int(self.values.shape[0])

    @property
    def features(self) -> int:
        return int(self.values.shape[1])

    @property
    def sparse(self) -> bool:
        return not is_dense(self.values)

    def _cuts(self, count: int) -> list[slice]:
        # 4: cuts of what is done side by side
        # 1 << 19: entries below which one thread is as fast as several
        return cut_evenly(count, 4 if count * self.values.size >= (1 << 19) * max(1, len(self)) else 1)

    def _pieces(self) -> list[tuple[slice, Tile]]:
        return [(cut, tile(self.values, cut, False)) for cut in self._cuts(len(self))]

    def scores(self, w: Floats) -> Floats:
        """(r,) b_j'w, or (r, k) of w (m, k)."""
        pieces = self._pieces()
        if len(pieces) == 1:
            return np.asarray(pieces[0][1] @ w)
        score = np.empty((len(self), *w.shape[1:]))

        def multiply(i: int) -> None:
            cut, part = pieces[i]
            score[cut] = part @ w

        side_by_side(multiply, len(pieces))
        return score

    def combine(self, x: Floats) -> Floats:
        """(m,) sum_j x_j b_j, or (k, m) of x (r, k)."""
        pieces = self._pieces()
        total, *parts = side_by_side(lambda i: combine_rows(x[pieces[i][0]].T, pieces[i][1]), len(pieces))
        for part in parts:
            total += part
        return total

    def part(self, rows: Indices) -> SignedRows:
        return SignedRows(self.values[rows])

    def gram(self, rows: Indices, cost: Floats) -> Floats:
        """(m, m) sum_j c_j b_j b_j' over some rows, with costs (len(rows),)."""
        cuts = self._cuts(len(rows))

        def add(cut: slice) -> Floats:
            if not isinstance(self.values, np.ndarray):
                return moments(self.values[rows[cut]], cost[cut])
            all_rows = len(rows[cut]) == len(self)  # of the first step, as a rule
            return moments(self.values if all_rows else gather_rows(self.values, rows[cut]), cost[cut])

        total, *parts = side_by_side(lambda i: add(cuts[i]), len(cuts))
        for part in parts:
            total += part
        return total


class Width(Struct, frozen=True):
    """What w (m,) costs by itself, w'Qw/2. A free bias costs nothing. At a minimum it stands where a point is at its margin,
    one with a price there or nearer to 0, so |b| <= 1 + |x||w|, and |w|^2 / 2 is at most any known objective: that is what
    bounds t b, where t is not 0.
    """

    squares: Floats  # (m,) the diagonal of Q: 1, and of a bias, which comes last, 1/s^2 or 0
    radius: float  # length of the longest point
    objective: float = 0.0  # not less than the minimum
    length: float = math.inf  # not less than |w| at the minimum, but for a cheap bias

    @property
    def cheap(self) -> NDArray[np.bool_]:
        """(m,) the bias, where it costs less than other features: large ones are no surprise."""
        return self.squares < 1

    @property
    def reach(self) -> float:
        """Not less than the bias at the minimum."""
        return 1 + self.radius * min(float(np.sqrt(2 * self.objective)), self.length)

    @property
    def curvature(self) -> Floats:
        """(m,) Q, and of a cheap bias at least what makes its largest cost as much as all."""
        return np.where(self.cheap, np.maximum(self.squares, max(self.objective, TINY) / self.reach**2), self.squares)

    def of(self, w: Floats) -> Floats:
        """w'Qw/2 of w (m,), or of several (m, k)."""
        return np.asarray(np.einsum("i,i...,i...->...", self.squares, w, w) / 2)

    def largest(self, total: Floats) -> float:
        """Of t'w - w'Qw/2 over all w that may be a minimum."""
        square, missing, rest = float(self.squares[-1]), abs(float(total[-1])), total[:-1]
        bias = missing * (missing / square) / 2 if square > 0 else math.inf
        if square < 1 and missing:
            bias = min(bias, self.reach * missing)
        return float(rest @ rest) / 2 + (bias if missing else 0.0)


COLD, WARM = 0.5, 0.05
"""The first 1/tau is four times this quantile of |1 - b_j'w|: about as many points are not clipped. Fewer with multipliers."""
NARROWEST = 1e-9
"""The least 1/tau: rounding of the scores is not far below."""
STEPS = 200
"""Newton steps in all."""
SOFT = (2.0**13, 2.0**17, 2.0**21, 2.0**25, 2.0**29)
"""Costs times the square of the longest point: where they are larger, their minimum is tried with these first, as few points
that can be separated have larger multipliers, and each takes digits from a sum whose terms cancel."""
TINY = 2.0**-1000
"""The least square of a length."""


class BandSolution(Struct, frozen=True):
    """Both ends of the minimum."""

    w: Floats  # (m,)
    multiplier: Floats  # (r,) alpha, in the box
    value: float  # of the function at w
    lower: float  # of its minimum, from alpha
    steps: int


@dataclass(frozen=True)
class Band:
    """The points in memory and the linear term."""

    rows: SignedRows  # (r, m) b_j
    cost: Floats  # (r,) c_j >= 0
    linear: Floats  # (m,) g
    width: Width

    @cached_property
    def signs(self) -> Floats:
        """(r,) what each point adds to a cheap bias."""
        return self.rows.scores(self.width.cheap.astype(np.float64))

    def minimise(self, w: Floats, multiplier: Floats | None, gap: float) -> BandSolution:
        """From w, until value - lower <= gap, or rounding ends it. Without multipliers, half of the box."""
        with one_thread(of_scipy=True):
            return self._minimise(w, multiplier, gap)

    def _minimise(self, w: Floats, multiplier: Floats | None, gap: float) -> BandSolution:
        square = max(float(norms(self.rows.values).max(initial=0.0)) ** 2, TINY)
        best: BandSolution | None = None
        if multiplier is not None and (self.cost > SOFT[0] / square).any():  # from near they are found with no lower costs
            best = self._warm(w, multiplier, gap)
            if best.value - best.lower <= gap:
                return best
        for most in (size / square for size in SOFT):
            if not (self.cost > most).any():
                break
            hard, solved = self._hard(most, w, multiplier, gap)
            best = hard if best is None else better(hard, best)
            if best.value - best.lower <= gap:
                return best
            if not solved:
                break
            w, multiplier = hard.w, hard.multiplier
        last = self._soft(w, multiplier, gap)
        return last if best is None else better(best, last)

    def _hard(self, most: float, w: Floats, multiplier: Floats | None, gap: float) -> tuple[BandSolution, bool]:
        """With lower costs, and the w of that so long that no point has a loss: as good as the minimum where points can be
        separated, and no multiplier need be large. What bounds the minimum with lower costs bounds it with these. Also
        whether that of lower costs was found.
        """
        capped = replace(self, cost=np.minimum(self.cost, most))
        solution = capped._soft(w, None if multiplier is None else np.minimum(multiplier, most), gap / 2)
        score = self.rows.scores(solution.w)
        least = float(score[self.cost > 0].min())
        # 2.0**-32: by this share the least score is above 1, so that no order of summation gives that point a loss
        longer = solution.w * ((1 + 2.0**-32) / least) if least > 0 else solution.w
        ends = [replace(solution, w=each, value=self.value(each, self.rows.scores(each))) for each in (solution.w, longer)]
        return min(ends, key=lambda end: end.value), solution.value - solution.lower <= gap / 2

    def _soft(self, w: Floats, multiplier: Floats | None, gap: float) -> BandSolution:
        if multiplier is None:
            return _Run(self, w, self.cost / 2, COLD).until(gap, STEPS)
        warm = self._warm(w, multiplier, gap)
        if warm.value - warm.lower <= gap:
            return warm
        cold = _Run(self, np.zeros_like(w), self.cost / 2, COLD).until(gap, STEPS)
        return better(cold, warm)

    def _warm(self, w: Floats, multiplier: Floats, gap: float) -> BandSolution:
        # 30: steps with multipliers that may be far off; then it begins again at w = 0, where no width is too small
        run = _Run(self, w, multiplier, WARM)
        if not self.linear.any():  # of all points; a model has other multipliers than the one before
            run.bound(multiplier)
        return run.best if run.best.value - run.best.lower <= gap else run.until(gap, 30)

    def value(self, w: Floats, score: Floats) -> float:
        return float(self.width.of(w) - self.linear @ w + self.cost @ np.maximum(0.0, 1 - score))


class _Run:
    """One minimisation: where it stands."""

    def __init__(self, band: Band, w: Floats, multiplier: Floats, share: float) -> None:
        self.band, self.w, self.a = band, w, multiplier
        self.score = band.rows.scores(w)
        width = 4 * float(np.quantile(np.abs(1 - self.score), share)) if len(self.score) else 1.0
        self.tau = 1 / max(width, 4 * NARROWEST)
        self.alpha, self.curvature = multiplier, band.width.curvature
        self.best = BandSolution(w, multiplier, band.value(w, self.score), -np.inf, 0)

    def until(self, gap: float, steps: int) -> BandSolution:
        """Narrower and narrower, until the gap is small enough, or so many steps were taken."""
        self.inner(gap)
        while self.best.value - self.best.lower > gap and self.best.steps < steps and self.tau * NARROWEST < 1:
            self.next()
            self.inner(gap)
        return self.best

    def _lower(self, alpha: Floats, free: Indices) -> tuple[float, Floats, Floats]:
        """The lower bound of alpha, once free ones add up to the pull of a cheap bias; it, and g + sum alpha_j b_j."""
        band, width = self.band, self.band.width
        total = band.linear + band.rows.combine(alpha)
        first = float(alpha.sum()) - width.largest(total), alpha, total
        missing = float((total - width.squares * self.w)[width.cheap].sum())
        if not missing:
            return first
        sides = band.signs[free]
        room = np.where(sides * missing > 0, alpha[free], band.cost[free] - alpha[free]) * np.abs(sides)
        if not abs(missing) <= (most := float(room.sum())):
            return first
        change = -missing / most * sides * room
        balanced = alpha.copy()
        balanced[free] += change
        moved = total + band.rows.part(free).combine(change)
        moved[width.cheap] = (width.squares * self.w)[width.cheap]
        return max(first, (float(balanced.sum()) - width.largest(moved), balanced, total), key=lambda end: end[0])

    def inner(self, gap: float) -> None:
        """Newton steps for these multipliers, until their error is small beside the gap that they leave."""
        band = self.band
        # 32: newton steps for one set of multipliers; none of them need be exact
        for _ in range(32):
            raw = self.a + self.tau * band.cost * (1 - self.score)
            self.alpha = np.clip(raw, 0.0, band.cost)
            free = np.flatnonzero((raw > 0) & (raw < band.cost))
            lower, balanced, total = self._lower(self.alpha, free)
            value = band.value(self.w, self.score)
            self._better(value, lower, balanced)
            residual = total - band.width.squares * self.w
            error = band.width.largest(residual)
            if error <= max(1e-2 * (value - lower), 1e-16 * abs(value)) or value - lower <= gap:
                return
            step = self._newton(free, residual)
            slope = band.rows.scores(step)
            t = self._line_search(step, slope)
            if t == 0:
                return
            self.w = self.w + t * step
            self.score = self.score + t * slope
            self.best = replace(self.best, steps=self.best.steps + 1)

    def next(self) -> None:
        """The multipliers of this w, and a smaller width; running sums of scores begin again."""
        # 4.0: factor of tau from one set of multipliers to the next
        self.a, self.tau = self.alpha, self.tau * 4.0
        self.score = self.band.rows.scores(self.w)

    def bound(self, multiplier: Floats) -> None:
        """Take what these prove, as they are: they may be those of the minimum."""
        lower, balanced, _ = self._lower(multiplier, np.flatnonzero((multiplier > 0) & (multiplier < self.band.cost)))
        self._better(self.best.value, lower, balanced)

    def _better(self, value: float, lower: float, alpha: Floats) -> None:
        if value < self.best.value:
            self.best = replace(self.best, w=self.w, value=value)
        if lower > self.best.lower:
            self.best = replace(self.best, multiplier=alpha, lower=lower)

    def _newton(self, free: Indices, residual: Floats) -> Floats:
        """(Q + tau sum c b b')^-1 residual over the points that are not clipped."""
        k, m, curvature = len(free), len(residual), self.curvature
        if not k:
            return residual / curvature
        if min(k, m) > (DIRECT_SPARSE if self.band.rows.sparse else DIRECT):
            return self._conjugate_gradients(free, residual)
        if k < m and m > NARROW:
            # of points, without the last feature: beside the 1 of a bias the products of short ones would be rounding
            rows = times_rows(self.band.rows.values[free], np.sqrt(self.band.cost[free]))
            last, others = SignedRows(rows).scores(np.eye(1, m, m - 1)[0]), SignedRows(rows[:, :-1])
            system = products(others.values)
            system.flat[:: k + 1] += 1 / self.tau
            first, second = positive_solve(system, np.column_stack([others.scores(residual[:-1]), last])).T
            bias = (residual[-1] - last @ first) / (curvature[-1] + last @ second)
            return np.append(residual[:-1] - others.combine(first + bias * second), bias)
        system = self.tau * self.band.rows.gram(free, self.band.cost[free])
        system.flat[:: m + 1] += curvature
        return positive_solve(system, residual)

    def _conjugate_gradients(self, free: Indices, residual: Floats) -> Floats:
        part, amount = self.band.rows.part(free), self.tau * self.band.cost[free]

        def multiply(v: Floats) -> Floats:
            return np.asarray(self.curvature * v + part.combine(amount * part.scores(v)))

        return conjugate_gradients(multiply, residual, 1e-3, 200)

    def _line_search(self, step: Floats, slope: Floats) -> float:
        """The t >= 0 at which the derivative along the step, which rises, is zero; 1 where that is as good."""
        band, z = self.band, 1 - self.score
        along = float((band.width.squares * self.w - band.linear) @ step)
        square = 2 * float(band.width.of(step))
        ratio = self.tau * band.cost

        def derivative(t: float) -> float:
            alpha = np.clip(self.a + ratio * (z - t * slope), 0.0, band.cost)
            return along + t * square - float(alpha @ slope)

        first = derivative(0.0)
        if not first < 0:
            return 0.0
        low, high = 0.0, 1.0
        last = derivative(high)
        if abs(last) <= 0.1 * -first:
            return 1.0
        while last < 0:
            low, high = high, 2 * high
            last = derivative(high)
            if high > 1e6:
                return low
        # 60: tries of a line search
        for _ in range(60):
            # 1e-2: factor of the step while none is known that is short enough: where nothing but w itself curves, it may be
            # far too long
            middle = (low + high) / 2 if low > 0 else 1e-2 * high
            here = derivative(middle)
            if abs(here) <= 0.01 * -first:
                return middle
            low, high = (middle, high) if here < 0 else (low, middle)
        return low


def better(one: BandSolution, other: BandSolution) -> BandSolution:
    """The better ends of both, and the steps of both."""
    upper, lower = min(one, other, key=lambda each: each.value), max(one, other, key=lambda each: each.lower)
    return replace(upper, multiplier=lower.multiplier, lower=lower.lower, steps=one.steps + other.steps)


def positive_solve(system: Floats, wanted: Floats) -> Floats:
    """Solve a positive definite system; where rounding makes it none, its eigenvalues are cut at rounding."""
    try:
        return solve_positive(system, wanted)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(system)
        return np.asarray((vectors / np.maximum(values, 1e-15 * values[-1])) @ (vectors.T @ wanted))


def minimise_alike(bands: Sequence[Band], first: BandSolution, gaps: Floats) -> list[BandSolution]:
    """The minima of bands over the same rows, each up to its gap, from that of one that is like them."""
    rows = bands[0].rows
    score = rows.scores(first.w)
    distance = np.abs(1 - score)
    # 0.2: the share of the points that are kept: what a fold changes is a fraction of what the points in memory allow for
    near = np.flatnonzero(distance <= np.quantile(distance, 0.2)) if len(distance) else np.arange(0)
    far = score < 1
    far[near] = False
    costs = np.stack([band.cost for band in bands], axis=1)
    lines = costs * far[:, None]
    linear, constant = rows.combine(lines), lines.sum(axis=0)
    part, small = rows.part(near), list[BandSolution]()
    for i, band in enumerate(bands):
        multiplier = np.minimum(first.multiplier[near], band.cost[near])
        near_band = Band(part, band.cost[near], band.linear + linear[i], band.width)
        small.append(near_band.minimise(first.w, multiplier, gaps[i] / 2))
    scores = rows.scores(np.stack([each.w for each in small], axis=1))
    solutions = []
    for i, (band, each) in enumerate(zip(bands, small, strict=True)):
        multiplier = lines[:, i]
        multiplier[near] = each.multiplier
        whole = BandSolution(each.w, multiplier, band.value(each.w, scores[:, i]), each.lower + constant[i], each.steps)
        solutions.append(whole if whole.value - whole.lower <= gaps[i] else band.minimise(each.w, multiplier, gaps[i]))
    return solutions
