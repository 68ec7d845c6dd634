"""Sources of which any run of points can be read apart from the others, also by another process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dfeas.passes.points import Points
from dfeas.store.array_points import stored_points
from dfeas.store.changed import rounded
from dfeas.store.places import place
from dfeas.store.sources import open_rows
from dfeas.store.streams import Batch, blocks

if TYPE_CHECKING:
    from dfeas.store.tables import Parquet


class Splitting(Protocol):
    """Small enough to travel with every piece of work."""

    def blocks(self, first: int, stop: int, size: int) -> Iterator[Points]:
        """Points first .. stop-1 in blocks of ``size``, the last one shorter."""


@dataclass(frozen=True)
class SplitArray:
    """An array of a file whose rows can be read anywhere."""

    path: str
    name: str  # of the array in the file

    def blocks(self, first: int, stop: int, size: int) -> Iterator[Points]:
        """See Splitting."""
        with open_rows(place(self.path), self.name) as rows:
            for begin in range(first, stop, size):
                yield stored_points(rows[begin : min(stop, begin + size)], False)


@dataclass(frozen=True)
class SplitTable:
    """A Parquet file or folder, rounded to a type."""

    table: Parquet
    dtype: np.dtype[Any]

    def blocks(self, first: int, stop: int, size: int) -> Iterator[Points]:
        """See Splitting."""
        with closing(self.table.batches(first, stop)) as batches:
            for points, _ in blocks(self._rounded(batches, first), size):
                yield points

    def _rounded(self, batches: Iterator[Batch], first: int) -> Iterator[Batch]:
        for batch in batches:
            yield Batch(rounded(batch.points, self.dtype, first, self.table.where), batch.labels)
            first += batch.points.shape[0]
