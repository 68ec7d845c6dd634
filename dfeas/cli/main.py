"""The command line: results on stdout, progress on stderr, one line for an error, exit codes of the contract."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from dfeas import __version__
from dfeas.cli.render import say
from dfeas.engine.signals import INTERRUPTED, interruptible
from dfeas.errors import CorruptDataError, DfeasError

LIMIT_REACHED = 3

TRACEBACK = "DFEAS_TRACEBACK"
"""A variable of the environment: where it is set, an error that nobody foresaw shows where it came from."""

MOST_SHOWN = 300
"""Characters of such an error."""


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn each expected error into one line on stderr and the exit code of its kind."""
    try:
        yield
    except DfeasError as error:
        say(f"dfeas: error: {error}", err=True)
        sys.exit(error.exit_code)
    except click.UsageError as error:
        help_of = error.ctx.command_path if error.ctx is not None else "dfeas"
        say(f"dfeas: error: {' '.join(error.format_message().split())} (see {help_of} --help)", err=True)
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort):
        say("dfeas: interrupted", err=True)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # whoever read our output has gone: nothing more can be said
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        say(f"dfeas: error: {where}{error.strerror or error}", err=True)
        sys.exit(CorruptDataError.exit_code)
    except MemoryError as error:
        if TRACEBACK in os.environ:
            raise
        what = "; lower --memory, or close other programs, and check how large the data says that it is"
        say(f"dfeas: error: no memory left: {error}{what}", err=True)
        sys.exit(CorruptDataError.exit_code)
    except Exception as error:
        if TRACEBACK in os.environ:
            raise
        what = f"{type(error).__name__}: {' '.join(str(error).split())}"[:MOST_SHOWN]
        say(f"dfeas: error: not foreseen, {what}; is a file damaged? if not please report it, with {TRACEBACK}=1 set", err=True)
        sys.exit(CorruptDataError.exit_code)


class Command(click.Command):
    """A command whose errors are one line also under ``dask dfeas``."""

    def invoke(self, ctx: click.Context) -> Any:
        with interruptible(), one_line_errors():
            return super().invoke(ctx)


PLACES = {
    "clusters": ("fetch", "status", "submit"),
    "datasets": ("append", "generate", "info", "ingest"),
    "evidence": ("compare", "plan", "predict", "recheck", "report", "verify"),
    "runs": ("in-hull", "race", "resume", "solve", "svm"),
}
"""Commands of the modules in this package; one is imported when it is asked for."""


class Commands(click.Group):
    """Imports a command, with all that it needs, when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(name for names in PLACES.values() for name in names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name; None when there is none."""
        for module, names in PLACES.items():
            if cmd_name in names:
                command = getattr(import_module(f"dfeas.cli.{module}"), cmd_name.replace("-", "_"))
                assert isinstance(command, click.Command)
                return command
        return None


@click.group("dfeas", cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dfeas")
def commands() -> None:
    """Can a hyperplane through the origin separate labelled points? A checked answer, for data larger than memory.

    \b
    Exit codes: 0 verdict reached and verified (either way), 2 usage, 3 a limit was reached, 4 bad input,
    5 corrupt or missing data, 6 a certificate failed its check, 75 interrupted: dfeas resume goes on.
    """


def main() -> None:
    """Carry out what was typed, and exit."""
    with one_line_errors():
        sys.exit(commands.main(prog_name="dfeas", standalone_mode=False))
