"""The checker of cones: eigenvalues with proved bounds (``arithmetic``), for many cones of one size at once.

* Separator: every cone's least eigenvalue of X_c y must be proved to be positive, with the rounding bounds of the products; the
  margin is the least of them over the norm of the cone and |y|, rounded down.
* Weights: x on the stored rows. What a cone lacks to be a member for certain is added to it, a multiple of e; |Ax| of the
  scaled cones, with all bounds added and rounded up, over <e, x> rounded down: no unit y has a larger margin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.data.storage.layout import PADDING, kind_of, rows_of
from dfeas.data.storage.readers import Stop
from dfeas.errors import CheckFailedError, CorruptDataError
from dfeas.verify.arithmetic import NORMS, TINY, UP, U, floor_of, gamma, largest_singular, longest, shortest
from dfeas.verify.blocks import WRONG, Block, Data, Node, Tallies, Tally, blocks, nodes_of, require_support
from dfeas.verify.certificate import Answer, Certificate, Check, attempt

Floats = NDArray[np.float64]


def triangle(k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns (k (k + 1) / 2,) of the entries of an element: the lower triangle, column by column."""
    places = [(i, j) for j in range(k) for i in range(j, k)]
    return np.array([i for i, _ in places]), np.array([j for _, j in places])


def unit(kind: str, size: int, d: int) -> Floats:
    """The element e (d,), whose product with another one is the sum of its traces."""
    e = np.zeros(d)
    if kind == "s":
        rows, columns = triangle(size)
        e[rows == columns] = 1.0
    else:
        e[0] = 1.0
    return e


def least_proved(kind: str, size: int, s: Floats, off: Floats) -> Floats:
    """Lower bounds (c,) of the least eigenvalues of elements (c, d) that are off by at most ``off`` (c, d) in each entry."""
    if kind == "l":
        least = s[:, 0] - off[:, 0] * UP
        return np.asarray(least - 2 * U * np.abs(least))
    if kind == "q":
        first, radius = s[:, 0] - off[:, 0] * UP, longest(np.abs(s[:, 1:]) + off[:, 1:] * UP)
        return np.asarray((first - radius) - 4 * U * (np.abs(first) + radius))
    rows, columns = triangle(size)
    S = np.zeros((len(s), size, size))
    S[:, rows, columns] = s * np.where(rows == columns, 1.0, 1 / np.sqrt(2.0))
    # entries off the diagonal count twice, by half of their squares: |off| is the Frobenius norm; sqrt 2 is rounded, too
    wrong = longest(off + 4 * U * np.abs(s))
    floor = floor_of(S)
    return np.asarray((floor - wrong) - 2 * U * (np.abs(floor) + wrong))


def norms_proved(kind: str, X: Floats) -> tuple[Floats, Floats]:
    """Bounds (c,) from below and above of the norms of cones with rows (c, d, m), see ``dfeas.data.cones``."""
    if kind == "s":
        return largest_singular(X)
    below, above = shortest(X[:, 0]), longest(X[:, 0])
    if kind == "q":
        low, high = largest_singular(X[:, 1:])
        below, above = (below + low) * (1 - 2 * U), (above + high) * UP
    return below, above


Groups = list[tuple[str, int, NDArray[np.int64]]]
"""Kind, size and first rows of cones."""

PIECE = 1 << 18
"""Entries of rows that are looked at at a time."""
CLOSE = 1 - 1e-9
"""A margin by a coarser norm that is larger by this tells nothing new."""
SHOWN = 3
"""Critical cones that are named."""


@dataclass(frozen=True)
class SameCones:
    """Some cones of one kind and size."""

    kind: str
    size: int
    row: NDArray[np.int64]  # (c,) their first rows, as stored
    rows: Floats  # (c, d, m)


@dataclass(frozen=True, order=True)
class Critical:
    """A cone that the answer depends on; the first in order are named."""

    order: float  # its margin, or minus its weight
    row: int  # its first row, as stored
    kind: str
    size: int


@dataclass
class ConeTally(Tally):
    """What some consecutive blocks showed of a certificate."""

    padding: list[int] = field(default_factory=list)  # rows of each block that are of no cone
    cones: int = 0
    critical: list[Critical] = field(default_factory=list)
    shifts: float = 0.0  # |A e| times what makes x a member for certain, at most
    weight: float = 0.0  # <e, x>, at least
    zero: int = -1  # first row of a cone of zeros that has a weight

    def add(self, other: ConeTally) -> None:
        super().add(other)
        self.padding += other.padding
        self.cones += other.cones
        self.critical = sorted(self.critical + other.critical)[:SHOWN]
        self.shifts += other.shifts
        self.weight += other.weight
        self.zero = other.zero if self.zero < 0 else self.zero


