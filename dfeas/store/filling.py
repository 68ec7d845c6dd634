"""Filling a dataset: threads that write its blocks while others are made, few of them waiting at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from dfeas.passes.points import Points
from dfeas.store.writing import DatasetWriter

WRITERS = 2
IN_FLIGHT = 4
"""Blocks that may wait to be written."""

DISTANT_WRITERS = 12
"""Threads that write to an object store: each waits for its requests most of the time."""

Progress = Callable[[int, int], None]  # (points done, points in all, as far as is known; the same at the end only)
Labelled = tuple[Points, NDArray[Any]]
"""Points of a block, and their labels as they are stored."""


def fill(target: DatasetWriter, block: Callable[[int], Labelled], progress: Progress | None = None) -> None:
    """Write all blocks, each made in the writing threads."""
    with _writing(target, _telling(progress, target.n)) as submit:
        for index in range(target.blocks):
            submit(lambda i: target.write(i, *block(i)), index)


def fill_in_order(target: DatasetWriter, block: Callable[[int], Labelled], progress: Progress | None = None) -> None:
    """Write all blocks, which are made in this thread, one after the other."""
    write_in_order(target, map(block, range(target.blocks)), _telling(progress, target.n))


def write_in_order(target: DatasetWriter, made: Iterable[Labelled], told: Callable[[int], None]) -> None:
    """Write blocks that are made in this thread; ``told`` hears how many points are written."""
    with _writing(target, told) as submit:
        for index, (points, label) in enumerate(made):
            submit(target.write, index, points, label)


def _telling(progress: Progress | None, n: int) -> Callable[[int], None]:
    """Tells the progress towards n points."""
    return (lambda done: None) if progress is None else (lambda done: progress(done, n))


@contextmanager
def _writing(target: DatasetWriter, told: Callable[[int], None]) -> Iterator[Callable[..., None]]:
    """Threads that write what is submitted; ``told`` hears how many points are written. All of it is, at the end."""
    threads, most = (WRITERS, IN_FLIGHT) if isinstance(target.path, Path) else (DISTANT_WRITERS, 2 * DISTANT_WRITERS)
    with ThreadPoolExecutor(threads, "dfeas-write") as pool:
        waiting: deque[Future[None]] = deque()
        given = 0

        def settle(most: int) -> None:
            while len(waiting) > most:
                waiting.popleft().result()
                told(min(target.n, (given - len(waiting)) * target.block_rows))

        def submit(work: Callable[..., None], *words: Any) -> None:
            nonlocal given
            waiting.append(pool.submit(work, *words))
            given += 1
            settle(most)

        try:
            yield submit
            settle(0)
        except BaseException:
            for future in waiting:
                future.cancel()
            raise
