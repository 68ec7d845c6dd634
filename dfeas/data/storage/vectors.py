"""Vectors that are longer than memory should hold: spooled to files, mapped from them, and gone through piece by piece.

A mapped vector is an array like any other, but what is touched of it stays in memory until somebody lets it go: ``part`` does,
and ``pieces``, which are the same of mapped vectors and of others, so that sums over them have the same bits.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from mmap import ACCESS_READ, MADV_DONTNEED, mmap
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dfeas.errors import CorruptDataError, spell

PIECE = 1 << 20
"""Entries that are taken at a time."""
RUN = 1 << 16
"""Points whose bits are looked at in one go; a multiple of 8."""


def map_vector(file: IO[bytes], dtype: np.dtype[Any], count: int, offset: int = 0) -> NDArray[Any]:
    """Entries of an open file from a byte on, read when they are used. Raises ValueError when there are not so many."""
    if not count:
        return np.empty(0, dtype)
    return np.ndarray(count, dtype, mmap(file.fileno(), offset + count * dtype.itemsize, access=ACCESS_READ), offset)


def is_mapped(values: NDArray[Any]) -> bool:
    """Whether a vector is in a file."""
    return isinstance(values.base, mmap)


def part(values: NDArray[Any], first: int, stop: int) -> NDArray[Any]:
    """Some entries. Those of a mapped vector are copied, and the memory that the mapping took is given back."""
    if not isinstance(values.base, mmap):
        return values[first:stop]
    copied = np.array(values[first:stop])
    values.base.madvise(MADV_DONTNEED)  # the file has them still
    return copied


def pieces(*vectors: NDArray[Any]) -> Iterator[tuple[NDArray[Any], ...]]:
    """Consecutive entries of vectors of one length, at most ``PIECE`` of each at a time."""
    for first in range(0, len(vectors[0]), PIECE):
        yield tuple(part(values, first, first + PIECE) for values in vectors)


def total(values: NDArray[np.float64]) -> float:
    """The sum of all entries."""
    return sum(float(piece.sum()) for (piece,) in pieces(values))


def spool(parts: Iterable[Sequence[NDArray[Any]]], dtypes: Sequence[Any], folder: Path) -> list[NDArray[Any]]:
    """Vectors of which consecutive parts come, mapped from files in a folder that have no name: they are gone when nobody uses
    them. Raises CorruptDataError when storage fails.
    """
    try:
        with ExitStack() as stack:
            files = [stack.enter_context(tempfile.TemporaryFile(dir=folder)) for _ in dtypes]
            counts = [0] * len(files)
            for vectors in parts:
                for place, values in enumerate(vectors):
                    files[place].write(np.ascontiguousarray(values, dtypes[place]).data)
                    counts[place] += len(values)
            for file in files:
                file.flush()
            return [map_vector(*each) for each in zip(files, map(np.dtype, dtypes), counts, strict=True)]
    except OSError as error:
        raise CorruptDataError(
            f"{folder}: weights of points cannot be written: {error.strerror}; choose {spell('out')} where there is room"
        ) from None


@dataclass(frozen=True)
class Picks:
    """Ascending numbers of picked points, as an array (s,) of them: a bit for each point, where a number would take 8 bytes."""

    bits: NDArray[np.uint8]  # of all points, eight in a byte
    starts: NDArray[np.int64]  # (runs + 1,) picks before each run

    @classmethod
    def of(cls, some: NDArray[np.bool_]) -> Picks:
        """Those for which ``some`` (n,) is true."""
        counts = [np.count_nonzero(some[first : first + RUN]) for first in range(0, len(some), RUN)]
        return cls(np.packbits(some), np.cumsum([0, *counts]))

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def nbytes(self) -> int:
        return self.bits.nbytes + self.starts.nbytes

    def __getitem__(self, places: Any) -> NDArray[np.int64]:
        """Numbers of the picks at one place, some, or a slice of them; places count from 0."""
        wanted = np.arange(*places.indices(len(self))) if isinstance(places, slice) else np.asarray(places)
        run, found = np.searchsorted(self.starts, wanted, "right") - 1, np.empty(wanted.shape, np.int64)
        order = np.argsort(run, axis=None, kind="stable")
        for some in np.split(order, np.flatnonzero(np.diff(run.flat[order])) + 1):
            if len(some):
                there = int(run.flat[some[0]])
                bits = np.unpackbits(self.bits[there * RUN // 8 : (there + 1) * RUN // 8])
                found.flat[some] = np.flatnonzero(bits)[wanted.flat[some] - self.starts[there]] + there * RUN
        return found
