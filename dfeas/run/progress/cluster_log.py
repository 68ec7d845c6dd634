"""What people who watch a Dask cluster see of a run: events, lines in the scheduler's log, a report of Dask's own."""

from __future__ import annotations

import getpass
import json
import logging
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from queue import SimpleQueue
from threading import Thread
from typing import Any

from dask.utils import format_bytes
from distributed import Client, SchedulerPlugin
from distributed import performance_report as dask_report

from dfeas.answers.trace import ProgressRecord, Sink
from dfeas.engine.clusters import LOST
from dfeas.errors import UsageError, install, visible

EVENTS, LINES = "dfeas", "dfeas-lines"
"""Topics."""
BEGINS = ("data", "method", "memory_bytes", "began")
"""Of what is noted when a run begins, what a scheduler keeps while it goes on."""
SHOWN = ("passes", "margin_lower", "margin_upper", "gap", "seconds")
"""Of a record, likewise."""
logger = logging.getLogger("dfeas")


class ClusterLog(Sink):
    """Sends a cluster what a run does: an event each, ``Client.get_events("dfeas")``, and a line in the log of the scheduler,
    which need not know dfeas; of passes a line now and then. A thread of its own sends them, so that no pass waits for it; to a
    cluster that is lost nothing is sent.
    """

    def __init__(self, client: Client, run: str, out: str | None = None, line_seconds: float = 5.0) -> None:
        self._client = client
        self._run = run
        # what the scheduler keeps of the run, by its key there, while it goes on
        self._key = f"{client.id} {run}"
        self._facts: dict[str, Any] = {"run": run, "out": out, "user": user_name(), "host": socket.gethostname()}
        self._line_seconds, self._said = line_seconds, time.monotonic()
        self._waiting: SimpleQueue[tuple[str | None, dict[str, Any]] | None] = SimpleQueue()
        self._sender = Thread(target=self._send_all, name="dfeas-log", daemon=True)
        self._sender.start()

    def record(self, record: ProgressRecord) -> None:
        line, now = None, time.monotonic()
        if now - self._said >= self._line_seconds:
            self._said = now
            self._facts |= {name: value for name, value in record.to_json().items() if name in SHOWN}
            line = (
                f"{record.method}: pass {record.passes:.4g}, {record.ends}, {format_bytes(record.bytes_read)} read and "
                f"{format_bytes(record.cached_bytes)} kept, in {record.pass_seconds:.3g} s"
            )
        self._send_later(line, {"event": "pass", **record.to_json()})

    def note(self, event: str, text: str, **values: Any) -> None:
        text = visible(text)
        self._facts |= {name: value for name, value in values.items() if name in BEGINS}
        self._send_later(text, {"event": event, "text": text, **values})

    def _send_later(self, line: str | None, values: dict[str, Any]) -> None:
        plain: dict[str, Any] = json.loads(json.dumps({"run": self._run, **values}))  # of numbers and words as they travel
        self._waiting.put((line and f"dfeas {self._run}: {line}", plain))

    def _send_all(self) -> None:
        self._tell(self._client.register_plugin, _writes_lines())
        while (event := self._waiting.get()) is not None:
            line, values = event
            self._tell(self._client.log_event, EVENTS, values)
            if line is not None:
                self._tell(self._client.log_event, LINES, line)
                self._tell(self._client.log_event, LINES, {"key": self._key, "facts": self._facts.copy()})
        self._tell(self._client.log_event, LINES, {"key": self._key, "facts": None})

    def _tell(self, call: Callable[..., Any], *args: Any) -> None:
        try:
            if self._client.status == "running":
                call(*args)
        except (*LOST, ValueError) as error:  # a ValueError: this scheduler takes no code
            logger.debug("the cluster was not told: %s", error)

    def close(self) -> None:
        """Tell what is left, if the cluster listens."""
        self._waiting.put(None)
        # a cluster that does not listen keeps no run from ending
        self._sender.join(5.0)


def _writes_lines() -> SchedulerPlugin:
    """A plugin that writes lines to the log of the scheduler, and keeps what it is told of runs whose clients are there.
    ``Client.run_on_scheduler`` writes a line of its own for each.
    """

    # what is made here travels as it is written: the scheduler may have no dfeas
    def log_event(self: Any, topic: str, msg: Any) -> None:
        if topic != self.name:
            return
        if not isinstance(msg, dict):
            logging.getLogger("distributed.scheduler").info(msg)
        elif msg["facts"] is None:
            self.runs.pop(msg["key"], None)
        else:
            self.runs[msg["key"]] = msg["facts"]

    def remove_client(self: Any, scheduler: Any, client: str) -> None:
        for key in [each for each in self.runs if each.startswith(f"{client} ")]:
            del self.runs[key]

    more = {"name": LINES, "idempotent": True, "runs": {}, "log_event": log_event, "remove_client": remove_client}
    return type("WritesLines", (SchedulerPlugin,), more)()


def runs_of(client: Client) -> list[dict[str, Any]]:
    """What the scheduler knows of the runs that use its workers just now, whoever drives them."""

    def find(dask_scheduler: Any, name: str) -> list[dict[str, Any]]:
        return list(getattr(dask_scheduler.plugins.get(name), "runs", {}).values())

    found: list[dict[str, Any]] = client.run_on_scheduler(find, name=LINES)
    return found


def user_name() -> str:
    """Of who runs this process, or the number of one without a name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def dashboard(client: Client) -> str | None:
    """The address of the cluster's dashboard; None when it has none."""

    def has_dashboard(dask_scheduler: Any) -> bool:
        from importlib.util import find_spec

        return "dashboard" in dask_scheduler.services and find_spec("bokeh") is not None

    return str(client.dashboard_link) if client.run_on_scheduler(has_dashboard) else None


@contextmanager
def performance_report(path: str) -> Iterator[None]:
    """Dask's own report of what the cluster did meanwhile, as a page. Raises UsageError without bokeh."""
    if find_spec("bokeh") is None:
        raise UsageError(f"a performance report needs bokeh, here and at the scheduler: {install('diagnostics')}")
    report = dask_report(filename=path)
    report.__enter__()
    try:
        yield
    finally:
        try:
            report.__exit__(None, None, None)
        except LOST as error:
            logger.warning("no performance report: %s", error)
