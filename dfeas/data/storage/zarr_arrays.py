"""Arrays in the formats of zarr and of .npy: what they say of themselves is checked before anything is read or allocated."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice, product
from math import prod
from pathlib import Path
from typing import IO, Any

import crc32c
import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from dfeas.data.storage.files import DAMAGE
from dfeas.data.storage.layout import default_block_rows
from dfeas.data.storage.metadata import ARRAY, FILE, no_array, read_node
from dfeas.data.storage.numbers import array_of, require_unpacked
from dfeas.data.storage.places import Place, require_chunks, require_column, zarr_store
from dfeas.data.storage.readers import Files, Folder, RowReader, SliceReader, cacheable_bytes
from dfeas.data.storage.shards import CRC, WRITE_EMPTY, ChunkReader, Form, codecs_of, require_chunks_in
from dfeas.errors import BadInputError, CorruptDataError, DfeasError, absent


def open_array(path: Place, name: str) -> Any:
    """The zarr array at a path, of format 2 or 3; ``name`` says in errors what it should be."""
    node = read_node(path)
    if node.get("node_type", ARRAY) != ARRAY:
        raise no_array(path)
    import zarr

    try:
        array = zarr.open_array(zarr_store(path, read_only=True), mode="r")
        require_chunks_of(array, path)
        require_whole(array, path)
        _require_unpacked(array, path, name)
    except DfeasError:
        raise
    except DAMAGE as error:
        raise CorruptDataError(f"{path}: its zarr metadata cannot be read: {type(error).__name__}: {error}") from None
    return array


def _require_unpacked(array: Any, path: Place, name: str) -> None:
    """Raise BadInputError for numbers that stand for others; ``name`` is that of labels or points."""
    call = "dfeas.solve(X, {})" if name == LABELS else "dfeas.solve({}, ...)"
    require_unpacked(array, str(path), f"zarr.open_array({str(path)!r})[:]", decoded_by_xarray(array, path), call)


def decoded_by_xarray(array: Any, path: Place | None = None) -> str:
    """An expression of Python for an array of a group that xarray reads; empty for others."""
    if path is None:
        path = Path(array.store.root) / array.path if _in_files(array) else None
    named = "_ARRAY_DIMENSIONS" in array.attrs or getattr(array.metadata, "dimension_names", None)
    group = getattr(path, "parent", None)  # none is asked for in an object store
    if not named or group is None or not any((group / file).exists() for file in (FILE, ".zgroup")):
        return ""
    return f"xarray.open_zarr({str(group)!r})[{path.name!r}]" if path is not None else ""


def read_header(stream: IO[bytes], size: int, where: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of the array in a .npy stream of ``size`` bytes, which is in C order and has no Python objects.

    Raises CorruptDataError when it says more than these bytes can hold.
    """
    try:
        version = npy.read_magic(stream)
        reader = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = reader(stream)
        if any(isinstance(length, bool) or length < 0 for length in shape):
            raise ValueError(f"shape {shape}")
    except DAMAGE as error:
        raise CorruptDataError(f"{where}: not a readable .npy array: {error}") from None
    if dtype.hasobject:
        raise BadInputError(f"{where}: an array of Python objects is not accepted; save numbers")
    if fortran and len(shape) > 1:
        raise BadInputError(f"{where}: stored in Fortran order; save np.ascontiguousarray(array) instead")
    wanted = prod(shape) * dtype.itemsize
    if wanted > size:
        raise CorruptDataError(
            f"{where}: shape {_shape_text(shape)} of {dtype} takes {wanted:.4g} bytes, the file has {size}: truncated"
        )
    return tuple(shape), dtype


def load_npy(path: Place) -> NDArray[Any]:
    """A whole .npy file of one entry a point: labels, weights, a mask.

    Raises CorruptDataError when it is none, BadInputError when it does not fit in memory.
    """
    try:
        if isinstance(path, Path) and not path.is_file():
            raise BadInputError(f"{path}: not a file; a pipe or a device is not read")
        size = path.stat().st_size
        with path.open("rb") as file:
            shape, dtype = read_header(file, size, str(path))
            require_column(prod(shape) * dtype.itemsize, str(path))
            content = file.read(prod(shape) * dtype.itemsize)
        return np.frombuffer(content, dtype).reshape(shape).copy()
    except DfeasError:
        raise
    except DAMAGE as error:
        raise CorruptDataError(f"{path}: not a readable .npy file: {error}") from None


def _shape_text(shape: tuple[int, ...]) -> str:
    """A shape in a message; NumPy takes 64 axes, each of any length."""
    return " x ".join(f"{length:.6g}" if length >= 10**18 else str(length) for length in shape[:4]) or "()"


def open_labels(path: Place) -> Any:
    """A label array by path: zarr, or .npy."""
    if not path.exists():
        raise BadInputError(f"{absent(path)} (labels)")
    if path.suffix == ".npy":
        return load_npy(path)
    return open_array(path, LABELS)


