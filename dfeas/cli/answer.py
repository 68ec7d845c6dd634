"""How a command prints an answer: its lines for people, or one JSON object."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

import click

from dfeas.cli.command import say
from dfeas.display import Displayed, Part, lines
from dfeas.run.screen import Screen

COLOURS = {"feasible": "green", "infeasible": "red", "eps-infeasible": "red", "undecided": "yellow"}
"""Of verdicts."""


def put(values: Any, answer: Displayed | Iterable[Part], as_json: bool, *more: Part) -> None:
    """Print values as one JSON object, or an answer that says the same: on a terminal in colour, in its columns."""
    if as_json:
        say(json.dumps(values))
        return
    parts = answer._parts() if isinstance(answer, Displayed) else answer
    for line in lines([*parts, *more], Screen(sys.stdout).columns, _painted):
        click.echo(line)


def _painted(verdict: str) -> str:
    return click.style(verdict, fg=COLOURS.get(verdict), bold=True)
