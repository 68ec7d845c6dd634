"""Bounds of rounding errors where rounding is as bad as theory allows, against rational arithmetic.

SciPy multiplies sparse matrices one entry after the other, so a sum of them can lose next to half a unit in the last place at
each step, always in the same direction. NumPy's own sums run in an order that nobody promises: where they happen to lose
nothing a bound must still leave room for the worst order.
"""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from dfeas.data.dataset import Dataset
from dfeas.data.source import Transform
from dfeas.data.views import transform_features
from dfeas.engine.local import LocalEngine
from dfeas.errors import CheckFailedError
from dfeas.exact.arithmetic import Fast, floor_of, gamma, largest_singular, longest, shortest
from dfeas.exact.dyadic import find_orthogonal, integer_signs, multiply_compensated, signs
from dfeas.verify.balance import _defect, balance
from dfeas.verify.certificate import Certificate
from dfeas.verify.core import find_wrong, reach, scores
from dfeas.verify.radius import bound_across, bound_radius
from tests.exact import conflicts
from tests.verify.test_blocks import in_blocks, sight_of
from tests.verify.test_verify import examine, marked

U = Fraction(1, 2**53)
MANY = 4096
"""Terms whose roundings are by far more than the few that a bound has to spare."""


def exactly(values: np.ndarray) -> list[Fraction]:
    return [Fraction(v) for v in values.tolist()]


def losing(last: Fraction | None) -> np.ndarray:
    """Terms of which a sum in this order is too large by a unit for each; with a last one it is so many units in truth."""
    # 1 + 4 u less what is just below half a unit in the last place, each time
    terms = np.array([1 + float(4 * U), *[-float(U) * (1 - 2.0**-12)] * MANY])
    return terms if last is None else np.append(terms, float(last * U - sum(exactly(terms))))


def one_sparse_point(terms: np.ndarray) -> Dataset:
    return marked(scipy.sparse.csr_array(terms[None]))


@pytest.mark.parametrize("scale", [1.0, 2.0**-600, 2.0**600])
@pytest.mark.parametrize("units", [-3000, -1, 0, 1, 3000, 4200, 5000, 20_000])
def test_a_sum_that_loses_at_each_step_proves_no_side_and_no_margin_that_is_not_there(units: int, scale: float) -> None:
    """At the other scales the squares of the point under- or overflow."""
    terms = losing(Fraction(units)) * scale
    y, data = np.ones(len(terms)), one_sparse_point(terms)
    if units <= 0:
        with pytest.raises(CheckFailedError, match="not on the positive side"):
            examine(data, kind="separator", y=y)
        return
    found = examine(data, kind="separator", y=y)
    assert found.exact_points == int(units < 4200 or scale != 1)
    assert Fraction(found.margin_lower) ** 2 * sum(v**2 for v in exactly(terms)) * len(y) <= (units * U * Fraction(scale)) ** 2


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("units", [-1, 1, 3000, 5000])
def test_it_does_neither_where_features_are_scaled_and_points_keep_their_lengths(units: int, keep: bool) -> None:
    terms = losing(Fraction(units))
    m = len(terms)
    X = scipy.sparse.csr_array(np.vstack([np.full(m, 2.0), 2 * terms]))
    length = float(np.sqrt(m)) if keep else None  # of the first point, scaled by 1 / 2
    scaled = Transform("maxabs", normalize=not keep, points=1, factor=(0.5,) * m, length=length)
    data = transform_features(marked(X), scaled)
    one = Certificate("separator", "", y=np.ones(m), view=data.view)
    if units <= 0:
        with pytest.raises(CheckFailedError, match="point 1 is not on the positive side"):
            sight_of(data, one, X)
        return
    square = m if keep else sum(v**2 for v in exactly(terms))
    assert Fraction(sight_of(data, one, X).margin_lower) ** 2 * square * m <= (units * U) ** 2


