"""Levels eliminated: against the partition of the dense points, and with evidence that the checker proves."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dfeas
from dfeas.analysis.separation import NAME
from dfeas.exact.dyadic import common
from dfeas.exact.echelon import IntegerEntries, exponents, rank, units
from dfeas.exact.integers import independent
from dfeas.run.exact import effects, search
from dfeas.run.exact.effects import decide_effects, peel_levels
from dfeas.run.exact.levels import Levels
from dfeas.run.exact.partition import partition
from dfeas.run.exact.search import Face, decide_levels
from dfeas.verify.separation import COMPLETE, OVERLAP, QUASI
from tests.run.making import run_until


def table(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """One to three groups of levels, in full or without the first, and regressors; outcomes by chance or by a threshold."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 60))
    parts = []
    for _ in range(int(rng.integers(1, 4))):
        levels = int(rng.integers(2, 12))
        parts.append((rng.integers(0, levels, n)[:, None] == np.arange(int(rng.integers(0, 2)), levels)).astype(float))
    regressors = rng.integers(-3, 4, (n, int(rng.integers(0, 4)))).astype(float)
    if seed % 3 == 1:
        regressors *= 2.0 ** rng.integers(-40, 40, regressors.shape[1])
    if seed % 3 == 2:
        regressors += rng.standard_normal(regressors.shape).round(2)
    X = np.hstack([*parts, regressors, np.zeros((n, seed % 2)), np.ones((n, int(rng.integers(0, 2))))])
    X[rng.random(n) < 0.1] *= -1
    y = rng.integers(0, 2, n) * 2 - 1
    if rng.random() < 0.5:
        score = X @ rng.normal(size=X.shape[1])
        y = np.where(score > np.median(score), 1, -1)
        y[rng.integers(n)] *= int(rng.integers(0, 2)) * 2 - 1
    return X, y


def require_right(signed: np.ndarray, face: Face, few: tuple[np.ndarray, np.ndarray]) -> None:
    """The face is that of the partition of the dense points, with evidence, and few of them are a conflict."""
    whole, exponent = common(signed)
    beyond = partition(whole).beyond
    assert face.kind == (COMPLETE if beyond.all() else QUASI if beyond.any() else OVERLAP)
    if face.y is not None:
        score = whole @ (face.y << (exponent - exponent.min()).astype(object))
        assert ((score > 0) == beyond).all()
        assert not score[~beyond].any()
        assert face.on == (~beyond).sum()
    if len(face.support):
        for support, weights in ((face.support, face.weights), few):
            assert (weights > 0).all()
            assert not (weights @ whole[support]).any()
        assert len(independent(whole[face.support])) == face.rank
    else:
        assert face.kind != OVERLAP
    if face.kind == OVERLAP:
        assert face.rank == len(independent(whole))
        assert len(independent(face.flat.T)) == signed.shape[1] - face.rank
        assert not (whole @ (face.flat << (exponent - exponent.min()).astype(object)[:, None])).any()


@given(st.integers(0, 100_000))
@example(1)
@settings(max_examples=20)
def test_levels_are_decided_as_the_dense_points_are(seed: int) -> None:
    X, y = table(seed)
    signed = X * y[:, None]
    levels = Levels.of(sp.csr_array(signed))
    assert levels is not None
    decided = decide_levels(levels)
    assert decided is not None
    require_right(signed, *decided)


@pytest.mark.parametrize(("beside", "seeds"), [(-1, range(60)), (1000, range(200, 230))])
def test_effects_are_decided_as_the_dense_points_are(beside: int, seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effects, "MOST_BESIDE", beside)
    undecided, peeled = 0, 0
    for seed in seeds:
        X, y = table(seed)
        signed = X * y[:, None]
        decided = decide_effects(sp.csr_array(signed))
        if decided is None:
            assert Levels.of(sp.csr_array(signed)[peel_levels(sp.csr_array(signed))[0]]) is None
            undecided += 1
            continue
        peeled += peel_levels(sp.csr_array(signed))[1] is not None
        require_right(signed, *decided)
    assert undecided < 0.05 * len(seeds)
    assert peeled > 0.3 * len(seeds)


def test_two_effects_of_many_levels_take_no_solve() -> None:
    rng = np.random.default_rng(0)
    f, g, y = rng.integers(0, 500, 5_000), rng.integers(0, 400, 5_000), rng.random(5_000) < 0.1
    dummies = [sp.csr_array((np.ones(5_000), (np.arange(5_000), code)), shape=(5_000, code.max() + 1)) for code in (f, g)]
    separated = dfeas.separation(sp.hstack(dummies, format="csr"), y.astype(int), intercept=True)
    left = np.ones(5_000, bool)
    for _ in range(50):  # levels of zeros only leave, and those that come of it: most rows, while all ones stay
        for code in (f, g):
            left &= (np.bincount(code[left & y], minlength=500) > 0)[code]
    assert (separated.kind, separated.proof, separated.result.method) == (QUASI, "exact", NAME)
    assert y.sum() <= separated.on <= left.sum()


