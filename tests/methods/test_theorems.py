"""Each method's guarantee at every iterate, on instances whose margin is known; exact pass counts; purity of states."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.methods.mirror_prox import CONSTANT, TWO, CrossPolytope, EuclideanBall, MirrorProx, Steps
from dfeas.methods.mirror_prox_one_pass import FIVE, OnePassMirrorProx
from dfeas.methods.protocol import Facts
from dfeas.methods.registry import METHODS
from dfeas.methods.smooth_perceptron import SmoothPerceptron
from dfeas.records import replace
from tests.methods.making import FAMILIES, engine_of, problem, states


@pytest.mark.parametrize(("kind", "options"), FAMILIES, ids=str)
def test_smooth_perceptron_keeps_the_excessive_gap(kind: str, options: dict[str, Any]) -> None:
    engine, A, facts = problem(kind, 8, 300, dtype="float64", **options)
    n = facts.n
    for state in states(SmoothPerceptron(), engine, facts, 120):
        if not state.answers:
            continue
        k = state.step
        assert state.mu == pytest.approx(4 / ((k + 1) * (k + 2)))
        exponents = -(A.T @ state.y) / state.mu
        lse = exponents.max() + math.log(np.exp(exponents - exponents.max()).sum())
        smooth = state.mu * (lse - math.log(n)) + state.y @ state.y / 2
        assert smooth <= -(state.Ax @ state.Ax) / 2 + 1e-10  # Lemma 5
        every = state.average.softmaxes
        assert sum(each.weight for each in every) == pytest.approx((k + 1) * (k + 2))
        assert np.allclose(sum(each.weight * each.mean for each in every) / ((k + 1) * (k + 2)), state.Ax, atol=1e-12)
        if kind in ("gaussian", "one-flip"):
            assert np.linalg.norm(state.Ax) <= 2 * math.sqrt(2 * math.log(n)) / (k + 1) + 1e-9


@given(st.integers(2, 12), st.integers(10, 300), st.sampled_from([0.3, 0.1, 0.03]), st.integers(0, 999))
@settings(max_examples=15)
def test_smooth_perceptron_separates_within_its_bound(m: int, n: int, margin: float, seed: int) -> None:
    engine, _, facts = problem("planted", m, n, margin=margin, seed=seed, dtype="float64")
    method = SmoothPerceptron()
    bound = 2 * math.sqrt(2 * math.log(n)) / margin
    for state in states(method, engine, facts, math.ceil(bound) + 3):
        if method.evidence(state).bracket.lower > 0:
            break
    assert method.evidence(state).bracket.lower > 0
    assert state.step <= bound
    assert engine.passes == state.step + 2  # y_0, Ax_0, then one a step


@pytest.mark.parametrize(("kind", "options"), FAMILIES, ids=str)
@pytest.mark.parametrize("rule", [CONSTANT, Steps(), TWO], ids=["fixed", "adaptive", "two"])
def test_mirror_prox_keeps_its_gap(kind: str, options: dict[str, Any], rule: Any) -> None:
    engine, A, facts = problem(kind, 8, 300, dtype="float64", **options)
    fixed = rule is CONSTANT
    for state in states(MirrorProx(rule), engine, facts, 61):
        if not state.steps:
            continue
        t, gamma = state.steps, math.sqrt(2 / math.log(facts.n))
        average, Ax = state.g / state.log_n / state.weight, state.Ax_sum / state.weight
        gap = np.linalg.norm(Ax) - (A.T @ average).min()
        assert gap <= 2 / state.weight + 1e-9
        if fixed:
            assert state.weight == pytest.approx(t * gamma)
            assert gap <= math.sqrt(2 * math.log(facts.n)) / t + 1e-9
            assert engine.passes == 1 + t


@pytest.mark.parametrize("method", [MirrorProx, OnePassMirrorProx])
def test_steps_of_one_over_l_pass_the_test_of_the_adaptive_rule(method: Any) -> None:
    seen = []

    class Watching(Steps):
        def accept(self, excess: float, gamma: float) -> bool:
            seen.append(excess)
            return True

    engine, _, facts = problem("halfspace", 8, 300, dtype="float64")
    list(states(method(Watching((1 + 1e-9,))), engine, facts, 101))  # steps of 1/L itself are not tested any more
    assert len(seen) == 100
    assert max(seen) <= 1e-9


@pytest.mark.parametrize(("kind", "options"), FAMILIES[1::2], ids=str)
@pytest.mark.parametrize("rule", [CONSTANT, FIVE, TWO], ids=["fixed", "adaptive", "two"])
@pytest.mark.parametrize(
    ("ball", "norm", "dtype"),
    [(EuclideanBall(), 2, "float32"), (CrossPolytope(), 1, "float64")],
    ids=["ball", "two simplices"],
)
def test_mirror_prox_in_one_pass_keeps_its_gap(
    kind: str, options: dict[str, Any], rule: Any, ball: EuclideanBall, norm: int, dtype: str
) -> None:
    engine, A, facts = problem(kind, 8, 300, dtype=dtype, **options)
    omega = 0.5 if norm == 2 else math.log(2 * 8)
    safe = 1 / math.sqrt(omega * math.log(facts.n))
    for state in states(OnePassMirrorProx(rule, ball=ball), engine, facts, 90):
        if not state.steps:
            continue
        average, Ax = state.g / state.log_n / state.weight, state.Ax_sum / state.weight
        assert np.linalg.norm(average, norm) <= 1 + 1e-12
        gap = np.linalg.norm(Ax, 2 if norm == 2 else np.inf) - (A.T @ average).min()
        assert gap <= 2 / state.weight + 1.1e-6
        if rule is CONSTANT:
            assert state.weight == pytest.approx(state.steps * safe)
            assert gap <= 2 * math.sqrt(omega * math.log(facts.n)) / state.steps + 1e-6
            assert engine.passes == 1 + state.steps
        else:  # refused trials are paid for by the long steps before them
            gap = 1.001 * max(b / a for a, b in pairwise(rule.factors))
            assert state.gamma >= safe / gap
            assert engine.passes <= 1 + gap * state.weight / safe


def test_smooth_winnow_is_a_game_on_two_simplices() -> None:
    """Four steps with weights of n points and of 2 m features, those of A and their negatives."""
    engine, A, facts = problem("halfspace", 5, 60, dtype="float64")
    both, log_n, log_m = np.vstack([A, -A]), math.log(60), math.log(10)
    gamma = 1 / math.sqrt(log_n * log_m)
    x = last = np.full(60, 1 / 60)
    u, sum_x, sum_u = np.full(10, 0.1), np.zeros(60), np.zeros(10)
    for _ in range(4):
        u = u * np.exp(gamma * log_m * (both @ (2 * x - last)))
        u /= u.sum()
        z = x * np.exp(-gamma * log_n * (both.T @ u))
        last, x = x, z / z.sum()
        sum_x, sum_u = sum_x + x, sum_u + u
    *_, state = states(OnePassMirrorProx(CONSTANT, ball=CrossPolytope()), engine, facts, 5)
    assert np.allclose(state.Ax_sum, gamma * (A @ sum_x), atol=1e-12)
    assert np.allclose(state.g / log_n, gamma * (sum_u[:5] - sum_u[5:]), atol=1e-12)


def test_mirror_prox_in_one_pass_holds_the_softmaxes_of_the_papers() -> None:
    """Four steps with n-vectors: y from the extrapolated x, x from the new y."""
    engine, A, facts = problem("halfspace", 5, 60, dtype="float64")
    log_n = math.log(facts.n)
    gamma = math.sqrt(2 / log_n)
    x = last = np.full(facts.n, 1 / facts.n)
    y, sum_x, sum_y = np.zeros(5), np.zeros(facts.n), np.zeros(5)
    for _ in range(4):
        y = y + gamma / 2 * (A @ (2 * x - last))
        y /= max(1.0, float(np.linalg.norm(y)))
        z = x * np.exp(-gamma * log_n * (A.T @ y))
        last, x = x, z / z.sum()
        sum_x, sum_y = sum_x + x, sum_y + y
    *_, state = states(OnePassMirrorProx(CONSTANT), engine, facts, 5)
    assert np.allclose(state.Ax_sum, gamma * (A @ sum_x), atol=1e-12)
    assert np.allclose(state.g / log_n, gamma * sum_y, atol=1e-12)


@pytest.mark.parametrize(("method", "few"), [(MirrorProx(), 5), (OnePassMirrorProx(), 4)])
def test_fewer_steps_are_tried_where_answers_of_two_threads_take_more_than_a_quarter_of_memory(method: Any, few: int) -> None:
    engine, _, facts = problem("halfspace", 8, 300, dtype="float64")
    level = 2 * facts.sums(7)
    for memory, asked in ((level, 7), (level - 1, few), (1, few)):
        some = replace(facts, memory=memory)
        *_, state = states(method, engine, some, 5)
        assert method.cost(some).asked == method.ask(state).Y.shape[1] == asked
        assert method.bound(some, 0.01) >= method.bound(replace(facts, memory=level), 0.01)


def test_adaptive_steps_do_not_collapse_in_single_precision() -> None:
    """Far out the KL of a step is all rounding in float32; steps of 1/L need no test."""
    for method in (MirrorProx(), OnePassMirrorProx()):
        engine, _, facts = problem("planted", 8, 300, margin=0.1, dtype="float32")
        *_, state = states(method, engine, facts, 250)
        assert state.gamma >= math.sqrt(2 / math.log(facts.n)) / 1.72


def test_mirror_prox_holds_the_softmaxes_of_the_paper() -> None:
    """Two steps with n-vectors, as Algorithm 1 prints them, against two steps with m-vectors."""
    engine, A, facts = problem("halfspace", 5, 60, dtype="float64")
    log_n = math.log(facts.n)
    gamma, ax, ay = math.sqrt(2 / log_n), 1 / log_n, 2.0

    def ball(y: np.ndarray) -> np.ndarray:
        return y / max(1.0, float(np.linalg.norm(y)))

    def simplex(x: np.ndarray, xi: np.ndarray) -> np.ndarray:
        z = x * np.exp(-xi)
        return z / z.sum()

    vx, vy = np.full(facts.n, 1 / facts.n), np.zeros(5)
    mean_x, mean_y = np.zeros(facts.n), np.zeros(5)
    for _ in range(2):
        wx, wy = simplex(vx, gamma / ax * (A.T @ vy)), ball(vy + gamma / ay * (A @ vx))
        vx, vy = simplex(vx, gamma / ax * (A.T @ wy)), ball(vy + gamma / ay * (A @ wx))
        mean_x, mean_y = mean_x + wx / 2, mean_y + wy / 2
    *_, state = states(MirrorProx(CONSTANT), engine, facts, 3)
    assert np.allclose(state.g / state.log_n / state.weight, mean_y, atol=1e-12)
    assert np.allclose(state.Ax_sum / state.weight, A @ mean_x, atol=1e-12)
    assert np.allclose(state.v, vy, atol=1e-12)
    assert np.allclose(state.Av, A @ vx, atol=1e-12)


@pytest.mark.parametrize("name", METHODS)
def test_one_point_two_equal_and_two_opposite_points(name: str) -> None:
    for points, feasible in (([[3.0, 4.0]], True), ([[1.0, 2.0]] * 2, True), ([[1.0, 2.0], [-1.0, -2.0]], False)):
        X = np.array(points)
        method = METHODS[name]
        state = method.init(Facts(2, len(X)))
        engine = engine_of(open_source(Source(DataSpec(X))))
        for _ in range(3 if name == "perceptron" else 10 if name.startswith("rescaled") else 15 if feasible else 30):
            state = method.tell(state, engine.run(method.ask(state)))
        bracket = method.evidence(state).bracket
        assert bracket.lower > 0.9 if feasible else bracket.upper < 0.2
