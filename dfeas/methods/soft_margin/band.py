"""The soft margin of points in memory, beside a linear term that stands for all others.

    min_w  |w|^2/2 - g'w + sum_j c_j max(0, 1 - b_j'w),      b_j = l_j x_j, over the points in memory

by the method of multipliers (Hestenes 1969; Rockafellar 1976) with Newton steps inside (Yin and Li 2019): with multipliers
0 <= a_j <= c_j and a width 1/tau,

    alpha_j(w) = clip(a_j + tau c_j (1 - b_j'w), 0, c_j),    0 = w - g - sum_j alpha_j(w) b_j

is solved by Newton steps, whose matrix is I + tau sum c_j b_j b_j' over the points that are not clipped, and an exact line
search; then a <- alpha, and tau grows. Any alpha in the box bounds the minimum from below: sum alpha_j - |g + sum alpha_j
b_j|^2 / 2. Few points are not clipped: a step costs one product with all points, and a Gram matrix of those few.

From the minimum w of one of them the others are not far. So a point far from the margin at w stands for its line there, which
is nowhere above its hinge: what is left is a small band, whose lower bound is one of the whole. Where the whole at the small
one's minimum is above that by more than is wanted, because far points changed their side, it is solved from there.

Points are rows in float64, dense or sparse; products are cut into pieces alike on any machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them

from dfeas.linalg.blas import cut_evenly, one_thread, side_by_side
from dfeas.linalg.points import Floats, Indices, Tile, combine_rows, is_dense, moments, norms, products, tile, times_rows
from dfeas.passes.block import Columns

DIRECT = 4000
"""Largest system that is factorised; beyond it conjugate gradients, by products with the points only."""
DIRECT_SPARSE = 500
"""The same where points are sparse, and products cost little beside a factorisation."""
PIECES = 4
"""Cuts of what is done side by side."""
WORTH = 1 << 19
"""Entries below which one thread is as fast as several."""


@dataclass(frozen=True)
class SignedRows:
    """r points of m features in memory."""

    values: Tile  # (r, m) float64, C order or CSR

    @classmethod
    def of(cls, columns: Columns) -> SignedRows:
        return cls(columns.multiply_by(np.ones(len(columns))))

    def __len__(self) -> int:
        return int(self.values.shape[0])

    @property
    def features(self) -> int:
        return int(self.values.shape[1])

    @property
    def sparse(self) -> bool:
        return not is_dense(self.values)

    def _cuts(self, count: int) -> list[slice]:
        return cut_evenly(count, PIECES if count * self.values.size >= WORTH * max(1, len(self)) else 1)

    def _pieces(self) -> list[tuple[slice, Tile]]:
        return [(cut, tile(self.values, cut, False)) for cut in self._cuts(len(self))]

    def scores(self, w: Floats) -> Floats:
        """(r,) b_j'w, or (r, k) of w (m, k)."""
        score, pieces = np.empty((len(self), *w.shape[1:])), self._pieces()

        def multiply(i: int) -> None:
            cut, part = pieces[i]
            score[cut] = part @ w

        side_by_side(multiply, len(pieces))
        return score

    def combine(self, x: Floats) -> Floats:
        """(m,) sum_j x_j b_j, or (k, m) of x (r, k)."""
        pieces = self._pieces()
        parts = side_by_side(lambda i: combine_rows(x[pieces[i][0]].T, pieces[i][1]), len(pieces))
        return np.asarray(np.sum(parts, axis=0))

    def part(self, rows: Indices) -> SignedRows:
        return SignedRows(self.values[rows])

    def gram(self, rows: Indices, cost: Floats) -> Floats:
        """(m, m) sum_j c_j b_j b_j' over some rows, with costs (len(rows),)."""
        cuts = self._cuts(len(rows))
        parts = side_by_side(lambda i: moments(self.values[rows[cuts[i]]], cost[cuts[i]]), len(cuts))
        return np.asarray(np.sum(parts, axis=0))


COLD, WARM = 0.5, 0.05
"""The first 1/tau is four times this quantile of |1 - b_j'w|: about as many points are not clipped. Fewer with multipliers."""
NARROWER = 4.0
"""Factor of tau from one set of multipliers to the next."""
NARROWEST = 1e-9
"""The least 1/tau: rounding of the scores is not far below."""
SEARCH = 60
"""Tries of a line search."""
SHORTER = 1e-2
"""Factor of the step while none is known that is short enough: where nothing but w itself curves, it may be far too long."""
STEPS = 200
"""Newton steps in all."""
WARM_STEPS = 30
"""The same with multipliers that may be far off; then it begins again at w = 0, where no width is too small."""
SOFT = 2.0**27
"""Costs times the square of the longest point: where they are larger, their minimum is tried with this first. A multiplier of
such a size takes half of the digits from a sum whose terms cancel."""
BEYOND = 2.0**-32
"""By this share the least score is above 1, so that no order of summation gives that point a loss."""
TINY = 2.0**-1000
"""The least square of a length."""
INNER = 12
"""Newton steps for one set of multipliers; none of them need be exact."""