def check_shape(shape: tuple[int, ...] | None, where: str) -> tuple[int, int]:
    """(n, m) of an array of points; raises BadInputError when it is not two-dimensional or is empty."""
    if shape is None or not all(isinstance(s, int | np.integer) for s in shape):
        raise BadInputError(f"{where}: its shape is not known; for a Dask array call compute_chunk_sizes() first")
    if len(shape) != 2:
        raise BadInputError(f"{where}: expected points as an array (n, m), got shape {tuple(shape)}")
    n, m = int(shape[0]), int(shape[1])
    if n == 0 or m == 0:
        raise BadInputError(f"{where}: no {'points' if n == 0 else 'features'}, shape {tuple(shape)}")
    return n, m


LABELS = "label"
"""What an array is called that has labels."""

PLACE = 10**15
"""Stands for an index in a chunk's key."""

_FAIR_CHUNK = 1 << 20

CACHED = 1 << 26
"""Bytes that any page cache holds: what this one can hold takes as long to ask as to open an array."""


def _codecs(array: Any, form: Form | None) -> Sequence[Any]:
    """Those of a chunk, in a shard or not."""
    return codecs_of(array) if form is None else form.codecs


def require_whole(array: Any, path: Place | str) -> None:
    """Raise CorruptDataError when shards lost a chunk, which zarr would read as fill values; looks at the index of each.

    Raises BadInputError for shards that are not in files.
    """
    if array.metadata.zarr_format != 3:
        return
    form = Form.of(array, path)
    if form is None:
        return
    if isinstance(path, str) and not _in_files(array):
        raise BadInputError(f"{path}: sharded, and not in files: what a shard lost would be read as zeros; give its path")
    folder = Path(array.store.root) / array.path if isinstance(path, str) else path
    require_chunks_in(_folder(folder), array, form)


def is_zarr(array: Any) -> bool:
    """Whether something is an array of zarr, which is loaded then."""
    loaded = sys.modules.get("zarr")
    return loaded is not None and isinstance(array, loaded.Array)


def _in_files(array: Any) -> bool:
    import zarr

    return isinstance(array.store, zarr.storage.LocalStore)


def _folder(path: Place, cache_dir: str = "", past_cache: bool = False) -> Folder:
    """What shards lie in; those of an object store may be kept in ``cache_dir``, files read ``past_cache`` of pages."""
    if isinstance(path, Path):
        return Files(path, past_cache)
    from dfeas.data.storage.object_readers import KeptBlocks, Objects, Tags

    return Objects(Tags(path), KeptBlocks.at(cache_dir) if cache_dir else None)


