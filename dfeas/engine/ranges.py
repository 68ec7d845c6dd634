"""A range of consecutive blocks: the unit of work of both engines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from time import perf_counter
from typing import Any

from dfeas.engine.tree import Tree
from dfeas.passes import AnyPass, Partial, Question
from dfeas.store import Dataset
from dfeas.store.reading import Cost

Stop = Callable[[], bool]


class StoppedError(Exception):
    """The engine was told to stop in the middle of a range."""


def cut(blocks: int, pieces: int) -> list[tuple[int, int]]:
    """At most ``pieces`` ranges of about equal length that cover the blocks in order."""
    pieces = max(1, min(blocks, pieces))
    edges = [blocks * i // pieces for i in range(pieces + 1)]
    return list(pairwise(edges))


def parts(question: Question) -> tuple[AnyPass, Sequence[int] | None]:
    """The pass, and the blocks that it reads; None for all of them."""
    return (question.pass_, question.blocks) if isinstance(question, Partial) else (question, None)


def scan_range(dataset: Dataset, first: int, stop: int, question: Question, stopped: Stop | None = None) -> tuple[Any, Cost]:
    """Scan the blocks first .. stop-1 of those that are read; returns the nodes of the fixed tree and what it cost."""
    pass_, chosen = parts(question)
    blocks = range(first, stop) if chosen is None else chosen[first:stop]
    tree, cost = Tree(pass_), Cost()
    for position, block in enumerate(dataset.read_blocks(blocks, cost), first):
        if stopped is not None and stopped():
            raise StoppedError
        began = perf_counter()
        tree.push(0, position, pass_.scan(block))
        cost.scan_seconds += perf_counter() - began
    return tree.nodes, cost


def join(question: Question, scanned: list[tuple[Any, Cost]]) -> tuple[Any, Cost]:
    """The answer and the whole cost from the ranges, in order."""
    tree, total = Tree(parts(question)[0]), Cost()
    for nodes, cost in scanned:
        total.add(cost)
        for node in nodes:
            tree.push(*node)
    return tree.finish(), total
