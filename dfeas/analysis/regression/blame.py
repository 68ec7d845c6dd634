"""Which columns, levels and rows separate, by one look at all rows beside the direction that was found; and what ends it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from dfeas.analysis.regression.design import SHOWN, Design, Floats, Matrix, Places
from dfeas.analysis.regression.outcome import BOTH, OF_ZEROS, Codes, Regression, Response, wide
from dfeas.exact.arithmetic import TINY
from dfeas.exact.dyadic import Integers, integer_signs
from dfeas.exact.integers import independent, product, solve

Part = tuple[Matrix, Codes, Places]
"""Some rows of the design (b, m), the codes of their outcomes, and their numbers in the table."""
Change: TypeAlias = Callable[[Callable[[Regression], Regression | None]], bool | None]
"""Whether estimates are finite after a change; None where nobody looks."""


class Advice(Struct, frozen=True):
    """One way out of a separation."""

    text: str
    finite: bool | None = None  # whether estimates are finite then, as a second look says; None: nobody looked

    def __str__(self) -> str:
        said = {None: "", True: ": then the estimates are finite", False: ": not enough by itself, there is more separation"}
        return f"{self.text}{said[self.finite]}"


class Direction(Struct, frozen=True):
    """Coefficients along which the likelihood rises for ever."""

    values: Floats  # (blocks, m + 1) the largest is 1 or -1; the intercept comes last, 0 without one
    exact: Integers | None  # the same in whole numbers, at other scale; None where a look at the points is not needed

    @classmethod
    def of(cls, whole: Any, complete: bool, design: Design, outcome: Response) -> Direction:
        if outcome.kind in OF_ZEROS and complete and design.intercept:  # all counts are zero
            return cls(np.append(np.zeros(len(design.columns)), -1.0)[None, :], None)
        most = max(abs(value) for value in whole)
        values = np.array([float(value / most) if isinstance(value, float) else value / most for value in whole], np.float64)
        lost = (values == 0) & np.array([value != 0 for value in whole])  # too small for a float: its sign is said all the same
        values[lost] = [math.copysign(TINY, value) for value, out in zip(whole, lost, strict=True) if out]
        if outcome.kind == "adjacent":  # thresholds are smaller in the question
            values[: len(outcome.classes) - 1] *= math.lcm(*range(1, len(outcome.classes)))
        exact = None if isinstance(whole, np.ndarray) else _blocks(np.array(whole, object), design, outcome)
        return cls(_blocks(values, design, outcome), exact)

    def within(self, kept: list[int], m: int) -> Direction:
        values = np.zeros((len(self.values), m + 1))
        values[:, [*kept, m]] = self.values
        return Direction(values, None)


def _blocks(values: NDArray[Any], design: Design, outcome: Response) -> NDArray[Any]:
    blocks = values.reshape(outcome.blocks, -1)
    if design.intercept:
        return blocks
    return np.hstack([blocks, np.zeros((outcome.blocks, 1), blocks.dtype)])


class Tally(Struct):
    """What all rows of a table showed."""

    most: Any = 0.0  # (m,) largest magnitudes
    counts: Any = 0.0  # (m, k) sums of each column in each class
    total: Any = 0.0  # (k,) rows of each class
    low: Any = np.inf  # (2, m) least value of each column in each of two classes
    high: Any = -np.inf
    separated: int = 0
    rows: list[int] = field(default_factory=list)  # numbers of the first of those

    @classmethod
    def of(cls, parts: Iterable[Part], outcome: Response, complete: bool, direction: Direction, keep: float) -> Tally:
        tally = cls()
        for points, codes, numbers in parts:
            classes = _classes(codes, outcome)
            tally.counts += np.stack([np.asarray(points[one].sum(axis=0)).ravel() for one in classes], axis=1)
            tally.total += np.array([one.sum() for one in classes], np.float64)
            tally.most = np.maximum(tally.most, _end(abs(points), "max", 0.0))
            if complete and outcome.kind == "binary":
                tally.low = np.minimum(tally.low, np.stack([_end(points[one], "min", np.inf) for one in classes]))
                tally.high = np.maximum(tally.high, np.stack([_end(points[one], "max", -np.inf) for one in classes]))
            beyond = np.unique(numbers if complete else numbers[_beyond(points, direction)])
            tally.separated += len(beyond)
            tally.rows += beyond[: int(min(keep - len(tally.rows), len(beyond)))].tolist()
        return tally

    def alone(self, intercept: bool) -> list[int]:
        if np.isinf(self.low).all():
            return []
        below, above = self.high[0] < self.low[1], self.high[1] < self.low[0]
        if not intercept:
            below &= (self.high[0] < 0) & (self.low[1] > 0)
            above &= (self.high[1] < 0) & (self.low[0] > 0)
        return [int(i) for i in np.flatnonzero(below | above)]

    def blame(self, direction: Direction, intercept: bool) -> list[int]:
        """Columns whose coefficients run away: those that separate by themselves, where there are any."""
        size = (np.abs(direction.values[:, :-1]) * self.most).max(axis=0, initial=0.0)
        # share of the largest coefficient, times the size of the column, below which a column is not responsible
        return self.alone(intercept) or [int(i) for i in np.flatnonzero(size > 1e-9 * size.max(initial=0.0))]

    def blame_terms(self, direction: Direction, design: Design) -> tuple[list[int], dict[Any, list[str]]]:
        """These columns, and levels of those that are no numbers."""
        columns = [place for place in self.blame(direction, design.intercept) if design.columns[place].own]
        return columns, levels_of(design, direction, columns, self)

    def of_levels(self, design: Design, term: Any) -> dict[str, Floats]:
        found = {design.columns[place].level or "": self.counts[place] for place in design.places(term)}
        reference = design.factors[term].reference
        if reference is not None:
            found[reference] = self.total - sum(found.values(), np.zeros(len(self.total)))
        return {level: found[level] for level in design.factors[term].levels if level in found}


def _classes(codes: Codes, outcome: Response) -> list[NDArray[np.bool_]]:
    if outcome.kind == "multinomial":
        return [codes == code for code in range(len(outcome.classes))]
    if outcome.kind in OF_ZEROS:
        return [codes != BOTH, codes == BOTH]
    return [codes <= 0, codes >= 0]


def _end(points: Matrix, which: str, start: float) -> Floats:
    if not points.shape[0]:
        return np.full(points.shape[1], start)
    end = getattr(points, which)(axis=0)
    return np.asarray(end if isinstance(end, np.ndarray) else end.toarray(), np.float64).ravel()


def _beyond(points: Matrix, direction: Direction) -> NDArray[np.int64]:
    assert direction.exact is not None, "quasi-complete separation is decided in whole numbers"
    found = np.zeros(points.shape[0], np.bool_)
    whole = wide(points)
    for block in direction.exact[direction.exact.any(axis=1)]:
        found |= integer_signs(whole, block)[0] != 0
    return np.flatnonzero(found)


def levels_of(design: Design, direction: Direction, columns: list[int], tally: Tally) -> dict[Any, list[str]]:
    """Levels that separate: those whose effect is not that of most with rows of each class, whichever is the reference. None of
    a factor whose levels all differ: the column separates then, as a number does.
    """
    found, intercept = {}, direction.values[:, -1].copy()
    for term in [term for term in design.factors if set(design.places(term)) & set(columns)]:
        effects = {design.columns[place].level or "": direction.values[:, place] for place in design.places(term)}
        factor = design.factors[term]
        if factor.reference is not None:
            effects[factor.reference] = np.zeros(len(intercept))
        key = {level: tuple(np.round(effects[level], 9)) for level in factor.levels if level in effects}
        mixed = (key[level] for level, counts in tally.of_levels(design, term).items() if (counts > 0).all())
        count = Counter(mixed) or Counter(key.values())
        usual = max(count, key=lambda effect: (count[effect], -np.abs(intercept + effect).sum()))
        if len({*key.values()}) < len(key) or len(key) == 2:
            found[term] = [level for level, effect in key.items() if effect != usual]
            intercept += np.array(usual)
    return found


def find_dependence(flat: list[list[int]], names: list[Any], blocks: int) -> list[tuple[Any, list[Any]]]:
    """Columns that follow from others, one for each vector of a basis of what vanishes on all points, and these others. The
    basis is brought to echelon form from the last column on, so that no column follows from one that follows itself. In several
    blocks of features it is the same in each.
    """
    if not flat:
        return []
    basis = np.array(flat, object)
    if blocks > 1:
        basis = basis[:, : basis.shape[1] // blocks]
        basis = basis[independent(basis)]
    if basis.shape[1] == len(names):  # the intercept is the last that is said to follow
        basis, names = np.roll(basis, 1, axis=1), [names[-1], *names[:-1]]
    backwards = basis[:, ::-1]
    last = [basis.shape[1] - 1 - int(i) for i in independent(backwards.T)]
    given, _ = solve(basis[:, last].T, np.eye(len(last), dtype=object))
    echelon = product(given.T, basis)
    others = np.setdiff1d(np.arange(basis.shape[1]), last)
    follow = zip(last, echelon, strict=True)
    return [(names[i], list(dict.fromkeys(names[j] for j in others if row[j]))) for i, row in follow]


def find_advice(design: Design, outcome: Response, direction: Direction, tally: Tally, try_change: Change) -> Iterator[Advice]:
    """What ends a separation."""
    columns, levels = tally.blame_terms(direction, design)
    other_way = ""
    for term, some in levels.items():
        counts = tally.of_levels(design, term)
        own = set(some)
        others = [each for each in counts if each not in own]
        for level in some[:SHOWN]:
            other = _nearest(level, others, counts, design.factors[term].ordered)
            if other is not None and len(counts) > 2:  # of two levels that is to leave out the column
                said = f"merge level {level} of {term} ({_describe_counts(counts[level], outcome)}) with {other}"
                text = f"{said} ({_describe_counts(counts[other], outcome)})"
                yield Advice(text, try_change(lambda it, t=term, a=level, b=other: it.merge_level(t, a, b)))  # type: ignore[misc]
                other_way = "or "
    terms = [term for term in design.terms if set(design.places(term)) & set(columns)]
    if terms:
        names = f"leave out column{'s' if len(terms) > 1 else ''} {', '.join(str(term) for term in terms)}"
        yield Advice(f"{other_way}{names}", try_change(lambda it: it.without(design.places(*terms))))
        other_way = "or "
    if outcome.kind == "poisson" and tally.separated < np.sum(tally.total):
        yield Advice(
            f"{other_way}leave out the rows that are separated: the other estimates stay (Correia, Guimaraes, Zylkin 2019)"
        )
        other_way = "or "
    firth = "Firth (bias reduction), " if outcome.kind in ("binary", "multinomial", "poisson") else ""
    yield Advice(f"{other_way}use a penalty, by which all estimates are finite: {firth}ridge")


def _nearest(level: str, others: list[str], counts: dict[str, Floats], ordered: bool) -> str | None:
    """The level with which to merge: the next one in order, or the one whose shares of the classes are nearest."""
    whole = [other for other in others if (counts[other] > 0).all()]
    if not whole:
        return None
    if ordered:
        place = list(counts).index
        return min(whole, key=lambda other: abs(place(other) - place(level)))

    def share(each: str) -> Floats:
        return np.asarray(counts[each] / max(1.0, counts[each].sum()))

    return min(whole, key=lambda other: (float(np.abs(share(other) - share(level)).sum()), -counts[other].sum()))


def _describe_counts(counts: Floats, outcome: Response) -> str:
    rows = int(counts.sum())
    if outcome.kind in OF_ZEROS:
        return f"{int(counts[1])} of {rows} rows are above 0"
    if outcome.kind == "binary":
        return f"{int(counts[1])} of {rows} rows are {outcome.classes[1]}"
    return ", ".join(f"{int(count)} {name}" for name, count in zip(outcome.classes, counts, strict=True))
