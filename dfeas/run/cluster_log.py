"""What people who watch a Dask cluster see of a run: events, lines in the scheduler's log, a report of Dask's own."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from queue import SimpleQueue
from threading import Thread
from typing import Any

from distributed import Client
from distributed import performance_report as dask_report

from dfeas.engine.clusters import LOST
from dfeas.errors import UsageError, visible
from dfeas.run.termination import ProgressRecord
from dfeas.run.trace import Sink

CLOSE_SECONDS = 5.0
"""How long the end of a run waits for a cluster that does not listen."""

logger = logging.getLogger("dfeas")


class ClusterLog(Sink):
    """Sends a cluster what a run does: an event each, ``Client.get_events("dfeas")``, and a line in the log of the scheduler,
    which need not know dfeas.

    A thread of its own sends them, so that no pass waits for it; to a cluster that is lost nothing is sent.
    """

    def __init__(self, client: Client, run: str) -> None:
        self._client = client
        self._run = run
        self._waiting: SimpleQueue[tuple[str, dict[str, Any]] | None] = SimpleQueue()
        self._sender = Thread(target=self._send_all, name="dfeas-log", daemon=True)
        self._sender.start()

    def record(self, record: ProgressRecord) -> None:
        line = (
            f"{record.method}: pass {record.passes:.4g}, {record.ends}, "
            f"{record.bytes_read / 1e9:.3g} GB read and {record.cached_bytes / 1e9:.3g} GB kept, in {record.pass_seconds:.3g} s"
        )
        self._send_later(line, {"event": "pass", **record.to_json()})

    def note(self, event: str, text: str, **values: Any) -> None:
        text = visible(text)
        self._send_later(text, {"event": event, "text": text, **values})

    def _send_later(self, line: str, values: dict[str, Any]) -> None:
        self._waiting.put((f"dfeas {self._run}: {line}", {"run": self._run, **values}))

    def _send_all(self) -> None:
        while (event := self._waiting.get()) is not None:
            self._send(*event)

    def _send(self, line: str, values: dict[str, Any]) -> None:
        # inner functions travel as they are written: the scheduler may have no dfeas
        def log(dask_scheduler: Any) -> None:
            logging.getLogger("distributed.scheduler").info(line)
            dask_scheduler.log_event("dfeas", values)

        try:
            if self._client.status == "running":
                self._client.run_on_scheduler(log)
        except LOST as error:
            logger.debug("the cluster was not told: %s", error)

    def close(self) -> None:
        """Tell what is left, if the cluster listens."""
        self._waiting.put(None)
        self._sender.join(CLOSE_SECONDS)


def dashboard(client: Client) -> str | None:
    """The address of the cluster's dashboard; None when it has none."""

    def served(dask_scheduler: Any) -> bool:
        from importlib.util import find_spec

        return "dashboard" in dask_scheduler.services and find_spec("bokeh") is not None

    return str(client.dashboard_link) if client.run_on_scheduler(served) else None


@contextmanager
def performance_report(path: str) -> Iterator[None]:
    """Dask's own report of what the cluster did meanwhile, as a page. Raises UsageError without bokeh."""
    if find_spec("bokeh") is None:
        raise UsageError("a performance report needs bokeh, here and at the scheduler: pip install 'dfeas[diagnostics]'")
    report = dask_report(filename=path)
    report.__enter__()
    try:
        yield
    finally:
        try:
            report.__exit__(None, None, None)
        except LOST as error:
            logger.warning("no performance report: %s", error)
