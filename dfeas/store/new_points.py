"""New points of a dataset, cut into its blocks and cast to its type without rounding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy  # loads its parts when they are used
from numpy.typing import NDArray

from dfeas import csr
from dfeas.errors import BadInputError
from dfeas.passes.points import Points, is_dense, stacked
from dfeas.store.dataset import Dataset
from dfeas.store.filling import Labelled
from dfeas.store.reading import Buffers, Cost


def tail_of(old: Dataset, kept: int) -> Labelled:
    """Points and labels behind the first ``kept`` blocks: of a last block that is not full, verified, or none."""
    block = old.read(min(kept, old.blocks - 1), Buffers(), Cost())
    if kept == old.blocks:
        none = np.zeros(0, np.int64)
        return block.points[none], block.label[none]
    return block.points.copy(), block.label.copy()


def blocks_of(tail: Labelled, new: Dataset, rows: int, dtype: np.dtype[Any]) -> Iterator[Labelled]:
    """The tail and the new points in blocks of ``rows``, the last one shorter.

    Raises BadInputError for an entry that ``dtype`` does not hold exactly.
    """
    points, label = tail
    for block in new.read_blocks(range(new.blocks), Cost()):
        alike = block.points if is_dense(points) or not is_dense(block.points) else _sparse(block.points)
        points = stacked([points, exact(alike, dtype, block.start)])
        label = np.concatenate([label, block.label.astype(label.dtype)])
        while len(label) >= rows:
            yield _rows(points, slice(0, rows)), label[:rows]
            points, label = _rows(points, slice(rows, len(label))), label[rows:]
    if len(label):
        yield points, label


def _rows(points: Points, rows: slice) -> Points:
    return np.ascontiguousarray(points[rows]) if is_dense(points) else csr.rows_of(points, rows)


def _sparse(points: NDArray[Any]) -> Points:
    return csr.tidied(scipy.sparse.csr_array(points))


def exact(points: Points, dtype: np.dtype[Any], start: int) -> Points:
    """In another type. Raises BadInputError with the first entry that it does not hold, in points from ``start`` on."""
    stored = points if is_dense(points) else points.data
    with np.errstate(over="ignore"):
        cast = stored.astype(dtype)
    if not np.array_equal(cast, stored):
        at = tuple(int(place[0]) for place in np.nonzero(cast != stored))
        row, feature = at if is_dense(points) else (int(csr.row_numbers(points)[at[0]]), int(points.indices[at[0]]))
        raise BadInputError(
            f"point {start + row} feature {feature} of the new points: {stored[at]!r} is not exact "
            f"in {dtype.name}, the type of the dataset; round it first, or ingest all again"
        )
    return cast if is_dense(points) else csr.with_data(points, cast)
