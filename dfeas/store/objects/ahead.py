"""Read-ahead over a network: blocks are fetched by threads of their own before they are wanted."""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock
from typing import Generic, TypeVar

from dfeas.store.reading import Buffers, Reader

T = TypeVar("T")

REQUESTS = 32
"""Requests under way in a process."""


@lru_cache(maxsize=1)
def pool() -> ThreadPoolExecutor:
    """The threads of this process that wait for requests."""
    return ThreadPoolExecutor(REQUESTS, "dfeas-fetch")


os.register_at_fork(after_in_child=pool.cache_clear)  # a child has no threads of its parent


@dataclass(frozen=True)
class Ahead(Generic[T]):
    """A reader of blocks that were asked for before. What a pass asked for and never read is dropped when others come."""

    inner: Reader[T]
    most: int  # blocks that are held
    _coming: dict[int, Future[T]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    overlaps = True
    distant = True

    def read(self, index: int, buffers: Buffers) -> T:
        """Rows of a block; raises what the inner reader does."""
        with self._lock:
            coming = self._coming.pop(index, None)
        return self.inner.read(index, buffers) if coming is None else coming.result()

    def advise(self, index: int) -> None:
        """Fetch a block."""
        with self._lock:
            if index not in self._coming:
                self._coming[index] = pool().submit(self.inner.read, index, Buffers())
            for oldest in list(self._coming)[: -self.most]:
                self._coming.pop(oldest).cancel()

    def stamp(self, index: int) -> int | None:
        """Of the inner reader."""
        return self.inner.stamp(index)
