"""What both engines scan: ranges of consecutive blocks, pairs of runs of rows, and the tree in which they merge partials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from threading import Lock, local
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct, field

from dfeas.data.dataset import Dataset
from dfeas.data.storage.readers import Buffers, Cost, Stop, unless_stopped
from dfeas.data.storage.scratch import Scratch
from dfeas.linalg.points import Points, row_slice, stack_points
from dfeas.passes.block import Block
from dfeas.passes.protocol import (
    AnyPass,
    Fold,
    OnPairs,
    OnVectors,
    Ordered,
    Partial,
    Question,
    VectorPass,
    absorb_partial,
    scans_runs,
)
from dfeas.passes.vectors import Positive, Recover

if TYPE_CHECKING:
    from dfeas.engine.tile_cache import TileCache

_of_thread = local()

SHORT_BYTES = 16 << 20
"""Where each thread reads no more than that, a range costs more than it saves."""
LEAST_ROWS = 2048
"""Runs are that long where they may be: meeting them then takes far longer than reading them."""
MOST_RUNS = 32
"""They are longer where there are more of them: 528 pairs are enough to share out."""


class Tree(Struct, eq=False):
    """Partials of consecutive blocks, merged as far as the fixed tree allows.

    The shape of the tree depends on the number of blocks only. A node (level, i) covers blocks i 2^level .. (i+1) 2^level - 1.
    Any cut of the blocks into ranges leaves each range a few maximal nodes; completing them gives the same merges, hence the
    same bits, whoever scanned what.
    """

    pass_: AnyPass | VectorPass[Any, Any] | OnPairs
    nodes: list[tuple[int, int, Any]] = field(default_factory=list)  # (level, index, partial), in order of blocks
    alone: bool = False  # whether nobody else has the partials

    def push(self, level: int, index: int, partial: Any) -> None:
        while self.nodes and index % 2 == 1 and self.nodes[-1][:2] == (level, index - 1):
            partial = self._merge(self.nodes.pop()[2], partial)
            level, index = level + 1, index // 2
        self.nodes.append((level, index, partial))

    def _merge(self, first: Any, second: Any) -> Any:
        return absorb_partial(self.pass_, first, second) if self.alone else self.pass_.merge(first, second)

    def finish(self) -> Any:
        """The answer from the nodes of all blocks, which are gone then; the ragged right end is folded from the right."""
        partials = [node[2] for node in self.nodes]
        self.nodes.clear()
        while len(partials) > 1:
            last = partials.pop()
            partials.append(self._merge(partials.pop(), last))
            del last
        return self.pass_.finish(partials.pop())  # which alone holds it now, and may let go what it has copied


def pieces(size: int, threads: int, more: int) -> int:
    """How many ranges a read of ``size`` bytes is cut into: ``more`` a thread, so that a slow one does not hold it up."""
    return threads * (more if size > SHORT_BYTES * threads else 1)


def cut(blocks: int, pieces: int) -> list[tuple[int, int]]:
    """At most ``pieces`` ranges of about equal length that cover the blocks in order. Long ones begin at multiples of a power
    of two, so that each leaves few nodes of the tree.
    """
    pieces = max(1, min(blocks, pieces))
    # ranges begin at multiples of at least a sixteenth of their length: none is much longer than the others
    step = 1 << max(0, (blocks // pieces).bit_length() - 1 - 3)
    edges = [round(blocks * i / pieces / step) * step for i in range(pieces)]
    return list(pairwise([*edges, blocks]))


def parts(question: Question) -> tuple[AnyPass | VectorPass[Any, Any], Sequence[int] | None]:
    """The pass, and the blocks that it reads; None for all of them."""
    if isinstance(question, Partial | OnVectors):
        return question.pass_, question.blocks
    if isinstance(question, Ordered | OnPairs):
        raise TypeError("neither a fold nor pairs have ranges of blocks that could be scanned apart")
    return question, None


def scan_range(
    dataset: Dataset, first: int, stop: int, question: Question, scratch: Scratch | None = None, stopped: Stop | None = None
) -> tuple[Any, Cost]:
    """Scan the blocks first .. stop-1 of those that are read; returns the nodes of the fixed tree and what it cost."""
    pass_, chosen = parts(question)
    if isinstance(pass_, Recover | Positive):
        dataset.kept.close()  # the answer may have 16 bytes for each point, and is the last that a run needs
    blocks = range(first, stop) if chosen is None else chosen[first:stop]
    tree, cost = Tree(pass_, alone=True), Cost()
    if isinstance(question, OnVectors):
        partials = _scan_all_vectors(dataset, blocks, question, scratch, cost)
        for position, partial in enumerate(unless_stopped(partials, stopped), first):
            tree.push(0, position, partial)
    else:
        # a sample is read by whoever is free, who need not be the one that reads these blocks later
        read = dataset.read_blocks(blocks, cost, not isinstance(question, Partial), _buffers())
        for run, position in _cut_runs(dataset, pass_, blocks, unless_stopped(read, stopped), first):
            began = perf_counter()
            _push_run(tree, position, run)
            cost.scan_seconds += perf_counter() - began
    return tree.nodes, cost


def _buffers() -> Buffers:
    """Those of this thread, used again for every range: fresh memory would cost as much as reading into it."""
    found: Buffers | None = getattr(_of_thread, "buffers", None)
    if found is None:
        found = _of_thread.buffers = Buffers()
    return found


def _cut_runs(
    dataset: Dataset, pass_: Any, blocks: Sequence[int], read: Iterator[Block], first: int
) -> Iterator[tuple[list[Block], int]]:
    """Blocks that a pass scans at once, of which all but the last stay in memory, and the place of the first in the tree."""
    together = scans_runs(pass_) and isinstance(blocks, range)
    # points of blocks in memory that are scanned at once: their scores stay in a cache that is no larger than most
    most = 1 << max(1, (1 << 17) // dataset.block_rows).bit_length() - 1 if together else 1
    run: list[Block] = []
    for stop, (index, block) in enumerate(zip(blocks, read, strict=True), first + 1):
        run.append(block)
        stays = index in dataset.kept or (block.stays and index in dataset.kept.sides)  # when the next one is read
        if stop % most == 0 or index == blocks[-1] or not stays:
            yield run, stop - len(run)
            run = []


def _push_run(tree: Tree, position: int, run: list[Block]) -> None:
    """What a pass finds in consecutive blocks, as few nodes as cover them."""
    while run:
        level = len(run).bit_length() - 1
        while position % (1 << level):
            level -= 1
        some, run = run[: 1 << level], run[1 << level :]
        pass_: Any = tree.pass_
        tree.push(level, position >> level, pass_.scan_run(some) if level else pass_.scan(some[0]))
        position += len(some)


def _scan_all_vectors(
    dataset: Dataset, blocks: Sequence[int], question: OnVectors, scratch: Scratch | None, cost: Cost
) -> Iterator[Any]:
    assert scratch is not None, "vectors need scratch storage"
    read = dataset.read_blocks(blocks, cost, keep=True) if question.points else iter([None] * len(blocks))
    for index, block in zip(blocks, read, strict=True):
        first = index * dataset.block_rows
        began = perf_counter()
        yield _scan_vectors(question, range(first, min(first + dataset.block_rows, dataset.n)), block, scratch)
        cost.scan_seconds += perf_counter() - began


def _scan_vectors(question: OnVectors, rows: range, block: Block | None, scratch: Scratch) -> Any:
    partial, written = question.pass_.scan(rows, block, tuple(scratch.read(name, rows) for name in question.reads))
    for name, values in zip(question.writes, written, strict=True):
        scratch.write(name, rows.start, values)
    return partial


def fold_blocks(fold: Fold[Any, Any], carry: Any, blocks: Iterator[Block], cost: Cost) -> Any:
    """The carry after some blocks, in order."""
    for block in blocks:
        began = perf_counter()
        carry = fold.step(carry, block)
        cost.scan_seconds += perf_counter() - began
    return carry


def merge_scans(question: Question, scanned: list[tuple[Any, Cost]]) -> tuple[Any, Cost]:
    """The nodes of several ranges that follow each other, as far as the tree merges them, and the cost; takes the ranges."""
    tree, total = Tree(question if isinstance(question, OnPairs) else parts(question)[0]), Cost()
    while scanned:
        nodes, cost = scanned.pop(0)
        total.add(cost)
        for node in nodes:
            tree.push(*node)
    return tree.nodes, total


def join(question: Question, scanned: list[tuple[Any, Cost]]) -> tuple[Any, Cost]:
    """The answer and the whole cost from the ranges, in order."""
    nodes, total = merge_scans(question, scanned)
    return Tree(question if isinstance(question, OnPairs) else parts(question)[0], nodes).finish(), total


class RangeMerge:
    """Merges the ranges of a pass as they end, those before them first, so that few of their sums are in memory at a time.
    Safe to use from several threads; nobody else may have what they bring.
    """

    def __init__(self, question: Question) -> None:
        self._tree, self._total = Tree(parts(question)[0], alone=True), Cost()
        self.early: dict[int, tuple[int, tuple[Any, Cost]]] = {}  # what has ended before one that comes before it
        self._next = 0
        self._lock = Lock()

    def add(self, first: int, stop: int, scanned: tuple[Any, Cost]) -> None:
        """What ``scan_range`` gave for the blocks first .. stop-1 of those that are read."""
        with self._lock:
            self.early[first] = stop, scanned
            while self._next in self.early:
                self._next, (nodes, cost) = self.early.pop(self._next)
                self._total.add(cost)
                for node in nodes:
                    self._tree.push(*node)

    def scan(self, dataset: Dataset, first: int, stop: int, *args: Any, **options: Any) -> None:
        """``scan_range``, merged in this process with what came before."""
        self.add(first, stop, scan_range(dataset, first, stop, *args, **options))

    def finish(self) -> tuple[Any, Cost]:
        return self._tree.finish(), self._total


def runs_of(dataset: Dataset) -> list[range]:
    """Those of a dataset. Of sparse points entries with their indices count."""
    entries = dataset.entries
    # a sparse entry with its index takes as much as so many features
    m = dataset.m if entries is None else max(1, 2 * entries.count // dataset.n)
    return runs(dataset.n, m, dataset.block_rows)


def runs(n: int, m: int, block_rows: int) -> list[range]:
    """Runs of rows that cover n points of m features in order; each has whole blocks, or is within one."""
    # a run has at most 32 MiB in float64: a thread holds two, and what was prepared of them
    wanted = max(1, min(max(LEAST_ROWS, n // MOST_RUNS), (32 << 20) // (8 * m)))
    long = max(1, round(wanted / block_rows)) * block_rows
    found = []
    for first in range(0, n, long):
        rows = min(long, n - first)
        parts = max(1, round(rows / wanted)) if block_rows > wanted else 1
        edges = [first + rows * i // parts for i in range(parts + 1)]
        found += [range(a, b) for a, b in pairwise(edges)]
    return found


def pairs_of(dataset: Dataset, question: OnPairs) -> list[tuple[range, range]]:
    """The pairs that are read, in order; the first run with itself if nothing counts."""
    all_runs = runs_of(dataset)
    touched = [question.touches(run) for run in all_runs]
    found = [
        (all_runs[i], all_runs[j]) for i in range(len(all_runs)) for j in range(i, len(all_runs)) if touched[i] or touched[j]
    ]
    rows = dataset.block_rows
    found.sort(key=lambda pair: (pair[0].start // rows, pair[1].start // rows))
    return found or [(all_runs[0], all_runs[0])]


def all_pairs(dataset: Dataset) -> int:
    """How many pairs there are."""
    count = len(runs_of(dataset))
    return count * (count + 1) // 2


def reads(dataset: Dataset) -> float:
    """Reads of the data that let all pairs meet, at most, in one thread: each run, or block, comes again for all before it."""
    apart = min(len(runs_of(dataset)), dataset.blocks)
    return (apart + 1) / 2


class _Held:
    """The prepared runs of the last pair, and the last two blocks."""

    def __init__(self, dataset: Dataset, question: OnPairs, cost: Cost) -> None:
        self.reads: list[int] = []  # blocks, in the order in which they were read
        self._dataset, self._question, self._cost = dataset, question, cost
        self._blocks: list[tuple[int, Block, Buffers]] = []  # the last one read or asked for comes last
        self._prepared: dict[int, Any] = {}

    def pair(self, left: range, right: range) -> tuple[Any, Any]:
        self._prepared = {start: held for start, held in self._prepared.items() if start in (left.start, right.start)}
        for run in (left, right):
            if run.start not in self._prepared:
                self._prepared[run.start] = self._question.prepare(self._rows(run))
        return self._prepared[left.start], self._prepared[right.start]

    def _rows(self, run: range) -> Block:
        dataset = self._dataset
        points: list[Points] = []
        labels, norms = [], []
        for index in range(run.start // dataset.block_rows, (run.stop - 1) // dataset.block_rows + 1):
            block = self._read(index)
            rows = slice(max(run.start - block.start, 0), min(run.stop - block.start, block.size))
            points.append(row_slice(block.points, rows).copy())  # before the buffer is used again
            labels.append(block.label[rows].copy())
            norms.append(block.norm[rows].copy())
        whole = points[0] if len(points) == 1 else stack_points(points)
        return Block.of(run.start, whole, np.concatenate(labels), np.concatenate(norms), dataset.intercept)

    def _read(self, index: int) -> Block:
        place = next((i for i, (known, _, _) in enumerate(self._blocks) if known == index), None)
        if place is not None:
            self._blocks.append(self._blocks.pop(place))
            return self._blocks[-1][1]
        buffers = self._blocks.pop(0)[2] if len(self._blocks) == 2 else Buffers()
        began = perf_counter()
        block = self._dataset.read(index, buffers, self._cost, keep=True)
        self._cost.read_seconds += perf_counter() - began
        self.reads.append(index)
        self._blocks.append((index, block, buffers))
        return block


def scan_pairs(
    dataset: Dataset, first: int, stop: int, question: OnPairs, tile_cache: TileCache | None = None, stopped: Stop | None = None
) -> tuple[Any, Cost, list[int]]:
    """Scan the pairs first .. stop-1; returns the nodes of the fixed tree, what it cost, and the blocks that were read.

    Where all points meet all points the unit of work is a pair of runs. A run is some whole blocks, or a part of a block where
    a block has many rows. Pairs are taken in the order of the left run, so that it stays while right ones come and go; but all
    pairs of parts of two blocks follow each other. A block costs a read whenever it comes again.
    """
    tree, cost = Tree(question), Cost()
    held = _Held(dataset, question, cost)
    for position, pair in enumerate(unless_stopped(pairs_of(dataset, question)[first:stop], stopped), first):
        before, began = cost.read_seconds, perf_counter()
        tree.push(0, position, question.scan(*held.pair(*pair), tile_cache))
        cost.scan_seconds += perf_counter() - began - (cost.read_seconds - before)
    return tree.nodes, cost, held.reads
