"""Both engines: the same bits whatever the cut, the threads and the workers."""

import time
from collections.abc import Callable
from itertools import pairwise
from threading import Barrier, Event, Lock, get_ident
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.readers import Cost
from dfeas.engine.clusters import load_configuration, local_cluster
from dfeas.engine.distributed import DaskEngine
from dfeas.engine.local import LocalEngine
from dfeas.engine.scan import RangeMerge, Tree, cut, join, scan_range
from dfeas.engine.watch import Watch
from dfeas.engine.worker import Parcel, merge_ranges
from dfeas.errors import ClusterLostError, CorruptDataError
from dfeas.passes.block import Block
from dfeas.passes.protocol import Ordered, sums_bytes
from dfeas.passes.softmin import Softmin
from dfeas.passes.steps import Online
from dfeas.records import replace
from dfeas.verify.certificate import Certificate
from dfeas.verify.core import check_each
from tests.bits import digest


class Brackets:
    """A pass whose partials spell the tree that merged them."""

    def merge(self, first: str, second: str) -> str:
        return f"({first} {second})"

    def finish(self, partial: str) -> str:
        return partial


@given(st.integers(1, 70), st.data())
def test_ranges_that_end_in_any_order_are_merged_as_the_tree_has_them(blocks: int, data: st.DataObject) -> None:
    """Those that wait for none are merged at once: what is left are nodes of the ranges that ended early, and of the tree."""
    ranges = cut(blocks, data.draw(st.integers(1, 12)))
    question: Any = Brackets()
    merge, whole, ended = RangeMerge(question), Tree(question), set[int]()
    for i in data.draw(st.permutations(range(len(ranges)))):
        part = Tree(question)
        for index in range(*ranges[i]):
            part.push(0, index, str(index))
        merge.add(*ranges[i], (part.nodes, Cost(points=ranges[i][1] - ranges[i][0])))
        ended.add(i)
        first = min(set(range(len(ranges))) - ended, default=len(ranges))
        assert len(merge.early) == sum(i > first for i in ended)
    for index in range(blocks):
        whole.push(0, index, str(index))
    answer, cost = merge.finish()
    assert (answer, cost.points) == (whole.finish(), blocks)


