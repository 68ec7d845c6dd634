"""A stream on its way into a dataset: how many points and which classes there are is known at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import chain
from typing import Any

import numpy as np

from dfeas.errors import BadInputError
from dfeas.passes.points import Points, is_dense
from dfeas.store.filling import Labelled, Progress, write_in_order
from dfeas.store.labels import KnownLabels
from dfeas.store.layout import Header, default_block_rows, sparse_block_rows
from dfeas.store.signs import Coded, Codes, coded
from dfeas.store.streams import Stream, blocks
from dfeas.store.writing import DatasetWriter

MANY = 1 << 60
"""More points than there are: n of a stream that has not ended."""

GROWTH = 64
"""Blocks for which room is made at a time, at least; the arrays grow by a quarter."""


class Streaming:
    """Batches in order become blocks, and their labels codes, or signs where ``positive`` or ``known`` tell them."""

    def __init__(self, stream: Stream, positive: str | None, known: KnownLabels | None) -> None:
        self._stream, self._known = stream, known
        self._codes = Codes(positive, f"labels of {stream.where}", known)
        self._provisional = positive is None and known is None
        self._n = 0  # points that came so far

    def write(self, make: Callable[..., DatasetWriter], block_rows: int | None, progress: Progress | None) -> Header:
        """Make the dataset with ``make``, fill and finish it. Raises BadInputError for a stream without points."""
        stream = self._stream
        with closing(stream.batches()) as batches:
            begin = next(batches, None)
            if begin is None:
                raise BadInputError(f"{stream.where}: no points")
            pieces = blocks(chain([begin], batches), block_rows or usual_rows(begin.points, stream.dtype))
            first = next(pieces)
            size = first[0].shape[0]  # less than ``rows`` when it is the only block
            target = make(size, stream.m, stream.dtype, size, stream.names, self._codes.dtype, provisional=self._provisional)
            write_in_order(target, self._labelled(target, chain([first], pieces)), self._telling(progress))
        target.resize(self._n)
        if progress is not None:
            progress(self._n, self._n)
        return self._finished(target)

    def _labelled(self, target: DatasetWriter, pieces: Iterable[tuple[Points, list[Coded]]]) -> Iterator[Labelled]:
        """Blocks with their codes; the dataset grows before they are written."""
        for points, labels in pieces:
            codes = coded(self._codes, labels, self._n)
            self._n += len(codes)
            if self._n > target.n:
                target.resize(self._n + target.block_rows * max(GROWTH, target.blocks // 4))
            yield points, codes

    def _finished(self, target: DatasetWriter) -> Header:
        """Labels become what they are to be, now that all classes are known."""
        if self._known is not None:
            return target.finish(self._known.classes, known=True)
        classes, table = self._codes.settle(self._n)
        if table is not None:
            target.relabel(lambda index: table)
        return target.finish(classes.classes)

    def _telling(self, progress: Progress | None) -> Callable[[int], None]:
        """Tells the progress, never that all is done."""

        def told(done: int) -> None:
            if progress is not None and done < self._n:
                progress(done, max(self._n + 1, self._stream.total(self._n)))

        return told


def usual_rows(points: Points, dtype: np.dtype[Any]) -> int:
    """Rows of a block in this type; of sparse points as many as suit the first of them."""
    if is_dense(points):
        return default_block_rows(points.shape[1], dtype.itemsize, MANY)
    return sparse_block_rows(points.nnz / points.shape[0], dtype.itemsize + 4, MANY)
