"""Writing a dataset: threads that write block by block, surveyed on the way, complete only when the marker is there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from dfeas.data.dataset import refuse_unusable
from dfeas.data.labels import stored_type
from dfeas.data.storage.chunks import ChunkReader, open_folder
from dfeas.data.storage.files import FULL, MARKER, NAMED, PLAIN, SPARSE_CONES, WITH_IDS, atomic_write
from dfeas.data.storage.layout import ConeTable, Header, fingerprint
from dfeas.data.storage.locks import FRESH_SECONDS, claim, discard, output_lock, release, require_held
from dfeas.data.storage.patience import wait_until
from dfeas.data.storage.places import Place, place, remove
from dfeas.data.storage.readers import Buffers
from dfeas.data.storage.stored_array import StoredArray, looks_like_dataset, node_text, put_list, put_node, root_node
from dfeas.data.writers.chunks import ChunkWriter, Ledger, chunks_of_sides
from dfeas.errors import BadInputError, CorruptDataError, UsageError
from dfeas.linalg.points import Floats, Points, norms
from dfeas.passes.block import Block
from dfeas.passes.survey import Summary, Survey, checksum
from dfeas.records import replace

if TYPE_CHECKING:
    from dfeas.data.ids import Ids


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
    distant_writers = 12  # threads that write to an object store: each waits for its requests most of the time
    # threads, and blocks that may wait to be written
    threads, most = (2, 4) if isinstance(target.path, Path) else (distant_writers, 2 * distant_writers)
    waiting: deque[Future[None]] = deque()

    def wait(given: int, most: int) -> None:
        while len(waiting) > most:
            waiting.popleft().result()
            tell(min(target.n, (given - len(waiting)) * target.block_rows))

    ended = Event()
    with ThreadPoolExecutor(threads, "dfeas-write", wait_until, (ended,)) as pool:
        given = 0
        try:
            for given, make in enumerate(makers, 1):
                waiting.append(pool.submit(lambda index, make: target.write(index, *make()), given - 1, make))
                wait(given, most)
            wait(given, 0)
        except BaseException:
            ended.set()
            for future in waiting:
                future.cancel()
            raise


CODES = "code"
"""The array of provisional labels."""
ASIDE = "aside"
"""The folder where other processes write each file before it gets its name."""


Look = Callable[[int, Points, NDArray[Any]], tuple[Floats, Summary]]
"""Norms of a block that starts at a row, and what is wrong with it."""


class DatasetWriter:
    """Takes the blocks of one dataset, in any order and from several threads; ``finish`` makes it whole. ``features`` are their
    names, where the source has them: messages use them, and the header keeps them. With ``provisional`` labels are codes, which
    ``relabel`` replaces when all are known. With ``shard`` so many blocks of an array lie in a file, otherwise some of labels
    and of norms. Of ``cones`` the points are rows, labels are codes, and norms are those of cones.
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
        cones: ConeTable | None = None,
        look: Look | None = None,
    ) -> None:
        self.path, self.n, self.m, self.dtype, self.block_rows = path, n, m, np.dtype(dtype), block_rows
        self._features, self._shard, self._cones, self._look = features, shard, cones, look or survey_points
        self._sides = shard or chunks_of_sides(self.block_bytes)  # blocks of a shard of labels and norms
        self.where = str(path)  # how messages call it
        self.written = Ledger()
        self._arrays: dict[str, ChunkWriter] = {}
        self._nodes: dict[str, dict[str, Any]] = {}  # what is said of each folder
        self._create_points()
        self._create("label", CODES if provisional else "label", np.dtype(label))
        self._create("norm", "norm", np.dtype(np.float64), np.nan)

    def _create_points(self) -> None:
        fill = np.nan if self.dtype.kind == "f" else 0
        self._add("X", "X", StoredArray((self.n, self.m), self.block_rows, self.dtype, self._shard, fill))

    def _create(self, name: str, folder: str, dtype: np.dtype[Any], fill: float = 0) -> None:
        """An array of one entry a row, with a chunk for each block, in a folder."""
        self._add(name, folder, StoredArray((self.n,), self.block_rows, dtype, self._sides, fill))

    def _add(self, name: str, folder: str, array: StoredArray) -> None:
        if isinstance(self.path, Path):
            (self.path / folder).mkdir(parents=True)
        self._arrays[name] = ChunkWriter(self.path / folder, array)

    def _describe(self, name: str, length: int, rows: int = 0) -> None:
        """Say how an array is stored, now that its length is known, in chunks of ``rows`` unless they are as it was begun."""
        array = self._arrays[name].array
        array = replace(array, shape=(length, *array.shape[1:]), rows=rows or array.rows)
        self._put_node(name, array.metadata())

    def _put_node(self, name: str, node: dict[str, Any]) -> None:
        self._nodes[name] = node
        put_node(self.path / name, node)

    @property
    def block_bytes(self) -> int:
        return self.block_rows * self.m * self.dtype.itemsize

    @property
    def blocks(self) -> int:
        return -(-self.n // self.block_rows)

    def write(self, index: int, points: Points, label: NDArray[Any]) -> None:
        require_held(self.path, FRESH_SECONDS)
        norm, summary = self._look(index * self.block_rows, points, label)
        refuse_unusable(summary, self.where, self._features)
        sums = (*summary.checksums[0].tolist(), checksum(norm))
        self.written.note(index, summary, sums)
        self._store_points(index, points, sums[0])
        self._arrays["label"].write(index, label, sums[1])
        self._arrays["norm"].write(index, norm, sums[2])

    def _store_points(self, index: int, points: Any, crc: int) -> None:
        self._arrays["X"].write(index, points, crc)

    def for_worker(self) -> Self:
        """The same, to write some of the blocks in another process. It puts files in their places whole: one that was taken for
        dead, or whose result was lost, may be stopped while it writes what somebody else has written already.
        """
        assert isinstance(self.path, Path), "many processes write to a folder"
        other, aside = copy(self), self.path / ASIDE
        aside.mkdir(exist_ok=True)
        other._arrays = {name: ChunkWriter(each.folder, each.array, aside) for name, each in self._arrays.items()}
        other.written = Ledger()
        return other

    def end_shards(self) -> None:
        """Make files of the shards that have begun, also of those that are not full; no block is written meanwhile."""
        for each in self._arrays.values():
            each.finish()

    def relabel(self, table: Callable[[int], NDArray[Any]]) -> None:
        """Write the labels ``table(block)[code]`` of all provisional codes: at the end it is known which classes there are."""
        codes = self._arrays["label"]
        codes.finish()
        self._create("label", "label", table(0).dtype)
        for index, code in enumerate(self._read_labels(codes)):
            label = table(index)[code]
            crc = checksum(label)
            self._arrays["label"].write(index, label, crc)
            self.written.relabel(index, int((label > 0).sum()), crc)
        remove(self.path / CODES)

    def _read_labels(self, stored: ChunkWriter) -> Iterator[NDArray[Any]]:
        """Labels of all blocks, from storage. Raises CorruptDataError where they are not what was written."""
        expected, buffers = self.checksums()[:, 1], Buffers()
        reader = ChunkReader("label", open_folder(stored.folder), replace(stored.array, shape=(self.n,)))
        for index in range(self.blocks):
            label = reader.read(index, buffers)
            if checksum(label) != expected[index]:
                raise CorruptDataError(f"{stored.folder}: chunk {index} is not what was written; run the same ingest again")
            yield label

    def _counts(self, classes: int) -> tuple[int, ...]:
        """Points of each class, from labels that are codes."""
        total = np.zeros(classes, np.int64)
        for label in self._read_labels(self._arrays["label"]):
            total += np.bincount(label, minlength=classes)
        return tuple(total.tolist())

    def checksums(self) -> NDArray[np.uint32]:
        """crc32c (blocks, 3) of points, labels and norms of each block."""
        return self.written.checksums(self.blocks)

    def finish(self, classes: tuple[str, ...], generator: dict[str, Any] | None = None, ids: Ids | None = None) -> Header:
        """Write ids, checksums, and last what says that it is whole. Raises CorruptDataError when a block was never written."""
        missing, coded = self.written.count_missing(self.blocks), len(classes) > 2
        if missing:
            raise CorruptDataError(f"{self.path}: {missing} blocks were never written")
        entries = self._finish_points()
        self.end_shards()
        self._describe("label", self.n)
        self._describe("norm", self.n)
        facts = self.written.facts(self.blocks)
        if classes:
            self._require_classes(classes, facts["positive"])
        checksums = self.checksums()
        named, number = dict[str, Any](), NAMED if self._features else PLAIN
        if ids is not None:
            from dfeas.data.ids import write_ids  # few datasets have some

            go_on = partial(require_held, self.path, FRESH_SECONDS)
            self._nodes["id"], named["ids"] = write_ids(self.path, ids, self.n, go_on)
            number = WITH_IDS
        self._nodes["checksum"] = put_list(self.path / "checksum", checksums)
        header = Header(
            format=SPARSE_CONES if self._cones is not None and entries else number,
            n=self.n,
            m=self.m,
            dtype=self.dtype.name,
            block_rows=self.block_rows,
            classes=classes,
            **{**facts, "positive": 0 if coded else facts["positive"]},
            fingerprint=fingerprint(self.n, self.m, self.dtype.name, self.block_rows, checksums, classes),
            generator=generator,
            counts=self._counts(len(classes)) if coded else (),
            features=self._features,
            cones=self._cones,
            **named,
            **entries,
        )
        require_held(self.path)
        with atomic_write(self.path / MARKER) as file:
            file.write(node_text(root_node(header.to_json(), self._nodes)))
        return header

    def _require_classes(self, classes: tuple[str, ...], positive: int) -> None:
        """Raise BadInputError for labels of another type than these classes have, and where all are of one of two."""
        dtype, expected = self._arrays["label"].array.dtype, stored_type(classes)
        if dtype != expected:
            raise BadInputError(f"{self.where}: labels of {len(classes)} classes are of type {dtype}, expected {expected}")
        if len(classes) == 2 and positive in (0, self.n):
            raise BadInputError(f"{self.where}: all {self.n} labels are the same; two classes are needed")

    def _finish_points(self) -> dict[str, Any]:
        """Say how X is stored; what the header says of its entries, where it is sparse."""
        self._describe("X", self.n)
        return {}


def survey_points(start: int, points: Points, label: NDArray[Any]) -> tuple[Floats, Summary]:
    """Norms (b,) of the points of a block, and what is wrong with it."""
    norm = norms(points)
    return norm, Survey().scan(Block.of(start, points, label, norm))


@contextmanager
def output_place(where: str | Place) -> Iterator[Place]:
    """Make the dataset's folder, hold its lock, and remove everything again when the body raises. A folder that an interrupted
    ingest left is started afresh. Raises UsageError when the path exists already or another process writes there.
    """
    path = place(where)
    if not isinstance(path, Path):
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
