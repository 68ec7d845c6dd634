"""Each kernel method's guarantee at every iterate, on problems whose Gram matrix and margin are computed without it."""

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.engine.local import LocalEngine
from dfeas.errors import BadInputError
from dfeas.kernels.kernel import kernel_of
from dfeas.kernels.nearest import Matrix, nearest_of
from dfeas.kernels.space import InKernel, KernelSpace
from dfeas.methods.ispvn import Ispvn
from dfeas.methods.perceptron import KernelPerceptron
from dfeas.methods.protocol import Facts
from dfeas.methods.registry import METHODS
from dfeas.methods.snkpvn import Snkpvn, project_to_simplex
from dfeas.methods.vector import length as vector_length
from tests.kernels.making import FAMILIES, ON_ALL, Dense, Problem, dense, problem, states
from tests.methods.making import in_memory
from tests.methods.making import states as linear_states

SEPARABLE, INSEPARABLE = FAMILIES[:3], FAMILIES[3:]


def length(found: Problem, x: np.ndarray) -> float:
    return math.sqrt(max(0.0, float(x @ found.G @ x)))


START = {"mirror-prox": 1, "mirror-prox-fixed": 1, "smooth-perceptron": 2, "snkpvn": 2, "ispvn": 2}
"""Products before the first step; the smooth perceptron counts its steps from 0."""


@pytest.mark.parametrize("name", [name for name in ON_ALL if name not in ("perceptron", "mirror-prox")])
def test_one_product_a_step(name: str) -> None:
    found = problem("random labels")
    method, engine = KernelSpace(found.kernel).method(name), found.engine()
    for state in states(method, engine, found.facts, 60):
        steps = method.evidence(state).iterations
        assert engine.products == steps + START.get(name, 0) or not steps
    assert steps >= 50
    assert max(engine.columns) == (2 if name == "mirror-prox-fixed" else 1)


def test_one_product_for_many_corrections_and_for_many_trials() -> None:
    found = problem("duplicates")
    for name, columns in (("perceptron", 16), ("mirror-prox", 6)):
        method, engine = KernelSpace(found.kernel).method(name), found.engine()
        *_, state = states(method, engine, found.facts, 40)
        assert engine.products == 40
        assert max(engine.columns) == columns
        assert method.evidence(state).iterations >= 25  # few products are for trials in vain


@pytest.mark.parametrize("family", SEPARABLE)
def test_normalized_perceptron_separates_in_time_and_goes_on_to_the_margin(family: str) -> None:
    found = problem(family)
    method = KernelSpace(found.kernel).method("normalized-perceptron")
    bound = 1 / found.rho**2
    separated = False
    for state in states(method, found.engine(), found.facts, 1000):
        k, size = state.k, length(found, state.w.alpha)
        separated = separated or (found.G @ state.w.alpha).min() > 0
        assert state.w.alpha.sum() == pytest.approx(1)
        assert separated or k <= bound
        assert separated or size <= 1 / math.sqrt(k) + 1e-12
        assert found.rho - 1e-9 <= size <= found.rho + (1 + math.log(k)) / (2 * found.rho * k) + 1e-9
    assert separated


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("cap", "most"), [(1, 1), (16, 1000)])
def test_corrections_of_the_perceptron_are_mistakes_and_few(family: str, cap: int, most: int) -> None:
    found = problem(family)
    method = InKernel(KernelPerceptron(cap, most), found.kernel)
    done = False
    for state in states(method, found.engine(), found.facts, 300):
        k, alpha = state.corrections, state.total.alpha
        assert alpha.sum() == k
        assert length(found, alpha) / k <= 1 / math.sqrt(k) + 1e-12
        if found.rho:
            assert k <= 1 / found.rho**2  # Novikoff
        done = done or (found.G @ alpha).min() > 0
    assert done == bool(found.rho)


