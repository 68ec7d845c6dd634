"""The methods that correct mistakes: their bounds at every iterate, the loops of their papers, the streams they read."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import csr_array

import dfeas
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source, Transform
from dfeas.data.views import transform_features
from dfeas.linalg.blas import heard
from dfeas.methods.margin_perceptron import margin_perceptron
from dfeas.methods.mistakes import correct
from dfeas.methods.perceptron import NormalizedPerceptron, OnlinePerceptron, perceptron
from dfeas.methods.protocol import Facts
from dfeas.methods.registry import METHODS
from dfeas.methods.winnow import winnow
from dfeas.records import replace
from tests.methods.making import FAMILIES, best_margin, engine_of, in_memory, problem, states

planted = given(st.integers(2, 12), st.integers(10, 200), st.sampled_from([0.3, 0.1, 0.03]), st.integers(0, 999))


@planted
@settings(max_examples=25)
def test_perceptron_makes_at_most_one_over_margin_squared_corrections(m: int, n: int, margin: float, seed: int) -> None:
    engine, A, facts = problem("planted", m, n, margin=margin, seed=seed, dtype="float64")
    method = perceptron(cap=5)
    for state in states(method, engine, facts, math.ceil(1 / margin**2) + 2):
        k = state.corrections
        assert k <= 1 / margin**2 + 1e-9
        assert np.linalg.norm(state.y) <= math.sqrt(k) + 1e-9  # the proof's upper end
        if k:
            assert method.evidence(state).bracket.upper <= 1 / math.sqrt(k) + 1e-12
        if state.violated == 0:
            break
    assert state.violated == 0
    assert (A.T @ state.y > 0).all()


def test_corrections_are_those_of_a_plain_loop() -> None:
    rng = np.random.default_rng(2)
    W = rng.standard_normal((40, 6))
    W /= np.linalg.norm(W, axis=1)[:, None]
    W = W[np.abs(W @ np.ones(6)) > 0.3]
    W *= np.sign(W @ np.ones(6))[:, None]
    y, count = correct(np.zeros(6), W, 10_000)
    assert np.allclose(W.T @ count, y)
    assert (W @ y > 0).all()
    z = np.zeros(6)
    while (violated := np.flatnonzero(W @ z <= 0)).size:
        for j in violated:
            if W[j] @ z <= 0:
                z += W[j]
    assert np.allclose(y, z)


def test_corrections_go_on_when_two_products_round_to_different_signs() -> None:
    X = np.array([[-2, -2], [3, 0], [-3, 2], [3, 1], [-2, 0], [-1, 0], [3, -2], [-3, 2], [2, 2], [-3, 3], [1, 0], [-1, -1]])
    labels = np.array([1, -1, 1, -1, 1, 1, -1, 1, -1, 1, -1, 1])
    wide = X * labels[:, None]
    count = correct(np.zeros(2), wide / np.linalg.norm(wide, axis=1)[:, None], 5000)[1]
    assert 0 < count.sum() <= 5000


def test_corrections_stop_at_their_limit() -> None:
    W = np.array([[1.0, 0.0], [-1.0, 0.0]])
    assert correct(np.zeros(2), W, 7)[1].sum() == 7


def test_corrections_end_when_nobody_waits_any_more() -> None:
    looks = iter(range(100))

    def listen(text: str) -> None:
        if next(looks) == 3:
            raise TimeoutError

    W = np.random.default_rng(0).standard_normal((50, 4))
    with heard(listen), pytest.raises(TimeoutError):
        correct(np.zeros(4), W / np.linalg.norm(W, axis=1)[:, None], 1 << 60)


def test_the_perceptron_gathers_no_more_than_its_memory() -> None:
    assert perceptron().init(Facts(100, 10**9, 64 * 100 * 50)).cap == 50


@planted
@settings(max_examples=12)
def test_normalized_perceptron_goes_to_the_maximum_margin_at_its_rate(m: int, n: int, margin: float, seed: int) -> None:
    engine, _, facts = problem("planted", m, n, margin=margin, seed=seed, dtype="float64")
    method = NormalizedPerceptron()
    for state in states(method, engine, facts, min(1500, 3 * math.ceil(1 / margin**2))):
        k, bracket = state.k, method.evidence(state).bracket
        log_term = (1 + math.log(k)) / (margin**2 * k)
        assert margin - 1e-9 <= np.linalg.norm(state.w) <= margin * (1 + log_term / 2) + 1e-9
        if k > 1 / margin**2:
            assert bracket.lower >= margin * (1 - 1 / (margin**2 * k)) / (1 + log_term) - 1e-9
            assert bracket.lower > 0
    assert engine.passes == k


@pytest.mark.parametrize(("kind", "options"), FAMILIES, ids=str)
def test_normalized_perceptron_is_mirror_descent_and_the_perceptron_of_the_worst_column(
    kind: str, options: dict[str, Any]
) -> None:
    """Mirror descent in the ball's geometry: prox(w, g) = w - g, for the subgradient w - a_j of |w|^2/2 - min a_j'w."""
    engine, A, facts = problem(kind, 6, 200, dtype="float64", **options)
    w, y = np.zeros(6), np.zeros(6)
    corrects = True
    for k, state in enumerate(states(NormalizedPerceptron(), engine, facts, 60)):
        a = A[:, int((A.T @ w).argmin())]
        w = w - (w - a) / (k + 1)
        assert np.allclose(state.w, w, atol=1e-12)
        corrects = corrects and bool((A.T @ y).min() <= 0)
        if corrects:
            y = y + A[:, int((A.T @ y).argmin())]
            assert np.allclose((k + 1) * w, y, atol=1e-12)
    engine, _, facts = problem(kind, 6, 200, dtype="float64", **options)
    *_, one = states(perceptron(cap=1, most=1), engine, facts, 60)
    assert np.allclose(one.y, y, atol=1e-12)  # one correction a pass, as in the experiments of Yu et al.


@pytest.mark.parametrize(("kind", "options"), FAMILIES, ids=str)
def test_online_perceptron_is_the_loop_over_the_stream(kind: str, options: dict[str, Any]) -> None:
    dtype = "float32" if kind in ("halfspace", "one-flip") else "float64"
    engine, A, facts = problem(kind, 8, 3000, dtype=dtype, block_rows=700, **options)
    method = OnlinePerceptron()
    y, count = np.zeros(8), np.zeros(3000)
    for passes, state in enumerate(states(method, engine, facts, 4), 1):
        for j in range(3000):
            if A[:, j] @ y <= 0:
                y += A[:, j]
                count[j] += 1
        assert np.allclose(state.y, y, atol=1e-9)
        assert (state.count.index == np.flatnonzero(count)).all()
        assert (state.count.amount == count[count > 0]).all()
        assert engine.passes == passes


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_online_perceptron_of_points_as_stored_is_that_of_the_notes(intercept: bool, seed: int) -> None:
    """``lengths`` divides all points by one number R, which no sign sees: w is R times y, and so is the bias."""
    points, _ = scaled(seed)
    labels = np.where(np.random.default_rng(seed).random(points.shape[1]) < 0.5, 1, -1)
    X = points.T * labels[:, None]
    Z = np.hstack([X, np.ones((len(X), 1))]) if intercept else X
    R, n = float(np.linalg.norm(Z, axis=1).max()), len(X)
    plain = open_source(Source(DataSpec(X, labels, intercept=intercept)))
    engine = engine_of(transform_features(plain, Transform(normalize=False, points=n, length=R)))
    w, count = np.zeros(Z.shape[1]), np.zeros(n)
    for state in states(OnlinePerceptron(), engine, Facts(Z.shape[1], n), 10_000):
        for t in range(n):
            if labels[t] * (w @ Z[t]) <= 0:
                w += labels[t] * Z[t]
                count[t] += 1
        np.testing.assert_allclose(R * state.y, w, rtol=0, atol=1e-12 * np.linalg.norm(w))
        np.testing.assert_array_equal(state.count.index, np.flatnonzero(count))
        np.testing.assert_array_equal(state.count.amount, count[count > 0])
        if state.mistakes == 0:
            break
    assert count.sum() <= (R / best_margin(Z.T * labels)) ** 2  # Block and Novikoff, of the lengths as they are
    found = dfeas.solve(X, labels, method="online-perceptron", transform="lengths", intercept=intercept, max_passes=10_000)
    assert (found.verdict, found.iterations) == ("feasible", count.sum())
    np.testing.assert_allclose(found.separator, w / np.linalg.norm(w), rtol=0, atol=1e-12)


@planted
@settings(max_examples=25)
def test_online_perceptron_makes_at_most_one_over_margin_squared_mistakes(m: int, n: int, margin: float, seed: int) -> None:
    engine, A, facts = problem("planted", m, n, margin=margin, seed=seed, dtype="float64")
    method = OnlinePerceptron()
    for state in states(method, engine, facts, math.ceil(1 / margin**2) + 2):
        assert state.corrections <= 1 / margin**2 + 1e-9
        assert np.linalg.norm(state.y) <= math.sqrt(state.corrections) + 1e-9
        if state.mistakes == 0:
            break
    bracket = method.evidence(state).bracket
    assert bracket.lower == pytest.approx((A.T @ bracket.y).min(), abs=1e-12)
    assert bracket.lower > 0


def scaled(seed: int) -> tuple[np.ndarray, float]:
    """Signed points (m, n) of very different lengths that a plane through the origin separates, and their best margin."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(2, 8)), int(rng.integers(3, 80))
    points = rng.standard_normal((m, n)) * 10.0 ** rng.uniform(-0.3, 0.3, n)
    plane = rng.standard_normal(m)
    plane /= np.linalg.norm(plane)
    points *= np.sign(plane @ points)
    points += np.outer(plane, rng.uniform(0.3, 0.6, n)) * np.linalg.norm(points, axis=0)
    return points, best_margin(points)


