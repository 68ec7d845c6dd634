"""von Neumann's algorithm: 1 / |w|^2 grows by one a step, with away steps in every step that drops nothing."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from dfeas.methods.protocol import Facts
from dfeas.methods.von_neumann import VonNeumann
from tests.methods.making import FAMILIES, best_margin, in_memory, problem, states


@pytest.mark.parametrize(("kind", "options"), FAMILIES, ids=str)
@pytest.mark.parametrize("away", [False, True])
def test_w_is_as_short_as_its_theorem_says_until_there_is_a_separator(kind: str, options: dict[str, Any], away: bool) -> None:
    engine, A, facts = problem(kind, 8, 300, dtype="float64", **options)
    method = VonNeumann(away)
    before, drops = 0.0, 0
    for t, state in enumerate(states(method, engine, facts, 150), 1):
        assert engine.passes == t
        x = np.zeros(facts.n)
        x[state.p.index] = state.p.amount
        assert x.sum() == pytest.approx(1, abs=1e-12)
        assert (x >= 0).all()
        assert np.allclose(A @ x, state.w, atol=1e-12)
        if method.evidence(state).bracket.lower > 0:
            break
        inverse = 1 / max(1e-300, float(state.w @ state.w))
        if inverse < before + 1 - 1e-9:
            drops += 1
        before = inverse
        assert drops <= t / 2 if away else drops == 0
        assert np.linalg.norm(state.w) <= math.sqrt((2 if away else 1) / t) + 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_w_shrinks_at_each_step_by_what_a_ball_in_the_hull_makes_of_it(seed: int) -> None:
    A = np.random.default_rng(seed).standard_normal((3, 10 * (seed + 2)))
    A /= np.linalg.norm(A, axis=0)
    radius = -ConvexHull(A.T).equations[:, -1].max()
    assert radius > 0.2, "the origin is in the hull"
    engine, facts = in_memory(A)
    steps = math.ceil(2 * math.log(1e6) / radius**2)
    lengths = [float(np.linalg.norm(state.w)) for state in states(VonNeumann(), engine, facts, steps + 1)]
    for before, after in pairwise(lengths):
        assert after <= math.sqrt(1 - radius**2) * before + 1e-12
    assert lengths[-1] <= 1e-6


@given(st.integers(2, 12), st.integers(10, 200), st.sampled_from([0.3, 0.1, 0.03]), st.integers(0, 999), st.booleans())
@settings(max_examples=15)
def test_it_separates_within_its_bound(m: int, n: int, margin: float, seed: int, away: bool) -> None:
    engine, A, facts = problem("planted", m, n, margin=margin, seed=seed, dtype="float64")
    method = VonNeumann(away)
    for state in states(method, engine, facts, math.floor(method.bound(facts, margin)) + 1):
        if method.evidence(state).bracket.lower > 0:
            break
    bracket = method.evidence(state).bracket
    assert bracket.lower > 0
    assert (A.T @ bracket.y).min() == pytest.approx(bracket.lower, abs=1e-12)


@pytest.mark.parametrize("seed", [0, 3])
def test_away_steps_reach_the_maximum_margin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((4, 40))
    A *= np.sign(A[0] + 0.1 * A[1])
    A /= np.linalg.norm(A, axis=0)
    engine, facts = in_memory(A)
    method = VonNeumann(away=True)
    for state in states(method, engine, facts, 4000):
        if method.evidence(state).stalled:
            break
    bracket = method.evidence(state).bracket
    near = 1e-6 if method.evidence(state).stalled else 1e-2  # it converges linearly, at a rate that data may make small
    assert bracket.lower == pytest.approx(best_margin(A), rel=near)
    assert bracket.upper == pytest.approx(best_margin(A), rel=near)


def test_memory_bounds_the_columns_that_are_kept() -> None:
    engine, A, facts = problem("gaussian", 4, 400, dtype="float64")
    method = VonNeumann(away=True)
    tight = Facts(facts.m, facts.n, memory=1)
    for state in states(method, engine, tight, 60):
        assert len(state.columns) == len(state.p.index) <= tight.m + 2
        assert np.allclose(A[:, state.p.index] @ state.p.amount, state.w, atol=1e-9)
