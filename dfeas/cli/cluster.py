"""Which cluster a command works on, if any, and the options that name it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from dfeas.cli.command import is_typed, option, say
from dfeas.engine.signals import at_once, not_interrupted
from dfeas.errors import UndecidedError, UsageError
from dfeas.records import replace
from dfeas.settings import PREFIX, read_setting, source_of, variable

if TYPE_CHECKING:
    from distributed import Client

ADDRESS: dict[str, Any] = {"metavar": "ADDR", "default": partial(read_setting, "scheduler")}
MADE_BY: dict[str, Any] = {"metavar": "MODULE:FUNCTION", "default": partial(read_setting, "cluster")}
RETURNED = f"Run on the Dask cluster that it returns.  [{variable('cluster')}]"
CLUSTER = [
    option("Where", "--scheduler", help=f"Run on this Dask cluster.  [{variable('scheduler')}]", **ADDRESS),
    option("Where", "--scheduler-file", type=click.Path(), metavar="FILE", help="Run on the Dask cluster named by this file."),
    option("Where", "--local", type=click.IntRange(1), metavar="N", help="Run on N worker processes here."),
    option("Where", "--cluster", "made_by", help=RETURNED, **MADE_BY),
]


WHERE = {"scheduler": "--scheduler", "scheduler_file": "--scheduler-file", "local": "--local", "made_by": "--cluster"}
"""Options that name a cluster, by their arguments."""


@dataclass(frozen=True)
class Cluster:
    """Which cluster does the work, if any."""

    scheduler: str | None = None
    scheduler_file: str | None = None
    local: int | None = None
    made_by: str | None = None
    performance_report: str | None = None

    @contextmanager
    def client(self, watched: bool = True) -> Iterator[Client | None]:
        """A client of it; None to work in this process. Where it can be ``watched`` is said."""
        if replace(self, performance_report=None) == Cluster():
            if self.performance_report is not None:
                raise click.UsageError(f"--performance-report is for a cluster: {' or '.join(WHERE.values())}")
            yield None
            return
        if self.performance_report is not None and Path(self.performance_report).exists():
            raise click.UsageError(f"--performance-report {self.performance_report}: exists already; choose another file")
        from dfeas.engine.clusters import call_cluster, connect, local_cluster
        from dfeas.run.progress.cluster_log import dashboard, performance_report

        started = local_cluster(self.local) if self.local is not None else connect(self.scheduler, self.scheduler_file)
        started = started if self.made_by is None else call_cluster(self.made_by)
        with ExitStack() as stack:
            stack.enter_context(_quiet_dask())
            with at_once(_kill_workers):
                try:
                    client = stack.enter_context(started)
                except UndecidedError:  # they still start
                    _kill_workers()
                    raise
            if self.performance_report is not None:
                stack.enter_context(client.as_current())
                stack.enter_context(performance_report(self.performance_report))
            link = dashboard(client) if watched else None
            if link is not None:
                say(f"dashboard: {link}", err=True)
            try:
                yield client
            finally:
                with not_interrupted():
                    stack.close()

    def find_running(self) -> Cluster | None:
        """This one, or that of Dask's ``scheduler-address``; None when there is none that goes on without you."""
        from dfeas.engine.protocol import scheduler_address

        if (self.scheduler, self.scheduler_file) != (None, None):
            return self
        address = scheduler_address()
        return None if address is None else Cluster(address)

    @property
    def words(self) -> str:
        """What names it on a command line; nothing where Dask's configuration does."""
        named = {"--scheduler": self.scheduler, "--scheduler-file": self.scheduler_file}
        return "".join(f" {option} {quote(value)}" for option, value in named.items() if value is not None)

    @contextmanager
    def join(self) -> Iterator[Client]:
        """A client of a running cluster. Raises UsageError when none is named."""
        running = self.find_running()
        if running is None:
            raise click.UsageError(
                "expected --scheduler ADDR or --scheduler-file F, or DASK_SCHEDULER_ADDRESS in the environment: "
                "a cluster that goes on without you"
            )
        with running.client(watched=False) as client:
            assert client is not None
            yield client


def _kill_workers() -> None:
    """Those of a local cluster that starts, also one that multiprocessing has not noted yet; semaphores are still removed."""
    import psutil  # loading it takes as long as a small solve

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


def choose_cluster(values: dict[str, Any]) -> Cluster:
    """Which one is named, by at most one option; what is typed counts more than a setting, and the environment more than
    Dask's configuration. Raises UsageError for two that count alike.
    """
    named = {name: chosen for name in WHERE if (chosen := values.pop(name, None)) is not None}
    if typed := {name: chosen for name, chosen in named.items() if is_typed(name)}:
        named = typed
    elif len(named) > 1:
        where = {"scheduler": source_of("scheduler"), "made_by": source_of("cluster")}
        named = {name: chosen for name, chosen in named.items() if where[name].startswith(PREFIX)} or named
        if len(named) > 1:
            both = f"scheduler ({where['scheduler']}) and cluster ({where['made_by']})"
            raise UsageError(f"two clusters are set, {both}: unset one, or type --scheduler or --cluster")
    if len(named) > 1:
        raise click.UsageError(f"choose one of {', '.join(WHERE.values())}")
    return Cluster(**named, performance_report=values.pop("performance_report", None))
