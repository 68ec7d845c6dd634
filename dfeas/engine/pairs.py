"""Pairs of runs of rows: the unit of work where all points meet all points.

A run is some whole blocks, or a part of a block where a block has many rows. Pairs are taken in the order of the left run, so
that it stays while right ones come and go; but all pairs of parts of two blocks follow each other. A block costs a read
whenever it comes again.
"""

from __future__ import annotations

from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np

from dfeas.data.dataset import Dataset
from dfeas.data.storage.readers import Buffers, Cost, Stop, unless_stopped
from dfeas.engine.protocol import Tree
from dfeas.engine.tile_cache import TileCache
from dfeas.linalg.points import Points, row_slice, stacked
from dfeas.passes.block import Block
from dfeas.passes.protocol import OnPairs

LEAST_ROWS = 2048
"""Runs are that long where they may be: meeting them then takes far longer than reading them."""
MOST_RUNS = 32
"""They are longer where there are more of them: 528 pairs are enough to share out."""
RUN_BYTES = 32 << 20
"""Of a run in float64. A thread holds two, and what was prepared of them."""
ENTRY_WIDTH = 2
"""A sparse entry with its index takes as much as so many features."""


def runs_of(dataset: Dataset) -> list[range]:
    """Those of a dataset. Of sparse points entries with their indices count."""
    entries = dataset.entries
    m = dataset.m if entries is None else max(1, ENTRY_WIDTH * entries.count // dataset.n)
    return runs(dataset.n, m, dataset.block_rows)


def runs(n: int, m: int, block_rows: int) -> list[range]:
    """Runs of rows that cover n points of m features in order; none reaches into a block without having all of it or being
    within it.
    """
    wanted = max(1, min(max(LEAST_ROWS, n // MOST_RUNS), RUN_BYTES // (8 * m)))
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
        """A copy of the rows of a run."""
        dataset = self._dataset
        points: list[Points] = []
        labels, norms = [], []
        for index in range(run.start // dataset.block_rows, (run.stop - 1) // dataset.block_rows + 1):
            block = self._read(index)
            rows = slice(max(run.start - block.start, 0), min(run.stop - block.start, block.size))
            points.append(row_slice(block.points, rows).copy())  # before the buffer is used again
            labels.append(block.label[rows].copy())
            norms.append(block.norm[rows].copy())
        whole = points[0] if len(points) == 1 else stacked(points)
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
    """Scan the pairs first .. stop-1; returns the nodes of the fixed tree, what it cost, and the blocks that were read."""
    tree, cost = Tree(question), Cost()
    held = _Held(dataset, question, cost)
    for position, pair in enumerate(unless_stopped(pairs_of(dataset, question)[first:stop], stopped), first):
        before, began = cost.read_seconds, perf_counter()
        tree.push(0, position, question.scan(*held.pair(*pair), tile_cache))
        cost.scan_seconds += perf_counter() - began - (cost.read_seconds - before)
    return tree.nodes, cost, held.reads


def join_pairs(question: OnPairs, scanned: list[tuple[Any, Cost, list[int]]]) -> tuple[Any, Cost, list[int]]:
    """The answer, the whole cost, and all blocks that were read, from the ranges in order."""
    tree, total = Tree(question), Cost()
    reads: list[int] = []
    for nodes, cost, blocks in scanned:
        total.add(cost)
        reads += blocks
        for node in nodes:
            tree.push(*node)
    return tree.finish(), total, reads
