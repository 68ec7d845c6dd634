"""How a command prints an answer: its lines for people, or one JSON object."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from dfeas.cli.command import say
from dfeas.display import Displayed, Part, lines
from dfeas.run.screen import Screen

COLOURS = {"feasible": "green", "infeasible": "red", "eps-infeasible": "red", "undecided": "yellow"}
"""Of verdicts."""


def put(answer: Displayed, as_json: bool, *more: Part, values: Any = None) -> None:
    """Print an answer as JSON, or as text that says ``more``: on a terminal in colour, in its columns.

    The ``values`` are those of JSON where the answer has others itself.
    """
    if as_json:
        say(json.dumps(answer.to_json() if values is None else values))
        return
    for line in lines([*answer._parts(), *more], Screen(sys.stdout).columns, _paint_verdict):
        click.echo(line)


def _paint_verdict(verdict: str) -> str:
    return click.style(verdict, fg=COLOURS.get(verdict), bold=True)
