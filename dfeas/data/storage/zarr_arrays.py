"""Arrays of others, in the formats of zarr and of .npy: what they say of themselves is checked before anything is read or
allocated. zarr reads them, whatever their format and codecs; what it would read as fill values because it is lost is refused.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from itertools import product
from math import prod
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from dfeas.data.storage.files import COUNT, MARKER, Number, damage, read_json, refuse_links
from dfeas.data.storage.layout import default_block_rows
from dfeas.data.storage.numbers import require_unpacked
from dfeas.data.storage.places import Place, ask_at, names_in, require_chunks, require_column, translate_errors_at, zarr_store
from dfeas.data.storage.readers import RowReader, SliceReader
from dfeas.errors import BadInputError, CorruptDataError, DfeasError, absent
from dfeas.records import replace

if TYPE_CHECKING:
    from dfeas.data.storage.chunks import IndexForm

LABELS = "label"
"""What an array is called that has labels."""
FILE_2, GROUP_2 = ".zarray", ".zgroup"
"""What arrays and groups of format 2 say of themselves."""
_SIZES = [Number(1, whole=True)]
_SHAPES = {
    MARKER: {
        "zarr_format": COUNT,
        "node_type": str,
        "shape?": [COUNT],
        "chunk_grid?": {"configuration": {"chunk_shape": _SIZES}},
    },
    FILE_2: {"zarr_format": COUNT, "shape?": [COUNT], "chunks": _SIZES, "compressor": dict | None, "filters": list | None},
}
"""What is said of an array, as far as sizes follow from it, and what would unpack it."""
RUNS_CODE = "pickle"
"""The codec of numcodecs that does what a chunk says."""
MOST_CHUNKS = 1 << 22
"""Of a shard, whose index is read as a whole: 64 MiB."""


def open_array(path: Place, name: str) -> Any:
    """The zarr array at a path, of format 2 or 3; ``name`` says in errors what it should be."""
    return ask_at(path, lambda: _open(path, name))


def _open(path: Place, name: str) -> Any:
    form = _require_array(path)
    import zarr

    try:
        array = zarr.open_array(zarr_store(path), mode="r", zarr_format=form)
        require_all_chunks(array, path)
        call = "dfeas.solve(X, {})" if name == LABELS else "dfeas.solve({}, ...)"
        require_unpacked(array, str(path), f"zarr.open_array({str(path)!r})[:]", decoded_by_xarray(array, path), call)
    except DfeasError:
        raise
    except damage() as error:
        raise CorruptDataError(f"{path}: its zarr metadata cannot be read: {type(error).__name__}: {error}") from None
    return array


def _require_array(path: Place) -> Literal[2, 3]:
    """The format of the array at a path; what it says of itself is looked at before any chunk is read, and before zarr does."""
    file = next((name for name in (MARKER, FILE_2, GROUP_2) if (path / name).is_file()), None)
    if file is None:
        raise BadInputError(f"{path}: neither a dfeas dataset nor a zarr array; see dfeas ingest --help for other formats")
    if file == GROUP_2:
        raise _no_array(path)
    if isinstance(path, Path):
        refuse_links(path)
    node: dict[str, Any] = read_json(path / file, _SHAPES[file])
    if file == MARKER and (node["zarr_format"] != 3 or node["node_type"] not in ("array", "group")):
        raise CorruptDataError(f"{path}: its zarr metadata cannot be read: neither an array nor a group of format 3")
    if node.get("node_type") == "group":
        raise _no_array(path)
    codecs = [node.get("compressor"), *(node.get("filters") or ())]
    if any(isinstance(codec, dict) and codec.get("id") == RUNS_CODE for codec in codecs):
        raise BadInputError(f"{path}: its chunks are Python objects ({RUNS_CODE}), which run code; save numbers")
    return 3 if file == MARKER else 2


def _no_array(path: Place) -> BadInputError:
    inside = path.iterdir() if isinstance(path, Path) else ()
    held = sorted(each.name for each in inside if (each / FILE_2).exists() or (each / MARKER).exists())
    which = f", which holds {', '.join(held[:8])}: give the path of an array, as {path}/{held[0]}" if held else ""
    return BadInputError(f"{path}: a zarr group{which or ', and it holds no array'}")


def decoded_by_xarray(array: Any, path: Place | None = None) -> str:
    """An expression of Python for an array of a group that xarray reads; empty for others."""
    path = _folder_of(array) if path is None else path
    named = "_ARRAY_DIMENSIONS" in array.attrs or getattr(array.metadata, "dimension_names", None)
    group = path.parent if isinstance(path, Path) else None  # none is asked for in an object store
    if not named or group is None or not any((group / file).exists() for file in (MARKER, GROUP_2)):
        return ""
    return f"xarray.open_zarr({str(group)!r})[{path.name!r}]" if path is not None else ""


def is_zarr(array: Any) -> bool:
    """Whether something is an array of zarr, which is loaded then."""
    loaded = sys.modules.get("zarr")
    return loaded is not None and isinstance(array, loaded.Array)


def _folder_of(array: Any) -> Path | None:
    import zarr

    return Path(array.store.root) / array.path if isinstance(array.store, zarr.storage.LocalStore) else None


def require_all_chunks(array: Any, where: Place | str) -> None:
    """Look whether all chunks of an array are there, which zarr would read as fill values; ``where`` is its place or its name.
    Raises CorruptDataError when chunks or shards are missing, or when a shard has lost one, BadInputError for chunks that are
    too large, and for shards that are not read.
    """
    shape, chunks = tuple(array.shape), tuple(array.chunks)
    if min((*shape, *chunks), default=1) < 0 or 0 in chunks:
        raise CorruptDataError(f"{where}: its zarr metadata cannot be read: shape {shape} in chunks of {chunks}")
    require_chunks(chunks, array.dtype.itemsize, str(where))
    folder = _folder_of(array) if isinstance(where, str) else where
    count = prod(-(-size // width) for size, width in zip(shape, array.shards or chunks, strict=True))
    missing = count - _count_chunks(array, count, folder)
    if missing:
        from dfeas.data.storage.chunks import WRITE_EMPTY

        what = "shards" if array.shards else "chunks"
        raise CorruptDataError(
            f"{where}: {missing} of {count} {what} are missing; restore them "
            f"(or, if they are meant to be empty, write them: {WRITE_EMPTY})"
        )
    if array.metadata.zarr_format == 3:
        _require_whole_shards(array, where, folder)


def _count_chunks(array: Any, count: int, folder: Place | None) -> int:
    """How many of the ``count`` chunks or shards of an array are there; those of an object store say it when they are read.
    There are no more than files, or there would be time and memory for more names than a folder can hold. zarr takes 0.5 ms for
    each.
    """
    if not isinstance(folder, Path | None):
        return count
    if folder is None:
        return int(array.nchunks_initialized // (prod(array.shards or array.chunks) // prod(array.chunks)))
    names = set(names_in(folder)) - {MARKER, FILE_2, ".zattrs"}
    return len(names) if len(names) < count else sum(array.metadata.encode_chunk_key(place) in names for place in _grid(array))


def _grid(array: Any) -> product[tuple[int, ...]]:
    widths = array.shards or array.chunks
    return product(*(range(-(-size // width)) for size, width in zip(array.shape, widths, strict=True)))


def _require_whole_shards(array: Any, where: Place | str, folder: Place | None) -> None:
    """Look at the index of every shard: what zarr reads of one that lost a chunk is fill values."""
    from dfeas.data.storage.chunks import open_folder, read_index

    form = _index_form(array, where)
    if form is None:
        return
    if folder is None:
        raise BadInputError(f"{where}: sharded, and not in files: what a shard lost would be read as zeros; give its path")
    files = open_folder(folder)
    per = [shard // chunk for shard, chunk in zip(array.shards, array.chunks, strict=True)]

    def look(place: tuple[int, ...]) -> None:
        wanted = np.ones((), np.bool_)
        for at, count, width, size in zip(place, per, array.chunks, array.shape, strict=True):
            wanted = np.logical_and.outer(wanted, (at * count + np.arange(count)) * width < size)
        read_index(files, array.metadata.encode_chunk_key(place), form, wanted.reshape(-1), "the shard")

    if files.distant:
        from dfeas.data.storage.object_path import pool

        for _ in pool().map(look, _grid(array)):
            pass
    else:
        for place in _grid(array):
            look(place)


def _index_form(array: Any, where: Place | str) -> IndexForm | None:
    """How shards say where their chunks lie; None without shards. Raises BadInputError for shards that are not read."""
    from zarr.codecs import BytesCodec, Crc32cCodec, ShardingCodec

    from dfeas.data.storage.chunks import IndexForm

    outer = array.metadata.codecs
    if not any(isinstance(codec, ShardingCodec) for codec in outer):
        return None
    if len(outer) > 1:
        raise _unread(where, f"{[codec.to_dict()['name'] for codec in outer]} around them")
    if any(isinstance(codec, ShardingCodec) for codec in outer[0].codecs):
        raise _unread(where, "shards in each other")
    index, place = outer[0].index_codecs, outer[0].index_location
    kinds, endian = tuple(map(type, index)), getattr(index[0], "endian", None)
    if kinds not in ((BytesCodec,), (BytesCodec, Crc32cCodec)) or str(getattr(endian, "value", endian)) != "little":
        names = [codec.to_dict()["name"] for codec in index]
        raise _unread(where, f"an index of {names}, expected bytes and crc32c, little-endian")
    shards, chunks = tuple(array.shards), tuple(array.chunks)
    if min((*shards, *chunks)) < 1 or any(a % b for a, b in zip(shards, chunks, strict=True)):
        raise CorruptDataError(f"{where}: its zarr metadata cannot be read: chunks of {chunks} in shards of {shards}")
    count = prod(shards) // prod(chunks)
    if count > MOST_CHUNKS:
        raise BadInputError(f"{where}: {count} chunks in a shard, at most {MOST_CHUNKS}; write it with smaller shards")
    return IndexForm(count, str(getattr(place, "value", place)) == "end", len(index) == 2)


def _unread(where: Place | str, why: str) -> BadInputError:
    return BadInputError(f"{where}: its shards are not read: {why}; write it with plain shards, or none")


def slice_reader(reader: SliceReader, path: Place, array: Any) -> RowReader:
    """A reader through zarr, which sees changes of what it reads; from an object store it reads several blocks ahead."""
    if isinstance(path, Path):
        return replace(reader, files=files_of(array, reader.block_rows))
    from dfeas.data.storage.object_readers import Ahead

    return Ahead(replace(reader, reading=partial(translate_errors_at, path)))


def files_of(array: Any, block_rows: int) -> Callable[[int], list[str]] | None:
    """Paths of all chunks or shards of a block of whole chunks; None for an array that does not lie in plain files."""
    folder = _folder_of(array) if is_zarr(array) else None
    if folder is None:
        return None
    encode, chunks, shape = array.metadata.encode_chunk_key, array.shards or array.chunks, array.shape
    columns = list(product(*(range(-(-size // width)) for size, width in zip(shape[1:], chunks[1:], strict=True))))

    def names(index: int) -> list[str]:
        first, stop = index * block_rows, min((index + 1) * block_rows, shape[0])
        rows = range(first // chunks[0], -(-stop // chunks[0]))
        return [f"{folder}/{encode((row, *column))}" for row in rows for column in columns]

    return names


def rows_of_whole_chunks(array: Any, itemsize: int) -> int:
    """Rows of a block: one chunk when it is of a fair size, otherwise whole chunks up to about ``BLOCK_BYTES``."""
    n, m = array.shape
    chunk = int(array.chunks[0])
    wanted = default_block_rows(m, itemsize, n)
    if chunk * m * itemsize >= 1 << 20:
        wanted = chunk
    return int(min(n, max(chunk, wanted // chunk * chunk)))


def read_header(stream: IO[bytes], size: int, where: str) -> tuple[tuple[int, ...], np.dtype[Any], bool]:
    """Shape and type of the array in a .npy stream of ``size`` bytes, which has no Python objects, and whether it lies there
    column by column, in Fortran order. Raises CorruptDataError when it says more than these bytes can hold.
    """
    try:
        version = npy.read_magic(stream)
        reader = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = reader(stream)
        if any(isinstance(length, bool) or length < 0 for length in shape):
            raise ValueError(f"shape {shape}")
    except damage() as error:
        raise CorruptDataError(f"{where}: not a readable .npy array: {error}") from None
    if dtype.hasobject:
        raise BadInputError(f"{where}: an array of Python objects is not accepted; save numbers")
    wanted = prod(shape) * dtype.itemsize
    if wanted > size:
        raise CorruptDataError(
            f"{where}: shape {_shape_text(shape)} of {dtype} takes {wanted:.4g} bytes, the file has {size}: truncated"
        )
    return tuple(shape), dtype, fortran and len(shape) > 1


def load_npy(path: Place) -> NDArray[Any]:
    """A whole .npy file of one entry a point. Raises CorruptDataError for none, BadInputError when memory cannot hold it."""
    try:
        if isinstance(path, Path) and not path.is_file():
            raise BadInputError(f"{path}: not a file; a pipe or a device is not read")
        size = path.stat().st_size
        with path.open("rb") as file:
            shape, dtype, fortran = read_header(file, size, str(path))
            require_column(prod(shape) * dtype.itemsize, str(path))
            content = file.read(prod(shape) * dtype.itemsize)
        return np.frombuffer(content, dtype).reshape(shape, order="F" if fortran else "C").copy(order="C")
    except DfeasError:
        raise
    except damage() as error:
        raise CorruptDataError(f"{path}: not a readable .npy file: {error}") from None


def _shape_text(shape: tuple[int, ...]) -> str:
    """A shape in a message; NumPy takes 64 axes, each of any length."""
    return " x ".join(f"{length:.6g}" if length >= 10**18 else str(length) for length in shape[:4]) or "()"


def open_labels(path: Place, what: str = "labels") -> Any:
    """A label array by path, or another of rows: zarr, or .npy."""
    if not path.exists():
        raise BadInputError(f"{absent(path)} ({what})")
    if path.suffix == ".npy":
        return load_npy(path)
    if isinstance(path, Path) and path.is_file():
        raise BadInputError(f"{path}: {what} beside points are a .npy file or a zarr array; save them by numpy.save")
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
