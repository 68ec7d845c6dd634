"""An array as dfeas writes it, told from its ``zarr.json`` alone: to load zarr takes longer than most commands.

It has what is asked of an array of zarr before its chunks are read. What is asked of chunks themselves goes through zarr.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isnan, prod
from typing import Any

import numpy as np

from dfeas.data.storage.files import DAMAGE
from dfeas.data.storage.places import Place, zarr_store
from dfeas.errors import CorruptDataError

CODEC = "sharding_indexed"
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
