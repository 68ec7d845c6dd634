"""Trials: wires that are cut or slow, clocks that differ, and TLS. Most need namespaces."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from threading import Timer

from benchmarks.trials.deaths import running
from benchmarks.trials.hosts import run
from benchmarks.trials.stage import Stage
from benchmarks.trials.trial import trial

MAKE_KEYS = Path(__file__).parents[2] / "cluster" / "certificates.py"


def cut_for(stage: Stage, host: str, seconds: float) -> None:
    """Cut a wire for so long, or until all commands have ended."""
    command = running(stage)
    stage.host(host).cut()
    join = Timer(seconds, stage.host(host).cut, [False])
    join.start()
    stage.wait(command)
    join.cancel()


@trial(lost=90, workers=None, needs="namespaces")
def worker_unreachable(stage: Stage) -> None:
    """A worker's wire is cut for 60 s"""
    cut_for(stage, "w1", 60)


@trial(lost=90, workers=None, needs="namespaces")
def worker_unreachable_without_configuration(stage: Stage) -> None:
    """A worker's wire is cut for 60 s, with Dask's own configuration"""
    stage.config = False
    cut_for(stage, "w1", 60)


@trial(lost=60, workers=None, needs="namespaces")
def scheduler_unreachable(stage: Stage) -> None:
    """The scheduler's wire is cut for 15 s"""
    command = running(stage)
    stage.host("scheduler").cut()
    time.sleep(15)
    stage.still(command)
    stage.host("scheduler").cut(down=False)


@trial(codes=(75, 3), lost=120, needs="namespaces")
def scheduler_lost(stage: Stage) -> None:
    """The scheduler's wire is cut and stays so; resume on a new cluster"""
    command = running(stage)
    stage.host("scheduler").cut()
    stage.wait(command)
    for name in ("scheduler", *stage.workers):
        stage.host(name).end()
    stage.begin()
    stage.resume(command.out)


@trial(codes=(75, 3), lost=120, needs="namespaces")
def driver_unreachable(stage: Stage) -> None:
    """The driver's wire is cut and stays so; resume on another host"""
    command = running(stage)
    stage.host("driver").cut()
    stage.wait(command)
    stage.resume(command.out, host="elsewhere")


def with_wire(stage: Stage, host: str, **wire: float) -> None:
    stage.begin()
    stage.host(host).slow_down(**wire)
    stage.wait(stage.solve())
    stage.host(host).require_slow()


@trial(lost=30, needs="namespaces")
def slow_worker(stage: Stage) -> None:
    """50 ms and 10 Mbit/s to one worker"""
    with_wire(stage, "w1", bits_per_second=1e7, seconds=0.05)


@trial(lost=90, needs="namespaces")
def slow_driver(stage: Stage) -> None:
    """50 ms and 10 Mbit/s to the driver"""
    with_wire(stage, "driver", bits_per_second=1e7, seconds=0.05)


@trial(lost=30, needs="namespaces")
def lossy_worker(stage: Stage) -> None:
    """A worker's wire loses 5 % of the frames"""
    with_wire(stage, "w1", loss=0.05)


@trial(lost=60, needs="namespaces")
def lossy_driver(stage: Stage) -> None:
    """The driver's wire loses 5 % of the frames"""
    with_wire(stage, "driver", loss=0.05)


def with_clock(stage: Stage, hours: int) -> None:
    stage.start_scheduler()
    stage.start_worker("w1", wrap=("faketime", "-f", f"{hours:+}h"))
    for name in ("w2", "w3"):
        stage.start_worker(name)
    stage.gather(3)
    stage.require_clock(3600 * hours, "w1")
    stage.solve()


@trial(lost=20, needs="faketime")
def clock_ahead(stage: Stage) -> None:
    """The clock of a worker is an hour ahead"""
    with_clock(stage, 1)


@trial(lost=20, needs="faketime")
def clock_behind(stage: Stage) -> None:
    """The clock of a worker is an hour back"""
    with_clock(stage, -1)


@trial(lost=20, needs="faketime")
def clock_of_scheduler(stage: Stage) -> None:
    """The clock of the scheduler is an hour ahead"""
    stage.start_scheduler(wrap=("faketime", "-f", "+1h"))
    for name in ("w1", "w2", "w3"):
        stage.start_worker(name)
    stage.gather(3)
    stage.require_clock(3600)
    stage.solve()


def make_keys(stage: Stage) -> None:
    keys = stage.folder / "keys"
    run(sys.executable, str(MAKE_KEYS), str(keys))
    stage.keys = keys


@trial(lost=20)
def encrypted(stage: Stage) -> None:
    """TLS with the certificates of cluster/certificates.py"""
    make_keys(stage)
    stage.begin()
    assert stage.address.startswith("tls://"), f"the scheduler is at {stage.address}: the trial says nothing"
    stage.solve()


@trial(codes=(2,), lost=20, says="TLS|certificate|tls")
def encrypted_without_certificates(stage: Stage) -> None:
    """TLS, and a driver that has no certificates"""
    make_keys(stage)
    stage.begin()
    stage.solve(DASK_CONFIG=str(stage.environments.folder / "dask.yaml"))
