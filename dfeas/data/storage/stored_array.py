"""What ``zarr.json`` says of a dataset and of its arrays: what zarr writes, byte for byte.

But zarr is not asked: its import takes longer than to open a dataset, and it hands each of these small files to a thread with
an event loop.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from math import isnan, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from fastcrc.crc32 import iscsi as crc32c
from msgspec import Struct
from numpy.typing import NDArray

from dfeas.data.storage.files import COUNT, LOCK, MARKER, Number, conform, parse_json, put, read_whole
from dfeas.errors import CorruptDataError, DfeasError

if TYPE_CHECKING:
    from dfeas.data.storage.places import Place

ATTRIBUTE, SEAL = "dfeas", "seal"
CRC = 4
"""Bytes of a crc32c."""
_SIZES = [Number(1, whole=True)]
_GROUP = {"zarr_format": COUNT, "node_type": str, "attributes": dict, "consolidated_metadata": {"metadata": {str: dict}}}
_ARRAY = {
    "shape": [COUNT],
    "data_type": str,
    "chunk_grid": {"configuration": {"chunk_shape": _SIZES}},
    "codecs": [{"name": str, "configuration?": {"chunk_shape?": _SIZES}}],
    "attributes": dict,
}


class StoredArray(Struct, frozen=True, dict=True):
    """How an array is stored. What was never written of its last chunk, or was not kept, is ``fill``."""

    shape: tuple[int, ...]
    rows: int  # of a chunk
    dtype: np.dtype[Any]
    shard: int = 0  # chunks of a file that has an index; 0: each is a file
    fill: float = 0

    @classmethod
    def of(cls, node: Mapping[str, Any]) -> StoredArray:
        """From what ``zarr.json`` says. Raises KeyError, TypeError or ValueError for what dfeas does not write."""
        outer, inner = node["chunk_grid"]["configuration"]["chunk_shape"], node["codecs"][0].get("configuration", {})
        rows = inner.get("chunk_shape", outer)[0]
        shard = outer[0] // rows if "chunk_shape" in inner else 0
        fill = np.nan if node["fill_value"] == "NaN" else 0
        array = cls(tuple(node["shape"]), rows, np.dtype(node["data_type"]), shard, fill)
        if rows < 1 or array.dtype.kind not in "biuf" or {**node, "attributes": {}} != array.metadata():
            raise ValueError("dfeas stores arrays otherwise")
        return array

    def metadata(self) -> dict[str, Any]:
        wide = {"name": "bytes", "configuration": {"endian": "little"}}
        codecs: list[dict[str, Any]] = [wide if self.dtype.itemsize > 1 else {"name": "bytes"}, {"name": "crc32c"}]
        outer = chunk = [self.rows, *self.shape[1:]]
        if self.shard:
            index = [wide, {"name": "crc32c"}]
            form = {"chunk_shape": chunk, "codecs": codecs, "index_codecs": index, "index_location": "end"}
            outer, codecs = [self.shard * self.rows, *self.shape[1:]], [{"name": "sharding_indexed", "configuration": form}]
        number = float if self.dtype.kind == "f" else int
        return {
            "shape": list(self.shape),
            "data_type": self.dtype.name,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": outer}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
            "fill_value": "NaN" if isnan(self.fill) else number(self.fill),
            "codecs": codecs,
            "attributes": {},
            "zarr_format": 3,
            "node_type": "array",
            "storage_transformers": [],
        }

    @cached_property
    def row_bytes(self) -> int:
        return prod(self.shape[1:]) * self.dtype.itemsize

    @cached_property
    def chunk_bytes(self) -> int:
        return self.rows * self.row_bytes + CRC

    @cached_property
    def chunks_of_file(self) -> int:
        return max(1, self.shard)

    @property
    def chunks(self) -> int:
        return -(-self.shape[0] // self.rows)

    def file(self, number: int) -> str:
        """The name of a chunk, or of a shard, in the folder of the array."""
        return f"c.{number}{'.0' * (len(self.shape) - 1)}"

    def require_files(self, folder: Path) -> None:
        """Raise CorruptDataError when chunks or shards are missing."""
        there = np.zeros(-(-self.chunks // self.chunks_of_file), np.bool_)
        for name in next(os.walk(folder), ("", (), ()))[2]:
            number = name.split(".")[1] if name.startswith("c.") else ""
            if number.isdecimal() and int(number) < len(there) and name == self.file(int(number)):
                there[int(number)] = True
        if not there.all():
            what = "shards" if self.shard else "chunks"
            lost = len(there) - int(there.sum())
            raise CorruptDataError(f"{folder}: {lost} of {len(there)} {what} are missing; restore them or ingest again")


def parse_arrays(node: Mapping[str, Any], names: Sequence[str], where: Place) -> dict[str, StoredArray]:
    """How the arrays of a group are stored, from what its ``zarr.json`` says of all that is below it. Raises CorruptDataError
    when it is no such group, or for what dfeas does not write.
    """
    name = ""
    try:
        conform(node, _GROUP)
        if node["zarr_format"] != 3 or node["node_type"] != "group":
            raise ValueError("no group of format 3")
        below, arrays = node["consolidated_metadata"]["metadata"], {}
        for name in names:
            conform(below[name], _ARRAY)
            arrays[name] = StoredArray.of(below[name])
        return arrays
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise CorruptDataError(f"{where}: its zarr metadata cannot be read: {name} {error}; ingest it again") from None


def group_node(attributes: Mapping[str, Any], below: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What ``zarr.json`` says of a group, and of what is ``below`` it: nobody has to ask there, too."""
    held = {} if below is None else {"consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": below}}
    return {"attributes": attributes, "zarr_format": 3, **held, "node_type": "group"}


