"""The design of a regression: columns of numbers as they are, text, categories and booleans by treatment coding.

A factor of levels a, b, c in order becomes columns ``kind[b]`` and ``kind[c]``: a is its reference. Without an intercept the
first factor keeps a column for each level, as in R.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, cast

import narwhals.stable.v2 as nw
import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them
from numpy.typing import NDArray

from dfeas.data.frames import number, plain
from dfeas.data.storage.numbers import exact
from dfeas.errors import BadInputError

SHOWN = 5
"""Columns that a message names."""
MOST_LEVELS = 200_000
LEAST_IDS = 20
"""Rows from which on a text that is another one in each is taken for an id."""
LONG_ID = 10**8
SPARSE_FROM = 32
"""Columns from which on a design that is mostly zeros is stored sparse."""
SPARSE_BELOW = 0.25
"""Share of entries that are not zero."""

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Labels: TypeAlias = "Sequence[Any] | Places"
"""Of rows: as they are called in a frame, or their numbers."""
Columns: TypeAlias = "dict[str, nw.Series[Any]]"
Matrix = Any
"""(b, m) of float64: an array, or a CSR matrix."""


@dataclass(frozen=True)
class Column:
    """One column of the design matrix."""

    name: Any
    term: Any  # the column of the frame, or the term of the formula, that it is of
    level: str | None = None  # of a factor, where it is 1


@dataclass(frozen=True)
class Factor:
    """Levels of a column that is no number."""

    levels: tuple[str, ...]  # in order
    reference: str | None  # the one without a column; None where each has one
    ordered: bool = False


@dataclass(frozen=True)
class Design:
    """Which columns there are; the intercept is none of them."""

    columns: tuple[Column, ...]
    factors: dict[Any, Factor] = field(default_factory=dict)
    intercept: bool = True
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> list[Any]:
        return [column.name for column in self.columns]

    @property
    def terms(self) -> list[Any]:
        return list(dict.fromkeys(column.term for column in self.columns))

    @property
    def sparse(self) -> bool:
        """Whether most entries are zero."""
        entries = len({column.term for column in self.columns})
        return len(self.columns) >= SPARSE_FROM and entries < SPARSE_BELOW * len(self.columns)

    def places(self, *terms: Any) -> list[int]:
        """Of the columns of these terms."""
        return [place for place, column in enumerate(self.columns) if column.term in terms]

    def without(self, places: Sequence[int]) -> tuple[Design, list[int]]:
        """Without some columns, and the places of the others."""
        kept = [place for place in range(len(self.columns)) if place not in set(places)]
        return replace(self, columns=tuple(self.columns[place] for place in kept)), kept


@dataclass
class Variable:
    """What was seen of a column of a frame."""

    name: str
    kind: nw.dtypes.DType
    levels: dict[str, None] = field(default_factory=dict)
    order: dict[str, None] = field(default_factory=dict)  # categories, also those without a row; none: as text
    ordered: bool = False
    missing: int = 0
    first: int = -1  # row of the first missing value
    running: bool = False  # whole numbers, another one in each row

    @property
    def is_factor(self) -> bool:
        return not self.kind.is_numeric()

    @property
    def in_order(self) -> list[str]:
        """Levels that have a row."""
        return [level for level in self.order if level in self.levels] if self.order else sorted(self.levels)


class Survey:
    """Looks at a table part after part: which levels columns have, and what is missing."""

    def __init__(self, where: str, rows: Any = None, most_levels: int = MOST_LEVELS) -> None:
        self.where, self.n, self._counted, self._rows, self._most = where, 0, 0, rows, most_levels
        self.variables: dict[str, Variable] = {}

    def add(self, frame: nw.DataFrame[Any], counted: Places | None = None) -> None:
        """Rows that follow. Raises BadInputError for a column that cannot be coded, and for an infinite number.

        Levels and ids are those of the rows that are ``counted``, or of all; what is missing is looked for in all.
        """
        self.add_columns(columns_of(frame), len(frame), counted)

    def add_columns(self, columns: Columns, n: int, counted: Places | None = None) -> None:
        """The same of the columns of n rows."""
        for name, series in columns.items():
            seen = self.variables.setdefault(name, Variable(name, _kind(series, self.where)))
            gap = missing(series)
            if gap.any():
                seen.first = self.n + int(gap.argmax()) if not seen.missing else seen.first
                seen.missing += int(gap.sum())
            elif seen.is_factor:
                self._levels(inside(series, counted), seen)
            else:
                values = exact(number(series, self.where), np.float64, self.where)
                if not np.isfinite(values).all():
                    row = self.called(self.n + int((~np.isfinite(values)).argmax()))
                    raise BadInputError(f"{self.where}: column {name} is infinite in row {row}; correct it, or drop the row")
                seen.running = self.n == 0 and _is_id(seen.kind, inside(values, counted))
        self.n += n
        self._counted += n if counted is None else len(counted)

    def called(self, row: int) -> str:
        """A row by its number, and by its label where that is another one."""
        label = row if self._rows is None else self._rows[row]
        return str(row) if label == row else f"{row} ({label})"

    def refuse_missing(self) -> None:
        """Raise BadInputError that names columns with missing values."""
        gaps = [each for each in self.variables.values() if each.missing]
        if gaps:
            shown = [f"{v.name} ({v.missing}, the first in row {self.called(v.first)})" for v in gaps[:SHOWN]]
            more = f" and {len(gaps) - SHOWN} more columns" if len(gaps) > SHOWN else ""
            raise BadInputError(f"{self.where}: missing values in {', '.join(shown)}{more}; fill them, or drop rows or columns")

    def _levels(self, series: nw.Series[Any], seen: Variable) -> None:
        if isinstance(series.dtype, nw.Categorical | nw.Enum):
            seen.ordered, as_text = ordered(series)
            if not as_text:
                seen.order |= dict.fromkeys(text(series.cat.get_categories()))
        seen.levels |= dict.fromkeys(text(series.unique()))
        if len(seen.levels) > self._most:
            raise BadInputError(
                f"{self.where}: column {seen.name} has more than {self._most} levels; drop it if it is an id, or merge levels"
            )

    def design(self, intercept: bool) -> Design:
        """The columns that follow. Raises BadInputError for missing values, and for texts that differ in all rows."""
        self.refuse_missing()
        columns: list[Column] = []
        factors: dict[Any, Factor] = {}
        for seen in self.variables.values():
            if not seen.is_factor:
                columns.append(Column(seen.name, seen.name))
                continue
            if seen.kind == nw.String and len(seen.levels) == self._counted >= LEAST_IDS:
                raise BadInputError(
                    f"{self.where}: column {seen.name} has another text in each of {self._counted} rows, as an id has; drop it"
                )
            levels = tuple(seen.in_order)
            full = not intercept and not factors
            factors[seen.name] = Factor(levels, None if full else levels[0], seen.ordered)
            columns += [Column(f"{seen.name}[{level}]", seen.name, level) for level in levels[0 if full else 1 :]]
        twice = [name for name, count in Counter(column.name for column in columns).items() if count > 1]
        if twice:
            raise BadInputError(f"{self.where}: column {twice[0]} is called as a level of a factor is; rename one of them")
        return Design(tuple(columns), factors, intercept, tuple(self._notes()))

    def _notes(self) -> Iterator[str]:
        for seen in self.variables.values():
            if seen.running:
                yield f"column {seen.name} has another whole number in each row: drop it if it is an id"


def points(frame: nw.DataFrame[Any], design: Design, where: str) -> Matrix:
    """The rows of a frame by a design (b, m). Raises BadInputError for a level that is new."""
    return points_of(columns_of(frame), len(frame), design, where)


def points_of(columns: Columns, n: int, design: Design, where: str) -> Matrix:
    """The same of the columns of n rows."""
    m, pieces = len(design.columns), []
    for term in design.terms:
        series, places = columns[term], np.array(design.places(term))
        if term not in design.factors:
            pieces.append((np.arange(n), np.full(n, places[0]), exact(number(series, where), np.float64, where)))
            continue
        turn = dict.fromkeys(design.factors[term].levels, -1)
        turn |= {design.columns[place].level or "": int(place) for place in places}
        try:
            code = np.fromiter((turn[level] for level in text(series)), np.int64, n)
        except KeyError as error:
            raise BadInputError(f"{where}: column {term}: level {error} came only now; the table changed meanwhile") from None
        has = np.flatnonzero(code >= 0)
        pieces.append((has, code[has], np.ones(len(has))))
    if not design.sparse:
        whole = np.zeros((n, m))
        for row, place, value in pieces:
            whole[row, place] = value
        return whole
    row, place, value = (np.concatenate([piece[i] for piece in pieces]) for i in range(3))
    matrix = scipy.sparse.csr_array((value, (row, place)), shape=(n, m))
    matrix.sort_indices()
    return matrix


def inside(values: Any, counted: Places | None) -> Any:
    """Those of an array, a series, a frame or a list that are of rows that are counted; all without such."""
    if counted is None:
        return values
    return [values[row] for row in counted] if isinstance(values, list | range) else values[counted]


def columns_of(frame: nw.DataFrame[Any]) -> Columns:
    """Columns by their names: asked one by one they take three times as long."""
    return {series.name: cast("nw.Series[Any]", series) for series in frame.iter_columns()}


def missing(series: nw.Series[Any]) -> NDArray[np.bool_]:
    """Which values are null, or not a number."""
    values = plain(series)
    if values is not None:
        return np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), np.bool_)
    gap = np.asarray(series.is_null().to_numpy(), np.bool_)
    if series.dtype.is_float():
        gap = gap | np.asarray(series.fill_null(0.0).is_nan().to_numpy(), np.bool_)
    return gap


def text(series: nw.Series[Any]) -> list[str]:
    """Levels as they are called."""
    return [str(value) for value in series.to_list()]


def ordered(series: nw.Series[Any]) -> tuple[bool, bool]:
    """Whether categories have an order that means something, and whether they are to be sorted as text."""
    native = series.to_native()
    kind = getattr(native, "dtype", None) if hasattr(native, "dtype") else getattr(native, "type", None)
    if hasattr(kind, "categories"):  # of pandas, and of an Enum of polars
        return bool(getattr(kind, "ordered", True)), False
    meant = bool(getattr(kind, "ordered", False))
    return meant, not meant


def _kind(series: nw.Series[Any], where: str) -> nw.dtypes.DType:
    """The type of a column that can be coded."""
    kind = series.dtype
    if kind.is_numeric() or kind in (nw.Boolean, nw.String, nw.Categorical, nw.Enum):
        return kind
    if kind.is_temporal():
        advice = "make a number of it, such as days since the first, or a category, such as the year"
        raise BadInputError(f"{where}: column {series.name} holds dates or times; {advice}")
    if kind == nw.Object:
        values = [value for value, gap in zip(series.to_list(), missing(series), strict=True) if not gap]
        if all(isinstance(value, bool | np.bool_) for value in values):
            return nw.Boolean()
        if all(isinstance(value, str) for value in values):
            return nw.String()
        found = sorted({type(value).__name__ for value in values})
        raise BadInputError(f"{where}: column {series.name} holds {' and '.join(found)}: make one type of it")
    native = series.to_native()
    named = str(getattr(native, "dtype", getattr(native, "type", kind)))
    raise BadInputError(f"{where}: column {series.name} holds {named}: give numbers, text, categories or booleans, or drop it")


def _is_id(kind: nw.dtypes.DType, values: Floats) -> bool:
    """Whether a column looks like a number that only names a row: whole, another one in each row, running or long."""
    if not kind.is_integer() or len(values) < LEAST_IDS or len(np.unique(values)) < len(values):
        return False
    return bool(np.ptp(values) == len(values) - 1 or np.abs(values).min() >= LONG_ID)
