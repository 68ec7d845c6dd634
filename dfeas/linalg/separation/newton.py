"""Finite Newton for the L2 soft margin: minimise |w|^2/2 + C/2 sum_j max(0, 1 - a_j'w)^2.

Reference: Mangasarian 2002, A finite Newton method for classification; Keerthi and DeCoste 2005. On the active columns
{a_j'w < 1} the objective is quadratic, so that a step solves (I/C + B B') w = B 1, B the active columns, and an exact line
search keeps it a descent. At the optimum w = C B (1 - B'w): with xi = max(0, 1 - a_j'w) and x = xi / sum(xi) on the simplex,
Ax = w / (C sum(xi)) is parallel to w, and |Ax| bounds every margin from above.

Systems are float64. Fewer active columns than features: the system of inner products. I/C below what a Cholesky factor
resolves: least squares by QR on the columns themselves. Many features: conjugate gradients with products by the columns only.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from msgspec import Struct

from dfeas.linalg.basic import LOADING, solve_triangular
from dfeas.linalg.blas import beat, one_thread
from dfeas.linalg.points import Floats, Indices
from dfeas.linalg.separation import AT
from dfeas.linalg.separation.columns import ColumnMatrix


class Point(Struct, frozen=True):
    """An iterate and its scores, which go together."""

    v: Floats  # (d,) in the matrix's own scale of features
    score: Floats  # (c,)

    @property
    def low(self) -> float:
        return float(self.score.min())

    def slack(self) -> Floats:
        """max(0, 1 - a_j'w) (c,)."""
        return np.maximum(0.0, 1 - self.score)


class Newton:
    """Minimises for one C after the other from where it stands; keeps the Gram matrix of the active columns up to date."""

    def __init__(self, matrix: ColumnMatrix, v: Floats, score: Floats | None = None) -> None:
        self.matrix = matrix
        self.point = Point(v, matrix.scores(v, within=AT.within) if score is None else score)
        self.steps = 0
        self._active: np.ndarray[tuple[int], np.dtype[np.bool_]] | None = None
        self._gram = np.empty((0, 0))
        self._sum = np.empty(0)
        self._updates = 0
        self.products = 0  # of active columns with vectors, by conjugate gradients, or what took as long
        self.most_products = math.inf

    def start_from(self, v: Floats) -> None:
        """Go on from another iterate, one step later."""
        self.point, self.steps = Point(v, self.matrix.scores(v)), self.steps + 1

    def extend(self, columns: Callable[[], ColumnMatrix], place: Indices) -> None:
        """Go on with a matrix of more columns, made when the former one is gone, whose columns are at ``place`` (c,) in it."""
        del self.matrix
        matrix = columns()
        if self._active is not None:
            active = np.zeros(matrix.shape[0], bool)
            active[place] = self._active
            self._active = active
        self.matrix = matrix
        self.point = Point(self.point.v, matrix.scores(self.point.v, within=AT.within))

    def minimise(self, C: float, enough: float, rough: float, most: int = 50, wrong: float = 0.0) -> None:
        """Newton steps until every score exceeds ``enough``, the optimum is near, or no more than a share of all is ``wrong``.
        Near means a full step after which no more than ``rough`` of the active columns changed (0: none, and the step is tiny).
        """
        if rough and self.point.low <= enough:
            self.stretch(C, 1.0)  # what separated other columns may be too long for these
        for _ in range(most):
            point = self.point
            active, low = point.score < 1, point.low
            if low > enough or low >= 1 or self.products >= self.most_products:
                return
            if wrong and np.count_nonzero(point.score <= 0) <= wrong * len(active):
                return
            target = self._solve(active, C, AT.forcing if rough else AT.exact)
            if target is None:
                return
            step = target - point.v
            square = float(step @ step)
            if math.sqrt(square) <= 1e-12 * math.sqrt(float(target @ target)):
                return
            within = AT.within if rough and self.matrix.single else 0.0
            score = self.matrix.scores(target, within=within)
            slope = score - point.score
            t = line_search(1 - point.score, slope, float(point.v @ step), square, C)
            if t == 0:
                return
            beat(f"{len(active)} columns, step {self.steps + 1}")
            v = point.v + t * step
            if t == 1:
                self.point = Point(target, score)
            elif within and t < 1:  # between two points scores are, too: no product with all columns
                self.point = Point(v, self.matrix.settle(point.score + t * slope, v, within=within))
            else:
                self.point = Point(v, self.matrix.scores(v, within=within))
            self.steps += 1
            if abs(t - 1) < (0.2 if rough else 1e-6):
                changed = np.count_nonzero(active != (self.point.score < 1))
                if changed <= rough * np.count_nonzero(active):
                    return

    def stretch(self, C: float, most: float = math.inf) -> None:
        """Begin with the best multiple of where it stands, of so many times the length at most."""
        v, score = self.point.v, self.point.score
        t = line_search(np.ones(len(score)), score, 0.0, float(v @ v), C)
        if t < most:
            self.point = Point(t * v, t * score)

    def _solve(self, active: np.ndarray[tuple[int], np.dtype[np.bool_]], C: float, share: float) -> Floats | None:
        """(I/C + B B')^-1 B 1, or None when no method resolves it; by conjugate gradients up to a share of the gradient."""
        rows = active.nonzero()[0]
        k, d = len(rows), self.matrix.shape[1]
        if min(k, d) > self.matrix.direct or (self.matrix.wide and 8 * k * d > self.matrix.room) or self._easy(active, C):
            return self._conjugate_gradients(active, C, share)
        self.products += min(k, d)
        # 16 << 20: bytes of the largest float64 matrix of active columns for a QR
        small = 8 * k * d <= 16 << 20 and min(k, d) <= self.matrix.direct
        resolved = AT.resolved * k <= 1 / C
        if small and not resolved:
            return self._least_squares(rows, C)
        try:
            if k < d:
                columns = self.matrix.take_columns(rows)
                product = columns @ columns.T
                system: Floats = np.asarray(product if isinstance(product, np.ndarray) else product.toarray())
                system.reshape(-1)[:: k + 1] += 1 / C
                target = np.asarray(columns.T @ _positive_solve(system, np.ones(k), resolved))
            else:
                self._update(active, rows)
                system = self._gram.copy()
                system.reshape(-1)[:: d + 1] += 1 / C
                target = _positive_solve(system, self._sum, resolved)
        except np.linalg.LinAlgError:
            return self._least_squares(rows, C) if small else self._conjugate_gradients(active, C, share)
        return target if np.isfinite(target).all() else None

    def _easy(self, active: np.ndarray[tuple[int], np.dtype[np.bool_]], C: float) -> bool:
        """Whether conjugate gradients are faster than a Gram matrix, that of active columns where these are fewer."""
        if self.matrix.exact:
            return False
        d, k = self.matrix.shape[1], int(active.sum())
        changed = k if self._active is None or k < d else min(k, int((self._active != active).sum()))
        gram = changed * min(k, d)
        return bool(AT.cg_steps * C**AT.cg_power * k < gram) and (self.matrix.large or gram * d >= AT.heavy)

    def _update(self, active: np.ndarray[tuple[int], np.dtype[np.bool_]], rows: Indices) -> None:
        """Bring the Gram matrix to the active columns: add and remove what changed, or begin again when that is less."""
        old = self._active
        self._active = active
        few = rows.size * self.matrix.shape[1] <= 1 << 14  # entries: a new matrix takes less than to bring one up to date
        if few or old is None or 2 * int((old != active).sum()) > len(rows) or self._updates == 20:
            self._gram, self._sum = self.matrix.gram(rows)
            self._updates = 0
            return
        came, total = self.matrix.gram(np.flatnonzero(active & ~old))
        left, less = self.matrix.gram(np.flatnonzero(old & ~active))
        self._gram += came - left
        self._sum += total - less
        self._updates += 1

    def _least_squares(self, rows: Indices, C: float) -> Floats | None:
        """min |B'w - 1|^2 + |w|^2 / C by QR: resolves C up to the square of what the normal equations do. With fewer columns
        than features w = Q u, where B = Q R: then |w| = |u| and B'w = R'u.
        """
        columns = self.matrix.gather(rows)
        k, d = columns.shape
        if k >= d:
            return _solve_damped(columns, C)
        basis, factor = np.linalg.qr(columns.T)
        u = _solve_damped(np.ascontiguousarray(factor.T), C)
        return None if u is None else np.asarray(basis @ u)

    def _conjugate_gradients(self, active: np.ndarray[tuple[int], np.dtype[np.bool_]], C: float, share: float) -> Floats | None:
        """The same system by products with columns; never exact, and the line search makes a descent of it."""
        matrix, v = self.matrix, self.point.v
        part, rows = matrix.gather_active(active)
        normal = part.normal(active[rows])

        def multiply(step: Floats) -> Floats:
            beat()
            self.products += 1
            return step / C + normal(step)

        # wrong by 1 % of its length is good enough to begin with
        downhill = part.combine(self.point.slack()[rows], v / C, 0.01 if matrix.large else 0.0)
        target = v + conjugate_gradients(multiply, downhill, share, 200 if matrix.single else 1000)
        return target if np.isfinite(target).all() else None


def conjugate_gradients(multiply: Callable[[Floats], Floats], wanted: Floats, share: float, most: int) -> Floats:
    """The x with M x = wanted for a positive definite M, but for a share of ``wanted``, or after so many products with M.
    Reference: Hestenes and Stiefel 1952. SciPy has the same, and takes 0.2 s to load.
    """
    x, rest, step, before = np.zeros(len(wanted)), wanted.copy(), np.zeros(len(wanted)), 1.0
    bar = share * np.linalg.norm(wanted)
    for _ in range(most):
        if not np.linalg.norm(rest) > bar:
            break
        square = float(rest @ rest)
        step *= square / before
        step += rest
        change = multiply(step)
        length = square / float(step @ change)
        x += length * step
        rest -= length * change
        before = square
    return x


def _positive_solve(system: Floats, wanted: Floats, resolved: bool) -> Floats:
    """Solve by Cholesky, overwriting the system; raises LinAlgError when it is not positive definite to rounding."""
    if resolved and len(system) <= LOADING:
        return np.asarray(np.linalg.solve(system, wanted), np.float64)
    import scipy

    # the routine itself: for 20 features cho_factor and cho_solve take seven times as long around it
    with one_thread(of_scipy=True):
        _, solution, info = scipy.linalg.lapack.dposv(system.T, wanted, overwrite_a=True)
    if info:
        raise np.linalg.LinAlgError
    return np.asarray(solution)


def _solve_damped(matrix: Floats, C: float) -> Floats | None:
    """min |M u - 1|^2 + |u|^2 / C for M (k, p), by the R of [M 1; I/sqrt(C) 0], whose last column is Q'b."""
    k, p = matrix.shape
    system = np.zeros((k + p, p + 1))
    system[:k, :p] = matrix
    system[:k, p] = 1
    system[k + np.arange(p), np.arange(p)] = 1 / np.sqrt(C)
    factor = np.asarray(np.linalg.qr(system, mode="r"))
    try:
        u = solve_triangular(factor[:p, :p], factor[:p, p])
    except np.linalg.LinAlgError:
        return None
    return u if np.isfinite(u).all() else None


def line_search(short: Floats, slope: Floats, along: float, square: float, C: float) -> float:
    """The step t >= 0 that minimises f(w + t d). ``short`` (c,) are 1 - a_j'w, ``slope`` (c,) a_j'd, ``along`` is w'd and
    ``square`` d'd. The derivative rises, piecewise linear. The zero of its line at one t is the next t, or the middle of the
    bracket where it leaves that, until it stays: then it is computed from the columns of its own piece alone. It begins at 1,
    where a Newton step ends, and takes three or so.
    """
    low, high, t = -1.0, math.inf, 1.0
    for _ in range(100):  # halved so often a bracket has nothing between in float64
        active = (short > t * slope).nonzero()[0]
        some = slope[active]
        rise = square + C * float(some @ some)
        if not rise > 0:
            break
        zero = (C * float(some @ short[active]) - along) / rise
        if zero == t:
            return t
        if zero > t:
            low = t
        elif t == 0:
            return 0.0
        else:
            high = t
        if max(low, 0.0) < zero < high:
            t = zero
        elif low < 0 < high:
            t = 0.0
        else:
            t = (max(low, 0.0) + high) / 2
    return max(low, 0.0)
