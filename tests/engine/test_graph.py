"""A pass is one graph: anchors, scans, merges. Dask keeps ranges where they are, and computes each partition once a pass."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.delayed import delayed
from dask.utils import key_split
from distributed import SchedulerPlugin
from hypothesis import given
from hypothesis import strategies as st

from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.engine.anchors import Anchors
from dfeas.engine.clusters import local_cluster
from dfeas.engine.collection import CollectionEngine, open_collection
from dfeas.engine.distributed import FAN_IN, DaskEngine
from dfeas.engine.local import LocalEngine
from dfeas.passes.protocol import Ordered, Partial
from dfeas.passes.softmin import Softmin
from dfeas.passes.steps import Online
from tests.bits import digest
from tests.faults.faulty import wait_until

QUESTION = Softmin(np.ones((50, 1)), np.ones(1))


class Graphs(SchedulerPlugin):
    """What of each graph that a scheduler gets is new, by the names of Dask's bars, and what depends on what."""

    name = "graphs"

    def __init__(self) -> None:
        self.graphs: list[Counter[str]] = []
        self.known: set[str] = set()
        self.inputs: dict[str, set[str]] = {}

    def update_graph(self, scheduler: Any, *, tasks: list[str], **more: Any) -> None:
        new = set(tasks) - self.known
        self.known |= new
        self.graphs.append(Counter(key_split(key) for key in new))
        self.inputs |= {key: {each.key for each in scheduler.tasks[key].dependencies} for key in new}


@contextmanager
def recorded(client: Any) -> Iterator[Graphs]:
    graphs, scheduler = Graphs(), client.cluster.scheduler
    scheduler.add_plugin(graphs)
    try:
        yield graphs
    finally:
        scheduler.remove_plugin("graphs")


@pytest.fixture
def source(dataset: Callable[..., Any]) -> Source:
    """80 blocks in 8 MB."""
    path, _ = dataset("gaussian", 50, 40_000, block_rows=500)
    return Source(DataSpec(path, intercept=False))


@pytest.fixture
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    for room in ("anchors", "distributed"):
        monkeypatch.setattr(f"dfeas.engine.{room}.pieces", lambda size, threads, more: 10 * threads)


@pytest.mark.usefixtures("small_ranges")
def test_a_pass_is_one_graph_of_anchors_scans_and_merges(source: Source, client: Any) -> None:
    engine = DaskEngine(client, source, open_source(source))
    with recorded(client) as graphs:
        for _ in range(3):
            engine.run(QUESTION)
    scans = 10 * engine.parallel
    merges = -(-scans // FAN_IN) + 1  # on two levels
    once = {"dfeas-softmin": scans, "dfeas-merge": merges}
    assert graphs.graphs == [{**once, "dfeas-anchor": scans, "dfeas-lease": 1}, once, once]
    for key, inputs in graphs.inputs.items():
        kind = key_split(key)
        assert {key_split(each) for each in inputs} <= {
            "dfeas-anchor": set(),
            "dfeas-lease": set(),
            "dfeas-softmin": {"dfeas-anchor"},
            "dfeas-merge": {"dfeas-softmin", "dfeas-merge"},
        }[kind]
        assert len(inputs) <= (FAN_IN if kind == "dfeas-merge" else 1)
    engine.close()
    del engine
    # of this engine: others of this process may have keys there as well
    wait_until(lambda: not graphs.known & set(client.cluster.scheduler.tasks))


def test_the_driver_gets_one_small_result(source: Source, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = DaskEngine(client, source, open_source(source))
    engine.run(QUESTION)
    gathered: list[Any] = []
    gather = client.scheduler.gather

    async def counting(*, keys: list[str]) -> Any:
        gathered.extend(keys)
        return await gather(keys=keys)

    monkeypatch.setattr(client.scheduler, "gather", counting)
    engine.run(QUESTION)
    engine.run(Ordered(Online(np.ones(50))))
    assert [key_split(key) for key in gathered] == ["dfeas-merge", "dfeas-online"]
    engine.close()


def test_three_workers_give_the_bits_of_one_thread_also_when_one_begins_again(source: Source) -> None:
    question = Softmin(np.random.default_rng(0).standard_normal((50, 3)), np.array([0.0, 0.05, 1.0]))
    questions = question, Partial(question, (1, 4, 5, 16)), Ordered(Online(np.ones(50)))
    expected = [digest(LocalEngine(open_source(source), 1).run(each)) for each in questions]
    with local_cluster(3) as client:
        engine = DaskEngine(client, source, open_source(source), fold_bytes=500_000)
        for _ in range(2):
            assert [digest(engine.run(each)) for each in questions] == expected
        client.restart_workers([min(client.nthreads())])
        assert [digest(engine.run(each)) for each in questions] == expected


def test_a_worker_that_joins_gets_its_share_and_the_others_keep_theirs(source: Source) -> None:
    with local_cluster(2) as client:
        engine = DaskEngine(client, source, open_source(source))
        held = engine._anchors["blocks"]

        def homes() -> list[str]:
            return [min(client.who_has([each])[each.key]) for each in held.tasks]

        for _ in range(2):
            engine.run(QUESTION)
        before = homes()
        assert len(set(before)) == 2
        client.restart_workers([before[0]])
        wait_until(lambda: len(engine._watch.threads()) == 2)
        for _ in range(3):
            engine.run(QUESTION)
        after = homes()
        assert after[1] == before[1]
        assert after[0] not in before


class Held:
    """A result that lies with some workers."""

    status = "finished"

    def __init__(self, key: str) -> None:
        self.key = key


def lie(anchors: Anchors, homes: Mapping[str, set[str]], crew: Mapping[str, int], monkeypatch: Any) -> dict[str, set[str]]:
    """Every new anchor goes to the worker that has least, in turns, as a scheduler gives it."""
    placed = dict(homes)
    new = [i for i, each in enumerate(anchors.tasks) if not isinstance(each, Held)]
    load = Counter(worker for held in placed.values() for worker in held)
    order = sorted(crew, key=lambda worker: load[worker] / crew[worker])
    for turn, i in enumerate(new):
        anchors.tasks[i] = Held(anchors.tasks[i].key)
        placed[anchors.tasks[i].key] = {order[turn % len(order)]}
    return {each.key: placed[each.key] for each in anchors.tasks}


CREWS = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 3), min_size=1)


