"""What the rows of a dataset make: points, or what a leaf knows, which the core asks instead of which of them it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from dfeas import leaves
from dfeas.data.labels import stored_type
from dfeas.data.storage.layout import ConeTable, Header, scanned_rows, sparse_block_rows
from dfeas.data.storage.sparse_readers import Entries

SCORED_BYTES = 64
"""Scores of a point in several precisions, and bounds, while its block is scanned or checked."""


class Rows(Protocol):
    """What is the same of all rows of a dataset."""

    @property
    def kind(self) -> str:
        """By which its geometry and its checker are found."""

    @property
    def word(self) -> str:
        """What rows are called."""

    @property
    def take_labels(self) -> bool:
        """Whether labels, a class, an intercept, a transform and other datasets make sense."""

    @property
    def scored_apart(self) -> bool:
        """Whether what is said of a row needs no other row: then some blocks are scored and let go before the next ones."""

    @property
    def table(self) -> ConeTable | None:
        """What messages and the file of a dataset say of them."""

    def rank(self, n: int) -> int:
        """What theorems count, of n rows."""

    def label_type(self, classes: Sequence[str]) -> np.dtype[Any]:
        """Of the labels as they are stored."""

    def block_rows(self, header: Header, entry_bytes: int) -> int:
        """Rows of a block as an ingest cuts them; sparse ones have ``entry_bytes`` for each of their entries."""

    def temporary_bytes(self, block_rows: int, m: int, entries: Entries | None) -> int:
        """What a thread makes of a block while it is scanned or checked."""


class PointRows:
    """Each row is a point."""

    kind = word = "points"
    take_labels = scored_apart = True
    table = None

    def rank(self, n: int) -> int:
        return n

    def label_type(self, classes: Sequence[str]) -> np.dtype[Any]:
        return stored_type(classes)

    def block_rows(self, header: Header, entry_bytes: int) -> int:
        """Or more of wide points: smaller blocks would take longer to go through than to read and to scan."""
        if header.entries is not None:
            return sparse_block_rows(header.entries / header.n, entry_bytes, header.n)
        return scanned_rows(header.m, np.dtype(header.dtype).itemsize, header.n)

    def temporary_bytes(self, block_rows: int, m: int, entries: Entries | None) -> int:
        """A tile at a time is looked at, whatever the block, but scores and bounds are those of a block."""
        return SCORED_BYTES * block_rows


POINTS = PointRows()


def rows_of(header: Header) -> Rows:
    """Those of a stored dataset."""
    rows: Rows = POINTS if header.cones is None else leaves.rows_of_cones(header.cones)
    return rows
