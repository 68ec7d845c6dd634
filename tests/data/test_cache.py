"""The block cache: within its budget, the same blocks, and nothing read twice that fits."""

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st

from dfeas.data.cache import HELD_BYTES, Kept
from dfeas.data.dataset import FILE_READS, SIDES_WIDTH, Dataset
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.chunks import ChunkReader, chunk_reader
from dfeas.data.storage.readers import Cost, Files
from dfeas.data.storage.stored_array import StoredArray
from dfeas.engine.local import LocalEngine
from dfeas.machine import available_bytes, memory_bytes, used_bytes
from dfeas.passes.block import Block
from dfeas.passes.protocol import Ordered, Partial
from dfeas.passes.select import Select
from dfeas.passes.softmin import Softmin
from dfeas.passes.steps import Online
from dfeas.records import replace
from tests.data.making import read_bytes

QUESTION = Softmin(np.ones((5, 1)), np.ones(1))
FULL = 64 * (5 * 4 + SIDES_WIDTH) + HELD_BYTES  # bytes that a block of the dataset takes
WHOLE = 300 * (5 * 4 + SIDES_WIDTH) + 5 * HELD_BYTES


def opened(dataset: Callable[..., Any], budget: int) -> Dataset:
    """Five blocks, the last one short, with a cache."""
    path, _ = dataset("gaussian", 5, 300, block_rows=64)
    found = open_source(Source(DataSpec(path, intercept=False)))
    found.kept = Kept(budget)
    return found


@given(st.lists(st.integers(1, 1000)), st.integers(0, 5000))
def test_what_is_taken_never_exceeds_the_budget_and_does_not_overlap(sizes: list[int], budget: int) -> None:
    cache, taken = Kept(budget), []
    for number, size in enumerate(sizes):
        fits = cache.taken + size + 7 <= budget
        memory = cache.take(size, 7)
        assert (memory is not None) == fits
        if memory is not None:
            memory[:] = number % 251
            taken.append((number % 251, memory))
    assert cache.taken == sum(memory.size + 7 for _, memory in taken) <= budget
    assert all((memory == value).all() for value, memory in taken)


