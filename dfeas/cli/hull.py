"""``dfeas in-hull``, whose question is one of its own."""

from __future__ import annotations

from typing import Any

import click

from dfeas.analysis.hull import in_hull as find_in_hull
from dfeas.cli.command import Command
from dfeas.cli.options import GO_ON, NAMED, asks, describe_methods, method_of, options_of
from dfeas.cli.runs import begin
from dfeas.methods.registry import METHODS


@click.command(
    "in-hull",
    cls=Command,
    notes=describe_methods,
    examples=("dfeas in-hull 0.5,-1,2 points.data --out RUN", "dfeas in-hull point.npy points.data --out RUN --json"),
    context_settings={"ignore_unknown_options": True},
)
@click.argument("point")
@asks(NAMED, options_of(find_in_hull, eps="Stop undecided when no hyperplane leaves a margin above it."), GO_ON)
@method_of([*METHODS])
def in_hull(point: str, data: str, **values: Any) -> None:
    """Decide whether a point is in the convex hull of others.

    The others are the points of DATA; the evidence is written to the folder RUN. POINT is a .npy file, or numbers with commas
    between them. Labels of DATA do not matter.
    """
    try:
        where: Any = point if point.endswith(".npy") else [float(v) for v in point.split(",")]
    except ValueError:
        raise click.UsageError(f"POINT {point}: expected a .npy file, or numbers with commas between them") from None
    begin(find_in_hull, where, data, **values)
