"""Ctrl-C while the driver waits for a cluster: whenever it comes, the client works on and nothing is printed."""

import asyncio
import random
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
import pytest

from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.engine.clusters import local_cluster
from dfeas.engine.distributed import DaskEngine
from dfeas.engine.local import LocalEngine
from dfeas.engine.signals import interrupts_held, raise_held
from dfeas.engine.watch import Watch, fetch
from dfeas.passes.softmin import Softmin
from tests.bits import digest


@pytest.fixture
def ctrl_c() -> Iterator[Callable[[float], None]]:
    """Sends the interrupt of a terminal after some seconds; whoever started the tests may have it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    alarm = signal.signal(signal.SIGALRM, lambda number, frame: signal.raise_signal(signal.SIGINT))
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds) and None
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, alarm)
    signal.signal(signal.SIGINT, before)


def _interrupted(times: int, ask: bool) -> list[str]:
    """What is reached after so many interrupts."""
    reached = []
    try:
        with interrupts_held():
            raise_held()
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)
            reached.append("held")
            if ask:
                raise_held()
            reached.append("end")
    except KeyboardInterrupt:
        reached.append("interrupt")
    return reached


@pytest.mark.parametrize(
    ("times", "ask", "reached"),
    [
        (0, True, ["held", "end"]),
        (1, True, ["held", "interrupt"]),
        (1, False, ["held", "end", "interrupt"]),
        (2, False, ["interrupt"]),
    ],
)
def test_one_interrupt_is_held_back_until_it_is_asked_for(
    times: int, ask: bool, reached: list[str], ctrl_c: Callable[[float], None]
) -> None:
    assert _interrupted(times, ask) == reached
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    raise_held()


def _until_interrupted(engine: DaskEngine, question: Softmin) -> None:
    while True:
        engine.run(question)


def test_interrupts_at_any_moment_leave_the_client_as_it_was(
    dataset: Callable[..., Any], ctrl_c: Callable[[float], None], capfd: pytest.CaptureFixture[str]
) -> None:
    path, _ = dataset("halfspace", 10, 20_000)
    source = Source(DataSpec(path, intercept=False))
    question = Softmin(np.ones((10, 1)), np.array([0.1]))
    rng = random.Random(1)
    with local_cluster(1) as client:
        engine = DaskEngine(client, source, open_source(source))
        undisturbed = digest(engine.run(question))
        for _ in range(30):
            ctrl_c(rng.uniform(0.003, 0.05))
            with pytest.raises(KeyboardInterrupt):
                _until_interrupted(engine, question)
            assert digest(engine.run(question)) == undisturbed
        engine.close()
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("steps", range(8))
def test_a_wait_that_ends_early_ends_no_other_wait_for_results(steps: int, client: Any) -> None:
    theirs, ours = client.submit(int, 1, pure=False), client.submit(int, 2, pure=False)
    watch = Watch(client)
    assert watch.results([ours]) == [2]

    async def give_up() -> list[int]:
        """In every step that the event loop makes of it, while others wait, too."""
        before = asyncio.ensure_future(client.gather([theirs], asynchronous=True))
        wait = asyncio.ensure_future(fetch(client, [ours]))
        after = asyncio.ensure_future(client.gather([theirs], asynchronous=True))
        for _ in range(steps):
            await asyncio.sleep(0)
        wait.cancel()
        return [*await before, *await after]

    assert client.sync(give_up) == [1, 1]
    assert client.gather([theirs, ours]) == [1, 2]
    assert watch.results([ours]) == [2]


@contextmanager
def _interrupt_within(libraries: str, call: int) -> Iterator[list[int]]:
    """An interrupt comes where so many calls within what those libraries do are made; how many were is told."""
    calls = [0]

    def trace(frame: FrameType, event: str, value: object) -> None:
        if re.search(libraries, frame.f_code.co_filename):
            calls[0] += 1
            if calls[0] == call:
                signal.raise_signal(signal.SIGINT)

    sys.settrace(trace)
    try:
        yield calls
    finally:
        sys.settrace(None)


def _first(dataset: object, first: int, stop: int, *, stopped: Callable[[], bool]) -> int:
    stopped()
    time.sleep(0.001)
    return first


def test_an_interrupt_in_what_a_pool_does_leaves_the_engine_as_it_was(
    dataset: Callable[..., Any], ctrl_c: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a lock that other threads wait for, an exception leaves it taken: they, and the next pass, would wait for ever."""
    monkeypatch.setattr("dfeas.engine.local.pieces", lambda read, threads, more: threads * more)
    path, _ = dataset("halfspace", 10, 1_000, block_rows=100)
    made, interrupted = LocalEngine(open_source(Source(DataSpec(path))), 2), 0
    for call in range(1, 400):
        try:
            with _interrupt_within(r"concurrent.futures|threading\.py", call):
                made.map(_first)
        except KeyboardInterrupt:
            interrupted += 1
        assert len(made.map(_first)) == 8
    made.close()
    assert interrupted > 50
