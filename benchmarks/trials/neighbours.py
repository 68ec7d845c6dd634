"""Trials: others on the same cluster, workers that come and go, little memory, a run that the cluster drives itself."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import cloudpickle
from dask.utils import parse_bytes
from distributed import Client

from benchmarks.trials.deaths import running
from benchmarks.trials.hosts import alive, wait_for
from benchmarks.trials.stage import Stage
from benchmarks.trials.trial import trial

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import this file


@trial(lost=40)
def restarted_by_another(stage: Stage) -> None:
    """Another user restarts all workers (client.restart)"""
    command = running(stage)
    with stage.client() as other:
        other.restart(timeout=60)
        stage.still(command)
        assert not {*other.run(os.getpid).values()} & {*stage.pids.values()}, (
            "workers were not restarted: the trial says nothing"
        )
    stage.wait(command)


@trial(codes=(3, 3), lost=40)
def two_users(stage: Stage) -> None:
    """Two users run the same question at once"""
    stage.begin()
    first = stage.solve()
    stage.at_pass(stage.solve(host="elsewhere"), 1)
    stage.still(first)


@trial(lost=45, workers=2, says="no Dask worker")
def no_workers_at_first(stage: Stage) -> None:
    """No worker at the start; two come after 15 s"""
    stage.start_scheduler()
    command = stage.solve()
    time.sleep(15)
    stage.still(command)
    for name in ("w1", "w2"):
        stage.start_worker(name)
    stage.wait(command)


@trial(lost=30, workers=1)
def workers_come_and_go(stage: Stage) -> None:
    """One worker, two more in pass 5, and two retired when they are there"""
    stage.begin(1)
    command = stage.solve()
    stage.at_pass(command, 5)
    for name in ("w2", "w3"):
        stage.start_worker(name)
    with stage.client() as client:
        wait_for(lambda: len(client.nthreads()) == 3, 60, "three workers")
        named = {about["name"]: address for address, about in client.scheduler_info(n_workers=-1)["workers"].items()}
        stage.still(command)
        client.retire_workers([named["w1"], named["w2"]])


def with_little(stage: Stage, limit: str) -> None:
    stage.start_scheduler()
    stage.start_worker("w1", "--memory-limit", limit)
    for name in ("w2", "w3"):
        stage.start_worker(name)
    stage.gather(3)
    assert stage.limits["w1"] == parse_bytes(limit), f"w1 has a limit of {stage.limits['w1']}: the trial says nothing"
    stage.solve("--memory", "2GB")


@trial(lost=30)
def little_memory(stage: Stage) -> None:
    """A worker has a limit of 220 MB, the run a budget of 2 GB"""
    with_little(stage, "220MB")


@trial(lost=60)
def very_little_memory(stage: Stage) -> None:
    """A worker has a limit of 150 MB, the run a budget of 2 GB"""
    with_little(stage, "150MB")


def take(gigabytes: float) -> int:
    """Use so much memory for a while, as somebody else's task does."""
    import time

    taken = bytearray(b"x") * int(gigabytes * 1e9)
    time.sleep(2)
    return len(taken)


@trial(lost=30)
def large_task_of_another(stage: Stage) -> None:
    """Another user's task takes 1 GB on a worker with a limit of 500 MB"""
    stage.start_scheduler()
    stage.start_worker("w1", "--memory-limit", "500MB")
    for name in ("w2", "w3"):
        stage.start_worker(name)
    stage.gather(3)
    command = stage.solve()
    stage.at_pass(command, 20)
    with stage.client() as other:
        task = other.submit(lambda: take(1.0), workers=["w1"], retries=0)  # plain functions go by their module
        wait_for(lambda: not alive(stage.pids["w1"]), 30, "the end of w1, which takes too much")
        stage.still(command)
        stage.wait(command)
        other.cancel([task], force=True)
        recovered(other)


def recovered(client: Client) -> None:
    """Wait until a worker that its nanny killed is there again."""
    wait_for(lambda: len(client.nthreads()) == 3, 30, "the worker that had taken too much")


@trial(codes=(0, 0, 0), lost=40, stays=1)
def submitted(stage: Stage) -> None:
    """A worker drives the run: submit, status, fetch"""
    stage.begin()
    run = stage.folder / "submitted"
    where = ("--scheduler", stage.address)
    sent = stage.command("submit", stage.data, *stage.question, "--out", run, *where, "--json")
    stage.wait(sent)
    about: dict[str, Any] = json.loads(next(line for line in sent.text.splitlines() if line.startswith("{")))
    wait_for((run / "result.json").exists, stage.deadline, "result.json of the submitted run")
    stage.wait(stage.command("status", about["run"], *where))
    fetched = str(stage.folder / "fetched")
    stage.wait(stage.command("fetch", about["run"], "--out", fetched, *where, run=fetched))
