"""Ingest: any source of rows becomes a dataset, streaming, in memory that does not depend on n."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.errors import BadInputError, UsageError
from dfeas.store.labels import map_labels
from dfeas.store.layout import Header, default_block_rows
from dfeas.store.numbers import cast, stored_dtype
from dfeas.store.opening import check_shape, open_labels
from dfeas.store.sources import open_rows
from dfeas.store.writing import DatasetWriter, writer

IN_FLIGHT = 4
"""Blocks that may wait to be written."""

Progress = Callable[[int, int], None]  # (points done, points in all)


def ingest(
    src: str | Path,
    out: str | Path,
    *,
    points: str = "X",
    labels: str | None = None,
    positive: str | None = None,
    block_rows: int | None = None,
    progress: Progress | None = None,
) -> Header:
    """Write the dataset OUT from a .npy, .npz, HDF5 file or a zarr array.

    ``labels`` is a path, or the name of an array in SRC (default ``y`` in .npz and HDF5). Raises BadInputError or
    CorruptDataError for what cannot be used, UsageError when OUT exists; nothing is left of OUT then.
    """
    path = Path(src)
    with open_rows(path, points) as rows:
        n, m = check_shape(rows.shape, str(path))
        dtype = stored_dtype(rows.dtype, str(path))
        values = _labels(path, labels, n)
        mapping = map_labels(values, n, positive, f"labels of {path}")
        if block_rows is not None and block_rows < 1:
            raise UsageError(f"block_rows {block_rows}: expected at least 1")
        size = min(n, block_rows or default_block_rows(m, dtype.itemsize, n))
        with writer(Path(out), n, m, dtype, size) as target:

            def block(index: int) -> tuple[NDArray[Any], NDArray[np.int8]]:
                run = slice(index * size, min(n, (index + 1) * size))
                return cast(np.ascontiguousarray(rows[run])), mapping(np.asarray(values[run]).reshape(-1))

            fill(target, block, ordered=True, progress=progress)
            return target.finish(mapping.classes)


def _labels(path: Path, labels: str | None, n: int) -> Any:
    """The label array, in memory: at most some bytes a point, where points are hundreds."""
    if labels is not None and Path(labels).exists():
        return open_labels(Path(labels))
    if path.suffix == ".npy" or path.is_dir():
        if labels is None:
            raise UsageError(f"{path}: it has no labels beside the points; give --labels FILE")
        return open_labels(Path(labels))
    with open_rows(path, labels or "y") as rows:
        if not rows.shape:
            raise BadInputError(f"{path}: the labels {labels or 'y'} are not an array (n,)")
        return rows[0 : rows.shape[0]]


def fill(
    target: DatasetWriter,
    block: Callable[[int], tuple[NDArray[Any], NDArray[np.int8]]],
    *,
    ordered: bool,
    progress: Progress | None = None,
) -> None:
    """Write all blocks. Making a block happens in order in this thread when ``ordered``, else in the writing threads."""
    with ThreadPoolExecutor(2, "dfeas-write") as pool:
        waiting: list[Future[None]] = []

        def settle(most: int) -> None:
            while len(waiting) > most:
                waiting.pop(0).result()
                if progress is not None:
                    progress(min(target.n, (done - len(waiting)) * target.block_rows), target.n)

        try:
            for index in range(target.blocks):
                if ordered:
                    waiting.append(pool.submit(target.write, index, *block(index)))
                else:
                    waiting.append(pool.submit(lambda i: target.write(i, *block(i)), index))
                done = index + 1
                settle(IN_FLIGHT)
            settle(0)
        except BaseException:
            for future in waiting:
                future.cancel()
            raise