def test_products_that_underflow_prove_no_side_and_no_ends_that_are_not_there() -> None:
    """Each of them is half of the least float, and rounded to zero."""
    x = np.array([1.0, *[2.0**-500] * MANY, 0.0])
    y = np.array([MANY // 2 * 2.0**-1074, *[-(2.0**-575)] * MANY, 1.0])
    data = one_sparse_point(x)
    assert sum(a * b for a, b in zip(exactly(x), exactly(y), strict=True)) == 0
    with pytest.raises(CheckFailedError, match="not on the positive side"):
        examine(data, kind="separator", y=y)
    for last in (0.0, 1.0, 2.0**60):  # the checker of ends has no limits of scale
        y[-1] = last
        found = reach(LocalEngine(data, 1), data, Certificate("separator", data.fingerprint, y=y))
        assert found.low <= 0 <= found.high
        ((score,), (error,)) = scores(data, Certificate("gordan", data.fingerprint, y, np.zeros(1, np.int64), np.ones(1)))
        assert score - error <= 0 <= score + error


def losing_twice() -> tuple[np.ndarray, np.ndarray]:
    """A point and a vector: their product is too large by a unit for each feature, and the point too short by half of one."""
    small = 181 * 2.0**-34  # whose square is just below a unit
    return np.array([1 + float(4 * U), *[-small] * MANY]), np.array([1.0, *[small] * MANY])


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("cancels", [False, True])
def test_scores_and_their_ends_hold_where_each_step_loses(sign: int, cancels: bool) -> None:
    x, y = losing_twice()
    if cancels:
        x, y = losing(Fraction(5000)), np.ones(MANY + 2)
    x *= sign / 4
    data = one_sparse_point(x)
    exact, squares = sum(a * b for a, b in zip(exactly(x), exactly(y), strict=True)), sum(v**2 for v in exactly(x))
    found = reach(LocalEngine(data, 1), data, Certificate("separator", data.fingerprint, y=y))
    assert Fraction(found.low) <= exact <= Fraction(found.high)
    ((score,), (error,)) = scores(data, Certificate("gordan", data.fingerprint, y, np.zeros(1, np.int64), np.ones(1)))
    near, far = sorted(abs(Fraction(score) + side * Fraction(error)) for side in (-1, 1))
    assert near**2 * squares <= exact**2 <= far**2 * squares
    if sign == 1:
        margin = Fraction(examine(data, kind="separator", y=y).margin_lower)
        assert margin**2 * squares * sum(v**2 for v in exactly(y)) <= exact**2


def test_the_sum_of_weighted_points_is_bounded_where_each_step_loses() -> None:
    weights = np.array([0.5 + float(2 * U), *[float(U) / 2 * (1 - 2.0**-12)] * MANY, 0.5])
    points = np.tile([[1.0, 2.0**-70]], (len(weights), 1))
    points[-1, 0] = -1.0
    data = marked(scipy.sparse.csr_array(points))
    found = examine(data, kind="gordan", support=np.arange(len(weights)), weights=weights)
    assert found.verdict == "eps-infeasible"
    across = sum(exactly(weights)[:-1]) - Fraction(0.5)
    # a point is longer than its first entry by less than 2**-100 of it
    least = across / sum(exactly(weights)) * (1 - Fraction(1, 2**100))
    assert Fraction(found.margin_upper) >= least
    assert found.rounding >= float(least)


@pytest.mark.parametrize("rows", [MANY, MANY // 8])
def test_the_sum_of_weighted_points_leaves_room_for_the_worst_order(rows: int) -> None:
    """Of weights 1 / n, a power of two, on points of which every fourth is opposite: nothing is lost, where n units of the sum
    of magnitudes, which is twice that of the points, and n units of the sum of weights could be.
    """
    points = np.tile([[1.0, 2.0**-70]], (MANY, 1))
    points[::4, 0] = -1.0
    data = in_blocks(points, [1] * MANY, rows)
    found = examine(data, kind="gordan", support=np.arange(MANY), weights=np.full(MANY, 1 / MANY))
    room = 1 + 3 * (MANY - 1) * U
    assert found.verdict == "eps-infeasible"
    assert room <= 2 * Fraction(found.margin_upper) <= room + 1000 * U
    assert (MANY - 1) * U <= Fraction(found.rounding) <= (MANY + 100) * U


@pytest.mark.parametrize("terms", [10, 1000, 9000])
def test_products_in_float32_leave_room_for_the_worst_order(terms: int) -> None:
    """Of entries that float32 holds, all but two of them zero: nothing is lost, where as many units as features could be."""
    room = terms * 2.0**-24

    def unproved(points: np.ndarray, y: np.ndarray, known: float) -> list[bool]:
        wide = np.zeros((len(points), terms), np.float32)
        wide[:, :2] = points
        (fast,) = Fast.of(wide, [np.append(y, np.zeros(terms - 2))], False)
        rows = fast.find_unproved(np.ones(len(points)), known)
        return [j in rows for j in range(len(points))]

    across = np.column_stack([np.ones(3), 2 * np.array([0.4, 0.9, 4.0]) * room - 1])  # cosines with (1, 1) are these times room
    assert unproved(across, np.ones(2), -1.0) == [True, True, False]
    cosine = 0.5 + np.array([0.0, 1.2, 2.4, 12.0]) * room  # a score may be off by 1, a length by a half, and so may the least
    beside = np.column_stack([np.ones(4), np.sqrt(1 / cosine**2 - 1)])
    assert unproved(beside, np.array([1.0, 0.0]), 0.5)[::3] == [True, False]
    assert unproved(beside, np.array([1.0, 0.0]), 0.5)[1]
    assert unproved(beside, np.array([1.0, 0.0]), np.inf) == [True, True, True, False]


@pytest.mark.parametrize("terms", [1, 2, 3, 1000, 2**30, 2**45])
def test_a_bound_of_roundings_is_one_of_so_many(terms: int) -> None:
    """(1 + u)**n - 1, of which the first two terms are taken."""
    assert terms * U + Fraction(terms * (terms - 1), 2) * U**2 <= Fraction(gamma(terms)) <= 2 * terms * U


@pytest.mark.parametrize("units", [-3000, -1, 0, 1, 3000, 5000])
def test_signs_of_products_with_integers_are_those_of_sums_that_lose_nothing(units: int) -> None:
    points = scipy.sparse.csr_array(losing(Fraction(units))[None])
    ones = np.array([1] * points.shape[1], object)
    assert integer_signs(points, ones)[0].tolist() == [np.sign(units)]
    assert find_orthogonal(points, ones[:, None]).tolist() == [units == 0]


@given(st.integers(0, 10**6), st.integers(2, 3), st.sampled_from(["stored", "point", "centred", "scaled", "both", "sparse"]))
def test_points_next_to_a_hyperplane_are_on_their_side_however_they_are_seen(seed: int, m: int, kind: str) -> None:
    """An entry is rounded once or twice before it is multiplied; of few features each rounding counts."""
    rng = np.random.default_rng(seed)
    y, half = rng.standard_normal(m), rng.integers(1, 99, m) / 64
    center = rng.integers(-99, 99, m) / 64 if kind in ("centred", "both") else np.zeros(m)
    factor = 1 / half if kind in ("scaled", "both", "sparse") else np.ones(m)
    point = rng.standard_normal(m) if kind == "point" else center
    X = rng.standard_normal((300, m))
    X[:, -1] = point[-1] - ((X - point) * factor)[:, :-1] @ y[:-1] / (y[-1] * factor[-1])  # as near to it as floats get
    X[:2] = center + half, center - half  # of which the numbers are
    scale = None if kind in ("stored", "point", "centred") else "maxabs"
    stored = scipy.sparse.csr_array(X) if kind == "sparse" else X
    data = marked(stored, point=tuple(point.tolist()) if kind == "point" else None)
    if kind not in ("stored", "point"):
        shift = tuple(center.tolist()) if kind in ("centred", "both") else ()
        used = Transform(scale, bool(shift), points=2, shift=shift, factor=tuple(factor.tolist()) if scale else ())
        data = transform_features(data, used)
    one = Certificate("separator", data.fingerprint, y, view=data.view)
    ((wrong, flat),) = find_wrong(LocalEngine(data, 1), data, [one])
    numbers = [exactly(each) for each in (point, factor, y)]
    score = [sum((x - c) * s * v for x, c, s, v in zip(exactly(row), *numbers, strict=True)) for row in X]
    assert wrong.tolist() == [j for j in range(len(X)) if score[j] <= 0]
    assert flat == [j for j in range(len(X)) if score[j] == 0]
    ends = reach(LocalEngine(data, 1), data, one)
    assert ends.low <= min(score) <= ends.high
    if kind == "stored":
        good = [j for j in range(len(X)) if score[j] > 0]
        margin = Fraction(examine(marked(X[good]), kind="separator", y=y).margin_lower)
        size = sum(v**2 for v in exactly(y))
        assert all(margin**2 * size * sum(v**2 for v in exactly(X[j])) <= score[j] ** 2 for j in good)


def test_how_far_points_are_from_a_hyperplane_of_integers_does_not_depend_on_their_length() -> None:
    points = np.array([[3.0, 1.0], [1.0, 1.0], [-1.0, 2.0]])
    y = np.array([2**70, -(2**69)], object)
    _, share = integer_signs(points, y)
    assert np.argsort(share).tolist() == [2, 1, 0]
    assert integer_signs(points * [[2.0**-40], [2.0**40], [1.0]], y)[1].tolist() == share.tolist()


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_product_that_the_first_primes_divide_is_not_zero(count: int, sparse: bool) -> None:
    """Residues are looked at modulo the largest primes below 2**20; beside terms of 2**90 float64 cannot tell it from zero."""
    primes = [1048573, 1048571, 1048559]
    y = np.array([2**90, -(2**90), int(np.prod(np.array(primes[:count], object)))], object)
    points = np.array([[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
    seen = scipy.sparse.csr_array(points) if sparse else points
    assert integer_signs(seen, y)[0].tolist() == [1, 0]
    assert find_orthogonal(seen, y[:, None]).tolist() == [False, True]


def test_residues_of_many_features_are_added_up_exactly() -> None:
    """Residues of small negative numbers are next to 2**20: sums of more than 2**13 products of two are beyond 2**53."""
    rng = np.random.default_rng(0)
    x, y = -1.0 - 2 * rng.integers(0, 99, 1 << 15), (-1 - 2 * rng.integers(0, 99, 1 << 15)).astype(object)
    x[-1], y[-1] = 1.0, 0
    y[-1] = -int(np.array([int(v) for v in x], object) @ y)
    off = y.copy()
    off[-1] += 1
    assert find_orthogonal(np.array([x]), np.column_stack([y])).tolist() == [True]
    assert find_orthogonal(np.array([x]), np.column_stack([off])).tolist() == [False]


@pytest.mark.parametrize("sign", [1, -1])
def test_a_compensated_product_is_bounded_where_its_corrections_lose_at_each_step(sign: int) -> None:
    """Each of the first terms adds a unit to the corrections; each of the next ones is lost beside what they are then."""
    first, rounding = losing(None), float(U) * 2.0**-42
    terms = np.append(first, [-rounding * (1 - 2.0**-12)] * MANY) * sign
    last = -sum(exactly(terms))
    terms = np.append(terms, float(last))
    terms = np.append(terms, float(last - Fraction(terms[-1])))
    points, y, exact = terms[None], np.ones(len(terms)), sum(exactly(terms))
    ((score,), (bound,)) = multiply_compensated(points, y)
    assert Fraction(bound) / 40 <= abs(Fraction(score) - exact) <= Fraction(bound)
    assert signs(points, y)[0].tolist() == [(exact > 0) - (exact < 0)]


@given(st.integers(0, 10**6), st.integers(2, 6), st.sampled_from([1, 2, 3, 300]), st.booleans())
def test_half_of_what_hulls_are_apart_is_not_below_half_of_what_they_are(seed: int, n: int, m: int, sparse: bool) -> None:
    rng = np.random.default_rng(seed)
    X, labels, weights = (
        rng.standard_normal((n, m)),
        np.where(np.arange(n) % 2, 1, -1),
        rng.random(n) * 10.0 ** rng.integers(-3, 4),
    )
    X += labels[:, None] * rng.choice([0.0, 9.0])  # sums of both classes cancel, or add up
    data = marked(scipy.sparse.csr_array(X) if sparse else X, labels, intercept=True)
    asked = Certificate("separator", data.fingerprint, y=np.append(np.ones(m), 0.0))
    apart = reach(LocalEngine(data, 1), data, asked, (np.arange(n), weights)).apart
    assert apart is not None
    middle = []
    for sign in (1, -1):
        share = [w for w, label in zip(exactly(weights), labels, strict=True) if label == sign]
        rows = [exactly(row) for row, label in zip(X, labels, strict=True) if label == sign]
        middle.append(
            [sum(w * v for w, v in zip(share, column, strict=True)) / sum(share) for column in zip(*rows, strict=True)]
        )
    square = sum((a - b) ** 2 for a, b in zip(*middle, strict=True))
    assert square <= 4 * Fraction(apart.half) ** 2
    assert 4 * Fraction(apart.half - 2 * apart.rounding) ** 2 <= square * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize("d", [1, 2, 5, 5000])
def test_lengths_leave_room_for_the_worst_order(d: int) -> None:
    """Of ones: nothing is lost but in the root, where d / 2 units could be."""
    low, high, room = Fraction(float(shortest(np.ones(d)))), Fraction(float(longest(np.ones(d)))), (d - 1) * U
    assert low**2 <= d * (1 - room)
    assert high**2 >= d * (1 + room)
    assert (high - low) ** 2 <= d * ((4 * d + 200) * U) ** 2


@given(st.integers(0, 10**6), st.integers(1, 6), st.sampled_from([0, 3, 300]))
def test_lengths_are_between_their_bounds(seed: int, d: int, spread: int) -> None:
    rng = np.random.default_rng(seed)
    v = rng.standard_normal(d) * 10.0 ** rng.integers(-spread, spread + 1, d) * (rng.random(d) < 0.9)
    square = sum(v**2 for v in exactly(v))
    assert Fraction(float(shortest(v))) ** 2 <= square <= Fraction(float(longest(v))) ** 2


@given(st.integers(0, 10**6), st.integers(1, 4), st.sampled_from([0, 1, 30]))
def test_no_eigenvalue_is_below_its_floor_whatever_lapack_says(seed: int, k: int, off: int) -> None:
    """Cholesky's factorisation may run to completion for a matrix with an eigenvalue a few units below zero."""
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((k, max(1, k - 1)))
    S = root @ root.T * rng.choice([1.0, 1e-3, 2.0**300])
    S = np.tril(S) + np.tril(S, -1).T
    size = float(np.linalg.norm(S))
    known = 8 * k * (k + 2) * float(U) * size + 64 * k * 2.0**-1074
    with pytest.MonkeyPatch.context() as patch:
        # the bar is put at, or a few units above, zero, which is the least eigenvalue but for rounding
        patch.setattr(np.linalg, "eigvalsh", lambda S: np.full((1, k), known + off * float(U) * size * rng.random() / 10))
        (floor,) = floor_of(S[None])
    if np.isfinite(floor):
        rows = [exactly(row) for row in S]
        for i in range(k):
            rows[i][i] -= Fraction(float(floor))
        assert not_negative(rows)


def not_negative(rows: list[list[Fraction]]) -> bool:
    """Whether a symmetric matrix of fractions is positive definite or, with zero rows for the pivots of zero, semidefinite."""
    k = len(rows)
    for i in range(k):
        if rows[i][i] < 0 or (rows[i][i] == 0 and any(rows[i][i + 1 :])):
            return False
        for j in range(i + 1, k if rows[i][i] else 0):
            factor = rows[j][i] / rows[i][i]
            rows[j] = [a - factor * b for a, b in zip(rows[j], rows[i], strict=True)]
    return True


@pytest.mark.parametrize("tall", [True, False])
def test_singular_values_leave_room_for_the_worst_order(tall: bool) -> None:
    """Of rows of ones and minus ones that are orthogonal: their products lose nothing, where a unit for each entry could be."""
    X = np.array([np.ones(MANY), np.resize([1.0, -1.0], MANY)])
    (low,), (high,) = largest_singular((X.T if tall else X)[None])
    assert Fraction(float(low)) ** 2 <= MANY
    assert MANY * (1 + (MANY - 1) * U) <= Fraction(float(high)) ** 2 <= MANY * (1 + 8 * MANY * U)


@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 3), st.sampled_from([0, 12]))
def test_the_largest_singular_value_is_between_its_bounds(seed: int, d: int, m: int, spread: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((d, m)) * 10.0 ** rng.integers(-spread, spread + 1, (d, m))
    if seed % 3 == 0:
        X = np.round(X)
    (low,), (high,) = largest_singular(X[None])
    rows = [exactly(row) for row in X]

    def beside(bound: Fraction) -> list[list[Fraction]]:
        """The square of a bound times I, less XX'."""
        return [
            [bound**2 * (i == j) - sum(a * b for a, b in zip(one, other, strict=True)) for j, other in enumerate(rows)]
            for i, one in enumerate(rows)
        ]

    assert not_negative(beside(Fraction(float(high))))
    if low > 0:
        assert not not_negative(beside(Fraction(float(low)) * (1 - Fraction(1, 2**80))))
        assert high <= low * (1 + 1e-7)


def distance_of_sides(corners: np.ndarray) -> Fraction:
    """The square of the distance of the origin to the sides of a triangle (3, 2) around it; 0 where it is not inside."""
    p = [exactly(corner) for corner in corners]
    pairs = [(p[i], p[(i + 1) % 3]) for i in range(3)]
    across = [a[0] * b[1] - a[1] * b[0] for a, b in pairs]
    if not (min(across) > 0 or max(across) < 0):
        return Fraction(0)
    squares = [(a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 for a, b in pairs]
    return min(v**2 / square for v, square in zip(across, squares, strict=True))


@given(st.integers(0, 10**6), st.integers(4, 17))
def test_a_ball_in_a_triangle_as_thin_as_rounding_is_no_larger_than_the_triangle(seed: int, digits: int) -> None:
    rng = np.random.default_rng(seed)
    units = np.array([[1.0, 0.0], [-1.0, 0.0], [rng.random() * rng.choice([1, -1]), 0.0]])
    units[:, 1] = 10.0**-digits * rng.standard_normal(3)
    units /= np.linalg.norm(units, axis=1)[:, None]
    behind = np.roll(units, -1, axis=0), np.roll(units, -2, axis=0)
    weights = np.abs(behind[0][:, 0] * behind[1][:, 1] - behind[0][:, 1] * behind[1][:, 0])
    if not weights.all():
        return
    weights *= 1 + 2.0**-52 * rng.integers(0, 20, 3)
    square = distance_of_sides(units)
    radius = bound_radius(units, weights, 0.0)
    assert Fraction(radius) ** 2 <= square
    assert Fraction(bound_across(units, np.array([0.0, 1.0]), 0.0)) ** 2 <= square
    if square > Fraction(10) ** -22:
        assert Fraction(radius) ** 2 >= square * (1 - Fraction(1, 100))


@pytest.mark.parametrize(("digits", "across"), [(20, True), (25, True), (20, False), (28, False), (35, False)])
def test_balls_leave_room_for_the_worst_order(digits: int, across: bool) -> None:
    """In a thin rectangle, from many points at its corners and equal weights: nothing is lost, where the sum of the points and
    the products with the rule could each be off by as many units as there are points.
    """
    thin = Fraction(1, 2**digits)
    corners = np.array([[1.0, float(thin)], [1.0, -float(thin)], [-1.0, float(thin)], [-1.0, -float(thin)]])
    units = np.tile(corners, (MANY // 4, 1))

    def bound(off: Fraction) -> Fraction:
        if across:
            return Fraction(bound_across(units, np.array([0.0, 1.0]), float(off)))
        return Fraction(bound_radius(units, np.ones(MANY), float(off)))

    room, bits = (1 if across else 2) * (MANY - 1) * U, thin / 2**22  # a radius has 24 bits
    assert thin - 4 * room - bits <= bound(Fraction(0)) <= thin - room
    assert thin / 2 - 4 * room - bits <= bound(thin / 2) <= thin / 2 - room


@pytest.mark.parametrize("d", [2, 6])
def test_a_ball_leaves_room_for_the_lengths_of_its_points(d: int) -> None:
    """An entry of a unit point is off by a quotient and a length, which are rounded half a time for each feature, and twice."""
    thin = 2.0**-42
    points = np.array([[1.0, thin], [1.0, -thin], [-1.0, thin], [-1.0, -thin]])
    points = np.vstack([np.hstack([points, np.zeros((4, d - 2))]), np.eye(d)[2:], -np.eye(d)[2:]])
    weights = np.append(np.full(4, 0.25), np.full(2 * d - 4, 0.5)) / (d - 1)
    found = examine(marked(points), kind="gordan", support=np.arange(len(points)), weights=weights)
    bare = Fraction(bound_radius(points, weights, 0.0))
    assert 0 < -Fraction(found.margin_upper) <= bare - (d // 2 + 2) * U


@pytest.mark.parametrize("value", [3.0, 7.0, 2.0**60 + 2.0**10, 49.0])
def test_an_inverse_is_as_wrong_as_its_product_is_before_it_is_rounded(value: float) -> None:
    """fl(1 / 3) times 3 is 1 in float64."""
    for matrix in (np.array([[value]]), np.diag([value, 1.0, 2.0]), np.array([[value, 1.0], [0.0, 1.0]])):
        inverse = np.linalg.inv(matrix)
        rows = [exactly(row) for row in inverse]
        columns = [exactly(column) for column in matrix.T]
        off = [
            sum(abs((i == j) - sum(a * b for a, b in zip(row, column, strict=True))) for j, column in enumerate(columns))
            for i, row in enumerate(rows)
        ]
        assert max(off) <= Fraction(_defect(inverse, matrix)) <= 100 * U * sum(map(abs, exactly(matrix.ravel()))) * 2


def test_an_inverse_leaves_room_for_the_worst_order_in_each_of_its_rows() -> None:
    """Of powers of two, whose products are exact: two units of each of the sums of magnitudes, 1 and 3, could be lost."""
    matrix, inverse = np.array([[4.0, 0.0], [1.0, 1.0]]), np.array([[0.25, 0.0], [-0.25, 1.0]])
    assert (inverse @ matrix == np.eye(2)).all()
    assert 6 * U <= Fraction(_defect(inverse, matrix)) <= 7 * U


@given(st.integers(0, 10**6), st.integers(44, 51))
@settings(max_examples=300)
def test_an_inverse_of_points_that_may_be_parallel_proves_nothing(seed: int, bits: int) -> None:
    """Two points are parallel but for some units, so that the third is between their opposite ones or it is not."""
    rng = np.random.default_rng(seed)
    one = rng.integers(1, 2**27, 2) / 2.0**20
    other = one * rng.integers(1, 9) * [1, 1 + 2.0**-bits]
    points = np.array([one, other, -(one - other / 8)])
    p = [exactly(point) for point in points]
    across = [p[i - 2][0] * p[i - 1][1] - p[i - 2][1] * p[i - 1][0] for i in range(3)]
    if min(across) < 0 < max(across):
        assert balance(points, np.array([1.0, 0.125, 4.0])) is None


@given(st.integers(0, 10**6), st.integers(4, 8), st.integers(38, 44))
def test_a_weight_that_is_negative_by_rounding_of_an_ill_conditioned_inverse_balances_nothing(
    seed: int, d: int, bits: int
) -> None:
    rng = np.random.default_rng(seed)
    lower, upper = (np.tril(rng.integers(-2, 3, (d, d)), -1) + np.eye(d) for _ in range(2))
    matrix = lower @ upper.T
    x = rng.integers(2**8, 2**9, d) / 2.0**7
    x[seed % d] = -(2.0**-bits)
    points = np.vstack([matrix.T, -(matrix @ x) / 8])
    x[seed % d] = 1.0
    assert not conflicts(np.array([[int(v * 2**60) for v in row] for row in points.T.tolist()], object))
    assert balance(points, np.append(x, 8.0)) is None
