"""The design of a regression: columns of numbers as they are, text, categories and booleans by treatment coding.

A factor of levels a, b, c in order becomes columns ``kind[b]`` and ``kind[c]``: a is its reference. Without an intercept the
first factor keeps a column for each level, as in R.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import cached_property
from numbers import Real
from typing import Any, TypeAlias, cast

import narwhals.stable.v2 as nw
import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from dfeas.data.frames import is_frame, number, open_frame, plain
from dfeas.data.storage.features import LEAST_IDS, LIKE_AN_ID, NAMED, are_ids, no_column
from dfeas.data.storage.numbers import array_of, exact, is_missing
from dfeas.errors import BadInputError, spell
from dfeas.records import replace

SHOWN = 5
"""Columns, levels and points that a text names."""
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")
_ORDINAL = re.compile(r"\s*\d+(st|nd|rd|th)\s*")
_LIKE_NUMBER = re.compile(
    r"""\s*[<>=~\u2248\u2264\u2265(]*\s*[+\u2212-]?\s*[\u20ac$\u00a3\u00a5]?\s*           # <5, (5), $5
    (0[xX][\da-fA-F]+|\d+[dD][+-]?\d+|\.?\d[\d.,:'_\u2019\s]*([eE][+-]?\d+)?)      # 0x10, 1d5, 1,500, 12:30
    \s*[^\W\d_]*[%\u2030\u00b0\u20ac$\u00a3/\u00b2\u00b3^*)]*[^\W\d_]*[\u00b2\u00b3]?\s*""",  # units: mg/dl, %, m2
    re.VERBOSE,
)
"""What is meant as a number, and is none for a reader: with a unit, a comma, a sign before it. Ordinals are names."""
MOST_LEVELS = 200_000
SPARSE_FROM = 32
"""Columns from which on a design that is mostly zeros is stored sparse."""
Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Labels: TypeAlias = "Sequence[Any] | Places"
"""Of rows: as they are called in a frame, or their numbers."""
Columns: TypeAlias = "dict[str, nw.Series[Any]]"
Matrix = Any
"""(b, m) of float64: an array, or a CSR matrix."""


class Column(Struct, frozen=True):
    """One column of the design matrix."""

    name: Any
    term: Any  # the column of the frame, or the term of the formula, that it is of
    level: str | None = None  # of a factor, where it is 1
    own: bool = True  # False: a threshold of the likelihood, which is no column of the table


class Factor(Struct, frozen=True):
    """Levels of a column that is no number."""

    levels: tuple[str, ...]  # in order
    reference: str | None  # the one without a column; None where each has one
    ordered: bool = False


class Design(Struct, frozen=True, dict=True):
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
        return list(dict.fromkeys(column.term for column in self.columns if column.own))

    @property
    def sparse(self) -> bool:
        entries = len({column.term for column in self.columns})
        return len(self.columns) >= SPARSE_FROM and entries < 0.25 * len(self.columns)

    @cached_property
    def _by_term(self) -> dict[Any, list[int]]:
        found: dict[Any, list[int]] = {}
        for place, column in enumerate(self.columns):
            found.setdefault(column.term, []).append(place)
        return found

    def places(self, *terms: Any) -> list[int]:
        return sorted(place for term in terms for place in self._by_term.get(term, ()))

    def without(self, places: Sequence[int]) -> tuple[Design, list[int]]:
        gone = set(places)
        kept = [place for place in range(len(self.columns)) if place not in gone]
        return replace(self, columns=tuple(self.columns[place] for place in kept)), kept


class Variable(Struct):
    """What was seen of a column of a frame."""

    name: str
    kind: nw.dtypes.DType
    levels: dict[str, None] = field(default_factory=dict)
    order: dict[str, None] = field(default_factory=dict)  # categories, also those without a row; none: as text
    ordered: bool = False
    missing: int = 0
    first: int = -1  # row of the first missing value
    running: bool = False  # whole numbers, another one in each row
    looks: dict[str, tuple[str, int]] = field(default_factory=dict)  # first level that looks as a number, or as a name; its row

    @property
    def is_factor(self) -> bool:
        return not self.kind.is_numeric()

    @property
    def in_order(self) -> list[str]:
        return [level for level in self.order if level in self.levels] if self.order else sorted(self.levels)


class ColumnSurvey:
    """Looks at a table part after part: which levels columns have, and what is missing."""

    def __init__(
        self,
        where: str,
        rows: Any = None,
        most_levels: int = MOST_LEVELS,
        text: Sequence[str] = (),
        categories: Container[str] = (),
    ) -> None:
        self.where, self.n, self._counted, self._rows, self._most = where, 0, 0, rows, most_levels
        self._text = text  # columns that may have levels like numbers
        self._categories = categories  # columns of a file whose categories are in the order that a frame gave them
        self.places: Places | None = None  # numbers of the rows that are looked at, where some are left out
        self.variables: dict[str, Variable] = {}
        self._wrong: dict[str, str] = {}  # what is wrong with a column, by its name

    def add(self, columns: Columns, n: int, counted: Places | None = None) -> None:
        """n rows that follow. Levels and ids are those of the rows that are ``counted``, or of all; what is missing is looked
        for in all. What is wrong with a column is said by ``refuse``, and it is not looked at any more.
        """
        for name, series in columns.items():
            if name not in self._wrong:
                with self._note_errors(name):
                    self._add(name, series, counted)
        self.n += n
        self._counted += n if counted is None else len(counted)

    @contextmanager
    def _note_errors(self, name: str) -> Iterator[None]:
        try:
            yield
        except BadInputError as error:
            self._wrong[name] = str(error.args[0]).removeprefix(f"{self.where}: ")

    def _add(self, name: str, series: nw.Series[Any], counted: Places | None) -> None:
        seen = self.variables.setdefault(name, Variable(name, _kind(series, self.where)))
        gap = find_missing(series)
        if gap.any():
            seen.first = self._at(int(gap.argmax())) if not seen.missing else seen.first
            seen.missing += int(gap.sum())
        if seen.is_factor and (seen.kind == nw.String or not gap.any()):
            self._levels(series, counted, seen)
        elif not seen.is_factor:
            there = series.filter((~gap).tolist()) if gap.any() else series
            values = exact(number(there, self.where), np.float64, self.where)
            if not np.isfinite(values).all():
                row = self.call_row(self._at(int(np.flatnonzero(~gap)[(~np.isfinite(values)).argmax()])))
                raise BadInputError(f"{self.where}: column {name} is infinite in row {row}; correct it, or drop the row")
            seen.running = self.n == 0 and not gap.any() and seen.kind.is_integer() and are_ids(inside(values, counted))

    def _at(self, row: int) -> int:
        return self.n + row if self.places is None else int(self.places[row])

    def call_row(self, row: int) -> str:
        label = row if self._rows is None else self._rows[row]
        return str(row) if label == row else f"{row} ({label})"

    def refuse(self) -> None:
        """Raise BadInputError for all that is wrong: columns that cannot be coded, infinite numbers, and what is missing."""
        for seen in self.variables.values():
            if seen.is_factor and seen.name not in self._wrong:
                with self._note_errors(seen.name):
                    self._refuse_factor(seen)
        gaps, wrong = [each for each in self.variables.values() if each.missing], [*self._wrong.values()]
        if gaps:
            shown = [f"{v.name} ({v.missing}, the first in row {self.call_row(v.first)})" for v in gaps[:SHOWN]]
            more = f" and {len(gaps) - SHOWN} more columns" if len(gaps) > SHOWN else ""
            advice = f"fill them, drop columns, or drop the rows, by {spell('missing', 'drop')}"
            wrong.append(f"missing values in {', '.join(shown)}{more}; {advice}")
        if len(wrong) == 1:
            raise BadInputError(f"{self.where}: {wrong[0]}")
        if wrong:
            each = "; ".join(f"({place}) {text}" for place, text in enumerate(wrong[:NAMED], 1))
            more = f"; and {len(wrong) - NAMED} more" if len(wrong) > NAMED else ""
            raise BadInputError(f"{self.where}: {len(wrong)} problems: {each}{more}")

    def _refuse_factor(self, seen: Variable) -> None:
        self._refuse_numbers(seen)
        if seen.kind == nw.String and len(seen.levels) == self._counted >= LEAST_IDS:
            what = f"column {seen.name} has another text in each of {self._counted} rows"
            raise BadInputError(f"{self.where}: {what}, as an id has; drop it")

    def _levels(self, series: nw.Series[Any], counted: Places | None, seen: Variable) -> None:
        series = inside(series, counted)
        if isinstance(series.dtype, nw.Categorical | nw.Enum):
            seen.ordered, as_text = read_order(series)
            if not as_text or seen.name in self._categories:
                seen.order |= dict.fromkeys(text(series.cat.get_categories()))
        for level in text(series.unique().drop_nulls()):
            read = level not in seen.levels and seen.kind == nw.String and seen.name not in self._text
            look = _look_of(level) if read else None
            seen.levels[level] = None
            if look is not None and look not in seen.looks:
                row = (series == level).to_list().index(True)
                seen.looks[look] = level, self._at(row if counted is None else int(counted[row]))
        if len(seen.levels) > self._most:
            self._refuse_numbers(seen)
            what = f"column {seen.name} has more than {self._most} levels"
            raise BadInputError(f"{self.where}: {what}; drop it if it is an id, or merge levels")

    def _refuse_numbers(self, seen: Variable) -> None:
        others = [seen.looks[look] for look in ("meant", "name") if look in seen.looks]
        if "meant" in seen.looks or ("number" in seen.looks and others):
            cell, row = min(others, key=lambda each: each[1]) if "number" in seen.looks else others[0]
            what = f"column {seen.name}: expected numbers, got {cell!r} in row {self.call_row(row)}"
            comma = f"say that a comma is decimal, by {spell('decimal', ',')}, " if _DECIMAL_COMMA.fullmatch(cell) else ""
            meant = f"say that it is text, by {spell('text', seen.name)}"
            raise BadInputError(f"{self.where}: {what}; correct it, {comma}or {meant}")

    def design(self, intercept: bool) -> Design:
        self.refuse()
        columns: list[Column] = []
        factors: dict[Any, Factor] = {}
        for seen in self.variables.values():
            if not seen.is_factor:
                columns.append(Column(seen.name, seen.name))
                continue
            levels = tuple(seen.in_order)
            full = not intercept and not factors
            factors[seen.name] = Factor(levels, None if full else levels[0], seen.ordered)
            columns += [Column(f"{seen.name}[{level}]", seen.name, level) for level in levels[0 if full else 1 :]]
        twice = [name for name, count in Counter(column.name for column in columns).items() if count > 1]
        ids = [seen.name for seen in self.variables.values() if seen.running]
        notes = tuple(f"column {name or '(no name)'} {LIKE_AN_ID}: drop it if it is an id" for name in ids)
        if twice:
            raise BadInputError(f"{self.where}: column {twice[0]} has the name of a level of a factor; rename one of them")
        return Design(tuple(columns), factors, intercept, notes)


def as_text(frame: nw.DataFrame[Any], names: Sequence[str]) -> nw.DataFrame[Any]:
    """The frame with some columns as text. Raises BadInputError for one that is not there."""
    for name in names:
        if name not in frame.columns:
            raise no_column(name, frame.columns, "text")
    return frame.with_columns(nw.col(name).cast(nw.String) for name in names) if names else frame


def points_of(columns: Columns, n: int, design: Design, where: str) -> Matrix:
    """n rows by a design (n, m). Raises BadInputError for a level that is new."""
    import scipy

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


def require_column(name: str, columns: Sequence[str], where: str) -> None:
    """Raise BadInputError for a column that is not there."""
    if name not in columns:
        raise no_column(name, columns, where)


def inside(values: Any, counted: Places | None) -> Any:
    """Those of an array, a series, a frame or a list that are of rows that are counted; all without such."""
    if counted is None:
        return values
    return [values[row] for row in counted] if isinstance(values, list | range) else values[counted]


def columns_of(frame: nw.DataFrame[Any]) -> Columns:
    """Columns by their names: asked one by one they take three times as long."""
    return {series.name: cast("nw.Series[Any]", series) for series in frame.iter_columns()}


def find_missing(series: nw.Series[Any]) -> NDArray[np.bool_]:
    """Which values are null, or not a number."""
    values = plain(series)
    if values is not None:
        return np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), np.bool_)
    gap = np.asarray(series.is_null().to_numpy(), np.bool_)
    if series.dtype.is_float():
        gap = gap | np.asarray(series.fill_null(0.0).is_nan().to_numpy(), np.bool_)
    return gap


def find_gaps(values: Any, columns: Sequence[str] | None = None, where: str = "the rows") -> NDArray[np.bool_]:
    """Which rows of a frame, a series, an array or a sparse matrix miss a value, in some columns or in any."""
    if is_frame(values):
        frame = open_frame(values, "the frame")
        missing = [find_missing(frame[name]) for name in (frame.columns if columns is None else columns)]
        return np.asarray(np.any(missing, axis=0), np.bool_)
    series = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return find_missing(series)
    if hasattr(values, "tocoo"):
        rows = values.tocoo()
        return np.isin(np.arange(values.shape[0]), rows.row[np.isnan(rows.data)])
    array: NDArray[Any] = np.atleast_1d(array_of(values, where))
    if array.dtype.kind not in "OT":
        gap = np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.shape, np.bool_)
    else:
        gap = np.array([is_missing(each) for each in array.ravel().tolist()], np.bool_)
    return np.asarray(gap.reshape(len(array), -1).any(axis=1), np.bool_)


def note_dropped(dropped: int, rows: int) -> tuple[str, ...]:
    """What is said of rows that miss a value."""
    return (f"{dropped} of {rows} rows miss a value, and {'is' if dropped == 1 else 'are'} dropped",) if dropped else ()


def text(series: nw.Series[Any]) -> list[str]:
    """Levels as they are called."""
    return [str(value) for value in series.to_list()]


def read_order(series: nw.Series[Any]) -> tuple[bool, bool]:
    """Whether categories have an order that means something, and whether they are to be sorted as text."""
    native = series.to_native()
    kind = getattr(native, "dtype", None) if hasattr(native, "dtype") else getattr(native, "type", None)
    if hasattr(kind, "categories"):  # of pandas, and of an Enum of polars
        return bool(getattr(kind, "ordered", True)), False
    meant = bool(getattr(kind, "ordered", False))
    return meant, not meant


def dates_error(name: str, where: str) -> BadInputError:
    """The error for a column of dates."""
    advice = "make a number of it, such as days since the first, or a category, such as the year"
    return BadInputError(f"{where}: column {name} holds dates or times; {advice}")


def _kind(series: nw.Series[Any], where: str) -> nw.dtypes.DType:
    kind = series.dtype
    if kind.is_numeric() or kind in (nw.Boolean, nw.String, nw.Categorical, nw.Enum):
        return kind
    if kind.is_temporal():
        raise dates_error(series.name, where)
    if kind == nw.Object:
        values = [value for value, gap in zip(series.to_list(), find_missing(series), strict=True) if not gap]
        if all(isinstance(value, bool | np.bool_) for value in values):
            return nw.Boolean()
        if all(isinstance(value, str) for value in values):
            return nw.String()
        if all(isinstance(value, Real | Decimal) for value in values):
            return nw.Float64()
        found = sorted({type(value).__name__ for value in values})
        raise BadInputError(f"{where}: column {series.name} holds {' and '.join(found)}: make one type of it")
    native = series.to_native()
    named = str(getattr(native, "dtype", getattr(native, "type", kind)))
    raise BadInputError(f"{where}: column {series.name} holds {named}: give numbers, text, categories or booleans, or drop it")


def _look_of(level: str) -> str:
    if _NUMBER.fullmatch(level):
        return "number"
    return "meant" if _LIKE_NUMBER.fullmatch(level) and not _ORDINAL.fullmatch(level) else "name"