@dataclass(frozen=True)
class Cones:
    """Checks separators and weights of cones."""

    def require(self, certificate: Certificate, data: Data) -> None:
        if certificate.view != data.view or certificate.kernel:
            raise CheckFailedError(f"{data.where}: the certificate sees the data otherwise, or with a kernel")
        y, weights = certificate.y, certificate.weights
        if certificate.kind == "separator":
            if y.shape != (data.m,):
                raise CheckFailedError(f"the separator has {y.size} entries, the data {data.m} columns")
            if not np.isfinite(y).all() or not 1e-100 < np.abs(y).max() < 1e100:
                raise CheckFailedError("the separator is zero, not finite, or has entries outside 1e-100 .. 1e100")
            return
        if certificate.kind != "gordan":
            raise CheckFailedError(f"a certificate of kind {certificate.kind} proves nothing about cones")
        require_support(certificate.support, data.n, "rows")
        if not np.isfinite(weights).all() or np.abs(weights).max() > 1e6:
            raise CheckFailedError("the weights are not finite, or above 1e6")

    def chosen(self, certificates: Sequence[Certificate], data: Data) -> None:
        """All blocks: a cone may have rows in any of them."""

    def more(self, certificates: Sequence[Certificate]) -> int:
        """No read after the first."""
        return 0

    def look(
        self,
        data: Data,
        first: int,
        stop: int,
        certificates: Sequence[Certificate],
        chosen: Sequence[int] | None = None,
        stopped: Stop | None = None,
    ) -> list[Node[Tallies]]:
        known = [np.inf] * len(certificates)  # the least margins so far

        def looked(block: Block) -> Tallies:
            cones = _cones(block.label, f"{data.where}: block {block.index}")
            shown = Tallies(block.checksums, [])
            for place, certificate in enumerate(certificates):
                tally = ConeTally(padding=[int((block.label == PADDING).sum())], cones=sum(len(each) for _, _, each in cones))
                shown.tallies.append(tally)
                if certificate.kind == "separator":
                    for some in _pieces(block, cones):
                        _look_at_eigenvalues(tally, some, certificate.y, known[place])
                        known[place] = min(known[place], tally.margin)
                else:
                    _look_at_weights(tally, cones, block, certificate)
            return shown

        return nodes_of((first + place, looked(block)) for place, block in blocks(data, range(first, stop), stopped))

    def conclude(
        self, part: Tallies, certificates: Sequence[Certificate], data: Data, read: Callable[..., Any]
    ) -> list[Answer]:
        pairs = zip(part.tallies, certificates, strict=True)
        return [attempt(_separator if each.kind == "separator" else _weights, tally, data) for tally, each in pairs]


def _cones(label: NDArray[Any], where: str) -> Groups:
    """Kind, size and first rows of the cones of a block. Raises CorruptDataError when codes do not cover its rows."""
    firsts = np.flatnonzero(label > 0)
    covered, groups = np.full(len(label), PADDING, np.int64), []
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
        groups.append((kind, size, starts))
    if not np.array_equal(covered, label):
        raise CorruptDataError(f"{where} is damaged: the codes of its rows do not make cones; restore or ingest again")
    return groups


