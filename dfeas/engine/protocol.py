"""What a driver knows of an engine, and what ``client=`` means, the same for all verbs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from dfeas.data.partitions import HERE, computed_by
from dfeas.data.storage.readers import Cost
from dfeas.machine import is_apart
from dfeas.passes.protocol import Question

if TYPE_CHECKING:
    from distributed import Client
    from distributed.deploy import Cluster

    Workers: TypeAlias = Client | Cluster | str | bool
    """What names a cluster: see ``open_client``."""

R = TypeVar("R")

Observer = Callable[[int, int, int], None]
"""Is told how many blocks of a read are done, of how many, and the bytes of all of them: when it begins, and now and then."""


class Engine(Protocol):
    """Executes passes over one dataset; the answers have the same bits whatever the engine and its size."""

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n) of A: dimension of a column and number of points."""

    @property
    def cost(self) -> Cost:
        """What the most recent pass took."""

    @property
    def parallel(self) -> int:
        """Threads that scan at the same time."""

    def watch(self, observer: Observer) -> None:
        """Tell an observer of reads while they go on."""

    def run(self, question: Question) -> Any:
        """Exactly one read of the data, or what the question asks: some blocks of it, in order, or vectors beside it."""

    def map(self, function: Callable[..., R], *args: Any, count: int | None = None) -> list[R]:
        """``function(dataset, first, stop, *args)`` over ranges that cover all blocks, or ``count`` of them, in order."""

    def keep_pairs(self, budget: int, scratch: Path | None = None) -> None:
        """Let each process keep so many bytes of what questions to pairs use again, and more in a ``scratch`` folder there."""

    def close(self) -> None:
        """Release workers, buffers and blocks that were kept."""


def scheduler_address() -> str | None:
    """Dask's ``scheduler-address``, which is ``DASK_SCHEDULER_ADDRESS`` in the environment."""
    import dask.config

    found = dask.config.get("scheduler-address", None)
    return None if found is None else str(found)


@contextmanager
def beside_tasks() -> Iterator[None]:
    """In a task of Dask its thread is given to others, as Dask's own ``compute`` does: what is waited for may need it."""
    distributed, gives = sys.modules.get("distributed"), False
    token = is_apart.set(True)
    try:
        with suppress(ValueError, KeyError, AttributeError):  # no task, or its thread has been given already
            if distributed is not None:
                distributed.secede()
                gives = True
        yield
    finally:
        is_apart.reset(token)
        if distributed is not None and gives:
            distributed.rejoin()


@contextmanager
def open_client(given: Any) -> Iterator[Client | None]:
    """The client of a cluster: of a Client itself, of a cluster, of the address of a scheduler, or with True the current one,
    else that of Dask's ``scheduler-address``. None for None: this process works alone; for False, too, though Dask may have
    tasks compute what it reads. What was opened here is closed. Its scheduler was asked whether it can read tasks of dfeas, and
    those that are sent meanwhile are one span of Dask's. Raises UsageError for anything else, and where no scheduler answers.
    """
    if given is None or given is False:
        with nullcontext() if given is None else beside_tasks(), computed_by(None if given is None else HERE):
            yield None
        return
    from dfeas.engine.clusters import client_of
    from dfeas.engine.crew import begin_span, require_scheduler

    with beside_tasks(), client_of(given, scheduler_address()) as client:
        require_scheduler(client)
        with begin_span():
            yield client
