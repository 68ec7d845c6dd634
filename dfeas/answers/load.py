"""``dfeas.load``: the object that a finished run returned, from its folder."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from dfeas.answers.feasibility import Feasibility
from dfeas.answers.files import (
    RACE,
    SEPARATION,
    SOFT_MARGIN,
    SUSPECTS,
    classes_of,
    load_result,
)
from dfeas.answers.hard_margin import MARGIN, HardMargin
from dfeas.answers.result import Result
from dfeas.answers.separation import Separation
from dfeas.answers.several import OneVsRest, Race
from dfeas.answers.soft_margin import SoftMarginClasses, SoftMarginResult
from dfeas.answers.suspects import Suspects
from dfeas.data.storage.places import Place, place
from dfeas.errors import BadInputError, CorruptDataError

Loaded: TypeAlias = (
    Result | Race | OneVsRest | SoftMarginResult | SoftMarginClasses | HardMargin | Separation | Feasibility | Suspects
)


def load(run: str | Path) -> Loaded:
    """Read a finished run back.

    Parameters
    ----------
    run : path
        Folder of a run of ``dfeas.solve``, ``dfeas.race``, ``dfeas.soft_margin``, ``dfeas.hard_margin``,
        ``dfeas.separation``, ``dfeas.feasible`` or ``dfeas.suspects``; it may have been moved.

    Returns
    -------
    Result, Race, OneVsRest, SoftMarginResult, SoftMarginClasses, HardMargin, Separation, Feasibility or Suspects
        What the call returned, with its certificate, but without data that was in memory and without a function that was the
        kernel. ``path`` of a soft margin has only the chosen hyperplane.

    Raises
    ------
    BadInputError
        There is no finished run.
    CorruptDataError
        Its files are damaged.

    Examples
    --------
    >>> import dfeas
    >>> result = dfeas.solve([[1.0, 2.0], [-1.0, -1.0]], [1, -1], out="run")
    >>> dfeas.load("run").margin_lower == result.margin_lower
    True
    """
    folder = place(run)
    try:
        return _load_run(folder)
    except (TypeError, KeyError, ValueError, ArithmeticError) as error:
        if isinstance(error, BadInputError):
            raise
        raise CorruptDataError(f"{folder}: not a readable run: {error}") from None


def _load_run(folder: Place) -> Loaded:
    if (folder / SUSPECTS).is_file():
        return Suspects.load(folder)
    if (folder / RACE).is_file():
        return Race.load(folder)
    classes, values = classes_of(folder), load_result(folder, soft=True)
    if values.get("kind") == SOFT_MARGIN:
        return SoftMarginResult.load(folder) if classes is None else SoftMarginClasses.load(folder)
    if classes is not None:
        return OneVsRest.load(folder)
    result = Result.load(folder)
    if "violated" in values:
        return Feasibility.load(folder, result)
    if (folder / MARGIN).is_file():
        return HardMargin.load(folder, result)
    return Separation.load(folder, result) if (folder / SEPARATION).is_file() else result
