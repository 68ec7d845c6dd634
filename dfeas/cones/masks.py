"""The cones of a dataset that a mask keeps, as a dataset."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.cones.product import Placing, Product, RowsOfCones
from dfeas.data.dataset import Dataset, array_reader
from dfeas.data.storage.layout import PADDING, chunks_together, codes_of, kind_of
from dfeas.data.subsets import SubsetReader, all_of, open_mask, subset_of
from dfeas.errors import BadInputError, UsageError


def pick_cones(dataset: Dataset, mask: Any) -> Dataset:
    """The cones that a mask keeps, placed in chunks of the same rows, which other rows of zeros may fill up."""
    if dataset.program is not None:
        raise UsageError("a mask is for rows of cones: of A, b and cones give those that are to count")
    assert dataset.stored_norms is not None, "norms of cones come with them"
    stored = np.concatenate(list(all_of(dataset, dataset.labels)))
    product, kept = _cones_kept(mask, stored, dataset.where)
    placing = Placing(product, min(dataset.chunk_rows, product.table.rows))
    together = chunks_together(placing.block_rows, dataset.block_rows, placing.n)
    block_rows = together * placing.block_rows
    some = placing.source >= 0
    rows, numbers, norm = np.full(placing.n, -1, np.int64), np.full(placing.n, -1, np.int64), np.ones(placing.n)
    rows[some], numbers[some] = np.flatnonzero(stored != PADDING)[kept], kept
    norm[some] = np.concatenate(list(all_of(dataset, dataset.stored_norms)))[rows[some]]
    return subset_of(
        SubsetReader((dataset,), np.array([0, dataset.n]), rows, placing.n, block_rows),
        placing.label,
        where=dataset.where,
        together=together,
        stored_norms=array_reader("norm", norm, block_rows),
        numbers=numbers,
        features=dataset.features,
        rows=RowsOfCones(product.table),
    )


def _cones_kept(mask: Any, label: NDArray[Any], where: str) -> tuple[Product, NDArray[np.int64]]:
    """The cones of the codes (n,) of some rows that a mask keeps, and their rows (r,), counted without padding. The mask has an
    entry for each cone, or one for each of their rows. Raises BadInputError where it keeps a part of one.
    """
    starts, row_number = codes_of(label), np.cumsum(label != PADDING) - 1
    codes, first = label[starts], row_number[starts]
    rows = int(row_number[-1]) + 1
    values, size = open_mask(mask, "cone", where, len(starts), rows), np.diff(np.append(first, rows))
    if len(values) == rows:
        kept = np.add.reduceat(values, first, dtype=np.int64)
        cut = (kept > 0) & (kept < size)
        if cut.any():
            i = int(cut.argmax())
            kind, order = kind_of(int(codes[i]))
            raise BadInputError(
                f"the mask cuts the cone {kind} {order} at row {first[i]} of {where}: it keeps {kept[i]} of its {size[i]} "
                "rows; keep all rows of a cone, or none"
            )
        values = kept > 0
    return Product.from_codes(codes[values]), np.flatnonzero(np.repeat(values, size))
