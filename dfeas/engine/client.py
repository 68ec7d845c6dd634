"""What ``client=`` means, the same for all verbs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from distributed import Client

R = TypeVar("R")


@contextmanager
def joined(given: Any) -> Iterator[Client | None]:
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


def takes_client(verb: Callable[..., R]) -> Callable[..., R]:
    """A verb whose ``resources`` have a Client, if any, whatever they were given."""

    @wraps(verb)
    def with_client(*args: Any, resources: Any, **options: Any) -> R:
        with joined(resources.client) as client:
            return verb(*args, resources=replace(resources, client=client), **options)

    return with_client
