"""``dfeas in-hull`` and ``dfeas feasible``, whose questions are their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dfeas.analysis.feasibility import feasible as find_feasible
from dfeas.analysis.hull import in_hull as find_in_hull
from dfeas.cli.cluster import CLUSTER
from dfeas.cli.command import DATA, JSON, LOCAL, Command, option
from dfeas.cli.options import CHOSEN, GO_ON, NAMED, PERFORMANCE, QUIET, SAME_BITS, asks, describe_methods, method_of, options_of
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
@asks(NAMED, CHOSEN, options_of(find_in_hull, eps="Stop undecided when no hyperplane has a margin above it."), GO_ON)
@method_of([*METHODS])
def in_hull(point: str, data: str, **values: Any) -> None:
    """Decide whether a point is in the convex hull of others.

    The others are the points of DATA, whose labels are ignored; the evidence is written to the folder RUN. POINT is a .npy
    file, or numbers separated by commas.
    """
    try:
        where: Any = point if point.endswith(".npy") else [float(v) for v in point.split(",")]
    except ValueError:
        raise click.UsageError(f"POINT {point}: expected a .npy file, or numbers with commas between them") from None
    begin(find_in_hull, where, data, **values)


@click.command(
    cls=Command,
    examples=("dfeas feasible model.mps --out RUN", "dfeas feasible A.npz b.npy --equal E.npy f.npy --bounds 0,inf"),
)
@click.argument("data", type=DATA, metavar="A")
@click.argument("b", type=LOCAL, required=False)
@asks(NAMED[1:], CHOSEN, options_of(find_feasible))
@option("Question", "--equal", nargs=2, type=DATA, metavar="E F", help="Equalities E x = f: files of E and of f.")
@option("Question", "--bounds", metavar="LOW,HIGH", help="Of all variables, or a file (.npy) of m pairs.  [default: none]")
@asks(CLUSTER, SAME_BITS, PERFORMANCE, QUIET, JSON)
def feasible(data: str, b: Path | None, bounds: str | None, **values: Any) -> None:
    """Decide whether A x <= b has a solution.

    The matrix A is any DATA that solve takes, without labels; B is a .npy file or a zarr array. Or A is an MPS or LP file, of
    which only the constraints are used. A solution, or the constraints that contradict each other, with Farkas multipliers that
    prove it, are written to the folder RUN.
    """
    values["bounds"] = bounds
    if bounds is not None and not Path(bounds).exists():
        try:
            values["bounds"] = tuple(float(value) for value in bounds.split(","))
        except ValueError:
            raise click.UsageError(f"--bounds {bounds}: expected two numbers LOW,HIGH, or a .npy file that exists") from None
    begin(lambda A, equal, **more: find_feasible(A, b and str(b), equal=equal or None, **more), data, **values)
