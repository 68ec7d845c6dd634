"""Workers keep blocks from pass to pass, see the same data, and their homes survive them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from distributed import Client

from dfeas.data.cache import HELD_BYTES
from dfeas.data.dataset import FILE_READS, SIDES_WIDTH
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.engine import crew
from dfeas.engine.clusters import local_cluster
from dfeas.engine.distributed import DaskEngine
from dfeas.errors import CorruptDataError
from dfeas.kernels.gram import GramProduct
from dfeas.kernels.kernel import kernel_of
from dfeas.passes.protocol import Ordered, Partial
from dfeas.passes.softmin import Softmin
from dfeas.passes.steps import Online
from dfeas.passes.survey import Survey
from dfeas.records import replace
from dfeas.run.session import survey
from tests.faults.faulty import wait_until

QUESTION = Softmin(np.ones((50, 1)), np.ones(1))
WHOLE = 40_000 * 50 * 4


def test_a_second_pass_reads_only_what_all_workers_together_cannot_keep(dataset: Callable[..., Any], client: Any) -> None:
    path, _ = dataset("gaussian", 50, 40_000, block_rows=500)
    block = 500 * (50 * 4 + SIDES_WIDTH) + HELD_BYTES
    for each, kept in ((0, 0), (10, 14), (200, 80)):
        source = Source(DataSpec(path, intercept=False), cache_bytes=each * block)
        engine = DaskEngine(client, source, open_source(source))
        engine.run(Partial(QUESTION, (0, 7)))
        for _ in range(FILE_READS + 1):
            engine.run(QUESTION)
            assert engine.cost.bytes_read + engine.cost.cached_bytes == WHOLE
            # a range that changed hands comes to nobody often enough
            assert engine.cost.bytes_read >= 3 / 4 * WHOLE
        engine.run(QUESTION)
        assert engine.cost.points == 40_000
        assert engine.cost.bytes_read + engine.cost.cached_bytes == WHOLE
        # a busy worker may lose a range to the other
        assert WHOLE - kept * 500 * 200 <= engine.cost.bytes_read <= WHOLE - 3 / 4 * kept * 500 * 200
        engine.close()


def test_a_run_that_is_over_leaves_nothing_on_the_workers(dataset: Callable[..., Any], client: Any) -> None:
    def kept(run: str) -> int:
        from dfeas.engine import worker

        return sum(d.kept.taken for s, d in worker._opened.items() if s.run == run)

    path, _ = dataset("gaussian", 50, 40_000, block_rows=500)
    source = Source(DataSpec(path, intercept=False), cache_bytes=2 * WHOLE)
    engine = DaskEngine(client, source, open_source(source))
    for _ in range(2 * FILE_READS + 1):
        engine.run(QUESTION)
    assert sum(client.run(kept, engine.source.run).values()) >= WHOLE
    engine.close()
    assert sum(client.run(kept, engine.source.run).values()) == 0


def test_what_a_driver_that_is_gone_left_is_forgotten_and_what_a_living_one_has_is_not(dataset: Callable[..., Any]) -> None:
    def known() -> set[str]:
        from dfeas.engine import worker

        return {source.run for source in worker._opened}

    path, _ = dataset("gaussian", 50, 40_000, block_rows=500)
    source = Source(DataSpec(path, intercept=False), cache_bytes=2 * WHOLE)
    with local_cluster(2) as client:
        other = Client(client.scheduler.address, set_as_default=False)
        gone, living = (DaskEngine(each, source, open_source(source)) for each in (other, client))
        for engine in (gone, living):
            engine.run(QUESTION)
        assert set().union(*client.run(known).values()) >= {gone.source.run, living.source.run}
        other.close()  # and nobody tells the workers
        wait_until(lambda: gone.source.run not in set().union(*client.run(known).values()), 30)
        assert living.source.run in set().union(*client.run(known).values())
        living.close()
        wait_until(lambda: not any(key.startswith("dfeas") for key in client.cluster.scheduler.tasks))


def test_a_busy_worker_does_not_hold_a_pass_up(dataset: Callable[..., Any], tmp_path: Path) -> None:
    path, _ = dataset("gaussian", 50, 40_000, block_rows=500)
    source = Source(DataSpec(path, intercept=False), cache_bytes=2 * WHOLE)
    done = tmp_path / "done"
    with local_cluster(2) as client:
        engine = DaskEngine(client, source, open_source(source))
        for _ in range(2):
            engine.run(QUESTION)
        busy = client.submit(until, str(done), workers=[next(iter(client.nthreads()))], pure=False)
        for _ in range(3):
            assert engine.run(QUESTION).arg.size == 1
        assert busy.status == "pending"
        done.touch()
        assert busy.result() is None


def until(path: str) -> None:
    """Wait for a file."""
    import os
    import time

    deadline = time.monotonic() + 60
    while not os.path.exists(path):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def users_array(folder: Path) -> Source:
    rng = np.random.default_rng(0)
    zarr.create_array(folder / "x", data=rng.standard_normal((20_000, 50)), chunks=(3000, 50))
    np.save(folder / "labels.npy", np.arange(20_000) % 2)
    return Source(DataSpec(folder / "x", str(folder / "labels.npy"), intercept=False), cache_bytes=4 << 20)


class Surveying:
    """As much of a setting as a survey needs."""

    def __init__(self, engine: Any, dataset: Any) -> None:
        self.engine, self.dataset, self.checking = engine, dataset, self


@pytest.mark.parametrize("what", ["points", "labels"])
def test_a_worker_that_sees_other_data_than_the_survey_is_noticed(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew, "REFUSED_SECONDS", 0.1)
    source = users_array(tmp_path)
    with local_cluster(1) as client:
        data = open_source(source)
        engine = DaskEngine(client, source, data)
        survey(Surveying(engine, data))  # type: ignore[arg-type]
        pairs = GramProduct(kernel_of("linear")[0], np.eye(20_000, 1, -1234))
        for question in (QUESTION, Partial(Survey(), (1, 3)), Ordered(Online(np.ones(50))), pairs):
            engine.run(question)
        client.restart()  # another process, which has seen nothing yet
        engine.run(QUESTION)
        client.restart()
        if what == "points":
            zarr.open_array(tmp_path / "x")[1234, 5] += 1
        else:
            np.save(tmp_path / "labels.npy", np.arange(20_000) % 2 == 0)
        seen = "workers read other points or labels" if what == "points" else "labels.npy: not the data there that is here"
        for question in (QUESTION, Ordered(Online(np.ones(50))), pairs):
            with pytest.raises(CorruptDataError, match=seen):
                engine.run(question)


def test_a_worker_that_sees_another_dataset_is_noticed(dataset: Callable[..., Any], client: Any) -> None:
    path, _ = dataset("gaussian", 50, 4_000, block_rows=500)
    other, _ = dataset("gaussian", 50, 4_000, block_rows=500, seed=7, name="other")
    source = Source(DataSpec(path, intercept=False))
    engine = DaskEngine(client, source, open_source(source))
    engine.run(QUESTION)
    elsewhere = replace(engine.source, spec=DataSpec(other, intercept=False))
    engine.source = elsewhere
    with pytest.raises(CorruptDataError, match="not the dataset that the run began with"):
        engine.run(QUESTION)
