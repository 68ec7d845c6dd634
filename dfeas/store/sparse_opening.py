"""Opening the points of a sparse dataset: are its arrays those that an ingest writes?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.errors import CorruptDataError
from dfeas.store.chunks import direct_reader, plain_chunks
from dfeas.store.damage import DAMAGE
from dfeas.store.layout import Header
from dfeas.store.places import Place
from dfeas.store.reading import PointReader
from dfeas.store.sparse import CsrChunks, Entries, EntryFiles, EntryReader

ARRAYS = ("X/data", "X/indices", "X/indptr", "offset")


@dataclass(frozen=True)
class SparseX:
    """X of a sparse dataset."""

    points: PointReader
    entries: Entries


def open_sparse(path: Place, arrays: dict[str, Any], header: Header) -> SparseX:
    """Open the arrays of X. Raises CorruptDataError when they are not stored as dfeas does."""
    offsets = _offsets(path, arrays, header)
    data = _entry_files(path, arrays, "X/data", (header.dtype,))
    indices = _entry_files(path, arrays, "X/indices", ("int32", "int64"))
    indptr = direct_reader("X/indptr", path / "X/indptr", arrays["X/indptr"], header.block_rows)
    if indptr is None or arrays["X/indptr"].dtype.name != "int64":
        raise _broken(path)
    points: PointReader = CsrChunks(str(path), header.n, header.m, header.block_rows, offsets, data, indices, indptr)
    if not isinstance(path, Path):
        from dfeas.store.objects.distance import ahead

        points = ahead(points)
    return SparseX(points, Entries.of(header.n, offsets, header.block_rows, data.dtype.itemsize, indices.dtype.itemsize))


def _offsets(path: Place, arrays: dict[str, Any], header: Header) -> NDArray[np.int64]:
    """Where the entries of each block begin (blocks + 1,)."""
    try:
        offsets = np.asarray(arrays["offset"][:], np.int64)
    except DAMAGE as error:
        raise CorruptDataError(f"{path}: the list of offsets cannot be read: {error}; ingest it again") from None
    sizes = np.diff(offsets)
    if offsets[0] != 0 or offsets[-1] != header.entries or sizes.min() < 0 or sizes.max() != header.block_entries:
        raise CorruptDataError(f"{path}: the list of offsets is damaged; ingest it again")
    return offsets


def _entry_files(path: Place, arrays: dict[str, Any], name: str, dtypes: tuple[str, ...]) -> EntryReader:
    """A reader of one array of entries. Raises CorruptDataError when it has another type, or chunks that are not plain."""
    array = arrays[name]
    plain = plain_chunks(array, array.chunks[0])
    if plain is None or array.dtype.name not in dtypes or array.chunks[0] < 1:
        raise _broken(path)
    if isinstance(path, Path):
        return EntryFiles(name, path / name, plain.key, plain.dtype, plain.block_rows, plain.trailer)
    from dfeas.store.objects.distance import object_entries

    return object_entries(name, path / name, plain.key, plain.dtype, plain.block_rows, plain.trailer)


def _broken(path: Place) -> CorruptDataError:
    return CorruptDataError(f"{path}: X is not stored as its ingest did; ingest it again")
