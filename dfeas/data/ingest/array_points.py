"""Points of an array whose shape is known, with labels that fit in memory, as the blocks of a dataset."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import scipy  # loads its parts when they are used

from dfeas.data.arrays import cast, stored_dtype
from dfeas.data.ingest.array_files import is_array, obs_labels, open_rows
from dfeas.data.ingest.sparse_files import CscRows
from dfeas.data.labels import KnownLabels, LabelMap, map_labels
from dfeas.data.storage.layout import SPARSE_BELOW, default_block_rows, sparse_block_rows
from dfeas.data.storage.limits import require_column, require_width
from dfeas.data.storage.places import place
from dfeas.data.storage.zarr_arrays import check_shape, open_labels
from dfeas.data.writers.dataset import Labelled
from dfeas.errors import BadInputError, UsageError
from dfeas.linalg.csr import tidied, with_data
from dfeas.linalg.points import Points


@dataclass(frozen=True)
class LabelsBeside:
    """Labels beside an array, and what they mean."""

    given: Any  # an array, or the name of a file, or of an array in the source
    column: str | None  # of obs
    positive: str | None
    classes: tuple[str, ...] | None  # of a dataset that has some already

    def __post_init__(self) -> None:
        if self.given is not None and self.column is not None:
            raise UsageError("--labels and --label-column: give one of them")

    def values(self, path: Any, n: int) -> Any:
        """The labels (n,) of the points at a place, in memory: at most some bytes a point, where points are hundreds."""
        if self.column is not None:
            return obs_labels(path, self.column)
        if self.given is not None and not isinstance(self.given, str | Path):
            return np.asarray(self.given)
        if is_array(path):
            if self.given is None:
                raise UsageError("an array has no labels beside its points; give labels, an array or a path")
            return open_labels(place(self.given))
        if self.given is not None and place(self.given).exists():
            return open_labels(place(self.given))
        return self._inside(path)

    def _inside(self, path: Any) -> Any:
        """Labels of a file that holds its points, too."""
        if path.suffix == ".npy" or path.is_dir():
            if self.given is None:
                raise UsageError(f"{path}: it has no labels beside the points; give --labels FILE")
            return open_labels(place(self.given))
        if path.suffix == ".h5ad" and self.given is None:
            raise UsageError(f"{path}: say which column of obs holds the labels with --label-column NAME")
        with open_rows(path, "y" if self.given is None else str(self.given)) as rows:
            if not rows.shape:
                raise BadInputError(f"{path}: the labels {self.given or 'y'} are not an array (n,)")
            require_column(prod(rows.shape) * rows.dtype.itemsize, f"labels of {path}")
            return rows[0 : rows.shape[0]]

    def mapping(self, values: Any, n: int, where: str) -> KnownLabels | LabelMap:
        """What becomes of them. Raises BadInputError for labels that cannot be used, or are not ``n``."""
        where, shape = f"labels of {where}", tuple(values.shape or ())
        if self.classes is None:
            return map_labels(values, n, self.positive, where, many=True)
        if shape not in ((n,), (n, 1)):
            raise BadInputError(f"{where}: expected {n} labels, one a point, got an array of shape {shape}")
        return KnownLabels(self.classes, where)


@dataclass(frozen=True)
class ArrayPoints:
    """Blocks of an array: rows as they are stored, and their labels."""

    rows: Any  # something with row slices; ``parallel`` says whether any thread may ask for any of them
    values: Any  # (n,) labels of the source
    mapping: KnownLabels | LabelMap
    n: int
    m: int
    dtype: np.dtype[Any]
    sparse: bool  # how they are stored
    block_rows: int
    notes: tuple[str, ...]  # what was cast, for the user

    @classmethod
    def of(cls, path: Any, rows: Any, labels: LabelsBeside, sparse: bool | None, block_rows: int | None) -> ArrayPoints:
        """Of open rows. Raises BadInputError for what is no array of points, or has other labels than one for each."""
        where = "the array" if is_array(path) else str(path)
        n, m = check_shape(rows.shape, where)
        dtype = stored_dtype(rows.dtype, where)
        if hasattr(rows, "entries"):
            require_width(m, dtype.itemsize, where, sparse=True)
        values = labels.values(path, n)
        mapping = labels.mapping(values, n, where)
        entries = getattr(rows, "entries", None)  # stored ones of a sparse source
        if sparse is None:
            sparse = entries is not None and entries < SPARSE_BELOW * n * m
        average = m if entries is None else max(1.0, entries / n)
        usual = sparse_block_rows(average, dtype.itemsize + 4, n) if sparse else default_block_rows(m, dtype.itemsize, n)
        notes = [f"{rows.dtype} cast to {dtype}"] if rows.dtype != dtype else []
        if (entries is not None) != sparse:
            notes.append(f"stored {'sparse' if sparse else 'dense'}, as {dtype}")
        if not sparse:
            require_width(m, dtype.itemsize, where)
        size = min(n, block_rows or usual)
        if isinstance(rows, CscRows):
            notes.append(f"CSC, entries by columns: read {rows.reads(size)} times; CSR would be read once")
        return cls(rows, values, mapping, n, m, dtype, sparse, size, tuple(notes))

    @property
    def parallel(self) -> bool:
        """Whether blocks may be made in any order, by several threads."""
        return bool(self.rows.parallel) and not self.sparse

    def __call__(self, index: int) -> Labelled:
        run = slice(index * self.block_rows, min(self.n, (index + 1) * self.block_rows))
        return stored_points(self.rows[run], self.sparse), self.mapping(np.asarray(self.values[run]).reshape(-1))


def stored_points(rows: Any, sparse: bool) -> Points:
    """A block as it is stored: an array, or a CSR matrix without zeros and with ascending indices, each once."""
    if isinstance(rows, np.ndarray):
        found = cast(np.ascontiguousarray(rows))
        return tidied(scipy.sparse.csr_array(found)) if sparse else found
    matrix = with_data(rows, cast(rows.data))
    return tidied(matrix) if sparse else np.asarray(matrix.toarray())
