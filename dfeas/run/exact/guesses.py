"""Linear programmes in float64 (HiGHS) that guess what exact arithmetic then decides. Nothing rests on them but speed.

They are asked of points whose features and lengths were brought to about one by powers of two, which changes no sign.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dfeas.exact.dyadic import Integers, Matrix
from dfeas.linalg.points import Floats
from dfeas.linalg.routines import nnls, pivots

NONE = -(10**6)
"""Stands for the exponent of zero."""
APART = 1e-9
"""Lengths below this, where points have one, are zero but for rounding, and so are shares of the greatest weight."""
SURE = 1e-7
"""A direction that is longer than the inverse of this, with products of one, may be rounding."""
ZERO = 1e-13
"""A nearest point within it of zero is zero up to rounding."""


class EvenPoints(Struct, frozen=True):
    """Points (s, d) that are integers, as floats of about one."""

    points: Floats  # (s, d) the integers times 2**-(row + feature)
    row: NDArray[np.int64]  # (s,)
    feature: NDArray[np.int64]  # (d,)

    @classmethod
    def of(cls, points: Integers) -> EvenPoints:
        mantissa, exponent = parts(points)
        feature = _drop_unknown(exponent.max(axis=0))  # first: units of integers say nothing
        # lengths and features are evened out in turn
        for _ in range(3):
            row = _drop_unknown((exponent - feature).max(axis=1))
            feature = _drop_unknown((exponent - row[:, None]).max(axis=0))
        with np.errstate(under="ignore"):
            return cls(np.ldexp(mantissa, np.maximum(exponent - row[:, None] - feature, NONE)), row, feature)

    def direction(self, z: Floats) -> Integers:
        """Integers (d,) whose products with the integer points have the signs of those of z (d,) with these."""
        return whole(z, -self.feature)

    def weights(self, x: Floats) -> Integers:
        """Integers (s,) in proportion to weights of the integer points, from weights x (s,) of these."""
        return whole(x, -self.row)


def parts(values: Integers) -> tuple[Floats, NDArray[np.int64]]:
    """Mantissas and exponents of two of integers of any length."""
    try:
        mantissa, exponent = np.frexp(values.astype(np.float64))
        return mantissa, np.where(mantissa != 0, exponent.astype(np.int64), NONE)
    except OverflowError:
        flat = values.ravel().tolist()
        more = np.array([max(0, abs(v).bit_length() - 64) for v in flat]).reshape(values.shape)
        mantissa, exponent = np.frexp(np.asarray(values >> more.astype(object)).astype(np.float64))
        return mantissa, np.where(mantissa != 0, exponent + more, NONE)


def whole(values: Floats, exponent: NDArray[np.int64]) -> Integers:
    """Integers in proportion to values 2**exponent, exactly."""
    mantissa, more = np.frexp(values)
    digits = np.ldexp(mantissa, 53).astype(np.int64)
    power = exponent + more
    used = digits != 0
    power = np.where(used, power - power[used].min(initial=0 if not used.any() else power[used][0]), 0)
    return np.asarray(digits.astype(object) << power.astype(object), object)


def heavy(points: Matrix) -> tuple[Floats, Floats] | None:
    """Weights x (s,) >= 0 with a zero sum of points (s, d), an array or CSR: at least one for as many points as can have any;
    and z (d,) with products of at least one with all others, and of zero with these. max sum p with sum_j (p_j + q_j) a_j = 0,
    0 <= p <= 1, q >= 0; its dual is that of Konis (2007): max sum s, A'z >= s, 0 <= s <= 1. None when HiGHS finds no optimum.
    """
    import scipy

    s = points.shape[0]
    matrix: Any = _matrix(points.T)
    both: Any = np.hstack([matrix, matrix]) if isinstance(matrix, np.ndarray) else scipy.sparse.hstack([matrix, matrix])
    bounds = [(0.0, 1.0)] * s + [(0.0, np.inf)] * s
    cost = np.concatenate([-np.ones(s), np.zeros(s)])
    optimum = scipy.optimize.linprog(cost, A_eq=both, b_eq=np.zeros(points.shape[1]), bounds=bounds, method="highs-ds")
    if optimum.x is None or optimum.status != 0:
        return None
    return optimum.x[:s] + optimum.x[s:], -np.asarray(optimum.eqlin.marginals)


def widest(points: Floats) -> Floats | None:
    """z (d,) in the unit box with the greatest least product with points (s, d), if it is positive in float64."""
    import scipy

    s, d = points.shape
    length = np.linalg.norm(points, axis=1)
    matrix: Any = _matrix(np.hstack([-points / length[:, None], np.ones((s, 1))]))
    cost: Floats = np.append(np.zeros(d), -1.0)
    bounds = [(-1.0, 1.0)] * d + [(0.0, np.inf)]
    optimum = scipy.optimize.linprog(cost, A_ub=matrix, b_ub=np.zeros(s), bounds=bounds, method="highs-ds")
    if optimum.x is None or optimum.status != 0 or not optimum.x[d] > 0:
        return None
    return np.asarray(optimum.x[:d])


class CentredPoints(Struct, frozen=True):
    """Points (s, d) of length one, whose features were centred, where there is an intercept, and scaled."""

    points: Floats
    scale: Floats  # (d,)
    shift: Floats  # (d,) multiples of the intercept that were taken away before; zero for itself
    place: int  # of the intercept; -1 without one

    def take(self, points: Floats) -> Floats:
        """Others of the same features, of any length."""
        return (points - points[:, self.place, None] * self.shift) * self.scale

    def direction(self, z: Floats) -> Floats:
        y: Floats = z * self.scale
        y[self.place] -= 0.0 if self.place < 0 else self.shift @ y
        return y


def equilibrate(points: Floats, *, centred: bool = True) -> CentredPoints | None:
    """Signed points (s, d); None where numbers are too large, or a point is zero."""
    with np.errstate(all="ignore"):
        shift, place = _means(points) if centred else (np.zeros(points.shape[1]), -1)
        moved = points if place < 0 else points - points[:, place, None] * shift
        most = np.abs(moved).max(axis=0, initial=0.0)
        scale = 1 / np.where(most > 0, most, 1.0)
        even = moved * scale
        length = np.linalg.norm(even, axis=1)
    if not np.isfinite(even).all() or not np.isfinite(scale).all() or not length.all():
        return None
    return CentredPoints(even / length[:, None], scale, shift, place)


class Reduction(Struct, frozen=True):
    """Facial reduction in float64 of points (s, d): few that decide, and a direction that has all beyond where none conflict.
    Features are centred and scaled, and lengths made one: the point of the hull that is nearest to zero is such a direction, or
    zero, a conflict; then the same is asked of what is left of the others across all that conflicts.
    """

    support: NDArray[np.int64]  # points of which these nearest points are made
    conflict: NDArray[np.int64]  # those of them that conflict
    y: Floats | None  # (d,) zero on these and positive on all that they do not span; None where they span all

    @classmethod
    def of(cls, points: Floats) -> Reduction | None:
        """None where least squares do not end, or numbers are too large."""
        found = equilibrate(points)
        if found is None:
            return None
        even = found.points
        left, conflict = np.arange(len(even)), np.zeros(0, np.int64)
        while len(left):
            x = nearest(even[left])
            if x is None:
                return None
            z, heavy = even[left].T @ x, left[x > 0]
            if np.linalg.norm(z) > APART:
                return cls(np.union1d(conflict, heavy), conflict, found.direction(z))
            conflict = np.union1d(conflict, heavy)
            basis = span(even[heavy])
            even -= (even @ basis.T) @ basis
            left = left[(x <= 0) & (np.linalg.norm(even[left], axis=1) > APART)]
        return cls(conflict, conflict, None)


def nearest(points: Floats) -> Floats | None:
    """Weights x (s,) >= 0 in proportion to those of the point nearest to zero in the hull of points (s, d); at most d + 1 are
    above zero. None when they are not found, and of no points. Least squares of sum_j x_j (a_j, 1) = (0, 1) (Lawson and Hanson
    1974).
    """
    if not points.size:  # SciPy's routine does not survive it
        return None
    right = np.zeros(points.shape[1] + 1)
    right[-1] = 1.0
    try:
        x = nnls(np.vstack([points.T, np.ones(len(points))]), right)
    except RuntimeError:
        return None
    return np.where(x > APART * x.max(initial=0.0), x, 0.0)


def find_spare(
    points: Floats, beyond: NDArray[np.bool_], terms: Sequence[NDArray[np.int64]], intercept: bool, stop: Callable[[], bool]
) -> list[int] | None:
    """Which terms, features of points (s, d), a separation can do without, when each is left out in turn that can be: several
    at once, twice as many each time, as whoever separates with fewer does so with more. The others are positive on points
    beyond the hyperplane and zero on those on it. None where numbers are too large, where float64 cannot tell, or ``stop`` said
    so.
    """
    even = equilibrate(points, centred=intercept)
    if even is None:
        return None
    above, on, kept, spare = even.points[beyond], span(even.points[~beyond]), np.ones(points.shape[1], np.bool_), list[int]()
    few, number, size = np.arange(0), 0, 1
    while number < len(terms):
        if stop():
            return None
        group = range(number, min(number + size, len(terms)))
        separates = False
        if len(spare) + len(group) < len(terms):
            fewer = kept.copy()
            fewer[np.concatenate([terms[each] for each in group])] = False
            found = _find_side(above[:, fewer] @ _across(on[:, fewer]) if len(on) else above[:, fewer], few)
            if found is None and len(group) == 1:
                return None
            separates, few = (False, few) if found is None else found
        if separates:
            kept, number, size = fewer, number + len(group), 2 * size
            spare += group
        elif len(group) > 1:
            size = len(group) // 2
        else:
            number, size = number + 1, 1
    return spare


def _find_side(points: Floats, few: NDArray[np.int64]) -> tuple[bool, NDArray[np.int64]] | None:
    """Whether all points (s, d) are on one side of a hyperplane, and few of them that decide it: of those that are looked at,
    the point nearest to zero in their hull is zero, or has all points on its side. None where float64 cannot tell. First looked
    at are a ``few``, or those that a first guess has lowest; then the lowest of the others.
    """
    length, most, before = np.linalg.norm(points, axis=1), 2 * (points.shape[1] + 1), np.inf
    if not points.shape[1] or (length < APART).any():
        return False, few
    points = points / length[:, None]
    few = few if len(few) else _lowest(points @ points.mean(axis=0), most)
    while (x := nearest(points[few])) is not None:
        near = points[few].T @ x / x.sum()
        apart = float(np.linalg.norm(near))
        if apart <= ZERO:
            return False, few
        score = points @ near / apart
        if score.min() >= SURE:
            return True, few
        beyond = score < apart * (1 - ZERO)
        beyond[few] = False
        others = np.flatnonzero(beyond)
        if apart < SURE or apart >= before or not len(others):  # only rounding comes no nearer with more points
            return None
        before, few = apart, np.concatenate([few[x > 0], others[_lowest(score[others], most)]])
    return None


def weigh_nearest(points: Floats, wanted: Floats) -> Floats:
    """Weights x (s,) >= 0 of the point of the cone of points (s, d) of length one that is nearest to a vector of length one.
    First looked at are those that are most along it, then those beyond what was found, so that least squares
    are of few of many. Raises RuntimeError where they do not end.
    """
    most, before, x = 2 * (points.shape[1] + 1), np.inf, np.zeros(len(points))
    few = _lowest(-(points @ wanted), most)
    while True:
        part = nnls(points[few].T, wanted)
        z = points[few].T @ part - wanted
        apart, score = float(np.linalg.norm(z)), points @ z
        beyond = score < -ZERO * apart
        beyond[few] = False
        others = np.flatnonzero(beyond)
        if apart <= ZERO or not len(others) or apart >= before:
            x[few] = part
            return x
        before, few = apart, np.concatenate([few[part > 0], others[_lowest(score[others], most)]])


def _lowest(score: Floats, most: int) -> NDArray[np.int64]:
    return np.argpartition(score, most)[:most] if len(score) > most else np.arange(len(score))


def _across(rows: Floats) -> Floats:
    """A basis (d, r) of what is orthogonal to some rows."""
    _, size, basis = np.linalg.svd(rows)
    return np.asarray(basis[int((size > APART).sum()) :].T)


def span(points: Floats) -> Floats:
    """An orthonormal basis (r, d) of what points span, up to rounding."""
    _, size, basis = np.linalg.svd(points, full_matrices=False)
    return np.asarray(basis[size > APART * size.max(initial=0.0)])


def _means(points: Floats) -> tuple[Floats, int]:
    """Means (d,) of the features of signed points (s, d), zero of the intercept, and the place of that; -1 where is none."""
    size = np.abs(points)
    same = np.flatnonzero((size == size[:1]).all(axis=0) & (size[:1] > 0).all(axis=0))
    if not len(same):
        return np.zeros(points.shape[1]), -1
    place = int(same[-1])
    shift: Floats = (points / points[:, place, None]).mean(axis=0)
    shift[place] = 0
    return shift, place


def order(points: Floats, weight: Floats) -> NDArray[np.int64]:
    """Points (s, d) in an order whose first ones are far from dependent on each other, and of great weight (s,)."""
    length = np.linalg.norm(points, axis=1)
    scaled = points * (weight / np.where(length > 0, length, 1))[:, None]
    first = pivots(scaled.T)[: points.shape[1]]
    others = np.setdiff1d(np.argsort(-weight, kind="stable"), first, assume_unique=True)
    return np.concatenate([first, others])


def guess_basis(tableau: Integers, u: Integers, cost: Integers, basis: NDArray[np.int64]) -> NDArray[np.int64]:
    """The basis (r,) to which the dual simplex method in float64 leads, from exact coordinates (s, r) of points in terms of the
    basis, from u (r,), that is to become nonnegative, and from reduced costs (s,) >= 0, each times a positive number. It ends
    where u >= 0, or where a row shows a direction, as far as float64 tells.
    """
    even = EvenPoints.of(tableau)
    r = len(basis)
    T, basis, place = even.points.T.copy(), basis.copy(), np.arange(r)
    unit = T[place, basis].copy()
    T /= unit[:, None]
    mantissa, exponent = parts(u)
    exponent = exponent - even.feature  # u in terms of rows as they are evened, of points of any length
    right = np.ldexp(mantissa, np.clip(exponent - exponent.max(), NONE, 0)) / unit
    mantissa, exponent = parts(cost)
    exponent = exponent - even.row
    price = np.ldexp(mantissa, np.clip(exponent - exponent.max(), NONE, 0))
    # at most so many in float64 for each dimension, from an exact tableau
    for _ in range(20 * r):
        with np.errstate(all="ignore"):
            out = int(np.argmin(right))
            row = T[out]
            # shares below this are not trusted to have a sign
            negative = np.flatnonzero(row < -1e-9 * np.abs(row).max())
            if not right[out] < 0 or not len(negative):
                break
            new = int(negative[np.argmin(price[negative] / -row[negative])])
            step = row[new]
            T[out], right[out] = row / step, right[out] / step
            column = T[:, new].copy()
            column[out] = 0
            T -= np.outer(column, T[out])
            right -= column * right[out]
            price = np.maximum(price - price[new] * T[out], 0)
        T[:, new] = 0
        T[out, new], price[new] = 1, 0
        if not (np.isfinite(T).all() and np.isfinite(right).all()):
            break
        basis[out] = new
    return basis


def _drop_unknown(exponent: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where(exponent < NONE // 2, 0, exponent)


def _matrix(points: Matrix) -> Matrix:
    # HiGHS is given a sparse matrix where fewer entries are not zero
    import scipy

    sparse = not isinstance(points, np.ndarray) or np.count_nonzero(points) < 0.3 * points.size
    return scipy.sparse.csc_array(points) if sparse else points
