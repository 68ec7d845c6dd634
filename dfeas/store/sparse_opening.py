"""Opening the points of a sparse dataset: are its arrays those that an ingest writes?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dfeas.errors import BadInputError, CorruptDataError
from dfeas.store.chunks import file_reader
from dfeas.store.layout import Header
from dfeas.store.places import Place
from dfeas.store.reading import DirectReader
from dfeas.store.sparse import CsrFiles, Entries, EntryFiles

ARRAYS = ("X/data", "X/indices", "X/indptr", "offset")


def entries_of(header: Header, arrays: dict[str, Any]) -> Entries:
    """How much is stored."""
    count, most = header.entries or 0, header.block_entries or 0
    sizes = np.dtype(header.dtype).itemsize, arrays["X/indices"].dtype.itemsize
    return Entries.of(header.n, count, most, header.block_rows, *sizes)


def csr_files(path: Place, arrays: dict[str, Any], header: Header) -> CsrFiles:
    """The reader of blocks. Raises CorruptDataError when they are not stored as dfeas does."""
    if not isinstance(path, Path):
        raise BadInputError(f"{path}: sparse points are not read from object stores; copy the dataset to this machine")
    try:
        offsets = np.asarray(arrays["offset"][:], np.int64)
    except (ValueError, RuntimeError, OSError) as error:
        raise CorruptDataError(f"{path}: the list of offsets cannot be read: {error}; ingest it again") from None
    sizes = np.diff(offsets)
    if offsets[0] != 0 or offsets[-1] != header.entries or sizes.min() < 0 or sizes.max() != header.block_entries:
        raise CorruptDataError(f"{path}: the list of offsets is damaged; ingest it again")
    data = _entry_files(path, arrays, "X/data", (header.dtype,))
    indices = _entry_files(path, arrays, "X/indices", ("int32", "int64"))
    indptr = _plain(path, arrays, "X/indptr", ("int64",))
    if indptr.block_rows != header.block_rows:
        raise _broken(path)
    return CsrFiles(str(path), header.n, header.m, header.block_rows, offsets, data, indices, indptr)


def _entry_files(path: Path, arrays: dict[str, Any], name: str, dtypes: tuple[str, ...]) -> EntryFiles:
    found = _plain(path, arrays, name, dtypes)
    return EntryFiles(found.name, found.folder, found.key, found.dtype, found.block_rows, found.trailer)


def _plain(path: Path, arrays: dict[str, Any], name: str, dtypes: tuple[str, ...]) -> DirectReader:
    """A reader of the chunks of one array. Raises CorruptDataError when it has another type, or chunks that are not plain."""
    array = arrays[name]
    found = file_reader(name, path / name, array, array.chunks[0])
    if found is None or array.dtype.name not in dtypes or array.chunks[0] < 1:
        raise _broken(path)
    return found


def _broken(path: Path) -> CorruptDataError:
    return CorruptDataError(f"{path}: X is not stored as its ingest did; ingest it again")
