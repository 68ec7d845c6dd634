"""``zarr.json``, what an array or a group of zarr says of itself: read, checked and written here.

zarr hands each of these small files to a thread with an event loop and waits for it, a millisecond or more; a dataset has five
to eight. What is written is what zarr writes, byte for byte.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isnan, prod
from pathlib import Path
from typing import Any

import crc32c
import numpy as np
from numpy.typing import NDArray

from dfeas.data.storage.files import COUNT, DAMAGE, Number, parse_json, put, read_json, refuse_links
from dfeas.data.storage.places import Place, zarr_store
from dfeas.data.storage.shards import CODEC, CRC
from dfeas.errors import BadInputError, CorruptDataError

ARRAY = "array"


def through_zarr(folder: Place, name: str) -> Any:
    """The array of zarr with that name in a group. Raises CorruptDataError for what zarr does not understand."""
    import zarr

    try:
        return zarr.open_array(zarr_store(folder, read_only=True), path=name, mode="r")
    except DAMAGE as error:
        text = f"its zarr metadata cannot be read: {type(error).__name__}: {error}"
        raise CorruptDataError(f"{folder / name}: {text}") from None


_FREE = "attributes"
"""What may be anything."""


def described(shape: tuple[int, ...], rows: int, dtype: np.dtype[Any], fill: float, shard: int = 0) -> dict[str, Any]:
    """What an array says of itself that has uncompressed chunks of so many rows with checksums, ``shard`` of them in a file."""
    wide = {"name": "bytes", "configuration": {"endian": "little"}}
    codecs: list[dict[str, Any]] = [wide if dtype.itemsize > 1 else {"name": "bytes"}, {"name": "crc32c"}]
    chunk = outer = [rows, *shape[1:]]
    if shard:
        index = [wide, {"name": "crc32c"}]
        form = {"chunk_shape": chunk, "codecs": codecs, "index_codecs": index, "index_location": "end"}
        outer, codecs = [shard * rows, *shape[1:]], [{"name": CODEC, "configuration": form}]
    real = dtype.kind == "f"
    return {
        "shape": list(shape),
        "data_type": dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": outer}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "fill_value": "NaN" if isnan(fill) else float(fill) if real else int(fill),
        "codecs": codecs,
        "attributes": {},
        "zarr_format": 3,
        "node_type": ARRAY,
        "storage_transformers": [],
    }


class _Codec(dict[str, Any]):
    def to_dict(self) -> dict[str, Any]:
        return dict(self)


@dataclass(frozen=True)
class Metadata:
    """What zarr calls so, as far as it is asked for."""

    codecs: tuple[_Codec, ...]
    zarr_format: int = 3

    def encode_chunk_key(self, place: tuple[int, ...]) -> str:
        """The name of a chunk, or of a shard, in the folder of the array."""
        return ".".join(("c", *map(str, place)))


@dataclass(frozen=True)
class StoredArray:
    """One array of a dataset."""

    folder: Place  # of the group
    path: str  # its name in the group
    node: Mapping[str, Any]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunks: tuple[int, ...]
    shards: tuple[int, ...] | None
    metadata: Metadata

    @classmethod
    def of(cls, folder: Place, path: str, node: Mapping[str, Any]) -> StoredArray | None:
        """None for an array that is described otherwise than dfeas does, which zarr must understand."""
        try:
            dtype, shape = np.dtype(node["data_type"]), tuple(node["shape"])
            (outer, *rest), shard = node["chunk_grid"]["configuration"]["chunk_shape"], 0
            rows = outer
            if node["codecs"][0]["name"] == CODEC:
                rows = node["codecs"][0]["configuration"]["chunk_shape"][0]
                shard = outer // rows
            ours = described(shape, rows, dtype, 0, shard)
        except (ArithmeticError, LookupError, TypeError, ValueError):
            return None
        if node.get("fill_value") == "NaN" and dtype.kind == "f":
            ours["fill_value"] = "NaN"
        if rows < 1 or dtype.kind not in "biuf" or {**node, _FREE: {}} != ours:
            return None
        chunks, metadata = (rows, *rest), Metadata(tuple(map(_Codec, node["codecs"])))
        return cls(folder, path, node, shape, dtype, chunks, (outer, *rest) if shard else None, metadata)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize

    @cached_property
    def through_zarr(self) -> Any:
        """The same array, as zarr has it."""
        return through_zarr(self.folder, self.path)

    @property
    def nchunks_initialized(self) -> int:
        return int(self.through_zarr.nchunks_initialized)

    def __getitem__(self, key: Any) -> Any:
        return self.through_zarr[key]


FILE = "zarr.json"

FILE_2 = ".zarray"
"""The same of an array of format 2."""

GROUP = "group"

_SIZES = [Number(1, whole=True)]
_SHAPE = {"zarr_format": COUNT, "shape?": [COUNT]}
_SHAPES = {
    FILE: {**_SHAPE, "node_type": str, "chunk_grid?": {"configuration": {"chunk_shape": _SIZES}}},
    FILE_2: {**_SHAPE, "chunks": _SIZES, "compressor": dict | None, "filters": list | None},
}
"""What is said of an array, as far as sizes follow from it, and what would unpack it."""

RUNS_CODE = "pickle"
"""The codec of numcodecs that does what a chunk says."""


def read_node(path: Place) -> dict[str, Any]:
    """What the zarr array or group at a path says of itself, checked before any chunk is read."""
    if not path.is_dir() or not any((path / name).exists() for name in (FILE, FILE_2, ".zgroup")):
        raise BadInputError(f"{path}: neither a dfeas dataset nor a zarr array; see dfeas ingest --help for other formats")
    file = next((name for name in (FILE, FILE_2) if (path / name).exists()), None)
    if file is None:
        raise no_array(path)
    if isinstance(path, Path):
        refuse_links(path)
    node: dict[str, Any] = read_json(path / file, _SHAPES[file])
    if file == FILE and (node["zarr_format"] != 3 or node["node_type"] not in (ARRAY, GROUP)):
        raise CorruptDataError(f"{path}: its zarr metadata cannot be read: neither an array nor a group of format 3")
    codecs = [node.get("compressor"), *(node.get("filters") or ())]
    if any(isinstance(codec, dict) and codec.get("id") == RUNS_CODE for codec in codecs):
        raise BadInputError(f"{path}: its chunks are Python objects ({RUNS_CODE}), which run code; save numbers")
    return node


def no_array(path: Place) -> BadInputError:
    """The error for a group of zarr where an array is expected."""
    inside = path.iterdir() if isinstance(path, Path) else ()
    held = sorted(each.name for each in inside if (each / FILE_2).exists() or (each / FILE).exists())
    which = f", which holds {', '.join(held[:8])}: give the path of an array, as {path}/{held[0]}" if held else ""
    return BadInputError(f"{path}: a zarr group{which or ', and it holds no array'}")


def member(path: Place, name: str) -> Any:
    """An array of the group at a path. Raises what ``DAMAGE`` has where there is none."""
    node = parse_json((path / name / FILE).read_bytes(), _SHAPES[FILE])
    return StoredArray.of(path, name, node) or through_zarr(path, name)


def put_group(path: Place, attributes: Mapping[str, Any]) -> None:
    """Say that a folder is a group."""
    _put(path, {"attributes": attributes, "zarr_format": 3, "node_type": GROUP})


def put_array(
    path: Place, name: str, shape: tuple[int, ...], rows: int, dtype: np.dtype[Any], fill: float, shard: int = 0
) -> Any:
    """An array in the group at a path, of uncompressed chunks of so many rows with checksums, ``shard`` of them in a file."""
    import zarr

    _put(path / name, described(shape, rows, dtype, fill, shard))
    return zarr.open_array(zarr_store(path, read_only=False), path=name, mode="r+", config={"write_empty_chunks": True})


def put_whole_array(path: Place, name: str, values: NDArray[Any]) -> None:
    """An array of one chunk in the group at a path: checksums (blocks, 3), or offsets (blocks + 1,)."""
    put_array(path, name, values.shape, len(values), values.dtype, 0)
    entries = np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes()
    put(path / name / ".".join(("c", *"0" * values.ndim)), entries, crc32c.crc32c(entries).to_bytes(CRC, "little"))


def _put(path: Place, node: Mapping[str, Any]) -> None:
    if isinstance(path, Path):
        path.mkdir(parents=True, exist_ok=True)
    put(path / FILE, json.dumps(node, indent=2).encode())
