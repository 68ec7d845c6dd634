"""The solver in memory: against exact arithmetic, against HiGHS, against NNLS, and on the cases that break solvers."""

import tracemalloc
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, nnls
from scipy.sparse import csr_array

import dfeas
from dfeas.data.generate.points import Instance
from dfeas.linalg import basic as basic_vectors
from dfeas.linalg import blas
from dfeas.linalg.basic import basic
from dfeas.linalg.blas import heard
from dfeas.linalg.separation import AT
from dfeas.linalg.separation.columns import ColumnMatrix
from dfeas.linalg.separation.conflict import conflict, nearest, oppose
from dfeas.linalg.separation.newton import Newton, conjugate_gradients, line_search
from dfeas.linalg.separation.rounds import lowest
from dfeas.linalg.separation.solver import Solution, separate_from, solve
from dfeas.linalg.separation.sparse_columns import column_matrix
from dfeas.records import replace
from tests.exact import conflicts, small_instance


def matrix_of(A: np.ndarray, dtype: Any = np.float64) -> ColumnMatrix:
    """Signed points (m, n) as a matrix of unit columns."""
    points = np.ascontiguousarray(A.T, dtype)
    length = np.linalg.norm(points.astype(np.float64), axis=1)
    return column_matrix(points, np.divide(1, length, out=np.zeros_like(length), where=length > 0))


def unit(matrix: ColumnMatrix) -> np.ndarray:
    return matrix.points.astype(np.float64) * matrix.scale[:, None]


def check(matrix: ColumnMatrix, found: Solution) -> None:
    """Every number of a solution means what it says."""
    columns = unit(matrix)
    assert found.weight.sum() == pytest.approx(1, abs=1e-12)
    assert (found.weight > 0).all()
    assert (np.diff(found.rows) > 0).all()
    assert np.linalg.norm(found.weight @ columns[found.rows]) == pytest.approx(found.upper, abs=1e-12)
    assert np.linalg.norm(found.y) == pytest.approx(1, abs=1e-12) or not found.w.any()
    if found.outcome == "separated":
        assert found.margin > 0
        assert (columns @ found.y).min() == pytest.approx(found.margin, rel=1e-3, abs=1e-14)
        assert found.margin <= found.upper * (1 + 1e-9)
    if found.outcome == "conflict":
        assert found.upper <= 1e-13
        assert len(found.rows) <= columns.shape[1] + 1


def check_irreducible(matrix: ColumnMatrix, found: Solution) -> None:
    """Without any one of its columns a conflict is none."""
    for j in found.rows:
        others = found.rows[found.rows != j]
        assert len(others) == 0 or solve(matrix.part(others)).outcome == "separated"


def test_a_thousand_small_instances_are_decided_as_by_exact_arithmetic() -> None:
    for seed in range(1000):
        A = small_instance(seed)
        found = solve(matrix_of(A, np.float32 if seed % 2 else np.float64))
        assert found.outcome == ("conflict" if conflicts(A) else "separated"), seed


