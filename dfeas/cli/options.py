"""Options that commands share: the data, the limits, the cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import wraps
from multiprocessing import active_children
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click

from dfeas.cli.render import say
from dfeas.data.storage.places import is_url, local
from dfeas.data.transform import SCALES
from dfeas.engine.memory import DEFAULT_MEMORY
from dfeas.engine.signals import at_once, not_interrupted
from dfeas.geometry.cones.space import CONE_METHODS
from dfeas.geometry.kernel.kernel import NAMES
from dfeas.geometry.kernel.space import KERNEL_METHODS
from dfeas.methods.registry import METHODS
from dfeas.run.checkpoint.job import EVERY
from dfeas.run.soft_margin.options import LOSSES
from dfeas.run.soft_margin.options import METHODS as SOFT_METHODS

if TYPE_CHECKING:
    from distributed import Client

METHOD_HELP = "\b\nMethods:\n" + "\n".join(f"  {name:<24}{method.traits.summary}" for name, method in METHODS.items())
"""The methods, at the end of a help text."""

KERNEL_HELP = f"{METHOD_HELP}\n\n\b\nWith --kernel:\n" + fill(
    ", ".join(KERNEL_METHODS), 78, initial_indent="  ", subsequent_indent="  "
)
"""The same, and which work with a kernel."""

ALL_METHODS = list(dict.fromkeys([*METHODS, *KERNEL_METHODS, *CONE_METHODS]))
"""With a kernel or without."""

method_option = click.option(
    "--method",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", *ALL_METHODS]),
    metavar="NAME",
)
"""Of commands that take a kernel."""


class _DataPlace(click.Path):
    """A path, or the URL of an object store, as text."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value) if is_url(value) else str(Path(value))


