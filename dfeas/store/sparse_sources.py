"""CSR matrices in .npz files of SciPy and in HDF5 in the AnnData layout: rows by consecutive slices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from dfeas.errors import BadInputError, CorruptDataError
from dfeas.store.limits import require_entries
from dfeas.store.sparse import block_of, sparse_shape

if TYPE_CHECKING:
    from scipy.sparse import csr_array

PARTS = ("data", "indices", "indptr")
"""Arrays of a CSR matrix."""


class SparseRows:
    """Rows of a CSR matrix by slices; of ``indptr`` what a slice needs is read with it, if any part of it can be."""

    parallel = False

    def __init__(self, parts: dict[str, Any], shape: Any, where: str) -> None:
        self._where, self._data, self._indices = where, parts["data"], parts["indices"]
        n, m = sparse_shape(shape, where)
        self.shape, self.dtype = (n, m), parts["data"].dtype
        self._indptr = parts["indptr"]
        if self._indptr.shape != (n + 1,) or {self._indptr.dtype.kind, self._indices.dtype.kind} - {"i", "u"}:
            raise self._unfit()
        self.entries = int(self._indptr[n : n + 1][0])
        if self._indptr[0:1][0] != 0 or (self._data.shape, self._indices.shape) != ((self.entries,), (self.entries,)):
            raise self._unfit()

    def _unfit(self) -> CorruptDataError:
        n, m = self.shape
        return CorruptDataError(f"{self._where}: not a CSR matrix of shape {n} x {m}: indptr, indices and data do not fit")

    def __getitem__(self, rows: slice) -> csr_array:
        first, stop, _ = rows.indices(self.shape[0])
        indptr = np.asarray(self._indptr[first : stop + 1]).astype(np.int64)
        if (np.diff(indptr) < 0).any() or indptr[0] < 0 or indptr[-1] > self.entries:
            raise self._unfit()
        require_entries(int(indptr[-1] - indptr[0]), self.dtype.itemsize, self._where)
        here = slice(int(indptr[0]), int(indptr[-1]))
        data, indices = np.asarray(self._data[here]), np.asarray(self._indices[here])
        bad = np.flatnonzero((indices < 0) | (indices >= self.shape[1]))
        if len(bad):
            point = first + int(np.searchsorted(indptr - indptr[0], bad[0], side="right")) - 1
            raise BadInputError(
                f"{self._where}: point {point} has an entry in feature {indices[bad[0]]}, expected 0 .. {self.shape[1] - 1}"
            )
        return block_of(data, indices, indptr - indptr[0], self.shape[1])


def in_memory(matrix: Any) -> SparseRows:
    """Of any sparse matrix of SciPy."""
    rows = matrix.tocsr()
    return SparseRows({part: getattr(rows, part) for part in PARTS}, rows.shape, "the matrix")


def of_scipy(members: list[str]) -> bool:
    """Whether the members of an .npz file are those of ``scipy.sparse.save_npz``."""
    return {"format", "shape"} <= set(members)


def require_rows(kind: str, where: str) -> None:
    """Raise BadInputError for a layout that is not read by rows."""
    if kind not in ("csr", "csc"):
        raise BadInputError(f"{where}: a sparse matrix of kind {kind}; CSR and CSC are read: save X.tocsr()")


def kind_and_shape(archive: Any) -> tuple[str, NDArray[Any]]:
    """Of the matrix in an .npz file of SciPy."""
    with archive.open("format.npy") as stream:
        kind = npy.read_array(stream, allow_pickle=False).item()
    with archive.open("shape.npy") as stream:
        shape = npy.read_array(stream, allow_pickle=False)
    return (kind.decode() if isinstance(kind, bytes) else str(kind)), shape