@dataclass(frozen=True, slots=True)
class BandSolution:
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

    def minimise(self, w: Floats, multiplier: Floats | None, gap: float) -> BandSolution:
        """From w, until value - lower <= gap, or rounding ends it. Without multipliers, half of the box."""
        with one_thread(of_scipy=True):
            return self._minimise(w, multiplier, gap)

    def _minimise(self, w: Floats, multiplier: Floats | None, gap: float) -> BandSolution:
        most = SOFT / max(float(norms(self.rows.values).max(initial=0.0)) ** 2, TINY)
        if (self.cost > most).any():
            hard = self._hard(most, w, multiplier, gap)
            if hard.value - hard.lower <= gap:
                return hard
            solved = self._soft(w, multiplier, gap)
            return replace(better(hard, solved), steps=hard.steps + solved.steps)
        return self._soft(w, multiplier, gap)

    def _hard(self, most: float, w: Floats, multiplier: Floats | None, gap: float) -> BandSolution:
        """With lower costs, and the w of that so long that no point has a loss: as good as the minimum where points can be
        separated, and no multiplier need be large. What bounds the minimum with lower costs bounds it with these.
        """
        capped = replace(self, cost=np.minimum(self.cost, most))
        solution = capped._soft(w, None if multiplier is None else np.minimum(multiplier, most), gap / 2)
        score = self.rows.scores(solution.w)
        least = float(score[self.cost > 0].min())
        longer = solution.w * ((1 + BEYOND) / least) if least > 0 else solution.w
        ends = [replace(solution, w=each, value=self.value(each, self.rows.scores(each))) for each in (solution.w, longer)]
        return min(ends, key=lambda end: end.value)

    def _soft(self, w: Floats, multiplier: Floats | None, gap: float) -> BandSolution:
        if multiplier is None:
            return _Run(self, w, self.cost / 2, COLD).until(gap, STEPS)
        warm = _Run(self, w, multiplier, WARM).until(gap, WARM_STEPS)
        if warm.value - warm.lower <= gap:
            return warm
        cold = _Run(self, np.zeros_like(w), self.cost / 2, COLD).until(gap, STEPS)
        return replace(better(cold, warm), steps=warm.steps + cold.steps)

    def value(self, w: Floats, score: Floats) -> float:
        return float(w @ w / 2 - self.linear @ w + self.cost @ np.maximum(0.0, 1 - score))


