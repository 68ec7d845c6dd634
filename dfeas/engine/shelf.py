"""A shelf: what questions to pairs of runs compute from the points and can use again, under a byte budget.

As with blocks all pairs come in a cycle: the first ones are kept, and nothing is dropped for the sake of another.
"""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock
from typing import Any


class Shelf:
    """Values of one process by key. Safe to use from several threads that work on different keys."""

    def __init__(self, budget: int) -> None:
        self.budget = budget  # bytes
        self._taken = 0
        self._values: dict[Hashable, Any] = {}
        self._lock = Lock()

    @property
    def bytes(self) -> int:
        """Bytes that were taken of the budget."""
        return self._taken

    def get(self, key: Hashable) -> Any:
        """The value, or None."""
        return self._values.get(key)

    def take(self, size: int) -> bool:
        """Whether there is room for so many bytes more; they are taken then."""
        with self._lock:
            if self._taken + size > self.budget:
                return False
            self._taken += size
            return True

    def put(self, key: Hashable, value: Any) -> None:
        """Keep a value whose bytes were taken."""
        self._values[key] = value