def _pieces(block: Block, cones: Groups) -> Iterator[SameCones]:
    """Cones of a block, some at a time. Raises CheckFailedError when one is not usable."""
    for kind, size, starts in cones:
        d = rows_of(kind, size)
        at_once = max(1, PIECE // (d * block.points.shape[1]))
        for first in range(0, len(starts), at_once):
            some = starts[first : first + at_once]
            rows = block.points[some[:, None] + np.arange(d)].astype(np.float64)
            most = np.abs(rows).max(axis=(1, 2))
            if not (np.isfinite(most).all() and ((most == 0) | ((most > NORMS[0]) & (most < NORMS[1]))).all()):
                raise CheckFailedError(
                    "a cone has entries that are not finite, or all outside 1e-140 .. 1e140; nothing can be proved"
                )
            yield SameCones(kind, size, block.start + some, rows)


def _look_at_eigenvalues(tally: ConeTally, cones: SameCones, y: Floats, known: float) -> None:
    """Add what some cones show of a separator; ``known`` is a margin that is proved of other cones."""
    kind, row, rows, m = cones.kind, cones.row, cones.rows, len(y)
    s = rows @ y
    off = gamma(m) / (1 - 2 * gamma(m)) * (np.abs(rows) @ np.abs(y)) * UP + 4 * m * TINY
    least = least_proved(kind, cones.size, s, off)
    proved = least > 0
    if not proved.all():
        tally.wrong = (tally.wrong + row[~proved].tolist())[:WRONG]
        return
    coarse = longest(longest(rows)) * (np.sqrt(2.0) if kind == "q" else 1.0) * UP
    margin = least / coarse
    size_of_y = float(longest(y))
    # the norms are computed for the cones that may be the least
    first = int(margin.argmin())
    for some in (np.array([first]), np.flatnonzero(np.arange(len(row)) != first)):
        some = some[margin[some] / size_of_y * CLOSE < min(known, tally.margin)]
        if len(some):
            proper = least[some] / (norms_proved(kind, rows[some])[1] * size_of_y) / UP**2
            worst = int(proper.argmin())
            tally.margin = min(tally.margin, float(proper[worst]))
            named = Critical(float(proper[worst]), int(row[some[worst]]), kind, cones.size)
            tally.critical = sorted([*tally.critical, named])[:1]


def _look_at_weights(tally: ConeTally, cones: Groups, block: Block, certificate: Certificate) -> None:
    """Add the weighted rows of a block that are in the support."""
    stored, start = block.points, block.start
    tally.total, tally.spread = np.zeros(stored.shape[1]), np.zeros(stored.shape[1])
    low, high = np.searchsorted(certificate.support, [start, start + len(stored)])
    if low == high:
        return
    x, left = np.zeros(len(stored)), np.zeros(len(stored), bool)
    here = certificate.support[low:high] - start
    x[here], left[here] = certificate.weights[low:high], True
    touched = [(k, size, first[left[first[:, None] + np.arange(rows_of(k, size))].any(axis=1)]) for k, size, first in cones]
    for some in _pieces(block, touched):
        places = some.row[:, None] - start + np.arange(some.rows.shape[1])
        left[places] = False
        _weigh(tally, some, x[places])
    if left.any():
        raise CheckFailedError(f"row {start + int(np.flatnonzero(left)[0])} of the support is of no cone")


def _weigh(tally: ConeTally, cones: SameCones, x: Floats) -> None:
    """Add x (c, d) on the rows of some cones."""
    kind, size, row, rows = cones.kind, cones.size, cones.row, cones.rows
    total, spread = tally.sums()
    d, e = x.shape[1], unit(kind, size, x.shape[1])
    shift = np.maximum(0.0, -least_proved(kind, size, x, np.zeros_like(x)))
    trace = x @ e
    trace = np.maximum(0.0, trace - gamma(d) * (np.abs(x) @ e) * UP)
    below, above = norms_proved(kind, rows)
    empty = above == 0
    if (empty & (trace > 0)).any() and tally.zero < 0:
        tally.zero = int(row[empty & (trace > 0)][0])
    norm = np.where(empty, 1.0, above)
    factor = x / norm[:, None]
    flat, weights = rows.reshape(-1, rows.shape[2]), factor.reshape(-1)
    total += weights @ flat
    spread += np.abs(weights) @ np.abs(flat)
    tally.terms += len(flat) + 3
    # A e is the sum of ``size`` columns of a semidefinite cone, and a mean of two of a second-order one
    tally.shifts += float((shift * (size if kind == "s" else 1)).sum()) * (1 + gamma(len(row) + 4))
    tally.weight += float((trace * below / norm).sum()) * (1 - gamma(len(row) + 4))
    heaviest = np.argsort(-trace, kind="stable")[:SHOWN]
    named = [Critical(-float(trace[i]), int(row[i]), kind, size) for i in heaviest]
    tally.critical = sorted(tally.critical + named)[:SHOWN]


def _named(tally: ConeTally, cone: Critical, data: Data) -> str:
    """A cone by the row that it begins with, counted without padding."""
    row = cone.row - sum(tally.padding[: cone.row // data.block_rows])
    return f"{cone.kind} at row {row}" if cone.kind == "l" else f"{cone.kind} {cone.size} at row {row}"


def _separator(tally: ConeTally, data: Data) -> Check:
    if tally.wrong:
        raise CheckFailedError(
            f"not a separator: a least eigenvalue is not above its rounding error in the cone at stored row {tally.wrong[0]}"
        )
    margin = max(0.0, tally.margin)
    text = f"A*y is inside all {tally.cones} cones; its least eigenvalue is at least {margin:.6g} of a cone's norm"
    text += f" (critical: {_named(tally, tally.critical[0], data)})" if tally.critical else ""
    return Check("feasible", "rigorous", margin, 1.0, data.n, 0, text)


def _weights(tally: ConeTally, data: Data) -> Check:
    total, spread = tally.sums()
    if tally.zero >= 0:
        row = tally.zero - sum(tally.padding[: tally.zero // data.block_rows])
        text = f"the cone at row {row} has zeros only, so no y has A*y inside of it"
        return Check("infeasible", "exact", -1.0, 0.0, data.n, 0, text)
    if not tally.weight > 0:
        raise CheckFailedError("the weights are no element of the cones: <e, x> is not positive")
    terms = tally.terms + data.m + 10
    rounding = 2 * gamma(terms) * spread * UP + terms * 2.0**-500
    size = (float(longest(np.abs(total) + rounding)) + tally.shifts * (1 + gamma(terms)) * UP) * UP
    weight = tally.weight * (1 - gamma(terms))
    upper = size / weight * (1 + 4 * U)
    names = ", ".join(f"{_named(tally, cone, data)} ({-cone.order:.3g})" for cone in tally.critical)
    text = f"no unit y has a least eigenvalue above {upper:.6g} of a cone's norm in all {tally.cones} cones"
    text += f" (critical, by weight: {names})"
    return Check("eps-infeasible", "rigorous", -1.0, min(1.0, upper), data.n, 0, text, float(longest(rounding)) / weight)
