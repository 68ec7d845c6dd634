"""Storage that does not answer is waited for, minutes long, before it is called away; it is not taken for damaged. What came
damaged over a network is asked for once more.

Who works for a run says how its threads wait, so that they stop waiting when the run ends. On a worker of a cluster the wait is
short: the driver goes on with it, which knows when the run should end, and whose log is read.
"""

from __future__ import annotations

import errno
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event
from typing import ClassVar, TypeVar

from dfeas.errors import CorruptDataError, StorageAwayError, log_warning
from dfeas.settings import read_setting, variable

R = TypeVar("R")
Rest = Callable[[float], None]
"""Lets so many seconds pass, or raises when nothing is waited for any more."""

SETTING = "storage_patience"
"""How long storage that does not answer is waited for."""
SHORT_SECONDS = 15.0
"""How long a worker waits: its thread is taken that long, also when nobody wants its answer any more."""
FIRST_PAUSE, LONGEST_PAUSE, SAID_SECONDS = 0.5, 15.0, 30.0
"""Pauses between attempts grow from the first to the longest; what is waited for is said so often."""
AWAY = (errno.ESTALE, errno.ETIMEDOUT, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH, errno.ENOTCONN)
"""Errors of a file system whose server is away. One that is mounted ``soft`` also says EIO, as a damaged disk does."""
GRACE = 2.0
"""Seconds that a wait or a read may take, whatever the limit of time: what comes soon is worth more than they are."""
_began: ContextVar[float | None] = ContextVar("began", default=None)
_ends: ContextVar[float] = ContextVar("ends", default=math.inf)
is_afresh: ContextVar[bool] = ContextVar("is_afresh", default=False)
"""Whether what is read now is to come from where it lies, whatever is kept of it here."""
_stop: ContextVar[Callable[[], bool]] = ContextVar("stop", default=lambda: False)
_manner: ContextVar[tuple[Rest, float]] = ContextVar("manner", default=(time.sleep, math.inf))


def call_began() -> float:
    """When the call of a user began that goes on here, in monotonic seconds: now, or with the command that it is a part of."""
    began = _began.get()
    return time.monotonic() if began is None else began


@contextmanager
def one_call(seconds: float | None, began: float | None = None) -> Iterator[None]:
    """Verbs that are called in here are parts of one call, which begins now, or began then, and has a limit of time."""
    began = time.monotonic() if began is None else began
    with ends_at(math.inf if seconds is None else began + seconds):
        _began.set(began)
        yield


@contextmanager
def ends_at(moment: float) -> Iterator[None]:
    """What is waited for in here is given up then, in monotonic seconds: see ``at_most``. Calls in it have own clocks."""
    before = _began.set(None), _ends.set(moment)
    try:
        yield
    finally:
        _began.reset(before[0])
        _ends.reset(before[1])


def at_most(seconds: float = math.inf) -> float:
    """How long a wait that begins now may last, which may last so many seconds where there is no limit of time."""
    return min(seconds, max(GRACE, _ends.get() - time.monotonic()))


def gives_up() -> bool:
    """Whether a proof that takes long is not waited for any more."""
    return _stop.get()()


@contextmanager
def give_up_when(stop: Callable[[], bool]) -> Iterator[None]:
    """A proof in here that takes long ends without an answer when ``stop`` says so."""
    token = _stop.set(stop)
    try:
        yield
    finally:
        _stop.reset(token)


@contextmanager
def wait_by(rest: Rest, most: float = math.inf) -> Iterator[None]:
    """In here, in this thread, pauses are spent by ``rest``, and nothing is waited for longer than ``most`` seconds."""
    token = _manner.set((rest, most))
    try:
        yield
    finally:
        _manner.reset(token)


def wait_until(ended: Event) -> None:
    """For the threads of a pool, when they begin: nothing is waited for any more when the work has ended."""

    def pause(seconds: float) -> None:
        if ended.wait(seconds):
            raise StorageAwayError("nobody waits for it any more")

    _manner.set((pause, math.inf))


def limit() -> float:
    """How many seconds storage is waited for."""
    return float(read_setting(SETTING))


def rest(seconds: float) -> None:
    """Let some time pass as this thread should."""
    _manner.get()[0](seconds)


class Patience:
    """One wait for storage, which begins with the first error that it is away."""

    said: ClassVar[float] = -math.inf
    """When somebody said last that something is waited for: other threads of this process may wait for the same."""

    def __init__(self) -> None:
        self._waited, self._since = 0.0, math.inf  # seconds, and when the last attempt began
        self._pause = FIRST_PAUSE

    def bear(self, error: StorageAwayError) -> None:
        """Let time pass until the next attempt. Raises StorageAwayError when patience is over, here or further in."""
        (pause, most), patience = _manner.get(), limit()
        now = time.monotonic()
        # an attempt counts as no longer wait: a pass may go on for an hour before storage is away again
        waited = self._waited = self._waited + max(0.0, min(now - self._since, 60.0))
        if error.waited or most <= waited < patience:
            raise error
        if waited >= patience:
            over = f"{error.args[0]}; it was waited for {waited:.0f} s ({variable(SETTING)}), run again when it is back"
            final = StorageAwayError(over)
            final.waited = True
            raise final from None
        if now - Patience.said > (1 if self._pause == FIRST_PAUSE else SAID_SECONDS):
            Patience.said = now
            log_warning("%s; trying again for %.0f s", error, patience - waited)
        pause(min(self._pause, min(patience, most) - waited))
        self._pause, self._since = min(2 * self._pause, LONGEST_PAUSE), time.monotonic()
        self._waited += self._since - now


def persist(attempt: Callable[[], R]) -> R:
    """What an attempt returns, which is made again while storage is away. Raises StorageAwayError when patience is over."""
    patience = Patience()
    while True:
        try:
            return attempt()
        except StorageAwayError as error:
            patience.bear(error)


def once_more(read: Callable[[], R], distant: bool = True) -> R:
    """What a read returns. What came over a network and is damaged is read again, afresh, before it is called so."""
    try:
        return read()
    except CorruptDataError:
        if is_afresh.get() or not distant:
            raise
    token = is_afresh.set(True)
    try:
        return read()
    finally:
        is_afresh.reset(token)
