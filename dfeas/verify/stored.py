"""Data as the checker sees it: blocks as they are stored, what labels mean, points in float64, and whether all blocks together
are the data of a fingerprint. Shares nothing with passes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import crc32c
import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them
from numpy.typing import NDArray

from dfeas.data.storage.files import parsed
from dfeas.data.storage.readers import Buffers, PointReader, RowReader, Stop, unless_stopped
from dfeas.data.storage.sparse_readers import Entries
from dfeas.errors import CheckFailedError, CorruptDataError
from dfeas.verify.certificate import Certificate
from dfeas.verify.transform import Seen

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

AHEAD = 8
"""Blocks that the kernel is asked to read ahead."""
PIECE_BYTES = 2 << 20
NARROW_ROWS = 64
"""Sparse points that are looked at without the features that none of them has."""
SHOWN = 120
"""Characters of a view in a message."""


class Data(Protocol):
    """What the checker is given: readers of what is stored, and what is said of it. All else it computes itself."""

    where: str  # how messages call it
    n: int
    m: int  # features as stored, without the intercept
    dtype: np.dtype[Any]
    block_rows: int
    points: PointReader
    labels: RowReader
    classes: tuple[str, ...]  # (negative, positive), or all in the order of their codes
    positive: int | None  # the label that counts as +1, all others as -1; None: as they are
    intercept: bool
    expected: NDArray[np.uint32] | None  # (blocks, 3) checksums of X, label, norm; of a survey (blocks, 2)
    entries: Entries | None  # of sparse points
    header: Any  # of a dataset that dfeas wrote; None of others

    @property
    def kind(self) -> str:
        """What its rows make: "points" or "cones"."""

    @property
    def view(self) -> str:
        """What certificates say of it."""

    @property
    def stored(self) -> Data | None:
        """The points as they are stored, where features are transformed."""


@runtime_checkable
class Translated(Protocol):
    """A reader of points as they are seen from one of their space."""

    point: Floats  # (m,)

    def stored(self, index: int, buffers: Buffers) -> NDArray[Any]:
        """Rows of a block as they are stored."""


def point_of(data: Data) -> Floats | None:
    """The point (m,) that all are seen from, if there is one."""
    return data.points.point if isinstance(data.points, Translated) else None


@dataclass(frozen=True)
class Block:
    """A block as it was read."""

    index: int
    start: int  # number of its first point
    plain: Any  # (b, m) an array or a CSR matrix, as stored
    points: Any  # the same, or their differences from the point that they are seen from
    label: NDArray[Any]  # (b,) as stored
    checksums: tuple[int, int]  # of points and labels


def read(data: Data, index: int, buffers: Buffers, points: PointReader | None = None) -> Block:
    """A block; it may lie in buffers. ``points`` are those of the data, unless others are given."""
    if isinstance(data.points, Translated):
        plain: Any = data.points.stored(index, buffers)
        stored: Any = buffers.take("differences", plain.size * 8).view(np.float64).reshape(plain.shape)
        np.subtract(plain, data.points.point, out=stored, dtype=np.float64)
    else:
        plain = stored = (points or data.points).read(index, buffers)
    label = data.labels.read(index, buffers)
    return Block(index, index * data.block_rows, plain, stored, label, (crc(stored), crc(label)))


def blocks(data: Data, first: int, stop: int, stopped: Stop | None, points: PointReader | None = None) -> Iterator[Block]:
    """Blocks first .. stop-1, each in the memory of the one before it."""
    buffers = Buffers()
    for index in unless_stopped(range(first, stop), stopped):
        if index + AHEAD < stop:
            data.points.advise(index + AHEAD)
        yield read(data, index, buffers, points)


def code_of(data: Data, certificate: Certificate) -> int | None:
    """The label that counts as +1 for a certificate; None: labels are signs. Raises CheckFailedError when it is not said."""
    if certificate.view == data.view:
        if len(data.classes) > 2 and data.positive is None:
            raise CheckFailedError(f"{data.where}: it has {len(data.classes)} classes, the certificate names none")
        return data.positive
    try:
        view = parsed(certificate.view, {"positive": str})
        place = data.classes.index(view.pop("positive"))
        if data.positive is not None or view != parsed(data.view or "{}"):
            raise LookupError
        return (-1, 1)[place] if len(data.classes) == 2 else place
    except (ValueError, LookupError):
        seen, meant = (view[:SHOWN] or "nothing but its labels" for view in (data.view, certificate.view))
        raise CheckFailedError(f"{data.where}: it is seen with {seen}, the certificate with {meant}") from None


def signs_of(label: NDArray[Any], code: int | None) -> NDArray[np.int8]:
    """Labels (b,) as -1 and +1, the latter where they are the code; without one 0 where they are neither."""
    if code is not None:
        return np.asarray((label == code).view(np.int8) * np.int8(2) - np.int8(1))
    return np.asarray(label * (np.abs(label) == 1), np.int8)


def require_signs(signs: bool, where: str) -> None:
    """Raise CheckFailedError when not all labels are signs."""
    if not signs:
        raise CheckFailedError(f"{where}: a label is neither -1 nor +1; nothing can be proved")


def require_support(support: Rows, n: int, what: str = "points") -> None:
    """Raise CheckFailedError unless these are numbers of points, ascending."""
    if support.ndim != 1 or not len(support) or (support[1:] <= support[:-1]).any() or support[0] < 0 or support[-1] >= n:
        raise CheckFailedError(f"the support is not an ascending list of {what} below {n}")


@dataclass(frozen=True)
class Wide:
    """Some points (r, d) in float64. What a CSR matrix does not store is zero and adds nothing to a sum, rounding neither."""

    points: Any  # an array, or a CSR matrix

    @property
    def dense(self) -> bool:
        return isinstance(self.points, np.ndarray)

    @property
    def size(self) -> int:
        return int(self.points.shape[0])

    @property
    def terms(self) -> int:
        """Terms of a product with one, at most."""
        return int(self.points.shape[1] if self.dense else np.diff(self.points.indptr).max(initial=0))

    def score(self, y: Floats) -> Floats:
        """Products (r,) with y (d,)."""
        return np.asarray(self.points @ y)

    def magnitude(self, rows: Rows, y: Floats) -> Floats:
        """Products (s,) of magnitudes, |x|'|y|, of some rows."""
        return np.asarray(abs(self.points[rows]) @ np.abs(y))

    def _like(self, data: Floats) -> Any:
        return scipy.sparse.csr_array((data, self.points.indices, self.points.indptr), shape=self.points.shape)

    def row_sums(self, data: Floats) -> Floats:
        """Sums (r,) of numbers in the places of what a CSR matrix stores."""
        return np.asarray(self._like(data) @ np.ones(self.points.shape[1]))

    def squares(self) -> Floats:
        """Of Euclidean norms (r,)."""
        return np.einsum("ij,ij->i", self.points, self.points) if self.dense else self.row_sums(self.points.data**2)

    def norm(self) -> Floats:
        """Euclidean norms (r,)."""
        return np.asarray(np.sqrt(self.squares()))

    def nonzero(self) -> NDArray[np.bool_]:
        """Which points (r,) are not zero."""
        if self.dense:
            return np.asarray(self.points.any(axis=1))
        return np.asarray(self.row_sums((self.points.data != 0).astype(np.float64)) > 0)

    def sums(self, factor: Floats) -> tuple[Floats, Floats]:
        """sum_j factor_j x_j and sum_j |factor_j| |x_j|, (d,) each."""
        if self.dense:
            return factor @ self.points, np.abs(factor) @ np.abs(self.points)
        return self.points.T @ factor, abs(self.points).T @ np.abs(factor)

    def scaled(self, factor: Floats) -> Any:
        """Points times factors (r,), as an array or a sparse matrix."""
        if self.dense:
            return self.points * factor[:, None]
        return self._like(self.points.data * np.repeat(factor, np.diff(self.points.indptr)))

    def narrow(self, rows: Rows, y: Floats) -> Iterator[tuple[Floats, Floats]]:
        """Some rows in pieces: points (s, u), y (u,) with the features that matter to them."""
        if self.dense:
            yield self.points[rows], y
            return
        for first in range(0, len(rows), NARROW_ROWS):
            points, used = without_zeros(self.points[rows[first : first + NARROW_ROWS]])
            yield points.toarray(), y[used]


