"""Which points of a dataset were picked: a bit for each, where their numbers would take 8 bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

RUN = 1 << 16
"""Points whose bits are looked at in one go; a multiple of 8."""


@dataclass(frozen=True)
class Picks:
    """Ascending numbers of picked points: as an array (s,) of them, from which numbers or places in order are taken."""

    bits: NDArray[np.uint8]  # of all points, eight in a byte
    starts: NDArray[np.int64]  # (runs + 1,) picks before each run

    @classmethod
    def of(cls, mask: NDArray[np.bool_]) -> Picks:
        """Those for which a mask (n,) is true."""
        counts = [np.count_nonzero(mask[first : first + RUN]) for first in range(0, len(mask), RUN)]
        return cls(np.packbits(mask), np.cumsum([0, *counts]))

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def nbytes(self) -> int:
        return self.bits.nbytes + self.starts.nbytes

    @overload
    def __getitem__(self, places: slice | NDArray[np.int64]) -> NDArray[np.int64]: ...
    @overload
    def __getitem__(self, places: int) -> int: ...
    def __getitem__(self, places: slice | NDArray[np.int64] | int) -> NDArray[np.int64] | int:
        """Numbers of the picks at some places, which count from 0; of a slice without steps."""
        if isinstance(places, slice):
            first, stop, _ = places.indices(len(self))
            return self._between(first, stop)
        if np.ndim(places) == 0:
            return int(self._between(int(places), int(places) + 1)[0])
        wanted = np.asarray(places)
        run = self._run_of(wanted)
        order = np.argsort(run, kind="stable")
        found = np.empty(len(wanted), np.int64)
        for some in np.split(order, np.flatnonzero(np.diff(run[order])) + 1):
            if len(some):
                there = int(run[some[0]])
                found[some] = self._numbers(there)[wanted[some] - self.starts[there]]
        return found

    def _run_of(self, place: NDArray[np.int64] | int) -> NDArray[np.int64]:
        return np.asarray(np.searchsorted(self.starts, place, "right") - 1)

    def _between(self, first: int, stop: int) -> NDArray[np.int64]:
        if first >= stop:
            return np.empty(0, np.int64)
        begin, last = int(self._run_of(first)), int(self._run_of(stop - 1))
        numbers = np.concatenate([self._numbers(run) for run in range(begin, last + 1)])
        return numbers[first - self.starts[begin] : stop - self.starts[begin]]

    def _numbers(self, run: int) -> NDArray[np.int64]:
        bits = np.unpackbits(self.bits[run * RUN // 8 : (run + 1) * RUN // 8])
        return np.asarray(np.flatnonzero(bits) + run * RUN)