@pytest.mark.parametrize("kept", [0, 1, 2, 4])
def test_blocks_that_stay_are_selected_from_together_and_others_before_their_buffer_is_used_again(
    dataset: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    runs: list[int] = []
    scan_run = Select.scan_run

    def counted(self: Select, blocks: Sequence[Block]) -> Any:
        runs.append(len(blocks))
        return scan_run(self, blocks)

    monkeypatch.setattr(Select, "scan_run", counted)
    found = opened(dataset, kept * FULL)
    none = replace(found, kept=Kept())
    for y in np.random.default_rng(kept).standard_normal((4, 5)):
        question = Select(y, 0.1, 300, 300)
        answers = [LocalEngine(each, threads).run(question) for each, threads in ((found, 1), (found, 2), (none, 1))]
        assert len({pickle.dumps((each.violated, each.low, each.arg, each.score, each.columns)) for each in answers}) == 1
    runs.clear()
    LocalEngine(found, 1).run(question)
    wanted = {
        0: [1] * 5,
        1: [2, 1, 1, 1],
        2: [2, 1, 1, 1],
        3: [4, 1],
        4: [4, 1],
        5: [4, 1],
    }  # one that goes may be the last of a run
    assert runs == wanted[kept]


def test_blocks_of_an_array_in_memory_are_selected_from_together(monkeypatch: pytest.MonkeyPatch) -> None:
    array = open_source(Source(DataSpec(np.ones((40_000, 50)), np.resize([-1, 1], 40_000), intercept=False)))
    question, scan = Select(np.ones(50), 0.1, 9, 9), Select.scan
    assert array.blocks > 2
    LocalEngine(array, 1).run(question)  # labels and norms stay from then on
    scanned: list[int] = []

    def counted(self: Select, block: Block) -> Any:
        scanned.append(block.start)
        return scan(self, block)

    monkeypatch.setattr(Select, "scan", counted)
    assert LocalEngine(array, 1).run(question).arg == 0
    assert len(scanned) < 2


@pytest.mark.parametrize(("past_cache", "kept"), [(False, 0), (True, 1), (False, 3), (True, 5)])
def test_a_later_pass_reads_what_did_not_fit(dataset: Callable[..., Any], past_cache: bool, kept: int) -> None:
    found = opened(dataset, kept * FULL)
    found.points = replace(found.points, folder=replace(found.points.folder, past_cache=past_cache))
    block, whole = 64 * 5 * 4, 300 * 5 * 4
    first, cost = read_bytes(found)
    assert (cost.points, cost.bytes_read, cost.cached_bytes) == (300, whole, 0)
    for _ in range(2):
        again, cost = read_bytes(found)
        cached = min(kept * block, whole)
        assert (cost.points, cost.bytes_read, cost.cached_bytes) == (300, whole - cached, cached)
        assert again == first
    assert found.kept.taken <= kept * FULL


@pytest.mark.parametrize("rows", [10**3, 10**12])
def test_data_that_memory_cannot_hold_is_read_past_the_page_cache(tmp_path: Path, rows: int) -> None:
    assert 0 < available_bytes() <= psutil.virtual_memory().total
    assert memory_bytes() <= psutil.virtual_memory().total
    used = psutil.Process().memory_info()
    assert used_bytes() == pytest.approx((used.vms, used.rss), rel=0.1)
    reader = chunk_reader("X", tmp_path / "X", StoredArray((rows, 100), 1000, np.dtype("f4")))
    assert isinstance(reader, ChunkReader)
    assert isinstance(reader.folder, Files)
    assert reader.folder.past_cache == (rows > 10**3) != reader.overlaps


def test_a_kept_block_cannot_be_written_to(dataset: Callable[..., Any]) -> None:
    found = opened(dataset, 10 * FULL)
    read_bytes(found)
    block = next(found.read_blocks([1], Cost()))
    with pytest.raises(ValueError, match="read-only"):
        block.points[0, 0] = 1


def test_whole_passes_and_folds_fill_the_cache_and_samples_only_use_it(dataset: Callable[..., Any]) -> None:
    found = opened(dataset, 10 * FULL)
    engine = LocalEngine(found, 2)
    engine.run(Partial(QUESTION, (0, 2)))
    assert found.kept.taken == 0
    engine.run(Ordered(Online(np.ones(5))))
    assert found.kept.taken == WHOLE
    engine.run(Partial(QUESTION, (0, 2)))
    assert (engine.cost.points, engine.cost.bytes_read) == (128, 0)
    engine.close()


@dataclass
class Counted:
    """A reader that counts."""

    inner: Any
    reads: int = 0

    def read(self, index: int, buffers: Any) -> Any:
        self.reads += 1
        return self.inner.read(index, buffers)

    def stamp(self, index: int, looks: Any = None) -> Any:
        return self.inner.stamp(index, looks)


@pytest.mark.parametrize(
    ("budget", "kept", "again"),
    [(0, 0, 5), (3 * FULL, 2, 2), (WHOLE - 1, 3, 0), (WHOLE, 5, 0)],
)
def test_labels_and_norms_of_all_points_come_before_points_of_some(
    dataset: Callable[..., Any], budget: int, kept: int, again: int
) -> None:
    found = opened(dataset, 0)
    found.kept.sides_limit = 0
    found.enable_cache(budget)
    found.labels = counted = Counted(found.labels)
    first, _ = read_bytes(found)
    assert counted.reads == 5
    for _ in range(FILE_READS):
        assert not any(index in found.kept for index in range(5))
        assert read_bytes(found)[0] == first
    assert sum(index in found.kept for index in range(5)) == kept
    counted.reads = 0
    last, cost = read_bytes(found)
    assert last == first
    assert counted.reads == again
    assert cost.cached_bytes + cost.bytes_read == found.bytes
    found.kept.close()
    assert read_bytes(found)[0] == first
    assert counted.reads == 5 + again


def test_nothing_is_kept_of_arrays_in_memory_and_the_checker_has_a_way_of_its_own(tmp_path: Path) -> None:
    from contextlib import ExitStack

    from dfeas.problem import Problem
    from dfeas.run.resources import Resources
    from dfeas.run.session import open_session

    X, labels = np.ones((300, 5)), np.arange(300) % 2
    stored = zarr.create_array(tmp_path / "x", data=X, chunks=(64, 5))
    with ExitStack() as stack:
        memory, lazy = (
            stack.enter_context(open_session(Problem.of(each, labels, intercept=False), Resources(memory=10**9)))
            for each in (X, stored)
        )
        for setting, kept in ((memory, 0), (lazy, X.nbytes)):
            setting.engine.run(QUESTION)
            setting.engine.run(QUESTION)
            assert setting.engine.cost.cached_bytes == kept
            assert setting.checking.dataset.kept.budget == 0
            setting.checking.engine.run(QUESTION)
            assert setting.checking.engine.cost.bytes_read == X.nbytes
