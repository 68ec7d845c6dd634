"""The checker: proves a certificate from the stored points and labels alone, rounding errors included.

It shares no code with passes and methods. What it has read of a dataset is compared with the fingerprint, whoever read it.

With u = 2**-53 and float64 arithmetic, for any order of summation |fl(x'y) - x'y| <= m u / (1 - m u) |x|'|y|, and
underflow adds at most m 2**-1074 (Higham, Accuracy and Stability, section 3.1). Entries are exact in float64.

* Separator: every point's score must exceed its own bound; those that do not are decided by compensated products, and then in
  integers, so that every one is decided. For points that float32 holds exactly products in float32 come first, with bounds of
  their own. A
  positive norm does not change a sign, so signs are those of the stored points. The margin is rounded down.
* Gordan certificate: |Ax| of the signed unit columns, with the bounds of norms, products and sums added, rounded up, over a
  rounded-down sum of weights: no unit y has a larger margin. When that is next to nothing, it is proved where possible that
  weights near these, on the same points, make the sum exactly zero (``dfeas.proof.balance``).

Points seen from another one, p, are differences x_j - p with one more rounding. What is decided exactly is decided from
x_j and p themselves: the score is [x_j, p]'[y, -y], and sum w_j (x_j - p) = 0 is sum w_j (x_j, 1) + (sum w_j) (-p, -1) = 0.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import crc32c
import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them
from numpy.typing import NDArray

from dfeas.certificate import Certificate
from dfeas.checked import Checked, DensePoints, SparsePoints
from dfeas.checked import joined as joined_points
from dfeas.errors import CheckFailedError, CorruptDataError
from dfeas.proof.balance import balance
from dfeas.proof.signs import signs as signs_of
from dfeas.store import Dataset
from dfeas.store.reading import Buffers
from dfeas.store.seen_from import SeenFrom

U, U32 = 2.0**-53, 2.0**-24
TINY32 = 2.0**-149
SQUARES = (1e-20, 1e30)
"""Squares of norms in float32 that underflow leaves alone, as it does the products of such points."""
EXACT32 = ("int8", "uint8", "int16", "uint16", "float16", "float32")
"""Types whose numbers are numbers of float32: integers below 2**24 are."""
SINGLE = 10_000
"""Features up to which products in float32 tell anything."""
AHEAD = 8
"""Blocks that the kernel is asked to read ahead."""
TINY = 2.0**-1074
UP = 1 + 2.0**-48  # enough to cover the handful of roundings in a bound itself
NORMS = (1e-140, 1e140)
"""Norms of points for which squares neither underflow nor overflow to any effect."""
LOST = 2.0**-500
"""More than a quotient weight / norm that underflows takes from a sum: TINY times the largest norm."""
SUPPORT_ENTRIES = 10_000_000
"""Largest support, in entries of its points, that is kept for a proof that it balances exactly."""
NEARLY = 1e-6
"""|Ax| up to which such a proof is tried."""
PIECE_BYTES = 2 << 20
PACKED_BYTES = 64 << 10
"""Of points in a product with several vectors: OpenBLAS copies larger ones first."""
WRONG = 5
"""So many points on the wrong side are enough."""


class Maps(Protocol):
    """What the checker needs of an engine."""

    def map(self, function: Any, *args: Any) -> list[Any]:
        """``function(dataset, first, stop, *args)`` over ranges of blocks, in order."""


@dataclass(frozen=True)
class Check:
    """What was proved."""

    verdict: str  # "feasible" | "infeasible" | "eps-infeasible"
    proof: str  # "exact" | "rigorous"
    margin_lower: float  # proved: some unit y has at least this margin (-1 if nothing is known)
    margin_upper: float  # proved: no unit y has more (1 if nothing is known)
    points: int  # points that were read
    exact_points: int  # of them, decided beyond float64
    message: str


Support = list[tuple[Any, NDArray[np.float64]]]
"""Signed points (r, d) as stored, arrays or CSR matrices, and their factors (r,): weight over norm."""


@dataclass
class Found:
    """What some consecutive blocks showed."""

    points: int = 0
    margin: float = math.inf  # least proved margin of a point
    exact_points: int = 0
    wrong: list[int] = field(default_factory=list)  # points that are not on the positive side
    total: NDArray[np.float64] | None = None  # (d,) sum of weighted signed unit columns
    spread: NDArray[np.float64] | None = None  # (d,) sum of their absolute values
    terms: int = 0
    zero: bool = False  # a point with a weight is zero
    support: Support = field(default_factory=list)
    origin: NDArray[np.float64] | None = None  # what weighs as much as all of the support, if it is seen from somewhere

    def add(self, other: Found) -> None:
        """What the blocks that follow showed."""
        self.points += other.points
        self.margin = min(self.margin, other.margin)
        self.exact_points += other.exact_points
        self.wrong = (self.wrong + other.wrong)[:WRONG]
        if self.total is None or self.spread is None:
            self.total, self.spread = other.total, other.spread
        elif other.total is not None and other.spread is not None:
            self.total, self.spread = self.total + other.total, self.spread + other.spread
        self.terms += other.terms + 1
        self.zero = self.zero or other.zero
        self.support += other.support
        self.origin = other.origin if self.origin is None else self.origin


@dataclass
class Looked:
    """What some consecutive blocks showed of several certificates."""

    checksums: list[tuple[int, int]]  # of points and labels of each block, as stored
    found: list[Found]  # of each certificate

    def add(self, other: Looked) -> None:
        """What the blocks that follow showed."""
        self.checksums += other.checksums
        for mine, others in zip(self.found, other.found, strict=True):
            mine.add(others)


Node = tuple[int, int, Looked]
"""(level, i, what the blocks i 2^level .. (i + 1) 2^level - 1 showed)."""


def joined(nodes: list[Node], node: Node) -> None:
    """Append a node, and add up pairs: the sums are the same, to the bit, whoever looked at which blocks."""
    while nodes and node[1] % 2 == 1 and nodes[-1][:2] == (node[0], node[1] - 1):
        level, index, found = nodes.pop()
        found.add(node[2])
        node = (level + 1, index // 2, found)
    nodes.append(node)


def check(engine: Maps, dataset: Dataset, certificate: Certificate) -> Check:
    """Prove the certificate on all of the data, in one read.

    Raises CheckFailedError when it does not prove what it claims, CorruptDataError when the data is not what it was made for.
    """
    (found,) = check_all(engine, dataset, [certificate])
    if isinstance(found, CheckFailedError):
        raise found
    return found


def check_all(engine: Maps, dataset: Dataset, certificates: Sequence[Certificate]) -> list[Check | CheckFailedError]:
    """Prove several certificates on all of the data, in one read: what is proved of each, or why it proves nothing.

    Where the labels are codes of classes, each certificate says which class is meant. Raises CorruptDataError when the data is
    not what one of them was made for.
    """
    answers: dict[int, Check | CheckFailedError] = {}
    sound: dict[int, Certificate] = {}
    for place, certificate in enumerate(certificates):
        try:
            _check_shape(certificate, dataset)
            code_of(dataset, certificate)
            sound[place] = certificate
        except CheckFailedError as error:
            answers[place] = error
    if sound:
        try:
            answers |= dict(zip(sound, _looked(engine, dataset, tuple(sound.values())), strict=True))
        except CheckFailedError as error:
            # one of them cannot be looked at: which one shows when each is looked at alone
            if len(sound) == 1:
                return [answers.get(place, error) for place in range(len(certificates))]
            for place, certificate in sound.items():
                (answers[place],) = check_all(engine, dataset, [certificate])
    return [answers[place] for place in range(len(certificates))]


def _looked(engine: Maps, dataset: Dataset, certificates: tuple[Certificate, ...]) -> list[Check | CheckFailedError]:
    nodes: list[Node] = []
    for node in (node for part in engine.map(check_range, certificates) for node in part):
        joined(nodes, node)
    looked = nodes[0][2]
    for _, _, rest in nodes[1:]:
        looked.add(rest)
    answers: list[Check | CheckFailedError] = []
    for certificate, found in zip(certificates, looked.found, strict=True):
        compare(dataset, looked.checksums, certificate.fingerprint, certificate.view)
        try:
            answers.append(_separator(found) if certificate.kind == "separator" else _gordan(found, certificate))
        except CheckFailedError as error:
            answers.append(error)
    return answers


def code_of(dataset: Dataset, certificate: Certificate) -> int | None:
    """The label that counts as +1 for a certificate; None: labels are signs. Raises CheckFailedError when it is not said."""
    if certificate.view == dataset.view:
        if dataset.coded:
            raise CheckFailedError(f"{dataset.where}: it has {len(dataset.classes)} classes, the certificate names none")
        return dataset.positive
    try:
        name = str(json.loads(certificate.view)["positive"])
        if dataset.view:
            raise LookupError
        return dataset.codes[dataset.classes.index(name)]
    except (ValueError, LookupError, TypeError):
        seen, meant = dataset.view or "nothing but its labels", certificate.view or "nothing but the labels"
        raise CheckFailedError(f"{dataset.where}: it is seen with {seen}, the certificate with {meant}") from None


def _check_shape(certificate: Certificate, dataset: Dataset) -> None:
    dimension = dataset.m + int(dataset.intercept)
    if certificate.kind == "separator":
        if certificate.y.shape != (dimension,):
            raise CheckFailedError(f"the separator has {certificate.y.size} entries, the data {dimension} features")
        if not np.isfinite(certificate.y).all() or not certificate.y.any():
            raise CheckFailedError("the separator is zero or not finite")
        if not 1e-100 < np.abs(certificate.y).max() < 1e100:
            raise CheckFailedError("the entries of the separator are outside 1e-100 .. 1e100; scale it to length 1")
        return
    support, weights = certificate.support, certificate.weights
    if not len(support) or (support[1:] <= support[:-1]).any() or support[0] < 0 or support[-1] >= dataset.n:
        raise CheckFailedError(f"the support is not an ascending list of points below {dataset.n}")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and (weights <= 2).all()):
        raise CheckFailedError("the weights are not on the simplex: negative, not finite, or above 1")
    if abs(float(weights.sum()) - 1) > 1e-6:
        raise CheckFailedError(f"the weights are not on the simplex: their sum is {float(weights.sum())!r}")


def check_range(dataset: Dataset, first: int, stop: int, certificates: tuple[Certificate, ...]) -> list[Node]:
    """Look at blocks first .. stop-1."""
    nodes: list[Node] = []
    buffers = Buffers()
    codes = [code_of(dataset, certificate) for certificate in certificates]
    known = [math.inf] * len(certificates)  # the least margins so far
    separators = [certificate.y for certificate in certificates if certificate.kind == "separator"]
    seen = dataset.points if isinstance(dataset.points, SeenFrom) else None
    for index in range(first, stop):
        if index + AHEAD < stop:
            dataset.points.advise(index + AHEAD)
        plain = None if seen is None else seen.stored(index, buffers)
        stored = dataset.points.read(index, buffers) if seen is None or plain is None else seen.differences(plain, buffers)
        label = dataset.labels.read(index, buffers)
        origin = None if seen is None or plain is None else (plain, seen.point)
        looked = Looked([(crc(stored), crc(label))], [])
        fast = iter(_by_float32(stored, separators, dataset.intercept))
        for place, (certificate, code) in enumerate(zip(certificates, codes, strict=True)):
            found = Found(points=stored.shape[0])
            looked.found.append(found)
            sign = label if code is None else (label == code).view(np.int8) * np.int8(2) - np.int8(1)
            block = _Stored(dataset.where, index * dataset.block_rows, stored, sign, dataset.intercept, origin)
            if certificate.kind == "separator":
                _look_at_scores(found, block, certificate.y, next(fast, None), known[place])
                known[place] = min(known[place], found.margin)
            else:
                _look_at_weights(found, block, certificate)
        joined(nodes, (0, index, looked))
    return nodes


@dataclass(frozen=True)
class _Stored:
    """A block as it is stored, or as it is seen from a point."""

    where: str
    start: int
    points: Any  # (b, m), an array or a CSR matrix
    label: NDArray[Any]  # (b,)
    intercept: bool
    origin: tuple[NDArray[Any], NDArray[np.float64]] | None  # points (b, m) as stored, and the one (m,) that they are seen from

    @property
    def dense(self) -> bool:
        """Whether the points are an array."""
        return isinstance(self.points, np.ndarray)

    @property
    def size(self) -> int:
        """Number of points."""
        return int(self.points.shape[0])

    def piece(self, dimension: int) -> int:
        """Points that are looked at at a time."""
        return max(1, PIECE_BYTES // (8 * dimension)) if self.dense else max(1, self.size)

    def wide(self, rows: NDArray[np.int64]) -> Checked:
        """Some points in float64, with the intercept. Raises CheckFailedError when one is not finite."""
        if not self.dense:
            points = self.points[rows].astype(np.float64)
            if not np.isfinite(points.data).all():
                raise CheckFailedError(f"{self.where}: a point from {self.start} on is not finite; nothing can be proved")
            if self.intercept:
                points = scipy.sparse.hstack([points, scipy.sparse.csr_array(np.ones((len(rows), 1)))], format="csr")
            return SparsePoints(points)
        points = np.ones((len(rows), self.points.shape[1] + self.intercept))
        points[:, : self.points.shape[1]] = self.points[rows]
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
    """Raise CorruptDataError when the checksums of all blocks do not make the fingerprint of the data as it is seen."""
    head = {"format": 1, "n": dataset.n, "m": dataset.m, "dtype": dataset.dtype.name, "block_rows": dataset.block_rows}
    digest = hashlib.sha256(json.dumps(head, sort_keys=True).encode())
    for pair in checksums:
        for each in pair:
            digest.update(each.to_bytes(4, "little"))
    mark = digest.hexdigest()
    if view:
        mark = hashlib.sha256(f"{mark} {view}".encode()).hexdigest()
    if mark != fingerprint:
        raise CorruptDataError(
            f"{dataset.where}: the data is not what the certificate was made for "
            f"(fingerprint {mark[:12]}, certificate {fingerprint[:12]})"
        )


def _gamma(terms: int) -> float:
    """Bound of the relative error of ``terms`` roundings."""
    return terms * U / (1 - terms * U)


@dataclass(frozen=True)
class _Fast:
    """Of one separator, in float32."""

    y: NDArray[np.float64]  # (d,) entries below 1
    score: NDArray[np.float32]  # (b,) of the points as stored, without the intercept
    inverse: NDArray[np.float64]  # (b,) 1 / norm, with the intercept
    measured: NDArray[np.bool_]  # (b,) where squares neither under- nor overflow


def _by_float32(points: Any, separators: list[NDArray[np.float64]], intercept: bool) -> list[_Fast]:
    """Products with all separators, where products in float32 tell something."""
    b, m = points.shape
    exact = isinstance(points, np.ndarray) and points.dtype.name in EXACT32
    if not separators or not exact or m + intercept >= SINGLE:
        return []
    scaled = [np.ldexp(y, -int(np.frexp(np.abs(y).max())[1])) for y in separators]
    single = np.column_stack(scaled)[:m].astype(np.float32)
    score, square = np.empty((b, len(scaled)), np.float32), np.empty(b, np.float32)
    size = max(1, (PIECE_BYTES if len(scaled) == 1 else PACKED_BYTES) // (4 * m))
    with np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore"):
        for piece in range(0, b, size):  # each in cache for both
            part = points[piece : piece + size].astype(np.float32, copy=False)
            np.dot(part, single, out=score[piece : piece + size])
            np.einsum("ij,ij->i", part, part, out=square[piece : piece + size])
        wide = square.astype(np.float64)
        measured = (wide > SQUARES[0]) & (wide < SQUARES[1])
        inverse = 1 / np.sqrt(wide + intercept)
    columns = np.ascontiguousarray(score.T)
    return [_Fast(y, column, inverse, measured) for y, column in zip(scaled, columns, strict=True)]


def _look_at_scores(found: Found, block: _Stored, y: NDArray[np.float64], fast: _Fast | None, known: float) -> None:
    rows = np.arange(block.size) if fast is None else _not_by_float32(known, block, fast)
    size = block.piece(len(y))
    for piece in range(0, len(rows), size):
        _look_in_float64(found, block, rows[piece : piece + size], y)


def _not_by_float32(known: float, block: _Stored, fast: _Fast) -> NDArray[np.int64]:
    """Points that products in float32 do not prove to be on the positive side with a margin above the least of all.

    ``known`` is one that is proved of other points.

    The bounds are those of float64 with another unit: with y rounded, |fl(x'y) - x'y| <= (gamma_m + u) |x| |y|, and so for the
    squares of the norm; 2 gamma_(m+5) covers each. What under- or overflows is left to float64.
    """
    m, y = block.points.shape[1], fast.y
    with np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore"):
        if block.intercept:
            cosine = fast.score + np.float64(y[m])
            cosine *= fast.inverse
        else:
            cosine = fast.score * fast.inverse  # but for the length of y
        cosine *= block.label
    terms = (m + 5) * U32
    rate = 2 * terms / (1 - terms) * UP
    size_of_y = float(np.linalg.norm(y)) * UP
    error = (rate * (1 + rate) * size_of_y + 4 * m * TINY32 * (1 + SQUARES[0] ** -0.5)) * UP
    proved = fast.measured & (cosine > error)
    # a point that is certainly beyond another one, or beyond what was found, is not where the margin is
    least = float(cosine[proved].min(initial=np.inf))
    bar = min(known, (least + error) / ((1 - rate) * size_of_y) * UP**2)
    return np.flatnonzero(~(proved & (cosine > (bar * (1 + rate) * size_of_y + error) * UP**2)))


def _look_in_float64(found: Found, block: _Stored, rows: NDArray[np.int64], y: NDArray[np.float64]) -> None:
    points, signs = block.wide(rows), block.label[rows].astype(np.float64)
    m = points.terms + 1  # a difference has one rounding more
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        score = points.score(y) * signs
        norm = points.norm()
        length = norm * (1 + _gamma(m + 4)) * float(np.linalg.norm(y)) * (1 + _gamma(len(y) + 5))
        measured = (norm > NORMS[0]) & (norm < NORMS[1])  # squares that underflow or overflow do not matter there
        # |x|'|y| <= |x| |y|; where that does not do, |x|'|y| itself
        rate = UP * _gamma(m) / (1 - 2 * _gamma(m))
        bound = rate * length * UP + 4 * m * TINY
        near = np.flatnonzero(~(measured & (score > 2 * bound)))
        bound[near] = rate * points.magnitude(near, y) + 4 * m * TINY
        least = (score - bound) / (length * UP)
    proved = np.isfinite(score) & np.isfinite(bound) & (score > bound) & measured
    if proved.any():
        found.margin = min(found.margin, float(least[proved].min()) / UP)
    left = np.flatnonzero(~proved)
    if not left.size or len(found.wrong) >= WRONG:
        return
    if block.origin is None:
        parts = [signs_of(some, part) for _, some, part in points.narrow(left, y)]
        sign, magnitude = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    else:
        plain, origin = block.origin[0][rows[left]].astype(np.float64), np.broadcast_to(block.origin[1], (len(left), len(y)))
        sign, magnitude = signs_of(np.hstack([plain, origin]), np.append(y, -y))
    positive = sign == signs[left]
    found.exact_points += len(left)
    found.wrong = (found.wrong + (block.start + rows[left[~positive]]).tolist())[:WRONG]
    if positive.any():
        proper = measured[left] & positive
        least = np.where(proper, magnitude / np.where(proper, length[left], 1.0) / UP**2, 0.0)
        found.margin = min(found.margin, float(least[positive].min()))


def _look_at_weights(found: Found, block: _Stored, certificate: Certificate) -> None:
    low, high = np.searchsorted(certificate.support, [block.start, block.start + block.size])
    rows = certificate.support[low:high] - block.start
    weights = certificate.weights[low:high]
    rows, weights = rows[weights > 0], weights[weights > 0]
    dimension = block.points.shape[1] + block.intercept
    if found.total is None or found.spread is None:
        found.total, found.spread = np.zeros(dimension), np.zeros(dimension)
    size = block.piece(dimension)
    for piece in range(0, len(rows), size):
        _weigh(found, block, rows[piece : piece + size], weights[piece : piece + size], certificate)


def _weigh(
    found: Found, block: _Stored, rows: NDArray[np.int64], weights: NDArray[np.float64], certificate: Certificate
) -> None:
    assert found.total is not None, "zeros to begin with"
    assert found.spread is not None, "zeros to begin with"
    chosen, signs = block.wide(rows), block.label[rows].astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        norm = chosen.norm()
    zero = ~chosen.nonzero()
    if (~zero & ((norm < NORMS[0]) | (norm > NORMS[1]))).any():
        raise CheckFailedError(f"a point of the support has a norm outside {NORMS[0]:g} .. {NORMS[1]:g}; nothing can be proved")
    factor = np.divide(weights, norm, out=np.zeros(len(rows)), where=~zero) * signs
    total, spread = chosen.sums(factor)
    found.total += total
    found.spread += spread
    found.terms += len(rows) + 1
    if zero.any():
        found.zero = True
    if not _may_be_exact(certificate, chosen.terms):
        return
    if block.origin is not None:  # (x_j, 1), and the same for p below
        chosen = DensePoints(np.hstack([block.origin[0][rows].astype(np.float64), np.ones((len(rows), 1))]))
        found.origin = -np.append(block.origin[1], 1.0)
    found.support.append((chosen.scaled(signs), np.abs(factor)))


def _separator(found: Found) -> Check:
    if found.wrong:
        raise CheckFailedError(f"not a separator: point {found.wrong[0]} is not on the positive side of the hyperplane")
    margin, exact = max(0.0, found.margin), found.exact_points
    how = f", {exact} of them beyond float64" if exact else ""
    text = f"all {found.points} points are on the positive side{how}; the margin is at least {margin:.6g}"
    return Check("feasible", "rigorous", margin, 1.0, found.points, exact, text)


def _gordan(found: Found, certificate: Certificate) -> Check:
    assert found.total is not None, "every block adds to the sum"
    assert found.spread is not None, "every block adds to the sum"
    terms = found.terms + len(found.total) + 10  # sums, and difference, norm, quotient, product of each
    residual = np.abs(found.total) + _gamma(terms) / (1 - 2 * _gamma(terms)) * found.spread * UP + terms * LOST
    size = float(np.linalg.norm(residual)) * (1 + _gamma(len(residual) + 4)) * UP
    weight = float(certificate.weights.sum()) * (1 - _gamma(len(certificate.weights) + 1))
    upper = size / weight * UP
    exact = _exactly(found, upper)
    if exact is not None:
        return Check("infeasible", "exact", -1.0, 0.0, found.points, 0, exact)
    text = f"no unit vector has a margin above {upper:.6g} (weights on {len(certificate.support)} of {found.points} points)"
    return Check("eps-infeasible", "rigorous", -1.0, min(1.0, upper), found.points, 0, text)


def _may_be_exact(certificate: Certificate, terms: int) -> bool:
    """Whether the support is so small that it is kept."""
    return len(certificate.support) * terms <= SUPPORT_ENTRIES


def _exactly(found: Found, upper: float) -> str | None:
    """Why no hyperplane separates the points of the support, if that can be proved."""
    if found.zero:
        return "a point is zero, so no hyperplane has it on its positive side"
    if upper > NEARLY or not found.support:
        return None
    points = joined_points([points for points, _ in found.support], SUPPORT_ENTRIES)
    if points is None:
        return None
    factors = np.concatenate([factors for _, factors in found.support])
    if found.origin is not None:
        points, factors = np.vstack([points, found.origin]), np.append(factors, factors.sum())
    proved = balance(points, factors)
    if proved is None:
        return None
    count = proved.support - (found.origin is not None)
    near = f" (those given are off by {proved.off:.1g})" if proved.off else ""
    return f"{count} points conflict: some weights on them make their sum exactly zero{near}, no hyperplane separates them"
