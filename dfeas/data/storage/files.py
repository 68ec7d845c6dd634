"""Files: the format of each kind, put in their place whole or not at all, JSON that somebody wrote, links out of a folder.

A number grows when an older dfeas would misread the file; a key more does not need that. Datasets and certificates are written
in format 2 only where they have names of features, in format 1 without; datasets of sparse cones in format 3, those with ids in
format 4. A file without a number is of format 0: of before there were numbers, which dfeas reads, too. Scores, dual variables
and pages are for others to read, and have none.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import struct
import tokenize
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from msgspec import Struct

from dfeas import __version__
from dfeas.data.storage.patience import AWAY, once_more
from dfeas.errors import (
    BadInputError,
    CorruptDataError,
    DfeasError,
    NewerFormatError,
    StorageAwayError,
    UsageError,
    format_bytes,
)

if TYPE_CHECKING:
    from dfeas.data.storage.places import Place

MARKER = "zarr.json"
"""Of an array or a group; what a dataset has that is finished."""
KEY = "format"
"""Of a number in a file, whatever its kind."""
DATASET = 4
CERTIFICATE = 2
RESULT = 1
RACE = 1
HARD_MARGIN = 2
SEPARATION = 1
SUSPECTS = 1
TRACE = 1
CHECKPOINT = 1
NAMED, PLAIN = 2, 1
"""Formats of datasets and certificates with names of features, which an older dfeas would not compare, and without."""
SPARSE_CONES = 3
"""Format of datasets of cones whose rows are sparse: before there were any, such a header was taken for that of points."""
WITH_IDS = 4
"""Format of datasets whose points have ids, of which an older dfeas does not know."""


def require_readable(where: object, number: Any, newest: int) -> None:
    """Raise NewerFormatError when a file is of a format that this dfeas does not know, CorruptDataError when it says none."""
    if type(number) is not int or number < 0:
        raise CorruptDataError(f"{where}: damaged: its format is {number!r:.40}, expected a whole number")
    if number > newest:
        raise NewerFormatError(
            f"{where}: written in format {number} by a newer dfeas; this dfeas {__version__} reads formats up to {newest}: "
            "upgrade dfeas"
        )


# errors of zarr and UnicodeErrors are ValueErrors, RecursionError is a RuntimeError, OverflowError and ZeroDivisionError are
# ArithmeticErrors
_DAMAGE = (
    struct.error,
    tokenize.TokenError,
    ArithmeticError,
    ExceptionGroup,  # of tasks of zarr
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)


def damage(*more: type[Exception]) -> tuple[type[Exception], ...]:
    """What libraries raise of a damaged file, and others."""
    import zlib
    from zipfile import BadZipFile

    return (*more, BadZipFile, zlib.error, *_DAMAGE)


@contextmanager
def damage_becomes(where: object, what: str) -> Iterator[None]:
    """Raise CorruptDataError, which says ``what``, for all that a library raises of a damaged file."""
    try:
        yield
    except DfeasError:
        raise
    except damage() as error:
        if isinstance(error, OSError) and error.errno is not None:  # libraries set none for what they do not understand
            raise refused_by_system(where, error) from None
        raise CorruptDataError(f"{where}: {what}: {str(error)[:200]}") from None


def refused_by_system(where: object, error: OSError) -> CorruptDataError | StorageAwayError:
    """For a file that is not there, may not be read or does not come: nobody knows that it is damaged."""
    if error.errno in AWAY:
        return StorageAwayError(f"{where}: the file system does not answer ({error.strerror})")
    reason = str(error) if error.errno is None else os.strerror(error.errno)  # pyarrow says more, with the path
    return CorruptDataError(f"{where}: {reason}{'; free space and run again' * (error.errno in FULL)}")


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of storage that has no room left."""