@given(st.integers(0, 100_000))
@settings(max_examples=25)
def test_sparse_integers_are_those_of_dense_points(seed: int) -> None:
    X, y = table(seed)
    points, whole = sp.csr_array(X * y[:, None]), common(X * y[:, None])[0]
    entries = IntegerEntries.of(points, exponents(points))
    assert (entries.dense(np.arange(len(X))) == whole).all()
    assert (entries.sum(y.astype(object)) == y.astype(object) @ whole).all()
    weights = np.arange(X.shape[1]).astype(object) ** 30
    assert (entries.times(weights) == whole @ weights).all()
    assert rank(points) == len(independent(whole))
    chosen = X[:, units(points)]
    assert set(np.unique(chosen)) <= {-1.0, 0.0, 1.0}
    assert (np.count_nonzero(chosen, axis=1) <= 1).all()


def panel(kind: str, rows: int, firms: int, seed: int = 0) -> tuple[sp.csr_array, np.ndarray]:
    """Firms and years in full, age and a measurement, in CSR."""
    rng = np.random.default_rng(seed)
    firm, year = rng.permutation(np.arange(rows) % firms), rng.integers(0, 10, rows)
    regressors = np.column_stack([rng.integers(18, 80, rows), rng.standard_normal(rows).round(2)])
    effect = rng.normal(0, 1, firms)[firm] + regressors @ [0.02, 0.5]
    y = rng.random(rows) < 0.5
    order = np.argsort(firm, kind="stable")
    first = np.flatnonzero(np.diff(firm[order], prepend=-1))
    y[order[first]], y[order[first + 1]] = True, False
    if kind == QUASI:
        y = np.where(firm % 3 == 0, firm % 2 == 0, y)
    if kind == COMPLETE:
        y = effect > np.median(effect)
    dummies = [sp.csr_array((np.ones(rows), (np.arange(rows), code)), shape=(rows, code.max() + 1)) for code in (firm, year)]
    return sp.hstack([*dummies, sp.csr_array(regressors)], format="csr"), y.astype(int)


@pytest.mark.parametrize("kind", [OVERLAP, QUASI, COMPLETE])
def test_a_table_of_many_levels_takes_no_solve(kind: str) -> None:
    X, y = panel(kind, 6_000, 600)
    separated = dfeas.separation(X, y, intercept=True)
    assert (separated.kind, separated.proof, separated.result.method) == (kind, "exact", NAME)
    assert separated.result.verdict == ("feasible" if kind == COMPLETE else separated.result.verdict)
    assert separated.on == (sum(np.diff(X[:, :600].tocsc().indptr)[np.arange(600) % 3 != 0]) if kind == QUASI else 0)
    if kind == OVERLAP:
        assert (separated.rank, len(separated.flat)) == (611, 2)


def test_its_folder_is_proved_again(tmp_path: Path) -> None:
    X, y = panel(QUASI, 2_000, 300)
    dfeas.ingest(X, tmp_path / "data", y=y)
    separated = dfeas.separation(tmp_path / "data", intercept=True, out=tmp_path / "run")
    assert separated.result.method == NAME
    proved = dfeas.verify_run(tmp_path / "run").separation
    assert proved is not None
    assert (proved.kind, proved.proof) == (QUASI, "exact")


def test_guesses_of_the_first_pairs_need_not_be_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "LEAST", 1)
    monkeypatch.setattr(search, "FIRST", 0)
    monkeypatch.setattr(search, "TAKEN", 1)
    for kind in (OVERLAP, QUASI, COMPLETE):
        X, y = panel(kind, 500, 60)
        levels = Levels.of(sp.csr_array(X * np.where(y, 1.0, -1.0)[:, None]))
        assert levels is not None
        decided = decide_levels(levels)
        assert decided is not None
        assert decided[0].kind == kind
        assert decided[0].reads > 2


def test_a_search_that_memory_does_not_hold_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "HELD", 10)
    undecided = dfeas.separation([[1.0, 1.0], [1.0, 2.0], [3.0, 1.0], [1.0, 1.0]], [0, 1, 1, 1])
    assert undecided.kind is None
    assert "points of 3 features are more than the exact search holds" in undecided.message


@pytest.mark.parametrize("limit", [1e-3, None])
def test_a_limit_leaves_it_open(limit: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dfeas.run.solver_thread.GRACE", 0.0)
    monkeypatch.setattr("dfeas.run.solver_thread.LOOK_SECONDS", 0.0)
    X, y = panel(OVERLAP, 2_000, 300)
    options: dict[str, Any] = {"intercept": True, "method": "perceptron", "max_passes": 1, "time_limit": limit}
    undecided = run_until(lambda: limit is None, dfeas.separation, X, y, **options)
    assert (undecided.kind, undecided.result.method) == (None, "perceptron")
