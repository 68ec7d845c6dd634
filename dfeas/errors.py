"""Errors that a user sees: one line each, with the exit code of the contract.

Names of classes, features, files and methods come from files that anybody wrote. Everything that goes to a terminal or a log
goes through ``visible``; doing it twice changes nothing.
"""

from __future__ import annotations

import unicodedata


class DfeasError(Exception):
    """Base of all errors that dfeas raises on purpose; its text is one line that says what to do, whatever data it quotes."""

    exit_code = 1

    def __init__(self, text: str) -> None:
        super().__init__(visible(" ".join(text.split())))


class UsageError(DfeasError, ValueError):
    """The request cannot be carried out as it was asked: options, paths of outputs, addresses."""

    exit_code = 2


class UndecidedError(DfeasError):
    """A run without a verdict, where one is needed."""

    exit_code = 3


class ClusterLostError(DfeasError):
    """The Dask cluster went away in the middle of a run."""

    exit_code = 75


class BadInputError(DfeasError, ValueError):
    """The data does not pose the problem: wrong shape, labels, type, or non-finite entries."""

    exit_code = 4


class CorruptDataError(DfeasError, OSError):
    """Stored data is missing, damaged, incomplete, or not what it was."""

    exit_code = 5


class NewerFormatError(CorruptDataError):
    """A file of a format that only a newer dfeas reads."""


class CheckFailedError(DfeasError):
    """A certificate does not prove what it claims about the stored data."""

    exit_code = 6


def changed(where: str) -> CorruptDataError:
    """For a source that is not what it was at the first look."""
    return CorruptDataError(f"{where}: it changed while it was read; let nobody write to it, and run again")


_SHOWN_AS_ESCAPES = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Categories of Unicode: controls, formats (which turn text round, or are not seen), halves of pairs, ends of lines."""


def visible(text: str) -> str:
    """The same text with controls as escapes: ``\\x1b``, ``\\n``."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(each) if unicodedata.category(each) in _SHOWN_AS_ESCAPES else each for each in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