def without_zeros(points: Any) -> tuple[Any, Rows]:
    """A CSR matrix without the features that no point has, and those that are left; one stays in any case."""
    used, place = np.unique(points.indices, return_inverse=True)
    if not len(used):
        used = np.zeros(1, np.int64)
    shape = (points.shape[0], len(used))
    return scipy.sparse.csr_array((points.data, place.reshape(-1), points.indptr), shape=shape), used


@dataclass(frozen=True)
class Stored:
    """A block with the labels that one certificate means."""

    where: str
    start: int
    points: Any  # (b, m) an array or a CSR matrix: as stored, or as seen from a point
    label: NDArray[Any]  # (b,)
    intercept: bool
    origin: tuple[NDArray[Any], Floats] | None  # points (b, m) as stored, and the one (m,) that they are seen from
    seen: Seen | None = None  # what is applied to the points
    length: float | None = None  # what all points are divided by; None: each by its own length

    @property
    def size(self) -> int:
        return int(self.points.shape[0])

    def piece(self, dimension: int) -> int:
        """Points that are looked at at a time."""
        return max(1, PIECE_BYTES // (8 * dimension)) if isinstance(self.points, np.ndarray) else max(1, self.size)

    @property
    def roundings(self) -> int:
        """Of an entry: that of a difference, and with a transform of a product, too."""
        return 1 if self.seen is None else 2

    def nonzero(self, rows: Rows) -> NDArray[np.bool_]:
        """Which of some points are not zero."""
        if self.seen is None or self.intercept:
            return self.wide(rows).nonzero()
        return self.seen.nonzero(self.points[rows])

    def wide(self, rows: Rows) -> Wide:
        """Some points in float64, with the intercept. Raises CheckFailedError when one is not finite."""
        return self._checked(self.points[rows] if self.seen is None else self.seen(self.points[rows]))

    def plain(self, rows: Rows) -> Wide:
        """The same without the transform."""
        return self._checked(self.points[rows])

    def _checked(self, points: Any) -> Wide:
        count, m = points.shape
        if isinstance(points, np.ndarray):
            stored, points = points, np.ones((count, m + self.intercept))
            points[:, :m] = stored
            with np.errstate(over="ignore", invalid="ignore"):
                finite = bool(np.isfinite(points.sum()))  # as it is not with any entry that is not finite
            finite = finite or bool(np.isfinite(points).all())
        else:
            points = points.astype(np.float64)
            finite = bool(np.isfinite(points.data).all())
            if self.intercept:
                points = scipy.sparse.hstack([points, scipy.sparse.csr_array(np.ones((count, 1)))], format="csr")
        if not finite:
            raise CheckFailedError(f"{self.where}: a point from {self.start} on is not finite; nothing can be proved")
        return Wide(points)


def crc(points: Any) -> int:
    """crc32c of the entries in C order; of a CSR matrix indptr (as int64), indices and data follow each other."""
    dense, found = isinstance(points, np.ndarray), 0
    for array in (points,) if dense else (points.indptr.astype(np.int64), points.indices, points.data):
        found = int(crc32c.crc32c(np.ascontiguousarray(array).reshape(-1).view(np.uint8), found))
    return found


def compare(data: Data, checksums: list[tuple[int, int]], fingerprint: str, view: str = "") -> None:
    """Raise CorruptDataError when the checksums of all blocks do not make the fingerprint of the data as it is seen.

    Which block is not what its ingest wrote is said where that is known.
    """
    dtype = (data.stored or data).dtype.name
    head = {"format": 1, "n": data.n, "m": data.m, "dtype": dtype, "block_rows": data.block_rows}
    digest = hashlib.sha256(json.dumps(head, sort_keys=True).encode())
    for pair in checksums:
        for each in pair:
            digest.update(each.to_bytes(4, "little"))
    mark = digest.hexdigest()
    if view:
        mark = hashlib.sha256(f"{mark} {view}".encode()).hexdigest()
    if mark == fingerprint:
        return
    if data.header is not None and data.expected is not None:
        for index, (pair, wanted) in enumerate(zip(checksums, data.expected.tolist(), strict=True)):
            for name, now, was in zip(("X", "label"), pair, wanted, strict=False):
                if now != was:
                    sums = f"crc32c {now:08x}, expected {was:08x}"
                    text = f"{data.where}: chunk {index} of {name} is damaged ({sums}); restore or ingest again"
                    raise CorruptDataError(text)
    raise CorruptDataError(
        f"{data.where}: the data is not what the certificate was made for "
        f"(fingerprint {mark[:12]}, certificate {fingerprint[:12]})"
    )
