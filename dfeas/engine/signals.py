"""What Ctrl-C, a batch system and a lost terminal mean to a command: little is lost, and nothing is left over.

Before anything has begun a signal ends the process (``at_once``). Then it interrupts, and whoever has begun something cleans
up. A run that has begun to read finishes its read, or in a large cone its step, and writes a checkpoint (``asked_to_stop``).
Where an interrupt would break what it meets it waits (``interrupts_held``, ``not_interrupted``). Where Python drops one, it
comes once more. After the end it changes nothing (``mark_ended``).
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import current_thread, main_thread
from threading import enumerate as threads
from types import FrameType
from typing import Any

INTERRUPTED = 75
"""The exit code."""
BURST = 1.0
"""Seconds: terminals and batch systems signal whole groups of processes, and what one of them passes on comes once more."""
LOOK_SECONDS = 0.1
"""How often it is looked how far something is, and whether what waits, or is within a block, should end."""
POLITE = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
SIGNALS = (signal.SIGINT, *POLITE)

LEFT_BEHIND = "dfeas-solver"
"""The name of threads that the end of a program does not wait for; a library where one is at work must not be taken down."""
Handler = Callable[[int, FrameType | None], Any]

_held: int | None = None  # interrupts that were held back; None: none is
_last = -BURST  # when the last one came, in monotonic seconds
_number: int = signal.SIGINT  # of the last one
_code: int | None = None  # of a program that has ended
started: float | None = None  # when a program began, in monotonic seconds


@contextmanager
def _handle_signals(numbers: tuple[int, ...], handler: Handler) -> Iterator[None]:
    """Signals go to a handler, but for those that whoever started this process has ignored, as nohup does. Only the main thread
    of a process gets signals; in another one nothing is changed.
    """
    if current_thread() is not main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in numbers}
    _set(numbers, handler)
    try:
        yield
    finally:
        for number, earlier in before.items():
            if earlier is not None:
                signal.signal(number, earlier)


def _set(numbers: tuple[int, ...], handler: Handler | signal.Handlers) -> None:
    for number in numbers:
        if signal.getsignal(number) not in (signal.SIG_IGN, None):
            signal.signal(number, handler)


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, b"dfeas: interrupted\n")
    os._exit(INTERRUPTED)


def dask_setup(worker: Any) -> None:
    """For Dask, in workers of a local cluster: who stops the driver may signal them, too, but the driver ends the run."""
    _set(SIGNALS, signal.SIG_IGN)


def at_once_from_now() -> None:
    """A signal ends this process, until ``mark_ended``: of a program, while it is imported."""
    global started
    started = time.monotonic()
    atexit.register(_leave)  # comes last; Python itself takes its handlers back before it has ended
    _set(SIGNALS, _end)
    signal.signal(signal.SIGALRM, _come_again)
    sys.unraisablehook = _heed_dropped


def _heed_dropped(dropped: sys.UnraisableHookArgs) -> None:
    """Python cannot raise in what an object does when it is collected, for example: it prints a traceback and goes on."""
    if dropped.exc_type is KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_REAL, 0.05)  # seconds until an interrupt that was dropped comes once more
    else:
        sys.__unraisablehook__(dropped)


def _come_again(number: int, frame: FrameType | None) -> None:
    global _last
    _last = -BURST  # it is no echo
    signal.raise_signal(_number)


def mark_ended(code: int) -> None:
    """A signal changes nothing any more but that this process may not get stuck in its own end. What event loops of libraries
    had begun ends with it, and nobody needs to hear of that.
    """
    global _code
    _code = code
    if "asyncio" in sys.modules:
        import logging  # not at the top: nothing is to be loaded before it is settled what a signal does

        logging.getLogger("asyncio").disabled = True

    def leave(number: int, frame: FrameType | None) -> None:
        os._exit(code)

    _set(SIGNALS, leave)


def _leave() -> None:
    _set((*SIGNALS, signal.SIGALRM), signal.SIG_IGN)
    # python -m remembers an interrupt that came in an exec of a text, which makes data classes, and would die of SIGINT
    if _code is not None and (_code == INTERRUPTED or any(thread.name == LEFT_BEHIND for thread in threads())):
        with suppress(OSError):
            sys.stdout.flush()
        os._exit(_code)


@contextmanager
def at_once(first: Callable[[], object]) -> Iterator[None]:
    """Nothing has begun: a signal ends the process, when ``first`` was called."""

    def end(number: int, frame: FrameType | None) -> None:
        first()
        _end(number, frame)

    with _handle_signals(SIGNALS, end):
        yield


@contextmanager
def interruptible() -> Iterator[None]:
    """All of them interrupt, as Ctrl-C does, so that what has begun is cleaned up; an echo of the one before does not."""
    with _handle_signals(SIGNALS, _interrupt_once):
        yield


def _is_echo() -> bool:
    """Whether this signal comes so soon after the last one that somebody has passed that one on."""
    global _last
    now = time.monotonic()
    burst, _last = now - _last < BURST, now
    return burst


def _interrupt_once(number: int, frame: FrameType | None) -> None:
    if not _is_echo():
        _interrupt(number, frame)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, or hold back the first one where that is asked."""
    global _held, _number
    _number = number
    if _held is None:
        raise KeyboardInterrupt("interrupted")
    _held += 1
    if _held > 1:
        raise KeyboardInterrupt("interrupted twice")


@contextmanager
def asked_to_stop() -> Iterator[Callable[[], bool]]:
    """Tells whether SIGTERM, SIGHUP or SIGUSR1 has come; a second one interrupts at once, like Ctrl-C. So does the first one as
    long as nobody has asked: what would stop has not begun.
    """
    came, looked = 0, False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came += 1
        if came > 1 or not looked:
            _interrupt(number, frame)

    def stop() -> bool:
        nonlocal looked
        looked = True
        return came > 0

    with _handle_signals(POLITE, handle):
        yield stop


@contextmanager
def interrupts_held() -> Iterator[None]:
    """An interrupt waits for ``raise_held``, or for the end; a second one does not. A KeyboardInterrupt anywhere else may leave
    a lock of another thread taken for ever, and that thread waits for it.
    """
    global _held
    interrupts = (signal.default_int_handler, _interrupt_once)
    if current_thread() is not main_thread() or _held is not None or signal.getsignal(signal.SIGINT) not in interrupts:
        yield
        return
    _held = 0
    try:
        with _handle_signals((signal.SIGINT,), _interrupt):
            yield
    finally:
        came, _held = _held, None
        if came:
            raise KeyboardInterrupt("interrupted")


def raise_held() -> None:
    """Raise the KeyboardInterrupt that was held back, if one was."""
    if _held and current_thread() is main_thread():
        raise KeyboardInterrupt("interrupted")


def pause(seconds: float) -> None:
    """Let time pass while something is waited for; a signal that was held back, or a beat, may end it."""
    from dfeas.linalg.blas import beat  # not at the top, as above

    until = time.monotonic() + seconds
    while True:
        raise_held()
        beat()
        if (left := until - time.monotonic()) <= 0:
            return
        time.sleep(min(left, LOOK_SECONDS))


@contextmanager
def not_interrupted() -> Iterator[None]:
    """Something ends that must not be cut off: one signal changes nothing; another one, that is no echo, ends the process."""
    came = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal came
        if not _is_echo() and came:
            _end(number, frame)
        came = True

    with _handle_signals(SIGNALS, note):
        yield
