"""A block as it is stored, and whether all of them are the data of a fingerprint."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import crc32c
import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them
from numpy.typing import NDArray

from dfeas.data.dataset import Dataset
from dfeas.errors import CheckFailedError, CorruptDataError
from dfeas.verify.points import Checked, DensePoints, SparsePoints
from dfeas.verify.transform import Seen

PIECE_BYTES = 2 << 20


@dataclass(frozen=True)
class Stored:
    """A block as it is stored, or as it is seen from a point."""

    where: str
    start: int
    points: Any  # (b, m), an array or a CSR matrix
    label: NDArray[Any]  # (b,)
    intercept: bool
    origin: tuple[NDArray[Any], NDArray[np.float64]] | None  # points (b, m) as stored, and the one (m,) that they are seen from
    seen: Seen | None = None  # what is applied to the points
    length: float | None = None  # what all points are divided by; None: each by its own length

    @property
    def dense(self) -> bool:
        """Whether the points are an array."""
        return isinstance(self.points, np.ndarray)

    @property
    def size(self) -> int:
        return int(self.points.shape[0])

    def piece(self, dimension: int) -> int:
        """Points that are looked at at a time."""
        return max(1, PIECE_BYTES // (8 * dimension)) if self.dense else max(1, self.size)

    @property
    def roundings(self) -> int:
        """Of an entry: that of a difference, and with a transform of a product, too."""
        return 1 if self.seen is None else 2

    def nonzero(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of some points are not zero."""
        if self.seen is None or self.intercept:
            return self.wide(rows).nonzero()
        return self.seen.nonzero(self.points[rows])

    def wide(self, rows: NDArray[np.int64]) -> Checked:
        """Some points in float64, with the intercept. Raises CheckFailedError when one is not finite."""
        return self._checked(self.points[rows] if self.seen is None else self.seen(self.points[rows]))

    def plain(self, rows: NDArray[np.int64]) -> Checked:
        """The same without the transform."""
        return self._checked(self.points[rows])

    def _checked(self, points: Any) -> Checked:
        rows = range(points.shape[0])
        if not self.dense:
            points = points.astype(np.float64)
            if not np.isfinite(points.data).all():
                raise CheckFailedError(f"{self.where}: a point from {self.start} on is not finite; nothing can be proved")
            if self.intercept:
                points = scipy.sparse.hstack([points, scipy.sparse.csr_array(np.ones((len(rows), 1)))], format="csr")
            return SparsePoints(points)
        stored, points = points, np.ones((len(rows), self.points.shape[1] + self.intercept))
        points[:, : self.points.shape[1]] = stored
        with np.errstate(over="ignore", invalid="ignore"):
            suspect = not np.isfinite(points.sum())  # as it is with any entry that is not finite
        if suspect and not np.isfinite(points).all():
            raise CheckFailedError(f"{self.where}: a point from {self.start} on is not finite; nothing can be proved")
        return DensePoints(points)


def crc(points: Any) -> int:
    """crc32c of the entries in C order; of a CSR matrix indptr (as int64), indices and data follow each other."""
    dense, found = isinstance(points, np.ndarray), 0
    for array in (points,) if dense else (points.indptr.astype(np.int64), points.indices, points.data):
        found = int(crc32c.crc32c(np.ascontiguousarray(array).reshape(-1).view(np.uint8), found))
    return found


def compare(dataset: Dataset, checksums: list[tuple[int, int]], fingerprint: str, view: str = "") -> None:
    """Raise CorruptDataError when the checksums of all blocks do not make the fingerprint of the data as it is seen.

    Which block is not what its ingest wrote is said where that is known.
    """
    dtype = (dataset.stored or dataset).dtype.name
    head = {"format": 1, "n": dataset.n, "m": dataset.m, "dtype": dtype, "block_rows": dataset.block_rows}
    digest = hashlib.sha256(json.dumps(head, sort_keys=True).encode())
    for pair in checksums:
        for each in pair:
            digest.update(each.to_bytes(4, "little"))
    mark = digest.hexdigest()
    if view:
        mark = hashlib.sha256(f"{mark} {view}".encode()).hexdigest()
    if mark != fingerprint:
        if dataset.header is not None and dataset.expected is not None:
            _refuse_damaged(dataset.where, checksums, dataset.expected.tolist())
        raise CorruptDataError(
            f"{dataset.where}: the data is not what the certificate was made for "
            f"(fingerprint {mark[:12]}, certificate {fingerprint[:12]})"
        )


def _refuse_damaged(where: str, checksums: list[tuple[int, int]], expected: list[list[int]]) -> None:
    """Raise CorruptDataError for the first chunk whose checksum is another one."""
    for index, (found, wanted) in enumerate(zip(checksums, expected, strict=True)):
        for name, now, was in zip(("X", "label"), found, wanted, strict=False):
            if now != was:
                sums = f"crc32c {now:08x}, expected {was:08x}"
                raise CorruptDataError(f"{where}: chunk {index} of {name} is damaged ({sums}); restore or ingest again")
