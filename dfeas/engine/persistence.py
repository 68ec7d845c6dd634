"""Trying again what a cluster lost, as long as that makes sense."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from distributed.scheduler import KilledWorker

from dfeas.engine.clusters import LOST, line
from dfeas.engine.watch import Watch
from dfeas.errors import ClusterLostError
from dfeas.signals import interrupts_held

R = TypeVar("R")

TRIES = 3
ENOUGH_DEATHS = 10
"""Work at which more workers than that have died is to blame."""


class GoneError(Exception):
    """A worker is gone that an attempt cannot do without."""


@dataclass
class Persistence:
    """Makes attempts at one piece of work, or at several, until too much was lost since something got done."""

    watch: Watch
    tries: int = 0
    deaths: int = 0
    before: int = 0  # what was done at the last loss

    def __call__(self, attempt: Callable[[], R], done: Callable[[], int] = int) -> R:
        """What an attempt returns; lost work is asked for again. Raises ClusterLostError when nothing more gets ``done``."""
        while True:
            try:
                with interrupts_held():
                    return attempt()
            except (GoneError, *LOST) as error:
                self._count(error, done())
            with interrupts_held():
                recovers = self.watch.recovers()
            if not recovers:
                raise ClusterLostError("the Dask cluster was lost: its scheduler cannot be reached any more")

    def _count(self, error: Exception, done: int) -> None:
        """One more loss. Raises ClusterLostError when it is one too many."""
        if done > self.before:
            self.before, self.tries, self.deaths = done, 0, 0
        if isinstance(error, GoneError):
            self.deaths += 1
        elif isinstance(error, KilledWorker):
            self.deaths += error.allowed_failures + 1
        else:
            self.tries += 1
        if self.tries == TRIES:
            raise ClusterLostError(f"the Dask cluster was lost: {line(error)}") from None
        if self.deaths > ENOUGH_DEATHS:
            raise ClusterLostError(
                f"{self.deaths} Dask workers died, one after the other, at the same piece of work; their logs may say why "
                "(often: not enough memory)"
            ) from None
