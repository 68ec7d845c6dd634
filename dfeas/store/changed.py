"""A stream whose labels lie in another file, or whose numbers are rounded to another type, as the user asked."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from dfeas.errors import BadInputError
from dfeas.passes.points import Points, is_dense
from dfeas.store.labels import require_usable
from dfeas.store.signs import Coded
from dfeas.store.streams import Batch, Stream


class Changed:
    """The points of a stream with labels (n,) of another source, where they are given, as ``dtype``, where that is."""

    def __init__(self, stream: Stream, labels: Any = None, dtype: str | None = None) -> None:
        self._stream, self.where, self.m = stream, stream.where, stream.m
        self._labels = None if labels is None else np.asarray(labels)
        if self._labels is not None:
            require_usable(self._labels, f"labels of {self.where}")
            if self._labels.shape not in ((len(self._labels),), (len(self._labels), 1)):
                raise BadInputError(f"labels of {self.where}: expected an array (n,), got shape {self._labels.shape}")
        self.sparse = stream.sparse
        self.dtype = stream.dtype if dtype is None else np.dtype(dtype)
        self.notes = stream.notes + ([] if self.dtype == stream.dtype else [f"rounded to {self.dtype}, as asked"])

    @property
    def labels(self) -> Any:
        """Those of the other source (n,) or (n, 1), which can be used; None without one."""
        return self._labels

    @property
    def names(self) -> Sequence[str] | None:
        """Of the features; see Stream."""
        return self._stream.names

    def total(self, done: int) -> int:
        """Points in all; see Stream."""
        return self._stream.total(done)

    def batches(self) -> Generator[Batch, None, None]:
        """All points; see Stream. Raises BadInputError where there is not one label for each."""
        done = 0
        with closing(self._stream.batches()) as batches:
            for batch in batches:
                stop = done + batch.points.shape[0]
                yield Batch(rounded(batch.points, self.dtype, done, self.where), self._labels_of(done, stop) or batch.labels)
                done = stop
        if self._labels is not None and len(self._labels) != done:
            raise self._other_length(f"{done}")

    def _labels_of(self, first: int, stop: int) -> Coded | None:
        if self._labels is None:
            return None
        if stop > len(self._labels):
            raise self._other_length(f"{stop} or more")
        return Coded.of(self._labels[first:stop].reshape(-1))

    def _other_length(self, points: str) -> BadInputError:
        assert self._labels is not None
        return BadInputError(f"labels of {self.where}: {len(self._labels)} labels for {points} points; give one a point")


def rounded(points: Points, dtype: np.dtype[Any], first: int, where: str) -> Points:
    """Points from ``first`` on in another type. Raises BadInputError for an entry that would be infinite."""
    if points.dtype == dtype:
        return points
    with np.errstate(over="ignore"):
        found = points.astype(dtype)
    large = np.argwhere(np.isinf(found if is_dense(found) else found.data))
    if len(large):
        values = points if is_dense(points) else points.data
        at = f"point {first + large[0][0]}" if is_dense(points) else f"from point {first} on"
        raise BadInputError(f"{where}: {at}: {values[tuple(large[0])]:g} is too large for {dtype}; store float64")
    return found
