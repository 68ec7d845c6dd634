"""A range of consecutive blocks: the unit of work of both engines."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from time import perf_counter
from typing import Any

from threadpoolctl import ThreadpoolController

from dfeas.engine.tree import Tree
from dfeas.passes import AnyPass
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


def scan_range(dataset: Dataset, first: int, stop: int, pass_: AnyPass, stopped: Stop | None = None) -> tuple[Any, Cost]:
    """Scan blocks first .. stop-1; returns the nodes of the fixed tree and what it cost."""
    tree, cost = Tree(pass_), Cost()
    for index, block in enumerate(dataset.read_range(first, stop, cost), first):
        if stopped is not None and stopped():
            raise StoppedError
        began = perf_counter()
        tree.push(0, index, pass_.scan(block))
        cost.scan_seconds += perf_counter() - began
    return tree.nodes, cost


def join(pass_: AnyPass, parts: list[tuple[Any, Cost]]) -> tuple[Any, Cost]:
    """The answer and the whole cost from the ranges, in order."""
    tree, total = Tree(pass_), Cost()
    for nodes, cost in parts:
        total.add(cost)
        for node in nodes:
            tree.push(*node)
    return tree.finish(), total


@lru_cache(maxsize=1)
def blas() -> ThreadpoolController:
    """Controls the BLAS of this process: one thread, or the order of its sums depends on the machine."""
    import numpy.linalg  # noqa: F401 - loads the library that is to be controlled

    return ThreadpoolController()
