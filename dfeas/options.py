"""Options that commands share: the data, the limits, the cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dfeas.keeping import EVERY
from dfeas.memory import DEFAULT_MEMORY
from dfeas.methods import SUMMARY

if TYPE_CHECKING:
    from distributed import Client

METHOD_HELP = "\b\nMethods:\n" + "\n".join(f"  {name:<24}{text}" for name, text in SUMMARY.items())
"""The methods, at the end of a help text."""

_GO_ON = [
    click.option("--checkpoint-every", default=EVERY, show_default=True, metavar="SECONDS", help="Between checkpoints."),
    click.option("--scheduler", default=None, metavar="ADDR", help="Run on this Dask cluster."),
    click.option("--scheduler-file", default=None, type=click.Path(), help="Run on the Dask cluster of this file."),
    click.option("--local", type=click.IntRange(1), default=None, metavar="N", help="Run on N worker processes here."),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
]

_RUN = [
    click.argument("data", type=click.Path(path_type=Path)),
    click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the result; must not exist."),
    click.option("--labels", default=None, help="Label array, when DATA is a zarr array."),
    click.option("--positive", default=None, metavar="CLASS", help="This class against all others, with --labels."),
    click.option("--eps", default=1e-3, show_default=True, help="Stop with eps-infeasible when no margin above it exists."),
    click.option(
        "--margin-tolerance", type=float, default=None, metavar="T", help="Go on to the maximum margin, up to this share of it."
    ),
    click.option("--intercept", is_flag=True, help="Any hyperplane, not only those through the origin."),
    click.option("--max-passes", type=int, default=None, help="Stop after so many reads of the data."),
    click.option("--time-limit", type=float, default=None, metavar="SECONDS", help="Stop after a pass beyond this time."),
    click.option("--memory", default=DEFAULT_MEMORY, show_default=True, help="Budget of a process for blocks and answers."),
    *_GO_ON,
]


@dataclass(frozen=True)
class Cluster:
    """Which cluster, if any."""

    scheduler: str | None
    scheduler_file: str | None
    local: int | None

    @contextmanager
    def client(self) -> Iterator[Client | None]:
        """A client of it; None to work in this process."""
        if self.scheduler is None and self.scheduler_file is None and self.local is None:
            yield None
            return
        from dfeas.engine.cluster import connect, local_cluster

        # what becomes of the cluster is said in our own words; a traceback of its reconnection says less
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        started = local_cluster(self.local) if self.local is not None else connect(self.scheduler, self.scheduler_file)
        with started as client:
            yield client


def run_options(command: Callable[..., None]) -> Callable[..., None]:
    """Options of a command that begins a run; the three that name a cluster come as one, ``cluster``."""
    return _with(_RUN, command)


def resume_options(command: Callable[..., None]) -> Callable[..., None]:
    """Options of a command that goes on with a run."""
    return _with(_GO_ON, command)


def _with(options: list[Callable[..., Any]], command: Callable[..., None]) -> Callable[..., None]:
    @wraps(command)
    def called(scheduler: str | None, scheduler_file: str | None, local: int | None, **others: Any) -> None:
        if sum(choice is not None for choice in (scheduler, scheduler_file, local)) > 1:
            raise click.UsageError("choose one of --scheduler, --scheduler-file and --local")
        command(cluster=Cluster(scheduler, scheduler_file, local), **others)

    for option in reversed(options):
        called = option(called)
    return called
