"""A frozen worker, with Dask's own time-outs, and a slow one: little is lost, the bits are the same, and later passes learn."""

import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import numpy as np
import pytest

from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.engine.clusters import local_cluster
from dfeas.engine.distributed import MERGED_BYTES, DaskEngine
from dfeas.engine.local import LocalEngine
from dfeas.engine.pace import LATE_SECONDS, Pace
from dfeas.engine.watch import Watch
from dfeas.passes.protocol import Ordered
from dfeas.passes.softmin import Softmin
from dfeas.passes.steps import Online
from tests.bits import digest
from tests.faults.faulty import Incident, Meddling, freeze

QUESTION = Softmin(np.ones((50, 2)), np.array([0.1, 0.0]))
FOLD = Ordered(Online(np.ones(50)))
PATIENT = {"distributed.scheduler.worker-ttl": "5 minutes"}
"""Dask's own."""


@pytest.fixture
def cluster() -> Iterator[Any]:
    """Two workers, of which one may be frozen in the end."""
    with local_cluster(2, PATIENT) as client:
        pids = list(client.run(os.getpid).values())
        try:
            yield client
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize(
    ("question", "merged_bytes"),
    [(QUESTION, MERGED_BYTES), (QUESTION, 0), (FOLD, MERGED_BYTES)],
    ids=["pass", "merged pass", "fold"],
)
def test_a_frozen_worker_costs_a_minute_at_most(
    dataset: Callable[..., Any], tmp_path: Path, cluster: Any, question: Any, merged_bytes: int
) -> None:
    path, _ = dataset("gaussian", 50, 20_000, block_rows=500)
    source = Source(DataSpec(path, intercept=False))
    calm = digest(LocalEngine(open_source(source), 1).run(question))
    engine = DaskEngine(cluster, source, open_source(source), fold_bytes=100_000, merged_bytes=merged_bytes)
    assert digest(engine.run(question)) == calm
    incident = Incident(9000, freeze, tmp_path, range(1))
    cluster.register_plugin(Meddling(path, incident))
    for most in (60, 15):  # it would take 18 s and more each time
        began = monotonic()
        assert digest(engine.run(question)) == calm
        assert incident.happened
        assert monotonic() - began < most
        assert engine.cost.points == 20_000


def test_results_on_a_worker_that_freezes_are_computed_elsewhere(
    dataset: Callable[..., Any], cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = dataset("gaussian", 50, 20_000, block_rows=500)
    source = Source(DataSpec(path, intercept=False))
    calm = digest(LocalEngine(open_source(source), 1).run(QUESTION))
    engine = DaskEngine(cluster, source, open_source(source))
    engine.run(QUESTION)
    pids, gathered = list(cluster.run(os.getpid).values()), Watch.gather

    def frozen(self: Watch, futures: Any, workers: Any) -> Any:
        os.kill(pids[0], signal.SIGSTOP)
        return gathered(self, futures, workers)

    monkeypatch.setattr(Watch, "gather", frozen)
    began = monotonic()
    assert digest(engine.run(QUESTION)) == calm
    assert monotonic() - began < 60


def drag(address: str, block: Any) -> None:
    """What one worker does for each block."""
    from distributed import get_worker

    if get_worker().address == address:
        Event().wait(1.0)


@pytest.mark.parametrize("question", [QUESTION, FOLD], ids=["pass", "fold"])
def test_a_slow_worker_does_not_set_the_pace(dataset: Callable[..., Any], cluster: Any, question: Any) -> None:
    path, _ = dataset("gaussian", 50, 20_000, block_rows=500)
    source = Source(DataSpec(path, intercept=False))
    calm = digest(LocalEngine(open_source(source), 1).run(question))
    engine = DaskEngine(cluster, source, open_source(source), fold_bytes=1_000_000)
    assert digest(engine.run(question)) == calm
    cluster.register_plugin(Meddling(path, partial(drag, min(cluster.nthreads()))))
    for most in (30, 12, 12):  # it would take 20 s and more each time
        began = monotonic()
        assert digest(engine.run(question)) == calm
        assert monotonic() - began < most
        assert (engine.cost.points, engine.cost.bytes_read + engine.cost.cached_bytes) == (20_000, 20_000 * 50 * 4)


def test_nobody_is_late_in_a_calm_pass() -> None:
    pace, threads = Pace(), {"a": 1, "b": 2, "c": 1}
    for seconds in (0.01, 1.0, 60.0):
        took = {"a": 1.5 * seconds, "b": 2 * seconds, "c": seconds}
        for _ in range(1000):
            pace.note(took)
        assert pace.fit(threads) == threads
        assert not pace.is_late(3.9 * seconds, list(took.values()))


def test_a_worker_that_is_a_little_slow_in_each_of_many_passes_rests_for_longer_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr("dfeas.engine.pace.monotonic", lambda: now)
    pace, threads, rested = Pace(), {"a": 1, "b": 1}, []
    for _ in range(3):
        passes = 0
        while pace.fit(threads) == threads:
            pace.note({"a": 0.1, "b": 0.9})
            passes += 1
        assert passes == LATE_SECONDS / 0.5 + 1
        began = now
        while pace.fit(threads) == {"a": 1}:
            now += 1.0
        rested.append(now - began)
    assert rested == [60, 120, 240]
    pace.rest("a")
    pace.rest("b")
    assert pace.fit(threads) == threads
