"""Iterated smooth perceptron - von Neumann: its inequality at every step, its projections, its scratch storage."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dfeas.methods.ispvn import Ispvn
from dfeas.methods.registry import METHODS
from tests.methods.making import FAMILIES, Counting, problem, states


def vector(engine: Counting, name: str, n: int) -> np.ndarray:
    """What lies on scratch storage."""
    return np.asarray(engine.inner.scratch.read(name, range(n)))


def projected(v: np.ndarray) -> np.ndarray:
    """The nearest point of the simplex, by sorting."""
    order = np.sort(v)[::-1]
    sums = np.cumsum(order) - 1
    last = np.flatnonzero(order > sums / np.arange(1, len(v) + 1))[-1]
    return np.asarray(np.maximum(v - sums[last] / (last + 1), 0))


@pytest.mark.parametrize(("kind", "options"), FAMILIES, ids=str)
def test_the_excessive_gap_holds_at_every_step(kind: str, options: dict[str, Any]) -> None:
    name, gamma = ("ispvn", 2.0) if kind in ("halfspace", "one-flip") else ("ispvn:gamma=4.5:lambda=n", 4.5)
    engine, A, facts = problem(kind, 6, 200, dtype="float64", block_rows=70, **options)
    n, seen = facts.n, 0
    method = METHODS[name]
    before = None
    for state in states(method, engine, facts, 110):
        if before is not None and state.steps == before.steps + 1:
            # p_k was found for y_k and mu_k of the state before
            y, mu = before.y, before.mu
            q = vector(engine, before.q, n) if before.q else np.full(n, 1 / n)
            p = vector(engine, before.next_p, n)
            assert p.sum() == pytest.approx(1, abs=1e-10)
            assert (p >= 0).all()
            best = projected(q - A.T @ y / mu)
            smooth = -(A.T @ y) @ best - mu / 2 * ((best - q) @ (best - q)) + y @ y / 2
            assert -((A @ p) @ (A @ p)) / 2 >= smooth - 1e-10
            # the paper's recursion with n-vectors
            share = 1.0 if before.k == 0 else 2 / (before.k + 2)
            last = vector(engine, before.p, n) if before.p and engine.inner.scratch.has(before.p) else None
            if before.k == 0 or last is not None:
                expected = best if before.k == 0 else (1 - share) * last + share * best
                assert np.allclose(p, expected, atol=1e-9)
            assert before.mu == pytest.approx(4 * state.lambda_ / ((before.k + 1) * (before.k + 2)))
            assert state.lambda_ >= np.linalg.norm(A, 2) ** 2 * (1 - 1e-12)
            assert (state.lambda_ == n) == name.endswith("lambda=n")
            if state.q and before.q != state.q:
                assert state.delta == pytest.approx(np.linalg.norm(A @ vector(engine, state.q, n)) / gamma)
            seen += 1
        before = state
    assert seen > 15


@given(
    st.integers(2, 8), st.integers(10, 120), st.sampled_from([0.5, 0.2, 0.1]), st.sampled_from([1.5, 2, 4]), st.integers(0, 999)
)
@settings(max_examples=8)
def test_an_inner_loop_ends_within_its_bound(m: int, n: int, margin: float, gamma: float, seed: int) -> None:
    engine, _, facts = problem("planted", m, n, margin=margin, seed=seed, dtype="float64")
    method = METHODS[f"ispvn:gamma={gamma}"]
    for state in states(method, engine, facts, 10**6):
        if state.lambda_:
            assert state.k <= 2 * math.sqrt(2 * state.lambda_) / margin + 1
        if method.evidence(state).bracket.lower > 0:
            break
    assert method.evidence(state).bracket.lower > 0
    assert engine.passes <= method.bound(facts, margin)


@pytest.mark.parametrize(
    ("kind", "options", "lower", "upper"),
    [("planted", {"margin": 0.3}, (0, 0.3), 1), ("gaussian", {}, (-1, 0), 0.02), ("one-flip", {"margin": 0.1}, (-1, 0), 0.02)],
)
def test_one_loop_ends_with_a_separator_or_at_its_delta(
    kind: str, options: dict[str, Any], lower: tuple[float, float], upper: float
) -> None:
    engine, _, facts = problem(kind, 6, 200, dtype="float64", **options)
    method = METHODS["snkpvn:delta=0.02"]
    for state in states(method, engine, facts, 20_000):
        evidence = method.evidence(state)
        if evidence.bracket.lower > 0 or evidence.stalled:
            break
    assert state.rounds == 1  # around 1 / n
    assert engine.passes <= method.bound(facts, 0.02)
    assert lower[0] < evidence.bracket.lower <= lower[1]
    assert evidence.bracket.upper <= upper
    assert evidence.stalled == ("" if kind == "planted" else "|Ax| is below delta = 0.02, which is where it ends")


def test_two_reads_a_step_and_one_at_the_start() -> None:
    engine, _, facts = problem("one-flip", 6, 300, margin=0.1, dtype="float64")
    method = Ispvn()
    for state in states(method, engine, facts, 400):
        reads = 1 + 2 * state.steps + (state.search is not None)
        assert engine.passes == reads
    assert state.steps > 40


def test_what_is_not_needed_any_more_is_forgotten() -> None:
    engine, _, facts = problem("one-flip", 6, 300, margin=0.1, dtype="float64")
    for state in states(Ispvn(), engine, facts, 300):
        found = {path.name.removesuffix(".f64") for path in engine.inner.scratch.folder.glob("*.f64")}
        assert len(found) <= 5
        assert {name for name in (state.q, state.p, state.best) if name} <= found


def test_rounds_halve_the_length_of_Ap() -> None:
    engine, _, facts = problem("gaussian", 6, 300, dtype="float64")
    lengths = []
    for state in states(Ispvn(), engine, facts, 200):
        if state.k == 0 and state.rounds > len(lengths):
            lengths.append(float(np.linalg.norm(state.y)))
    assert len(lengths) > 3
    assert all(b < a / 2 for a, b in pairwise(lengths))
