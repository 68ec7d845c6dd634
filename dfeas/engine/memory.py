"""What a run needs of the memory budget."""

from __future__ import annotations

import math
import resource
from collections.abc import Sequence

import numpy as np

from dfeas.data.cache import SIDES_BYTES
from dfeas.data.dataset import AHEAD, Dataset
from dfeas.data.storage.readers import SliceReader
from dfeas.data.storage.scratch import Picks
from dfeas.errors import UsageError, enough, format_bytes, spell
from dfeas.linalg.blas import blas_threads
from dfeas.machine import used_bytes
from dfeas.passes.block import WIDE_TILE_BYTES
from dfeas.passes.vectors import POINT_BYTES


def thread_bytes(dataset: Dataset) -> int:
    """What one scanning thread needs: its buffers of a block, and the temporaries of a tile in float64."""
    # one block is scanned, one is read, one is being decoded by zarr; past the page cache two are read
    # and over a network some are coming
    stored = dataset.base
    blocks = 1 if stored.in_memory else 3 + AHEAD * stored.points.distant
    formed = dataset.stored is not None or any(each.m < dataset.m for each in _inside(dataset))
    seen = 2 * dataset.block_bytes if formed else 0  # one is scanned, one is formed
    temporary = dataset.rows.temporary_bytes(dataset.block_rows, dataset.m, dataset.entries)
    # of dense points a block holds many points, and a vector is small beside it
    vectors = 0 if dataset.entries is None else 6 * 8 * dataset.dimension
    return blocks * stored.block_bytes + seen + max(WIDE_TILE_BYTES, temporary) + vectors


def held_bytes(dataset: Dataset) -> int:
    """Arrays of all points that an opened dataset has: labels and norms that are in no file, and which points of others."""
    arrays = [each.array for each in (dataset.labels, dataset.stored_norms) if isinstance(each, SliceReader)]
    numbers = [dataset.numbers, getattr(dataset.points, "rows", None)]  # of points chosen from others
    own = {id(each): int(each.nbytes) for each in (*arrays, *numbers) if isinstance(each, np.ndarray | Picks)}
    return sum(own.values()) + sum(map(held_bytes, _inside(dataset)))


def sides_bytes(dataset: Dataset, kept: int) -> int:
    """Labels and norms that one keeps which reads, beside a cache of so many bytes, unless that holds all."""
    own = 0 if kept >= dataset.bytes + dataset.sides_bytes else min(SIDES_BYTES, dataset.sides_bytes)
    return own + sum(sides_bytes(each, 0) for each in _inside(dataset))


def _inside(dataset: Dataset) -> Sequence[Dataset]:
    """What its blocks are made of."""
    points = dataset.points
    if hasattr(points, "parts"):
        parts: Sequence[Dataset] = points.parts
        return parts
    inner = getattr(points, "inner", None)
    return (inner,) if isinstance(inner, Dataset) else ()


def addresses_limited() -> bool:
    """Whether this process may have only so many bytes of addresses."""
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def require_addresses(need: float) -> None:
    """Raise UsageError when this process may not have so many bytes more, and what its libraries take: OpenBLAS, where it gets
    none, tries for ever, or ends the process, and lets no signal through.
    """
    if not addresses_limited():
        return
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    need += used_bytes()[0] + (320 << 20)  # that libraries take when they are first used, heaps of threads included
    need += (blas_threads() - 1) * (48 << 20)  # and each thread of the BLAS that SciPy brings, but the first
    if limit < need:
        raise UsageError(
            f"this process may have {format_bytes(limit)} of addresses (ulimit -v {limit >> 10}), it needs {enough(need)}: "
            f"set ulimit -v {math.ceil(need / 1024)} or more, or lower {spell('memory')}, or OPENBLAS_NUM_THREADS"
        )


def threads_that_fit(dataset: Dataset, memory: int, wanted: int) -> int:
    """Threads that the budget allows, at most ``wanted``; raises UsageError when not even one fits."""
    need = thread_bytes(dataset)
    require_addresses(need)
    if memory < need:
        raise UsageError(
            f"{spell('memory', enough(memory))} is too little for one block of {format_bytes(dataset.block_bytes)}: "
            f"at least {spell('memory', enough(need))} is needed"
        )
    return max(1, min(wanted, memory // need))


def cache_bytes(dataset: Dataset, memory: int, threads: int, *, worker: bool) -> int:
    """Bytes that a process may keep of blocks: the budget without buffers and a quarter for answers. Where a method lives there
    are more than a third for what it keeps and works on, too; of cones both are at least ``POINT_BYTES`` for each row.
    """
    if dataset.in_memory:
        return 0
    others = memory // 4 if worker else max(5 * memory // 8, POINT_BYTES * dataset.n * (not dataset.rows.scored_apart))
    return max(0, min(memory - others - threads * thread_bytes(dataset), dataset.bytes + dataset.sides_bytes))


def answer_bytes(memory: int) -> int:
    """What sums of a pass may take in all threads of a process: fewer threads answer about many long vectors."""
    return memory // 4


def require(dataset: Dataset, memory: int, threads: int) -> None:
    """Raise UsageError when the budget is too small for workers of so many threads."""
    threads_that_fit(dataset, memory, 1)
    need = threads * thread_bytes(dataset)
    if memory < need:
        raise UsageError(
            f"{spell('memory', enough(memory))} is too little for a worker of {threads} threads: "
            f"at least {spell('memory', enough(need))} is needed, or workers of fewer threads"
        )