class _Run:
    """One minimisation: where it stands."""

    def __init__(self, band: Band, w: Floats, multiplier: Floats, share: float) -> None:
        self.band, self.w, self.a = band, w, multiplier
        self.score = band.rows.scores(w)
        width = 4 * float(np.quantile(np.abs(1 - self.score), share)) if len(self.score) else 1.0
        self.tau = 1 / max(width, 4 * NARROWEST)
        self.alpha = multiplier
        self.best = BandSolution(w, multiplier, band.value(w, self.score), -np.inf, 0)

    def until(self, gap: float, steps: int) -> BandSolution:
        """Narrower and narrower, until the gap is small enough, or so many steps were taken."""
        self.inner(gap)
        while self.best.value - self.best.lower > gap and self.best.steps < steps and self.tau * NARROWEST < 1:
            self.next()
            self.inner(gap)
        return self.best

    def _lower(self, alpha: Floats) -> tuple[float, Floats]:
        """The lower bound of alpha, and g + sum alpha_j b_j."""
        total = self.band.linear + self.band.rows.combine(alpha)
        return float(alpha.sum() - total @ total / 2), total

    def inner(self, gap: float) -> None:
        """Newton steps for these multipliers, until their error is small beside the gap that they leave."""
        band = self.band
        for _ in range(INNER):
            raw = self.a + self.tau * band.cost * (1 - self.score)
            self.alpha = np.clip(raw, 0.0, band.cost)
            lower, total = self._lower(self.alpha)
            value = band.value(self.w, self.score)
            self._better(value, lower)
            residual = total - self.w
            if residual @ residual / 2 <= max(1e-2 * (value - lower), 1e-16 * abs(value)) or value - lower <= gap:
                return
            free = np.flatnonzero((raw > 0) & (raw < band.cost))
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
        self.a, self.tau = self.alpha, self.tau * NARROWER
        self.score = self.band.rows.scores(self.w)

    def _better(self, value: float, lower: float) -> None:
        if value < self.best.value:
            self.best = replace(self.best, w=self.w, value=value)
        if lower > self.best.lower:
            self.best = replace(self.best, multiplier=self.alpha, lower=lower)

    def _newton(self, free: Indices, residual: Floats) -> Floats:
        """(I + tau sum c b b')^-1 residual over the free points."""
        k, m = len(free), len(residual)
        if not k:
            return residual
        if min(k, m) > (DIRECT_SPARSE if self.band.rows.sparse else DIRECT):
            return self._conjugate_gradients(free, residual)
        if k < m:
            rows = SignedRows(times_rows(self.band.rows.values[free], np.sqrt(self.band.cost[free])))
            system = products(rows.values)
            system[np.diag_indices(k)] += 1 / self.tau
            return np.asarray(residual - rows.combine(positive_solve(system, rows.scores(residual))))
        system = self.tau * self.band.rows.gram(free, self.band.cost[free])
        system[np.diag_indices(m)] += 1
        return positive_solve(system, residual)

    def _conjugate_gradients(self, free: Indices, residual: Floats) -> Floats:
        part, amount = self.band.rows.part(free), self.tau * self.band.cost[free]

        def product(v: Floats) -> Floats:
            return np.asarray(v.reshape(-1) + part.combine(amount * part.scores(v.reshape(-1))))

        m = len(residual)
        system = scipy.sparse.linalg.LinearOperator((m, m), matvec=product, dtype=np.float64)
        return np.asarray(scipy.sparse.linalg.cg(system, residual, rtol=1e-3, maxiter=200)[0])

    def _line_search(self, step: Floats, slope: Floats) -> float:
        """The t >= 0 at which the derivative along the step, which rises, is zero; 1 where that is as good."""
        band, z = self.band, 1 - self.score
        along, square = float((self.w - band.linear) @ step), float(step @ step)
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
        for _ in range(SEARCH):
            middle = (low + high) / 2 if low > 0 else SHORTER * high
            here = derivative(middle)
            if abs(here) <= 0.01 * -first:
                return middle
            low, high = (middle, high) if here < 0 else (low, middle)
        return low


def better(one: BandSolution, other: BandSolution) -> BandSolution:
    """The better ends of both."""
    upper, lower = min(one, other, key=lambda each: each.value), max(one, other, key=lambda each: each.lower)
    return replace(upper, multiplier=lower.multiplier, lower=lower.lower)


def positive_solve(system: Floats, wanted: Floats) -> Floats:
    """Solve a positive definite system; where rounding makes it none, its eigenvalues are cut at rounding."""
    try:
        return np.asarray(scipy.linalg.cho_solve(scipy.linalg.cho_factor(system, lower=True), wanted))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(system)
        return np.asarray(vectors @ ((vectors.T @ wanted) / np.maximum(values, 1e-15 * values[-1])))


NEAR = 0.2
"""The share of the points that are kept: what a fold changes is a fraction of what the points in memory allow for."""


def minimise_alike(bands: Sequence[Band], first: BandSolution, gaps: Floats) -> list[BandSolution]:
    """The minima of bands over the same rows, each up to its gap, from that of one that is like them."""
    rows = bands[0].rows
    score = rows.scores(first.w)
    distance = np.abs(1 - score)
    near = np.flatnonzero(distance <= np.quantile(distance, NEAR)) if len(distance) else np.arange(0)
    far = score < 1
    far[near] = False
    costs = np.stack([band.cost for band in bands], axis=1)
    lines = costs * far[:, None]
    linear, constant = rows.combine(lines), lines.sum(axis=0)
    part, small = rows.part(near), list[BandSolution]()
    for i, band in enumerate(bands):
        multiplier = np.minimum(first.multiplier[near], band.cost[near])
        small.append(Band(part, band.cost[near], band.linear + linear[i]).minimise(first.w, multiplier, gaps[i] / 2))
    scores = rows.scores(np.stack([each.w for each in small], axis=1))
    solutions = []
    for i, (band, each) in enumerate(zip(bands, small, strict=True)):
        multiplier = lines[:, i]
        multiplier[near] = each.multiplier
        whole = BandSolution(each.w, multiplier, band.value(each.w, scores[:, i]), each.lower + constant[i], each.steps)
        solutions.append(whole if whole.value - whole.lower <= gaps[i] else band.minimise(each.w, multiplier, gaps[i]))
    return solutions
