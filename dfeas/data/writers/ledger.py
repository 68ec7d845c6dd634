"""What is known of the blocks of a dataset that were written: a row of a table for each, so that a million small ones fit."""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.passes.survey import SHOWN, Summary

_ROW = np.dtype(
    [
        ("written", "?"),
        ("positive", "<i8"),
        ("zero", "<i8"),
        ("norm_min", "<f8"),
        ("norm_max", "<f8"),
        ("checksums", "<u4", (3,)),
        ("entries", "<i8"),
    ]
)


class Ledger:
    """Of blocks by their numbers, which come in any order, and from several threads. Travels with the rows that it has."""

    def __init__(self) -> None:
        self._table = np.zeros(0, _ROW)
        self._first_zero: dict[int, tuple[int, ...]] = {}  # of blocks that have zero points
        self._lock = Lock()

    def __getstate__(self) -> tuple[Any, ...]:
        some = np.flatnonzero(self._table["written"])
        return some, self._table[some], self._first_zero

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        some, rows, self._first_zero = state
        self._table, self._lock = np.zeros(int(some.max(initial=-1)) + 1, _ROW), Lock()
        self._table[some] = rows

    def _reach(self, count: int) -> None:
        if count > len(self._table):
            table = np.zeros(max(count, 2 * len(self._table)), _ROW)
            table[: len(self._table)] = self._table
            self._table = table

    def note(self, index: int, summary: Summary, checksums: tuple[int, int, int]) -> None:
        """A block was written: a survey of it, and the checksums of points, labels and norms."""
        with self._lock:
            self._reach(index + 1)
            row = self._table[index]
            row["written"], row["checksums"] = True, checksums
            row["norm_min"], row["norm_max"] = summary.norm_min, summary.norm_max
            row["positive"], row["zero"] = summary.positive, summary.zero
            if summary.zero:
                self._first_zero[index] = summary.first_zero

    def relabel(self, index: int, positive: int, checksum: int) -> None:
        """Of a block that was written the labels are others."""
        self._table["positive"][index], self._table["checksums"][index, 1] = positive, checksum

    def note_entries(self, index: int, entries: int) -> None:
        """So many entries a sparse block has."""
        with self._lock:
            self._reach(index + 1)
            self._table["entries"][index] = entries

    def add(self, other: Ledger) -> None:
        """Count blocks that another process wrote."""
        some = np.flatnonzero(other._table["written"])
        self._reach(len(other._table))
        self._table[some] = other._table[some]
        self._first_zero.update(other._first_zero)

    def count_missing(self, blocks: int) -> int:
        """How many of the first blocks were never written."""
        return blocks - int(self._table["written"][:blocks].sum())

    def checksums(self, blocks: int) -> NDArray[np.uint32]:
        """crc32c (blocks, 3) of points, labels and norms of the first blocks."""
        return np.ascontiguousarray(self._table["checksums"][:blocks])

    def entries(self, blocks: int) -> NDArray[np.int64]:
        """Entries (blocks,) of the first sparse blocks."""
        return np.ascontiguousarray(self._table["entries"][:blocks])

    def facts(self, blocks: int) -> dict[str, Any]:
        """Of the points of the first blocks what a header says: how many are positive, which are zero, the range of norms."""
        table, first_zero = self._table[:blocks], sorted(point for some in self._first_zero.values() for point in some)
        return {
            "positive": int(table["positive"].sum()),
            "zero": int(table["zero"].sum()),
            "first_zero": tuple(first_zero[:SHOWN]),
            "norm_min": float(table["norm_min"].min(initial=np.inf)),
            "norm_max": float(table["norm_max"].max(initial=0.0)),
        }
