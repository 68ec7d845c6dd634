"""Workers that come to a Dask cluster and leave it, as its scheduler tells the clients of it, and what is lost with one."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from distributed import Client, SchedulerPlugin

TOPIC = "dfeas-workers"
"""Of the events. ``all``, which says it too, also tells a client that it is gone, and a scheduler complains when it cannot."""
MOST_KEPT = 256
"""Workers that have left of which a client remembers how."""


class Turnover:
    """Counts the workers that came or left, and keeps how they left: when, by ``time.time()``, and what the scheduler said."""

    def __init__(self) -> None:
        self.count = 0
        self.left: dict[str, tuple[float, Mapping[str, Any]]] = {}

    def __call__(self, event: tuple[float, dict[str, Any]]) -> None:
        said = event[1]
        if not said["there"]:
            self.left.pop(said["worker"], None)
            self.left[said["worker"]] = time.time(), said
            while len(self.left) > MOST_KEPT:
                del self.left[next(iter(self.left))]
        self.count += 1


turnovers: WeakKeyDictionary[Client, Turnover] = WeakKeyDictionary()
"""Of the clients that are told."""


async def listen(client: Client, asynchronous: bool = True) -> None:
    """Let the scheduler tell this client. Nothing happens where a scheduler takes no code, and none is told of then."""
    try:
        await client.register_plugin(tells_turnover())
    except ValueError:
        return
    client.subscribe_topic(TOPIC, turnovers.setdefault(client, Turnover()))


def tells_turnover() -> SchedulerPlugin:
    """A plugin that goes when the last client has gone."""

    # what is made here travels as it is written: the scheduler may have no dfeas
    def log_event(self: Any, topic: str, msg: Any) -> None:
        """Keep what Dask says of a worker that leaves, just before it lets plugins know."""
        if topic == "all" and isinstance(msg, dict) and msg.get("action") == "remove-worker":
            lost = msg["lost-computed-tasks"]
            ours = {str(key) for key in (*msg["processing-tasks"], *lost) if str(key).startswith("dfeas-")}
            others = sum(not str(key).startswith("dfeas-") for key in lost)
            self.leaving = {"expected": msg["expected"], "tasks": sorted(ours), "results": others}

    def tell(self: Any, scheduler: Any, worker: str, **more: Any) -> None:
        for client, comm in scheduler.client_comms.items():
            if comm.closed():  # it is about to be removed, and what is sent there is a critical error
                scheduler.unsubscribe_topic(self.name, client)
        there = worker in scheduler.workers
        scheduler.log_event(self.name, {"worker": worker, "there": there, **({} if there else self.leaving)})

    def remove_client(self: Any, scheduler: Any, client: str) -> None:
        if not [each for each in scheduler.clients if each != "fire-and-forget"]:
            scheduler.remove_plugin(self.name)

    more = {"name": TOPIC, "idempotent": True, "leaving": {}, "log_event": log_event}
    more |= {"add_worker": tell, "remove_worker": tell, "remove_client": remove_client}
    return type("TellsTurnover", (SchedulerPlugin,), more)()


def describe_loss(run: str, moment: float, said: Mapping[str, Any]) -> str:
    """When a worker was lost, and what of a ``run``, by the part of its keys that is its own, is done again elsewhere."""
    parts = (key.split("-") for key in said.get("tasks", ()))
    kinds = Counter("-".join(part[1 : part.index(run)]) for part in parts if run in part)
    ranges = kinds.pop("anchor", 0)
    again = [] if said else ["other workers do what it had"]
    if kinds:
        named = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        again.append(f"other workers repeat the tasks that it had ({named})")
    if ranges:
        again.append(f"{ranges} {'range' if ranges == 1 else 'ranges'} of blocks that it kept must be read again")
    if results := said.get("results", 0):
        again.append(f"Dask recomputes {results} {'result' if results == 1 else 'results'} that only it had")
    done = "; ".join(again) or "no task of this run was there"
    return f"was lost at {time.strftime('%H:%M:%S', time.localtime(moment))}: {done}"
