"""The checker of cones: eigenvalues with proved bounds (``arithmetic``), for many cones of one size at once.

* Separator: every cone's least eigenvalue of X_c y must be proved to be positive, with the rounding bounds of the products; the
  margin is the least of them over the norm of the cone and |y|, rounded down.
* Weights: x on the stored rows. What a cone lacks to be a member for certain is added to it, a multiple of e; |Ax| of the
  scaled cones, with all bounds added and rounded up, over <e, x> rounded down: no unit y has a larger margin. Where x is
  further inside of the cones than its image is long, a second read may show that one near it has Ax = 0 (``interior``). Where
  it is near to entries of the orthant alone, these may have weights with a zero sum (``balance``), and few cones may have an x
  on their boundary with Ax = 0 (``face``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from msgspec import field
from numpy.typing import NDArray

from dfeas.cones.checker.face import is_conflict_on_face
from dfeas.cones.checker.interior import DEEP, WIDEST, InteriorTally, is_balanced, look_inside
from dfeas.cones.checker.rows import ConeRows, DenseConeRows, SparseConeRows, bound_least, unit
from dfeas.data.storage.layout import PADDING, kind_of, rows_of
from dfeas.errors import CheckFailedError, CorruptDataError
from dfeas.exact.arithmetic import NORMS, UP, Floats, U, gamma, longest
from dfeas.records import replace
from dfeas.verify.balance import balance
from dfeas.verify.blocks import Block, Data, require_support
from dfeas.verify.certificate import Answer, Certificate, Check, attempt
from dfeas.verify.tallies import WRONG, BlockTally, Checker, Looker, Tallies, look_at

Groups = list[tuple[str, int, NDArray[np.int64]]]
"""Kind, size and first rows of cones."""
SHOWN = 3
"""Critical cones that are named."""


@dataclass(frozen=True, order=True)
class Critical:
    """A cone that the answer depends on; the first in order are named."""

    order: float  # its margin, or minus its weight
    row: int  # its first row, as stored
    kind: str
    size: int
    padding: int = 0  # rows of no cone before it, in the blocks that were looked at

    def behind(self, padding: int) -> Critical:
        """The same with more such rows before it."""
        return replace(self, padding=self.padding + padding)


class ConeTally(BlockTally):
    """What some consecutive blocks showed of a certificate."""

    padding: int = 0  # rows that are of no cone
    cones: int = 0
    critical: list[Critical] = field(default_factory=list)
    shifts: float = 0.0  # |A e| times what makes x a member for certain, at most
    weight: float = 0.0  # <e, x>, at least
    zero: Critical | None = None  # the first cone of zeros that has a weight
    inside: float = -np.inf  # the largest of the proved least eigenvalues of x in a cone

    def add(self, other: ConeTally) -> None:
        super().add(other)
        self.cones += other.cones
        self.critical = sorted([*self.critical, *(each.behind(self.padding) for each in other.critical)])[:SHOWN]
        self.shifts += other.shifts
        self.weight += other.weight
        if self.zero is None and other.zero is not None:
            self.zero = other.zero.behind(self.padding)
        self.inside = max(self.inside, other.inside)
        self.padding += other.padding

    def count_padding(self, block: Block) -> None:
        """Of the only block that was looked at."""
        rows = block.start + np.flatnonzero(block.label == PADDING)
        self.padding = len(rows)
        self.critical = [each.behind(int(np.searchsorted(rows, each.row))) for each in self.critical]
        if self.zero is not None:
            self.zero = self.zero.behind(int(np.searchsorted(rows, self.zero.row)))


@dataclass(frozen=True)
class Cones(Checker):
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

    def look(self, data: Data, certificates: Sequence[Certificate]) -> Callable[[Block], Tallies]:
        known = [np.inf] * len(certificates)  # the least margins so far

        def look_at_block(block: Block) -> Tallies:
            cones = _cones(block, data)
            shown = Tallies(block.checksums, [])
            for place, certificate in enumerate(certificates):
                tally = ConeTally(cones=sum(len(each) for _, _, each in cones))
                shown.tallies.append(tally)
                if certificate.kind == "separator":
                    for some in _pieces(block, cones):
                        _look_at_eigenvalues(tally, some, certificate.y, known[place])
                        known[place] = min(known[place], tally.margin)
                else:
                    tally.total, tally.spread = np.zeros((2, block.points.shape[1]))
                    for some, x in _take_weighted(cones, block, certificate):
                        _add_weighted(tally, some, x)
                tally.count_padding(block)
            return shown

        return look_at_block

    def conclude(
        self, part: Tallies, certificates: Sequence[Certificate], data: Data, read: Callable[..., Any]
    ) -> list[Answer]:
        answers: list[Answer] = []
        for tally, each in zip(part.tallies, certificates, strict=True):
            answers.append(attempt(_conclude_separator if each.kind == "separator" else _conclude_weights, tally, data))
            if each.kind == "gordan" and _is_worth_balancing(tally, data):
                closer = read(look_at, Weighted(InteriorTally, partial(look_inside, level=DEEP * tally.inside)), [each], None)
                if is_balanced(closer.tallies[0], _residual(tally, data)[0]):
                    answers[-1] = _conclude_balanced(tally, data)
            few = len(each.support) * data.m <= 1 << 20  # entries of rows with weights that are looked at together
            if each.kind == "gordan" and _may_be_zero(answers[-1]) and not data.rounded and few:
                kept = read(look_at, Weighted(RowTally, keep_rows), [each], None).tallies[0]
                if is_linear_conflict(kept):
                    answers[-1] = _conclude_balanced(tally, data)
                elif is_conflict_on_face(kept.rows):
                    matrices = any(cones.kind == "s" for cones, _ in kept.rows)
                    answers[-1] = _conclude_balanced(tally, data, " of X as svec rounds it" if matrices else "")
        return answers


def _cones(block: Block, data: Data) -> Groups:
    """Kind, size and first rows of the cones of a block. Raises CorruptDataError when codes do not cover a chunk."""
    label, chunk = block.label, data.chunk_rows

    def describe_damage(row: int, why: str) -> CorruptDataError:
        which = f"chunk {(block.start + row) // chunk} of label"
        return CorruptDataError(f"{data.where}: {which} is damaged: {why}; restore or ingest again")

    firsts = np.flatnonzero(label > 0)
    covered, groups = np.full(len(label), PADDING, np.int64), []
    for value in np.unique(label[firsts]):
        starts = firsts[label[firsts] == value]
        try:
            kind, size = kind_of(int(value))
        except ValueError as error:
            raise describe_damage(int(starts[0]), str(error)) from None
        rows = rows_of(kind, size)
        beyond = starts + rows > np.minimum((starts // chunk + 1) * chunk, len(label))
        if beyond.any():
            raise describe_damage(int(starts[beyond.argmax()]), "a cone reaches out of it")
        covered[(starts[:, None] + np.arange(rows)).reshape(-1)] = 0
        covered[starts] = value
        groups.append((kind, size, starts))
    wrong = covered != label
    if wrong.any():
        raise describe_damage(int(wrong.argmax()), "the codes of its rows do not make cones")
    return groups


def _pieces(block: Block, cones: Groups) -> Iterator[ConeRows]:
    """Cones of a block, some at a time. Raises CheckFailedError when one is not usable."""
    for kind, size, starts in cones:
        d, dense = rows_of(kind, size), isinstance(block.points, np.ndarray)
        width = block.points.shape[1] if dense else 1 + block.points.nnz // len(block.label)
        at_once = max(1, (1 << 18) // (d * width))  # entries of rows at a time
        for first in range(0, len(starts), at_once):
            some = starts[first : first + at_once]
            places = some[:, None] + np.arange(d)
            rows = block.points[places if dense else places.reshape(-1)].astype(np.float64)
            found = (DenseConeRows if dense else SparseConeRows)(kind, size, block.start + some, rows)
            most = found.most()
            if not (np.isfinite(most).all() and ((most == 0) | ((most > NORMS[0]) & (most < NORMS[1]))).all()):
                raise CheckFailedError(
                    "a cone has entries that are not finite, or all outside 1e-140 .. 1e140; nothing can be proved"
                )
            yield found


def _look_at_eigenvalues(tally: ConeTally, cones: ConeRows, y: Floats, known: float) -> None:
    """Add what some cones show of a separator; ``known`` is a margin that is proved of other cones."""
    kind, row = cones.kind, cones.row
    least = bound_least(kind, cones.size, *cones.scores(y))
    proved = least > 0
    if not proved.all():
        tally.wrong = (tally.wrong + row[~proved].tolist())[:WRONG]
        return
    coarse = cones.frobenius() * (np.sqrt(2.0) if kind == "q" else 1.0) * UP
    margin = least / coarse
    size_of_y = float(longest(y))
    # the norms are computed for the cones that may be the least
    first = int(margin.argmin())
    for some in (np.array([first]), np.flatnonzero(np.arange(len(row)) != first)):
        # a margin by a coarser norm that is larger by this tells nothing new
        some = some[margin[some] / size_of_y * (1 - 1e-9) < min(known, tally.margin)]
        if len(some):
            proper = least[some] / (cones.norms(some)[1] * size_of_y) / UP**2
            worst = int(proper.argmin())
            tally.margin = min(tally.margin, float(proper[worst]))
            named = Critical(float(proper[worst]), int(row[some[worst]]), kind, cones.size)
            tally.critical = sorted([*tally.critical, named])[:1]


def _take_weighted(cones: Groups, block: Block, certificate: Certificate) -> Iterator[tuple[ConeRows, Floats]]:
    """Cones of a block that have weights, some at a time, with x (c, d)."""
    count, start = block.points.shape[0], block.start
    low, high = np.searchsorted(certificate.support, [start, start + count])
    if low == high:
        return
    x, left = np.zeros(count), np.zeros(count, bool)
    here = certificate.support[low:high] - start
    x[here], left[here] = certificate.weights[low:high], True
    touched = [(k, size, first[left[first[:, None] + np.arange(rows_of(k, size))].any(axis=1)]) for k, size, first in cones]
    for some in _pieces(block, touched):
        places = some.row[:, None] - start + np.arange(some.dimension)
        left[places] = False
        yield some, x[places]
    if left.any():
        raise CheckFailedError(f"row {start + int(np.flatnonzero(left)[0])} of the support is of no cone")


def _add_weighted(tally: ConeTally, cones: ConeRows, x: Floats) -> None:
    """Add x (c, d) on the rows of some cones."""
    kind, size, row = cones.kind, cones.size, cones.row
    total, spread = tally.sums()
    d, e = x.shape[1], unit(kind, size, x.shape[1])
    floor = bound_least(kind, size, x, np.zeros_like(x))
    shift = np.maximum(0.0, -floor)
    tally.inside = max(tally.inside, float(floor.max()))
    trace = x @ e
    trace = np.maximum(0.0, trace - gamma(d) * (np.abs(x) @ e) * UP)
    below, above = cones.norms(np.arange(len(row)))
    empty = cones.most() == 0
    if (empty & (trace > 0)).any() and tally.zero is None:
        tally.zero = Critical(0.0, int(row[empty & (trace > 0)][0]), kind, size)
    norm = np.where(empty, 1.0, above)
    factor = x / norm[:, None]
    sums, magnitudes = cones.sums(factor)
    total += sums
    spread += magnitudes
    tally.terms += cones.terms + 3
    # A e is the sum of ``size`` columns of a semidefinite cone, and a mean of two of a second-order one
    tally.shifts += float((shift * (size if kind == "s" else 1)).sum()) * (1 + gamma(len(row) + 4))
    tally.weight += float((trace * below / norm).sum()) * (1 - gamma(len(row) + 4))
    heaviest = np.argsort(-trace, kind="stable")[:SHOWN]
    named = [Critical(-float(trace[i]), int(row[i]), kind, size) for i in heaviest]
    tally.critical = sorted(tally.critical + named)[:SHOWN]


def _row(cone: Critical, data: Data) -> int:
    """The first row of a cone, counted without padding, where a mask picked it in what that picked from."""
    return cone.row - cone.padding if data.numbers is None else int(data.numbers[cone.row])


def _name_cone(cone: Critical, data: Data) -> str:
    row = _row(cone, data)
    return f"{cone.kind} at row {row}" if cone.kind == "l" else f"{cone.kind} {cone.size} at row {row}"


def _conclude_separator(tally: ConeTally, data: Data) -> Check:
    if tally.wrong:
        raise CheckFailedError(
            f"not a separator: a least eigenvalue is not above its rounding error in the cone at stored row {tally.wrong[0]}"
        )
    margin = max(0.0, tally.margin)
    text = f"X y is inside all {tally.cones} cones; its least eigenvalue is at least {margin:.6g} of a cone's norm"
    text += f" (critical: {_name_cone(tally.critical[0], data)})" if tally.critical else ""
    return Check("feasible", "rigorous", margin, 1.0, data.n, 0, text)


def _residual(tally: ConeTally, data: Data) -> tuple[float, Floats]:
    """|Ax| at most, of the x that is a member for certain, and what that allows for rounding (m,)."""
    total, spread = tally.sums()
    terms = tally.terms + data.m + 10
    rounding = 2 * gamma(terms) * spread * UP + terms * 2.0**-500
    return (float(longest(np.abs(total) + rounding)) + tally.shifts * (1 + gamma(terms)) * UP) * UP, rounding


def _is_worth_balancing(tally: ConeTally, data: Data) -> bool:
    """Whether x is further inside some cone than its image is long: no singular value is above the root of their number."""
    inside = tally.inside if tally.zero is None else 0.0
    return data.m <= WIDEST and inside > 0 and _residual(tally, data)[0] < inside * tally.cones**0.5


def _may_be_zero(answer: Answer) -> bool:
    return isinstance(answer, Check) and answer.verdict != "infeasible" and answer.margin_upper <= 1e-6  # |Ax| that may be zero


def _name_critical(tally: ConeTally, data: Data) -> str:
    names = ", ".join(f"{_name_cone(cone, data)} ({-cone.order:.3g})" for cone in tally.critical)
    return f" (critical, by weight: {names})"


def _conclude_balanced(tally: ConeTally, data: Data, read: str = "") -> Check:
    text = f"a nonzero z in the dual cones has X'z = 0{read}: no y has X y inside all {tally.cones} cones"
    text += _name_critical(tally, data)
    return Check("infeasible", "exact", -1.0, 0.0, data.n, 0, text)


@dataclass(frozen=True)
class Weighted(Looker):
    """Looks at the cones that have weights, some at a time."""

    empty: Callable[[], Any]
    see: Callable[[ConeRows, Floats], Any]  # a tally of cones and x

    def look(self, data: Data, certificates: Sequence[Certificate]) -> Callable[[Block], Tallies]:
        """What they show in each block."""

        def look_at_block(block: Block) -> Tallies:
            cones, shown = _cones(block, data), Tallies(block.checksums, [])
            for certificate in certificates:
                tally = self.empty()
                for some, x in _take_weighted(cones, block, certificate):
                    tally.add(self.see(some, x))
                shown.tallies.append(tally)
            return shown

        return look_at_block


def _conclude_weights(tally: ConeTally, data: Data) -> Check:
    if tally.zero is not None:
        text = f"the cone at row {_row(tally.zero, data)} has zeros only: no y has X y inside it"
        return Check("infeasible", "exact", -1.0, 0.0, data.n, 0, text)
    if not tally.weight > 0:
        raise CheckFailedError("the weights are no element of the cones: <e, x> is not positive")
    size, rounding = _residual(tally, data)
    weight = tally.weight * (1 - gamma(tally.terms + data.m + 10))
    upper = size / weight * (1 + 4 * U)
    text = f"no unit y has a least eigenvalue above {upper:.6g} of a cone's norm in all {tally.cones} cones"
    text += _name_critical(tally, data)
    return Check("eps-infeasible", "rigorous", -1.0, min(1.0, upper), data.n, 0, text, float(longest(rounding)) / weight)


class RowTally(BlockTally):
    """The rows of some cones, and x on them."""

    rows: list[tuple[ConeRows, Floats]] = field(default_factory=list)

    def add(self, other: RowTally) -> None:
        super().add(other)
        self.rows = self.rows + other.rows


def keep_rows(cones: ConeRows, x: Floats) -> RowTally:
    """Of some cones."""
    return RowTally(rows=[(cones, x)])


def is_linear_conflict(tally: RowTally) -> bool:
    """Whether rows of the orthant have weights with a zero sum, near those of x that are not small."""
    linear = [(cones, x[:, 0] / cones.norms(np.arange(len(x)))[1]) for cones, x in tally.rows if cones.kind == "l"]
    if not linear:
        return False
    rows = [cones.rows if isinstance(cones, DenseConeRows) else cones.rows.toarray() for cones, _ in linear]
    points = np.vstack([each.reshape(len(x), -1) for each, (_, x) in zip(rows, linear, strict=True)])
    return balance(points, np.concatenate([x for _, x in linear])) is not None
