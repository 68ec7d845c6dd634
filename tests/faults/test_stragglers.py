"""A frozen worker, with Dask's own time-outs, and a slow one: little is lost, and the bits are the same."""

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
from dfeas.engine.distributed import DaskEngine
from dfeas.engine.local import LocalEngine
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


@pytest.mark.parametrize("question", [QUESTION, FOLD], ids=["pass", "fold"])
def test_a_frozen_worker_costs_a_minute_at_most(
    dataset: Callable[..., Any], tmp_path: Path, cluster: Any, question: Any
) -> None:
    path, _ = dataset("gaussian", 50, 20_000, block_rows=500)
    source = Source(DataSpec(path, intercept=False))
    calm = digest(LocalEngine(open_source(source), 1).run(question))
    engine = DaskEngine(cluster, source, open_source(source), fold_bytes=100_000)
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
    pids, gathered, frozen = cluster.run(os.getpid), Watch.gather, list[str]()

    def freeze_whoever_has_it(self: Watch, futures: Any) -> Any:
        if not frozen:
            frozen.extend(cluster.who_has(futures)[futures[0].key])
            os.kill(pids[frozen[0]], signal.SIGSTOP)
        return gathered(self, futures)

    monkeypatch.setattr(Watch, "gather", freeze_whoever_has_it)
    began = monotonic()
    assert digest(engine.run(QUESTION)) == calm
    assert frozen
    assert monotonic() - began < 60


def drag(address: str, block: Any) -> None:
    """What one worker does for each block."""
    from distributed import get_worker

    if get_worker().address == address:
        Event().wait(1.0)


def test_what_a_slow_worker_has_not_begun_is_done_by_others(dataset: Callable[..., Any], cluster: Any) -> None:
    """Of 40 blocks one worker has half, in two ranges, and takes a second for each."""
    path, _ = dataset("gaussian", 50, 200_000, block_rows=5000)
    source = Source(DataSpec(path, intercept=False))
    calm = digest(LocalEngine(open_source(source), 1).run(QUESTION))
    engine = DaskEngine(cluster, source, open_source(source))
    assert digest(engine.run(QUESTION)) == calm
    cluster.register_plugin(Meddling(path, partial(drag, min(cluster.nthreads()))))
    for _ in range(3):
        began = monotonic()
        assert digest(engine.run(QUESTION)) == calm
        assert monotonic() - began < 17
        assert (engine.cost.points, engine.cost.bytes_read + engine.cost.cached_bytes) == (200_000, 200_000 * 50 * 4)