@pytest.mark.parametrize(("seed", "unit"), [*((seed, False) for seed in range(12)), *((seed, True) for seed in range(4))])
def test_margin_perceptron_ends_with_more_than_a_quarter_of_the_best_margin(seed: int, unit: bool) -> None:
    points, best = scaled(seed)
    if unit:
        points = points / np.linalg.norm(points, axis=0)
        best = best_margin(points)
    engine, facts = in_memory(points)
    radius = np.linalg.norm(points, axis=0).max()
    method = margin_perceptron(unit)
    for state in states(method, engine, facts, 2000):
        guess, w = state.guess, state.total
        assert state.made <= 12 * radius**2 / guess**2 + 1
        assert state.made <= 12 * radius**2 / best**2 or guess > best  # the theorem
        assert np.linalg.norm(w) >= state.made * best * (1 - 1e-9)  # Claim 1
        # Claims 3 and 4, for any guess
        assert np.linalg.norm(w) <= 2 * radius**2 / guess + radius + 0.75 * guess * state.made + 1e-9
        assert guess > best / 2 * (1 - 1e-9)
        evidence = method.evidence(state)
        assert evidence.refining == (not state.done)
        if state.done:
            break
    assert state.done
    assert (points.T @ state.y).min() / np.linalg.norm(state.y) > best / 4
    assert state.corrections <= sum(13 * 4**r for r in range(2 + int(max(0, math.log2(radius / best)))))