def put_node(path: Place, node: Mapping[str, Any]) -> None:
    """Say what a folder is."""
    if isinstance(path, Path):
        path.mkdir(parents=True, exist_ok=True)
    put(path / MARKER, node_text(node))


def node_text(node: Mapping[str, Any]) -> bytes:
    """As zarr writes it."""
    return json.dumps(node, indent=2).encode()


def put_list(folder: Place, values: NDArray[Any]) -> dict[str, Any]:
    """An array of one chunk, checksums (blocks, 3) or offsets (blocks + 1,), and what its ``zarr.json`` says."""
    array = StoredArray(values.shape, len(values), values.dtype)
    put_node(folder, array.metadata())
    entries = np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes()
    put(folder / array.file(0), entries, crc32c(entries).to_bytes(CRC, "little"))
    return array.metadata()


def read_list(folder: Place, array: StoredArray) -> NDArray[Any]:
    """All entries of an array of one chunk. Raises OSError when it is not there, ValueError when it is damaged."""
    content = (folder / array.file(0)).read_bytes()
    entries, crc = content[:-CRC], content[-CRC:]
    if len(entries) != array.shape[0] * array.row_bytes or crc32c(entries) != int.from_bytes(crc, "little"):
        raise ValueError(f"{len(content)} bytes that are not those of its checksum")
    return np.frombuffer(entries, array.dtype).reshape(array.shape).copy()


def seal(node: Mapping[str, Any]) -> str:
    """sha256 over all that ``zarr.json`` of a dataset says, but for the seal."""
    bare = {**node, "attributes": {name: value for name, value in node["attributes"].items() if name != SEAL}}
    return hashlib.sha256(json.dumps(bare, sort_keys=True).encode()).hexdigest()


def root_node(header: Mapping[str, Any], below: Mapping[str, Any]) -> dict[str, Any]:
    """What ``zarr.json`` of a dataset says, of which all that is ``below`` it."""
    node = group_node({ATTRIBUTE: header}, below)
    node["attributes"][SEAL] = seal(node)
    return node


def find_root(path: Place) -> dict[str, Any] | None:
    """What ``zarr.json`` says of a dataset or of an array of others; None where there is none, or none that can be read. Raises
    CorruptDataError for a dataset whose ingest did not finish.
    """
    try:
        root = _read_root(path)
        return root if isinstance(path, Path) or _is_sound(root) else _read_root(path)  # which may have come damaged
    except (FileNotFoundError, NotADirectoryError):
        if not any((path / name).is_file() for name in (LOCK, f"checksum/{MARKER}")):
            return None
        raise CorruptDataError(
            f"{path}: incomplete dataset, its ingest was interrupted or still runs; run the same ingest again"
        ) from None
    except DfeasError:  # of an object store
        raise
    except OSError:
        return None


def _read_root(path: Place) -> dict[str, Any] | None:
    try:
        node: dict[str, Any] = parse_json(read_whole(path / MARKER), {"zarr_format": COUNT, "attributes?": dict})
    except DfeasError:
        raise
    except ValueError:
        return None
    return {"attributes": {}, **node}


def _is_sound(root: dict[str, Any] | None) -> bool:
    """Whether it can be read, and is sealed where it is ours."""
    if root is None:
        return False
    said: dict[str, Any] = root["attributes"]
    return not said.keys() & {ATTRIBUTE, SEAL} or said.get(SEAL) == seal(root)


def looks_like_dataset(path: Place) -> bool:
    """Whether a folder was begun by dfeas, finished or not."""
    try:
        root = find_root(path)
        return root is not None and ATTRIBUTE in root["attributes"]
    except CorruptDataError:
        return True
