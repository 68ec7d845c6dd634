"""What blocks of cones showed on the way to a proof.

* Separator: every cone's least eigenvalue of X_c y must be proved to be positive (``eigenvalues``), with the rounding bounds of
  the products; the margin is the least of them over the norm of the cone and |y|, rounded down.
* Weights: x on the stored rows. What a cone lacks to be a member for certain is added to it, a multiple of e; |Ax| of the
  scaled cones, with all bounds added and rounded up, over <e, x> rounded down: no unit y has a larger margin.

It shares no code with passes and methods. What it has read is compared with the fingerprint.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.data.dataset import Dataset
from dfeas.data.storage.layout import PADDING, kind_of, rows_of
from dfeas.data.storage.readers import Buffers, Stop, unless_stopped
from dfeas.errors import CheckFailedError, CorruptDataError
from dfeas.verify.certificate import Certificate
from dfeas.verify.core import Maps
from dfeas.verify.eigenvalues import least_proved, longest, norms_proved, unit
from dfeas.verify.evidence import WRONG, Check, joined
from dfeas.verify.rounding import NORMS, TINY, UP, U, gamma
from dfeas.verify.stored import compare, crc

SHOWN = 3
"""Critical cones that are named."""


@dataclass(frozen=True, order=True)
class Critical:
    """A cone that the answer depends on; the first in order are named."""

    order: float  # its margin, or minus its weight
    row: int  # its first row, as stored
    kind: str
    size: int


@dataclass
class Found:
    """What some consecutive blocks showed."""

    m: int
    checksums: list[tuple[int, int]] = field(default_factory=list)  # of rows and codes of each block
    padding: list[int] = field(default_factory=list)  # rows of each block that are of no cone
    cones: int = 0
    margin: float = math.inf  # least proved margin of a cone
    critical: list[Critical] = field(default_factory=list)
    wrong: list[int] = field(default_factory=list)  # first rows of cones that are not proved to be positive
    total: NDArray[np.float64] | None = None  # (m,) A x of scaled cones
    spread: NDArray[np.float64] | None = None  # (m,) of absolute values
    shifts: float = 0.0  # |A e| times what makes x a member for certain, at most
    weight: float = 0.0  # <e, x>, at least
    terms: int = 0
    zero: int = -1  # first row of a cone of zeros that has a weight

    def add(self, other: Found) -> None:
        """What the blocks that follow showed."""
        self.checksums += other.checksums
        self.padding += other.padding
        self.cones += other.cones
        self.margin = min(self.margin, other.margin)
        self.critical = sorted(self.critical + other.critical)[:SHOWN]
        self.wrong = (self.wrong + other.wrong)[:WRONG]
        if self.total is None or self.spread is None:
            self.total, self.spread = other.total, other.spread
        elif other.total is not None and other.spread is not None:
            self.total, self.spread = self.total + other.total, self.spread + other.spread
        self.shifts += other.shifts
        self.weight += other.weight
        self.terms += other.terms + int(self.terms > 0 and other.terms > 0)  # zeros are added exactly
        self.zero = other.zero if self.zero < 0 else self.zero


Floats = NDArray[np.float64]

PIECE = 1 << 18
"""Entries of rows that are looked at at a time."""
AHEAD = 8
"""Blocks that the kernel is asked to read ahead."""
CLOSE = 1 - 1e-9
"""A margin by a coarser norm that is larger by this tells nothing new."""


def check(engine: Maps, dataset: Dataset, certificate: Certificate) -> Check:
    """Prove the certificate on all cones.

    Raises CheckFailedError when it does not prove what it claims, CorruptDataError when the data is not what it was made for.
    """
    require_evidence(certificate, dataset)
    nodes: list[tuple[int, int, Found]] = []
    for node in (node for part in engine.map(check_range, certificate) for node in part):
        joined(nodes, node)
    found = nodes[0][2]
    for _, _, more in nodes[1:]:
        found.add(more)
    compare(dataset, found.checksums, certificate.fingerprint, certificate.view)
    return _separator(found, dataset) if certificate.kind == "separator" else _weights(found, dataset)


def require_evidence(certificate: Certificate, dataset: Dataset) -> None:
    """Raise CheckFailedError when a certificate can be none about the dataset; cones are not looked at."""
    if certificate.view != dataset.view or certificate.kernel:
        raise CheckFailedError(f"{dataset.where}: the certificate sees the data otherwise, or with a kernel")
    if certificate.kind == "separator":
        y = certificate.y
        if y.shape != (dataset.m,):
            raise CheckFailedError(f"the separator has {y.size} entries, the data {dataset.m} columns")
        if not np.isfinite(y).all() or not 1e-100 < np.abs(y).max() < 1e100:
            raise CheckFailedError("the separator is zero, not finite, or has entries outside 1e-100 .. 1e100")
        return
    support, weights = certificate.support, certificate.weights
    if certificate.kind != "gordan":
        raise CheckFailedError(f"a certificate of kind {certificate.kind} proves nothing about cones")
    if not len(support) or (support[1:] <= support[:-1]).any() or support[0] < 0 or support[-1] >= dataset.n:
        raise CheckFailedError(f"the support is not an ascending list of rows below {dataset.n}")
    if not np.isfinite(weights).all() or np.abs(weights).max() > 1e6:
        raise CheckFailedError("the weights are not finite, or above 1e6")


def check_range(
    dataset: Dataset, first: int, stop: int, certificate: Certificate, stopped: Stop | None = None
) -> list[tuple[int, int, Found]]:
    """Look at blocks first .. stop-1."""
    nodes: list[tuple[int, int, Found]] = []
    buffers, known = Buffers(), np.inf
    for index in unless_stopped(range(first, stop), stopped):
        if index + AHEAD < stop:
            dataset.points.advise(index + AHEAD)
        stored: Any = dataset.points.read(index, buffers)
        label = dataset.labels.read(index, buffers)
        found = Found(dataset.m, [(crc(stored), crc(label))])
        start = index * dataset.block_rows
        cones = _cones(label, f"{dataset.where}: block {index}")
        found.padding, found.cones = [int((label == PADDING).sum())], sum(len(starts) for _, _, starts in cones)
        if certificate.kind == "separator":
            for kind, size, starts in cones:
                for some, rows in _pieces(stored, kind, size, starts):
                    _look_at_eigenvalues(found, kind, size, start + some, rows, certificate.y, known)
                    known = min(known, found.margin)
        else:
            _look_at_weights(found, cones, stored, start, certificate)
        joined(nodes, (0, index, found))
    return nodes


def _cones(label: NDArray[Any], where: str) -> list[tuple[str, int, NDArray[np.int64]]]:
    """Kind, size and first rows of the cones of a block. Raises CorruptDataError when codes do not cover its rows."""
    firsts = np.flatnonzero(label > 0)
    covered, found = np.full(len(label), PADDING, np.int64), []
    for value in np.unique(label[firsts]):
        starts = firsts[label[firsts] == value]
        try:
            kind, size = kind_of(int(value))
        except ValueError as error:
            raise CorruptDataError(f"{where} is damaged: {error}; restore or ingest again") from None
        rows = rows_of(kind, size)
        if starts[-1] + rows > len(label):
            raise CorruptDataError(f"{where} is damaged: a cone reaches out of it; restore or ingest again")
        covered[(starts[:, None] + np.arange(rows)).reshape(-1)] = 0
        covered[starts] = value
        found.append((kind, size, starts))
    if not np.array_equal(covered, label):
        raise CorruptDataError(f"{where} is damaged: the codes of its rows do not make cones; restore or ingest again")
    return found


def _pieces(
    stored: NDArray[Any], kind: str, size: int, starts: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], Floats]]:
    """First rows (c,) and rows (c, d, m) in float64 of some cones at a time. Raises CheckFailedError when one is not usable."""
    d = rows_of(kind, size)
    at_once = max(1, PIECE // (d * stored.shape[1]))
    for first in range(0, len(starts), at_once):
        some = starts[first : first + at_once]
        rows = stored[some[:, None] + np.arange(d)].astype(np.float64)
        most = np.abs(rows).max(axis=(1, 2))
        if not (np.isfinite(most).all() and ((most == 0) | ((most > NORMS[0]) & (most < NORMS[1]))).all()):
            raise CheckFailedError(
                "a cone has entries that are not finite, or all outside 1e-140 .. 1e140; nothing can be proved"
            )
        yield some, rows


def _look_at_eigenvalues(
    found: Found, kind: str, size: int, row: NDArray[np.int64], rows: Floats, y: Floats, known: float
) -> None:
    """Add what some cones show of a separator; ``known`` is a margin that is proved of other cones."""
    m = len(y)
    s = rows @ y
    off = gamma(m) / (1 - 2 * gamma(m)) * (np.abs(rows) @ np.abs(y)) * UP + 4 * m * TINY
    least = least_proved(kind, size, s, off)
    proved = least > 0
    if not proved.all():
        found.wrong = (found.wrong + row[~proved].tolist())[:WRONG]
        return
    coarse = longest(longest(rows)) * (np.sqrt(2.0) if kind == "q" else 1.0) * UP
    margin = least / coarse
    size_of_y = float(longest(y))
    # the norms are found for the cones that may be the least
    first = int(margin.argmin())
    for some in (np.array([first]), np.flatnonzero(np.arange(len(row)) != first)):
        some = some[margin[some] / size_of_y * CLOSE < min(known, found.margin)]
        if len(some):
            proper = least[some] / (norms_proved(kind, rows[some])[1] * size_of_y) / UP**2
            worst = int(proper.argmin())
            found.margin = min(found.margin, float(proper[worst]))
            named = Critical(float(proper[worst]), int(row[some[worst]]), kind, size)
            found.critical = sorted([*found.critical, named])[:1]


def _look_at_weights(
    found: Found, cones: list[tuple[str, int, NDArray[np.int64]]], stored: NDArray[Any], start: int, certificate: Certificate
) -> None:
    """Add the weighted rows of a block that are in the support."""
    found.total, found.spread = np.zeros(found.m), np.zeros(found.m)
    low, high = np.searchsorted(certificate.support, [start, start + len(stored)])
    if low == high:
        return
    x, left = np.zeros(len(stored)), np.zeros(len(stored), bool)
    here = certificate.support[low:high] - start
    x[here], left[here] = certificate.weights[low:high], True
    for kind, size, starts in cones:
        d = rows_of(kind, size)
        touched = starts[left[starts[:, None] + np.arange(d)].any(axis=1)]
        for some, rows in _pieces(stored, kind, size, touched):
            places = some[:, None] + np.arange(d)
            left[places] = False
            _weigh(found, kind, size, start + some, rows, x[places])
    if left.any():
        raise CheckFailedError(f"row {start + int(np.flatnonzero(left)[0])} of the support is of no cone")


def _weigh(found: Found, kind: str, size: int, row: NDArray[np.int64], rows: Floats, x: Floats) -> None:
    """Add x (c, d) on the rows (c, d, m) of some cones."""
    assert found.total is not None, "zeros to begin with"
    assert found.spread is not None, "zeros to begin with"
    d, e = x.shape[1], unit(kind, size, x.shape[1])
    shift = np.maximum(0.0, -least_proved(kind, size, x, np.zeros_like(x)))
    trace = x @ e
    trace = np.maximum(0.0, trace - gamma(d) * (np.abs(x) @ e) * UP)
    below, above = norms_proved(kind, rows)
    empty = above == 0
    if (empty & (trace > 0)).any() and found.zero < 0:
        found.zero = int(row[empty & (trace > 0)][0])
    norm = np.where(empty, 1.0, above)
    factor = x / norm[:, None]
    flat, weights = rows.reshape(-1, rows.shape[2]), factor.reshape(-1)
    found.total += weights @ flat
    found.spread += np.abs(weights) @ np.abs(flat)
    found.terms += len(flat) + 3
    # A e is the sum of ``size`` columns of a semidefinite cone, and a mean of two of a second-order one
    found.shifts += float((shift * (size if kind == "s" else 1)).sum()) * (1 + gamma(len(row) + 4))
    found.weight += float((trace * below / norm).sum()) * (1 - gamma(len(row) + 4))
    heaviest = np.argsort(-trace, kind="stable")[:SHOWN]
    named = [Critical(-float(trace[i]), int(row[i]), kind, size) for i in heaviest]
    found.critical = sorted(found.critical + named)[:SHOWN]


def _named(found: Found, cone: Critical, dataset: Dataset) -> str:
    """A cone by the row that it begins with, counted without padding."""
    row = cone.row - sum(found.padding[: cone.row // dataset.block_rows])
    return f"{cone.kind} at row {row}" if cone.kind == "l" else f"{cone.kind} {cone.size} at row {row}"


def _separator(found: Found, dataset: Dataset) -> Check:
    if found.wrong:
        raise CheckFailedError(
            f"not a separator: a least eigenvalue is not above its rounding error in the cone at stored row {found.wrong[0]}"
        )
    margin = max(0.0, found.margin)
    text = f"A*y is inside all {found.cones} cones; its least eigenvalue is at least {margin:.6g} of a cone's norm"
    text += f" (critical: {_named(found, found.critical[0], dataset)})" if found.critical else ""
    return Check("feasible", "rigorous", margin, 1.0, dataset.n, 0, text)


def _weights(found: Found, dataset: Dataset) -> Check:
    assert found.total is not None, "every block adds to the sum"
    assert found.spread is not None, "every block adds to the sum"
    if found.zero >= 0:
        row = found.zero - sum(found.padding[: found.zero // dataset.block_rows])
        text = f"the cone at row {row} has zeros only, so no y has A*y inside of it"
        return Check("infeasible", "exact", -1.0, 0.0, dataset.n, 0, text)
    if not found.weight > 0:
        raise CheckFailedError("the weights are no element of the cones: <e, x> is not positive")
    terms = found.terms + found.m + 10
    rounding = 2 * gamma(terms) * found.spread * UP + terms * 2.0**-500
    size = (float(longest(np.abs(found.total) + rounding)) + found.shifts * (1 + gamma(terms)) * UP) * UP
    weight = found.weight * (1 - gamma(terms))
    upper = size / weight * (1 + 4 * U)
    names = ", ".join(f"{_named(found, cone, dataset)} ({-cone.order:.3g})" for cone in found.critical)
    text = f"no unit y has a least eigenvalue above {upper:.6g} of a cone's norm in all {found.cones} cones"
    text += f" (critical, by weight: {names})"
    return Check("eps-infeasible", "rigorous", -1.0, min(1.0, upper), dataset.n, 0, text, float(longest(rounding)) / weight)
