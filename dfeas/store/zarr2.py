"""Arrays of zarr format 2, for ingest and for labels: what could run code is refused before any chunk is decoded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import zarr
import zarr.errors

from dfeas.errors import BadInputError, CorruptDataError
from dfeas.store.links import refuse_links
from dfeas.store.places import Place, zarr_store

_METADATA = ".zarray"
_COMPRESSORS = {"blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd"}


def is_zarr2(path: Place) -> bool:
    """Whether a folder is an array of zarr format 2."""
    return (path / _METADATA).is_file() and not (path / "zarr.json").exists()


def open_zarr2(path: Place) -> Any:
    """The array. Raises BadInputError for filters, objects and unknown compressors, CorruptDataError for missing chunks."""
    if isinstance(path, Path):
        refuse_links(path)
    try:
        values = json.loads((path / _METADATA).read_text())
        compressor = (values["compressor"] or {"id": None})["id"]
        filters, dtype = values["filters"], values["dtype"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CorruptDataError(f"{path}: its zarr metadata cannot be read: {type(error).__name__}: {error}") from None
    if filters or not isinstance(dtype, str) or dtype[1:2] not in ("b", "i", "u", "f", "U", "S"):
        raise BadInputError(f"{path}: zarr format 2 of type {dtype} with filters {filters}; give plain numbers, no filters")
    if compressor is not None and compressor not in _COMPRESSORS:
        raise BadInputError(f"{path}: compressor {compressor} is not accepted; write it again with zstd or none")
    try:
        array = zarr.open_array(zarr_store(path, read_only=True), mode="r", zarr_format=2)
        missing = array.nchunks - array.nchunks_initialized
    except (KeyError, ValueError, TypeError, AttributeError, zarr.errors.BaseZarrError) as error:
        raise CorruptDataError(f"{path}: its zarr metadata cannot be read: {type(error).__name__}: {error}") from None
    if missing:
        raise CorruptDataError(
            f"{path}: {missing} of {array.nchunks} chunks are missing; restore them "
            "(or, if they are meant to be empty, write with write_empty_chunks=True)"
        )
    return array
