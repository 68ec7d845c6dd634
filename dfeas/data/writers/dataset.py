"""Writing a dataset: threads that write block by block, surveyed on the way, complete only when the marker is there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import crc32c
import numpy as np
import zarr
import zarr.codecs
from numpy.typing import NDArray

from dfeas.data.labels import stored_type
from dfeas.data.storage import formats
from dfeas.data.storage.layout import ATTRIBUTE, MARKER, Header, fingerprint, seal
from dfeas.data.storage.places import Place, put, put_whole, remove, zarr_store
from dfeas.errors import BadInputError, CorruptDataError
from dfeas.linalg.points import Points, norms
from dfeas.passes.block import Block
from dfeas.passes.survey import EMPTY, NORM_RANGE, Summary, Survey, checksum


def refuse_unusable(summary: Summary, where: str, names: Sequence[str] | None = None) -> None:
    """Raise BadInputError for non-finite entries and for norms that cannot be squared."""
    if summary.nonfinite:
        shown = ", ".join(f"point {p} feature {names[f] if names else f}: {v}" for p, f, v in summary.first_nonfinite)
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


@dataclass(frozen=True)
class Written:
    """What is known of some blocks that were written."""

    summaries: dict[int, Summary]
    checksums: dict[int, tuple[int, int, int]]  # of points, labels and norms
    entries: dict[int, int] = field(default_factory=dict)  # of sparse blocks


class DatasetWriter:
    """Takes the blocks of one dataset, in any order and from several threads; ``finish`` makes it whole.

    ``names`` are those of the features, where the source has them: messages use them. With ``provisional`` labels are codes,
    which ``relabel`` replaces when all are known.
    """

    def __init__(
        self,
        path: Place,
        n: int,
        m: int,
        dtype: np.dtype[Any],
        block_rows: int,
        names: Sequence[str] | None = None,
        label: np.dtype[Any] | type = np.int8,
        provisional: bool = False,
    ) -> None:
        self.path, self.n, self.m, self.dtype, self.block_rows = path, n, m, np.dtype(dtype), block_rows
        self._names = names
        self._aside: Path | None = None
        self.where = str(path)  # how messages call it
        self._summaries: dict[int, Summary] = {}
        self._checksums: dict[int, tuple[int, int, int]] = {}
        self._group = zarr.create_group(zarr_store(path, read_only=False), zarr_format=3)
        self._create_points()
        self._arrays = {
            "label": self._create(CODES if provisional else "label", (n,), (block_rows,), np.dtype(label), 0),
            "norm": self._create("norm", (n,), (block_rows,), np.dtype(np.float64), np.nan),
        }

    def _create_points(self) -> None:
        fill = np.nan if self.dtype.kind == "f" else 0
        self._points = self._create("X", (self.n, self.m), (self.block_rows, self.m), self.dtype, fill)

    def _resize_points(self) -> None:
        self._points.resize((self.n, self.m))

    @property
    def blocks(self) -> int:
        """Number of blocks that ``n`` points make."""
        return -(-self.n // self.block_rows)

    def resize(self, n: int) -> None:
        """Make room for n points, or give back what was not used. No block is written meanwhile beyond the lesser size."""
        self.n = n
        self._resize_points()
        for array in self._arrays.values():
            array.resize((n,))

    def _create(
        self, name: str, shape: tuple[int, ...], chunks: tuple[int, ...], dtype: Any, fill: float, group: Any = None
    ) -> Any:
        return created(self._group if group is None else group, name, shape, chunks, dtype, fill)

    def write(self, index: int, points: Points, label: NDArray[Any]) -> None:
        """Survey and store one whole block."""
        self._check(index, points)
        norm = norms(points)
        summary = _SURVEY.scan(Block.of(index * self.block_rows, points, label, norm))
        refuse_unusable(summary, self.where, self._names)
        self._keep(index, summary, points, label, norm)

    def _keep(self, index: int, summary: Summary, points: Points, label: NDArray[Any], norm: NDArray[np.float64]) -> None:
        """Store a block that was surveyed."""
        self._summaries[index] = summary
        of_points, of_label = summary.checksums[0][1:]
        self._checksums[index] = of_points, of_label, checksum(norm)
        self._store_points(index, points, of_points)
        self._store(self._arrays["label"], index, label, of_label)
        self._store(self._arrays["norm"], index, norm, self._checksums[index][2])

    def apart(self) -> DatasetWriter:
        """The same, to write some of the blocks in another process. It puts files in their places whole: one that was taken for
        dead, or whose result was lost, may be stopped while it writes what somebody else has written already.
        """
        assert isinstance(self.path, Path), "many processes write to a folder"
        found = copy(self)
        found._aside = self.path / ASIDE
        found._aside.mkdir(exist_ok=True)
        found._summaries, found._checksums = {}, {}
        return found

    @property
    def written(self) -> Written:
        """What this one wrote, for ``adopt``."""
        return Written(self._summaries, self._checksums)

    def adopt(self, written: Written) -> None:
        """Count blocks that another one wrote."""
        self._summaries.update(written.summaries)
        self._checksums.update(written.checksums)

    def _check(self, index: int, points: Any) -> None:
        """Raise BadInputError when a block is none; an array always is one."""

    def _store_points(self, index: int, points: Any, crc: int) -> None:
        self._store(self._points, index, points, crc)

    def _store(self, array: Any, index: int, values: NDArray[Any], crc: int) -> None:
        """Write one chunk: its entries, fill values behind a short one, and the checksum, which is known of the entries."""
        if not np.little_endian:
            first = index * self.block_rows
            array[first : first + len(values)] = values
            return
        parts: list[Any] = [np.ascontiguousarray(values).data]
        if len(values) < self.block_rows:
            rest = np.full((self.block_rows - len(values), *values.shape[1:]), array.fill_value, array.dtype)
            parts.append(rest.data)
            crc = crc32c.crc32c(rest.reshape(-1).view(np.uint8), crc)
        key = array.metadata.encode_chunk_key((index, *(0,) * (values.ndim - 1)))
        put(self.path / array.path / key, *parts, crc.to_bytes(4, "little"), aside=self._aside)

    def relabel(self, table: Callable[[int], NDArray[Any]]) -> None:
        """Write the labels ``table(block)[code]`` of all provisional codes: at the end it is known which classes there are."""
        codes = self._arrays["label"]
        self._arrays["label"] = self._create("label", (self.n,), (self.block_rows,), table(0).dtype, 0)
        for index in range(self.blocks):
            rows = slice(index * self.block_rows, min(self.n, (index + 1) * self.block_rows))
            label = table(index)[np.asarray(codes[rows])]
            points, _, norm = self._checksums[index]
            self._checksums[index] = points, checksum(label), norm
            self._store(self._arrays["label"], index, label, self._checksums[index][1])
            self._summaries[index] = replace(self._summaries[index], positive=int((label > 0).sum()))
        remove(self.path / CODES)

    def _counts(self, classes: int) -> tuple[int, ...]:
        """Points of each class, from labels that are codes."""
        total = np.zeros(classes, np.int64)
        for index in range(self.blocks):
            rows = slice(index * self.block_rows, min(self.n, (index + 1) * self.block_rows))
            total += np.bincount(np.asarray(self._arrays["label"][rows]), minlength=classes)
        return tuple(total.tolist())

    def checksums(self) -> NDArray[np.uint32]:
        """crc32c (blocks, 3) of points, labels and norms of each block."""
        return np.array([self._checksums[index] for index in range(self.blocks)], np.uint32)

    def finish(self, classes: tuple[str, ...], generator: dict[str, Any] | None = None, known: bool = False) -> Header:
        """Write checksums, header and marker. Raises CorruptDataError when a block was never written.

        Of ``known`` classes some may have no point.
        """
        if len(self._summaries) != self.blocks:
            raise CorruptDataError(f"{self.path}: {self.blocks - len(self._summaries)} blocks were never written")
        summary = EMPTY
        for index in range(self.blocks):
            summary = _SURVEY.merge(summary, self._summaries[index])
        coded = len(classes) > 2
        if classes and self._arrays["label"].dtype != stored_type(classes):
            raise BadInputError(
                f"{self.where}: labels of {len(classes)} classes are of type {self._arrays['label'].dtype}, "
                f"expected {stored_type(classes)}"
            )
        if classes and not coded and not known and summary.positive in (0, self.n):
            raise BadInputError(f"{self.where}: all {self.n} labels are the same; two classes are needed")
        checksums = self.checksums()
        mark = fingerprint(self.n, self.m, self.dtype.name, self.block_rows, checksums)
        more = self._finish_points()
        create_checksums(self._group, checksums)
        header = Header(
            format=formats.DATASET,
            n=self.n,
            m=self.m,
            dtype=self.dtype.name,
            block_rows=self.block_rows,
            classes=classes,
            positive=0 if coded else summary.positive,
            zero=summary.zero,
            first_zero=summary.first_zero,
            norm_min=summary.norm_min,
            norm_max=summary.norm_max,
            fingerprint=mark,
            generator=generator,
            counts=self._counts(len(classes)) if coded else (),
            **more,
        )
        self._group.attrs[ATTRIBUTE] = header.to_json()
        put_whole(self.path / MARKER, f"{seal(header)}\n".encode())
        return header

    def _finish_points(self) -> dict[str, Any]:
        """What else the header says of X."""
        return {}


def created(group: Any, name: str, shape: tuple[int, ...], chunks: tuple[int, ...], dtype: Any, fill: float) -> Any:
    """An array in the group, of uncompressed chunks with checksums."""
    return group.create_array(
        name,
        shape=shape,
        chunks=chunks,
        dtype=dtype,
        fill_value=fill,
        compressors=zarr.codecs.Crc32cCodec(),
        chunk_key_encoding={"name": "default", "separator": "."},
        config={"write_empty_chunks": True},
    )


def create_checksums(group: Any, checksums: NDArray[np.uint32]) -> None:
    """Write the array of checksums (blocks, 3)."""
    array = created(group, "checksum", checksums.shape, checksums.shape, np.dtype(np.uint32), 0)
    array[:] = checksums
