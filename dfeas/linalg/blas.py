"""One BLAS thread: threads of OpenBLAS wait for each other by spinning, which costs ten times the work when cores are shared,
and the order of its sums depends on their number. Parallel work is cut into pieces by us, the same ones on any machine.

Long work, of a solver or on a large cone, says between its steps how far it is (``beat``); whoever listens may end it there
with an exception.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from threading import RLock, get_ident
from typing import TYPE_CHECKING, TypeVar

from dfeas.machine import most_threads, threads_here

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from threadpoolctl import LibController, ThreadpoolController

R = TypeVar("R")
Listener = Callable[[str], None]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@lru_cache(maxsize=2)
def controller(*, of_scipy: bool = False) -> ThreadpoolController:
    """Controls the BLAS of NumPy in this process, and with ``of_scipy`` the one that SciPy brings, too."""
    import numpy.linalg  # noqa: F401 - loads the library that is to be controlled
    from threadpoolctl import ThreadpoolController

    if of_scipy:
        import scipy.linalg  # noqa: F401

    return ThreadpoolController()


@lru_cache(maxsize=2)
def _libraries(*, of_scipy: bool = False) -> list[LibController]:
    """Those of ``controller`` that are a BLAS."""
    return [library for library in controller(of_scipy=of_scipy).lib_controllers if library.user_api == "blas"]


def in_child(renew: Callable[[], object]) -> None:
    """Have it called in processes that fork from this one: what other threads have locked, or begun, has no end there."""
    os.register_at_fork(after_in_child=renew)


_lock = RLock()
_inside: dict[str, tuple[list[int], int]] = {}
"""Of each library: the threads of Python that are in ``one_thread``, and how many of its own it had before the first."""


@contextmanager
def one_thread(*, of_scipy: bool = False) -> Iterator[None]:
    """Products, and with ``of_scipy`` factorisations, use one thread each in here, in whatever thread of Python. The limit is
    one of the process: the last that leaves gives back what the first has found.
    """
    # what ``limit`` does, without a look at all libraries each time: that takes as long as a small product
    entered: list[LibController] = []
    thread = get_ident()
    try:
        with _lock:
            for library in _libraries(of_scipy=of_scipy):
                if library.filepath not in _inside:
                    _inside[library.filepath] = [], library.num_threads
                    _set_threads(library, 1)
                _inside[library.filepath][0].append(thread)
                entered.append(library)
        yield
    finally:
        with _lock:
            for library in entered:
                inside, before = _inside[library.filepath]
                inside.remove(thread)
                if not inside:
                    del _inside[library.filepath]
                    _set_threads(library, before)


def blas_threads() -> int:
    """Threads of the BLAS of NumPy where nobody is in ``one_thread``."""
    return max((_inside.get(each.filepath, ([], each.num_threads))[1] for each in _libraries()), default=1)


def _renew_locks() -> None:
    """A forked process has one thread, in which others are not inside. The lock is held: it was taken before the fork."""
    _pool.cache_clear()
    for path, (inside, before) in list(_inside.items()):
        inside[:] = [each for each in inside if each == get_ident()]
        if not inside:
            del _inside[path]
            from threadpoolctl import ThreadpoolController  # loaded by who is inside

            for library in ThreadpoolController().select(filepath=path).lib_controllers:
                _set_threads(library, before)
    _lock.release()


def _set_threads(library: LibController, count: int) -> None:
    """Since its 3.8 threadpoolctl lets only the thread set a limit that was first to set one, and says nothing to others."""
    if library.num_threads == count:
        return
    free: Callable[..., None] = getattr(library, "clear_controlling_thread", lambda *, force: None)
    free(force=True)
    library.set_num_threads(count)
    free(force=True)


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    """Threads that stay: each new one would keep memory of its own."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(most_threads(), "dfeas-solve")


def cut_evenly(count: int, pieces: int) -> list[slice]:
    """Runs of rows of about equal length; they depend on sizes alone, so that sums over them are the same anywhere."""
    return [slice(count * i // pieces, count * (i + 1) // pieces) for i in range(pieces)]


def side_by_side(function: Callable[[int], R], count: int) -> list[R]:
    """function(0) .. function(count - 1), in this thread, and in others where there are several processors."""
    if count == 1:
        return [function(0)]
    found: dict[int, R] = {}
    turns = iter(range(count))

    def take_turns() -> None:
        for i in turns:
            found[i] = function(i)

    # one task for each further thread: one for each piece took a tenth of a product of conjugate gradients to hand over
    others = [_pool().submit(take_turns) for _ in range(min(count, threads_here()) - 1)]
    try:
        take_turns()
    finally:
        for other in others:
            if not other.cancel():
                other.result()
    return [found[i] for i in range(count)]


@contextmanager
def heard(listener: Listener) -> Iterator[None]:
    """What long work says in here, in this thread, goes to the listener."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def hear_first(listener: Listener) -> Iterator[None]:
    """It goes to this listener, and then to the one before."""
    earlier = _listener.get()

    def both(text: str) -> None:
        listener(text)
        if earlier is not None:
            earlier(text)

    with heard(both):
        yield


def beat(text: str = "") -> None:
    """Say how far it is; nothing new without a text."""
    listener = _listener.get()
    if listener is not None:
        listener(text)


# threadpoolctl has a lock, too, which is asked for under this one only
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release)
in_child(_renew_locks)
