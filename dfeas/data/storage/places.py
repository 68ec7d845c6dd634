"""Where data is, a path of this machine or the URL of an object store, and how large one row, chunk or label of it may be.

A file of some bytes can declare any size. What is read block by block needs no limit; each of these needs room for one piece, a
few copies of it, and as much for each thread, beside the 2 GB that a command takes by default.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from dfeas.data.storage.patience import once_more
from dfeas.errors import BadInputError, CorruptDataError, UsageError, brief, format_bytes, install, spell
from dfeas.settings import SCHEMES

if TYPE_CHECKING:
    from dfeas.data.storage.object_path import ObjectPath

R = TypeVar("R")

CHUNK_BYTES = 1 << 30
"""Of a chunk of zarr or HDF5, which is unpacked as a whole."""


def require_width(m: int, itemsize: int, where: str, sparse: bool = False) -> None:
    """Raise BadInputError for points that are too wide to be read one by one."""
    most_features = 100_000_000  # a vector of float64 for a product, and one more in a thread beside, are 0.8 GB each
    if sparse and m > most_features:
        raise BadInputError(
            f"{where}: {m} features, at most {most_features} are taken of sparse points; number them without gaps"
        )
    row_bytes = 64 << 20  # a block holds one at least, which is read, cast, surveyed and written, by several threads
    if not sparse and m * itemsize > row_bytes:
        raise BadInputError(
            f"{where}: a point of {m} features takes {format_bytes(m * itemsize)}, at most {format_bytes(row_bytes)} are "
            "taken; store the points sparse, or fewer features"
        )


def require_columns(count: int, where: str) -> None:
    """Raise BadInputError for a line of text of too many cells."""
    most_columns = 1_000_000  # a line becomes a list of cells, of about 100 bytes each, in each thread that parses
    if count > most_columns:
        raise BadInputError(
            f"{where}: {count} cells, at most {most_columns} are taken of text; save the points as .npy or svmlight"
        )


def require_chunks(chunks: tuple[int, ...], itemsize: int, where: str) -> None:
    """Raise BadInputError for chunks that are too large to be unpacked."""
    size = prod(chunks) * itemsize
    if size > CHUNK_BYTES:
        raise BadInputError(
            f"{where}: chunks of {format_bytes(size)}, at most {format_bytes(CHUNK_BYTES)} are taken; write it in smaller ones"
        )


def require_entries(count: int, itemsize: int, where: str) -> None:
    """Raise BadInputError for sparse rows that are read together and hold so many entries."""
    if count * (itemsize + 8) > CHUNK_BYTES:
        raise BadInputError(
            f"{where}: a few rows hold {count} entries, at most {CHUNK_BYTES // (itemsize + 8)} are taken at once"
        )


def require_column(size: int, where: str) -> None:
    """Raise BadInputError for an array (n,) of so many bytes that is read as a whole."""
    label_bytes = 1 << 30  # a billion points, at one byte each
    if size > label_bytes:
        raise BadInputError(
            f"{where}: {format_bytes(size)} of labels or row ends, which are read as a whole, at most "
            f"{format_bytes(label_bytes)} are taken; store them in a narrower type"
        )


def require_short(length: int, where: str) -> None:
    """Raise BadInputError for a label of so many characters."""
    label_length = 1000  # the name of a class is in every header and message
    if length > label_length:
        raise BadInputError(
            f"{where}: a label of {length} characters, at most {label_length} are taken; is this the label array?"
        )


Place: TypeAlias = "Path | ObjectPath"


def is_url(text: object) -> bool:
    """Whether something names a place by URL."""
    return isinstance(text, str) and "://" in text


def place(where: str | Path | ObjectPath) -> Place:
    """The place that a text names. Raises UsageError for a URL of another kind, and when obstore is not installed."""
    if not is_url(where):
        if not isinstance(where, str) and not hasattr(where, "absolute"):
            raise UsageError(f"{type(where).__name__}: expected a path")
        return where if not isinstance(where, str) else _path(where)
    try:
        from dfeas.data.storage.object_path import ObjectPath
    except ImportError:
        text = f"object stores are read by obstore and boto3, which are not installed: {install('object-stores')}"
        raise UsageError(text) from None
    return ObjectPath.of(str(where))


def local(where: str | Path, name: str) -> Path:
    """A path of this machine. Raises UsageError for a URL."""
    if is_url(where):
        raise UsageError(f"{spell(name)} {where}: give a path of this machine; only data and runs may lie in object stores")
    return _path(where)


def _path(where: str | Path) -> Path:
    """Raises UsageError for text that no file can be called by."""
    path = Path(where)
    if "\0" in str(path) or any(len(part.encode(errors="replace")) > 255 for part in path.parts):  # bytes of a name, at most
        raise UsageError(f"{brief(str(path), 60)}: no file can be called that; expected a path")
    return path


def absolute(where: str | Path | ObjectPath) -> str:
    """The same place from any folder."""
    return str(place(where).absolute())


def paths_of(given: Any, what: str) -> tuple[str | Path, ...]:
    """One path, or several. Raises UsageError for anything else."""
    one = isinstance(given, str | Path) or not isinstance(given, Iterable) or getattr(given, "shape", None) == ()
    several: tuple[Any, ...] = (given,) if one else tuple(given)
    for each in several:
        if not isinstance(each, str | Path):
            raise UsageError(f"{what}: expected a path or several, got {type(each).__name__}")
    return several


def require_folder(path: Place) -> None:
    """Raise BadInputError where there is no folder for an output of this machine."""
    if isinstance(path, Path) and not path.parent.is_dir():
        raise BadInputError(f"{path.parent}: no such folder; make it, or choose another output")


def require_apart(out: str | Path | ObjectPath, *data: object) -> None:
    """Raise UsageError when what is written would be, or lie in, data by path, or data in it: one would be removed with the
    other. An array that NumPy maps lies in its file.
    """
    for each in (getattr(each, "filename", each) for each in data):
        if isinstance(each, str | Path):
            inner, outer = _real(out), _real(each)
            if inner.startswith(outer) or outer.startswith(inner):
                how = "it is the data" if inner == outer else f"lies in {each} or around it"
                raise UsageError(f"{out}: {how}; choose an output that is apart from the data")


def _real(where: str | Path | ObjectPath) -> str:
    """What the names of all begin with that is in a folder, however it is spelled; links are followed."""
    if not is_url(str(where)):
        return os.path.normcase(os.path.join(os.path.realpath(_path(str(where))), ""))
    scheme, _, rest = str(where).partition("://")
    bucket, _, key = rest.partition("/")
    return posixpath.join(f"{SCHEMES.get(scheme, scheme)}://{bucket.partition('@')[0]}{posixpath.normpath(f'/./{key}')}", "")


METADATA = ("zarr.json", ".zarray", ".zattrs", ".zgroup")
"""Objects that an array of zarr may be without."""


def zarr_store(where: Place, read_only: bool = True) -> Any:
    """A folder as zarr sees it."""
    import zarr

    if isinstance(where, Path):
        # absolute: zarr takes the store's path out of keys wherever it stands in them, and `data` stands in X/data
        return zarr.storage.LocalStore(where.absolute(), read_only=read_only)
    if not read_only:
        return zarr.storage.ObjectStore(where.below)

    class Whole(zarr.storage.ObjectStore[Any]):
        """A store that says when a chunk is missing, which would be read as fill values."""

        async def get(self, key: str, *args: Any, **options: Any) -> Any:
            found = await super().get(key, *args, **options)
            if found is None and not key.endswith(METADATA):
                raise CorruptDataError(
                    f"{where}/{key}: the chunk is missing; restore it (or, if it is meant to be empty, write it)"
                )
            return found

    return Whole(where.below, read_only=True)


def translate_errors_at(where: Place | None) -> AbstractContextManager[None]:
    """What an object store raises becomes one of our errors."""
    if where is None or isinstance(where, Path):
        return nullcontext()
    from dfeas.data.storage.object_store import translate_errors

    return translate_errors(where)


def ask_at(where: Place, request: Callable[[], R]) -> R:
    """What a request to a place returns, which is made again while an object store is away, and once when it came damaged."""
    if isinstance(where, Path):
        return request()
    from dfeas.data.storage.object_path import ask

    return once_more(lambda: ask(where, request))


def seekable(where: Place) -> Any:
    """What libraries that read here and there open: a path, or an open file, which goes with its last user."""
    return where if isinstance(where, Path) else where.open("rb")


def names_in(folder: Place) -> Iterator[str]:
    """Names, from a folder on, of all files in it, or of all objects below a key."""
    if not isinstance(folder, Path):
        yield from (each["path"][len(folder.key) + 1 :] for each in folder.objects())
        return
    for root, _, names in os.walk(folder):
        within = root[len(str(folder)) + 1 :]
        yield from (f"{within}/{name}" for name in names) if within else names


def remove(folder: Place) -> None:
    """Remove a folder and all that is in it, in an object store from its end on."""
    if isinstance(folder, Path):
        import shutil

        shutil.rmtree(folder)
        return
    for each in reversed(list(folder.rglob("*"))):
        each.unlink(missing_ok=True)
