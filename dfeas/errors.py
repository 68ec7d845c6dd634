"""Errors that a user sees: one line each, with the exit code of the contract."""

from dfeas.visible import visible


class DfeasError(Exception):
    """Base of all errors that dfeas raises on purpose; its text is one line that says what to do, whatever data it quotes."""

    exit_code = 1

    def __init__(self, text: str) -> None:
        super().__init__(visible(" ".join(text.split())))


class UsageError(DfeasError):
    """The request cannot be carried out as it was asked: options, paths of outputs, addresses."""

    exit_code = 2


class UndecidedError(DfeasError):
    """A run without a verdict, where one is needed."""

    exit_code = 3


class ClusterLostError(DfeasError):
    """The Dask cluster went away in the middle of a run."""

    exit_code = 75


class BadInputError(DfeasError):
    """The data does not pose the problem: wrong shape, labels, type, or non-finite entries."""

    exit_code = 4


class CorruptDataError(DfeasError):
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
