"""The checker: proves a certificate from the stored points and labels alone, rounding errors included.

It shares no code with passes and methods, and reads through zarr rather than through the direct reader.

With u = 2**-53 and float64 arithmetic, for any order of summation |fl(x'y) - x'y| <= m u / (1 - m u) |x|'|y|, and
underflow adds at most m 2**-1074 (Higham, Accuracy and Stability, section 3.1). float32 entries are exact in float64.

* Separator: every point's score must exceed its own bound; those that do not are decided by compensated products, and then in
  integers, so that every one is decided. A positive norm does not change a sign, so signs are those of the stored points. The
  margin is rounded down.
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
from dataclasses import dataclass, field
from typing import Any, Protocol

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from dfeas.certificate import Certificate
from dfeas.errors import CheckFailedError, CorruptDataError
from dfeas.proof.balance import balance
from dfeas.proof.signs import signs as signs_of
from dfeas.store import Dataset
from dfeas.store.reading import Buffers
from dfeas.store.seen_from import SeenFrom

U = 2.0**-53
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


Support = list[tuple[NDArray[np.float64], NDArray[np.float64]]]
"""Signed points (r, d) as stored, and their factors (r,): weight over norm."""


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
    checksums: list[tuple[int, int]] = field(default_factory=list)

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
        self.checksums += other.checksums


Node = tuple[int, int, Found]
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
    _check_shape(certificate, dataset)
    nodes: list[Node] = []
    for node in (node for part in engine.map(check_range, certificate) for node in part):
        joined(nodes, node)
    found = nodes[0][2]
    for _, _, rest in nodes[1:]:
        found.add(rest)
    compare(dataset, found.checksums, certificate.fingerprint)
    return _separator(found) if certificate.kind == "separator" else _gordan(found, certificate)


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


def check_range(dataset: Dataset, first: int, stop: int, certificate: Certificate) -> list[Node]:
    """Look at blocks first .. stop-1."""
    nodes: list[Node] = []
    buffers = Buffers()
    seen = dataset.points if isinstance(dataset.points, SeenFrom) else None
    dimension = dataset.m + int(dataset.intercept)
    rows = max(1, PIECE_BYTES // (8 * dimension))
    piece_of = np.ones((rows, dimension))  # used again for every piece: fresh memory costs more than the arithmetic
    for index in range(first, stop):
        plain = None if seen is None else seen.stored(index, buffers)
        stored = dataset.points.read(index, buffers) if seen is None or plain is None else seen.differences(plain, buffers)
        label = dataset.labels.read(index, buffers)
        start = index * dataset.block_rows
        found = Found(points=len(stored), checksums=[(crc(stored), crc(label))])
        for piece in range(0, len(stored), rows):
            taken = stored[piece : piece + rows]
            points = piece_of[: len(taken)]
            points[:, : dataset.m] = taken
            with np.errstate(over="ignore", invalid="ignore"):
                suspect = not np.isfinite(points.sum())  # as it is with any entry that is not finite
            if suspect and not np.isfinite(points).all():
                raise CheckFailedError(f"{dataset.where}: a point of block {index} is not finite; nothing can be proved")
            signs = label[piece : piece + rows].astype(np.float64)
            exact = None if plain is None or seen is None else (plain[piece : piece + rows], seen.point)
            if certificate.kind == "separator":
                _look_at_scores(found, start + piece, points, signs, certificate.y, exact)
            else:
                _look_at_weights(found, start + piece, points, signs, certificate, exact)
        joined(nodes, (0, index, found))
    return nodes


def crc(array: NDArray[Any]) -> int:
    """crc32c of the entries in C order."""
    return int(google_crc32c.value(np.ascontiguousarray(array).reshape(-1).view(np.uint8)))


def compare(dataset: Dataset, checksums: list[tuple[int, int]], fingerprint: str) -> None:
    """Raise CorruptDataError when the checksums of all blocks do not make the fingerprint."""
    head = {"format": 1, "n": dataset.n, "m": dataset.m, "dtype": dataset.dtype.name, "block_rows": dataset.block_rows}
    digest = hashlib.sha256(json.dumps(head, sort_keys=True).encode())
    for pair in checksums:
        for each in pair:
            digest.update(each.to_bytes(4, "little"))
    mark = digest.hexdigest()
    if mark != fingerprint:
        raise CorruptDataError(
            f"{dataset.where}: the data is not what the certificate was made for "
            f"(fingerprint {mark[:12]}, certificate {fingerprint[:12]})"
        )


def _gamma(terms: int) -> float:
    """Bound of the relative error of ``terms`` roundings."""
    return terms * U / (1 - terms * U)


Exact = tuple[NDArray[Any], NDArray[np.float64]] | None
"""Points as stored, and the one that they are seen from."""


def _look_at_scores(
    found: Found, start: int, points: NDArray[np.float64], signs: NDArray[np.float64], y: NDArray[np.float64], exact: Exact
) -> None:
    m = points.shape[1] + 1  # a difference has one rounding more
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        score = (points @ y) * signs
        norm = np.sqrt(np.einsum("ij,ij->i", points, points))
        length = norm * (1 + _gamma(m + 4)) * float(np.linalg.norm(y)) * (1 + _gamma(m + 4))
        measured = (norm > NORMS[0]) & (norm < NORMS[1])  # squares that underflow or overflow do not matter there
        # |x|'|y| <= |x| |y|; where that does not do, |x|'|y| itself
        rate = UP * _gamma(m) / (1 - 2 * _gamma(m))
        bound = rate * length * UP + 4 * m * TINY
        near = np.flatnonzero(~(measured & (score > 2 * bound)))
        bound[near] = rate * (np.abs(points[near]) @ np.abs(y)) + 4 * m * TINY
        least = (score - bound) / (length * UP)
    proved = np.isfinite(score) & np.isfinite(bound) & (score > bound) & measured
    if proved.any():
        found.margin = min(found.margin, float(least[proved].min()) / UP)
    left = np.flatnonzero(~proved)
    if not left.size or len(found.wrong) >= WRONG:
        return
    if exact is None:
        sign, magnitude = signs_of(points[left], y)
    else:
        plain, origin = exact[0][left].astype(np.float64), np.broadcast_to(exact[1], (len(left), len(y)))
        sign, magnitude = signs_of(np.hstack([plain, origin]), np.append(y, -y))
    positive = sign == signs[left]
    found.exact_points += len(left)
    found.wrong = (found.wrong + (start + left[~positive]).tolist())[:WRONG]
    if positive.any():
        proper = measured[left] & positive
        least = np.where(proper, magnitude / np.where(proper, length[left], 1.0) / UP**2, 0.0)
        found.margin = min(found.margin, float(least[positive].min()))


def _look_at_weights(
    found: Found,
    start: int,
    points: NDArray[np.float64],
    signs: NDArray[np.float64],
    certificate: Certificate,
    exact: Exact,
) -> None:
    low, high = np.searchsorted(certificate.support, [start, start + len(points)])
    rows = certificate.support[low:high] - start
    weights = certificate.weights[low:high]
    rows, weights = rows[weights > 0], weights[weights > 0]
    if found.total is None or found.spread is None:
        found.total, found.spread = np.zeros(points.shape[1]), np.zeros(points.shape[1])
    if not len(rows):
        return
    chosen = points[rows]
    with np.errstate(over="ignore", under="ignore"):
        norm = np.sqrt(np.einsum("ij,ij->i", chosen, chosen))
    zero = ~chosen.any(axis=1)
    if (~zero & ((norm < NORMS[0]) | (norm > NORMS[1]))).any():
        raise CheckFailedError(f"a point of the support has a norm outside {NORMS[0]:g} .. {NORMS[1]:g}; nothing can be proved")
    factor = np.divide(weights, norm, out=np.zeros(len(rows)), where=~zero) * signs[rows]
    found.total += factor @ chosen
    found.spread += np.abs(factor) @ np.abs(chosen)
    found.terms += len(rows) + 1
    if zero.any():
        found.zero = True
    if not _may_be_exact(certificate, points.shape[1]):
        return
    if exact is not None:  # (x_j, 1), and the same for p below
        chosen = np.hstack([exact[0][rows].astype(np.float64), np.ones((len(rows), 1))])
        found.origin = -np.append(exact[1], 1.0)
    found.support.append((chosen * signs[rows, None], np.abs(factor)))


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


def _may_be_exact(certificate: Certificate, dimension: int) -> bool:
    """Whether the support is so small that it is kept."""
    return len(certificate.support) * dimension <= SUPPORT_ENTRIES


def _exactly(found: Found, upper: float) -> str | None:
    """Why no hyperplane separates the points of the support, if that can be proved."""
    if found.zero:
        return "a point is zero, so no hyperplane has it on its positive side"
    if upper > NEARLY or not found.support:
        return None
    points = np.concatenate([points for points, _ in found.support])
    factors = np.concatenate([factors for _, factors in found.support])
    if found.origin is not None:
        points, factors = np.vstack([points, found.origin]), np.append(factors, factors.sum())
    proved = balance(points, factors)
    if proved is None:
        return None
    count = proved.support - (found.origin is not None)
    near = f" (those given are off by {proved.off:.1g})" if proved.off else ""
    return f"{count} points conflict: some weights on them make their sum exactly zero{near}, no hyperplane separates them"
