"""A driver that waits is told of workers that come and go."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from distributed import Client, LocalCluster

import dfeas
from dfeas.engine import watch
from dfeas.engine.clusters import local_cluster
from dfeas.engine.turnover import TOPIC, describe_loss, turnovers
from dfeas.engine.watch import Watch
from dfeas.run.resources import attend_runs
from tests.engine.test_keeping import until
from tests.faults.faulty import wait_until


def test_a_worker_that_died_is_known_though_nobody_asks() -> None:
    with local_cluster(2) as client:
        told = Watch(client, ask_seconds=1e9)
        before = set(told.threads())
        pid = client.run(os.getpid, workers=[min(before)])[min(before)]
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: min(before) not in told.threads())
        wait_until(lambda: len(told.threads()) == 2)  # its nanny has started another one


def test_a_driver_that_waits_does_not_ask_who_is_there(client: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = []
    ask = watch.ask_for_workers
    monkeypatch.setattr(watch, "ask_for_workers", lambda client, **how: [asked.append(1), ask(client, **how)][1])
    waiting, looks = Watch(client, look_seconds=0.01, ask_seconds=60), []
    waiting.threads()

    def look() -> None:
        looks.append(1)
        if len(looks) == 20:
            (tmp_path / "done").touch()

    waiting.results([client.submit(until, str(tmp_path / "done"), pure=False)], look)
    assert len(looks) >= 20
    assert len(asked) == 1


class LostOnce:
    """A result that is lost before anybody has seen it, and comes again, as Dask's futures do: it calls back once."""

    status = "finished"

    def __init__(self) -> None:
        self.asked = 0

    def add_done_callback(self, call: Callable[[Any], None]) -> None:
        call(self)

    def done(self) -> bool:
        self.asked += 1
        return self.asked > 3


def test_a_result_that_is_lost_and_comes_again_is_seen(client: Any) -> None:
    waiting, began = Watch(client, look_seconds=0.01), time.monotonic()

    def look() -> None:
        assert time.monotonic() < began + 20, "it waits for a call that Dask does not make"

    assert waiting.settle([LostOnce()], look, set(waiting.threads()))  # type: ignore[list-item]


def test_a_client_that_is_just_going_is_told_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with local_cluster(1) as client:
        scheduler = client.cluster.scheduler
        leaving = Client(client.cluster)
        Watch(client).threads()
        Watch(leaving).threads()
        told = turnovers[client]
        before = told.count

        async def leave() -> bool:
            scheduler.client_comms[leaving.id].abort()
            scheduler.plugins[TOPIC].remove_worker(scheduler, "tcp://gone")
            return leaving.id in scheduler.client_comms

        last = client.sync(leave)
        wait_until(lambda: told.count > before)
        leaving.close()
    assert last
    assert "Closed comm" not in caplog.text


@pytest.mark.parametrize("stopped", ["time_limit", "interrupted"])
def test_a_wait_for_the_first_worker_ends_as_a_read_does(stopped: str, dataset: Callable[..., Any], tmp_path: Path) -> None:
    path, _ = dataset("halfspace", 10, 2000)
    began = time.monotonic()
    limit = 1.0 if stopped == "time_limit" else None
    with LocalCluster(n_workers=0, dashboard_address=None) as cluster, Client(cluster) as client:
        with attend_runs(lambda: limit is None and time.monotonic() > began + 1, False):
            found = dfeas.solve(path, out=tmp_path / "run", client=client, time_limit=limit)
        assert (found.stopped, found.verdict) == (stopped, "undecided")
        assert time.monotonic() < began + 60  # it waits ten minutes for a worker
        cluster.scale(1)
        assert dfeas.resume(tmp_path / "run", client=client, time_limit=60.0).verdict == "feasible"


def test_nothing_is_left_on_a_scheduler_whose_clients_have_gone() -> None:
    with local_cluster(1) as client:
        cluster = client.cluster
        with Client(cluster) as other:
            Watch(client).threads()
            Watch(other).threads()
        assert TOPIC in cluster.scheduler.plugins
        client.close()
        wait_until(lambda: TOPIC not in cluster.scheduler.plugins)


@pytest.mark.parametrize("leaves", ["killed", "retired"])
def test_a_worker_that_is_lost_is_said_in_one_line_and_one_that_retires_is_not(
    leaves: str, dataset: Callable[..., Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, _ = dataset("one-flip", 20, 12_000, margin=0.05, block_rows=500)
    with local_cluster(2) as client:
        there = client.run(os.getpid)
        worker, pid = min(there.items())
        warned: list[str] = []
        left: list[float] = []

        def watch_run(record: Any) -> bool:
            warned.extend(record.warnings)
            if record.passes == 3 and leaves == "killed":
                os.kill(pid, signal.SIGKILL)
            elif record.passes == 3:
                client.retire_workers([worker])
            if record.passes == 3:
                left.append(time.monotonic())
            return bool(warned) or bool(left and leaves == "retired" and time.monotonic() > left[0] + 5)

        run = dfeas.solve(
            path, method="mirror-prox", eps=1e-12, client=client, out=tmp_path / "run", time_limit=120, callback=watch_run
        )
    assert run.stopped == "interrupted", "the time limit came before a warning"
    lost = [record.getMessage() for record in caplog.records if record.name == "dfeas" and worker in record.getMessage()]
    kept = [event for event in (tmp_path / "run" / "trace.jsonl").read_text().splitlines() if '"event": "warning"' in event]
    assert len(lost) == len(warned) == len(kept) == (leaves == "killed")
    if leaves == "killed":
        assert lost == warned
        assert " was lost at " in lost[0]
        assert " that it kept must be read again" in lost[0]
        assert " that it kept must be read again" in kept[0]


def test_what_is_lost_with_a_worker_is_what_the_scheduler_says_of_this_run() -> None:
    run, other = "0123abcd", "ffff0000"
    keys = [f"dfeas-survey-moments-{run}-1-0", f"dfeas-merge-{run}-1-3", f"dfeas-merge-{run}-1-4", f"dfeas-softmin-{other}-1-1"]
    said = {"tasks": [*keys, f"dfeas-anchor-{run}-7", f"dfeas-anchor-{run}-pairs-2", f"dfeas-lease-{run}9999"], "results": 3}
    text = describe_loss(run, 0.0, said)
    assert "(2 merge, 1 survey-moments); 2 ranges of blocks" in text
    assert "Dask recomputes 3 results" in text
    assert describe_loss(run, 0.0, {"tasks": keys[3:]}).endswith(": no task of this run was there")
    assert describe_loss(run, 0.0, {}).endswith(": other workers do what it had")
