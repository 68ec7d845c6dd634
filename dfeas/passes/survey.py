"""What one read says of all points. A survey before a solve: norms, non-finite entries, zero points, class counts, checksums;
moments of features, histograms of scores, and A A'.

Means and sums of squares of blocks are joined as Chan, Golub and LeVeque do (Algorithms for computing the sample variance, The
American Statistician 1983): differences from a mean are squared, never large numbers.

The bins of a histogram are the same for all data, so that counts of blocks add up. A fast product sorts out almost every point;
those whose rounding bound reaches over an edge are scored again in a fixed order, so the counts do not depend on the cut into
blocks.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from fastcrc.crc32 import iscsi as crc32c
from msgspec import Struct, field
from numpy.typing import NDArray

from dfeas.linalg import csr
from dfeas.linalg.points import Floats, Indices, Points, Tile, any_entry, is_dense, nonfinite, parts, product
from dfeas.passes.block import Block, rounding
from dfeas.passes.protocol import Plain, SumPass

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SHOWN = 5
"""How many positions of offending entries are kept."""
NORM_RANGE = (1e-130, 1e130)
"""Norms outside lose accuracy or overflow when they are squared, and the checker could prove nothing."""


_OF_CHUNK = np.dtype([("start", "<u8"), ("points", "<u4"), ("label", "<u4")])
"""What a survey keeps of each stored chunk: the number of its first point, crc32c of points and of labels."""


def checksum(points: Points | NDArray[np.uint8]) -> int:
    """crc32c of the entries of an array in C order; of a CSR matrix indptr (as int64, from 0), indices and data follow."""
    value = 0
    for array in parts(points):
        value = int(crc32c(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data, value))
    return value


def checksums(points: Points, chunk_rows: int) -> NDArray[np.uint32]:
    """``checksum`` (chunks,) of runs of so many points, of which the last may be shorter; 0: of all of them."""
    count = points.shape[0]
    if not 0 < chunk_rows < count:
        return np.array([checksum(points)], np.uint32)
    if not is_dense(points):
        return _of_rows(points, chunk_rows)
    entries = np.ascontiguousarray(points).reshape(-1).view(np.uint8).data
    size, crc = chunk_rows * (len(entries) // count), crc32c
    return np.array([crc(entries[first : first + size]) for first in range(0, len(entries), size)], np.uint32)


def _of_rows(points: csr_array, chunk_rows: int) -> NDArray[np.uint32]:
    (starts, *stored), crc, found = parts(points), crc32c, []
    held = [(np.ascontiguousarray(array).view(np.uint8).data, array.itemsize) for array in stored]
    for first in range(0, points.shape[0], chunk_rows):
        begins = starts[first : first + chunk_rows + 1]
        low, high = int(begins[0]), int(begins[-1])
        value = crc((begins - low).data)
        for entries, size in held:
            value = crc(entries[low * size : high * size], value)
        found.append(value)
    return np.array(found, np.uint32)


def digest(chunks: Sequence[int] | Indices, checksums: NDArray[np.uint32]) -> int:
    """64 bits for some chunks and the checksums (c, 2 or more) of their points and labels: a sum, whatever their order."""
    points, labels = checksums[:, :2].astype(np.uint64).T
    each = _mix_bits(_mix_bits(np.asarray(chunks, np.uint64) + np.uint64(1)) ^ (points << np.uint64(32) | labels))
    return int(each.sum(dtype=np.uint64))


def _mix_bits(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea and Flood, Fast splittable pseudorandom number generators, OOPSLA 2014)."""
    value = (value ^ value >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ value >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return np.asarray(value ^ value >> np.uint64(31), np.uint64)


class Summary(Struct, frozen=True):
    """Facts about some points (partial and answer alike)."""

    points: int
    positive: int  # points with label +1
    nonfinite: int  # number of NaN and infinite entries
    first_nonfinite: tuple[tuple[int, int, float], ...]  # (point, feature, value), the first five
    zero: int  # number of zero points
    first_zero: tuple[int, ...]  # the first five
    extreme: int  # points whose norm is outside NORM_RANGE but which are not zero
    first_extreme: tuple[int, ...]  # the first five
    norm_min: float  # inf when there is no point
    norm_max: float
    packed: bytes  # ``_OF_CHUNK`` of each stored chunk, in order

    @property
    def checksums(self) -> NDArray[np.uint32]:
        """crc32c (chunks, 2) of points and labels of each stored chunk."""
        each = np.frombuffer(self.packed, _OF_CHUNK)
        return np.stack([each["points"], each["label"]], axis=1)


class Survey(Plain[Summary], Struct, frozen=True):
    """Looks at every entry once."""

    def scan(self, block: Block) -> Summary:
        first_bad: tuple[tuple[int, int, float], ...] = ()
        norm, bad_entries = block.norm, 0
        if not np.isfinite(norm).all():
            point, feature, value = nonfinite(block.points)
            bad_entries = len(point)
            first_bad = tuple(
                (block.start + int(p), int(f), float(v))
                for p, f, v in zip(point[:SHOWN], feature[:SHOWN], value[:SHOWN], strict=True)
            )
        zero = np.flatnonzero(norm == 0)
        zero = zero[~any_entry(block.points[zero])]
        odd = norm > NORM_RANGE[1]
        if not block.intercept:  # with one no column is shorter than 1
            odd |= norm < NORM_RANGE[0]
        odd[zero] = False
        extreme = np.flatnonzero(odd) if not bad_entries else np.empty(0, np.int64)
        counts = block.size, int((block.label > 0).sum())
        zeros, extremes = ((len(some), tuple(int(block.start + j) for j in some[:SHOWN])) for some in (zero, extreme))
        ends = float(norm.min(initial=np.inf)), float(norm.max(initial=0.0))
        return Summary(*counts, bad_entries, first_bad, *zeros, *extremes, *ends, _pack_checksums(block))

    def merge(self, first: Summary, second: Summary) -> Summary:
        return Summary(
            first.points + second.points,
            first.positive + second.positive,
            first.nonfinite + second.nonfinite,
            tuple(sorted(first.first_nonfinite + second.first_nonfinite, key=lambda e: e[:2])[:SHOWN]),
            first.zero + second.zero,
            tuple(sorted(first.first_zero + second.first_zero)[:SHOWN]),
            first.extreme + second.extreme,
            tuple(sorted(first.first_extreme + second.first_extreme)[:SHOWN]),
            min(first.norm_min, second.norm_min),
            max(first.norm_max, second.norm_max),
            _in_order(first.packed, second.packed),
        )


def _pack_checksums(block: Block) -> bytes:
    points = checksums(block.points, block.chunk_rows)
    each = np.empty(len(points), _OF_CHUNK)
    each["start"] = block.start + block.chunk_rows * np.arange(len(points))
    each["points"], each["label"] = points, checksums(block.label, block.chunk_rows)
    return each.tobytes()


def _in_order(first: bytes, second: bytes) -> bytes:
    """``_OF_CHUNK`` of all chunks; as a rule those of ``second`` follow."""
    both = first + second
    if not (first and second) or struct.unpack_from("<Q", first, len(first) - _OF_CHUNK.itemsize) < struct.unpack_from(
        "<Q", second
    ):
        return both
    return np.sort(np.frombuffer(both, _OF_CHUNK), order="start").tobytes()


class MomentsAnswer(Struct, frozen=True, eq=False):
    """Of some points (partial and answer alike)."""

    points: int
    least: Floats  # (m,) inf when there is no point
    greatest: Floats  # (m,) -inf when there is no point
    mean: Floats  # (m,)
    squares: Floats  # (m,) sums of squared differences from the mean
    digits: dict[int, Indices] = field(default_factory=dict)  # (m,) each: exact sums are those of digits[i] 2**(DIGIT i)

    @property
    def center(self) -> Floats:
        """Means (m,), from exact sums rounded once, so that they depend on the points alone; of a pass that is exact."""
        least = min(self.digits, default=0)
        over, under = 1 << max(0, DIGIT * least), self.points << max(0, -DIGIT * least)
        total = [0] * len(self.mean)
        for place, digits in self.digits.items():
            total = [one + (two << DIGIT * (place - least)) for one, two in zip(total, digits.tolist(), strict=True)]
        return np.array([one * over / under for one in total], np.float64)

    @property
    def std(self) -> Floats:
        """Standard deviations (m,) of these points: the root of the mean square."""
        return np.sqrt(self.squares / max(1, self.points))


class Moments(Plain[MomentsAnswer], Struct, frozen=True):
    """Of the points as they are stored, whatever their labels."""

    exact: bool = False  # whether sums are, too

    def scan(self, block: Block) -> MomentsAnswer:
        m = block.points.shape[1]
        moments = MomentsAnswer(0, np.full(m, np.inf), np.full(m, -np.inf), np.zeros(m), np.zeros(m))
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):  # of entries that the survey refuses
            for rows in block.tiles():
                moments = self.merge(moments, _of(block.tile(rows, False), self.exact))
        return moments

    def merge(self, first: MomentsAnswer, second: MomentsAnswer) -> MomentsAnswer:
        points = first.points + second.points
        if not first.points or not second.points:
            return first if first.points else second
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            apart, share = second.mean - first.mean, second.points / points
            shared = {place: first.digits[place] + second.digits[place] for place in first.digits.keys() & second.digits}
            ends = np.minimum(first.least, second.least), np.maximum(first.greatest, second.greatest)
            squares = first.squares + second.squares + apart * apart * (first.points * share)
            return MomentsAnswer(points, *ends, first.mean + apart * share, squares, first.digits | second.digits | shared)


