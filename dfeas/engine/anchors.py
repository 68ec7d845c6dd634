"""Anchors: a small result for each range of blocks, which lies with the worker that reads the range.

Dask sends a task where lies what it depends on, makes an anchor anew when its worker dies, and lets an idle worker steal a
range where that costs less than to wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dask.delayed import delayed
from distributed import Client, Future

from dfeas.engine.scan import cut, pieces

RANGES_PER_THREAD = 2
LEAST_BYTES, MOST_BYTES = 16 << 20, 256 << 20
"""What anchors weigh. A task of an unknown duration, for which Dask takes half a second, is not stolen from below a quarter of
a second, and Dask takes these bytes for memory of a worker.
"""


Ask = Callable[[list[str]], Mapping[str, Collection[str]]]
"""Says which workers have results."""


@dataclass(frozen=True)
class Anchor:
    """Keeps the tasks of a range with the worker that has it."""

    weight: int

    def __sizeof__(self) -> int:
        """What Dask could send while another worker reads the range."""
        return self.weight


@dataclass(frozen=True)
class Part:
    """A range of blocks, or of pairs, which may have a place among others."""

    first: int
    stop: int
    place: int = 0
    among: Anchors | None = None

    @property
    def anchor(self) -> Any:
        return None if self.among is None else self.among.tasks[self.place]


class Anchors:
    """Ranges that cover all blocks, or all pairs, each with a future of its anchor, or what becomes one with the next graph."""

    def __init__(self, name: str) -> None:
        self.tasks: list[Any] = []
        self._parts: list[Part] = []
        self._name, self._threads, self._made = name, 0, 0
        self._crew: dict[str, int] = {}  # whom they are assigned to
        self._homes: dict[int, str] = {}  # where each place was when they were

    def assign(self, size: int, block_bytes: int, crew: Mapping[str, int], ask: Ask) -> list[Part]:
        """Ranges of so many blocks, for workers with their threads. When the crew is another one than before, a range is free
        whose worker is gone, or has more than its share, and Dask gives it to whoever is idle and has least; once more with
        each pass, until all have their share.
        """
        threads = max(1, sum(crew.values()))
        # ranges are cut anew for so many times the threads, and most of what workers keep is in vain then
        if threads > 1.5 * self._threads:
            self._threads, ranges = threads, cut(size, pieces(size * block_bytes, threads, RANGES_PER_THREAD))
            self._parts = [Part(*each, place, self) for place, each in enumerate(ranges)]
            self.tasks, self._homes = [None] * len(ranges), {}
        elif self._crew == crew and all(isinstance(each, Future) and each.status == "finished" for each in self.tasks):
            return self._parts
        known = [each.key for each in self.tasks if isinstance(each, Future)]
        free = self._find_free(crew, ask(known) if known else {})
        for place in free:
            self._made += 1
            whole = (self._parts[place].stop - self._parts[place].first) * block_bytes
            # storage is read ten times as fast as Dask takes a network to be, at 100 MB/s
            weight = min(max(LEAST_BYTES, whole // 10), MOST_BYTES)
            self.tasks[place] = delayed(Anchor, pure=False)(weight, dask_key_name=f"{self._name}-{self._made}")
        self._crew = {} if free else dict(crew)
        return self._parts

    def release(self) -> None:
        self.tasks, self._parts, self._threads, self._homes = [], [], 0, {}

    def _find_free(self, crew: Mapping[str, int], holders: Mapping[str, Collection[str]]) -> list[int]:
        """Places that are nobody's, or too much for whom Dask gave them to; what a worker had before it keeps rather."""
        total, given = sum(crew.values()), Counter[str]()
        share = {worker: -(-len(self.tasks) * threads // total) for worker, threads in crew.items()}
        found = [holders.get(each.key, ()) if isinstance(each, Future) else () for each in self.tasks]
        homes = dict[int, str]()
        for place in sorted(range(len(found)), key=lambda place: self._homes.get(place) not in found[place]):
            home = next((worker for worker in found[place] if given[worker] < share.get(worker, 0)), None)
            if home is not None:
                homes[place] = home
                given[home] += 1
        self._homes = homes
        return [place for place in range(len(found)) if place not in homes]


async def locate(client: Client, crew: Iterable[str], keys: Sequence[str], asynchronous: bool = True) -> dict[str, Any]:
    """Which workers have results. From now on those of the crew may make them again: of those before none may be left."""
    held = {key: holders for key, holders in (await client.scheduler.who_has(keys=keys)).items() if holders}
    await client.scheduler.set_restrictions(worker={key: list(crew) for key in held})
    return held
