"""A command: one line for an error, and the exit codes of the contract."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

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
