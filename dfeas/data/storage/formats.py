"""The format of each kind of file that we write, and the refusal of a newer one.

A number grows when an older dfeas would misread the file; a key more does not need that. A file without a number is of
format 0: of before there were numbers, which dfeas reads, too. Scores, dual variables and pages are for others to read, and
have none.
"""

from __future__ import annotations

from typing import Any

from dfeas import __version__
from dfeas.errors import CorruptDataError, NewerFormatError

KEY = "format"
"""Of a number in a file, whatever its kind."""

DATASET = 1
CERTIFICATE = 1
RESULT = 1
RACE = 1
HARD_MARGIN = 1
SEPARATION = 1
TRACE = 1
CHECKPOINT = 1


def require_readable(where: object, number: Any, newest: int) -> None:
    """Raise NewerFormatError when a file is of a format that this dfeas does not know, CorruptDataError when it says none."""
    if type(number) is not int or number < 0:
        raise CorruptDataError(f"{where}: damaged: its format is {number!r:.40}, expected a whole number")
    if number > newest:
        raise NewerFormatError(
            f"{where}: written in format {number} by a newer dfeas; this dfeas {__version__} reads formats up to {newest}: "
            "upgrade dfeas"
        )
