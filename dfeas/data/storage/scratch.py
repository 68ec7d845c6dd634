"""Vectors that are longer than memory should hold: on scratch storage, spooled to files and mapped from them, gone through
piece by piece, and numbers of points as bits.

A mapped vector is an array like any other, but what is touched of it stays in memory until somebody lets it go: ``part`` does,
and ``pieces``, which are the same of mapped vectors and of others, so that sums over them have the same bits.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from mmap import ACCESS_READ, MADV_DONTNEED, mmap
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from fastcrc.crc32 import iscsi as crc32c
from msgspec import Struct
from numpy.typing import NDArray

from dfeas.errors import CorruptDataError, spell

if TYPE_CHECKING:
    from dfeas.data.storage.object_path import ObjectPath

WIDTH = 8
"""Bytes of an entry of a vector."""
CHUNK = 16 << 20
"""Bytes that are read at a time."""


class Seal(Struct, frozen=True):
    """By which a vector is known again."""

    size: int  # bytes
    crc: int  # crc32c


class Scratch(Struct, frozen=True):
    """A folder of n-vectors, of which processes may write ranges at once. Raises CorruptDataError when storage fails."""

    at: str | Path

    @property
    def folder(self) -> Path:
        return Path(self.at)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.f64"

    def write(self, name: str, first: int, values: NDArray[np.float64]) -> None:
        """Entries first, first + 1, .. of a vector."""
        try:
            self.folder.mkdir(exist_ok=True)
            descriptor = os.open(self._path(name), os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                os.lseek(descriptor, first * WIDTH, os.SEEK_SET)
                data, done = np.ascontiguousarray(values, np.float64).data.cast("B"), 0
                while done < len(data):
                    done += os.write(descriptor, data[done:])
            finally:
                os.close(descriptor)
        except OSError as error:
            raise CorruptDataError(
                f"{self._path(name)}: cannot be written: {error.strerror}; choose {spell('out')} where there is room"
            ) from None

    def read(self, name: str, rows: range) -> NDArray[np.float64]:
        """Some consecutive entries. Raises CorruptDataError when they were never written, or cannot be seen from here."""
        values = np.fromfile(self._path(name), np.float64, len(rows), offset=rows.start * WIDTH) if self.has(name) else ()
        if len(values) < len(rows):
            raise CorruptDataError(
                f"{self._path(name)}: entries {rows.start} .. {rows.stop - 1} are missing; "
                f"all workers must see this folder: choose {spell('out')} on storage that they share"
            )
        return np.asarray(values)

    def has(self, name: str) -> bool:
        return self._path(name).is_file()

    def keep(self, names: Collection[str]) -> None:
        """These, of all whose names begin alike, up to the last full stop: others are somebody else's."""
        owners = {name.rpartition(".")[0] for name in names}
        for name in self.names:
            if name not in names and name.rpartition(".")[0] in owners:
                self._path(name).unlink()

    @property
    def names(self) -> list[str]:
        return sorted(path.name.removesuffix(".f64") for path in self.folder.glob("*.f64"))

    def mark(self, name: str) -> tuple[int, int]:
        """Which file a vector is, and when it was written last."""
        status = self._path(name).stat()
        return status.st_ino, status.st_mtime_ns

    def seal(self, name: str) -> Seal:
        """Of a whole vector. Raises CorruptDataError when it cannot be read."""
        path, crc = self._path(name), 0
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                while chunk := file.read(CHUNK):
                    crc = crc32c(chunk, crc)
        except OSError as error:
            raise CorruptDataError(f"{path}: {error.strerror}") from None
        return Seal(status.st_size, crc)

    def take(self, other: Scratch) -> None:
        """Give all vectors of another folder a second name here, or copy them where storage has no second names. They are on
        the disk afterwards, also when the power fails.
        """
        import shutil

        for path in sorted(other.folder.glob("*.f64")):
            self.folder.mkdir(exist_ok=True)
            try:
                with path.open("rb") as file:
                    os.fsync(file.fileno())
                try:
                    os.link(path, self.folder / path.name)
                except OSError:
                    shutil.copyfile(path, self.folder / path.name)
            except OSError as error:
                raise CorruptDataError(f"{path}: scratch storage cannot be kept: {error.strerror}") from None

    def upload(self, folder: ObjectPath) -> None:
        for name in self.names:
            (folder / name).write_bytes(self._path(name))

    def download(self, folder: ObjectPath) -> None:
        """Have the vectors that are in an object store, and no others. Raises CorruptDataError when they cannot be written."""
        import shutil

        self.remove()
        for each in folder.rglob("*"):
            self.folder.mkdir(exist_ok=True)
            with each.open() as source, self._path(each.name).open("wb") as file:
                shutil.copyfileobj(source, file, CHUNK)

    def remove(self) -> None:
        if os.path.lexists(self.at):
            import shutil

            shutil.rmtree(self.at, ignore_errors=True)


