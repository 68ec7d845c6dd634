"""Options of commands: those of what is asked, from the signatures of the verbs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from inspect import Parameter, signature
from textwrap import fill
from typing import Any, TypeAlias

import click

from dfeas.cli.cluster import CLUSTER, choose_cluster
from dfeas.cli.command import DATA, JSON, LOCAL, Decorator, Name, Numbers, is_typed, option
from dfeas.data.source import ALL_POSITIVE, SCALES
from dfeas.methods.registry import FOR_CONES, FOR_KERNELS, METHODS, base_name
from dfeas.problem import KERNELS, LOSSES, Kernel
from dfeas.run.spec import SOFT_METHODS
from dfeas.settings import read_setting, variable

Body = Callable[..., None]


def describe_methods() -> str:
    """The methods, before the examples of a help text."""
    return "\b\nMethods:\n" + "\n".join(
        fill(method.traits.summary, 78, initial_indent=f"  {name:<30}", subsequent_indent=f"{'':<32}")
        for name, method in METHODS.items()
    )


def describe_all_methods() -> str:
    """The same, and which work with a kernel."""
    names = ", ".join(("working-set", *FOR_KERNELS))
    names = fill(names, 78, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)
    return f"{describe_methods()}\n\n\b\nWith --kernel:\n{names}"


ALL_METHODS = list(dict.fromkeys([*METHODS, *FOR_KERNELS, *FOR_CONES]))
"""With a kernel or without."""


Told: TypeAlias = Mapping[str, tuple[str, str, dict[str, Any]]]
"""Of options by the name of the argument: their heading, their help, and what else they need of click."""
TOLD: Told = {
    "methods": ("Question", "Names of methods, see below.", {"metavar": "A,B,.."}),
    "first": ("Question", "End all methods at the first verdict; otherwise each ends at its own, or a limit.", {}),
    "positive": ("Question", "This class against all others.", {"metavar": "CLASS"}),
    "intercept": (
        "Question",
        "Include an intercept.  [default: for points with labels]",
        {},
    ),
    "one_vs_rest": ("Question", "Each class against the rest, on shared reads.", {}),
    "mask": (
        "Question",
        "Boolean mask (.npy) of the points or cones to use.",
        {"metavar": "FILE", "type": LOCAL},
    ),
    "scale": ("Question", "Scale each feature during reads; nothing is written.", {"type": Name(SCALES)}),
    "center": ("Question", "Subtract the mean of each feature during reads.", {}),
    "normalize": ("Question", "Divide each point by its own norm, or all by the largest.  [default: own]", {}),
    "kernel": ("Kernel", "Kernel of the space in which to separate.", {"metavar": "NAME", "type": Name(KERNELS)}),
    "gamma": ("Kernel", "Parameter of the kernel.  [default: one over the median (squared) distance]", {"metavar": "G"}),
    "degree": ("Kernel", "Degree of the polynomial kernel.  [default: 3]", {"metavar": "D"}),
    "coef0": ("Kernel", "Constant of the polynomial kernel.  [default: 1]", {"metavar": "C0"}),
    "eps": (
        "Question",
        "Stop with eps-infeasible once no margin above E is possible.  [default: never; 0.001 for methods of the papers]",
        {"metavar": "E"},
    ),
    "margin_tolerance": ("Question", "Stop once the margin is within the fraction T of the maximum.", {"metavar": "T"}),
    "start": ("Question", "Warm start from this finished run on similar data.", {"metavar": "RUN", "type": DATA}),
    "margin": ("Question", "Margin, or eps, for which theorems bound the passes.", {"metavar": "R", "show_default": True}),
    "C": (
        "Question",
        "Regularisation parameter; several are fitted on shared reads.",
        {"metavar": "C,..", "type": Numbers()},
    ),
    "loss": ("Question", "Loss function.", {"type": Name(LOSSES), "show_default": True}),
    "tol": ("Question", "Stop at this relative gap between objective and lower bound.", {"metavar": "T", "show_default": True}),
    "folds": ("Question", "Choose C by K-fold cross-validation, on shared reads.", {"metavar": "K"}),
    "class_weight": ("Question", "Weights of classes -1 and +1, or balanced.", {"metavar": "A,B", "type": Numbers("balanced")}),
    "weights": ("Question", "A .npy file with a weight for each point.", {"metavar": "FILE", "type": LOCAL}),
    "intercept_scaling": (
        "Question",
        "Penalise the squared intercept by 1 / (2 S^2).  [default: no]",
        {"metavar": "S"},
    ),
    "random_state": ("Question", "Seed of the random folds.", {"metavar": "S"}),
    "dual": ("Question", "Write the dual variables to this .npy file.", {"metavar": "FILE", "type": LOCAL}),
    "probability": ("Question", "Calibrate probabilities on the folds, in one more read.", {}),
    "quick": ("Question", "Read only the blocks of a conflict.", {}),
    "max_passes": ("Limits", "Stop after N passes over the data.", {"metavar": "N"}),
    "time_limit": (
        "Limits",
        f"Stop after this time since the start of the command, at the end of a short read.  [{variable('time_limit')}]",
        {"metavar": "SECONDS", "default": partial(read_setting, "time_limit")},
    ),
    "memory": (
        "Limits",
        "Memory budget of a process.",
        {"metavar": "SIZE", "envvar": variable("memory"), "show_envvar": True},
    ),
}
"""Arguments of the verbs, and their parts, that are options of commands."""


def _transform_of(scale: str | None = None, center: bool = False, normalize: bool = True) -> tuple[str, ...]:
    return tuple(word for word, given in ((scale, scale), ("center", center), ("lengths", not normalize)) if word and given)


def _kernel_of(
    kernel: str | None = None, gamma: float | None = None, degree: int | None = None, coef0: float | None = None
) -> Kernel | None:
    if kernel is not None:
        return Kernel(kernel, gamma, degree, coef0)
    if (gamma, degree, coef0) != (None, None, None):
        raise click.UsageError("--gamma, --degree and --coef0 need a --kernel")
    return None


PARTS: dict[str, Callable[..., Any]] = {"transform": _transform_of, "kernel": _kernel_of}
"""Arguments that several options make, which are those of a function."""
_TYPES = {"int": int, "float": float}


def options_of(
    verb: Callable[..., Any], *names: str, told: Told = TOLD, without: Sequence[str] = (), **texts: str
) -> list[Decorator]:
    """Options of a verb's arguments: all that are ``told``, or those of these names; ``texts`` say them otherwise."""
    each = _parameters(verb, without)
    return [_option(each[name], told[name], texts.get(name)) for name in each if name in told and (not names or name in names)]


