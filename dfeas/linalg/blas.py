"""One BLAS thread: threads of OpenBLAS wait for each other by spinning, which costs ten times the work when cores are shared,
and the order of its sums depends on their number. Parallel work is cut into pieces by us, the same ones on any machine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

R = TypeVar("R")


@lru_cache(maxsize=2)
def controller(*, of_scipy: bool = False) -> ThreadpoolController:
    """Controls the BLAS of NumPy in this process, and with ``of_scipy`` the one that SciPy brings, too."""
    import numpy.linalg  # noqa: F401 - loads the library that is to be controlled

    if of_scipy:
        import scipy.linalg  # noqa: F401

    return ThreadpoolController()


@contextmanager
def one_thread(*, of_scipy: bool = False) -> Iterator[None]:
    """Products, and with ``of_scipy`` factorisations, use one thread each in here."""
    with controller(of_scipy=of_scipy).limit(limits=1, user_api="blas"):
        yield


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    """Threads that stay: each new one would keep memory of its own."""
    return ThreadPoolExecutor(processors(), "dfeas-solve")


def side_by_side(function: Callable[[int], R], count: int) -> list[R]:
    """function(0) .. function(count - 1), in threads where there are several processors."""
    threads = min(count, processors())
    if threads <= 1:
        return [function(i) for i in range(count)]
    return list(_pool().map(function, range(count)))