def require_chunks_of(array: Any, path: Place | str) -> None:
    """Raise CorruptDataError when chunks or shards are missing, BadInputError when chunks are too large.

    There are no more chunks than files, or there would be time and memory for more names than a folder can hold.
    """
    shape, chunks = tuple(array.shape), tuple(array.chunks)
    if min((*shape, *chunks), default=1) < 0 or 0 in chunks:
        raise CorruptDataError(f"{path}: its zarr metadata cannot be read: shape {shape} in chunks of {chunks}")
    require_chunks(chunks, array.dtype.itemsize, str(path))
    shards = tuple(array.shards or chunks)
    count = prod(-(-size // width) for size, width in zip(shape, shards, strict=True))
    missing = count - _chunk_files(path, array, count)
    if missing:
        what = "shards" if array.shards else "chunks"
        raise CorruptDataError(
            f"{path}: {missing} of {count} {what} are missing; restore them "
            f"(or, if they are meant to be empty, write them: {WRITE_EMPTY})"
        )


def _chunk_files(path: Place | str, array: Any, count: int) -> int:
    """How many of the ``count`` chunks or shards of an array are there."""
    if isinstance(path, Path) and count == -(-array.shape[0] // (array.shards or array.chunks)[0]):
        before, after = _key_text(array)
        if "/" not in before + after:  # zarr would take 0.3 ms for each
            number = re.compile(f"{re.escape(before)}(0|[1-9][0-9]*){re.escape(after)}").fullmatch
            with os.scandir(path) as entries:
                found = ((number(entry.name), entry) for entry in entries)
                return sum(1 for match, entry in found if match and int(match[1]) < count and entry.is_file())
    files = count if isinstance(path, str) else sum(1 for _ in islice(path.rglob("*"), count))
    if files < count:
        return files
    return int(array.nchunks_initialized // (prod(array.shards or array.chunks) // prod(array.chunks)))


def direct_reader(
    name: str, path: Place, array: Any, chunk_rows: int, cache_dir: str = "", together: int = 1
) -> RowReader | None:
    """A direct reader when the chunks are plain, and have so many rows; some ``together`` are a block. Objects may be kept in
    ``cache_dir``.
    """
    past_cache = array.nbytes > CACHED and array.nbytes > cacheable_bytes()
    reader = plain_chunks(name, path, array, chunk_rows, _folder(path, cache_dir, past_cache), together)
    return None if reader is None else _ahead(reader)


def _ahead(reader: RowReader) -> RowReader:
    """The same, asked before what is far away."""
    if not reader.distant:
        return reader
    from dfeas.data.storage.object_readers import Ahead

    return Ahead(reader)


def _are_plain(array: Any, form: Form | None, chunk_rows: int) -> bool:
    """Whether chunks are so many rows of entries as they are, with or without a crc32c."""
    codecs = _codecs(array, form)
    endian = (codecs[0].get("configuration") or {}).get("endian", "little")
    return bool(
        [codec["name"] for codec in codecs] in (["bytes"], ["bytes", "crc32c"])
        and endian == "little"
        and tuple(array.chunks) == (chunk_rows, *array.shape[1:])
        and array.dtype.isnative
        and np.little_endian
    )


def _key(array: Any) -> Callable[[int], str]:
    """Number of a chunk, or of a shard, along the rows -> its name in the folder of the array."""
    # asking for each key would take longer than a stat
    before, after = _key_text(array)
    return lambda index: f"{before}{index}{after}"


def _key_text(array: Any) -> tuple[str, str]:
    """What stands before and after the number of a chunk along the rows, the same for all."""
    before, after = str(array.metadata.encode_chunk_key((PLACE, *(0,) * (array.ndim - 1)))).split(str(PLACE))
    return before, after


def plain_chunks(
    name: str, path: Place, array: Any, chunk_rows: int, folder: Folder | None = None, together: int = 1
) -> ChunkReader | None:
    """Of an array whose chunks are so many rows of its entries as they are, in files or in shards; None for others."""
    form = Form.of(array, path)
    if not _are_plain(array, form, chunk_rows) or (form is not None and prod(form.per[1:]) != 1):
        return None
    alone = Form(tuple(array.shape), tuple(array.chunks), (1,) * array.ndim, codecs_of(array), at_end=True, sealed=True)
    trailer = CRC if len(_codecs(array, form)) == 2 else 0
    sharded = form is not None
    return ChunkReader(name, folder or _folder(path), _key(array), form or alone, sharded, array.dtype, trailer, together)


def read_whole(path: Place, array: Any) -> NDArray[Any]:
    """All entries of an array, compared with the crc32c behind them; of one plain chunk without waiting for zarr.

    Raises what ``DAMAGE`` has when it cannot be read.
    """
    plain = plain_chunks(array.path, path, array, array.shape[0])
    if plain is None or plain.sharded or not plain.trailer:
        return array_of(array[:], str(path))
    content = (path / plain.key(0)).read_bytes()
    entries, crc = content[:-CRC], content[-CRC:]
    if len(entries) != array.nbytes or crc32c.crc32c(entries) != int.from_bytes(crc, "little"):
        raise ValueError(f"{len(content)} bytes that are not those of its checksum")
    return np.frombuffer(entries, array.dtype).reshape(array.shape).copy()


def slice_reader(reader: SliceReader, path: Place, array: Any) -> RowReader:
    """A reader through zarr, which sees changes of what it reads; from an object store it reads several blocks ahead."""
    if isinstance(path, Path):
        return replace(reader, files=files_of(array, reader.block_rows))
    from dfeas.data.storage.object_readers import distant_reader

    return distant_reader(reader, path, names_of(array, reader.block_rows))


def files_of(array: Any, block_rows: int) -> Callable[[int], list[str]] | None:
    """Paths of all chunks of a block of whole chunks; None for an array that does not lie in plain files."""
    if not is_zarr(array) or not _in_files(array):
        return None
    folder, names = f"{array.store.root}/{array.path}".rstrip("/"), names_of(array, block_rows)
    return lambda index: [f"{folder}/{name}" for name in names(index)]


def names_of(array: Any, block_rows: int) -> Callable[[int], list[str]]:
    """Names of all chunks or shards that a block of whole chunks is read from, in the folder of their array."""
    encode, chunks, shape = array.metadata.encode_chunk_key, array.shards or array.chunks, array.shape
    columns = list(product(*(range(-(-size // width)) for size, width in zip(shape[1:], chunks[1:], strict=True))))

    def names(index: int) -> list[str]:
        first, stop = index * block_rows, min((index + 1) * block_rows, shape[0])
        rows = range(first // chunks[0], -(-stop // chunks[0]))
        return [encode((row, *column)) for row in rows for column in columns]

    return names


def rows_of_whole_chunks(array: Any, itemsize: int) -> int:
    """Rows of a block: one chunk when it is of a fair size, otherwise whole chunks up to about ``BLOCK_BYTES``."""
    n, m = array.shape
    chunk = int(array.chunks[0])
    wanted = default_block_rows(m, itemsize, n)
    if chunk * m * itemsize >= _FAIR_CHUNK:
        wanted = chunk
    return int(min(n, max(chunk, wanted // chunk * chunk)))