DIGIT = 28
"""Bits of a digit of an exact sum: int64 holds those of 2**34 points, float64 those of a tile."""


def _digits(points: NDArray[Any], size: float) -> dict[int, Indices]:
    """Exact sums (m,) of points (t, m) of entries up to a size, in digits: those of multiples of 2**(DIGIT i). Next to 1.5
    2**(52 + e), floats are the multiples of 2**e (Rump, Ogita and Oishi, Accurate floating-point summation, 2008).
    """
    digits = dict[int, Indices]()
    # 2.0**900: magnitudes below this are summed exactly; the survey refuses greater ones
    if not 0 < size < 2.0**900:
        return digits
    left = points.astype(np.float64)
    for place in range(int(np.frexp(size)[1]) // DIGIT, -40, -1):
        grid = np.ldexp(1.5, 52 + DIGIT * place)
        part = left + grid
        part -= grid
        left -= part
        digits[place] = np.ldexp(part.sum(axis=0), -DIGIT * place).astype(np.int64)
        if not left.any():
            break
    return digits


def _of(points: Tile, exact: bool) -> MomentsAnswer:
    """Of points (t, m) in float64, t > 0."""
    if not isinstance(points, np.ndarray):
        return _of_sparse(points)
    points = np.asarray(points, np.float64)
    mean, least, greatest = points.mean(axis=0), points.min(axis=0), points.max(axis=0)
    apart = points - mean
    digits = _digits(points, max(-float(least.min()), float(greatest.max()))) if exact else {}
    return MomentsAnswer(len(points), least, greatest, mean, np.einsum("ij,ij->j", apart, apart), digits)


def _of_sparse(points: Tile) -> MomentsAnswer:
    """What is not stored is zero."""
    assert not isinstance(points, np.ndarray), "an array is dense"
    t, m = points.shape
    columns = csr.transpose(points)
    stored = np.bincount(points.indices, minlength=m)
    mean = np.asarray(columns @ np.full(t, 1 / t))
    apart = points.data - mean[points.indices]
    squares: Floats = np.bincount(points.indices, weights=apart * apart, minlength=m) + (t - stored) * mean * mean
    least, greatest = np.where(stored < t, 0.0, np.inf), np.where(stored < t, 0.0, -np.inf)
    np.minimum.at(least, points.indices, points.data)
    np.maximum.at(greatest, points.indices, points.data)
    return MomentsAnswer(t, least, greatest, mean, squares)


LEAST = 1e-12
"""Scores below this, on either side, are in the bin around zero."""
DECADES, BINS_A_DECADE = 12, 20


def _edges() -> Floats:
    """-1 .. -LEAST, LEAST .. 1: one bin more lies between the two halves."""
    exponents = np.arange(DECADES * BINS_A_DECADE + 1) / BINS_A_DECADE - DECADES
    positive = 10.0**exponents
    positive[-1] = 1.0
    return np.concatenate([-positive[::-1], positive])


EDGES: Floats = _edges()
"""Edges (bins + 1,), ascending; bin i holds EDGES[i] <= score < EDGES[i + 1], the last one also 1."""


class HistogramAnswer(Struct, frozen=True):
    """How many points have a score in each bin."""

    edges: Floats  # (bins + 1,) ascending, from -1 to 1
    counts: Indices  # (2, bins) points labelled -1 and +1; they add up to n


class Histogram(Struct, frozen=True, eq=False, dict=True):
    """Scores a_j'y / |y| of all points; y (dimension,) of any length but zero."""

    y: Floats

    def __post_init__(self) -> None:
        if self.y.ndim != 1 or not np.isfinite(self.y).all() or not self.y.any():
            raise ValueError("y must be a vector, finite and not zero")

    @cached_property
    def _unit(self) -> Floats:
        scaled = self.y / np.abs(self.y).max()  # squares then neither overflow nor all underflow
        return np.asarray(scaled / np.linalg.norm(scaled), np.float64)

    def scan(self, block: Block) -> Indices:
        bins = len(EDGES) - 1
        m = block.points.shape[1]
        slack = rounding(block.terms + 2, False)
        factor = block.sides.scale()
        counts = np.zeros(2 * bins, np.int64)
        for rows in block.tiles():
            with np.errstate(invalid="ignore", over="ignore"):
                score = product(block.tile(rows, False), self._unit[:m])
                if block.intercept:
                    score += self._unit[m]
                score *= factor[rows]
            place = _bins(score - slack)
            unsure = np.flatnonzero(place != _bins(score + slack))
            place[unsure] = _bins(block.exact_scores(rows.start + unsure, self._unit))
            counts += np.bincount(place + bins * (block.label[rows] > 0), minlength=2 * bins)
        return counts.reshape(2, bins)

    def merge(self, first: Indices, second: Indices) -> Indices:
        return first + second

    def finish(self, partial: Indices) -> HistogramAnswer:
        return HistogramAnswer(EDGES, partial)


def _bins(score: Floats) -> Indices:
    """The bin of each score; what rounding puts beyond -1 or 1 is in the outermost."""
    return np.asarray(np.clip(np.searchsorted(EDGES, score, side="right") - 1, 0, len(EDGES) - 2), np.int64)


class GramAnswer(Struct, frozen=True, eq=False):
    """Sums over all columns (partial and answer alike)."""

    square: Floats  # (m, m) A A'
    total: Floats  # (m,) A 1


class Gram(SumPass[GramAnswer], Struct, frozen=True):
    """A A' and A 1 in float64. The partial has m^2 entries."""

    def scan(self, block: Block) -> GramAnswer:
        m = block.dimension
        square, total = np.zeros((m, m)), np.zeros(m)
        for rows in block.dense_tiles():
            columns = block.columns(np.arange(rows.start, rows.stop))
            square += columns.T @ columns
            total += columns.sum(axis=0)
        return GramAnswer(square, total)
