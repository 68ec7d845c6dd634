"""Iterated smooth perceptron - von Neumann on cones: its iterates, its inequality at every step, its certificates."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dfeas
from dfeas.cones.product import Placing, Product
from dfeas.cones.space import CONE_METHODS, ConeEngine
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.scratch import Scratch
from dfeas.engine.local import LocalEngine
from dfeas.methods.protocol import Facts
from tests.cones.making import CONE, write
from tests.cones.plain import cones_of, problem, scaled, spectrum, unit

RANK = 3 + 2 * 4 + 2 + 4 + 4 + 3
"""Of ``CONE``."""


def lengths(kind: str) -> float:
    """Squared lengths of extreme points."""
    return 2.0 if kind == "q" else 1.0


def square(x: np.ndarray) -> float:
    """The sum of the squares of the weights of an element on its extreme points."""
    return sum(float(x[rows] @ x[rows]) / lengths(kind) for kind, _, rows in cones_of(CONE))


def projected(v: np.ndarray) -> np.ndarray:
    """The nearest element of the base, by the weights of v on its extreme points, sorted."""
    parts = [(rows, *spectrum(kind, size, v[rows]), lengths(kind)) for kind, size, rows in cones_of(CONE)]
    weights = np.sort(np.concatenate([values / each for _, values, _, each in parts]))[::-1]
    sums = np.cumsum(weights) - 1
    last = np.flatnonzero(weights > sums / np.arange(1, len(weights) + 1))[-1]
    tau, p = sums[last] / (last + 1), np.zeros(len(v))
    for rows, values, points, each in parts:
        p[rows] = np.maximum(values / each - tau, 0) @ points
    return p


def prox(A: np.ndarray, y: np.ndarray, mu: float, q: np.ndarray) -> np.ndarray:
    """argmin over the base of <A*y, p> + mu times half the square of p - q."""
    v, s = q.copy(), A @ y
    for kind, _, rows in cones_of(CONE):
        v[rows] -= lengths(kind) * s[rows] / mu
    return projected(v)


def steps(A: np.ndarray, gamma: float) -> Iterator[tuple[np.ndarray, float, np.ndarray, np.ndarray, np.ndarray]]:
    """Algorithms 6 and 7 as they are printed, with elements for n-vectors and the rank for n: y_k, mu_k, its prox, p_k, q."""
    q = np.concatenate([lengths(kind) * unit(kind, size) for kind, size, _ in cones_of(CONE)]) / RANK
    while True:
        delta = np.linalg.norm(A.T @ q) / gamma
        alpha, mu, p = q, 2.0 * RANK, q
        for k in range(10**6):
            near = prox(A, A.T @ alpha, mu, q)
            p = near if k == 0 else (1 - 2 / (k + 2)) * p + 2 / (k + 2) * near
            yield A.T @ alpha, mu, near, p, q
            if np.linalg.norm(A.T @ p) < delta:
                break
            theta = 2 / (k + 3)
            alpha, mu = (1 - theta) * (alpha + theta * p) + theta**2 * near, (1 - theta) * mu
        q = p


def opened(folder: Path, X: np.ndarray) -> tuple[Any, Facts, np.ndarray]:
    """An engine on cones in several blocks, the facts, and the stored row of each row."""
    write(folder / "data", X, CONE, 12)
    dataset = open_source(Source(DataSpec(folder / "data"), cones=True))
    assert dataset.blocks > 3
    engine = ConeEngine(LocalEngine(dataset, 1, Scratch(folder / "vectors")))
    placing = Placing(Product.from_scs(CONE), 12)
    place = np.zeros(len(X), np.int64)
    place[placing.source[placing.source >= 0]] = np.flatnonzero(placing.source >= 0)
    return engine, Facts(dataset.m, dataset.rank, blocks=dataset.blocks), place


@pytest.mark.parametrize(("gamma", "margin"), [(2.0, 0.05), (2.0, None), (4.0, None)])
def test_iterates_are_those_of_the_paper_and_keep_its_gap(tmp_path: Path, gamma: float, margin: float | None) -> None:
    X = problem(np.random.default_rng(3), CONE, 4, margin)
    A = scaled(X, CONE)
    engine, facts, place = opened(tmp_path, X)
    assert facts.n == RANK
    name = "ispvn" if gamma == 2 else f"ispvn:gamma={gamma:g}"
    method, reads = CONE_METHODS[name], 0
    state, done, loops, paper = method.init(facts), 0, set(), steps(A, gamma)
    while done < 60:
        question = method.ask(state)
        before, state = state, method.tell(state, engine.run(question))
        reads += getattr(question, "points", True)
        assert reads == 1 + 2 * state.steps + (state.search is not None)
        if state.steps == done:
            continue
        y, mu, near, p, q = next(paper)
        done = state.steps
        loops.add(state.rounds)
        np.testing.assert_allclose(before.y, y, rtol=0, atol=1e-12)
        assert before.mu == pytest.approx(mu, rel=1e-12)
        found = engine.scratch.read(before.next_p, range(engine.dataset.n))
        np.testing.assert_allclose(found[place], p, rtol=0, atol=1e-12)
        np.testing.assert_allclose(state.y if state.k == 0 else state.Ap, A.T @ p, rtol=0, atol=1e-12)
        smooth = -float(y @ (A.T @ near)) - mu / 2 * square(near - q) + float(y @ y) / 2
        assert -float((A.T @ p) @ (A.T @ p)) / 2 >= smooth - 1e-12  # the excessive gap
        names = {each.removesuffix("-element") for each in engine.scratch.names}
        assert len(names) <= 5  # what is not needed any more is forgotten
    assert margin or len(loops) > 2


@pytest.mark.parametrize("seed", range(4))
def test_a_projection_is_the_nearest_of_all_elements(seed: int) -> None:
    """By the variational inequality, at elements of rank 1 that draw what the projection has and has not."""
    rng = np.random.default_rng(seed)
    v = rng.standard_normal(sum(rows.stop - rows.start for _, _, rows in cones_of(CONE))) * 10.0 ** rng.uniform(-2, 1)
    p = projected(v)
    inner = sum(float(p[rows] @ unit(kind, size)) for kind, size, rows in cones_of(CONE))
    assert inner == pytest.approx(1)
    for kind, size, rows in cones_of(CONE):
        assert spectrum(kind, size, p[rows])[0].min() >= -1e-12
    slope = np.concatenate([(p - v)[rows] / lengths(kind) for kind, _, rows in cones_of(CONE)])
    least = min(float(spectrum(kind, size, slope[rows])[0].min()) for kind, size, rows in cones_of(CONE))
    assert least >= float(slope @ p) - 1e-12  # <slope, x - p> >= 0 for every extreme point x of the base


@pytest.mark.parametrize("margin", [0.4, 0.1])
def test_an_inner_loop_ends_within_its_bound(margin: float) -> None:
    X = problem(np.random.default_rng(5), CONE, 4, margin)
    data = dfeas.from_cone_rows(X, CONE)
    best = dfeas.solve(data, margin_tolerance=1e-4)
    found = dfeas.solve(data, method="ispvn", max_passes=10**5)
    assert (found.verdict, found.proof) == ("feasible", "rigorous")
    loops = max(1, math.ceil(math.log(1 / best.margin_lower) / math.log(2)))
    assert found.passes <= 1 + 2 * loops * (1 + 2 * math.sqrt(2 * RANK) / best.margin_lower)


@pytest.mark.parametrize(
    ("margin", "eps", "verdict", "proof"), [(None, 1e-3, "infeasible", "exact"), (1e-4, 0.05, "eps-infeasible", "rigorous")]
)
def test_elements_on_scratch_storage_are_proved_and_a_run_goes_on(
    tmp_path: Path, margin: float | None, eps: float, verdict: str, proof: str
) -> None:
    X = problem(np.random.default_rng(6), CONE, 4, margin)
    write(tmp_path / "data", X, CONE, 12)
    asked: dict[str, Any] = {"method": "ispvn", "eps": eps}
    whole = dfeas.solve(tmp_path / "data", **asked)
    assert (whole.verdict, whole.proof) == (verdict, proof)
    assert dfeas.solve(tmp_path / "data", **asked, max_passes=8, out=tmp_path / "run").stopped == "pass_limit"
    again = dfeas.resume(tmp_path / "run", max_passes=10**5)
    assert (again.verdict, again.proof, again.passes) == (whole.verdict, whole.proof, whole.passes)
    assert again.margin_upper == whole.margin_upper
    assert dfeas.verify_run(tmp_path / "run").proof == whole.proof
