"""What a batch system sends before it kills: a run finishes its read, writes a checkpoint and ends. Ctrl-C may have to wait."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType

POLITE = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGUSR1") if hasattr(signal, name))


@contextmanager
def asked_to_stop() -> Iterator[Callable[[], bool]]:
    """Tells whether SIGTERM or SIGUSR1 has come; a second one interrupts at once, like Ctrl-C.

    Only the main thread of a process gets signals; in another one nothing is changed.
    """
    came = 0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal came
        came += 1
        if came > 1:
            raise KeyboardInterrupt("asked to stop twice")

    if current_thread() is not main_thread():
        yield lambda: False
        return
    before = {number: signal.signal(number, handle) for number in POLITE}
    try:
        yield lambda: came > 0
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_held: int | None = None  # interrupts that were held back; None: none is


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Ctrl-C waits for ``raise_held``, or for the end; a second one does not.

    A KeyboardInterrupt anywhere else may leave a lock of another thread taken for ever, and that thread waits for it.
    """
    global _held
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def hold(number: int, frame: FrameType | None) -> None:
        global _held
        _held = (_held or 0) + 1
        if _held > 1:
            raise KeyboardInterrupt("interrupted twice")

    _held = 0
    signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        came, _held = _held, None
        if came:
            raise KeyboardInterrupt("interrupted")


def raise_held() -> None:
    """Raise the KeyboardInterrupt that was held back, if one was."""
    if _held and current_thread() is main_thread():
        raise KeyboardInterrupt("interrupted")
