"""Which columns of a table are features, said by their names or by patterns of the shell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, ClassVar

from dfeas.display import Displayed, Grid, Part, Row
from dfeas.errors import BadInputError, UsageError, either, near

NAMED = 8
"""Columns that a message names."""


def names_of(given: Any, what: str) -> tuple[str, ...]:
    """One name, or several. Raises UsageError for anything else."""
    several = [given] if isinstance(given, str) else list(given) if isinstance(given, Sequence) else [None]
    if not all(isinstance(each, str) and each for each in several):
        raise UsageError(f"{what}: expected names of columns, or patterns such as 'visit_*', got {given!r:.60}")
    return tuple(several)


def no_column(name: str, columns: Sequence[str], where: str) -> BadInputError:
    """The error for a column that a table has not."""
    shown = ", ".join(columns[:NAMED]) + (", ..." if len(columns) > NAMED else "")
    return BadInputError(f"{where}: no column {name}{near(name, columns)}; the columns are {shown}")


@dataclass(frozen=True)
class Choice:
    """Columns that are features: these in this order, or all of the table, but for some. Falsy where that is all of them."""

    columns: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()

    @classmethod
    def of(cls, columns: Any = None, without: Any = ()) -> Choice:
        """As a user says it. Raises UsageError for what are no names."""
        chosen = None if columns is None else names_of(columns, "columns")
        if chosen == ():
            raise UsageError("columns: none is named; leave it out for all columns")
        return cls(chosen, names_of(without or (), "without"))

    def to_json(self) -> dict[str, Any]:
        """As ``of`` takes it."""
        return {"columns": None if self.columns is None else [*self.columns], "without": [*self.without]}

    def __bool__(self) -> bool:
        return self.columns is not None or bool(self.without)

    def features(self, columns: Sequence[str], label: str | None, where: str) -> list[str]:
        """Of the columns of a table. Raises BadInputError for a name or pattern that no column has, and where none is left."""
        others = [name for name in columns if name != label]

        def matching(pattern: str) -> list[str]:
            if pattern in others:
                return [pattern]
            found = [name for name in others if fnmatchcase(name, pattern)]
            if not found and pattern == label:
                raise UsageError(f"{where}: column {pattern} has the labels, which are no feature: leave it out")
            if not found:
                raise no_column(pattern, others, where)
            return found

        chosen = others if self.columns is None else [name for pattern in self.columns for name in matching(pattern)]
        left_out = {name for pattern in self.without for name in matching(pattern)}
        found = [name for name in (chosen if self.columns is None else dict.fromkeys(chosen)) if name not in left_out]
        if not found and others:
            raise BadInputError(f"{where}: no column is left; the columns are {', '.join(others[:NAMED])}")
        return found

    def note(self, columns: Sequence[str], chosen: Sequence[str], label: str | None) -> list[str]:
        """Which columns are no features, for the user."""
        gone = [name for name in columns if name not in chosen and name != label]
        more = f" and {len(gone) - NAMED} more" if len(gone) > NAMED else ""
        return [f"left out: {', '.join(gone[:NAMED])}{more}"] if self and gone else []


ALL = Choice()
LEAVE_OUT = either("dfeas.table(X, y, without=[..])", "--without NAME")
"""What leaves columns out, for messages."""


@dataclass(frozen=True, repr=False)
class ChosenTable(Displayed):
    """What ``dfeas.table`` returns.

    Attributes
    ----------
    X : str, or data frame
        The absolute path of the table; or the frame with the features, and the column of labels where that is one of it.
    y : str, array, or series, optional
        The column of labels, or what is beside the table.
    features : tuple of str
        Names of the columns that are features.
    left_out : tuple of str
        Names of those that are not, but for the labels.
    choice : Choice
        What was asked for.
    """

    HIDDEN: ClassVar = ("X", "y", "choice")

    X: Any
    y: Any
    features: tuple[str, ...]
    left_out: tuple[str, ...]
    choice: Choice

    def _parts(self) -> Iterator[Part]:
        label = self.y if isinstance(self.y, str) else None
        where = self.X if isinstance(self.X, str) else f"a frame of {type(self.X).__module__.partition('.')[0]}"
        yield Row("table", f"{where}: {len(self.features)} features")
        rows = [(label, "label")] if label is not None else []
        rows += [(name, "feature") for name in self.features] + [(name, "left out") for name in self.left_out]
        yield Grid(("column", "use"), [list(row) for row in rows], 2)