class _LocalPath(click.Path):
    """A path of this machine."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        return local(value, param.human_readable_name if param is not None else "path")


DATA, LOCAL = _DataPlace(), _LocalPath()

GO_ON = [
    click.option("--cache-dir", default=None, type=LOCAL, metavar="DIR", help="Keep blocks of object stores in this folder."),
    click.option("--checkpoint-every", default=EVERY, show_default=True, metavar="SECONDS", help="Between checkpoints."),
    click.option("--scheduler", default=None, metavar="ADDR", help="Run on this Dask cluster."),
    click.option("--scheduler-file", default=None, type=click.Path(), help="Run on the Dask cluster of this file."),
    click.option("--local", type=click.IntRange(1), default=None, metavar="N", help="Run on N worker processes here."),
    click.option("--performance-report", default=None, metavar="FILE", help="Dask's report of the cluster, as a page."),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
]

PLACE = [
    click.argument("data", type=DATA),
    click.option("--out", required=True, type=LOCAL, help="Folder for the result; must not exist."),
]

LIMITS = [
    click.option("--max-passes", type=int, default=None, help="Stop after so many reads of the data."),
    click.option("--time-limit", type=float, default=None, metavar="SECONDS", help="Stop after a pass beyond this time."),
    click.option("--memory", default=DEFAULT_MEMORY, show_default=True, help="Budget of a process for blocks and answers."),
]

LABELLED = [
    click.option("--labels", default=None, help="Label array (.npy, zarr) of a zarr array, or instead of the labels of DATA."),
    click.option("--positive", default=None, metavar="CLASS", help="This class against all others."),
]

_RUN = [
    *PLACE,
    *LABELLED,
    click.option("--eps", default=1e-3, show_default=True, help="Stop with eps-infeasible when no margin above it exists."),
    click.option(
        "--margin-tolerance", type=float, default=None, metavar="T", help="Go on to the maximum margin, up to this share of it."
    ),
    click.option("--intercept", is_flag=True, help="Any hyperplane, not only those through the origin."),
    *LIMITS,
    *GO_ON,
]


PICKED = [
    click.option("--also", multiple=True, type=DATA, metavar="DATA", help="A dataset whose points follow; any number of them."),
    click.option("--mask", default=None, type=LOCAL, metavar="FILE", help="Booleans (.npy), one a point: only these count."),
]

_SEEN = [
    click.option("--scale", default=None, type=click.Choice(SCALES), help="Scale each feature, without writing anything."),
    click.option("--center", is_flag=True, help="Subtract the mean of each feature, likewise."),
    click.option(
        "--normalize/--no-normalize", default=True, help="Points over their own lengths, or over the greatest.  [default: own]"
    ),
]

_KERNEL = [
    click.option("--kernel", type=click.Choice(NAMES), default=None, metavar="NAME", help=f"{', '.join(NAMES)}."),
    click.option("--gamma", type=float, default=None, help="Of the kernel.  [default: one over the median (squared) distance]"),
    click.option("--degree", type=int, default=None, help="Of the polynomial kernel.  [default: 3]"),
    click.option("--coef0", type=float, default=None, help="Of the polynomial kernel.  [default: 1]"),
]

scratch_option = click.option(
    "--scratch", default=None, type=LOCAL, metavar="DIR", help="Folder for tiles of a kernel that memory does not hold."
)
"""Of commands that work in the space of a kernel; on each machine."""


@dataclass(frozen=True)
class Cluster:
    """Which cluster, if any."""

    scheduler: str | None
    scheduler_file: str | None
    local: int | None
    performance_report: str | None = None

    @contextmanager
    def client(self, watched: bool = True) -> Iterator[Client | None]:
        """A client of it; None to work in this process. Where it can be ``watched`` is said."""
        if self.scheduler is None and self.scheduler_file is None and self.local is None:
            if self.performance_report is not None:
                raise click.UsageError("--performance-report is for a cluster: --scheduler, --scheduler-file or --local")
            yield None
            return
        from dfeas.engine.clusters import connect, local_cluster
        from dfeas.run.cluster_log import dashboard, performance_report

        started = local_cluster(self.local) if self.local is not None else connect(self.scheduler, self.scheduler_file)
        with ExitStack() as stack:
            stack.enter_context(_quiet_dask())
            with at_once(_kill_workers):
                client = stack.enter_context(started)
            if self.performance_report is not None:
                stack.enter_context(performance_report(self.performance_report))
            link = dashboard(client) if watched else None
            if link is not None:
                say(f"dashboard: {link}", err=True)
            try:
                yield client
            finally:
                with not_interrupted():
                    stack.close()

    @contextmanager
    def joined(self) -> Iterator[Client]:
        """A client of a running cluster. Raises UsageError when none is named."""
        if self.scheduler is None and self.scheduler_file is None:
            raise click.UsageError("expected --scheduler ADDR or --scheduler-file F: a cluster that goes on without you")
        with self.client(watched=False) as client:
            assert client is not None
            yield client


def _kill_workers() -> None:
    """Those of a local cluster that starts."""
    for process in active_children():
        process.kill()


@contextmanager
def _quiet_dask() -> Iterator[None]:
    """What becomes of the cluster is said in our own words; a traceback of its reconnection says less."""
    log = logging.getLogger("distributed")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


def numbers(text: str, option: str) -> list[float]:
    """Numbers with commas between them. Raises UsageError for anything else."""
    try:
        return [float(value) for value in text.split(",")]
    except ValueError:
        raise click.UsageError(f"{option} {text}: expected numbers with commas between them") from None


def run_options(command: Callable[..., None]) -> Callable[..., None]:
    """Options of a command that begins a run; the three that name a cluster come as one, ``cluster``."""
    return with_cluster(_RUN, command)


def kernel_options(command: Callable[..., None]) -> Callable[..., None]:
    """Options of a command that may work in the space of a kernel."""
    for option in reversed(_KERNEL):
        command = option(command)
    return command


def points_options(command: Callable[..., None]) -> Callable[..., None]:
    """Options that say which points of the data count, and how they are seen."""
    for option in reversed([*PICKED, *_SEEN]):
        command = option(command)
    return command


def hull_options(command: Callable[..., None]) -> Callable[..., None]:
    """Options of a command about all points of the data, without labels."""
    return with_cluster([*PLACE, *LIMITS, *GO_ON], command)


def cluster_options(command: Callable[..., None]) -> Callable[..., None]:
    """Options of a command that asks a running cluster."""
    return with_cluster(GO_ON[2:4] + GO_ON[-1:], command)


def spread_options(command: Callable[..., None]) -> Callable[..., None]:
    """Options of a command that may spread its work over a cluster."""
    return with_cluster([*GO_ON[2:5], GO_ON[-1]], command)


def resume_options(command: Callable[..., None]) -> Callable[..., None]:
    """Options of a command that goes on with a run."""
    return with_cluster(GO_ON, command)


def with_cluster(options: list[Callable[..., Any]], command: Callable[..., None]) -> Callable[..., None]:
    """Options, of which those that name a cluster come as one, ``cluster``."""

    @wraps(command)
    def called(**values: Any) -> None:
        named = {name: values.pop(name, None) for name in ("scheduler", "scheduler_file", "local")}
        if sum(choice is not None for choice in named.values()) > 1:
            raise click.UsageError("choose one of --scheduler, --scheduler-file and --local")
        command(cluster=Cluster(**named, performance_report=values.pop("performance_report", None)), **values)

    for option in reversed(options):
        called = option(called)
    return called


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
