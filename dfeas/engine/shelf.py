"""A shelf: what questions to pairs of runs compute from the points and can use again, under a byte budget, or on the disk.

As with blocks all pairs come in a cycle: the first ones are kept, and nothing is dropped for the sake of another.
"""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from threading import Lock
from typing import Any

from dfeas.engine.spill import Spill


class Shelf:
    """Values of one process by key. Safe to use from several threads that work on different keys."""

    def __init__(self, budget: int, scratch: Path | None = None) -> None:
        self.budget = budget  # bytes in memory
        self.spill = None if scratch is None else Spill(scratch)  # for what it does not hold
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
        """Keep a value whose bytes were taken, or that is in ``spill``."""
        self._values[key] = value

    def close(self) -> None:
        """Forget what is on the disk."""
        if self.spill is not None:
            self.spill.close()
