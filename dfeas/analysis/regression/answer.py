"""What was found of a regression: whether its estimates are finite, and if not because of what, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dfeas.analysis.separation import Separation
from dfeas.display import Displayed, Part, Row, plain
from dfeas.verify.separation import COMPLETE, OVERLAP

SHOWN = 5
"""Columns and points that the text names."""
NAMED = 1000
"""Points that JSON names; ``separated`` counts all."""


@dataclass(frozen=True)
class Advice:
    """One way out of a separation."""

    text: str
    finite: bool | None = None  # whether estimates are finite then, as a second look says; None: nobody looked

    def __str__(self) -> str:
        said = {None: "", True: ": then the estimates are finite", False: ": not enough by itself, there is more separation"}
        return f"{self.text}{said[self.finite]}"


@dataclass(frozen=True, repr=False)
class Separated(Displayed):
    """What was found. Print it for sentences; ``to_json`` has all of it.

    Attributes
    ----------
    kind : str, optional
        "complete", "quasi-complete" or "overlap"; None: not decided.
    columns : list
        Names (of a frame) or indices of the columns whose coefficients run away; none for overlap.
    points : list
        Labels of rows (of a frame) or indices among all rows: separated for good, or, of an overlap, in conflict.
    direction : dict
        Coefficients along which the likelihood rises for ever, by column; the largest is 1 or -1.
    intercept : float, or dict
        Of the direction; of more than two classes, as in ``direction``, a number for each class.
    depending : list of tuple
        Of an overlap: columns that follow from others, and these ("intercept" is one).
    proof : str
        "exact", "rigorous", or "none": not decided.
    found : Separation
        With all evidence. Its points are those of the question: of each row in the likelihood one, or several.
    outcome : str
        "binary", "multinomial" or "poisson".
    classes : tuple of str
        (negative, positive), or all in order; none of counts.
    levels : dict of list
        Of columns that are no numbers: those that separate.
    advice : list of Advice
        Ways out, each with what a second look says of it.
    notes : list of str
        What else is to be known.
    separated : int
        Rows that are separated; of a file ``points`` has the first of them only.
    coded : frozenset
        Names of the columns that stand for levels of what ``levels`` has.

    Examples
    --------
    >>> import dfeas
    >>> answer = dfeas.check_separation([[1.0], [2.0], [3.0]], [0, 1, 1])
    >>> answer.finite, answer.kind, answer.columns
    (False, 'complete', [0])
    """

    HIDDEN: ClassVar = ("found", "coded")
    DERIVED: ClassVar = ("finite", "message")

    kind: str | None
    columns: list[Any]
    points: list[Any]
    direction: dict[Any, Any]
    intercept: Any
    depending: list[tuple[Any, list[Any]]]
    proof: str
    found: Separation = field(repr=False)
    outcome: str = "binary"
    classes: tuple[str, ...] = ()
    levels: dict[Any, list[str]] = field(default_factory=dict)
    advice: list[Advice] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    separated: int = 0
    coded: frozenset[Any] = frozenset()

    @property
    def finite(self) -> bool | None:
        """Whether the maximum of the likelihood exists; None when it was not decided."""
        return None if self.kind is None else self.kind == OVERLAP

    def _parts(self) -> Iterator[Part]:
        texts = [self.message, *(f"- {each}" for each in self.advice), *(f"note: {text}" for text in self.notes)]
        yield from (Row(None, text) for text in texts)

    def to_json(self) -> dict[str, Any]:
        """Everything but the evidence and further points than the first, as values of JSON."""
        return {**super().to_json(), "points": plain(self.points[:NAMED])}

    @property
    def message(self) -> str:
        """What was found, in a sentence."""
        if self.kind is None:
            return f"separation was {self.found.message}"
        if self.kind == OVERLAP:
            unique = f", not a unique one: {self._dependence}" if self.depending else ""
            points = f" (points {_some(self.points)} are in conflict)" if self.points and self.outcome != "poisson" else ""
            what = "no separation" if self.outcome == "poisson" else "the classes overlap"
            return f"{what}: the maximum of the likelihood exists{unique}{points}"
        runs = f"{'its coefficient has' if len(self.columns) == 1 else 'their coefficients have'} no finite estimate"
        if self.levels or not self.columns:
            moves = any(self.intercept.values()) if isinstance(self.intercept, dict) else self.intercept
            runs = f"no finite estimate of {_some([*(['the intercept'] if moves else []), *self.columns])}"
        what = "separation" if self.outcome == "poisson" else f"{self.kind} separation"
        return f"{what}: {self._who}; {runs}"

    @property
    def _who(self) -> str:
        named = [f"level{'s' if len(each) > 1 else ''} {_some(each)} of {term}" for term, each in self.levels.items()]
        terms = [f"{term}[{level}]" for term, levels in self.levels.items() for level in levels]
        others = [name for name in self.columns if name not in self.coded]
        many = "s" if self.separated != 1 else ""
        what = "all points" if self.kind == COMPLETE else f"{self.separated} point{many} ({self._rows}) from the others"
        if self.outcome == "poisson":
            what = f"{self.separated} row{many} where y is 0 ({self._rows})"
        plural = len(others) + len(terms) > 1
        columns = [f"column{'s' if len(others) > 1 else ''} {_some(others)}"] if others else []
        return f"{' and '.join([*named, *columns]) or 'the intercept'} separate{'' if plural else 's'} {what}"

    @property
    def _rows(self) -> str:
        more = self.separated - min(SHOWN, len(self.points))
        return ", ".join(str(name) for name in self.points[:SHOWN]) + (f" and {more} more" if more else "")

    @property
    def _dependence(self) -> str:
        shown = [f"{name} depends on {_some(others) or 'nothing: it is zero'}" for name, others in self.depending[:SHOWN]]
        return "; ".join(shown) + (f"; and {len(self.depending) - SHOWN} more" if len(self.depending) > SHOWN else "")


def _some(names: list[Any]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(str(name) for name in names[:SHOWN]) + more