@pytest.mark.parametrize("seed", range(6))
def test_the_widest_margin_is_that_of_highs(seed: int) -> None:
    """Of unit columns in the box |y_i| <= 1, by HiGHS: both agree whether there is a margin, and HiGHS finds no wider one."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(2, 12)), int(rng.integers(20, 200))
    A = rng.standard_normal((m, n))
    if seed % 3:
        normal = rng.standard_normal(m)
        A *= np.sign(normal @ A)
    matrix = matrix_of(A)
    columns = unit(matrix)
    rows = np.hstack([-columns, np.ones((n, 1))])
    peer = linprog(np.append(np.zeros(m), -1.0), A_ub=rows, b_ub=np.zeros(n), bounds=[(-1, 1)] * m + [(None, 1)])
    found = solve(matrix)
    check(matrix, found)
    assert (found.outcome == "separated") == (-peer.fun > 1e-9)
    if found.outcome == "separated":
        closer = solve(matrix, found, 1e-4)
        check(matrix, closer)
        assert closer.margin >= (1 - 1e-4) * closer.upper
        y = peer.x[:m] / np.linalg.norm(peer.x[:m])
        assert (columns @ y).min() <= closer.upper * (1 + 1e-9)


@pytest.mark.parametrize(("tolerance", "margin"), [(0.5, 0.1), (1e-2, 1e-2), (1e-3, 1e-3), (1e-3, 1e-5), (1e-4, 1e-4)])
def test_the_maximum_margin_is_that_of_an_independent_quadratic_program(tolerance: float, margin: float) -> None:
    """Least distance programming by NNLS (Lawson and Hanson 1974, chapter 23): min |[A; 1'] x - e|, x >= 0."""
    instance = Instance("planted", 20, 3000, margin, dtype="float64")
    X, labels = instance.block(0)
    matrix = matrix_of((X * labels[:, None]).T)
    found = solve(matrix, solve(matrix), tolerance)
    check(matrix, found)
    columns = unit(matrix)
    target = np.append(np.zeros(20), 1.0)
    system = np.vstack([columns.T, np.ones(len(columns))])
    rest = target - system @ nnls(system, target)[0]
    widest = (columns @ (-rest[:20] / np.linalg.norm(rest[:20]))).min()
    assert widest == pytest.approx(margin, rel=1e-5)
    assert (1 - tolerance) * widest <= found.margin <= widest * (1 + 1e-5)
    assert widest * (1 - 1e-5) <= found.upper <= widest / (1 - tolerance)


CASES = {
    "one column": [[3.0, 4.0]],
    "fewer columns than features": np.eye(5, 9),
    "equal columns": [[1.0, 2.0, -1.0]] * 50,
    "duplicates": np.repeat(np.eye(4) + 0.1, 20, axis=0),
    "of low rank": np.outer(np.arange(1, 40), [1.0, 2.0, 3.0, 0.0]),
    "constant features": np.column_stack([np.ones(30), np.full(30, -5.0), np.arange(30) - 12.0]),
    "nearly opposite": [[1.0, 1e-9], [-1.0, 1e-9]],
    "tiny and huge norms": np.diag([1e-120, 1.0, 1e120]) + 0.0,
}


@pytest.mark.parametrize("name", CASES)
def test_separable_cases_that_break_solvers(name: str) -> None:
    matrix = matrix_of(np.array(CASES[name], float).T)
    found = solve(matrix)
    assert found.outcome == "separated"
    check(matrix, found)
    closer = solve(matrix, found, 0.01)
    assert closer.outcome == "separated"
    assert closer.margin >= found.margin * (1 - 1e-9)


CONFLICTS = {
    "two opposite": ([[1.0, 2.0], [-2.0, -4.0]], 2),
    "a zero column": ([[1.0, 2.0], [0.0, 0.0], [3.0, 1.0]], 1),
    "three in a plane": ([[1.0, 0.0], [-1.0, 1.0], [-1.0, -1.0], [5.0, 1.0]], 3),
    "opposite among many": (np.vstack([np.random.default_rng(0).random((200, 6)), -np.ones((1, 6)), np.ones((1, 6))]), 7),
    "twice the same and its opposite": ([[1.0, 1.0], [1.0, 1.0], [-1.0, -1.0]], 2),
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_conflicts_are_found_with_few_columns(name: str) -> None:
    points, most = CONFLICTS[name]
    matrix = matrix_of(np.array(points).T)
    found = solve(matrix)
    assert found.outcome == "conflict"
    assert len(found.rows) <= most
    check(matrix, found)
    check_irreducible(matrix, found)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_features_of_wildly_different_scale(dtype: Any, flipped: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    plain = rng.standard_normal((800, 12))
    normal = rng.standard_normal(12)
    score = plain @ normal
    plain = plain[np.abs(score) > 0.05] * np.sign(score[np.abs(score) > 0.05])[:, None]
    scaled = plain * 10.0 ** rng.uniform(-8, 8, 12)
    if flipped:
        scaled[7] = -scaled[3]
    matrix = matrix_of(scaled.T, dtype)
    found = solve(matrix)
    if flipped:
        assert found.outcome == "conflict"
        check_irreducible(matrix, found)
        assert 7 in found.rows
    else:
        assert found.outcome == "separated"
        assert (matrix.points.astype(np.longdouble) @ found.w.astype(np.longdouble) > 0).all()


@pytest.mark.parametrize("margin", [1e-2, 1e-4, 1e-6, 1e-8, 1e-10])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_margins_below_the_resolution_of_float32(margin: float, dtype: str) -> None:
    """Whatever rounding to the dtype made of the instance, the answer is checked on what is stored."""
    X, labels = Instance("planted", 10, 3000, margin, dtype=dtype).block(0)
    matrix = matrix_of((X * labels[:, None].astype(X.dtype)).T, X.dtype)
    found = solve(matrix)
    check(matrix, found)
    if dtype == "float64":
        assert found.outcome == "separated"
        assert 0.05 * margin <= found.margin <= margin * (1 + 1e-6)
    elif found.outcome == "conflict":
        assert margin < 1e-6


@pytest.mark.parametrize(("kind", "outcome"), [("halfspace", "separated"), ("gaussian", "conflict")])
def test_systems_too_large_to_factorise_are_solved_by_conjugate_gradients(kind: str, outcome: str) -> None:
    X, labels = Instance(kind, 60, 3000).block(0)
    matrix = replace(matrix_of((X * labels[:, None]).T, np.float32), direct=10)
    found = solve(matrix)
    assert found.outcome == outcome
    check(matrix, found)


@pytest.mark.parametrize("margin", [1e-4, 1e-6, 1e-7])
def test_thin_margins_by_conjugate_gradients(margin: float) -> None:
    rng = np.random.default_rng(0)
    A, w = rng.standard_normal((600, 60)), rng.standard_normal(60)
    w /= np.linalg.norm(w)
    A /= np.linalg.norm(A, axis=1)[:, None]
    matrix = replace(matrix_of((A - np.outer(A @ w, w) + margin * w).T), direct=10)
    found = solve(matrix)
    check(matrix, found)
    assert found.outcome == "separated"


def test_few_columns_of_many_features_take_memory_for_the_few() -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((50, 3000))
    A[1] = -A[0] + 1e-7 * rng.standard_normal(3000)
    matrix = matrix_of(A.T)
    tracemalloc.start()
    found = solve(matrix)
    assert tracemalloc.get_traced_memory()[1] < 10 * A.nbytes
    tracemalloc.stop()
    assert found.outcome == "separated"
    check(matrix, found)


def test_a_start_is_taken_up() -> None:
    X, labels = Instance("halfspace", 40, 4000).block(0)
    matrix = matrix_of((X * labels[:, None]).T, np.float32)
    part = solve(matrix.part(np.arange(2000)))
    fresh, warm = solve(matrix), solve(matrix, part)
    assert fresh.outcome == warm.outcome == "separated"
    assert warm.steps < fresh.steps


@given(st.integers(1, 8), st.integers(1, 12), st.sampled_from([1.0, 1e3, 1e8]), st.integers(0, 10**6))
@settings(max_examples=150)
def test_the_line_search_finds_the_minimum(m: int, c: int, C: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns, w, step = rng.standard_normal((c, m)), rng.standard_normal(m), rng.standard_normal(m)
    if seed % 3 == 0:
        step[: m // 2] = 0
    score, slope = columns @ w, columns @ step
    t = line_search(1 - score, slope, float(w @ step), float(step @ step), C)

    def value(s: float) -> float:
        v = w + s * step
        return float(v @ v / 2 + C / 2 * (np.maximum(0, 1 - score - s * slope) ** 2).sum())

    assert t >= 0
    here = value(t)
    scale = max(here, value(0.0))
    for s in (0.0, t * 0.99, t * 1.01, t + 1e-3, t + 1.0, 10 * t):
        assert here <= value(s) + 1e-9 * scale


def halfspace(m: int, n: int, flips: float = 0.0) -> ColumnMatrix:
    points, labels = Instance("halfspace", m, n, seed=4).block(0)
    labels[np.random.default_rng(5).random(n) < flips] *= -1
    return matrix_of((points * labels[:, None]).T, np.float32)


@pytest.mark.parametrize("C", [1.0, 1e4])
def test_a_start_that_is_too_long_is_as_good_as_one_that_is_not(C: float) -> None:
    """min over t of f(t v) is where f'(t v) v = 0, and the same for all lengths of v."""
    matrix = halfspace(40, 2000)
    v = np.linalg.lstsq(unit(matrix)[:200], np.ones(200))[0]
    ends = []
    for length in (1e2, 1e5):
        newton = Newton(matrix, length * v)
        newton.minimise(C, 0.3, 0.05, most=0)
        w, score = newton.point.v, newton.point.score
        assert w @ w == pytest.approx(C * float(newton.point.slack() @ score), rel=1e-6)
        newton.minimise(C, 0.3, 0.05)
        ends.append((newton.steps, newton.point.v))
    assert ends[0][0] == ends[1][0]
    assert ends[0][1] == pytest.approx(ends[1][1], rel=1e-4)


@given(st.integers(1, 6), st.integers(1, 300), st.integers(0, 999))
def test_a_basic_vector_has_the_same_sum_and_few_entries(d: int, c: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = rng.standard_normal((c, d))
    if seed % 3 == 0:
        columns[: c // 2] = columns[:1]
    x = rng.random(c) * (rng.random(c) < 0.8)
    kept, weight = basic(lambda chosen: columns[chosen], d, x)
    assert len(kept) <= d + 1
    assert (weight > 0).all()
    assert all(a < b for a, b in pairwise(kept))
    assert np.allclose(weight @ columns[kept], x @ columns, atol=1e-10 * c)
    assert weight.sum() == pytest.approx(x.sum(), abs=1e-10 * c)


@pytest.mark.parametrize("copies", [0, 40, -1])
def test_many_features_follow_directions_from_a_factor_unless_columns_are_dependent(copies: int) -> None:
    """Of the first columns some are equal to others, or nearly so: then a factor of them has no inverse, or a bad one."""
    rng = np.random.default_rng(abs(copies))
    columns = rng.standard_normal((1500, 520))
    columns /= np.linalg.norm(columns, axis=1)[:, None]
    columns[1 : 1 + copies] = columns[0]
    if copies < 0:
        columns[1:3] = columns[3:5] + 1e-9 * columns[5:7]
    x = rng.exponential(size=1500)
    x /= x.sum()
    rows, weight = basic(lambda some: columns[some], 520, x)
    assert len(rows) <= 521
    assert (weight > 0).all()
    assert weight.sum() == pytest.approx(1, abs=1e-12)
    assert np.linalg.norm(weight @ columns[rows] - x @ columns) < 1e-12


@pytest.mark.parametrize("part", [0, 2, 200])
def test_a_conflict_of_many_features_has_no_part_that_is_one(part: int) -> None:
    """Weights are exact but for noise. Of d + 1 columns all weigh; or only a part does, and noise weighs the others."""
    random, d = np.random.default_rng(part), 300
    columns = random.standard_normal((2 * d, d))
    count = part or d + 1
    if part:
        columns[:part, part - 1 :] = 0.0
    x = np.zeros(2 * d)
    x[:count] = random.exponential(size=count)
    columns[count - 1] = -(x[: count - 1] @ columns[: count - 1]) / x[count - 1]
    size = np.linalg.norm(columns, axis=1)
    noisy = np.maximum(x * size, 0) * (1 + 1e-9 * random.standard_normal(2 * d)) + 1e-12 * (part > 0) * random.random(2 * d)
    found = conflict(matrix_of(columns.T), noisy / noisy.sum())
    assert found is not None
    rows, weight = found
    expected = x * size / (x @ size)
    assert rows.tolist() == list(range(count))
    assert weight == pytest.approx(expected[:count], abs=1e-12)
    assert np.linalg.norm((weight / size[:count]) @ columns[:count]) < 1e-14


@pytest.mark.parametrize("distance", [1e-6, 1e-8])
def test_no_more_points_than_features_are_separated_in_a_few_steps(distance: float) -> None:
    """Any labels of them are: one of two near points is wrong, the margin is tiny, and a soft margin comes there slowly."""
    rng = np.random.default_rng(1)
    points = rng.standard_normal((300, 300))
    points[150:] = points[:150] + distance * points[150:]
    label = np.sign(points[:150] @ rng.standard_normal(300))
    label = np.concatenate([label, label])
    label[157] *= -1
    matrix = matrix_of((points * label[:, None]).T)
    found = solve(matrix)
    assert found.outcome == "separated"
    check(matrix, found)
    assert found.steps < 10  # 200 in the coordinates of the points


@pytest.mark.parametrize("noise", [1e-15, 1e-17, 1e-30])
def test_rounding_noise_does_not_carry_a_separator_that_another_feature_has(noise: float) -> None:
    assert dfeas.solve([[0.6, -8e-18]] * 3, "all-positive").margin_lower > 0.9
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), np.resize([1, -1], 60)
    X[:, 0] = y * (1 + rng.random(60))
    found = dfeas.solve(np.c_[X, noise * y], y)
    assert found.margin_lower > 0.05  # along the last feature it is the noise


@pytest.mark.parametrize("exponent", [-60, -30, -17, -16, -15, -12, 12, 60])
def test_a_feature_of_any_scale_is_found_where_it_alone_separates(exponent: int) -> None:
    rng = np.random.default_rng(exponent + 100)
    y = np.resize([1, -1], 60)
    found = dfeas.solve(np.c_[rng.standard_normal(60), 10.0**exponent * y * (0.5 + rng.random(60))], y)
    assert found.verdict == "feasible"
    assert found.margin_lower > 0


@pytest.mark.parametrize("spread", [40, 150])
@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_units_of_features_are_no_matter(spread: int, flipped: bool, sparse: bool) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = np.where(rng.random((300, 12)) < 0.7, 0, rng.integers(-9, 10, (300, 12))).astype(np.float64)
        X[:, -1] = 1
        signed = X * np.where(2 * X @ rng.integers(-3, 4, 12) + 1 > 0, 1, -1)[:, None]
        if flipped:
            signed[-1] = -signed[:3].sum(axis=0)
        scaled = signed * 2.0 ** rng.integers(-spread, spread + 1, 12)
        scale = 1 / np.linalg.norm(scaled, axis=1)
        found = solve(column_matrix(csr_array(scaled) if sparse else scaled, scale))
        assert found.outcome == ("conflict" if flipped else "separated")
        assert found.steps < 100
        if flipped:
            weight = found.weight * scale[found.rows]
            np.testing.assert_allclose(weight @ signed[found.rows] / weight.sum(), 0, atol=1e-11)
        else:
            assert 0 < found.margin == pytest.approx(float((scaled @ found.y * scale).min()))
            assert (scaled @ found.y > 0).all()


MANY = AT.large // 40
"""Columns of 40 features that are more than are solved at once."""


def many(seed: int, flipped: bool = False) -> ColumnMatrix:
    """Columns on one side of a plane, or one of them on the other and deep there."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((MANY, 40)).astype(np.float32)
    normal = rng.standard_normal(40)
    A *= np.sign(A @ normal).astype(np.float32)[:, None]
    if flipped:
        A[MANY // 3] = -A[:20].sum(axis=0)
    return matrix_of(A.T, np.float32)


@pytest.mark.parametrize(("kind", "m", "n"), [("halfspace", 30, 4000), ("halfspace", 300, 1000), ("one-flip", 30, 4000)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_separator_is_found_from_the_few_that_the_sum_has_wrong(kind: str, m: int, n: int, dtype: Any) -> None:
    instance = Instance(kind, m, n, seed=2)
    blocks = [instance.block(i) for i in range(-(-n // instance.rows))]
    points, label = np.vstack([block[0] for block in blocks]), np.concatenate([block[1] for block in blocks])
    matrix = matrix_of((points * label[:, None]).T, dtype)
    y = unit(matrix).sum(axis=0)
    y /= np.linalg.norm(y)
    score = unit(matrix) @ y
    assert score.min() <= 0, "the sum does not separate them"
    found, score = separate_from(matrix, y, score, n)
    np.testing.assert_allclose(score, unit(matrix) @ found.w, atol=1e-6 * np.linalg.norm(found.w))
    if kind == "halfspace":
        assert found.outcome == "separated"
        check(matrix, found)
    else:
        assert found.outcome == "unresolved"
        assert (unit(matrix) @ found.y).min() <= 0


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 40))
def test_opposed_columns_are_in_conflict_exactly_where_nothing_separates_them(seed: int, d: int, count: int) -> None:
    random = np.random.default_rng(seed)
    columns = random.standard_normal((count + 1, d))
    columns /= np.linalg.norm(columns, axis=1)[:, None]
    weight = oppose(columns)
    # Farkas: some y has a'y >= 0 for all others and > 0 for the last one
    separable = linprog(-columns[-1], A_ub=-columns[:-1], b_ub=np.zeros(count), bounds=(-1, 1)).fun < -1e-9
    assert (weight is None) == separable
    if weight is not None:
        assert (weight >= 0).all()
        assert weight.sum() == pytest.approx(1)
        assert np.count_nonzero(weight) <= d + 1
        assert np.linalg.norm(weight @ columns) < 1e-14


class TestRounds:
    """Many columns are not solved at once, and the answer is one for all of them."""

    def test_a_flipped_column_is_named(self) -> None:
        matrix = many(0, flipped=True)
        found = solve(matrix)
        assert found.outcome == "conflict"
        assert MANY // 3 in found.rows
        check(matrix, found)
        check_irreducible(matrix, found)

    @pytest.mark.parametrize("equal", [False, True])
    def test_near_duplicates_of_both_signs_are_in_conflict(self, equal: bool) -> None:
        """A column, and the opposite of another one that is the same or a rounding of float32 away, far from the plane."""
        points = many(1).points.copy()
        points[7] = -points[MANY - 9] * np.float32(2.0)
        if not equal:
            points[7, 0] = np.nextafter(points[7, 0], np.float32(np.inf))
        matrix = matrix_of(points.T, np.float32)
        found = solve(matrix)
        assert found.outcome == "conflict"
        assert 7 in found.rows
        check(matrix, found)

    def test_the_same_bits_from_any_number_of_threads(self, monkeypatch: pytest.MonkeyPatch) -> None:
        answers = []
        for count in (1, 2):
            monkeypatch.setattr(blas, "threads_here", lambda count=count: count)
            answers.append(solve(many(4)))
        assert np.array_equal(answers[0].w, answers[1].w)
        assert np.array_equal(answers[0].weight, answers[1].weight)
        assert answers[0].steps == answers[1].steps

    def test_whoever_listens_may_end_it_at_any_step(self) -> None:
        said: list[str] = []

        def listen(text: str) -> None:
            said.append(text)
            if len(said) == 5:
                raise InterruptedError

        with pytest.raises(InterruptedError), heard(listen):
            solve(many(5))
        assert len(said) == 5


@pytest.mark.parametrize("single", [False, True])
def test_a_gram_matrix_in_slabs_is_the_sum_of_products(single: bool) -> None:
    """Of more columns than a slab has."""
    d = 500
    points = np.random.default_rng(0).standard_normal((10_000, d)).astype(np.float32 if single else np.float64)
    matrix = column_matrix(points, np.ones(len(points)))
    square, total = matrix.gram(np.arange(len(points)))
    wide = points.astype(np.float64)
    assert np.allclose(square, wide.T @ wide, rtol=1e-12, atol=1e-9)
    assert np.allclose(total, wide.sum(axis=0), rtol=1e-12, atol=1e-9)


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for a basis of fewer columns than there are, as of 6000 x 6000."""
    monkeypatch.setattr(column_matrix, "__defaults__", (1 << 21,))
    monkeypatch.setattr("dfeas.linalg.separation.columns.AT", replace(AT, large=1 << 16))


def wide_columns(kind: str, m: int = 750, n: int = 750, copies: int = 0) -> ColumnMatrix:
    """Columns that have no room for a basis; the last ones may be others with the other sign."""
    instance = Instance(kind, m, n)
    blocks = [instance.block(i) for i in range(-(-n // instance.rows))]
    points = np.vstack([X * y[:, None].astype(X.dtype) for X, y in blocks])
    if copies:
        points[-copies:] = -points[:copies]
    matrix = column_matrix(points, 1 / np.linalg.norm(points.astype(np.float64), axis=1))
    assert matrix.wide
    return matrix


@pytest.mark.usefixtures("little_room")
def test_wide_columns_are_separated_without_a_matrix_of_all_features() -> None:
    matrix = wide_columns("halfspace")
    tracemalloc.start()
    found = solve(matrix, eps=1e-3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.outcome == "separated"
    check(matrix, found)
    assert peak < 2 * matrix.points.nbytes  # what a matrix of all has in float64


@pytest.mark.usefixtures("little_room")
def test_wide_columns_with_a_point_of_both_labels_name_it() -> None:
    matrix = wide_columns("planted", copies=1)
    found = solve(matrix, eps=1e-3)
    assert (found.outcome, found.rows.tolist()) == ("conflict", [0, 749])
    check(matrix, found)


@pytest.mark.parametrize("seed", range(4))
def test_a_row_of_dummies_with_both_labels_is_named_long_before_the_others_are_separated(seed: int) -> None:
    """The others have a margin that takes a price of 1e8 and more, and four times the steps."""
    rng = np.random.default_rng(seed)
    points = (rng.random((3000, 200)) < 3 / 200).astype(float)
    points[:, 0] = 1
    score = points @ rng.standard_normal(200)
    points, score = points[np.abs(score) > 1e-3], score[np.abs(score) > 1e-3]
    points, label = np.vstack([points, 2 * points[7]]), np.sign(np.append(score, -score[7]))
    found = solve(matrix_of((points * label[:, None]).T))
    check(column_matrix(points, label / np.linalg.norm(points, axis=1)), found)
    assert found.outcome == "conflict"
    assert len(np.unique(points[found.rows] / points[found.rows, :1], axis=0)) == 1
    assert found.steps <= 80


def test_heavy_columns_that_are_too_wide_for_a_basis_end_the_search() -> None:
    points = np.random.default_rng(0).integers(-9, 10, (40, 300)).astype(np.float32)
    points[-1] = -points[:-1].sum(axis=0)
    x = np.full(40, 1 / 40)
    assert conflict(column_matrix(points, np.ones(40)), x) is not None
    assert conflict(column_matrix(points, np.ones(40), 1 << 10), x) is None


@pytest.mark.usefixtures("little_room")
@pytest.mark.parametrize("exact", [False, True])
def test_wide_columns_with_pairs_and_their_normal_against_them(exact: bool) -> None:
    """Fifty pairs whose sums are along a normal, and its opposite. Where rounding to float32 leaves no conflict, |Ax| is
    found up to that rounding, which the soft margin does not come near to.
    """
    m, pairs = 750, 50
    random = np.random.default_rng(0)
    normal = np.zeros(m)
    normal[0] = 1.0
    across = random.standard_normal((375, m))
    across[:, 0] = 0
    across /= np.linalg.norm(across, axis=1)[:, None]
    points = np.vstack(
        [0.01 * normal + across[:pairs], 0.01 * normal - across[:pairs], across[pairs:] + 0.1 * normal, [-normal]]
    )
    points = points.astype(np.float32)
    if not exact:
        points[:, 1:] *= 1 + np.float32(1e-7) * random.standard_normal((len(points), m - 1)).astype(np.float32)
    matrix = column_matrix(points, 1 / np.linalg.norm(points.astype(np.float64), axis=1))
    found = solve(matrix, eps=1e-6)
    check(matrix, found)
    assert found.upper < 1e-7
    assert found.outcome == ("conflict" if exact else "unresolved")


@given(st.integers(0, 1 << 30), st.integers(1, 12), st.integers(0, 8))
def test_the_nearest_point_of_a_span_is_as_far_along_all_its_columns(seed: int, count: int, more: int) -> None:
    """a_j'z = |z|^2 on every column that has weight (first-order condition), and nonnegative least squares find no more."""
    columns = np.random.default_rng(seed).standard_normal((count, count + more)) + 0.5
    x = nearest(columns)
    assert x is not None
    z = x @ columns
    assert x.min() >= 0
    assert x.sum() == pytest.approx(1)
    assert np.allclose((columns @ z)[x > 0], z @ z, rtol=1e-6, atol=1e-12)
    system = np.vstack([1e-3 * columns.T, np.ones(count)])
    best, _ = nnls(system, np.append(np.zeros(columns.shape[1]), 1.0))
    least = np.linalg.norm(best @ columns) / best.sum()
    assert np.linalg.norm(z) >= least * (1 - 1e-3)


def test_columns_have_the_same_products_in_the_space_that_they_span() -> None:
    random = np.random.default_rng(0)
    matrix = replace(matrix_of(random.standard_normal((300, 20)), np.float32), feature=random.uniform(0.5, 2, 300))
    spanned = matrix.project_to_span()
    assert spanned.shape == (20, 20)
    wide, narrow = matrix.gather(slice(None)), spanned.gather(slice(None))
    assert np.allclose(wide @ wide.T, narrow @ narrow.T, rtol=0, atol=1e-13)
    assert spanned.project_to_span() is spanned


def test_sparse_columns_are_looked_at_with_the_features_that_they_have(monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.zeros((40, 500))
    points[:, ::5] = np.random.default_rng(0).integers(-9, 9, (40, 100))
    points[-1] = -points[:-1].sum(axis=0)
    monkeypatch.setattr("dfeas.linalg.separation.sparse_columns.AT", replace(AT, direct_sparse=100))
    for room in (8 * 40 * 100, 8 * 40 * 99):
        matrix = column_matrix(csr_array(points), np.ones(40), room)
        assert matrix.wide
        found = conflict(matrix, np.full(40, 1 / 40))
        assert (found is None) == (room < 8 * 40 * 100)
        if found is not None:
            assert found[0].tolist() == list(range(40))
            assert np.allclose(found[1], 1 / 40)


@pytest.mark.parametrize("d", [1, 4, 12])
def test_conjugate_gradients_end_exactly_after_d_products_and_before_at_a_share(d: int) -> None:
    """Hestenes and Stiefel 1952, theorem 4.1; and what is wrong by a share of what is wanted has taken fewer products."""
    random = np.random.default_rng(d)
    basis = random.standard_normal((d, d + 2))
    matrix, wanted, products = basis @ basis.T + np.eye(d), random.standard_normal(d), []

    def multiply(v: np.ndarray) -> np.ndarray:
        products.append(v)
        return np.asarray(matrix @ v)

    found = conjugate_gradients(multiply, wanted, 1e-9, 100)
    assert len(products) <= d
    assert found == pytest.approx(np.linalg.solve(matrix, wanted), rel=1e-6)
    products.clear()
    some = conjugate_gradients(multiply, wanted, 0.5, 100)
    assert np.linalg.norm(matrix @ some - wanted) <= 0.5 * np.linalg.norm(wanted)
    assert len(products) < d or d == 1
    assert not conjugate_gradients(multiply, np.zeros(d), 0.5, 100).any()


@pytest.mark.parametrize("kind", ["planted", "one-flip"])
def test_columns_with_more_features_than_points_are_decided_as_by_highs(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same solver, where the room for a basis is small, so that HiGHS has an answer in time."""
    monkeypatch.setattr("dfeas.linalg.separation.columns.AT", replace(AT, large=1 << 12))
    instance = Instance(kind, 200, 1200, margin=0.05)
    X, labels = instance.block(0)
    points = X * labels[:, None].astype(X.dtype)
    matrix = column_matrix(points, 1 / np.linalg.norm(points.astype(np.float64), axis=1), 1 << 18)
    assert matrix.wide
    found = solve(matrix, eps=1e-3)
    columns = unit(matrix)
    best = linprog(
        np.append(np.zeros(200), -1.0),
        A_ub=np.hstack([-columns, np.ones((1200, 1))]),
        b_ub=np.zeros(1200),
        bounds=[(-1, 1)] * 200 + [(None, None)],
    )
    assert (found.outcome == "separated") == (-best.fun > 1e-6)
    assert found.outcome == "separated" or found.upper <= 1e-3
    check(matrix, found)


def test_no_conflict_is_looked_for_where_a_basis_is_costly_and_the_sum_is_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """One wrong label: the weights of a soft margin prove that no margin above eps exists, long before m + 1 of them do."""
    monkeypatch.setattr("dfeas.linalg.separation.columns.AT", replace(AT, large=1))
    rng = np.random.default_rng(0)
    points, normal = rng.standard_normal((3000, 40)).astype(np.float32), rng.standard_normal(40)
    score = points @ normal
    score[np.abs(score).argmax()] *= -1
    matrix = column_matrix(points, np.sign(score) / np.linalg.norm(points, axis=1))
    assert solve(matrix, eps=1e-3).outcome == "conflict"
    monkeypatch.setattr("dfeas.linalg.separation.solver.AT", replace(AT, costly=30))
    found = solve(matrix, eps=1e-3)
    assert found.outcome == "unresolved"
    assert found.upper <= 1e-3
    check(matrix, found)
    assert solve(matrix).outcome == "conflict"  # where no |Ax| is a verdict
    thin = column_matrix(points, np.sign(points @ normal) / np.linalg.norm(points, axis=1))
    assert solve(thin, eps=1e-3).outcome == "separated"


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
@pytest.mark.parametrize("count", [3, 150])
def test_some_of_many_wide_columns_are_these_columns(kind: Any, count: int) -> None:
    """More than a tile of them is taken by two threads where they are dense."""
    rng = np.random.default_rng(0)
    points = np.where(rng.random((200, 30_000)) < 0.01, rng.standard_normal((200, 30_000)), 0.0).astype(np.float32)
    matrix, rows, v = column_matrix(kind(points), rng.random(200) + 0.5), rng.permutation(200)[:count], rng.random(30_000)
    for some in (matrix.some(rows), matrix.part(rows)):
        assert some.shape == (count, 30_000)
        assert np.allclose(some.scores(v), matrix.scores(v)[rows], rtol=1e-4, atol=1e-4)


def test_wide_sparse_points_without_a_separator_are_solved() -> None:
    """150 points in what 40 others span, of 45,000 features, as words are."""
    rng = np.random.default_rng(0)
    few = scipy.sparse.random_array((40, 45_000), density=0.002, random_state=rng, format="csr", dtype=np.float32)
    points = csr_array(csr_array(rng.integers(0, 2, (150, 40)).astype(np.float32)) @ few)
    result = dfeas.solve(points, rng.choice([-1, 1], 150), eps=1e-3)
    assert result.verdict in ("eps-infeasible", "infeasible")


def test_dependent_columns_of_many_features_take_no_matrix_of_features() -> None:
    """30 columns of 8000 features in five dimensions: 512 MB, if there were one."""
    rng = np.random.default_rng(0)
    columns = rng.standard_normal((30, 5)) @ rng.standard_normal((5, 8000))
    tracemalloc.start()
    some, x = basic_vectors.independent(columns, np.full(30, 1 / 30))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * columns.nbytes
    assert len(some) <= 6
    assert (x > 0).all()
    assert np.allclose(x @ columns[some], columns.mean(axis=0), atol=1e-10)
    assert x.sum() == pytest.approx(1)


@pytest.mark.parametrize("length", [1.0, 1e4])
@pytest.mark.parametrize("sparse", [False, True])
def test_scores_between_two_points_are_those_of_a_product(length: float, sparse: bool) -> None:
    random = np.random.default_rng(0)
    X = random.standard_normal((3000, 50)).astype(np.float32)
    matrix = column_matrix(csr_array(X) if sparse else X, 1 / np.linalg.norm(X, axis=1))
    ends = [length * v / np.linalg.norm(v) for v in random.standard_normal((2, 50))]
    first, second = (matrix.scores(v, within=1e-4) for v in ends)
    v, exact = 0.7 * ends[0] + 0.3 * ends[1], matrix.scores(0.7 * ends[0] + 0.3 * ends[1], np.inf)
    found = matrix.settle(0.7 * first + 0.3 * second, v, within=1e-4)
    error = AT.narrow * float(np.linalg.norm(v))
    assert np.abs(found - exact).max() <= max(1e-4, error)
    if error > 1e-4:
        assert np.abs(found - exact)[exact < 1].max() <= 1e-12 * length


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("factor", [1.0, 20.0, 1e25])
def test_features_are_equilibrated_where_sums_in_float64_say_so(factor: float, sparse: bool) -> None:
    X = np.random.default_rng(1).standard_normal((AT.large // 64, 64)).astype(np.float32)
    X[:, 3] *= factor
    norm = np.linalg.norm(X.astype(np.float64), axis=1)
    narrow = column_matrix(csr_array(X) if sparse else X, 1 / norm)
    wide = column_matrix(X.astype(np.float64), 1 / norm)
    assert narrow.large
    assert narrow.equilibrate().feature == pytest.approx(wide.equilibrate().feature, rel=1e-12)
    assert (narrow.equilibrate() is narrow) == (factor < 30)


@pytest.mark.parametrize("law", ["normal", "ascending", "descending", "few values", "infinite"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_lowest_of_many_scores_are_those_of_a_sort(law: str, dtype: type) -> None:
    draw = np.random.default_rng(0)
    score = {
        "normal": draw.standard_normal(50_000),
        "ascending": np.arange(50_000.0),
        "descending": -np.arange(50_000.0),
        "few values": draw.integers(0, 3, 50_000) * 1.0,
        "infinite": np.where(draw.random(50_000) < 0.99, np.inf, draw.standard_normal(50_000)),
    }[law].astype(dtype)
    for count in (1, 17, 1000, 12_500, 12_501, 50_000):
        found = lowest(score, count)
        assert len({*found.tolist()}) == count
        np.testing.assert_array_equal(np.sort(score[found]), np.sort(score)[:count])
