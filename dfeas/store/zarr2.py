"""Arrays of zarr format 2, for ingest and for labels: what could run code is refused before any chunk is decoded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import zarr

from dfeas.errors import BadInputError, CorruptDataError
from dfeas.store.chunks import require_chunks_of
from dfeas.store.damage import DAMAGE
from dfeas.store.json_file import COUNT, read_json
from dfeas.store.links import refuse_links
from dfeas.store.places import Place, zarr_store

_METADATA = ".zarray"
_SHAPE = {"shape": [COUNT], "chunks": [COUNT], "compressor": dict | None, "filters": list | None, "dtype": object}
_COMPRESSORS = {"blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd"}


def is_zarr2(path: Place) -> bool:
    """Whether a folder is an array of zarr format 2."""
    return (path / _METADATA).is_file() and not (path / "zarr.json").exists()


def open_zarr2(path: Place) -> Any:
    """The array. Raises BadInputError for filters, objects and unknown compressors, CorruptDataError for missing chunks."""
    if isinstance(path, Path):
        refuse_links(path)
    values = read_json(path / _METADATA, _SHAPE)
    compressor = (values["compressor"] or {}).get("id")
    filters, dtype = values["filters"], values["dtype"]
    if filters or not isinstance(dtype, str) or dtype[1:2] not in ("b", "i", "u", "f", "U", "S"):
        raise BadInputError(f"{path}: zarr format 2 of type {dtype} with filters {filters}; give plain numbers, no filters")
    if values["compressor"] is not None and compressor not in _COMPRESSORS:
        raise BadInputError(f"{path}: compressor {compressor} is not accepted; write it again with zstd or none")
    try:
        array = zarr.open_array(zarr_store(path, read_only=True), mode="r", zarr_format=2)
        require_chunks_of(array, path)
    except DAMAGE as error:
        raise CorruptDataError(f"{path}: its zarr metadata cannot be read: {type(error).__name__}: {error}") from None
    return array
