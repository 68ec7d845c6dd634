"""What a batch system sends before it kills: a run finishes its read, writes a checkpoint and ends."""

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
