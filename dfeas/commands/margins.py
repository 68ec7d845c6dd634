"""Options of soft margins, of the commands that fit, plan or submit one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from dfeas.commands.options import GO_ON, LABELLED, LIMITS, LOCAL, PICKED, PLACE, numbers, with_cluster
from dfeas.soft_margin_options import LOSSES
from dfeas.soft_margin_options import METHODS as SOFT_METHODS

_C = "Price of losses; several on the same reads."

_COST = [click.option("--C", "C", default="1", show_default=True, metavar="C,..", help=_C)]

_MARGIN = [
    click.option("--loss", default="hinge", show_default=True, type=click.Choice(LOSSES)),
    click.option("--gap", default=1e-3, show_default=True, help="Relative gap of objective and lower bound to end at."),
    click.option("--folds", default=0, metavar="K", help="Choose C by cross-validation in K folds, on the same reads."),
    click.option("--class-weight", default=None, metavar="A,B", help="Of the classes -1 and +1, or balanced."),
    click.option("--weights", default=None, type=LOCAL, metavar="FILE", help="A .npy file with a weight for each point."),
    click.option("--seed", default=0, help="Draws the folds."),
    click.option("--dual", default=None, type=LOCAL, metavar="FILE", help="Write the dual variables to this .npy file."),
]

MARGIN_NAMES = ("C", "loss", "gap", "folds", "class_weight", "weights", "seed", "dual")
"""Options of a soft margin that a solve has not."""

_MARGIN_METHOD = [
    click.option("--method", default="auto", show_default=True, type=click.Choice(SOFT_METHODS)),
    click.option("--intercept", is_flag=True, help="Any hyperplane, not only those through the origin."),
]


def margin_options(command: Callable[..., None]) -> Callable[..., None]:
    """Options of a command that fits a soft margin."""
    return with_cluster([*PLACE, *LABELLED, *PICKED, *_COST, *_MARGIN, *_MARGIN_METHOD, *LIMITS, *GO_ON], command)


def submitted_margin_options(command: Callable[..., None]) -> Callable[..., None]:
    """Those of a soft margin, for a command that fits one where ``--C`` is given."""
    for option in reversed([click.option("--C", "C", default=None, metavar="C,..", help=f"Fit a soft margin. {_C}"), *_MARGIN]):
        command = option(command)
    return command


def margin_values(C: str, class_weight: str | None) -> dict[str, Any]:
    """C and weights of classes, as they were typed. Raises UsageError for what are no numbers."""
    weights = class_weight if class_weight in (None, "balanced") else numbers(str(class_weight), "--class-weight")
    return {"C": numbers(C, "--C"), "class_weight": weights}