class Threads:
    """A pass of a given width that ends when so many threads scan at the same time, each from its own block on."""

    def __init__(self, width: int, most: int) -> None:
        self.width, self.threads, self.lock = width, set[int](), Lock()
        self.firsts, self.barrier = range(0, 320, 320 // most), Barrier(most, timeout=60)

    def scan(self, block: Block) -> int:
        with self.lock:
            self.threads.add(get_ident())
        if block.start in self.firsts:
            self.barrier.wait()
        return block.size

    def merge(self, first: int, second: int) -> int:
        return first + second

    def finish(self, partial: int) -> int:
        return partial


@pytest.mark.parametrize(("width", "most"), [(0, 4), (1, 4), (2, 2), (3, 1), (100, 1)])
def test_fewer_threads_answer_where_sums_take_more_than_their_memory(width: int, most: int) -> None:
    dataset = open_source(
        Source(DataSpec(np.random.default_rng(0).standard_normal((320, 3)), np.arange(320) % 2, intercept=False))
    )
    dataset.block_rows, dataset.points = 10, replace(dataset.points, block_rows=10)
    dataset.labels = replace(dataset.labels, block_rows=10)
    engine = LocalEngine(dataset, 4, answer_bytes=4 * sums_bytes(3, 32, 1) + 1)
    question = Threads(width, most)
    assert engine.run(question) == 320
    assert len(question.threads) == most
    engine.close()


@given(st.integers(1, 70), st.data())
def test_the_tree_is_the_same_for_every_cut(blocks: int, data: st.DataObject) -> None:
    def answer(ranges: list[tuple[int, int]]) -> str:
        whole = Tree(Brackets())
        for first, stop in ranges:
            part = Tree(Brackets())
            for index in range(first, stop):
                part.push(0, index, str(index))
            for node in part.nodes:
                whole.push(*node)
        return whole.finish()

    edges = sorted(data.draw(st.sets(st.integers(1, max(1, blocks - 1)), max_size=8)) | {0, blocks})
    edges = [e for e in edges if e <= blocks]
    ranges = [(a, b) for a, b in pairwise(edges) if a < b]
    assert answer(ranges) == answer([(0, blocks)]) == answer([(i, i + 1) for i in range(blocks)])


def test_the_carry_of_a_fold_travels_and_the_points_do_not(dataset: Callable[..., Any], client: Any) -> None:
    def received() -> int:
        logs = client.run(lambda dask_worker: sum(t["total"] for t in dask_worker.transfer_incoming_log))
        return sum(logs.values())

    path, _ = dataset("planted", 40, 40_000, margin=0.2, block_rows=700)
    source = Source(DataSpec(path, intercept=False))
    before = received()
    DaskEngine(client, source, open_source(source), fold_bytes=500_000).run(Ordered(Online(np.zeros(40))))
    # a busy scheduler may move a range or two; without sizes half of the fourteen move
    assert received() - before < 40_000 * 40 * 4 / 4


class Slow:
    """Rows of which those of block 5 come when the engine stops."""

    def __init__(self, inner: Any, stopped: Event) -> None:
        self.inner, self.stopped, self.blocks = inner, stopped, 0

    def read(self, index: int, buffers: Any) -> Any:
        self.blocks += 1
        assert index != 5 or self.stopped.wait(20)
        return self.inner.read(index, buffers)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def _scanned(engine: LocalEngine) -> None:
    engine.run(Softmin(np.ones((10, 1)), np.ones(1)))


def _checked(engine: LocalEngine) -> None:
    check_each(engine, engine.dataset, [Certificate("separator", engine.dataset.fingerprint, np.ones(10))])


@pytest.mark.parametrize("look", [_scanned, _checked])
def test_an_error_in_one_thread_stops_the_others(dataset: Callable[..., Any], look: Callable[[LocalEngine], None]) -> None:
    path, _ = dataset("gaussian", 10, 20_000, block_rows=100)
    opened = open_source(Source(DataSpec(path, intercept=False)))
    engine = LocalEngine(opened, 2)
    opened.labels = labels = Slow(opened.labels, engine._stop)
    (path / "X" / "c.96.0").write_bytes(b"")  # the first one of the second thread
    with pytest.raises(CorruptDataError, match="chunk 96 of X"):
        look(engine)
    assert labels.blocks <= 7
    engine.close()


@given(data=st.data())
def test_workers_merge_as_one_walk_does(data: st.DataObject) -> None:
    """However blocks are cut into ranges, and neighbours are put together, on as many levels as there are."""
    blocks = data.draw(st.integers(1, 40))
    size = st.integers(1, 30)
    dataset = open_source(
        Source(
            DataSpec(np.random.default_rng(blocks).standard_normal((7 * blocks, 3)), np.arange(7 * blocks) % 2, intercept=False)
        )
    )
    dataset.block_rows, dataset.points, dataset.labels = (
        7,
        replace(dataset.points, block_rows=7),
        replace(dataset.labels, block_rows=7),
    )
    question = Softmin(np.ones((3, 2)), np.array([0.1, 0.0]))
    alone = join(question, [scan_range(dataset, 0, blocks, question)])
    level: list[Any] = [scan_range(dataset, *each, question) for each in cut(blocks, data.draw(size))]
    while len(level) > 1:
        fan = data.draw(st.integers(2, 9))
        parcel = Parcel(None, scan_range, (question, None))
        level = [merge_ranges(parcel, *level[i : i + fan]) for i in range(0, len(level), fan)]
    answer, cost = join(question, level)
    assert digest(answer) == digest(alone[0])
    assert cost.points == alone[1].points == 7 * blocks


@given(st.integers(1, 5000), st.integers(1, 200))
def test_ranges_are_about_as_long_as_each_other_and_begin_where_the_tree_does(blocks: int, pieces: int) -> None:
    ranges = cut(blocks, pieces)
    assert [stop for _, stop in ranges[:-1]] == [first for first, _ in ranges[1:]]
    assert (ranges[0][0], ranges[-1][1], len(ranges)) == (0, blocks, min(blocks, pieces))
    even = blocks / len(ranges)
    assert all(0 < stop - first <= 1.2 * even + 1 for first, stop in ranges)
    for first, stop in ranges[:-1]:
        step = (first & -first if first else stop) or 1
        assert step * 16 >= even or even < 32


def test_a_cluster_that_goes_away_is_one_error(dataset: Callable[..., Any]) -> None:
    path, _ = dataset("gaussian", 10, 2000, block_rows=500)
    source = Source(DataSpec(path, intercept=False))
    question = Softmin(np.ones((10, 1)), np.ones(1))
    with local_cluster(1) as client:
        engine = DaskEngine(client, source, open_source(source), watch=Watch(client, look_seconds=0.5, patience_seconds=2.0))
        engine.run(question)
        client.cluster.scale(0)
        deadline = time.monotonic() + 30
        while client.nthreads():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        with pytest.raises(ClusterLostError, match="no worker"):
            engine.run(question)
    with pytest.raises(ClusterLostError, match="lost"):
        engine.map(lambda dataset, first, stop: None)


def test_the_shipped_configuration_reaches_the_workers(client: Any) -> None:
    def look() -> dict[str, Any]:
        import os

        import dask

        names = ("MALLOC_MMAP_THRESHOLD_", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        return {**{n: os.environ.get(n) for n in names}, "spill": dask.config.get("distributed.worker.memory.spill")}

    for found in client.run(look).values():
        assert found == {
            "MALLOC_MMAP_THRESHOLD_": "1073741824",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "spill": False,
        }
    assert load_configuration()["distributed.scheduler.worker-ttl"] == "25s"


def test_a_local_cluster_listens_on_loopback_only(client: Any) -> None:
    import psutil

    addresses = [client.scheduler.address, *client.nthreads()]
    assert all(a.startswith("tcp://127.0.0.1:") for a in addresses)
    here = psutil.Process()
    listening = [
        c.laddr.ip for p in (here, *here.children(recursive=True)) for c in p.net_connections() if c.status == "LISTEN"
    ]
    assert len(listening) > 3
    assert set(listening) <= {"127.0.0.1", "::1"}
