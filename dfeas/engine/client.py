"""What ``client=`` means, the same for all verbs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from distributed import Client
    from distributed.deploy import Cluster

    Workers: TypeAlias = Client | Cluster | str | bool
    """What names a cluster: see ``joined``."""


@contextmanager
def open_client(given: Any) -> Iterator[Client | None]:
    """The client of a cluster: of a Client itself, of a cluster, of the address of a scheduler, or with True the current one,
    else that of Dask's ``scheduler-address``. None for None: this process works alone. What was opened here is closed.

    Raises UsageError for anything else, and where no scheduler answers.
    """
    if given is None or given is False:
        yield None
        return
    from dfeas.engine.clusters import client_of

    with client_of(given) as client:
        yield client
