"""The working set as a method: few passes, growth without dropping, dropping with a bound, names for what conflicts."""

import math
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dfeas
from dfeas.data.generate.points import Instance
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.engine.local import LocalEngine
from dfeas.geometry.points import prefer_method
from dfeas.geometry.protocol import facts_of
from dfeas.linalg import separation
from dfeas.methods.mirror_prox_one_pass import OnePassMirrorProx
from dfeas.methods.protocol import Facts, LedState, RideAlong
from dfeas.methods.smooth_perceptron import SmoothPerceptron
from dfeas.methods.working_set import AT, batches
from dfeas.methods.working_set.batches import passes_ahead, schedule, solver_room
from dfeas.methods.working_set.method import PointWorkingSet
from dfeas.passes.protocol import Partial, Together
from dfeas.passes.select import Select
from dfeas.records import replace
from tests.conformance.methods import copied
from tests.exact import conflicts, small_instance
from tests.fuzzing.thin import hair


def problem(
    X: np.ndarray, labels: np.ndarray | None, memory: int = 1 << 30, block_rows: int = 0, **more: Any
) -> tuple[LocalEngine, Facts]:
    dataset = open_source(Source(DataSpec(X, labels, intercept=False)))
    if block_rows:
        dataset.block_rows = block_rows
        dataset.points = replace(dataset.points, block_rows=block_rows)
        dataset.labels = replace(dataset.labels, block_rows=block_rows)
    return LocalEngine(dataset, 1), Facts(dataset.m, dataset.n, memory, dataset.blocks, X.itemsize, **more)


def states(method: Any, engine: LocalEngine, facts: Facts, most: int = 100) -> list[Any]:
    """States after each pass, until a separator of all is found or W is in conflict."""
    state, found = method.init(facts), []
    for _ in range(most):
        state = method.tell(state, engine.run(method.ask(state)))
        found.append(state)
        evidence = method.evidence(state)
        if evidence.bracket.lower > 0 or evidence.bracket.upper < 1e-12 or evidence.stalled:
            break
    return found


@pytest.mark.parametrize("seed", range(2))
def test_a_sample_and_two_passes_separate_a_thin_margin(arrays: Callable[..., Any], seed: int) -> None:
    engine, facts = problem(*arrays("halfspace", 20, 40_000, seed=seed), block_rows=1000)
    method = PointWorkingSet()
    first = method.ask(method.init(facts))
    assert isinstance(first, Partial)
    assert len(first.blocks) < facts.blocks // 4
    found = states(method, engine, facts)
    assert found[-1].full <= 3
    assert found[-1].bracket.lower > 0
    assert found[-1].violated == 0


@pytest.mark.parametrize("seed", [0, 1, 4])
def test_points_near_to_a_plane_take_few_passes_however_small_their_margin(seed: int) -> None:
    """No score says which of them bound the margin: below half of the least on W lie only some of these at a time."""
    engine, facts = problem(*hair(20_000, 60, 1e-10, seed), block_rows=1000)
    found = states(PointWorkingSet(), engine, facts)
    assert found[-1].bracket.lower > 0
    assert found[-1].full <= 3


def test_what_fits_is_read_once_and_confirmed(arrays: Callable[..., Any]) -> None:
    X, labels = arrays("halfspace", 5, 900)
    result = dfeas.solve(X, labels, intercept=False)
    assert (result.verdict, result.passes) == ("feasible", 2)
    X, labels = arrays("gaussian", 5, 900)
    result = dfeas.solve(X, labels, intercept=False)
    assert (result.verdict, result.passes) == ("infeasible", 1)


