"""The command line: results on stdout, progress on stderr, one line for an error, exit codes of the contract."""

from __future__ import annotations

import sys

import click

from dfeas.commands.base import one_line_errors
from dfeas.commands.clusters import fetch, status, submit
from dfeas.commands.datasets import append, generate, info, ingest
from dfeas.commands.evidence import plan, predict, recheck, verify
from dfeas.commands.pages import compare, report
from dfeas.commands.runs import in_hull, race, resume, solve, svm
from dfeas.version import __version__


@click.group("dfeas", context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dfeas")
def commands() -> None:
    """Can a hyperplane through the origin separate labelled points? A checked answer, for data larger than memory.

    \b
    Exit codes: 0 verdict reached and verified (either way), 2 usage, 3 a limit was reached, 4 bad input,
    5 corrupt or missing data, 6 a certificate failed its check, 75 interrupted: dfeas resume goes on.
    """


for _command in (
    append,
    compare,
    fetch,
    generate,
    in_hull,
    info,
    ingest,
    plan,
    predict,
    race,
    recheck,
    report,
    resume,
    solve,
    status,
    submit,
    svm,
    verify,
):
    commands.add_command(_command)


def main() -> None:
    """Entry point of the ``dfeas`` command."""
    with one_line_errors():
        sys.exit(commands.main(prog_name="dfeas", standalone_mode=False))
