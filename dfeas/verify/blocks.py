"""Data as the checker reads it: blocks as they are stored, what labels mean, and whether all together are the data of a
fingerprint. Shares nothing with passes.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeGuard

import numpy as np
from fastcrc.crc32 import iscsi as crc32c
from msgspec import Struct
from numpy.typing import NDArray

from dfeas.data.storage.features import difference
from dfeas.data.storage.files import parse_json
from dfeas.data.storage.patience import once_more
from dfeas.data.storage.readers import Buffers, PointReader, RowReader, Stop, unless_stopped
from dfeas.data.storage.scratch import is_mapped, pieces
from dfeas.data.storage.sparse_readers import Entries
from dfeas.errors import CheckFailedError, CorruptDataError
from dfeas.exact.arithmetic import Floats, Indices
from dfeas.verify.certificate import Certificate

AHEAD, SHOWN = 8, 120
"""Blocks that the kernel is asked to read ahead, and characters of a view in messages."""


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
    expected: NDArray[np.uint32] | None  # (chunks, 3) checksums of X, label, norm; of a survey (chunks, 2)
    entries: Entries | None  # of sparse points
    features: tuple[str, ...]  # names of the features; empty where there are none
    numbers: Any  # (n,) of the points, or rows of cones, in what they were picked from; None where they were not
    header: Any  # of a dataset that dfeas wrote; None of others
    rounded: bool  # whether rows of cones stand for others that are not float64

    @property
    def chunk_rows(self) -> int:
        """Of what is stored, with a checksum of its own: a block is one chunk, or some that follow each other."""

    @property
    def all_classes(self) -> tuple[str, ...]:
        """The classes as labels are stored, where ``classes`` are one of them and the rest."""

    @property
    def kind(self) -> str:
        """What its rows make: "points" or "cones"."""

    @property
    def view(self) -> str:
        """What certificates say of it."""

    @property
    def base(self) -> Data:
        """The points as they are stored, where features are transformed; else these."""


class Translated(Protocol):
    """A reader of points as they are seen from one of their space."""

    point: Floats  # (m,)

    def read_stored(self, index: int, buffers: Buffers) -> NDArray[Any]:
        """Rows of a block as they are stored."""


def is_translated(points: PointReader) -> TypeGuard[Translated]:
    """Whether a reader is one of these. It is asked for all blocks, and ``isinstance`` takes longer than to read small ones."""
    return hasattr(points, "point")


def point_of(data: Data) -> Floats | None:
    """The point (m,) that all are seen from, if there is one."""
    return data.points.point if is_translated(data.points) else None


class Block(Struct, frozen=True, eq=False):
    """A block as it was read."""

    index: int
    start: int  # number of its first point
    plain: Any  # (b, m) an array or a CSR matrix, as stored
    points: Any  # the same, or their differences from the point that they are seen from
    label: NDArray[Any]  # (b,) as stored
    checksums: bytes  # of points and labels of each stored chunk, 4 bytes each


def read(data: Data, index: int, buffers: Buffers, points: PointReader | None = None) -> Block:
    """A block, as its ingest wrote it; it may lie in buffers. ``points`` are those of the data, unless others are given. What
    came damaged over a network is read once more.
    """
    return once_more(lambda: _read(data, index, buffers, points), data.points.distant)


def _read(data: Data, index: int, buffers: Buffers, points: PointReader | None) -> Block:
    if is_translated(data.points):
        plain: Any = data.points.read_stored(index, buffers)
        stored: Any = buffers.take("differences", plain.size * 8).view(np.float64).reshape(plain.shape)
        np.subtract(plain, data.points.point, out=stored, dtype=np.float64)
    else:
        plain = stored = (points or data.points).read(index, buffers)
    label = data.labels.read(index, buffers)
    found = checksums_of(stored, label, data.chunk_rows)
    if stored is plain:
        _require_chunks(data, found, index * (data.block_rows // data.chunk_rows))
    return Block(index, index * data.block_rows, plain, stored, label, found)


def _require_chunks(data: Data, checksums: bytes, first: int) -> None:
    """Raise CorruptDataError when chunks from ``first`` on are not as ingested, where known, or far away as surveyed."""
    base = data.base
    if base.expected is None or (base.header is None and not base.points.distant):
        return
    pairs = np.frombuffer(checksums, "<u4").reshape(-1, 2)
    known = base.expected[first : first + len(pairs), :2]
    for index, place in np.argwhere(pairs != known)[:1].tolist():
        sums = f"crc32c {pairs[index, place]:08x}, expected {known[index, place]:08x}"
        chunk = f"chunk {first + index} of {('X', 'label')[place]}"
        raise CorruptDataError(f"{data.where}: {chunk} is damaged ({sums}); restore or ingest again")


def blocks(
    data: Data, indices: Sequence[int], stopped: Stop | None, points: PointReader | None = None
) -> Iterator[tuple[int, Block]]:
    """Some blocks with their places among these, each in the memory of the one before it."""
    buffers = Buffers()
    for place, index in enumerate(unless_stopped(indices, stopped)):
        if place + AHEAD < len(indices):
            data.points.advise(indices[place + AHEAD])
        yield place, read(data, index, buffers, points)


def blocks_of(data: Data, supports: Iterable[Indices]) -> tuple[int, ...] | None:
    """The blocks that have points with numbers that ascend in each support; None when these are all, or it is not known what
    they should be, and for a support that is mapped: it has points nearly everywhere.
    """
    supports = list(supports)
    if data.expected is None or any(is_mapped(support) for support in supports):
        return None
    edges = np.minimum(np.arange(-(-data.n // data.block_rows) + 1) * data.block_rows, data.n)
    there = np.zeros(len(edges) - 1, np.bool_)
    for support in supports:
        there |= np.diff(np.searchsorted(support, edges)) > 0
    if there.all():
        return None
    return tuple(np.flatnonzero(there).tolist())


def share(data: Data, chosen: Sequence[int] | None) -> float:
    """Some blocks, or all, as a share of a read."""
    if chosen is None:
        return 1.0
    return sum(min(data.block_rows, data.n - index * data.block_rows) for index in chosen) / data.n


def code_of(data: Data, certificate: Certificate) -> int | None:
    """The label that counts as +1 for a certificate; None: labels are signs. Raises CheckFailedError when it is not said."""
    if certificate.view == data.view:
        if len(data.classes) > 2 and data.positive is None:
            raise CheckFailedError(f"{data.where}: it has {len(data.classes)} classes, the certificate names none")
        return data.positive
    try:
        view = parse_json(certificate.view, {"positive": str})
        place = data.classes.index(view.pop("positive"))
        if data.positive is not None or view != parse_json(data.view or "{}"):
            raise LookupError
        return (-1, 1)[place] if len(data.classes) == 2 else place
    except (ValueError, LookupError):
        here, there = (view[:SHOWN] or "nothing but its labels" for view in (data.view, certificate.view))
        raise CheckFailedError(f"{data.where}: it is seen with {here}, the certificate with {there}") from None


def signs_of(label: NDArray[Any], code: int | None) -> NDArray[np.int8]:
    """Labels (b,) as -1 and +1, the latter where they are the code; without one 0 where they are neither."""
    if code is not None:
        return np.asarray((label == code).view(np.int8) * np.int8(2) - np.int8(1))
    return np.asarray(label * (np.abs(label) == 1), np.int8)


def require_features(data: Data, certificate: Certificate) -> None:
    """Raise CheckFailedError where data and certificate have names of features that differ, or stand in another order."""
    other = difference(data.features, certificate.features)
    if other:
        raise CheckFailedError(f"{data.where}: {other} than the certificate was made for")


def require_signs(signs: bool, where: str) -> None:
    """Raise CheckFailedError when not all labels are signs."""
    if not signs:
        raise CheckFailedError(f"{where}: a label is neither -1 nor +1; nothing can be proved")


def require_support(support: Indices, n: int, what: str = "points") -> None:
    """Raise CheckFailedError unless these are numbers of points, ascending."""
    last, ascending = -1, support.ndim == 1 and len(support) > 0
    for (piece,) in pieces(support if ascending else support[:0]):
        ascending = ascending and bool(piece[0] > last and (piece[1:] > piece[:-1]).all())
        last = int(piece[-1])
    if not ascending or last >= n:
        raise CheckFailedError(f"the support is not an ascending list of {what} below {n}")


def crc(points: Any) -> int:
    """crc32c of the entries in C order; of a CSR matrix indptr (as int64), indices and data follow each other."""
    dense, checksum = isinstance(points, np.ndarray), 0
    for array in (points,) if dense else (points.indptr.astype(np.int64), points.indices, points.data):
        checksum = int(crc32c(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data, checksum))
    return checksum


def crc_of_rows(points: Any, first: int, rows: int) -> int:
    """The same of some rows of a CSR matrix, or of what is left of them."""
    starts = points.indptr[first : first + rows + 1].astype(np.int64)
    here = slice(int(starts[0]), int(starts[-1]))
    return int(crc32c(points.data[here], crc32c(points.indices[here], crc32c(starts - starts[0]))))


def checksums_of(points: Any, label: NDArray[Any], chunk_rows: int) -> bytes:
    """Of points and labels of runs of so many points, of which the last may be shorter; they follow each other."""
    count = len(label)
    if count <= chunk_rows:
        return struct.pack("<II", crc(points), crc(label))
    sums = np.empty((-(-count // chunk_rows), 2), "<u4")
    for place, array in enumerate((points, label)):
        if isinstance(array, np.ndarray):
            entries = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
            width = chunk_rows * (len(entries) // count)
            sums[:, place] = [crc32c(entries[first : first + width]) for first in range(0, len(entries), width)]
        else:
            sums[:, place] = [crc_of_rows(array, first, chunk_rows) for first in range(0, count, chunk_rows)]
    return sums.tobytes()


def compare(data: Data, checksums: bytes, fingerprint: str, view: str = "", chosen: Sequence[int] | None = None) -> None:
    """Raise CorruptDataError when the checksums of all chunks do not make the fingerprint of the data as it is seen.

    Of ``chosen`` blocks only, the others are taken to be what their ingest, or a survey, found. Which block is not what its
    ingest wrote is said where that is known.
    """
    if chosen is not None:
        assert data.expected is not None, "blocks are chosen where it is known what all should be"
        every = np.array(data.expected[:, :2], "<u4")
        read_ones = np.isin(np.arange(len(every)) // (data.block_rows // data.chunk_rows), list(chosen))
        every[read_ones] = np.frombuffer(checksums, "<u4").reshape(-1, 2)
        checksums = every.tobytes()
    head = {"format": 1, "n": data.n, "m": data.m, "dtype": data.base.dtype.name, "block_rows": data.chunk_rows}
    head["classes"] = list(data.all_classes)
    digest = hashlib.sha256(json.dumps(head, sort_keys=True).encode())
    digest.update(checksums)
    mark = digest.hexdigest()
    if view:
        mark = hashlib.sha256(f"{mark} {view}".encode()).hexdigest()
    if mark == fingerprint:
        return
    _require_chunks(data, checksums, 0)
    raise CorruptDataError(
        f"{data.where}: the data is not what the certificate was made for "
        f"(fingerprint {mark[:12]}, certificate {fingerprint[:12]})"
    )
