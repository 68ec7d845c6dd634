"""Names of features: which of them are kept, and how two lists of them differ."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.errors import BadInputError, DataWarning, UsageError, brief, either, format_bytes, near

MOST_BYTES = 4 << 20
"""Of all names of a dataset as UTF-8: they are in its header, in results and in certificates."""
NAMED = 8
"""Columns of a table that a message names."""
LEAVE_OUT = either("dfeas.table(X, y, without=[..])", "--without NAME")
"""What leaves columns out, for messages."""
NO_FEATURES = f"leave them out with {LEAVE_OUT}, or name rows by one with {either('id=NAME there', '--id-column NAME')}"
"""What to do with columns of text, for messages."""
LEAST_IDS = 20
"""Rows from which on values that are others in each are taken for an id."""
LIKE_AN_ID = "has another whole number in each row"
LIKE_A_DATE = "has days as numbers, such as 20200131"


def keep_names(names: Sequence[str], m: int) -> tuple[tuple[str, ...], str]:
    """The names that a dataset of m features keeps, and why none, for people: where they are not one for each, each once."""
    if len(names) != m:
        return (), f"names of features not kept: {len(names)} for {m} features"
    if len(set(names)) < m:
        twice, many = Counter(names).most_common(1)[0]
        return (), f"names of features not kept: {many} are called {shorten(twice)}"
    size = sum(len(name.encode(errors="replace")) for name in names)
    if size > MOST_BYTES:
        return (), f"names of features not kept: {format_bytes(size)}, at most {format_bytes(MOST_BYTES)} are"
    return tuple(names), ""


def are_names(values: Sequence[object]) -> bool:
    """Whether all that a file has for names are text: there may be a million."""
    return all(type(value) is str for value in values)


def feature_name(names: Sequence[str], feature: int) -> str:
    """What messages call a feature."""
    return shorten(names[feature]) if names else str(feature)


def shorten(name: str) -> str:
    """A name as messages have it: the beginning of a long one."""
    most_shown = 80  # characters of a name in a message
    return name if len(name) <= most_shown else f"{name[:most_shown]}..."


def difference(names: Sequence[str], others: Sequence[str]) -> str:
    """How features differ from ``others``, which are expected; empty where they do not, or where either have no names."""
    if not names or not others or tuple(names) == tuple(others):
        return ""
    here, there = set(names), set(others)
    if here == there and len(names) == len(others):
        place = next(i for i, (name, other) in enumerate(zip(names, others, strict=True)) if name != other)
        return f"the same features in another order (at {place} stands {shorten(names[place])}, not {shorten(others[place])})"
    missing, further = [name for name in others if name not in here], [name for name in names if name not in there]
    what = [f"without {_list_names(missing)}"] if missing else []
    return f"other features ({', '.join([*what, *([f'with {_list_names(further)}'] if further else [])])})"


def order_by(names: Sequence[str], features: Sequence[str], what: str, beside: str) -> list[int] | None:
    """Places of the features among the names of ``what``; None where either have no names, or where they are the same. Raises
    BadInputError for names of other features than those that ``beside`` has.
    """
    if not names or not features or tuple(names) == tuple(features):
        return None
    if sorted(names) != sorted(features):
        raise BadInputError(f"{what}: {difference(names, features)} than {beside}; name all features, each once")
    place = {name: i for i, name in enumerate(names)}
    return [place[name] for name in features]


def _list_names(names: Sequence[str]) -> str:
    shown = 5  # names that a message has
    return ", ".join(map(shorten, names[:shown])) + (", .." if len(names) > shown else "")


def are_ids(values: NDArray[Any]) -> bool:
    """Whether whole numbers look like ids, and none comes twice."""
    return len(np.unique(values)) == len(values) >= LEAST_IDS and run_like_ids(values.min(), values.max(), len(values))


def run_like_ids(least: float, most: float, count: int) -> bool:
    """Whether so many whole numbers, none of which comes twice, run through a range, or are long."""
    return count >= LEAST_IDS and bool(most - least == count - 1 or least >= 10**8 or most <= -(10**8))


def are_dates(values: NDArray[Any]) -> bool:
    """Whether whole numbers are all days of three centuries, as 20200131, and not all the same."""
    if len(values) < LEAST_IDS or values.min() < 1800_01_01 or values.max() > 2100_12_31:
        return False
    days, months = values % 100, values // 100 % 100
    return bool(((days >= 1) & (days <= 31) & (months >= 1) & (months <= 12)).all() and values.min() < values.max())


def warn_of_others(points: NDArray[Any], names: Sequence[str], where: str) -> None:
    """Name columns of points (n, m) that look like ids or dates, which are no features."""
    head = np.sort(points[:256], axis=0)  # rows that are looked at first
    whole, distinct = (head == np.floor(head)).all(axis=0), (head[1:] > head[:-1]).all(axis=0)
    ids = [names[place] for place in np.flatnonzero(whole & distinct).tolist() if are_ids(points[:, place])]
    dated = [place for place in np.flatnonzero(whole).tolist() if are_dates(head[:, place])]
    say_that_others(ids, [names[place] for place in dated if are_dates(points[:, place])], where)


def say_that_others(ids: Sequence[str], days: Sequence[str], where: str) -> None:
    """Warn of columns that look like ids, and of those that look like dates."""
    for found, one, more in ((ids, LIKE_AN_ID, "an id"), (days, LIKE_A_DATE, "a date")):
        if found:
            named = ", ".join(map(shorten, found[:NAMED])) + (f" and {len(found) - NAMED} more" if len(found) > NAMED else "")
            text = f"column {named} {one}: if it is {more}, leave it out"
            if len(found) > 1:
                text = f"columns {named} {one.replace('has', 'have', 1)}: if they are {more.split()[1]}s, leave them out"
            warnings.warn(DataWarning(f"{where}: {text} with {LEAVE_OUT}"), stacklevel=3)


def names_of(given: Any, what: str) -> tuple[str, ...]:
    """One name, or several. Raises UsageError for anything else."""
    many = isinstance(given, Iterable) and not isinstance(given, str) and getattr(given, "shape", None) != ()
    several: list[Any] = list(given) if many else [given]
    if not all((isinstance(each, str | tuple) and each) or _is_place(each) for each in several):
        raise UsageError(f"{what}: expected names of columns, or patterns such as 'visit_*', got {brief(given, 60)}")
    return tuple(map(str, several))


def _is_place(name: Any) -> bool:
    return isinstance(name, int | np.integer) and not isinstance(name, bool) and abs(int(name)) < 2**63


def require_distinct(columns: Iterable[Any], chosen: Iterable[str], where: str) -> None:
    """Raise BadInputError when one of the chosen names is that of two columns."""
    count = Counter(map(str, columns))
    twice = next((name for name in chosen if count[name] > 1), None)
    if twice is not None:
        raise BadInputError(f"{where}: two columns are called {twice}; rename one")


def no_column(name: str, columns: Sequence[str], where: str) -> BadInputError:
    """The error for a column that a table has not."""
    shown = ", ".join(columns[:NAMED]) + (", ..." if len(columns) > NAMED else "")
    return BadInputError(f"{where}: no column {name}{near(name, columns)}; the columns are {shown}")