@pytest.mark.parametrize("family", FAMILIES)
def test_lemmas_1_to_3_hold_of_each_iterate(family: str) -> None:
    """A negative loss separates, no length is above the sum of the weights, and none on the simplex is below the margin."""
    found, below = problem(family), 0
    method = KernelSpace(found.kernel).method("normalized-perceptron")
    for state in states(method, found.engine(), found.facts, 120):
        alpha, bracket = state.w.alpha, method.evidence(state).bracket
        loss = -float(state.w.scores.min()) + vector_length(state.w) ** 2 / 2
        assert loss == pytest.approx(-(found.G @ alpha).min() + alpha @ found.G @ alpha / 2, abs=1e-9)
        if loss < 0:
            below += 1
            assert (found.G @ alpha).min() > 0  # Lemma 1
        assert (
            vector_length(state.w) <= np.abs(alpha).sum() * (1 + 1e-9) <= math.sqrt(len(alpha) * (alpha @ alpha)) * (1 + 2e-9)
        )
        assert loss >= -(found.rho**2) / 2 - 1e-9  # Lemma 3
        assert found.rho <= length(found, alpha) + 1e-9
        assert bracket.upper >= found.rho - 1e-9
    assert (below > 0) == (family in SEPARABLE)


def on_simplex(v: np.ndarray) -> np.ndarray:
    """The nearest point of the simplex, by bisection."""
    low, high = v.min() - 1, v.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(v - middle, 0).sum() > 1 else (low, middle)
    return np.asarray(np.maximum(v - low, 0))


def to_witnesses(q: np.ndarray) -> float:
    """How far q is from the witnesses of "duplicates": equal weights on a point and its copy, none elsewhere."""
    half = on_simplex(q[:10] + q[-10:]) / 2
    witness = np.zeros(len(q))
    witness[:10] = witness[-10:] = half
    return float(np.linalg.norm(q - witness))


def test_projections_are_the_nearest_points_of_the_simplex() -> None:
    rng = np.random.default_rng(0)
    for scale in (1e-3, 1.0, 1e3):
        v = rng.standard_normal(50) * scale
        assert np.allclose(project_to_simplex(v), on_simplex(v), atol=1e-12)


@pytest.mark.parametrize("name", ["snkpvn:lambda=n", "ispvn"])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_gap_of_lemmas_8_and_9_holds_at_every_step(name: str, family: str) -> None:
    found = problem(family)
    G, method = found.G, KernelSpace(found.kernel).method(name)
    before, seen = None, 0
    most = np.linalg.eigvalsh(G)[-1]
    for state in states(method, found.engine(), found.facts, 100):
        if before is not None and before.loop is not None and state.steps == before.steps + 1:
            loop, alpha, mu = before.loop, before.loop.y.alpha, before.loop.mu
            p = state.loop.p.alpha if state.loop.p is not None else state.loop.q  # where a new loop began
            assert mu == pytest.approx(4 * state.lambda_ / ((loop.k + 1) * (loop.k + 2)))
            best = on_simplex(loop.q - G @ alpha / mu)
            smooth = -(G @ alpha) @ best - mu / 2 * ((best - loop.q) @ (best - loop.q)) + alpha @ G @ alpha / 2
            assert -(p @ G @ p) / 2 >= smooth - 1e-9
            assert smooth >= -(G @ alpha).min() + alpha @ G @ alpha / 2 - mu - 1e-9  # Lemma 8
            if family == "duplicates":
                assert smooth >= -mu / 2 * to_witnesses(loop.q) ** 2 - 1e-9  # Lemma 9
                assert length(found, p) <= math.sqrt(mu) * to_witnesses(loop.q) + 1e-7  # both
            assert state.lambda_ >= most
            assert name == "ispvn" or state.lambda_ == len(G)
            seen += 1
        before = state
    assert seen > 3


