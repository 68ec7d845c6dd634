"""A solver in memory has a thread of its own: a limit of time or an interrupt need not wait for a factorisation to end. Nor
need it wait for a long read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from threading import Event, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from dfeas.data.storage.patience import GRACE, at_most, wait_by
from dfeas.engine.signals import LEFT_BEHIND, pause
from dfeas.errors import UndecidedError, spell
from dfeas.linalg.blas import heard

if TYPE_CHECKING:
    from concurrent.futures import Future

R = TypeVar("R")

LOOK_SECONDS = 0.1
"""How often it is looked whether it has ended, or should."""


class Abandoned(Exception):
    """Nobody waits any more for what a solver would have found."""


class _Raised(Struct, frozen=True, eq=False):
    """What is raised in here is raised where the future is asked for its result."""

    future: Future[Any]

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        if error is not None:
            self.future.set_exception(error)
        return True


@contextmanager
def end_long_reads(stop: Callable[[], bool]) -> Iterator[None]:
    """A read in here that takes more than ``GRACE`` seconds ends when ``stop`` says so, with Abandoned."""
    began = time.monotonic()

    def listen(text: str) -> None:
        if time.monotonic() - began > GRACE and stop():
            raise Abandoned

    with heard(listen):
        yield


@contextmanager
def open_in_time() -> Iterator[None]:
    """While data is opened, of which nothing is known yet. Raises UndecidedError where that is waited for a little longer than
    the limit of time allows: who waits for workers or a scheduler gives up before, and says so.
    """
    last = time.monotonic() + at_most() + GRACE

    def listen(text: str) -> None:
        if time.monotonic() > last:
            said = f"{spell('time_limit')} was over before the data was open"
            raise UndecidedError(f"{said}; give more, or find out why the cluster or the storage does not answer")

    with heard(listen), wait_by(pause):
        yield


def run_solver_here(solver: Callable[[], R], stop: Callable[[], bool]) -> R:
    """The same in this thread, of one that takes less than a thread does to begin. Raises Abandoned where ``stop`` says so."""
    looked = time.monotonic()

    def listen(text: str) -> None:
        nonlocal looked
        if time.monotonic() - looked >= LOOK_SECONDS:
            looked = time.monotonic()
            if stop():
                raise Abandoned

    with heard(listen):
        return solver()


def ignore(text: str, seconds: float) -> None:
    """Show nothing of a solver."""


def run_solver(solver: Callable[[], R], stop: Callable[[], bool], show: Callable[[str, float], None] = ignore) -> R:
    """What the solver returns or raises, unless ``stop`` says to wait no longer.

    ``show`` is told in this thread what it has said last, and for how many seconds it has worked. One that nobody waits for
    ends at its next step.

    Raises
    ------
    Abandoned
        When ``stop`` was true before it had ended.
    """
    from concurrent.futures import Future, wait

    future: Future[R] = Future()
    left, said, began = Event(), [""], time.monotonic()

    def listen(text: str) -> None:
        if left.is_set():
            raise Abandoned
        said[0] = text or said[0]

    def work() -> None:
        with _Raised(future), heard(listen):
            future.set_result(solver())

    # a daemon: the end of the program does not wait for it
    Thread(target=copy_context().run, args=(work,), name=LEFT_BEHIND, daemon=True).start()
    try:
        while not wait([future], LOOK_SECONDS).done:
            if stop():
                raise Abandoned
            show(said[0], time.monotonic() - began)
        return future.result()
    except BaseException:
        left.set()
        raise
