"""A dataset from any reader of points and any label array; points seen from a point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.errors import BadInputError
from dfeas.store.dataset import Dataset
from dfeas.store.labels import LabelMap, map_labels
from dfeas.store.reading import PointReader, SliceReader
from dfeas.store.seen_from import SeenFrom
from dfeas.store.source import Source


def mapped(labels: Any, n: int, source: Source, where: str) -> tuple[LabelMap, NDArray[Any]]:
    """Labels (n,) in memory: one byte a point, or two."""
    mapping = map_labels(labels, n, None if source.many else source.positive, f"labels of {where}", source.many)
    label = np.empty(n, mapping.dtype)
    for first in range(0, n, 1 << 20):
        label[first : first + (1 << 20)] = mapping(np.asarray(labels[first : first + (1 << 20)]).reshape(-1))
    return mapping, label


def assemble(
    where: str, points: PointReader, n: int, m: int, dtype: np.dtype[Any], block_rows: int, labels: Any, source: Source
) -> Dataset:
    """A dataset from any reader of points and any label array; without labels every label is +1."""
    classes: tuple[str, ...] = ()
    if labels is None:
        signs = np.ones(n, np.int8)
    else:
        mapping, signs = mapped(labels, n, source, where)
        classes = mapping.classes
    return Dataset(
        where=where,
        n=n,
        m=m,
        dtype=dtype,
        block_rows=block_rows,
        points=points,
        labels=SliceReader("label", signs, n, block_rows, signs.dtype, overlaps=True),
        stored_norms=None,
        classes=classes,
        intercept=source.intercept,
    )


def seen_from(dataset: Dataset, point: Sequence[float]) -> Dataset:
    """The points x_j as differences x_j - p, all with label +1. Raises BadInputError when p has another number of features."""
    p = np.asarray(point, np.float64)
    if p.shape != (dataset.m,) or not np.isfinite(p).all():
        raise BadInputError(f"the point has {p.size} entries, expected {dataset.m} that are finite, as {dataset.where} has")
    reader = SeenFrom(dataset, p)
    source = Source(dataset.where, point=tuple(p.tolist()))
    return assemble(dataset.where, reader, dataset.n, dataset.m, np.dtype(np.float64), dataset.block_rows, None, source)
