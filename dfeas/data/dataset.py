"""A dataset: n points with labels, read as blocks, checked on first touch."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from dfeas.data.cache import HELD_BYTES, Kept
from dfeas.data.labels import place_of
from dfeas.data.rows import POINTS, Rows
from dfeas.data.source import Transform, view_text
from dfeas.data.storage.features import feature_name
from dfeas.data.storage.layout import PADDING, ConeTable, Header, seen_fingerprint
from dfeas.data.storage.patience import once_more
from dfeas.data.storage.readers import Buffers, Cost, Looks, PointReader, RowReader, SliceReader, chunks_of
from dfeas.data.storage.scratch import Picks
from dfeas.data.storage.sparse_readers import CsrRows, Entries
from dfeas.errors import BadInputError, CorruptDataError
from dfeas.linalg.points import Points, copy_into, is_dense, nbytes, norms
from dfeas.passes.block import Block, Sides, against
from dfeas.passes.survey import NORM_RANGE, Summary, checksums, digest
from dfeas.records import replace

if TYPE_CHECKING:  # which few datasets have
    from dfeas.data.ids import Ids

AT_ONCE = 2
"""Blocks that are read at once past the page cache, while another is scanned."""
AHEAD = 8
"""Blocks that the kernel is asked to read ahead."""
SIDES_WIDTH = 13
"""Bytes of the label and the norm of a point, as they are kept."""
FILE_READS = 2
"""Reads of a block from files that the page cache has before the next one keeps it: runs of few passes then take no memory that
is fresh, which costs more than such a read.
"""
WARM = 2e9
"""Bytes a second above which the page cache is being read, and the kernel need not be asked to read ahead."""


class Dataset(Struct, kw_only=True, eq=False, dict=True):
    """Points, labels and norms behind readers, verified. Safe to read from several threads, each with its own buffers."""

    # as it is stored
    n: int
    m: int  # features, without the intercept
    dtype: np.dtype[Any]
    block_rows: int
    together: int = 1  # stored chunks, each with a checksum of its own, that are a block
    points: PointReader
    labels: RowReader
    stored_norms: RowReader | None = None  # None: computed when a block is read
    entries: Entries | None = None  # of sparse points
    rows: Rows = POINTS  # what they make
    program: Any = None  # that the rows of cones were made of
    rounded: bool = False  # whether these stand for others that are not float64
    # how it is seen
    classes: tuple[str, ...] = ()  # (negative, positive), or all in the order of their codes; empty without labels
    positive: int | None = None  # the label that counts as +1, all others as -1; None: as they are
    intercept: bool = False
    transform: Transform | None = None
    stored_classes: tuple[str, ...] = ()  # where ``classes`` are one of them and the rest; empty where they are these
    numbers: NDArray[np.int64] | Picks | None = None  # (n,) in the stores that points are from; rows of cones without padding
    # where it comes from, and by what it is known again
    where: str  # how messages call it
    header: Header | None = None  # of a dataset that dfeas wrote
    expected: NDArray[np.uint32] | None = None  # (chunks, 3) checksums of X, label, norm; of a survey (chunks, 2), without norm
    mark: str = ""  # fingerprint of what is stored, where it is seen in another way
    fingerprint: str = ""
    features: tuple[str, ...] = ()  # names of the features; empty where there are none
    ids: Ids | None = None  # names of the points in the stores that they are from; None: their numbers
    files: tuple[tuple[str, int], ...] = ()  # files or datasets that follow each other, and how many points each has
    counts: dict[int, int] | None = None  # points of each label as it is stored, where they were counted
    surveyed: tuple[Summary, int] | None = None  # a survey that was made already, and the reads that it took
    opened: int = 0  # reads of a Dask collection that were made to know its lengths and labels
    names: Any = None  # of the rows of a collection, where they have an index
    stored: Dataset | None = None  # the points as they are stored, where features are transformed
    kept: Kept = field(default_factory=Kept)

    @property
    def base(self) -> Dataset:
        """The points as they are stored, where features are transformed; else these."""
        return self.stored or self

    @property
    def rank(self) -> int:
        """What theorems count: points, or eigenvalues of cones."""
        return self.rows.rank(self.n)

    @property
    def kind(self) -> str:
        """What its rows make: "points" or "cones"."""
        return self.rows.kind

    @property
    def cones(self) -> ConeTable | None:
        """Whose rows these are."""
        return self.rows.table

    @property
    def chunk_rows(self) -> int:
        """Points of a stored chunk, which checksums and fingerprints are about."""
        return self.block_rows // self.together

    @property
    def blocks(self) -> int:
        return -(-self.n // self.block_rows)

    @property
    def block_bytes(self) -> int:
        return self.block_rows * self.m * self.dtype.itemsize if self.entries is None else self.entries.block_bytes

    @property
    def bytes(self) -> int:
        """Bytes of all points, as passes work on them."""
        return self.n * self.m * self.dtype.itemsize if self.entries is None else self.entries.bytes

    @property
    def sides_bytes(self) -> int:
        """Bytes of all labels and norms, and of what holds the blocks, as they are kept."""
        return self.n * SIDES_WIDTH + self.blocks * HELD_BYTES

    @property
    def in_memory(self) -> bool:
        """Whether the points are an array of this process, so that there is nothing to keep."""
        return isinstance(self.points, CsrRows) or (isinstance(self.points, SliceReader) and self.points.overlaps)

    def stamp(self, index: int, looks: Looks | None = None) -> int:
        """A number but 0 that changes when the files of a block do."""
        norm = None if self.stored_norms is None else self.stored_norms.stamp(index, looks)
        return hash((self.points.stamp(index, looks), self.labels.stamp(index, looks), norm)) or 1

    @cached_property
    def view(self) -> str:
        return view_text(None if self.positive is None else self.classes[1], self.transform)

    @property
    def all_classes(self) -> tuple[str, ...]:
        """The classes as labels are stored, of which the fingerprint is one, too."""
        return self.stored_classes or self.classes

    @property
    def codes(self) -> tuple[int, ...]:
        return (-1, 1) if len(self.classes) == 2 else tuple(range(len(self.classes)))

    def signs(self, label: NDArray[Any]) -> NDArray[Any]:
        """Labels as they are meant, from labels as they are stored."""
        return label if self.positive is None else against(label, self.positive)

    @property
    def dimension(self) -> int:
        """Length of a column: m, or m + 1 with the intercept."""
        return self.m + self.intercept

    @property
    def stored_bytes(self) -> int:
        """Bytes of all points, as they are stored: what one pass reads."""
        return self.bytes if self.stored is None else self.stored.bytes

    def name_points(self, numbers: Sequence[int]) -> dict[int, int | str | None]:
        """What points are called, by their numbers in the stores: their ids, or these numbers."""
        return {each: each for each in numbers} if self.ids is None else self.ids.take(numbers)

    def against_rest(self, name: str) -> Dataset:
        """One class against the rest; the same for the positive one of two. Raises BadInputError for no class of these."""
        place = place_of(name, self.classes, self.where)
        if len(self.classes) == 2 and place == 1:
            return self
        rest = self.classes[1] if len(self.classes) == 2 else "rest"
        return self.seen_with(positive=self.codes[place], classes=(rest, self.classes[place]), stored_classes=self.all_classes)

    def count(self, code: int) -> int:
        """Points with a label as it is stored, by reading all labels where nobody counted them."""
        if self.counts is not None:
            return self.counts[code]
        buffers = Buffers()
        return sum(int((self.labels.read(index, buffers) == code).sum()) for index in range(self.blocks))

    def unscale(self, support: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weights of rows of cones, scaled, as (N,) of the rows as they are, without padding."""
        assert self.stored_norms is not None, "norms of cones come with them"
        codes, norm = (
            np.concatenate([reader.read(index, Buffers()).copy() for index in range(self.blocks)])
            for reader in (self.labels, self.stored_norms)
        )
        found = np.zeros(self.n)
        found[support] = weights
        return np.asarray((found / np.where(norm > 0, norm, 1.0))[codes != PADDING])

    def __repr__(self) -> str:
        return f"<Dataset {self.n} {self.rows.word} of {self.m} features, {self.dtype.name}>"

    def sides(self, positive: int) -> dict[str, tuple[str | None, int]]:
        """Class and points of the labels -1 and +1, of which so many are ``positive``; without labels of +1 alone."""
        if len(self.classes) != 2:
            return {"+1": (None, self.n)}
        return {"-1": (self.classes[0], self.n - positive), "+1": (self.classes[1], positive)}

    def seen_with(self, **changes: Any) -> Dataset:
        """The same points seen in another way, with nothing kept; the fingerprint is that of both."""
        mark = self.mark or self.fingerprint
        other = replace(self, kept=Kept(), mark=mark, **changes)
        other.fingerprint = seen_fingerprint(mark, other.view) if mark else ""
        return other

    def without_cache(self) -> Dataset:
        """The same data with nothing kept from earlier reads: what is read through it comes from storage."""
        return replace(self, kept=Kept())

    def enable_cache(self, budget: int) -> None:
        """Keep blocks in so many bytes from now on, and labels and norms of those that do not fit."""
        self.kept.budget, sides = self.divide(budget)
        self.kept.after = self.kept_after
        self.kept.sides_limit += sides

    @property
    def kept_after(self) -> int:
        """Reads of a block before the one that keeps it."""
        return FILE_READS if self.stored is None and self.points.overlaps and not self.points.distant else 0

    def divide(self, budget: int) -> tuple[int, int]:
        """Bytes of a budget for blocks, and for labels and norms of blocks that do not fit."""
        sides = self.sides_bytes
        sides = 0 if budget >= self.bytes + sides else min(sides, budget // 4)
        return budget - sides, sides

    def read(self, index: int, buffers: Buffers, cost: Cost, keep: bool = False, looks: Looks | None = None) -> Block:
        """One block, which may be kept for later passes. Its points and bytes are added to ``cost``. A block is verified on its
        first touch, and again when its files changed since; over a network whenever it comes. Files that many blocks lie in are
        looked at once for all that share ``looks``. Raises CorruptDataError when it is missing, damaged, or not what it was.
        """
        stamp = self.stamp(index, looks)
        verified = self.kept.is_verified(index, stamp)
        block = self.kept.get(index) if verified else None
        if block is not None:
            cost.cached_bytes += block.nbytes
        else:
            args = index, buffers, None if verified else stamp, keep, looks
            block = once_more(lambda: self._fetch(*args), self.points.distant)
            cost.bytes_read += block.nbytes
            if self.stored is not None:
                cost.bytes_read -= block.points.size * (self.dtype.itemsize - self.stored.dtype.itemsize)
        cost.points += block.size
        first = self.base.kept.first.get(index)
        if first is not None:
            cost.digest = (cost.digest + digest(chunks_of(index, self.together, self.n, self.chunk_rows), first)) % 2**64
        return block

    def _fetch(self, index: int, buffers: Buffers, unverified: int | None, keep: bool, looks: Looks | None = None) -> Block:
        """Read a block; ``unverified`` is its stamp when its contents must be verified."""
        if unverified is not None:
            self.kept.forget(index)
        start = index * self.block_rows
        rows = min(self.block_rows, self.n - start)
        due, beside, memory = keep and self.kept.is_due(index), rows * SIDES_WIDTH + HELD_BYTES, None
        if due and self.entries is None:
            memory = self.kept.take(rows * self.m * self.dtype.itemsize, beside)
        # over a network dense points of a dataset, labels and norms have been compared when they came
        far = self.points.distant and (self.header is None or self.entries is not None)
        points: Points = self.points.read(index, Buffers(X=memory) if memory is not None and self.points.overlaps else buffers)
        if due and not is_dense(points):
            memory = self.kept.take(nbytes(points), beside)
        sides = self.kept.sides.get(index)
        if sides is None:
            label = self.labels.read(index, buffers)
            stored = self.stored_norms
            norm = norms(points) if stored is None else stored.read(index, buffers)
            if unverified is not None or far:
                self._verify(index, points, label, norm)
            if unverified is not None:
                self.kept.mark_verified(index, unverified, self.blocks)
            length = None if self.transform is None else self.transform.length
            sides = Sides(self.signs(label), norm, self.intercept, length)
            sides = self.kept.keep_sides(index, sides) if memory is None else sides.copy()
        elif far:
            self._verify(index, points)
        if unverified is None and looks and not self.kept.is_verified(index, self.stamp(index, looks)):
            return self._fetch(index, buffers, self.stamp(index, looks), keep)  # what came is not what was looked at
        stays = self.in_memory and is_dense(points) and points.base is not None  # a view of the caller's array
        block = Block(start, points, sides, self.chunk_rows, stays)
        if memory is not None:
            block = replace(block, points=copy_into(memory, points))
            self.kept.keep(index, block)
        return block

    def _verify(self, index: int, *arrays: Any) -> None:
        """Compare points, and maybe labels and norms, with checksums of the ingest or of the survey, or of the first touch."""
        far = self.points.distant
        if self.stored is not None or (self.expected is None and not far and self.points.stamp(index) is None):
            return
        arrays = arrays[:2] if self.header is None else arrays
        found = np.stack([checksums(array, self.chunk_rows) for array in arrays], axis=1)
        chunks = chunks_of(index, self.together, self.n, self.chunk_rows)
        known = self.expected
        expected = self.kept.first.setdefault(index, found) if known is None else known[chunks.start : chunks.stop]
        both = min(found.shape[1], expected.shape[1])
        for chunk, place in np.argwhere(found[:, :both] != expected[:, :both])[:1].tolist():
            was, now = int(expected[chunk, place]), int(found[chunk, place])
            what = f"{chunks[chunk]} of {('X', 'label', 'norm')[place]}"
            if self.header is not None:
                raise damaged_chunk(self.where, what, now, was)
            text = f"block {what} (from point {chunks[chunk] * self.chunk_rows}) has changed during the run"
            text += f" (crc32c {now:08x}, was {was:08x}); restore it, or run again on the data as it is now"
            raise CorruptDataError(f"{self.where}: {text}")

    def read_digest(self, blocks: Sequence[int] | None) -> int | None:
        """``Cost.digest`` of a read of some blocks, or of all, as the survey saw them; None where nothing is compared."""
        if self.stored is not None:
            return self.stored.read_digest(blocks)
        if self.header is not None or self.expected is None:
            return None
        chunks = np.arange(len(self.expected))
        if blocks is not None:
            chunks = chunks[np.isin(chunks // self.together, blocks)]
        return digest(chunks, self.expected[chunks])

    def read_blocks(
        self, indices: Sequence[int], cost: Cost, keep: bool = False, buffers: Buffers | None = None
    ) -> Iterator[Block]:
        """Some blocks in the order given, reading ahead; adds points, bytes and waiting time to ``cost``. With ``keep`` they
        fill the cache, where there is one. They may be views of ``buffers``, where these are given.
        """
        if self.points.overlaps:
            blocks = self._read_with_advice(indices, cost, keep, Buffers() if buffers is None else buffers)
        else:
            blocks = self._read_in_threads(indices, cost, keep)
        while True:
            began = perf_counter()
            block = next(blocks, None)
            cost.read_seconds += perf_counter() - began
            if block is None:
                return
            yield block

    def _read_with_advice(self, indices: Sequence[int], cost: Cost, keep: bool, buffers: Buffers) -> Iterator[Block]:
        kept, far = self.kept, self.points.distant
        if far or indices[0] in kept:
            # storage works while blocks are scanned that are here already
            for coming in [index for index in indices if index not in kept][:AHEAD]:
                self.advise(coming)
        advised = 0  # this many were asked for
        looks: Looks = {}
        for done, index in enumerate(indices, 1):
            began = perf_counter()
            block = self.read(index, buffers, cost, keep, looks)
            if far or self.block_bytes < WARM * (perf_counter() - began):
                for coming in indices[max(advised, done) : done + AHEAD]:
                    if not (far and coming in kept):
                        self.advise(coming)
                advised = done + AHEAD
            yield block

    def advise(self, index: int) -> None:
        """Say that a block will soon be read; over a network also its labels and norms, unless they are kept."""
        self.points.advise(index)
        if self.points.distant and index not in self.kept.sides:
            self.labels.advise(index)
            if self.stored_norms is not None:
                self.stored_norms.advise(index)

    def _read_in_threads(self, indices: Sequence[int], cost: Cost, keep: bool) -> Iterator[Block]:
        from concurrent.futures import ThreadPoolExecutor

        from dfeas.data.storage.chunks import ChunkReader

        # one block is scanned while the next ones are read, each into buffers of its own
        ahead = AT_ONCE if isinstance(self.points, ChunkReader) and not self.points.array.shard else 1
        buffers, pool = [Buffers() for _ in range(ahead + 1)], ThreadPoolExecutor(ahead, "dfeas-read")
        looks: Looks = {}

        def read(place: int) -> tuple[Block, Cost]:
            took = Cost()
            return self.read(indices[place], buffers[place % len(buffers)], took, keep, looks), took

        try:
            coming = deque(pool.submit(read, place) for place in range(min(ahead, len(indices))))
            for place in range(len(indices)):
                block, took = coming.popleft().result()
                cost.add(took)
                if place + ahead < len(indices):
                    coming.append(pool.submit(read, place + ahead))
                yield block
        finally:
            # Nobody waits for a block that is not wanted any more: Python ends what was left behind in whichever thread
            # looks for garbage, and that may be the one of zarr, for which the read waits.
            pool.shutdown(wait=False, cancel_futures=True)


def damaged_chunk(where: object, what: str, now: int, was: int) -> CorruptDataError:
    """The error for a chunk that is not what its ingest wrote, by its checksums."""
    return CorruptDataError(f"{where}: chunk {what} is damaged (crc32c {now:08x}, expected {was:08x}); restore or ingest again")


def array_reader(name: str, array: NDArray[Any], block_rows: int) -> SliceReader:
    """A reader of an array in memory."""
    return SliceReader(name, array, len(array), block_rows, array.dtype, overlaps=True)


def call_point(point: int, files: Sequence[tuple[str, int]]) -> str:
    """A point in messages: one of several files of so many points with its file and its row there."""
    before = 0
    for name, size in files if len(files) > 1 else ():
        if point < before + size:
            return f"point {point} ({name}, row {point - before})"
        before += size
    return f"point {point}"


def refuse_unusable(summary: Summary, where: str, features: Sequence[str] = (), files: Sequence[tuple[str, int]] = ()) -> None:
    """Raise BadInputError for non-finite entries and for norms that cannot be squared; ``features`` have maybe names."""
    if summary.nonfinite:
        named = [(call_point(p, files), feature_name(features, f), v) for p, f, v in summary.first_nonfinite]
        shown = ", ".join(f"{point} feature {feature}: {value}" for point, feature, value in named)
        raise BadInputError(f"{where}: {summary.nonfinite} or more entries are not finite ({shown}); remove or correct them")
    if summary.extreme:
        shown = ", ".join(str(j) for j in summary.first_extreme)
        least, most = NORM_RANGE
        raise BadInputError(f"{where}: norms outside {least:g} .. {most:g} (point {shown}); scale the data by a power of two")
