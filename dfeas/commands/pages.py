"""Commands that compare finished runs."""

from __future__ import annotations

import json
from pathlib import Path

import click

from dfeas.commands.base import Command
from dfeas.commands.options import (
    LOCAL,
)
from dfeas.memory import DEFAULT_MEMORY
from dfeas.printing.lines import say
from dfeas.report import compare as compare_runs
from dfeas.report import report as write_report
from dfeas.report.compare import table, warning


@click.command(cls=Command)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=LOCAL)
@click.option("--out", default=None, type=LOCAL, help="The page.  [default: RUN/report.html]")
@click.option("--memory", default=DEFAULT_MEMORY, show_default=True, help="Budget for reading the data.")
@click.option("--no-data", is_flag=True, help="Do not read the data: no distances of points.")
def report(runs: tuple[Path, ...], out: Path | None, memory: str, no_data: bool) -> None:
    """Write a page about finished runs that opens offline, and print its path.

    A folder that holds runs in its direct subfolders stands for all of them. Needs matplotlib: pip install 'dfeas[report]'.
    """
    say(write_report(runs, out, memory=memory, data=not no_data))


@click.command(cls=Command)
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=LOCAL)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list.")
def compare(runs: tuple[Path, ...], as_json: bool) -> None:
    """Print a table of finished runs; a folder that holds runs in its direct subfolders stands for all of them."""
    rows = compare_runs(runs)
    if warning(rows):
        say(f"dfeas: warning: {warning(rows)}", err=True)
    say(*([json.dumps(rows)] if as_json else table(rows)))