@pytest.mark.parametrize(("seed", "flips"), [(2, 20), (8, 2), (22, 1)])
def test_columns_are_dropped_once_at_most_however_many_conflicts_are_refused(
    seed: int, flips: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "AT", replace(AT, small_bytes=0))
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(3, 25)), int(rng.integers(6000, 30000))
    X = rng.standard_normal((n, m))
    labels = np.where(X @ rng.standard_normal(m) > 0, 1, -1)
    rng.choice([1, 2, 5, 20, 100, 1000])
    labels[rng.choice(n, flips, replace=False)] *= -1
    engine, facts = problem(X, labels, block_rows=4096 // m)
    method, found = PointWorkingSet(), list[Any]()
    state = method.init(facts)
    while not state.stalled and len(found) < 40:
        state = method.tell(state, engine.run(method.ask(state)))
        found.append(state)
    assert state.stalled
    assert sum(not np.isin(before.columns.index, after.columns.index).all() for before, after in pairwise(found)) <= 1


def test_columns_join_where_there_is_room_behind_the_others_and_none_is_dropped(arrays: Callable[..., Any]) -> None:
    """The third time there is no copy of W; and no state changes with what joins later, twice or once."""
    X, labels = arrays("halfspace", 30, 60_000, seed=3)
    engine, facts = problem(X, labels, block_rows=3000)
    method, seen = PointWorkingSet(), []
    state = method.init(facts)
    while not seen or seen[-1].bracket.lower <= 0:
        answer = engine.run(method.ask(state))
        seen.append(state := method.tell(state, answer))
    assert len(seen) >= 3
    for before, after in pairwise(seen):
        assert np.isin(before.columns.index, after.columns.index).all()
        assert len(np.unique(after.columns.index)) == len(after.columns)
    points = [each.columns.points for each in seen]
    assert np.shares_memory(points[-1], points[-2])
    again = engine.run(Select(seen[-2].solution.y, np.inf, 500, 500)).append_to(seen[1].columns, 0)
    for columns in (*(each.columns for each in seen), again):
        assert np.array_equal(columns.points, X[columns.index])


@given(
    st.integers(2, 8),
    st.integers(60, 400),
    st.sampled_from([("planted", 0.3), ("planted", 0.1), ("one-flip", 0.2), ("gaussian", 0.1)]),
    st.integers(0, 6),
    st.integers(0, 999),
)
@settings(max_examples=40)
def test_a_tiny_budget_ends_within_the_bound_of_von_neumann(
    m: int, n: int, family: tuple[str, float], more: int, seed: int
) -> None:
    kind, margin = family
    X, labels = Instance(kind, m, n, margin, seed, "float64").block(0)
    cap = m + 2 + more
    A = X * (labels / np.linalg.norm(X, axis=1))[:, None]
    engine, facts = problem(X, labels, block_rows=max(8, n // 7))
    method = PointWorkingSet(cap=cap)
    state, t, growing = method.init(facts), 0, 0
    while t <= 1 / 0.02**2:
        asked, upper, growing = state.falls_back, state.bracket.upper, growing + (not state.dropped)
        state = method.tell(state, engine.run(method.ask(state)))
        bracket = method.evidence(state).bracket
        assert len(state.columns) == len(np.unique(state.columns.index)) <= cap
        assert np.allclose(state.z, state.best.weight @ A[state.best.index], atol=1e-12)
        assert state.best.weight.sum() == pytest.approx(1)
        assert np.linalg.norm(state.z) - 1e-9 <= bracket.upper <= upper
        if bracket.lower > 0 or bracket.upper <= 0.02:
            break
        if asked:
            assert 1 / bracket.upper**2 >= 1 / upper**2 + 1 - 1e-9
            t += 1
        assert state.full <= growing + 2 * t + 1 + math.log(n, 1 / AT.fewer)
    assert bracket.lower > 0 or bracket.upper <= 0.02
    if kind == "planted":
        assert bracket.upper >= margin - 1e-9
        assert t <= 1 / margin**2 + 1
        if margin > 0.02:
            assert bracket.lower > 0


def least_memory(m: int, itemsize: int = 4) -> int:
    """Bytes of four columns for each feature."""
    return 4 * (m + 1) * (itemsize * m + 100)


@pytest.mark.parametrize("kind", ["halfspace", "planted"])
@pytest.mark.parametrize(("m", "n"), [(50, 10_000), (370, 5000)])
def test_four_columns_for_each_feature_separate_in_a_few_passes(arrays: Callable[..., Any], kind: str, m: int, n: int) -> None:
    """With 370 of them the solver has no room for a matrix of m x m."""
    engine, facts = problem(*arrays(kind, m, n), memory=least_memory(m), block_rows=500)
    assert (solver_room(facts) < 8 * m**2) == (m == 370)
    found = states(PointWorkingSet(), engine, facts)
    assert found[-1].bracket.lower > 0
    assert found[-1].full <= 12
    assert any(state.dropped for state in found)
    assert all(len(state.columns) <= 4 * (m + 1) for state in found)


def test_dropped_columns_leave_the_same_bits_on_threads_and_from_checkpoints(arrays: Callable[..., Any]) -> None:
    X, labels = arrays("halfspace", 40, 8000)
    last = []
    for threads in (1, 3):
        engine, facts = problem(X, labels, memory=least_memory(40), block_rows=500)
        engine, method = LocalEngine(engine.dataset, threads), PointWorkingSet()
        state = method.init(facts)
        while state.bracket.lower <= 0:
            state = method.tell(state, engine.run(method.ask(state)))
            state = copied(state) if threads > 1 else state
        assert state.dropped
        last.append((state.full, state.bracket.lower, state.solution.y.tobytes(), state.columns.index.tobytes()))
    assert last[0] == last[1]


def test_a_conflict_is_named_where_memory_has_no_room_for_a_basis(arrays: Callable[..., Any]) -> None:
    m, n = 370, 4000
    X, labels = arrays("gaussian", m, n)
    engine, facts = problem(X, labels, memory=least_memory(m), block_rows=500, eps=0.0)
    assert solver_room(facts) < 8 * m**2
    last = states(PointWorkingSet(), engine, facts)[-1]
    assert (last.stalled, last.solution.outcome, len(last.best.index)) == ("", "conflict", m + 1)
    columns = X[last.best.index] * labels[last.best.index, None]
    columns = columns / np.linalg.norm(columns.astype(np.longdouble), axis=1, keepdims=True)
    assert float(np.abs(last.best.weight @ columns).max()) < 1e-16


def test_what_takes_a_basis_says_for_how_much_memory_there_is_room_for_one() -> None:
    X, labels = hair(4000, 370, 1e-6, 0)
    X = X.astype(np.float32)
    engine, facts = problem(X, labels, memory=least_memory(370), block_rows=500, eps=0.0)
    asked = re.search(r"--memory (.*)MiB$", states(PointWorkingSet(), engine, facts)[-1].stalled)
    assert asked is not None
    engine, facts = problem(X, labels, memory=int(float(asked[1]) * 2**18), block_rows=500, eps=0.0)
    assert states(PointWorkingSet(), engine, facts)[-1].bracket.lower > 0


@pytest.mark.parametrize("seed", range(3))
def test_a_conflict_comes_with_the_hyperplane_that_has_all_but_the_wrong_labels_right(
    arrays: Callable[..., Any], seed: int
) -> None:
    """It is looked for among the blocks of the sample, and the few that are most wrong."""
    X, labels = arrays("one-flip", 20, 50_000, margin=0.01, seed=seed)
    found = dfeas.solve(X, labels)
    assert (found.verdict, found.proof) == ("infeasible", "exact")
    flipped, *others = found.conflicts
    assert flipped["point"] == Instance("one-flip", 20, 50_000, 0.01, seed=seed).wrong_point
    assert flipped["score"] < 0 < min(each["score"] for each in others)


def test_a_conflict_with_a_wrong_label_lies_in_the_blocks_of_the_sample(dataset: Callable[..., Any]) -> None:
    """Whose last one has a few points only, so that those before it have more than the average."""
    path, _ = dataset("one-flip", 20, 29_800, margin=1e-4, block_rows=310)
    opened = open_source(Source(DataSpec(path, intercept=False)))
    rows, facts = opened.block_rows, facts_of(opened, 1 << 30)
    assert opened.n // opened.blocks < 0.99 * rows
    state = states(PointWorkingSet(), LocalEngine(opened, 1), facts)[-1]
    assert state.solution.outcome == "conflict"
    flipped = Instance("one-flip", 20, 29_800, 1e-4).wrong_point
    drawn = schedule(facts, state.cap, 0).sample.blocks
    assert set(state.best.index // rows) <= {flipped // rows, *drawn}
    assert len(state.columns) < 4 * facts.m  # as many as a wrong label needs that is as wrong as can be


def test_conflicts_are_reported_with_the_users_own_classes(arrays: Callable[..., Any]) -> None:
    instance = Instance("one-flip", 10, 3000, 0.05)
    X, labels = arrays("one-flip", 10, 3000, margin=0.05)
    names = np.where(labels > 0, "spam", "ham")
    result = dfeas.solve(X, names, positive="spam")
    assert result.support is not None
    assert sorted(c["point"] for c in result.conflicts) == result.support.tolist()
    assert all(c["label"] == names[c["point"]] for c in result.conflicts)
    assert sum(c["weight"] for c in result.conflicts) == pytest.approx(1)
    assert result.conflicts[0]["point"] == instance.wrong_point
    assert [c["score"] for c in result.conflicts] == sorted(c["score"] for c in result.conflicts)
    rest = np.setdiff1d(np.arange(3000), [instance.wrong_point])
    assert dfeas.solve(X[rest], names[rest], positive="spam").verdict == "feasible"
    assert dfeas.solve(X, names, positive="spam", method="smooth-perceptron", eps=0.05).conflicts == []
    twice = dfeas.solve(np.array([[1.0, 2.0], [3.0, 1.0], [1.0, 2.0]]), ["a", "a", "b"], method="perceptron")
    assert [(c["point"], c["label"], c["score"]) for c in twice.conflicts] == [(0, "a", None), (2, "b", None)]


@pytest.mark.parametrize("tolerance", [0.3, 1e-2, 1e-3])
def test_the_maximum_margin_of_data_on_disk(tolerance: float, dataset: Callable[..., Any]) -> None:
    path, _ = dataset("planted", 12, 30_000, margin=0.01, block_rows=1000)
    result = dfeas.solve(path, intercept=False, margin_tolerance=tolerance)
    assert (result.verdict, result.stopped) == ("feasible", "verdict")
    assert result.margin_lower >= (1 - tolerance) * result.margin_upper
    assert result.margin_lower <= 0.01 * (1 + 1e-5)
    assert result.margin_upper >= 0.01 * (1 - 1e-5)
    assert result.passes < 6


@pytest.mark.parametrize(("seed", "tolerance"), [(0, 0.1), (2, 1e-2), (3, 1e-4)])
@pytest.mark.parametrize("by", [0, None], ids=["sorted", "as drawn"])
def test_the_maximum_margin_is_reached_whatever_the_order(seed: int, tolerance: float, by: int | None) -> None:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((30_000, 20))
    A /= np.linalg.norm(A, axis=1)[:, None]
    score = A @ np.full(20, 20**-0.5)
    A = (A * np.sign(score)[:, None])[np.abs(score) > 1e-3]
    if by is not None:
        A = A[np.argsort(A[:, by])]
    engine, facts = problem(A, None, block_rows=2000, tolerance=tolerance)
    method = PointWorkingSet()
    state = method.init(facts)
    for _ in range(12):
        state = method.tell(state, engine.run(method.ask(state)))
        if state.bracket.lower >= (1 - tolerance) * state.bracket.upper:
            break
        assert not state.stalled
    assert state.bracket.lower >= (1 - tolerance) * state.bracket.upper > 0


@pytest.mark.parametrize("tolerance", [0.1, 1e-3, 1e-6])
def test_the_maximum_margin_of_small_data_and_with_a_tiny_cap(tolerance: float) -> None:
    for seed in range(12):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((40, 4))
        A = A * np.sign(A @ np.ones(4))[:, None]
        result = dfeas.solve(A, "all-positive", margin_tolerance=tolerance)
        assert result.stopped == "verdict", seed
        assert result.margin_lower >= (1 - tolerance) * result.margin_upper
        engine, facts = problem(A, None, block_rows=7, tolerance=0.1)
        state, method = PointWorkingSet(cap=7).init(facts), PointWorkingSet(cap=7)
        for _ in range(60):
            state = method.tell(state, engine.run(method.ask(state)))
            if state.bracket.lower >= 0.9 * state.bracket.upper:
                break
        assert state.bracket.lower >= 0.9 * state.bracket.upper, seed


def test_duplicated_points_do_not_blur_a_thin_maximum_margin() -> None:
    for seed in range(12):
        rng = np.random.default_rng(seed)
        m = int(rng.integers(3, 10))
        w = rng.standard_normal(m)
        w /= np.linalg.norm(w)
        A = rng.standard_normal((80, m))
        A /= np.linalg.norm(A, axis=1)[:, None]
        A += np.outer(np.maximum(np.abs(A @ w), 1e-6) - A @ w, w)
        A[:30] -= np.outer(A[:30] @ w - 1e-6, w)
        found = dfeas.solve(np.vstack([A, A]), "all-positive", margin_tolerance=1e-3, max_passes=60)
        assert (found.verdict, found.stopped) == ("feasible", "verdict"), seed


def test_a_capped_working_set_stalls_where_rounding_ends_its_progress() -> None:
    X, labels = Instance("planted", 4, 272, 2e-6, dtype="float64").block(0)
    engine, facts = problem(X, labels, block_rows=40, tolerance=1e-6)
    method = PointWorkingSet(cap=6)
    state = method.init(facts)
    for _ in range(150):
        state = method.tell(state, engine.run(method.ask(state)))
        if state.stalled or state.bracket.lower >= (1 - 1e-6) * state.bracket.upper:
            break
    assert state.stalled or state.bracket.lower >= (1 - 1e-6) * state.bracket.upper
    assert state.bracket.lower > 1e-6


def test_a_limit_before_the_maximum_margin_leaves_a_checked_separator(arrays: Callable[..., Any]) -> None:
    X, labels = arrays("planted", 12, 3000, margin=0.1)
    result = dfeas.solve(X, labels, intercept=False, method="smooth-perceptron", margin_tolerance=1e-6, max_passes=60)
    assert (result.verdict, result.stopped, result.proof) == ("feasible", "pass_limit", "rigorous")
    assert not result.success  # what was asked for is the margin
    assert result.status == 1


@pytest.mark.parametrize("sort", ["by class", "by distance", "not"])
@pytest.mark.parametrize("minority", [0.5, 1e-4])
def test_the_order_of_points_and_rare_classes_do_not_matter(sort: str, minority: float) -> None:
    rng = np.random.default_rng(1)
    n, m = 60_000, 10
    normal = rng.standard_normal(m)
    A = rng.standard_normal((n, m))
    A *= np.sign(A @ normal)[:, None]
    labels = np.where(rng.random(n) < minority, -1, 1)
    labels[:2] = (1, -1)
    key = {"by class": labels, "by distance": A @ normal, "not": np.zeros(n)}[sort]
    order = np.argsort(key, kind="stable")
    engine, facts = problem((A * labels[:, None])[order], labels[order], block_rows=1500)
    last = states(PointWorkingSet(), engine, facts)[-1]
    assert last.bracket.lower > 0
    assert last.full <= 5


def test_a_first_separator_that_has_nearly_every_point_wrong() -> None:
    """The sample sees one cluster, nearly all points lie in others."""
    rng = np.random.default_rng(0)
    centres = np.eye(8) * 3 - 0.4
    which = np.repeat(np.arange(8), 5000)
    A = centres[which] + 0.004 * rng.standard_normal((40_000, 8))
    engine, facts = problem(A, None, block_rows=5000)

    class One(PointWorkingSet):
        def ask(self, state: Any) -> Any:
            question = super().ask(state)
            return replace(question, blocks=(0,)) if isinstance(question, Partial) else question

    found = states(One(), engine, facts)
    assert found[1].violated == 35_000
    assert found[-1].bracket.lower > 0
    assert found[-1].full <= 4


def test_small_instances_are_decided_as_by_exact_arithmetic_through_the_checker_and_with_a_tiny_cap() -> None:
    for seed in range(150):
        A = small_instance(seed).astype(float)
        m = len(A)
        wanted = "conflict" if conflicts(small_instance(seed)) else "feasible"
        result = dfeas.solve(A.T, "all-positive")
        assert result.verdict in {"conflict": ("infeasible", "eps-infeasible"), "feasible": ("feasible",)}[wanted], seed
        engine, facts = problem(A.T, None, block_rows=3)
        bracket = states(PointWorkingSet(cap=m + 2), engine, facts, 400)[-1].bracket
        assert (bracket.lower > 0) if wanted == "feasible" else (bracket.lower <= 0 and bracket.upper < 0.06), seed


def test_a_refused_separator_is_followed_by_wider_ones(arrays: Callable[..., Any]) -> None:
    engine, facts = problem(*arrays("planted", 6, 5000, margin=0.05), block_rows=500)
    method = PointWorkingSet()
    state, lower = method.init(facts), []
    for _ in range(9):
        state = method.tell(state, engine.run(method.ask(state)))
        lower.append(state.bracket.lower)
    assert lower[-1] > 0.0499


def test_a_rider_keeps_its_own_pace(arrays: Callable[..., Any]) -> None:
    """After ``after`` passes the rider is where it would be alone, and the bracket is at least as good as either's."""
    engine, facts = problem(*arrays("halfspace", 10, 3000, dtype="float64"), block_rows=300)
    alone, both = SmoothPerceptron(), RideAlong(PointWorkingSet(cap=12), SmoothPerceptron(), "both", after=1)
    state, other = both.init(facts), alone.init(facts)
    for full in range(12):
        question = both.ask(state)
        while isinstance(question, Partial):
            state = both.tell(state, engine.run(question))
            question = both.ask(state)
        assert isinstance(question, Select if full == 0 else Together)
        state = both.tell(state, engine.run(question))
        if full:
            other = alone.tell(other, engine.run(alone.ask(other)))
        assert state.rider.step == other.step
        assert np.allclose(state.rider.y, other.y, atol=1e-12)
        bracket = both.evidence(state).bracket
        assert bracket.lower == max(state.first.bracket.lower, state.rider.bracket.lower)
        assert bracket.upper == min(state.first.bracket.upper, state.rider.bracket.upper)


@pytest.mark.parametrize("wrong", [False, True])
def test_a_leader_separates_wide_points_or_hands_over(
    arrays: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, wrong: bool
) -> None:
    """Points of many features come into memory only when a few passes of another method did not separate them."""
    monkeypatch.setattr(separation, "AT", replace(separation.AT, basis_bytes=100_000))
    X, labels = arrays("planted", 300, 60, margin=0.05)
    if wrong:
        X, labels = np.vstack([X, X[:1]]), np.append(labels, -labels[0])
    engine, facts = problem(X, labels, block_rows=20)
    method, leader = dfeas.METHODS["working-set"], OnePassMirrorProx()
    assert passes_ahead(facts) == AT.lead
    assert passes_ahead(replace(facts, tolerance=0.1)) == passes_ahead(replace(facts, n=10**9)) == 0
    assert prefer_method(facts)[0] == "working-set"
    assert f"leads for {AT.lead} passes" in prefer_method(facts)[1]
    state, alone = method.init(facts), leader.init(facts)
    for _ in range(AT.lead):
        assert isinstance(state, LedState)
        assert method.evidence(state).hopeful  # of eight passes no verdict comes that names nobody
        assert method.evidence(state).bracket.upper == leader.evidence(alone).bracket.upper
        if method.evidence(state).bracket.lower > 0:
            break
        alone = leader.tell(alone, engine.run(leader.ask(alone)))
        state = copied(method.tell(state, engine.run(method.ask(state))))
    assert method.leads(state) != wrong
    assert repr(method.evidence(state).bracket) == repr(leader.evidence(state.leader).bracket)
    result = dfeas.solve(X, labels, intercept=False, method="working-set")
    assert result.verdict == ("infeasible" if wrong else "feasible")
    if wrong:
        assert isinstance(method.ask(state), Partial)
        assert result.passes >= AT.lead
        assert sorted(each["point"] for each in result.conflicts) == [0, 60]
    else:
        assert result.passes <= AT.lead
