"""Options of commands: those of what is asked, and which cluster a command works on, if any."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import Field, dataclass, fields
from functools import wraps
from shlex import quote
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click
import psutil

from dfeas.cli.command import say
from dfeas.cli.parameter import DATA, JSON, LOCAL, Decorator, Name, option
from dfeas.data.source import ALL_POSITIVE
from dfeas.engine.signals import at_once, not_interrupted
from dfeas.geometry.cones.space import CONE_METHODS
from dfeas.geometry.kernel.kernel import NAMES
from dfeas.geometry.kernel.space import KERNEL_METHODS
from dfeas.methods.registry import METHODS
from dfeas.problem import Goal, Kernel, Objective, View
from dfeas.run.resources import Limits, Resources
from dfeas.run.spec import SOFT_METHODS
from dfeas.settings import setting, variable

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True)
class Cluster:
    """Which cluster does the work, if any."""

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

    @property
    def named(self) -> Cluster | None:
        """This one, or that of Dask's ``scheduler-address``; None when there is none that goes on without you."""
        from dfeas.engine.configuration import scheduler_address

        if (self.scheduler, self.scheduler_file) != (None, None):
            return self
        address = scheduler_address()
        return None if address is None else Cluster(address, None, None)

    @property
    def words(self) -> str:
        """What names it on a command line; nothing where Dask's configuration does."""
        named = {"--scheduler": self.scheduler, "--scheduler-file": self.scheduler_file}
        return "".join(f" {option} {quote(value)}" for option, value in named.items() if value is not None)

    @contextmanager
    def joined(self) -> Iterator[Client]:
        """A client of a running cluster. Raises UsageError when none is named."""
        named = self.named
        if named is None:
            raise click.UsageError(
                "expected --scheduler ADDR or --scheduler-file F, or DASK_SCHEDULER_ADDRESS in the environment: "
                "a cluster that goes on without you"
            )
        with named.client(watched=False) as client:
            assert client is not None
            yield client


def _kill_workers() -> None:
    """Those of a local cluster that starts, also one that multiprocessing has not noted yet; semaphores are still removed."""
    left = True
    while left:
        left = False
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                if process.status() != psutil.STATUS_ZOMBIE and "resource_tracker" not in " ".join(process.cmdline()):
                    process.kill()
                    left = True


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


Body = Callable[..., None]

METHOD_HELP = "\b\nMethods:\n" + "\n".join(
    fill(method.traits.summary, 78, initial_indent=f"  {name:<24}", subsequent_indent=f"{'':<26}")
    for name, method in METHODS.items()
)
"""The methods, before the examples of a help text."""

KERNEL_HELP = f"{METHOD_HELP}\n\n\b\nWith --kernel:\n" + fill(
    ", ".join(KERNEL_METHODS), 78, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
)
"""The same, and which work with a kernel."""

ALL_METHODS = list(dict.fromkeys([*METHODS, *KERNEL_METHODS, *CONE_METHODS]))
"""With a kernel or without."""


_TYPES = {"int": int, "float": float, "str": str}
_CHOICES = {"kernel": NAMES}
"""Where the choices are known here only."""


def fields_of(group: type, *names: str, without: Sequence[str] = (), **texts: str) -> list[Decorator]:
    """Options of the fields of a class that have a help text, or of those that are named; ``texts`` say it otherwise."""
    kept = [each for each in fields(group) if each.metadata["help"] and (not names or each.name in names)]
    heading: str = group.__dict__["HEADING"]
    return [_option(each, texts.get(each.name, each.metadata["help"]), heading) for each in kept if each.name not in without]


def _option(each: Field[Any], text: str, heading: str) -> Decorator:
    """Its type is that of the annotation, a place, or one of some choices; what is text with commas is read by ``numbers``."""
    how, flag = each.metadata, f"--{each.name.replace('_', '-')}"
    default = how.get("default", each.default)
    heading = how.get("heading", heading)
    if how.get("flag"):
        return option(heading, f"{flag}/--no-{each.name}", default=default, help=text)
    if isinstance(default, bool):
        return option(heading, f"{flag}/--no-{each.name}" if default else flag, is_flag=True, default=default, help=text)
    if "off" in how:
        return option(heading, f"{flag}/--{how['off']}", each.name, default=default, help=text)
    more: dict[str, Any] = {name: how[name] for name in ("metavar", "multiple") if name in how}
    if how.get("setting"):
        more |= {"envvar": variable(how["setting"]), "show_envvar": True}
    if how.get("numbers"):
        default = None if default is None else f"{default:g}"
    elif each.name in _CHOICES or "choices" in how:
        more["type"] = Name(_CHOICES.get(each.name) or how["choices"])
    elif "place" in how:
        more["type"] = {"data": DATA, "local": LOCAL}[how["place"]]
    else:
        more["type"] = _TYPES[str(each.type).partition(" |")[0]]
    return option(heading, flag, each.name, default=default, show_default=how.get("shown", False), help=text, **more)