@given(st.lists(CREWS, min_size=1, max_size=4))
def test_all_workers_have_their_share_some_passes_after_any_of_them_came_or_went(crews: list[dict[str, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dfeas.engine.anchors.Future", Held)
        anchors, homes = Anchors("x"), dict[str, set[str]]()
        for crew in crews:
            for _ in range(50):
                here = {key: held & crew.keys() for key, held in homes.items()}
                parts = anchors.assign(1000, 1 << 20, crew, lambda keys, here=here: {k: here[k] for k in keys if here[k]})
                moved = sum(not isinstance(each, Held) for each in anchors.tasks)
                homes = lie(anchors, {k: v for k, v in here.items() if v}, crew, patch)
                if not moved:
                    break
            assert not moved
            assert (parts[0].first, parts[-1].stop) == (0, 1000)
            total = sum(crew.values())
            for worker, threads in crew.items():
                assert sum(worker in held for held in homes.values()) <= -(-len(parts) * threads // total)


def counted(folder: Path, index: int) -> np.ndarray:
    """Some rows, of which a file says that they were made."""
    import uuid

    (folder / f"{index}-{uuid.uuid4().hex}").touch()
    X = np.random.default_rng(index).standard_normal((600, 3))
    return np.hstack([X, np.sign(X @ [[1], [2], [3]])])


def as_frame(index: int, folder: Path) -> pd.DataFrame:
    return pd.DataFrame(counted(folder, index), columns=["a", "b", "c", "label"])


def lazy(kind: str, folder: Path) -> tuple[Any, Any]:
    """Points and labels of seven partitions, each of which is made of one thing."""
    if kind == "frame":
        whole = dd.from_map(as_frame, range(7), folder=folder, meta=as_frame(0, folder)[:0])
        return whole, "label"
    made = [delayed(counted, pure=True)(folder, index) for index in range(7)]
    whole = da.concatenate([da.from_delayed(each, (600, 4), np.float64) for each in made])
    return whole[:, :3], whole[:, 3]


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_a_partition_is_computed_once_in_a_pass(
    kind: str, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dfeas.data.collections.default_block_rows", lambda *about: 300)
    engine = CollectionEngine(client, open_collection(client, DataSpec(*lazy(kind, tmp_path), intercept=False)))
    assert engine.collection.partitions == 7
    once = dict.fromkeys(range(7), 1)
    for question in (Softmin(np.ones((3, 1)), np.ones(1)), Ordered(Online(np.ones(3)))):
        for _ in range(2):
            for file in tmp_path.iterdir():
                file.unlink()
            engine.run(question)
            assert Counter(int(file.name.partition("-")[0]) for file in tmp_path.iterdir()) == once
    engine.close()
