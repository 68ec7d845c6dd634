"""Trials of data, and of a RUN, in an object store whose answers are bad."""

from __future__ import annotations

import os
import signal
import time

from benchmarks.trials.hosts import wait_for
from benchmarks.trials.stage import Command, Stage
from benchmarks.trials.store import EXPIRED, Store
from benchmarks.trials.trial import trial

BLOCKS = "/X/c"
PATIENCE = "15"


def reading(stage: Stage, passes: int = 4, **env: str) -> tuple[Command, Store]:
    """A run of two workers that read all blocks in each pass, and have read them so often."""
    assert stage.store is not None
    stage.begin(2, env=env)
    command = stage.solve(**env)
    stage.at_pass(command, passes)
    return command, stage.store


def spoiled(stage: Stage, kind: str, every: int = 1, times: int = -1) -> None:
    """A run that meets such answers to requests for blocks, to its end."""
    command, store = reading(stage)
    store.spoil(kind, BLOCKS, every, times)
    stage.wait(command)
    met = store.count("GET", BLOCKS, kind)
    assert met, "no request met the fault: the trial says nothing"
    stage.notes.append(f"{met} bad answers")


@trial(workers=2, needs="store")
def store_calm(stage: Stage) -> None:
    """Data in an object store, no faults"""
    reading(stage)


@trial(lost=90, workers=2, needs="store")
def store_away(stage: Stage) -> None:
    """The store answers 503 to everything for 20 s"""
    command, store = reading(stage)
    store.spoil("status", "/")
    time.sleep(20)
    stage.still(command)
    assert store.count("GET", "/", "status"), "no request met the fault: the trial says nothing"
    store.mend()


@trial(codes=(75, 3), lost=90, workers=2, says="resume", needs="store")
def store_gone(stage: Stage) -> None:
    """The store answers 503 for longer than the run's patience; resume when it is back"""
    command, store = reading(stage, DFEAS_STORAGE_PATIENCE=PATIENCE)
    store.spoil("status", "/")
    stage.wait(command)
    store.mend()
    stage.resume(command.out)


@trial(lost=60, workers=2, needs="store")
def store_refuses_some(stage: Stage) -> None:
    """One of three requests for blocks gets 503"""
    spoiled(stage, "status", 3)


@trial(lost=150, workers=2, needs="store")
def store_hangs(stage: Stage) -> None:
    """Two requests for blocks are never answered"""
    spoiled(stage, "hang", times=2)


@trial(lost=30, workers=2, needs="store")
def store_breaks_off(stage: Stage) -> None:
    """One of five answers ends in the middle"""
    spoiled(stage, "half", 5)


@trial(lost=30, workers=2, needs="store")
def store_truncates(stage: Stage) -> None:
    """One of 17 answers has half of the bytes and says that this is all"""
    spoiled(stage, "short", 17)


@trial(lost=30, workers=2, needs="store")
def store_flips_bits(stage: Stage) -> None:
    """One bit of each 17th answer is another, after the first passes"""
    spoiled(stage, "flip", 17)


@trial(codes=(2, 3), lost=30, workers=2, says="ExpiredToken|credential", needs="store")
def store_token_expires(stage: Stage) -> None:
    """The token expires (400, as AWS says it); resume with a new one"""
    command, store = reading(stage)
    store.spoil("status", BLOCKS, status=400, body=EXPIRED)
    stage.wait(command)
    store.mend()
    stage.resume(command.out)


@trial(lost=15, workers=2, needs="store")
def store_without_listing(stage: Stage) -> None:
    """Objects may be read, not listed"""
    assert stage.store is not None
    stage.begin(2)
    stage.store.deny_listing()
    stage.solve()


@trial(codes=(-signal.SIGKILL, 3), lost=30, workers=2, needs="store")
def run_in_store(stage: Stage) -> None:
    """RUN is in the store; its driver is killed; resume on another host"""
    store = stage.store
    assert store is not None
    stage.begin(2)
    before = store.count("PUT", "/checkpoint")
    command = stage.solve("--checkpoint-every", "0.2", out="s3://bucket/run")
    wait_for(
        lambda: store.count("PUT", "/checkpoint") > before + 2 or command.process.poll() is not None,
        stage.deadline,
        "a checkpoint in the store",
    )
    stage.still(command)
    os.kill(command.process.pid, signal.SIGKILL)
    stage.wait(command)
    stage.resume(command.out, host="elsewhere")
