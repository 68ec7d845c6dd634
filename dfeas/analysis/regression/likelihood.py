"""Whether the likelihood of a regression in memory has a maximum, which terms are to blame, and what ends the separation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from dfeas.analysis.regression.answer import SHOWN, Advice, Separated
from dfeas.analysis.regression.blame import Direction, Tally, find_dependence, levels_of, responsible
from dfeas.analysis.regression.design import Design, Floats
from dfeas.analysis.regression.outcome import BOTH, Asked, Regression, Response, row_numbers, sign_rows
from dfeas.analysis.separation import Separation, separate
from dfeas.data.source import ALL_POSITIVE
from dfeas.errors import BadInputError
from dfeas.problem import Problem
from dfeas.run.exact.guesses import find_spare
from dfeas.run.resources import Output
from dfeas.verify.dyadic import integer_signs
from dfeas.verify.separation import COMPLETE, OVERLAP, QUASI

LOOKED_AT = 500_000
"""Entries of a design up to which terms are left out, and advice is tried, to see what comes of it."""
MOST_TERMS = 40
SECONDS = 10.0
"""After which no more is tried."""

Change: TypeAlias = Callable[[Callable[[Regression], Regression | None]], bool | None]
"""Whether estimates are finite after a change; None where nobody looks."""


def ask_part(regression: Regression, asked: Asked) -> Separation | None:
    """What is proved; None for columns that cannot be asked alone, such as ones of tiny numbers only."""
    try:
        return ask(regression, asked)
    except BadInputError:
        return None


def ask(regression: Regression, asked: Asked) -> Separation:
    """The separation of its signed rows."""
    codes, outcome, intercept = regression.codes, regression.outcome, regression.design.intercept
    alone = outcome.kind == "multinomial" or not (codes >= BOTH).any()  # several blocks, or one sign
    points, labels = sign_rows(regression.points, codes, outcome, intercept, positive=alone)
    problem = Problem.of(points, ALL_POSITIVE if alone else labels, intercept=None if alone else intercept)
    return separate(problem, "auto", asked.limits, asked.resources, Output(), small=True)


def direction_of(answer: Separation, design: Design, outcome: Response) -> Direction | None:
    """Where the likelihood rises for ever; None where nothing separates, or nothing was decided."""
    whole: Any = answer.result.y if answer.y is None else answer.y
    if answer.kind not in (COMPLETE, QUASI) or whole is None:
        return None
    return Direction.of(whole, answer.kind == COMPLETE, design, outcome)


def check_likelihood(regression: Regression, asked: Asked) -> Separated:
    """What is proved of it, by which terms, and what can be done."""

    def stop() -> bool:
        return time.monotonic() > end

    end = time.monotonic() + min(SECONDS, asked.limits.time_limit or SECONDS)
    design, outcome, label = regression.design, regression.outcome, regression.rows
    if not design.columns:
        raise BadInputError("no column beside the intercept: nothing can separate")
    answer = ask(regression, asked)
    direction = direction_of(answer, design, outcome)
    if direction is None:
        here = [] if answer.support is None else np.unique(row_numbers(regression.codes, outcome)[answer.support]).tolist()
        return describe_answer(design, outcome, answer, [label[row] for row in here])
    small = regression.points.shape[0] * max(1, regression.points.shape[1]) <= LOOKED_AT
    every = regression.points, regression.codes, np.arange(len(regression.codes))
    tally = Tally.of([every], outcome, answer.kind == COMPLETE, direction, np.inf)
    alone = tally.alone(design.intercept)
    if small and not alone:
        direction = _fewest(regression, answer, direction, asked, stop)
    columns = alone or responsible(direction, tally.most)

    def try_change(change: Callable[[Regression], Regression | None]) -> bool | None:
        other = change(regression) if small and not stop() else None
        if other is not None and not other.design.columns:
            return len(set(other.codes.tolist())) > 1 or BOTH in other.codes
        found = None if other is None else ask_part(other, asked)
        return None if found is None or found.kind is None else found.kind == OVERLAP

    told = describe_answer(design, outcome, answer, [label[row] for row in tally.rows])
    return describe_separation(design, outcome, told, direction, columns, tally, try_change)


def _fewest(
    regression: Regression, answer: Separation, direction: Direction, asked: Asked, stop: Callable[[], bool]
) -> Direction:
    """A direction of fewer terms that separates the same rows: each term is left out that is not needed.

    Float64 guesses which; all of these are left out at once then, or one after the other where that does not separate the same.
    """
    design, m = regression.design, len(regression.design.columns)
    kept = list(range(m))
    idle = np.flatnonzero(~direction.values[:, :-1].any(axis=0)).tolist()
    terms = [term for term in design.terms if not set(design.places(term)) <= set(idle)]
    if len(terms) > MOST_TERMS:
        return direction

    def leave_out(some: Sequence[Any]) -> bool:
        """Whether the others separate the same; if so they are what is kept."""
        nonlocal kept, direction
        places = [place for place in kept if design.columns[place].term not in some]
        fewer = regression.without([place for place in range(m) if place not in places]) if places else None
        found = None if fewer is None else ask_part(fewer, asked)
        if fewer is None or found is None or (found.kind, found.on) != (answer.kind, answer.on):
            return False
        other = direction_of(found, fewer.design, regression.outcome)
        if other is None:
            return False
        kept, direction = places, other.within(places, m)
        return True

    spare = _spare(regression, answer, terms, stop)
    if spare is None or (spare and not leave_out(spare)):
        for term in terms:
            if stop():
                break
            leave_out([term])
    return direction


def _spare(regression: Regression, answer: Separation, terms: Sequence[Any], stop: Callable[[], bool]) -> list[Any] | None:
    design, outcome = regression.design, regression.outcome
    points, _ = sign_rows(regression.points, regression.codes, outcome, design.intercept, positive=True)
    points = points if isinstance(points, np.ndarray) or points.shape[0] * points.shape[1] > LOOKED_AT else points.toarray()
    if not isinstance(points, np.ndarray):
        return None
    beyond = np.ones(len(points), np.bool_)
    if answer.kind != COMPLETE:
        beyond = integer_signs(points, np.array(answer.y, object))[0] != 0
    first = np.arange(outcome.blocks)[:, None] * (len(design.columns) + int(design.intercept))
    places = [(first + design.places(term)).ravel() for term in terms]
    spare = find_spare(points, beyond, places, design.intercept, stop)
    return None if spare is None else [terms[number] for number in spare]


def describe_answer(design: Design, outcome: Response, answer: Separation, points: list[Any]) -> Separated:
    """The answer, as where nothing separates, or nothing was decided."""
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
    )


def describe_separation(
    design: Design, outcome: Response, told: Separated, direction: Direction, columns: list[int], tally: Tally, change: Change
) -> Separated:
    """The answer where something separates, with what is told in any case."""
    levels = levels_of(design, direction, columns, tally)
    names, runs = design.names, np.flatnonzero(direction.values[:, :-1].any(axis=0)).tolist()
    by_name = {names[place]: _coefficient(direction.values[:, place], outcome) for place in runs}
    return replace(
        told,
        columns=[names[place] for place in columns],
        direction=by_name,
        intercept=_coefficient(direction.values[:, -1], outcome),
        levels=levels,
        advice=list(_advice(design, outcome, columns, levels, tally, change)),
        separated=tally.separated,
        coded=frozenset(names[place] for place in design.places(*levels)),
    )


def _coefficient(values: Floats, outcome: Response) -> Any:
    if outcome.kind != "multinomial":
        return float(values[0])
    return {name: float(value) for name, value in zip(outcome.classes[1:], values, strict=True)}


def _advice(
    design: Design, outcome: Response, columns: list[int], levels: dict[Any, list[str]], tally: Tally, try_change: Change
) -> Iterator[Advice]:
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
    terms = [term for term in design.terms if set(design.places(term)) & set(columns)]
    if terms:
        names = f"leave out column{'s' if len(terms) > 1 else ''} {', '.join(str(term) for term in terms)}"
        yield Advice(f"or {names}" if levels else names, try_change(lambda it: it.without(design.places(*terms))))
    if outcome.kind == "poisson":
        yield Advice("or leave out the rows that are separated: the other estimates stay (Correia, Guimaraes, Zylkin 2019)")
    yield Advice("or use a penalty, by which all estimates are finite: Firth (bias reduction), ridge")


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
    if outcome.kind == "poisson":
        return f"{int(counts[1])} of {rows} rows are above 0"
    if outcome.kind == "binary":
        return f"{int(counts[1])} of {rows} rows are {outcome.classes[1]}"
    return ", ".join(f"{int(count)} {name}" for name, count in zip(outcome.classes, counts, strict=True))