def printed(name: str, G: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Algorithms 4 (SNKP), 6 (SNKPVN) and 7 (ISNKPVN) as they are printed: alpha_k, p_k and alpha_k+1 of each step."""
    n, entropic = len(G), name == "smooth-perceptron"
    q, lambda_ = np.full(n, 1 / n), 1.0 if entropic else float(n)

    def near(alpha: np.ndarray, mu: float) -> np.ndarray:
        if not entropic:
            return on_simplex(q - G @ alpha / mu)
        exponents = -G @ alpha / mu
        weights = np.exp(exponents - exponents.max())
        return np.asarray(weights / weights.sum())

    while True:
        alpha, mu, delta = q, 2 * lambda_, math.sqrt(q @ G @ q) / 2
        p = answer = near(alpha, mu)
        for k in range(10**6):
            theta = 2 / (k + 3)
            after = (1 - theta) * (alpha + theta * p) + theta**2 * answer
            yield alpha, p, after
            if name.startswith("ispvn") and math.sqrt(p @ G @ p) < delta:
                break
            alpha, mu = after, (1 - theta) * mu
            answer = near(alpha, mu)
            p = (1 - theta) * p + theta * answer
        q = p


@pytest.mark.parametrize("name", ["smooth-perceptron", "snkpvn:lambda=n", "ispvn:lambda=n"])
@pytest.mark.parametrize("family", SEPARABLE)
def test_iterates_are_those_of_the_paper_and_ends_are_of_all_that_is_known(name: str, family: str) -> None:
    """p_k and alpha_k+1 are tried as separators beside the paper's alpha_k, and in Algorithms 6 and 7 all as certificates."""
    found = problem(family)
    G, method, papers, best, gain, steps = found.G, KernelSpace(found.kernel).method(name), -1.0, -1.0, 0.0, 0
    paper, least = printed(name, G), 1.0
    for products, state in enumerate(states(method, found.engine(), found.facts, 80), 1):
        if products == 1:
            continue
        alpha, p, after = next(paper)
        margins = [float((G @ each).min()) / length(found, each) for each in (alpha, p, after)]
        papers, best = max(papers, margins[0]), max(best, *margins)
        shown = [p] if name == "smooth-perceptron" else [alpha, p, after]
        least = min(least, *(length(found, each) for each in shown))
        if name == "smooth-perceptron":
            known = state.y.alpha, state.Ax.alpha
            expected: tuple[np.ndarray, ...] = alpha, p
        elif state.loop.k == 0:  # the loop has ended with p_k
            known, expected = (state.loop.q,), (p,)
        else:
            known, expected = (state.loop.p.alpha, state.loop.y.alpha), (p, after)
        for mine, its in zip(known, expected, strict=True):
            np.testing.assert_allclose(mine, its, rtol=0, atol=1e-12)
        bracket = method.evidence(state).bracket
        assert (bracket.lower, bracket.upper) == (pytest.approx(best, abs=1e-11), pytest.approx(least, abs=1e-11))
        gain, steps = max(gain, best - papers), steps + 1
    assert steps == 79
    assert gain > 1e-3


@pytest.mark.parametrize("family", SEPARABLE)
def test_loops_of_theorem_4(family: str) -> None:
    found = problem(family)
    method = KernelSpace(found.kernel).method("ispvn")
    for state in states(method, found.engine(), found.facts, 3000):
        if state.loop is not None:
            assert state.loop.k <= 2 * math.sqrt(2 * state.lambda_) / found.rho + 1
            assert state.rounds <= 1 + math.log(1 / found.rho) / math.log(2) + 1
        if method.evidence(state).bracket.lower > 0:
            break
    assert method.evidence(state).bracket.lower > 0


def test_loops_shorten_by_gamma_until_rounding_and_one_loop_ends_at_delta() -> None:
    found = problem("duplicates")
    method = KernelSpace(found.kernel).method("ispvn:gamma=3")
    lengths = []
    for state in states(method, found.engine(), found.facts, 4000):
        if state.delta and state.rounds > len(lengths):
            lengths.append(length(found, state.loop.y.alpha))
        if method.evidence(state).stalled:
            break
    assert all(b < a / 3 for a, b in pairwise(lengths))
    assert lengths[-1] < 1e-7
    assert "rounding" in method.evidence(state).stalled
    single = InKernel(Snkpvn(0.01), found.kernel)
    for last in states(single, found.engine(), found.facts, 300):
        assert bool(single.evidence(last).stalled) == (last.reached < 0.01)
    assert length(found, last.loop.p.alpha) < 0.01


def test_mirror_prox_is_that_of_the_paper() -> None:
    """Three steps as Algorithm 1 prints them, with products of their own."""
    found = problem("blobs", 40)
    G, n = found.G, len(found.X)
    log_n = math.log(n)
    gamma = math.sqrt(2 / log_n)

    def ball(g: np.ndarray) -> np.ndarray:
        return g / max(1.0, length(found, g))

    def simplex(x: np.ndarray, xi: np.ndarray) -> np.ndarray:
        z = x * np.exp(-xi)
        return z / z.sum()

    vx, vg = np.full(n, 1 / n), np.zeros(n)
    sum_x, sum_g = np.zeros(n), np.zeros(n)
    for _ in range(3):
        wx, wg = simplex(vx, gamma * log_n * (G @ vg)), ball(vg + gamma / 2 * vx)
        vx, vg = simplex(vx, gamma * log_n * (G @ wg)), ball(vg + gamma / 2 * wx)
        sum_x, sum_g = sum_x + gamma * wx, sum_g + gamma * wg
    *_, state = states(KernelSpace(found.kernel).method("mirror-prox-fixed"), found.engine(), found.facts, 4)
    for vector, expected in ((state.Av, vx), (state.v, vg), (state.Ax_sum, sum_x), (state.g, log_n * sum_g)):
        assert np.allclose(vector.alpha, expected, atol=1e-12)
        assert np.allclose(vector.scores, G @ expected, atol=1e-11)


LINEAR = {
    "normalized-perceptron": (20, 20, lambda linear, kernel: (linear.w, kernel.w)),
    "von-neumann": (20, 20, lambda linear, kernel: (linear.w, kernel.w)),
    "smooth-perceptron": (20, 20, lambda linear, kernel: (linear.Ax, kernel.Ax)),
    "mirror-prox-fixed": (10, 10, lambda linear, kernel: (linear.Ax_sum, kernel.Ax_sum)),
    "mirror-prox": (10, 10, lambda linear, kernel: (linear.Ax_sum, kernel.Ax_sum)),
}
"""Passes of the linear method, products of its twin, and what must be the same vector then."""


@pytest.mark.parametrize("name", LINEAR)
def test_with_the_linear_kernel_a_method_is_its_linear_twin(name: str) -> None:
    found = problem("linear, no margin")
    columns = (found.X * found.labels[:, None] / np.linalg.norm(found.X, axis=1)[:, None]).T
    engine, facts = in_memory(columns)
    passes, products, same = LINEAR[name]
    *_, linear = linear_states(METHODS[name], engine, facts, passes)
    *_, kernel = states(KernelSpace(found.kernel).method(name), found.engine(), found.facts, products)
    expected, vector = same(linear, kernel)
    assert np.allclose(columns @ vector.alpha, expected, atol=1e-9)
    assert np.allclose(vector.scores, columns.T @ expected, atol=1e-9)


def test_with_the_linear_kernel_loops_end_where_those_of_the_linear_twin_do() -> None:
    found = problem("linear, no margin")
    columns = (found.X * found.labels[:, None] / np.linalg.norm(found.X, axis=1)[:, None]).T
    engine, facts = in_memory(columns)
    rounds: list[dict[int, int]] = [{}, {}]
    for state in linear_states(Ispvn(gram_features=0), engine, facts, 600):
        rounds[0][state.rounds] = state.steps
    for state in states(KernelSpace(found.kernel).method("ispvn"), found.engine(), found.facts, 200):
        rounds[1][state.rounds] = state.steps
    shared = min(len(rounds[0]), len(rounds[1])) - 1
    assert shared >= 3
    assert [rounds[0][i] for i in range(1, shared)] == [rounds[1][i] for i in range(1, shared)]


@pytest.mark.parametrize("name", ON_ALL)
def test_one_point_two_equal_and_two_opposite_points(name: str) -> None:
    for points, labels, feasible in (
        ([[1.0, 2.0]], [1], True),
        ([[1.0, 2.0]] * 2, [1, 1], True),
        ([[1.0, 2.0]] * 2, [1, -1], False),
    ):
        X, signs = np.array(points), np.array(labels)
        G = np.outer(signs, signs).astype(np.float64)
        found = Problem(kernel_of("rbf", 1.0)[0], X, signs, G, float(feasible))
        method = KernelSpace(found.kernel).method(name)
        *_, state = states(method, found.engine(), found.facts, 40)
        bracket = method.evidence(state).bracket
        assert bracket.lower > 0.9 if feasible else bracket.upper < 0.2


@pytest.mark.parametrize("name", ON_ALL)
def test_single_precision_claims_no_more_than_it_can_tell(name: str, dataset: Callable[..., Any]) -> None:
    path, _ = dataset("one-flip", 4, 300, dtype="float32")
    opened = open_source(Source(DataSpec(path, intercept=False)))
    kernel = kernel_of("linear")[0]
    method, engine = KernelSpace(kernel).method(name), LocalEngine(opened, 1)
    for state in states(method, engine, Facts(4, 300, itemsize=4), 40):
        bracket = method.evidence(state).bracket
        assert bracket.lower <= 1e-6
        assert bracket.upper >= 2.0**-11


@pytest.mark.parametrize(("seed", "tolerance"), [(0, None), (1, 0.01)])
def test_few_points_tell_both_ends_of_the_bracket_of_all(seed: int, tolerance: float | None) -> None:
    """x has length 1 and scores all points at least as said, and the hull of the few has a point as near to zero as said."""
    X = np.random.default_rng(seed).standard_normal((900, 3))
    labels = np.where((X**2).sum(axis=1) > 2.4, 1.0, -1.0)
    kernel = kernel_of("rbf", gamma=1.0)[0]
    G = dense(kernel, X, labels.astype(np.int64))
    found = nearest_of(Matrix(kernel), X, labels, None, tolerance)
    again = nearest_of(Matrix(kernel), X, labels, found.x / found.low, tolerance)
    for each in (found, again):
        assert each.x @ G @ each.x == pytest.approx(1)
        assert (G @ each.x).min() == pytest.approx(each.low, rel=1e-6)
        assert each.weight.min() >= 0
        assert each.weight.sum() == pytest.approx(1)
        assert math.sqrt(each.weight @ G @ each.weight) == pytest.approx(each.upper, rel=1e-6)
        assert 0 < (1 - (0.05 if tolerance is None else tolerance / 4)) * each.upper <= each.low <= each.upper


def test_a_conflict_of_few_points_is_one_of_all() -> None:
    X = np.repeat(np.random.default_rng(0).standard_normal((200, 2)), 2, axis=0)
    found = nearest_of(Matrix(kernel_of("rbf", gamma=0.3)[0]), X, np.tile([1.0, -1.0], 200), None, None)
    assert not found.separates
    assert found.upper < 1e-5


@pytest.mark.parametrize("name", ON_ALL)
def test_a_kernel_that_is_none_is_said_with_a_number(name: str) -> None:
    found = problem("blobs")
    G = -found.G + 2 * np.eye(60)  # ones on the diagonal, and symmetric
    method, engine = KernelSpace(found.kernel).method(name), Dense(G, found.labels)
    with pytest.raises(BadInputError, match=r"not positive definite: .* has a squared length of -"):
        list(states(method, engine, found.facts, 60))