@contextmanager
def atomic_write(path: Place) -> Iterator[BinaryIO]:
    """A file to write; afterwards fsync, rename, fsync the folder: readers see the old file or the new one, never a part. An
    object is written to a temporary file first.
    """
    import tempfile

    if not isinstance(path, Path):
        with tempfile.NamedTemporaryFile() as content:
            with Path(content.name).open("wb") as file:
                yield file
            path.write_bytes(Path(content.name))
        return
    if path.is_dir():
        raise UsageError(f"{path}: a folder; give the name of a file")
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with name_in_errors(path), part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync(path.parent)


@contextmanager
def name_in_errors(path: Path) -> Iterator[None]:
    """An error of the system that does not say where says that it is here: a full disk is noticed without a name."""
    try:
        yield
    except DfeasError:
        raise
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise


def write_parts(file: BinaryIO, parts: Iterable[Any]) -> None:
    """Write buffers one after the other."""
    # one call writes no more: for more the kernel asks for runs of pages of 2 MB, which a virtual machine may have to get
    # from its host first, 4 s a GiB; small ones are those that were used a moment ago
    written_bytes = 128 << 10
    for part in parts:
        entries = memoryview(part)
        for first in range(0, entries.nbytes, written_bytes):
            file.write(entries.cast("B")[first : first + written_bytes])


def put(where: Place, *parts: Any, aside: Path | None = None) -> None:
    """Write a file that is the parts one after the other. On this machine it may be seen half-written, unless that happens in a
    folder ``aside`` of the same disk.
    """
    if not isinstance(where, Path):
        where.write_bytes(b"".join(parts))
        return
    first = where if aside is None else aside / uuid.uuid4().hex
    with name_in_errors(where), first.open("wb") as file:
        write_parts(file, parts)
    if aside is not None:
        first.replace(where)


