"""Workers that come and go: a scheduler tells of them, and is asked now and then whom it hears of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from distributed import SchedulerPlugin
from distributed.scheduler import heartbeat_interval

if TYPE_CHECKING:
    from distributed import Client

TOPIC = "dfeas-workers"
"""Of the events. ``all``, which says it too, also tells a client that it is gone, and a scheduler complains when it cannot."""

SILENT_SECONDS = 8.0
"""A worker that a scheduler has not heard of for so long, and three times the usual, is as good as gone."""


class Turnover:
    """Counts the workers that came or went, as the scheduler tells a client."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, event: Any) -> None:
        self.count += 1


_turnovers: WeakKeyDictionary[Client, Turnover] = WeakKeyDictionary()


async def listen(client: Client, asynchronous: bool = True) -> None:
    """Let the scheduler tell this client. Nothing happens where a scheduler takes no code, and none is told of then."""
    try:
        await client.register_plugin(tells_turnover())
    except ValueError:
        return
    client.subscribe_topic(TOPIC, _turnovers.setdefault(client, Turnover()))


async def ask_for_workers(client: Client, asynchronous: bool = True) -> dict[str, dict[str, Any]]:
    """What a scheduler says of each worker, but of those that are silent beside others: it waits for them for minutes."""
    workers = (await client.scheduler.identity(n_workers=-1))["workers"]
    heard = max((worker["last_seen"] for worker in workers.values()), default=0.0)
    patience = SILENT_SECONDS + 3 * heartbeat_interval(len(workers))
    return {str(worker): each for worker, each in workers.items() if heard - each["last_seen"] < patience}


def turnover_of(client: Client) -> Turnover | None:
    """What a client was told; None when it is not told."""
    return _turnovers.get(client)


def tells_turnover() -> SchedulerPlugin:
    """A plugin that goes when the last client has gone."""

    # what is made here travels as it is written: the scheduler may have no dfeas
    def tell(self: Any, scheduler: Any, worker: str, **more: Any) -> None:
        scheduler.log_event(self.name, {"worker": worker, "there": worker in scheduler.workers})

    def remove_client(self: Any, scheduler: Any, client: str) -> None:
        if not [each for each in scheduler.clients if each != "fire-and-forget"]:
            scheduler.remove_plugin(self.name)

    more = {"name": TOPIC, "idempotent": True, "add_worker": tell, "remove_worker": tell, "remove_client": remove_client}
    return type("TellsTurnover", (SchedulerPlugin,), more)()
