"""A Dask array or frame as the source of an ingest whose blocks are written by the workers that have its partitions."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.data.arrays import stored_dtype
from dfeas.data.collections import LABELS, WHERE, table_of
from dfeas.data.frames import no_column
from dfeas.data.ingest.array_files import stored_blocks
from dfeas.data.ingest.formats import format_of
from dfeas.data.ingest.ingest import Done, Piece
from dfeas.data.ingest.options import IngestOptions
from dfeas.data.ingest.source import PointSource
from dfeas.data.labels import Categories
from dfeas.data.storage.features import keep_names
from dfeas.data.storage.numbers import array_of
from dfeas.data.storage.places import place, require_width
from dfeas.data.storage.zarr_arrays import open_labels
from dfeas.errors import UsageError
from dfeas.linalg.points import Points


class CollectionSource(PointSource):
    """Points in the partitions of a collection, whose lengths are counted. Its labels come to this process."""

    whole = True

    def __init__(self, collection: Any, options: IngestOptions) -> None:
        table = table_of(collection, _labels(collection, options))
        self.where, self.X = WHERE, table.X
        self.n, self.m = (int(size) for size in table.X.shape)
        self.dtype = stored_dtype(np.dtype(table.X.dtype), WHERE)
        self.run_rows = max(table.X.chunks[0])
        require_width(self.m, self.dtype.itemsize, WHERE)
        self.features, unkept = keep_names(table.features, self.m) if table.features else ((), "")
        cast = [] if table.X.dtype == self.dtype else [f"{table.X.dtype} cast to {self.dtype}"]
        self.notes = (*cast, *([unkept] if unkept else []))
        self.labels: Any = array_of(table.labels, LABELS)
        self._first = 0
        self._array: NDArray[Any] | None = None

    def part(self, first: int, stop: int) -> CollectionSource:
        """What travels: neither labels nor what Dask knows of the points, whose array comes to it by ``holding``."""
        part = copy(self)
        part.X, part.labels, part._first = None, None, first
        return part

    def holding(self, array: Any) -> CollectionSource:
        part = copy(self)
        part._array = array_of(array, WHERE)
        return part

    def blocks(self, first: int, stop: int | None, rows: int) -> Iterator[tuple[Points, list[Categories]]]:
        assert self._array is not None, "a part that holds its points"
        stop = self._first + len(self._array) if stop is None else stop
        return stored_blocks(self._array, first - self._first, stop - self._first, rows, self.dtype, sparse=False)


def _labels(collection: Any, options: IngestOptions) -> Any:
    """As they are given, or the column of a frame that has them. Raises UsageError where nobody said it."""
    kind = format_of(collection)
    options.require_for(kind)
    if options.sparse:
        raise UsageError("--sparse: workers write the partitions of a Dask collection dense; leave it out")
    given = options.labels
    if given is not None:
        return open_labels(place(given))[:] if isinstance(given, str | Path) else given
    if kind == "arrays" or options.label_column is None:
        raise UsageError("a Dask array or frame: give labels, an array (n,) or its path, or of a frame label_column")
    columns = list(map(str, collection.columns))
    if options.label_column not in columns:
        raise no_column(options.label_column, columns, WHERE)
    return options.label_column


def write_piece(piece: Piece, array: Any) -> Done:
    """Write blocks whose points came from elsewhere."""
    source = piece.part.source
    assert isinstance(source, CollectionSource), "a piece of a collection"
    return replace(piece, part=replace(piece.part, source=source.holding(array))).write()