def sync(where: Path) -> None:
    """What was written to a file, or renamed in a folder, stays so, also when the power fails."""
    descriptor = os.open(where, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


LOCK = "dfeas.lock"
"""The file that whoever writes a folder holds. filelock would empty, make and remove it: here it marks what is not finished."""


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Lock an open file until it is closed or its process ends; whether no other open file holds its lock."""
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def hold_file(path: Path) -> int | None:
    """The descriptor that holds the lock of a file, made where there is none; None where another one has the lock, or has given
    it back meanwhile, and the name with it.
    """
    with ExitStack() as stack:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        stack.callback(os.close, lock)
        with suppress(FileNotFoundError):
            if try_lock(lock) and os.path.samestat(os.fstat(lock), path.stat()):
                stack.pop_all()
                return lock
    return None


MOST_BYTES = 256 << 20
"""Of a file: parsed it takes about ten times as much. A result with a million conflicts has 100 MB."""


class Number(Struct, frozen=True):
    """A finite number in a range, or None where there may be none."""

    low: float = -(2.0**63)
    high: float = 2.0**63
    whole: bool = False
    none: bool = False

    def takes(self, value: Any) -> bool:
        if value is None:
            return self.none
        kinds = (int,) if self.whole else (int, float)
        return type(value) in kinds and self.low <= value <= self.high and (isinstance(value, int) or isfinite(value))

    def __str__(self) -> str:
        return f"a {'whole ' if self.whole else ''}number from {self.low:g} to {self.high:g}{' or null' if self.none else ''}"


COUNT: Number = Number(0, whole=True)


def write_json(path: Place, values: dict[str, Any], number: int) -> None:
    """Write a file of ours, of a format, whole or not at all."""
    with atomic_write(path) as file:
        file.write((json.dumps({KEY: number, **values}, indent=2) + "\n").encode())


def read_json(path: Place, shape: Any = object, what: str = "JSON file", newest: int | None = None) -> Any:
    """What a file says; messages call it ``what``; one of ours is of the ``newest`` format at most. Raises CorruptDataError
    with its name when it is no JSON of this shape, NewerFormatError for a newer format of any shape.
    """

    def read() -> Any:
        try:
            value = parse_json(read_whole(path))
            if newest is not None and isinstance(value, dict):
                require_readable(path, value.get(KEY, 0), newest)
            conform(value, shape)
            return value
        except DfeasError:
            raise
        except (OSError, ValueError) as error:
            raise CorruptDataError(f"{path}: not a readable {what}: {error}") from None

    return once_more(read, not isinstance(path, Path))


def read_whole(path: Place) -> bytes:
    """Contents of a small file. Raises OSError when it is not there, ValueError when it is no file, or a large one."""
    if not isinstance(path, Path):
        return path.read_bytes(MOST_BYTES)
    size = path.stat().st_size
    if not path.is_file():
        raise ValueError("not a file")
    if size > MOST_BYTES:
        raise ValueError(f"{format_bytes(size)}, at most {format_bytes(MOST_BYTES)} are read")
    return path.read_bytes()


def parse_json(text: str | bytes, shape: Any = object) -> Any:
    """What a text says. Raises ValueError when it is no JSON of this shape."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    _require_flat(value)
    conform(value, shape)
    return value


def conform(value: Any, shape: Any, at: str = "it") -> None:
    """Raise ValueError, with the place, unless a value is of a shape.

    A shape is a type or a union of types (a bool is no number), ``Number`` for a range, ``[shape]`` for a list of such, ``{str:
    shape}`` for any keys, and ``{"key": shape}`` for these keys among others; ``"key?"`` may be missing.
    """
    if isinstance(shape, Number):
        good, expected = shape.takes(value), str(shape)
    elif isinstance(shape, dict | list):
        kind = type(shape)
        good, expected = isinstance(value, kind), "an object" if kind is dict else "a list"
    else:
        members = getattr(shape, "__args__", (shape,))  # of a union, or the one type
        good = isinstance(value, shape) and (not isinstance(value, bool) or bool in members or shape is object)
        expected = getattr(shape, "__name__", str(shape))
    if not good:
        raise ValueError(f"{at} is {_quote(value)}, expected {expected}")
    if isinstance(shape, list):
        for place, entry in enumerate(value):
            conform(entry, shape[0], f"{at}[{place}]")
    elif isinstance(shape, dict) and str in shape:
        for name, entry in value.items():
            conform(entry, shape[str], f"{at}.{name}")
    elif isinstance(shape, dict):
        for name, inner in shape.items():
            key = name.removesuffix("?")
            if key in value:
                conform(value[key], inner, key if at == "it" else f"{at}.{key}")
            elif key == name:
                raise ValueError(f"{key} is missing")


def _require_flat(value: Any) -> None:
    """Raise ValueError for a value that is nested too deeply for whoever walks it."""
    level = [value]
    most_depth = 32  # of lists and objects in each other; ours have five
    for _ in range(most_depth):
        held = [each for each in level if isinstance(each, dict | list)]
        if not held:
            return
        level = [entry for each in held for entry in (each.values() if isinstance(each, dict) else each)]
    if any(isinstance(each, dict | list) for each in level):
        raise ValueError(f"nested deeper than {most_depth}")


def _quote(value: Any) -> str:
    text = repr(value) if not isinstance(value, dict | list) else f"a {type(value).__name__}"
    return text if len(text) <= 40 else f"{text[:40]}..."


def refuse_links(folder: Path) -> None:
    """Raise BadInputError when something below a folder, which may be a link, is a link to a place outside, or no file.

    Pipes and devices are refused, too: whoever opens one waits for ever, or reads without an end.
    """
    root = os.path.realpath(folder)
    waiting = [str(folder)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    continue
                if entry.is_symlink():
                    _refuse(entry.path, root)
                elif entry.is_dir():
                    waiting.append(entry.path)
                else:
                    raise BadInputError(f"{entry.path}: a pipe or a device, expected a file; copy the data as plain files")


def _refuse(path: str, root: str) -> None:
    target = os.path.realpath(path)
    if target != root and not target.startswith(os.path.join(root, "")):
        raise BadInputError(f"{path}: a link to {target}, outside of the data; copy the data with its links followed (cp -rL)")