QUIET = option(
    "Output",
    "--quiet/--progress",
    "-q",
    default=lambda: not setting("progress", True),
    help=f"Show no progress.  [{variable('progress')}=0]",
)
CLUSTER = [
    option(
        "Where",
        "--scheduler",
        default=None,
        metavar="ADDR",
        envvar=variable("scheduler"),
        show_envvar=True,
        help="Run on this Dask cluster.",
    ),
    option(
        "Where",
        "--scheduler-file",
        default=None,
        type=click.Path(),
        metavar="FILE",
        help="Run on the Dask cluster of this file.",
    ),
    option("Where", "--local", type=click.IntRange(1), default=None, metavar="N", help="Run on N worker processes here."),
]
PERFORMANCE = option(
    "Output", "--performance-report", default=None, metavar="FILE", help="Dask's report of the cluster, as a page."
)
PLACE = [
    click.argument("data", type=DATA),
    option("Output", "--out", required=True, type=LOCAL, metavar="RUN", help="Folder for the result; must not exist."),
]
FORCE = option("Output", "--force", is_flag=True, help="Replace what dfeas wrote there before, once the new one is written.")
NAMED = [
    click.argument("data", type=DATA),
    option(
        "Output", "--out", default=None, type=LOCAL, metavar="RUN", help="Folder for the result.  [default: DATA-run-1, ..]"
    ),
    FORCE,
]
"""A place that is found when none is given."""
LABELS = option(
    "Question",
    "--labels",
    default=None,
    metavar="FILE",
    help="Label array (.npy, zarr) of a zarr array, or instead of the labels of DATA.",
)
COLUMN = option(
    "Question", "--label-column", "column", default=None, metavar="NAME", help="The labels, where DATA is a file of points."
)
UNLABELLED = option(
    "Question", "--unlabelled", is_flag=True, help="DATA has no labels: ask whether A'y > 0 for all points as they are."
)


def method_of(names: Sequence[str]) -> Decorator:
    """One of some methods, which are listed at the end of a help text."""
    return option(
        "Question",
        "--method",
        default="auto",
        show_default=True,
        type=Name(["auto", *names]),
        metavar="NAME",
        help="How the answer is found, see below.",
    )


METHOD = method_of(ALL_METHODS)
SOFT_METHOD = option(
    "Question", "--method", default="auto", show_default=True, type=Name(SOFT_METHODS), help="How the minimum is found."
)
GO_ON = [*fields_of(Resources, "cache_dir", "checkpoint_every"), *CLUSTER, PERFORMANCE, QUIET, JSON]
POINTS = fields_of(View, "also", "mask", "scale", "center", "normalize")
ASKED = [LABELS, COLUMN, UNLABELLED, *fields_of(View, "positive", "intercept"), *fields_of(Goal), *fields_of(Limits)]
ASKED = [*ASKED, *fields_of(Resources, "memory"), *GO_ON]
RUN = [*NAMED, *ASKED]
SOFT = [*NAMED, LABELS, COLUMN, UNLABELLED, *fields_of(View, "positive", "intercept", "also", "mask"), *fields_of(Objective)]
SOFT = [*SOFT, SOFT_METHOD, *fields_of(Limits), *fields_of(Resources, "memory"), *GO_ON]
KERNEL = [*fields_of(Kernel), *fields_of(Resources, "scratch")]


def asks(*options: Decorator | Sequence[Decorator]) -> Callable[[Body], Body]:
    """A command with options; those that name a cluster come as one, ``cluster``."""
    flat = [each for some in options for each in ([some] if callable(some) else some)]

    def decorate(command: Body) -> Body:
        @wraps(command)
        def called(**values: Any) -> None:
            if "scheduler" in values:
                named = {name: values.pop(name, None) for name in ("scheduler", "scheduler_file", "local")}
                if _from_environment("scheduler") and (named["scheduler_file"], named["local"]) != (None, None):
                    named["scheduler"] = None  # what is typed says more
                if sum(choice is not None for choice in named.values()) > 1:
                    raise click.UsageError("choose one of --scheduler, --scheduler-file and --local")
                values["cluster"] = Cluster(**named, performance_report=values.pop("performance_report", None))
            column = values.pop("column", None)
            if column is not None:
                if values["labels"] is not None:
                    raise click.UsageError("choose one of --labels and --label-column")
                values["labels"] = column
            if values.pop("unlabelled", False):
                if values["labels"] is not None:
                    raise click.UsageError("choose one of --labels and --unlabelled")
                values["labels"] = ALL_POSITIVE
            command(**values)

        for each in reversed(flat):
            called = each(called)
        return called

    return decorate


def _from_environment(name: str) -> bool:
    """Whether an option was not typed, but is a variable of the environment."""
    return click.get_current_context().get_parameter_source(name) == click.core.ParameterSource.ENVIRONMENT


def numbers(text: str, option: str) -> list[float]:
    """Numbers with commas between them. Raises UsageError for anything else."""
    try:
        return [float(value) for value in text.split(",")]
    except ValueError:
        raise click.UsageError(f"{option} {text}: expected numbers with commas between them") from None


def margin_values(C: str, class_weight: str | None) -> dict[str, Any]:
    """C and weights of classes, as they were typed. Raises UsageError for what are no numbers."""
    weights = class_weight if class_weight in (None, "balanced") else numbers(str(class_weight), "--class-weight")
    return {"C": numbers(C, "--C"), "class_weight": weights}