def _parameters(verb: Callable[..., Any], without: Sequence[str] = ()) -> dict[str, Parameter]:
    """Those of a verb, with the parts of arguments that have parts, but for some."""
    found: dict[str, Parameter] = {}
    for name, each in signature(verb).parameters.items():
        if name not in without:
            found |= signature(PARTS[name]).parameters if name in PARTS else {name: each}
    return {name: each for name, each in found.items() if name not in without}


def make_arguments(options: dict[str, Any]) -> dict[str, Any]:
    """Arguments of a verb, of which several options may make one."""
    made = dict(options)
    for name, make in PARTS.items():
        if parts := signature(make).parameters.keys() & options.keys():
            made[name] = make(**{part: made.pop(part) for part in parts})
    return made


def _option(each: Parameter, told: tuple[str, str, dict[str, Any]], text: str | None) -> Decorator:
    heading, help, more = told
    flag, kind = f"--{each.name.replace('_', '-')}", str(each.annotation).partition(" |")[0]
    # click asks for what is required only where nothing is its default, None included
    given: dict[str, Any] = {"required": True} if each.default is each.empty else {"default": each.default}
    given |= {"help": text or help, **more}
    if kind == "bool":
        flag = flag if each.default is False else f"{flag}/--no-{each.name}"
        given["is_flag"] = True
    else:
        given = {"type": _TYPES.get(kind), **given}
    return option(heading, *given.pop("names", (flag,)), each.name, **given)


QUIET = option(
    "Output",
    "--quiet/--progress",
    "-q",
    default=lambda: read_setting("progress") is False,
    help=f"Show no progress.  [{variable('progress')}=0]",
)
PERFORMANCE = option("Output", "--performance-report", metavar="FILE", help="Write Dask's performance report, a page.")
PLACE = [
    click.argument("data", type=DATA),
    option("Output", "--out", required=True, type=DATA, metavar="RUN", help="Folder for the result; must not exist."),
]
FORCE = option("Output", "--force", is_flag=True, help="Replace an earlier output of dfeas, once the new one is written.")
NAMED = [
    click.argument("data", type=DATA),
    option("Output", "--out", type=DATA, metavar="RUN", help="Folder for the result.  [default: DATA-run-1, ..]"),
    FORCE,
]
"""A place that is found when none is given."""
ALSO = option(
    "Question", "--also", type=DATA, multiple=True, metavar="DATA", help="A dataset whose points follow; may be repeated."
)
LABELS = option(
    "Question",
    "--labels",
    "y",
    metavar="FILE",
    help="Labels (.npy, zarr) for a zarr array, or in place of those of DATA.",
)
COLUMN = option("Question", "--label-column", "column", metavar="NAME", help="Column of labels, if DATA is a file of points.")
CHOSEN = [
    option(
        "Question",
        "--columns",
        multiple=True,
        metavar="NAME",
        help="Features of a table by name or pattern, as 'visit_*'; may be repeated.  [default: all columns]",
    ),
    option(
        "Question",
        "--id-column",
        "id",
        metavar="NAME",
        help="Column of a table that names its rows; no feature.",
    ),
    option("Question", "--without", multiple=True, metavar="NAME", help="Columns of a table to leave out; may be repeated."),
]
UNLABELLED = option(
    "Question",
    "--unlabelled",
    is_flag=True,
    help="DATA has no labels: decide whether all points, as they are, can have a positive score.",
)


