"""Batches: what is met before all, as their law has it, and few passes with few columns."""

from collections.abc import Callable, Iterator
from math import isqrt
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dfeas
from dfeas.data.generate.points import Instance
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.engine.local import LocalEngine
from dfeas.methods.protocol import Facts
from dfeas.methods.working_set import AT, batches
from dfeas.methods.working_set.batches import held_columns, schedule
from dfeas.methods.working_set.method import PointWorkingSet
from dfeas.passes.protocol import Partial
from dfeas.passes.select import Select
from dfeas.records import replace
from tests.conformance.methods import copied
from tests.methods.test_working_set import problem, states


@pytest.fixture
def heavy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Small data has batches, too."""
    schedule.cache_clear()
    monkeypatch.setattr(batches, "AT", replace(AT, heavy_bytes=0, small_bytes=0))
    yield
    schedule.cache_clear()


def asked(method: PointWorkingSet, engine: Any, facts: Facts) -> list[tuple[Any, Any]]:
    """Questions and answers up to the first full pass."""
    state, found = method.init(facts), []
    while not found or isinstance(found[-1][0], Partial):
        question = method.ask(state)
        answer = engine.run(question)
        found.append((question, answer))
        state = method.tell(state, replace(answer, pieces=list(answer.pieces)) if len(found) > 1 else answer)
    return found


@given(st.integers(600, 4000), st.floats(101, 2000), st.integers(8, 5000), st.integers(0, 9))
def test_batches_are_disjoint_and_grow_by_one_factor_to_a_quarter(m: int, ratio: float, blocks: int, seed: int) -> None:
    facts = Facts(m, int(m * ratio), 1 << 40, blocks, 4)
    plan = schedule(facts, facts.n, seed)
    met = [block for some in (plan.sample.blocks, *plan.batches) for block in some]
    assert len(set(met)) == len(met)
    assert plan.columns == (AT.sample + AT.taken * len(plan.batches) + AT.band) * m
    assert plan == schedule.__wrapped__(facts, facts.n, seed)
    columns, rows = AT.sample * m, facts.n / blocks
    for batch in plan.batches:
        assert columns + len(batch) * rows <= AT.growth * (columns + rows)
        columns += len(batch) * rows
    assert columns <= AT.met * facts.n + rows
    assert columns >= min(AT.met, 1 - len(plan.sample.blocks) / blocks) * facts.n - rows
    assert plan.share(blocks) <= 0.5


def test_data_that_is_read_faster_than_its_columns_are_solved_has_no_batches() -> None:
    for m, n in ((100, 500_000), (20, 10**8), (1000, 3_000_000), (1000, 50_000)):
        assert not schedule(Facts(m, n, 1 << 40, 500, 4), n, 0).batches
    facts = Facts(1000, 500_000, 1 << 40, 500, 4)
    assert schedule(facts, facts.n, 0).batches
    assert not schedule(replace(facts, tolerance=0.1), facts.n, 0).batches
    assert not schedule(facts, 40_000, 0).batches  # memory holds fewer than with batches
    assert held_columns(facts) <= 50_000 < (1 + AT.fill) * 20_000


@given(st.integers(50, 2000), st.floats(600, 20_000), st.floats(1.0, 8.0))
def test_memory_without_room_for_a_band_is_filled_with_one_behind_batches(m: int, ratio: float, room: float) -> None:
    """Halfspace 316 x 2,400,000 in 200 MB, which hold 36,656 columns, takes 2.12 reads, and 3.5 without batches."""
    n = int(m * ratio)
    count = max(isqrt(m * n), AT.sample_least * m)
    facts, cap = Facts(m, n, 1 << 40, 500, 4), int(room * count)
    plan = schedule(facts, cap, 0)
    first = max(AT.sample * m, min(count, cap // AT.cramped_sample))
    if first + (3 * AT.taken + AT.band) * m < cap < (1 + AT.fill) * count and not AT.worth * count > n:
        assert plan.batches
        assert plan.share(facts.blocks) < AT.cramped_met + 0.05 + 2 * plan.count / n
        assert plan.columns == min(cap, plan.columns - plan.band + AT.fill * count)
        assert plan.band >= AT.band * m


def test_little_memory_meets_half_of_the_data_before_a_pass_that_finds_too_much(arrays: Callable[..., Any]) -> None:
    engine, facts = problem(*arrays("halfspace", 30, 20_000), block_rows=400)
    method = PointWorkingSet(cap=4 * 31)
    plan = schedule(facts, 4 * 31, 0)
    assert plan.count == 4 * 31
    assert AT.full_met <= plan.share(facts.blocks) < AT.full_met + 0.2
    state = method.init(facts)
    for _ in range(1 + len(plan.batches)):
        state = method.tell(state, engine.run(method.ask(state)))
        assert state.columns is not None
        assert len(state.columns) == 4 * 31
    question = method.ask(state)
    assert isinstance(question, Select)
    assert engine.run(question).violated < facts.n / 20  # a random sample of as many leaves 30 / 124


def test_few_columns_and_passes_separate_whatever_the_seed(heavy: None, arrays: Callable[..., Any]) -> None:
    for seed in range(3):
        engine, facts = problem(*arrays("halfspace", 40, 24_000, seed=seed), block_rows=120)
        found = states(PointWorkingSet(), engine, facts)
        assert found[-1].bracket.lower > 0
        assert found[-1].full == 2
        assert found[-1].met == len(schedule(facts, facts.n, 0).batches) == 2
        assert len(found[-1].columns) < 80 * facts.m
        assert all(len(np.unique(state.columns.index)) == len(state.columns) for state in found)


def test_a_batch_has_no_more_wrong_than_the_leave_one_out_bound(heavy: None, arrays: Callable[..., Any]) -> None:
    """On average, of the widest separator; those of W are not the widest, and met their columns in part: twice as many."""
    wrong, most = 0, 0.0
    for seed in range(6):
        engine, facts = problem(*arrays("halfspace", 30, 20_000, seed=seed), block_rows=100)
        columns = float(AT.sample * facts.m)
        for question, answer in asked(PointWorkingSet(), engine, facts)[1:-1]:
            batch = 100 * len(question.blocks)
            wrong, most = wrong + answer.violated, most + facts.m * batch / (columns + 1)
            columns += batch
    assert 0 < wrong <= 2 * most


def test_a_batch_without_mistakes_is_the_last(heavy: None) -> None:
    X, labels = Instance("planted", 20, 12_000, 0.2).block(0)
    engine, facts = problem(X, labels, block_rows=100)
    found = asked(PointWorkingSet(), engine, facts)
    assert [isinstance(question, Partial) for question, _ in found] == [True, True, False]
    assert found[-1][1].violated == 0
    assert isinstance(found[-1][0], Select)


def test_a_run_goes_on_from_between_two_batches_with_the_same_bits(heavy: None, arrays: Callable[..., Any]) -> None:
    engine, facts = problem(*arrays("halfspace", 30, 20_000, seed=5), block_rows=100)
    method = PointWorkingSet()
    whole, parted = method.init(facts), method.init(facts)
    while whole.bracket.lower <= 0:
        whole = method.tell(whole, engine.run(method.ask(whole)))
        schedule.cache_clear()
        parted = copied(method.tell(copied(parted), engine.run(method.ask(parted))))
        assert repr(parted.bracket) == repr(whole.bracket)
        assert np.array_equal(parted.columns.index, whole.columns.index)
        assert np.array_equal(parted.solution.w, whole.solution.w)


def test_a_wrong_label_is_found_with_batches(heavy: None, arrays: Callable[..., Any]) -> None:
    instance = Instance("one-flip", 30, 20_000, 0.02, seed=5)
    engine, facts = problem(*arrays("one-flip", 30, 20_000, margin=0.02, seed=5), block_rows=100)
    last = states(PointWorkingSet(), engine, facts)[-1]
    assert last.bracket.upper < 1e-12
    assert last.full <= 1
    assert last.best.index[last.best.score.argmin()] == instance.wrong_point


@pytest.mark.parametrize("kind", ["halfspace", "one-flip"])
def test_any_number_of_threads_has_the_same_bits(heavy: None, arrays: Callable[..., Any], kind: str) -> None:
    engine, facts = problem(*arrays(kind, 20, 12_000, margin=0.05), block_rows=100)
    method = PointWorkingSet()
    one, three = (states(method, LocalEngine(engine.dataset, threads), facts) for threads in (1, 3))
    for first, second in zip(one, three, strict=True):
        assert repr(first.bracket) == repr(second.bracket)
        assert np.array_equal(first.columns.index, second.columns.index)
    assert (one[-1].bracket.lower > 0) == (kind == "halfspace")


def test_a_run_has_the_passes_that_are_predicted(heavy: None, dataset: Callable[..., Any]) -> None:
    path, _ = dataset("halfspace", 20, 12_000, block_rows=100)
    result = dfeas.solve(path, intercept=False, method="working-set")
    assert result.reads == result.passes
    facts = Facts(20, 12_000, blocks=open_source(Source(DataSpec(path))).blocks, itemsize=4)
    assert result.passes == pytest.approx(PointWorkingSet().passes(facts, 1e-3, 1.0))
