"""The command line: results on stdout, progress on stderr."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from dfeas import __version__
from dfeas.cli.command import one_line_errors

PLACES = {
    "clusters": ("cancel", "config", "fetch", "status", "submit"),
    "datasets": ("append", "generate", "info", "ingest"),
    "evidence": ("compare", "plan", "predict", "recheck", "report", "verify"),
    "separation": ("check-separation",),
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