class MethodName(Name):
    """One of some methods, and what stands after it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        super().convert(base_name(value), param, ctx)
        return str(value)


def method_of(names: Sequence[str], metavar: str | None = "NAME", help: str = "Method, see below.") -> Decorator:
    """One of some methods, which are listed at the end of a help text."""
    among = MethodName(list(dict.fromkeys(["auto", *names])))
    return option("Question", "--method", default="auto", show_default=True, type=among, metavar=metavar, help=help)


def _set_for_command(context: click.Context, parameter: click.Parameter, value: float | None) -> None:
    """Give a setting the value that was typed, until the command has ended."""
    if value:
        name = variable(parameter.name or "")
        before, os.environ[name] = os.environ.get(name, ""), str(value)
        context.call_on_close(lambda: os.environ.update({name: before}))


CHECKPOINTS = option(
    "Output",
    "--checkpoint-every",
    type=click.FloatRange(0, min_open=True),
    metavar="S",
    expose_value=False,
    callback=_set_for_command,
    help="Seconds between checkpoints.  [default: 30]",
)
SAME_BITS = option(
    "Where",
    "--same-bits",
    is_flag=True,
    expose_value=False,
    callback=_set_for_command,
    help="Refuse workers whose results may differ in bits from this machine.",
)
METHOD = method_of(ALL_METHODS)
SOFT_METHOD = method_of(SOFT_METHODS, None, "Method.")
GO_ON = [CHECKPOINTS, *CLUSTER, SAME_BITS, PERFORMANCE, QUIET, JSON]
OF_DATA = [LABELS, COLUMN, UNLABELLED]
RUN = [*NAMED, *OF_DATA, *CHOSEN, *GO_ON]


def data_of(data: str, options: dict[str, Any]) -> Any:
    """The data of a command: its paths, or a table some of whose columns are features, which has the labels, too."""
    also, columns, without = (options.pop(name, ()) for name in ("also", "columns", "without"))
    named = options.pop("id", None)
    if not (columns or without or named):
        return [data, *also]
    if also:
        raise click.UsageError("--columns, --without and --id-column are for one table: leave out --also")
    from dfeas.data.table import table  # with readers of all formats

    return table(data, options.pop("y", None), columns=columns or None, without=without, id=named)


def asks(*options: Decorator | Sequence[Decorator]) -> Callable[[Body], Body]:
    """A command with options; those that name a cluster come as one, ``cluster``."""
    flat = [each for some in options for each in ([some] if callable(some) else some)]

    def decorate(command: Body) -> Body:
        @wraps(command)
        def run_command(**values: Any) -> None:
            if "scheduler" in values:
                values["cluster"] = choose_cluster(values)
            column, unlabelled = values.pop("column", None), values.pop("unlabelled", False) or None
            flags = {"labels": values.get("y"), "label-column": column, "unlabelled": unlabelled and ALL_POSITIVE}
            given = {f"--{flag}": labels for flag, labels in flags.items() if labels is not None}
            if len(given) > 1:
                raise click.UsageError(f"choose one of {' and '.join(given)}")
            if given:
                (values["y"],) = given.values()
            command(**values)

        wrapped = run_command
        for each in reversed(flat):
            wrapped = each(wrapped)
        return wrapped

    return decorate


def arguments(verb: Callable[..., Any]) -> set[str]:
    """Names of all arguments of a verb, and of the parts of those that have parts."""
    return set(_parameters(verb))


def drop_options(values: dict[str, Any], names: set[str], refusal: str) -> dict[str, Any]:
    """The values of all other options. Raises UsageError, by a text with a place for the option, for one that was typed."""
    for name in names & values.keys():
        if is_typed(name):
            raise click.UsageError(refusal.format(f"--{name.replace('_', '-')}"))
    return {name: value for name, value in values.items() if name not in names}
