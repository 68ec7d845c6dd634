"""Whether the likelihood of a regression in memory has a maximum, and if not because of what: the answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from dfeas.analysis.regression.blame import Advice, Direction, Tally, find_advice, find_dependence
from dfeas.analysis.regression.blame import Part as Rows
from dfeas.analysis.regression.design import SHOWN, Design, Floats
from dfeas.analysis.regression.estimates import (
    FINITE,
    UNIDENTIFIED,
    CoefficientEstimate,
    Extent,
    show_estimates,
    table_of,
)
from dfeas.analysis.regression.fits import find_fits
from dfeas.analysis.regression.outcome import (
    BOTH,
    IN_ORDER,
    OF_ZEROS,
    RISING,
    Asked,
    Regression,
    Response,
    row_numbers,
    sign_rows,
)
from dfeas.analysis.regression.thresholds import require_decided, with_thresholds
from dfeas.analysis.separation import find_face, separate, separate_table
from dfeas.answers.separation import Separation
from dfeas.data.frames import make_frame
from dfeas.data.source import ALL_POSITIVE
from dfeas.display import Displayed, Grid, Part, Row, plain
from dfeas.errors import BadInputError, DfeasError
from dfeas.exact.dyadic import Integers, integer_signs
from dfeas.problem import Problem
from dfeas.records import replace
from dfeas.run.exact.guesses import Reduction, find_spare
from dfeas.run.exact.search import Face, settle_direction
from dfeas.run.resources import Limits, Output, Resources
from dfeas.verify.separation import COMPLETE, OVERLAP, QUASI

NAMED = 1000
"""Points that JSON names; ``separated`` counts all."""
LOOKED_AT = 500_000
"""Entries of a design up to which terms are left out, and advice is tried, to see what comes of it."""
SECONDS = 10.0
"""After which no more is tried."""


@dataclass(frozen=True, repr=False)
class Separated(Displayed):
    """What was found. Print it for sentences; ``to_json`` has all of it.

    Of a small table that is separated, columns, points, direction, levels, advice and estimates are found when they are asked
    for, printed or copied, as of the table that was given.

    Attributes
    ----------
    kind : str, optional
        "complete", "quasi-complete" or "overlap"; None: not decided.
    columns : list
        Names (of a frame) or indices of the columns whose coefficients run away; none for overlap.
    points : list
        Labels of rows (of a frame) or indices among all rows: separated for good, or, of an overlap, in conflict.
    direction : dict
        Coefficients along which the likelihood rises without bound, by column; the largest is 1 or -1.
    intercept : float, or dict
        Of the direction; of more than two classes, as in ``direction``, a number for each class, or, where they have an order,
        for each threshold ``low|high`` between two of them.
    depending : list of tuple
        Of an overlap: columns that follow from others, and these ("intercept" is one).
    proof : str
        "exact", "rigorous", or "none": not decided.
    found : Separation
        With all evidence. Its points are those of the question: of each row in the likelihood one, or several.
    outcome : str
        As asked for: "binary", "multinomial", "poisson", "ordinal" and so on.
    classes : tuple of str
        (negative, positive), or all in order; none of counts.
    levels : dict of list
        Of columns that are no numbers: those that separate.
    advice : list of Advice
        Changes that end the separation, each with the outcome of a second check.
    notes : list of str
        What else is to be known.
    separated : int
        Rows that are separated; of a file ``points`` has the first of them only.
    estimates : list of CoefficientEstimate
        Of each coefficient, the intercept last, its ``name``, and its ``estimate``: "finite", "+Inf", "-Inf", "+Inf or -Inf"
        where the likelihood rises both ways, or "not identified"; and whether that sign is ``certain``, or that of
        ``direction`` only. Of several classes there is one for each class and coefficient. None where nothing was decided.
    fits : dict of str
        Of a separation lines of "R" (brglm2) and "Python" (``dfeas.firth``) that fit the model by Firth's penalised likelihood
        to the ``table`` that was given, and ``y`` beside it; none for rows with weights, and of R none for names like code.
    coded : frozenset
        Names of the columns that stand for levels of what ``levels`` has.
    library : str, optional
        Whose data frames ``to_frame`` makes.

    Examples
    --------
    >>> import dfeas
    >>> answer = dfeas.check_separation([[1.0], [2.0], [3.0]], [0, 1, 1])
    >>> answer.finite, answer.kind, answer.columns
    (False, 'complete', [0])
    """

    HIDDEN: ClassVar = ("found", "coded", "library")
    DERIVED: ClassVar = ("finite", "message")
    EXPLAINED: ClassVar = ("columns", "points", "direction", "intercept", "levels", "separated", "coded", "advice", "estimates")

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
    separated: int = field(default_factory=int)  # no attribute of the class, which would stand for one not found yet
    estimates: list[CoefficientEstimate] = field(default_factory=list)
    fits: dict[str, str] = field(default_factory=dict)
    coded: frozenset[Any] = field(default_factory=frozenset)
    library: str | None = None

    def explained_by(self, explanation: Explanation) -> Separated:
        """This answer, whose fields in ``EXPLAINED`` are found when they are asked for."""
        for name in self.EXPLAINED:
            del self.__dict__[name]
        self.__dict__["_explanation"] = explanation
        return self

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            explanation = self.__dict__.get("_explanation")
            if name in self.EXPLAINED and explanation is not None:
                self.__dict__.update(explanation.find(name))
            if name not in self.__dict__:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            return self.__dict__[name]

    def explain(self) -> Separated:
        """This answer, with all of its fields, by themselves."""
        for name in self.EXPLAINED:
            getattr(self, name)
        self.__dict__.pop("_explanation", None)
        return self

    def __getstate__(self) -> dict[str, Any]:
        """What a copy and a pickle have."""
        return self.explain().__dict__

    @property
    def finite(self) -> bool | None:
        """Whether the maximum of the likelihood exists; None when it was not decided."""
        return None if self.kind is None else self.kind == OVERLAP

    def _parts(self) -> Iterator[Part]:
        yield Row(None, self.message)
        yield from show_estimates(self.estimates, self.finite is False)
        fits = (f"  in {name}: {line}" for name, line in self.fits.items())
        texts = [*(f"- {each}" for each in self.advice), *fits, *(f"note: {text}" for text in self.notes)]
        yield from (Row(None, text) for text in texts)

    def to_frame(self) -> Any:
        """The estimates in a data frame of the library that X is of, else of pandas or polars. Raises UsageError for none."""
        rows = [structs.asdict(each) | {"class": each.of, "coefficient": str(each.name)} for each in self.estimates]
        classes = ["class"] if any(each.of for each in self.estimates) else []
        return make_frame(rows, [*classes, "coefficient", "estimate", "certain", "direction"], self.library)

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
            points = f" (points {_some(self.points)} are in conflict)" if self.points and self.outcome not in RISING else ""
            what = "no separation" if self.outcome in RISING else "the classes overlap"
            return f"{what}: the maximum of the likelihood exists{unique}{points}"
        runs = f"{'its coefficient has' if len(self.columns) == 1 else 'their coefficients have'} no finite estimate"
        if self.levels or not self.columns:
            moves = any(self.intercept.values()) if isinstance(self.intercept, dict) else self.intercept
            runs = f"no finite estimate of {_some([*(['the intercept'] if moves else []), *self.columns])}"
        what = "separation" if self.outcome in RISING else f"{self.kind} separation"
        return f"{what}: {self._who}; {runs}"

    @property
    def _who(self) -> str:
        named = [f"level{'s' if len(each) > 1 else ''} {_some(each)} of {term}" for term, each in self.levels.items()]
        terms = [f"{term}[{level}]" for term, levels in self.levels.items() for level in levels]
        others = [name for name in self.columns if name not in self.coded]
        many = "s" if self.separated != 1 else ""
        what = "all points" if self.kind == COMPLETE else f"{self.separated} point{many} ({self._rows}) from the others"
        if self.outcome in OF_ZEROS:
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


class Separations(Displayed, dict[str, Separated]):
    """What was found of several outcomes, by name. Print it for a table of them, and all of those that are not plainly finite.

    Examples
    --------
    >>> import dfeas
    >>> import pandas as pd
    >>> stays = pd.DataFrame({"age": [31, 44, 52, 38], "died": [0, 1, 1, 0], "readmitted": [1, 0, 1, 0]})
    >>> dfeas.check_separation(stays, ["died", "readmitted"])
    <Separations died (complete), readmitted (overlap)>
    """

    @classmethod
    def of(cls, names: Iterable[str], find: Callable[[str], Separated]) -> Separations:
        """One after the other. Raises what one of them raises, with the name of the outcome."""
        answers = cls()
        for name in names:
            try:
                answers[name] = find(name).explain()  # which keeps no table of each
            except DfeasError as error:
                raise type(error)(f"outcome {name}: {error.args[0]}") from None
        return answers

    def _parts(self) -> Iterator[Part]:
        rows = []
        for name, found in self.items():
            runs = dict.fromkeys(each.name for each in found.estimates if each.estimate != FINITE)
            rows.append([name, found.kind or "undecided", _some([*runs] or ["none" if found.kind else "?"])])
        yield Grid(["outcome", "separation", "not finite"], rows, left=3)
        for name, found in self.items():
            if not found.finite or found.depending or found.notes:
                yield from (Row(None, ""), Row(None, f"outcome {name}"), *found._parts())

    def to_frame(self) -> Any:
        """All estimates in a data frame, whose first column is ``outcome``. Raises UsageError as that of one does."""
        found = [(name, each) for name, answer in self.items() for each in answer.estimates]
        rows = [
            {"outcome": name, "class": each.of, **structs.asdict(each), "coefficient": str(each.name)} for name, each in found
        ]
        classes = ["class"] if any(each.of for _, each in found) else []
        library = next((answer.library for answer in self.values()), None)
        return make_frame(rows, ["outcome", *classes, "coefficient", "estimate", "certain", "direction"], library)

    def to_json(self) -> dict[str, Any]:
        """Under ``outcomes`` that of each, by name."""
        return {"outcomes": {name: found.to_json() for name, found in self.items()}}


def _some(names: list[Any]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(str(name) for name in names[:SHOWN]) + more


def ask_part(regression: Regression, limits: Limits, resources: Resources) -> Face | Separation | None:
    """What is proved; None for columns that cannot be asked alone, such as ones of tiny numbers only."""
    try:
        problem = _signed_problem(regression)
        return find_face(problem, limits, resources) or _separate(problem, limits, resources)
    except BadInputError:
        return None


def _separate(problem: Problem, limits: Limits, resources: Resources) -> Separation:
    return separate(problem, "auto", limits, resources, Output())


def _signed_problem(regression: Regression) -> Problem:
    codes, outcome, intercept = regression.codes, regression.outcome, regression.design.intercept
    alone = outcome.kind == "multinomial" or not (codes >= BOTH).any()  # several blocks, or one sign
    points, labels = sign_rows(regression.points, codes, outcome, intercept, positive=alone)
    return Problem.of(points, ALL_POSITIVE if alone else labels, intercept=None if alone else intercept)


def direction_of(answer: Face | Separation, design: Design, outcome: Response) -> Direction | None:
    """Where the likelihood rises for ever; None where nothing separates, or nothing was decided."""
    if answer.kind not in (COMPLETE, QUASI):
        return None
    whole: Any = answer.result.separator if isinstance(answer, Separation) and answer.y is None else answer.y
    if whole is None:
        return None
    return Direction.of(whole, answer.kind == COMPLETE, design, outcome)


def extent_of(design: Design, outcome: Response, answer: Separation) -> Extent:
    """Of the cone of directions of a separation, before its rows are looked at."""
    return Extent(design, outcome, None if answer.kind == COMPLETE else np.array(answer.y, object), answer.rank)


def check_likelihood(regression: Regression, asked: Asked) -> Separated:
    """What is proved of it. Which terms separate, and what can be done, is found when it is asked for, in a copy of a small
    table; a large one is not kept: it is found at once.
    """
    end = min(time.monotonic() + SECONDS, asked.limits.ends)
    require_decided(regression.design, regression.outcome)
    regression = with_thresholds(regression)
    design, outcome, label = regression.design, regression.outcome, regression.rows
    about = _signed_problem(regression), asked.limits, asked.resources
    answer = separate_table(*about) or _separate(*about)
    direction = direction_of(answer, design, outcome)
    if direction is None:
        of = regression.numbers[row_numbers(regression.codes, outcome)]
        here = [] if answer.support is None else np.unique(of[answer.support]).tolist()
        return replace(describe_answer(design, outcome, answer, [label[row] for row in here]), library=asked.library)
    told = replace(describe_answer(design, outcome, answer, []), fits=find_fits(design, outcome, asked), library=asked.library)
    small = regression.points.shape[0] * max(1, regression.points.shape[1]) <= LOOKED_AT
    if small:
        regression = replace(regression, points=regression.points.copy(), values=None, offset=None)
    most = end - asked.limits.began
    found = told.explained_by(Explanation(regression, answer, direction, asked.limits, asked.resources, small, most))
    return found if small else found.explain()


class Explanation(Struct, dict=True, eq=False):
    """Which terms of a table in memory separate it, what ends that, and what becomes of each coefficient."""

    regression: Regression
    answer: Separation
    direction: Direction
    limits: Limits
    resources: Resources
    small: bool
    most: float  # seconds on the clock of the call after which no more is tried
    used: float = -1.0  # so far: the clock stands while nobody asks

    def __post_init__(self) -> None:
        self.used = self.limits.seconds

    def find(self, name: str) -> dict[str, Any]:
        """This field of the answer, and those that are found with it."""
        self.limits = replace(self.limits, began=time.monotonic() - self.used)
        try:
            if name == "estimates":
                return {name: self._find_estimates()}
            return {name: self._find_advice()} if name == "advice" else self._describe()
        finally:
            self.used = self.limits.seconds

    def _stop(self) -> bool:
        return self.limits.seconds > self.most

    @cached_property
    def _every(self) -> list[Rows]:
        return [(self.regression.points, self.regression.codes, self.regression.numbers)]

    @cached_property
    def _tally(self) -> Tally:
        complete = self.answer.kind == COMPLETE
        return Tally.of(self._every, self.regression.outcome, complete, self.direction, np.inf)

    @cached_property
    def _whole_direction(self) -> Direction:
        """Of few terms, where a small table is not separated by one alone."""
        if not self.small or self._tally.alone(self.regression.design.intercept):
            return self.direction
        ask = partial(ask_part, limits=self.limits, resources=self.resources)
        return _fewest(self.regression, self.answer, self.direction, ask, self._stop)

    def _describe(self) -> dict[str, Any]:
        design, outcome, label = self.regression.design, self.regression.outcome, self.regression.rows
        points = [label[row] for row in self._tally.rows]
        return {"points": points, **describe_separation(design, outcome, self._whole_direction, self._tally)}

    def _find_advice(self) -> list[Advice]:
        design, outcome = self.regression.design, self.regression.outcome
        return list(find_advice(design, outcome, self._whole_direction, self._tally, self._try_change))

    def _try_change(self, change: Callable[[Regression], Regression | None]) -> bool | None:
        other = change(self.regression) if self.small and not self._stop() else None
        if other is not None and not other.design.columns:
            return len(set(other.codes.tolist())) > 1 or BOTH in other.codes
        found = None if other is None else ask_part(other, self.limits, self.resources)
        return None if found is None or found.kind is None else found.kind == OVERLAP

    def _find_estimates(self) -> list[CoefficientEstimate]:
        extent = extent_of(self.regression.design, self.regression.outcome, self.answer)
        for _ in extent.watch(self._every):
            pass
        return extent.estimates(self._whole_direction, self.regression, self._stop)


def _fewest(
    regression: Regression,
    answer: Separation,
    direction: Direction,
    ask: Callable[[Regression], Face | Separation | None],
    stop: Callable[[], bool],
) -> Direction:
    """A direction of fewer terms that separates the same rows: each term is left out that is not needed. Float64 guesses which;
    all of these are left out at once then, or one after the other where that does not separate the same.
    """
    design, outcome, m = regression.design, regression.outcome, len(regression.design.columns)
    kept, sides = list(range(m)), SignedTable.of(regression, answer)
    idle = np.flatnonzero(~direction.values[:, :-1].any(axis=0)).tolist()
    terms = [term for term in design.terms if not set(design.places(term)) <= set(idle)]
    if len(terms) > 40:
        return direction

    def find_direction(places: list[int]) -> Direction | None:
        """One of these columns alone that separates the same."""
        y = None if sides is None else sides.find_direction(places)
        if y is not None:
            return Direction.of(y, answer.kind == COMPLETE, design, outcome)
        fewer = regression.without([place for place in range(m) if place not in places])
        found = None if fewer is None else ask(fewer)
        if fewer is None or found is None or (found.kind, found.on) != (answer.kind, answer.on):
            return None
        other = direction_of(found, fewer.design, outcome)
        return None if other is None else other.within(places, m)

    def leave_out(some: Sequence[Any]) -> bool:
        """Whether the others separate the same; if so they are what is kept."""
        nonlocal kept, direction
        places = [place for place in kept if design.columns[place].term not in some]
        other = find_direction(places) if places else None
        if other is None:
            return False
        kept, direction = places, other
        return True

    spare = None if sides is None else sides.find_spare(terms, stop)
    if spare is None or (spare and not leave_out(spare)):
        for term in terms:
            if stop():
                break
            leave_out([term])
    return direction


class SignedTable(Struct, frozen=True, eq=False):
    """Signed rows of a regression, and which of them its separation has beyond the hyperplane."""

    points: Floats  # (s, d)
    beyond: NDArray[np.bool_]  # (s,)
    conflict: NDArray[np.int64]  # rows that span all others, those on the hyperplane
    design: Design
    blocks: int

    @classmethod
    def of(cls, regression: Regression, answer: Separation) -> SignedTable | None:
        """None for sparse rows that are too large to be dense."""
        design, outcome = regression.design, regression.outcome
        points, _ = sign_rows(regression.points, regression.codes, outcome, design.intercept, positive=True)
        points = points if isinstance(points, np.ndarray) or points.shape[0] * points.shape[1] > LOOKED_AT else points.toarray()
        if not isinstance(points, np.ndarray):
            return None
        beyond, conflict = np.ones(len(points), np.bool_), np.zeros(0, np.int64)
        if answer.kind != COMPLETE and answer.support is not None:
            beyond, conflict = integer_signs(points, np.array(answer.y, object))[0] != 0, answer.support
        return cls(points, beyond, conflict, design, outcome.blocks)

    def _features(self, places: Sequence[int]) -> NDArray[np.int64]:
        """Those of columns of the design, in each block."""
        first = np.arange(self.blocks)[:, None] * (len(self.design.columns) + int(self.design.intercept))
        return np.asarray(first + np.asarray(places, np.int64)).ravel()

    def find_spare(self, terms: Sequence[Any], stop: Callable[[], bool]) -> list[Any] | None:
        """Terms without which the others separate the same, as float64 guesses."""
        places = [self._features(self.design.places(term)) for term in terms]
        spare = find_spare(self.points, self.beyond, places, self.design.intercept, stop)
        return None if spare is None else [terms[number] for number in spare]

    def find_direction(self, places: list[int]) -> Integers | None:
        """A direction (d,) of these columns alone that has the same rows beyond it and on it, exactly; None where a guess, from
        the nearest point of the hull across the conflict, has not.
        """
        used = self._features([*places, len(self.design.columns)] if self.design.intercept else places)
        some, whole = self.points[:, used], np.zeros(self.points.shape[1], object)
        guess = Reduction.of(some)
        y = None if guess is None or guess.y is None else settle_direction(some, self.conflict, guess.y)
        if y is None:
            return None
        whole[used] = y
        return whole if np.array_equal(integer_signs(self.points, whole)[0], self.beyond) else None


def describe_answer(design: Design, outcome: Response, answer: Separation, points: list[Any]) -> Separated:
    """The answer, as where nothing separates, or nothing was decided."""
    flat = np.array(answer.flat, object).reshape(-1, outcome.blocks * (len(design.columns) + int(design.intercept)))
    said = [(UNIDENTIFIED if free else FINITE, True, 0.0) for free in np.atleast_1d(flat.any(axis=0))]
    return Separated(
        kind=answer.kind,
        columns=[],
        points=points,
        direction={},
        intercept=0.0,
        depending=find_dependence(answer.flat, [*design.names, "intercept"], outcome.blocks),
        proof=answer.proof,
        found=answer,
        outcome=outcome.kind,
        classes=outcome.classes,
        notes=[*design.notes, *outcome.notes],
        estimates=table_of(design, outcome, said) if answer.kind == OVERLAP else [],
    )


def describe_separation(design: Design, outcome: Response, direction: Direction, tally: Tally) -> dict[str, Any]:
    """Fields of the answer where something separates."""
    columns, levels = tally.blame_terms(direction, design)
    names, runs = design.names, np.flatnonzero(direction.values[:, :-1].any(axis=0)).tolist()
    by_name = {names[place]: _coefficient(direction.values[:, place], outcome) for place in runs if design.columns[place].own}
    cuts = {names[place]: float(direction.values[0, place]) for place, each in enumerate(design.columns) if not each.own}
    return {
        "columns": [names[place] for place in columns],
        "direction": by_name,
        "intercept": cuts if outcome.kind in IN_ORDER else _coefficient(direction.values[:, -1], outcome),
        "levels": levels,
        "separated": tally.separated,
        "coded": frozenset(names[place] for place in design.places(*levels)),
    }


def _coefficient(values: Floats, outcome: Response) -> Any:
    if outcome.kind != "multinomial":
        return float(values[0])
    return {name: float(value) for name, value in zip(outcome.classes[1:], values, strict=True)}
