"""Writing a dataset: threads that write block by block, surveyed on the way, complete only when the marker is there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import crc32c
import numpy as np
from numpy.typing import NDArray

from dfeas.data.labels import stored_type
from dfeas.data.storage.features import feature_name
from dfeas.data.storage.files import FULL, NAMED, PLAIN, put, put_whole
from dfeas.data.storage.layout import ATTRIBUTE, MARKER, Header, fingerprint, looks_like_dataset, seal
from dfeas.data.storage.metadata import put_array, put_group, put_whole_array
from dfeas.data.storage.places import Place, place, remove
from dfeas.data.storage.scratch import claim, discard, release
from dfeas.data.storage.shards import CRC
from dfeas.data.writers.ledger import Ledger
from dfeas.data.writers.shards import ShardWriter
from dfeas.errors import BadInputError, CorruptDataError, UsageError
from dfeas.linalg.points import Points, norms
from dfeas.passes.block import Block
from dfeas.passes.survey import NORM_RANGE, Summary, Survey, checksum, checksums


def refuse_unusable(summary: Summary, where: str, features: Sequence[str] = ()) -> None:
    """Raise BadInputError for non-finite entries and for norms that cannot be squared; ``features`` have maybe names."""
    if summary.nonfinite:
        shown = ", ".join(f"point {p} feature {feature_name(features, f)}: {v}" for p, f, v in summary.first_nonfinite)
        raise BadInputError(f"{where}: {summary.nonfinite} or more entries are not finite ({shown}); remove or correct them")
    if summary.extreme:
        shown = ", ".join(str(j) for j in summary.first_extreme)
        least, most = NORM_RANGE
        raise BadInputError(f"{where}: norms outside {least:g} .. {most:g} (point {shown}); scale the data by a power of two")


WRITERS = 2
IN_FLIGHT = 4
"""Blocks that may wait to be written."""

DISTANT_WRITERS = 12
"""Threads that write to an object store: each waits for its requests most of the time."""

Progress = Callable[[int, int], None]  # (points done, points in all, as far as is known; the same at the end only)
Labelled = tuple[Points, NDArray[Any]]
"""Points of a block, and their labels as they are stored."""

T = TypeVar("T")
R = TypeVar("R")


class Pool(Protocol):
    """Does work elsewhere, some at a time; results come in any order."""

    def __call__(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """``work(item)`` of each item; both travel."""


def fill(target: DatasetWriter, block: Callable[[int], Labelled], progress: Progress | None = None) -> None:
    """Write all blocks, each made in the writing threads."""
    tell = (lambda done: None) if progress is None else (lambda done: progress(done, target.n))
    write_blocks(target, (partial(block, index) for index in range(target.blocks)), tell)


def write_blocks(target: DatasetWriter, makers: Iterable[Callable[[], Labelled]], tell: Callable[[int], None]) -> None:
    """Write blocks that the writing threads make; ``tell`` hears how many points are written."""
    threads, most = (WRITERS, IN_FLIGHT) if isinstance(target.path, Path) else (DISTANT_WRITERS, 2 * DISTANT_WRITERS)
    waiting: deque[Future[None]] = deque()

    def wait(given: int, most: int) -> None:
        while len(waiting) > most:
            waiting.popleft().result()
            tell(min(target.n, (given - len(waiting)) * target.block_rows))

    with ThreadPoolExecutor(threads, "dfeas-write") as pool:
        given = 0
        try:
            for given, make in enumerate(makers, 1):
                waiting.append(pool.submit(lambda index, make: target.write(index, *make()), given - 1, make))
                wait(given, most)
            wait(given, 0)
        except BaseException:
            for future in waiting:
                future.cancel()
            raise


_SURVEY = Survey()
CODES = "code"
"""The array of provisional labels."""
ASIDE = "aside"
"""The folder where other processes write each file before it gets its name."""


class DatasetWriter:
    """Takes the blocks of one dataset, in any order and from several threads; ``finish`` makes it whole.

    ``features`` are their names, where the source has them: messages use them, and the header keeps them. With ``provisional``
    labels are codes, which ``relabel`` replaces when all are known. With ``shard`` so many blocks of an array lie in a file.
    """

    def __init__(
        self,
        path: Place,
        n: int,
        m: int,
        dtype: np.dtype[Any],
        block_rows: int,
        features: tuple[str, ...] = (),
        label: np.dtype[Any] | type = np.int8,
        provisional: bool = False,
        shard: int = 0,
    ) -> None:
        self.path, self.n, self.m, self.dtype, self.block_rows = path, n, m, np.dtype(dtype), block_rows
        self._features, self._shard = features, shard
        self._aside: Path | None = None
        self.where = str(path)  # how messages call it
        self.written = Ledger()
        put_group(path, {})
        self._arrays: dict[str, Any] = {}
        self._shards: dict[str, ShardWriter] = {}  # by the paths of the arrays
        self._create_points()
        self._arrays["label"] = self._created(CODES if provisional else "label", (n,), np.dtype(label), 0)
        self._arrays["norm"] = self._created("norm", (n,), np.dtype(np.float64), np.nan)

    def _create_points(self) -> None:
        fill = np.nan if self.dtype.kind == "f" else 0
        self._arrays["X"] = self._created("X", (self.n, self.m), self.dtype, fill)

    def _created(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], fill: float) -> Any:
        """An array with a chunk for each block."""
        array = put_array(self.path, name, shape, self.block_rows, dtype, fill, self._shard)
        if self._shard:
            size = self.block_rows * int(np.prod(shape[1:], dtype=np.int64)) * dtype.itemsize + CRC
            self._shards[name] = ShardWriter(self.path / name, len(shape), self._shard, size)
        return array

    @property
    def format(self) -> int:
        """Number of the format that is written."""
        return NAMED if self._features else PLAIN

    @property
    def blocks(self) -> int:
        """Number of blocks that ``n`` points make."""
        return -(-self.n // self.block_rows)

    def resize(self, n: int) -> None:
        """Make room for n points, or give back what was not used. No block is written meanwhile beyond the lesser size."""
        self.n = n
        for array in self._arrays.values():
            array.resize((n, *array.shape[1:]))

    def write(self, index: int, points: Points, label: NDArray[Any]) -> None:
        """Survey and store one whole block, or some dense ones that follow each other."""
        norm, summary = self._survey(index * self.block_rows, points, label)
        refuse_unusable(summary, self.where, self._features)
        sums = np.column_stack([summary.checksums, checksums(norm, self.block_rows)])
        self.written.note(index, summary, sums)
        self._store_points(index, points, sums[:, 0])
        self._store_all(self._arrays["label"], index, label, sums[:, 1])
        self._store_all(self._arrays["norm"], index, norm, sums[:, 2])

    def _survey(self, start: int, points: Points, label: NDArray[Any]) -> tuple[NDArray[np.float64], Summary]:
        """Norms (b,) of a block, and what is wrong with it."""
        norm = norms(points)
        return norm, _SURVEY.scan(replace(Block.of(start, points, label, norm), chunk_rows=self.block_rows))

    def for_worker(self) -> Self:
        """The same, to write some of the blocks in another process. It puts files in their places whole: one that was taken for
        dead, or whose result was lost, may be stopped while it writes what somebody else has written already.
        """
        assert isinstance(self.path, Path), "many processes write to a folder"
        other = copy(self)
        other._aside = self.path / ASIDE
        other._aside.mkdir(exist_ok=True)
        other._shards = {name: each.beginning_in(other._aside) for name, each in self._shards.items()}
        other.written = Ledger()
        return other

    def _store_points(self, index: int, points: Any, sums: NDArray[np.uint32]) -> None:
        self._store_all(self._arrays["X"], index, points, sums)

    def _rows(self, index: int) -> slice:
        return slice(index * self.block_rows, min(self.n, (index + 1) * self.block_rows))

    def _store_all(self, array: Any, index: int, values: NDArray[Any], sums: NDArray[np.uint32]) -> None:
        """Write chunks that follow each other: those of a shard at once."""
        full = len(values) // self.block_rows
        if full < 2 or array.path not in self._shards:
            full = 0
        else:
            entries = np.ascontiguousarray(values[: full * self.block_rows]).view(np.uint8).reshape(full, -1)
            trailers = sums[:full, None].astype("<u4").view(np.uint8)
            self._shards[array.path].put_all(index, np.hstack([entries, trailers]))
        for number in range(full, len(sums)):
            rows = slice(number * self.block_rows, (number + 1) * self.block_rows)
            self._store(array, index + number, values[rows], int(sums[number]))

    def _store(self, array: Any, index: int, values: NDArray[Any], crc: int) -> None:
        """Write one chunk: its entries, fill values behind a short one, and the checksum, which is known of the entries."""
        parts: list[Any] = [np.ascontiguousarray(values).data]
        if len(values) < self.block_rows:
            rest = np.full((self.block_rows - len(values), *values.shape[1:]), array.fill_value, array.dtype)
            parts.append(rest.data)
            crc = crc32c.crc32c(rest.reshape(-1).view(np.uint8), crc)
        parts.append(crc.to_bytes(CRC, "little"))
        if array.path in self._shards:
            self._shards[array.path].put(index, *parts)
            return
        key = array.metadata.encode_chunk_key((index, *(0,) * (values.ndim - 1)))
        put(self.path / array.path / key, *parts, aside=self._aside)

    def end_shards(self) -> None:
        """Make files of the shards that have begun, also of those that are not full; no block is written meanwhile."""
        for each in self._shards.values():
            each.finish()

    def relabel(self, table: Callable[[int], NDArray[Any]]) -> None:
        """Write the labels ``table(block)[code]`` of all provisional codes: at the end it is known which classes there are."""
        codes = self._arrays["label"]
        if CODES in self._shards:
            self._shards.pop(CODES).finish()
        self._arrays["label"] = self._created("label", (self.n,), table(0).dtype, 0)
        for index in range(self.blocks):
            label = table(index)[np.asarray(codes[self._rows(index)])]
            crc = checksum(label)
            self._store(self._arrays["label"], index, label, crc)
            self.written.relabel(index, int((label > 0).sum()), crc)
        remove(self.path / CODES)

    def _counts(self, classes: int) -> tuple[int, ...]:
        """Points of each class, from labels that are codes."""
        total = np.zeros(classes, np.int64)
        for index in range(self.blocks):
            total += np.bincount(np.asarray(self._arrays["label"][self._rows(index)]), minlength=classes)
        return tuple(total.tolist())

    def checksums(self) -> NDArray[np.uint32]:
        """crc32c (blocks, 3) of points, labels and norms of each block."""
        return self.written.checksums(self.blocks)

    def finish(self, classes: tuple[str, ...], generator: dict[str, Any] | None = None) -> Header:
        """Write checksums, header and marker. Raises CorruptDataError when a block was never written."""
        missing, coded = self.written.missing(self.blocks), len(classes) > 2
        if missing:
            raise CorruptDataError(f"{self.path}: {missing} blocks were never written")
        more = self._finish_points()
        self.end_shards()
        facts = self.written.facts(self.blocks)
        if classes:
            self._require_classes(classes, facts["positive"])
        checksums = self.checksums()
        mark = fingerprint(self.n, self.m, self.dtype.name, self.block_rows, checksums, classes)
        put_whole_array(self.path, "checksum", checksums)
        header = Header(
            format=self.format,
            n=self.n,
            m=self.m,
            dtype=self.dtype.name,
            block_rows=self.block_rows,
            classes=classes,
            **{**facts, "positive": 0 if coded else facts["positive"]},
            fingerprint=mark,
            generator=generator,
            counts=self._counts(len(classes)) if coded else (),
            features=self._features,
            **more,
        )
        put_group(self.path, {ATTRIBUTE: header.to_json()})
        put_whole(self.path / MARKER, f"{seal(header)}\n".encode())
        return header

    def _require_classes(self, classes: tuple[str, ...], positive: int) -> None:
        """Raise BadInputError for labels of another type than these classes have, and where all are of one of two."""
        dtype, expected = self._arrays["label"].dtype, stored_type(classes)
        if dtype != expected:
            raise BadInputError(f"{self.where}: labels of {len(classes)} classes are of type {dtype}, expected {expected}")
        if len(classes) == 2 and positive in (0, self.n):
            raise BadInputError(f"{self.where}: all {self.n} labels are the same; two classes are needed")

    def _finish_points(self) -> dict[str, Any]:
        """What else the header says of X."""
        return {}


@contextmanager
def output_place(where: str | Place) -> Iterator[Place]:
    """Make the dataset's folder, hold its lock, and remove everything again when the body raises.

    A folder that an interrupted ingest left is started afresh. Raises UsageError when the path exists already or another
    process writes there.
    """
    path = place(where)
    if not isinstance(path, Path):
        from dfeas.data.storage.object_lock import output_lock

        with output_lock(path, MARKER):
            yield path
        return
    outer = next((each for each in path.absolute().parents if looks_like_dataset(each)), None)
    if outer is not None:
        raise UsageError(f"{path}: lies in the dataset {outer}; choose an output that is apart from it")
    lock = claim(path, MARKER)
    try:
        yield path
    except BaseException as error:
        discard(path, lock)
        if isinstance(error, OSError) and error.errno in FULL:
            raise CorruptDataError(f"{path}: the disk is full, nothing was kept; free space and run again") from None
        raise
    release(path, lock)