@pytest.mark.parametrize("size", [1e-20, 1e20])
@pytest.mark.parametrize("seed", range(3))
def test_points_of_any_length_in_single_precision_have_the_same_guarantee(seed: int, size: float) -> None:
    points, _ = scaled(seed)
    points = (points * size).astype(np.float32)
    best = best_margin(points.astype(np.float64) / size) * size
    engine, facts = in_memory(points)
    method = margin_perceptron()
    for state in states(method, engine, facts, 2000):
        if state.done:
            break
    assert state.done
    y = state.y / np.linalg.norm(state.y)
    assert (points.T.astype(np.float64) @ y).min() > best / 4
    bracket = method.evidence(state).bracket
    assert 0 < bracket.lower <= bracket.upper


@pytest.mark.parametrize("seed", range(3))
def test_a_round_that_is_given_up_refutes_its_guess_by_a_certificate(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((4, 60))
    engine, facts = in_memory(A)
    method = margin_perceptron(unit=True, most=200)
    for state in states(method, engine, facts, 40):
        assert method.evidence(state).bracket.upper <= 2 * state.guess + 1e-12  # the round before had twice the guess
    assert state.guess < 0.2


@given(st.integers(2, 12), st.integers(10, 200), st.sampled_from([0.3, 0.1, 0.03]), st.integers(0, 999))
@settings(max_examples=25)
def test_winnow_makes_at_most_as_many_mistakes_as_its_theorem_says(m: int, n: int, margin: float, seed: int) -> None:
    """The margin is that of weights on the simplex of features and their negatives, columns with maximum norm 1."""
    rng = np.random.default_rng(seed)
    u = np.zeros(m)
    u[rng.integers(m)] = rng.choice([-1.0, 1.0])
    points = rng.uniform(-1, 1, (m, n))
    points += np.outer(u, 2 * np.maximum(0, margin - u @ points) + 0.0)
    points /= np.abs(points).max(axis=0)
    rho = float((u @ points).min())  # not above the best
    if rho <= 0:
        return
    engine, facts = in_memory(points)
    method = winnow(cap=7)
    for state in states(method, engine, facts, 100_000):
        assert state.made <= 2 * math.log(2 * m) / state.guess**2 + 1
        assert state.guess > rho / 2
        if state.done:
            break
    assert state.done
    assert (points.T @ state.y).min() > 0
    assert np.abs(state.y).sum() <= 1 + 1e-12


@pytest.mark.parametrize("name", ["winnow", "margin-perceptron-unit", "perceptron", "normalized-perceptron", "von-neumann"])
def test_the_slow_witnesses_prove_infeasibility_within_their_bound(name: str) -> None:
    kind = "one-flip" if name.startswith("w") else "gaussian"
    engine, _, facts = problem(kind, 3, 60, margin=0.1, dtype="float64")
    method = METHODS[name]
    for state in states(method, engine, facts, math.ceil(method.bound(facts, 0.1))):
        if method.evidence(state).bracket.upper <= 0.1:
            break
    assert method.evidence(state).bracket.upper <= 0.1


@pytest.mark.parametrize("r", [2.0, 30.0])
def test_the_margin_of_unit_points_is_what_bounds_the_perceptron_however_long_they_are(r: float) -> None:
    """The example of Ramdas and Pena 2014, section 2.2: the bound by lengths as they are is r^4 times that of unit points."""
    length = np.geomspace(1 / r, r, 20)
    X = np.vstack([np.outer(length, [0.6, 0.8]), np.outer(length, [0.8, 0.6])])
    labels, ask = np.repeat([1, -1], 20), {"intercept": False, "margin_tolerance": 1e-6}
    unit, lengths = dfeas.solve(X, labels, **ask), dfeas.solve(X, labels, transform=("lengths",), **ask)
    assert unit.margin_lower == pytest.approx(0.2 / np.sqrt(2), rel=1e-6)
    assert (unit.margin_lower / lengths.margin_lower) ** 2 == pytest.approx(r**4, rel=1e-5)
    np.testing.assert_allclose(lengths.separator, [-np.sqrt(0.5), np.sqrt(0.5)], atol=1e-6)
    assert dfeas.solve(X, labels, method="perceptron", intercept=False).iterations <= 1 / unit.margin_lower**2


def rays(A: np.ndarray, count: int) -> np.ndarray:
    """Some unit y (m, r) with A'y >= 0, as far out as the cone of them reaches."""
    c = np.random.default_rng(0).standard_normal((count, len(A)))
    found = np.array([linprog(each, -A.T, np.zeros(A.shape[1]), bounds=(-1, 1)).x for each in c])
    found = found[np.linalg.norm(found, axis=1) > 0.5]
    return (found / np.linalg.norm(found, axis=1)[:, None]).T


@pytest.mark.parametrize("m", [2, 5])
@pytest.mark.parametrize("name", ["rescaled-perceptron", "rescaled-perceptron-ellipsoid"])
def test_each_rescaling_widens_the_cone_by_what_its_theorem_says(name: str, m: int) -> None:
    """With D the change of coordinates, |det D| is that of a volume; no z of the cone is lengthened by more than is said."""
    margin = 1e-4
    engine, A, facts = problem("planted", m, 300, margin=margin, seed=m, dtype="float64")
    whole, looks = name.endswith("ellipsoid"), max(100, m * m)
    method = replace(METHODS[name], most=looks)  # one rescaling after a pass, at most
    separators = rays(A, 20)
    before = method.init(facts)
    for state in states(method, engine, facts, 1000):
        assert state.made <= looks + (25 * m**2 if whole else 6 * m * (m + 1) ** 2)
        assert np.linalg.norm(state.total) <= math.sqrt(state.made) + 1e-9
        seen = state.columns @ state.T
        assert (state.tally.amount / np.linalg.norm(seen, axis=1)) @ seen == pytest.approx(state.total, abs=1e-8)
        assert len(seen) <= m + 1
        assert state.most_margin >= margin
        if state.rescalings > before.rescalings:
            step, D = state.growth - before.growth, np.linalg.solve(state.T, before.T)
            z = np.linalg.solve(before.T, separators)
            longest = (np.linalg.norm(D @ z, axis=0) / np.linalg.norm(z, axis=0)).max()
            assert math.log(1.49 if whole else 1.55) <= step <= np.linalg.slogdet(D)[1] - m * math.log(longest) + 1e-6
            if not whole:  # D is I + b b', up to a factor
                least = np.linalg.svd(D)[1][-1]
                assert np.linalg.svd(D / least)[1] == pytest.approx(np.r_[2, np.ones(m - 1)])
        before = state
        if method.evidence(state).bracket.lower > 0:
            break
    assert method.evidence(state).bracket.lower > 0
    assert 0 < state.rescalings <= m * math.log1p(1 / margin) / math.log(1.49)
    assert state.corrections <= method.bound(facts, margin)


@pytest.mark.parametrize(
    ("name", "m", "margin"), [("rescaled-perceptron", 2, 1e-12), ("rescaled-perceptron-ellipsoid", 4, 1e-9)]
)
def test_a_rescaled_perceptron_separates_where_the_margin_is_tiny(name: str, m: int, margin: float) -> None:
    X, labels = dfeas.Instance("planted", m, 300, margin=margin, dtype="float64").block(0)
    result = dfeas.solve(X, labels, intercept=False, method=name, max_passes=20)
    assert (result.verdict, result.proof) == ("feasible", "rigorous")
    assert 0 < result.margin_lower <= margin * (1 + 1e-6) + 1e-15


def test_a_rescaled_perceptron_is_refused_where_its_coordinates_do_not_fit() -> None:
    X = csr_array((np.ones(40), (np.arange(40), np.arange(40) * 1000)), shape=(40, 40_000))
    with pytest.raises(dfeas.errors.UsageError, match="rescaled-perceptron needs memory='14"):
        dfeas.solve(X, np.resize([1, -1], 40), method="rescaled-perceptron")


@pytest.mark.parametrize("name", ["rescaled-perceptron"])
def test_a_rescaled_perceptron_is_the_perceptron_once_all_margins_are_refuted(name: str) -> None:
    engine, _, facts = problem("gaussian", 3, 40, dtype="float64")
    method, hopeful = METHODS[name], True
    for state in states(method, engine, facts, 3):
        evidence = method.evidence(state)
        assert hopeful or not evidence.hopeful
        hopeful = evidence.hopeful
        assert hopeful == (state.most_margin >= 1e-15)
    assert not hopeful
    assert np.array_equal(state.T, np.eye(3))
    assert np.linalg.norm(state.total) <= math.sqrt(state.made)
    assert evidence.bracket.upper <= 1 / math.sqrt(state.made)
