"""Trials: no fault at all; processes and hosts that die or freeze."""

from __future__ import annotations

import os
import signal
import time

from benchmarks.trials.hosts import alive, wait_for
from benchmarks.trials.stage import Command, Stage
from benchmarks.trials.trial import trial

FORGOTTEN_SECONDS = 40.0
"""After a driver was killed: a lease of 30 s, and a moment."""


def running(stage: Stage) -> Command:
    """A run on three workers in its twentieth pass."""
    stage.begin()
    command = stage.solve()
    stage.at_pass(command, 20)
    return command


@trial(lost=10)
def calm(stage: Stage) -> None:
    """Nothing, with the shipped configuration"""
    stage.begin()
    stage.solve()


@trial(lost=15)
def calm_without_configuration(stage: Stage) -> None:
    """Nothing, with Dask's own configuration"""
    stage.config = False
    stage.begin()
    stage.solve()


@trial()
def two_threads(stage: Stage) -> None:
    """Workers have two threads"""
    stage.begin(threads=2)
    stage.solve()


@trial(lost=30)
def worker_killed(stage: Stage) -> None:
    """A worker process is killed"""
    stage.strike(running(stage), "w1", signal.SIGKILL)


@trial(lost=30, workers=2)
def worker_host_gone(stage: Stage) -> None:
    """A worker's host is gone, nanny and all"""
    running(stage)
    stage.host("w1").strike(signal.SIGKILL)


@trial(lost=30, workers=2)
def worker_without_nanny_killed(stage: Stage) -> None:
    """A worker that has no nanny is killed"""
    stage.start_scheduler()
    stage.start_worker("w1", "--no-nanny")
    for name in ("w2", "w3"):
        stage.start_worker(name)
    stage.gather(3)
    command = stage.solve()
    stage.at_pass(command, 20)
    stage.host("w1").strike(signal.SIGKILL)


@trial(lost=30, workers=None)
def worker_frozen(stage: Stage) -> None:
    """A worker process is stopped (SIGSTOP) and stays so"""
    stage.strike(running(stage), "w1", signal.SIGSTOP)


@trial(lost=30, workers=None)
def worker_host_frozen(stage: Stage) -> None:
    """A worker's host is stopped, nanny and all"""
    running(stage)
    stage.host("w1").strike(signal.SIGSTOP)


@trial(lost=30, workers=None)
def worker_frozen_without_configuration(stage: Stage) -> None:
    """A worker process is stopped, with Dask's own configuration"""
    stage.config = False
    stage.strike(running(stage), "w1", signal.SIGSTOP)


@trial(codes=(75, 3), lost=75)  # a client looks for its scheduler for the 60 s of dask.yaml
def scheduler_killed(stage: Stage) -> None:
    """The scheduler is killed; resume on a new cluster"""
    command = running(stage)
    stage.host("scheduler").strike(signal.SIGKILL)
    stage.wait(command)
    for name in stage.workers:
        stage.host(name).end()
    stage.begin()
    stage.resume(command.out)


@trial(codes=(-signal.SIGKILL, 3), lost=20)
def driver_killed(stage: Stage) -> None:
    """The driver is killed; what it kept on workers goes; resume on another host"""
    command = running(stage)
    with stage.client() as client:
        kept = stage.kept(client)
        assert kept, "the workers keep no blocks: the trial says nothing"
        os.kill(command.process.pid, signal.SIGKILL)
        stage.wait(command)
        began = time.monotonic()
        try:
            wait_for(lambda: not stage.kept(client), FORGOTTEN_SECONDS, f"the end of {kept:.0f} MiB that the driver kept")
            stage.notes.append(f"{kept:.0f} MiB that were kept were gone after {time.monotonic() - began:.0f} s")
        except TimeoutError as error:
            stage.wrong.append(str(error))
    stage.resume(command.out, host="elsewhere")


@trial(codes=(75, 3), lost=20)
def driver_terminated(stage: Stage) -> None:
    """The driver is asked to end (SIGTERM); resume"""
    command = running(stage)
    os.kill(command.process.pid, signal.SIGTERM)
    stage.wait(command)
    assert alive(stage.host("scheduler").running[-1].pid)
    stage.resume(command.out, host="elsewhere")
