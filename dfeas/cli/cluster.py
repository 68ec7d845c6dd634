"""Which cluster a command works on, if any."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import active_children
from typing import TYPE_CHECKING

import click

from dfeas.cli.render import say
from dfeas.engine.signals import at_once, not_interrupted

if TYPE_CHECKING:
    from distributed import Client


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
