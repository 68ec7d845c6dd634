"""A range of consecutive blocks: the unit of work of both engines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from threading import local
from time import perf_counter
from typing import Any

from dfeas.data.dataset import Dataset
from dfeas.data.storage.readers import Buffers, Cost, Stop, unless_stopped
from dfeas.data.storage.scratch import Scratch
from dfeas.engine.protocol import Tree
from dfeas.passes.block import Block
from dfeas.passes.protocol import AnyPass, Fold, OnPairs, OnVectors, Ordered, Partial, Question, VectorPass
from dfeas.passes.vectors import Positive, Recover

_held = local()

SHORT_BYTES = 16 << 20
"""Where each thread reads no more than that, a range costs more than it saves."""


def pieces(size: int, threads: int, more: int) -> int:
    """How many ranges a read of ``size`` bytes is cut into: ``more`` a thread, so that a slow one does not hold it up."""
    return threads * (more if size > SHORT_BYTES * threads else 1)


def cut(blocks: int, pieces: int) -> list[tuple[int, int]]:
    """At most ``pieces`` ranges of about equal length that cover the blocks in order."""
    pieces = max(1, min(blocks, pieces))
    edges = [blocks * i // pieces for i in range(pieces + 1)]
    return list(pairwise(edges))


def parts(question: Question) -> tuple[AnyPass | VectorPass[Any, Any], Sequence[int] | None]:
    """The pass, and the blocks that it reads; None for all of them."""
    if isinstance(question, Partial):
        return question.pass_, question.blocks
    if isinstance(question, OnVectors):
        return question.pass_, None
    if isinstance(question, Ordered | OnPairs):
        raise TypeError("neither a fold nor pairs have ranges of blocks that could be scanned apart")
    return question, None


def scan_range(
    dataset: Dataset,
    first: int,
    stop: int,
    question: Question,
    scratch: Scratch | None = None,
    stopped: Stop | None = None,
) -> tuple[Any, Cost]:
    """Scan the blocks first .. stop-1 of those that are read; returns the nodes of the fixed tree and what it cost."""
    pass_, chosen = parts(question)
    if isinstance(pass_, Recover | Positive) and dataset.cache is not None:
        dataset.cache.close()  # the answer may have 16 bytes for each point, and is the last that a run needs
    blocks = range(first, stop) if chosen is None else chosen[first:stop]
    tree, cost = Tree(pass_), Cost()
    for position, partial in enumerate(unless_stopped(_partials(dataset, blocks, question, scratch, cost), stopped), first):
        tree.push(0, position, partial)
    return tree.nodes, cost


def _buffers() -> Buffers:
    """Those of this thread, used again for every range: fresh memory would cost as much as reading into it."""
    found: Buffers | None = getattr(_held, "buffers", None)
    if found is None:
        found = _held.buffers = Buffers()
    return found


def _partials(
    dataset: Dataset, blocks: Sequence[int], question: Question, scratch: Scratch | None, cost: Cost
) -> Iterator[Any]:
    if isinstance(question, OnVectors):
        assert scratch is not None, "vectors need scratch storage"
        read = dataset.read_blocks(blocks, cost, keep=True) if question.points else iter([None] * len(blocks))
        for index, block in zip(blocks, read, strict=True):
            first = index * dataset.block_rows
            began = perf_counter()
            yield _scan_vectors(question, range(first, min(first + dataset.block_rows, dataset.n)), block, scratch)
            cost.scan_seconds += perf_counter() - began
        return
    pass_: Any = parts(question)[0]
    # a sample is read by whoever is free, who need not be the one that reads these blocks later
    for block in dataset.read_blocks(blocks, cost, not isinstance(question, Partial), _buffers()):
        began = perf_counter()
        partial = pass_.scan(block)
        cost.scan_seconds += perf_counter() - began
        yield partial


def _scan_vectors(question: OnVectors, rows: range, block: Block | None, scratch: Scratch) -> Any:
    """Scan some rows, and write what comes out."""
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


def join(question: Question, scanned: list[tuple[Any, Cost]]) -> tuple[Any, Cost]:
    """The answer and the whole cost from the ranges, in order."""
    tree, total = Tree(parts(question)[0]), Cost()
    for nodes, cost in scanned:
        total.add(cost)
        for node in nodes:
            tree.push(*node)
    return tree.finish(), total
