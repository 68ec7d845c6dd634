"""Points as they are seen after centring and scaling of their features: formed when a block is read. Nothing is written anew.

z = (x - shift) * factor in float64: an entry has one rounding of the difference and one of the product.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas import csr
from dfeas.errors import CorruptDataError
from dfeas.passes.points import Points, is_dense
from dfeas.store.dataset import Dataset
from dfeas.store.layout import seen_fingerprint
from dfeas.store.reading import Buffers, Cost
from dfeas.store.sparse import Entries
from dfeas.store.transform import Transform, said, seen_as
from dfeas.store.view import OfDataset

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Transformed(OfDataset):
    """A reader of z, in float64."""

    shift: Floats | None  # (m,)
    factor: Floats | None  # (m,)

    def read(self, index: int, buffers: Buffers) -> Points:
        """Transformed points of a block."""
        stored = self.inner.read(index, buffers, Cost()).points
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # the survey refuses what is not finite
            if not is_dense(stored):
                assert self.factor is not None, "sparse points are scaled, not centred"
                return csr.with_data(stored, stored.data * self.factor[stored.indices])
            seen = buffers.take("transformed", stored.size * 8).view(np.float64).reshape(stored.shape)
            if self.shift is not None:
                np.subtract(stored, self.shift, out=seen, dtype=np.float64)
                return seen if self.factor is None else np.multiply(seen, self.factor, out=seen)
            assert self.factor is not None, "something changes"
            return np.multiply(stored, self.factor, out=seen, dtype=np.float64)


def transformed(dataset: Dataset, transform: Transform) -> Dataset:
    """The same points seen so; its fingerprint is that of the stored points and of the numbers.

    Raises CorruptDataError when the numbers are for another number of features, or of points.
    """
    m = dataset.m
    if {len(transform.shift), len(transform.factor)} - {0, m} or not 0 < transform.points <= dataset.n:
        raise CorruptDataError(
            f"{dataset.where}: {dataset.n} points of {m} features, the transform is one of {transform.points} points of "
            f"{max(len(transform.shift), len(transform.factor))}"
        )
    positive = seen_as(dataset.view)[0]
    view, mark = said(positive, transform), dataset.mark or dataset.fingerprint
    known: dict[str, Any] = {"view": view, "mark": mark, "fingerprint": seen_fingerprint(mark, view) if mark else ""}
    known["transform"] = transform
    if not transform.features:
        return replace(dataset.apart(), **known)
    shift = np.array(transform.shift) if transform.shift else None
    factor = np.array(transform.factor) if transform.factor else None
    entries = dataset.entries
    if entries is not None:
        more = 8 - dataset.dtype.itemsize
        bytes_of_all = entries.bytes + int(entries.offsets[-1]) * more
        entries = Entries(entries.offsets, bytes_of_all, entries.block_bytes + int(np.diff(entries.offsets).max()) * more)
    inner = dataset.apart()
    return replace(
        inner.apart(),
        **known,
        dtype=np.dtype(np.float64),
        points=Transformed(inner, shift, factor),
        stored_norms=None,
        header=None,
        expected=None,
        entries=entries,
        stored=inner,
    )