PIECE = 1 << 20
"""Entries that are taken at a time."""
RUN = 1 << 16
"""Points whose bits are looked at in one go; a multiple of 8."""


def map_vector(file: IO[bytes], dtype: np.dtype[Any], count: int, offset: int = 0) -> NDArray[Any]:
    """Entries of an open file from a byte on, read when they are used. Raises ValueError when there are not so many."""
    if not count:
        return np.empty(0, dtype)
    return np.ndarray(count, dtype, mmap(file.fileno(), offset + count * dtype.itemsize, access=ACCESS_READ), offset)


def is_mapped(values: NDArray[Any]) -> bool:
    """Whether a vector is in a file."""
    return isinstance(values.base, mmap)


def part(values: NDArray[Any], first: int, stop: int) -> NDArray[Any]:
    """Some entries. Those of a mapped vector are copied, and the memory that the mapping took is given back."""
    if not isinstance(values.base, mmap):
        return values[first:stop]
    copied = np.array(values[first:stop])
    values.base.madvise(MADV_DONTNEED)  # the file has them still
    return copied


def pieces(*vectors: NDArray[Any]) -> Iterator[tuple[NDArray[Any], ...]]:
    """Consecutive entries of vectors of one length, at most ``PIECE`` of each at a time."""
    for first in range(0, len(vectors[0]), PIECE):
        yield tuple(part(values, first, first + PIECE) for values in vectors)


def total(values: NDArray[np.float64]) -> float:
    """The sum of all entries."""
    return sum(float(piece.sum()) for (piece,) in pieces(values))


def spool(parts: Iterable[Sequence[NDArray[Any]]], dtypes: Sequence[Any], folder: Path) -> list[NDArray[Any]]:
    """Vectors of which consecutive parts come, mapped from files in a folder that have no name: they are gone when nobody uses
    them. Raises CorruptDataError when storage fails.
    """
    import tempfile

    try:
        with ExitStack() as stack:
            files = [stack.enter_context(tempfile.TemporaryFile(dir=folder)) for _ in dtypes]
            counts = [0] * len(files)
            for vectors in parts:
                for place, values in enumerate(vectors):
                    files[place].write(np.ascontiguousarray(values, dtypes[place]).data)
                    counts[place] += len(values)
            for file in files:
                file.flush()
            return [map_vector(*each) for each in zip(files, map(np.dtype, dtypes), counts, strict=True)]
    except OSError as error:
        raise CorruptDataError(
            f"{folder}: weights of points cannot be written: {error.strerror}; choose {spell('out')} where there is room"
        ) from None


class Picks(Struct, frozen=True, eq=False):
    """Ascending numbers of picked points, as an array (s,) of them: a bit for each point, where a number would take 8 bytes."""

    bits: NDArray[np.uint8]  # of all points, eight in a byte
    starts: NDArray[np.int64]  # (runs + 1,) picks before each run

    @classmethod
    def of(cls, some: NDArray[np.bool_]) -> Picks:
        """Those for which ``some`` (n,) is true."""
        counts = [np.count_nonzero(some[first : first + RUN]) for first in range(0, len(some), RUN)]
        return cls(np.packbits(some), np.cumsum([0, *counts]))

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def nbytes(self) -> int:
        return self.bits.nbytes + self.starts.nbytes

    def __getitem__(self, places: Any) -> NDArray[np.int64]:
        """Numbers of the picks at one place, some, or a slice of them; places count from 0."""
        wanted = np.arange(*places.indices(len(self))) if isinstance(places, slice) else np.asarray(places)
        run, found = np.searchsorted(self.starts, wanted, "right") - 1, np.empty(wanted.shape, np.int64)
        order = np.argsort(run, axis=None, kind="stable")
        for some in np.split(order, np.flatnonzero(np.diff(run.flat[order])) + 1):
            if len(some):
                there = int(run.flat[some[0]])
                bits = np.unpackbits(self.bits[there * RUN // 8 : (there + 1) * RUN // 8])
                found.flat[some] = np.flatnonzero(bits)[wanted.flat[some] - self.starts[there]] + there * RUN
        return found
