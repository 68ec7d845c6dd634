"""How far long work in memory is, a solver or a look at a large cone: it says so between its steps, and whoever listens may end
it there with an exception.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str], None]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def heard(listener: Listener) -> Iterator[None]:
    """What long work says in here, in this thread, goes to the listener."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def beat(text: str = "") -> None:
    """Say how far it is; nothing new without a text."""
    listener = _listener.get()
    if listener is not None:
        listener(text)
