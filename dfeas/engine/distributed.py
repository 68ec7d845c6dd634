"""The Dask engine: a pass is one graph. Tasks scan ranges of blocks, which their workers read themselves, where the anchors of
these ranges lie; others merge what they found; the driver fetches one small result.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from dask.delayed import Delayed, delayed
from distributed import Client, Future

from dfeas.data.dataset import Dataset
from dfeas.data.source import Source
from dfeas.data.storage.readers import Cost
from dfeas.data.storage.scratch import Scratch
from dfeas.engine.anchors import RANGES_PER_THREAD, Anchors, Part, locate
from dfeas.engine.clusters import LOST, answer_within
from dfeas.engine.crew import Crew, places_of
from dfeas.engine.ranges import RangeEngine
from dfeas.engine.scan import all_pairs, cut, pieces, scan_range
from dfeas.engine.watch import Retry, Watch
from dfeas.engine.worker import (
    Parcel,
    fold_range,
    forget_run,
    lease_of,
    merge_ranges,
    on_worker,
    read_range,
    scan_with_cache,
    size,
)
from dfeas.errors import CorruptDataError
from dfeas.passes.inspection import Inspected
from dfeas.passes.protocol import Fold, OfClass, OnPairs, OnVectors, Ordered, Partial, Together
from dfeas.records import replace

R = TypeVar("R")

CHECK = "check"
"""The name of what is no scan of ours: Dask's pages show a bar and a colour for each ``dask.utils.key_split`` of names."""
FAN_IN = 8
"""So many answers are merged at a time."""
INLINE_BYTES = 1 << 16
"""Questions up to this size travel in each task; larger ones are scattered once a pass."""


@dataclass
class _Carried:
    """How far a fold is, as the driver knows it."""

    carry: Parcel
    done: int = 0  # pieces


class DaskEngine(RangeEngine):
    """Runs passes on the workers of a Dask cluster, which must see the data under the same path."""

    def __init__(
        self,
        client: Client,
        source: Source,
        dataset: Dataset,
        scratch: Scratch | None = None,
        watch: Watch | None = None,
        # what a worker reads ahead for a fold, at a time
        fold_bytes: int = 32 << 20,
    ) -> None:
        self.client = client
        self.dataset = dataset
        self.scratch = scratch
        header = dataset.base.header
        mark = "" if header is None else header.fingerprint
        self.source = replace(source, run=uuid.uuid4().hex, fingerprint=mark)
        self.cost = Cost()
        self._watch = watch or Watch(client, places=places_of(source.spec), run=self.source.run[:8])
        self._fold_bytes = fold_bytes
        name = f"dfeas-anchor-{self.source.run[:8]}"
        self._anchors = {"blocks": Anchors(name), "pairs": Anchors(f"{name}-pairs")}  # of all of them
        self._pair_cache: tuple[int, str | None] | None = None  # bytes in memory of each process, and a folder for more
        self._workers: dict[str, int] = {}  # threads of each, when the last pass began
        self._answers: list[Future] = []  # of the last pass
        self._sent = 0
        self._lease: Future | None = None  # as long as this engine lives workers keep what they have of the run

    @property
    def crew(self) -> Crew:
        return self._watch.crew

    @property
    def parallel(self) -> int:
        """Threads of all workers, not long ago."""
        return max(1, sum(self._workers.values()))

    def _scan_pairs(self, question: OnPairs, pairs: int) -> list[tuple[Any, Cost, list[int]]]:
        args = (question, self.source.run, *(self._pair_cache or (0, None)))
        return Retry(self._watch)(lambda: self._attempt(scan_with_cache, args, pairs))

    def map(self, function: Callable[..., R], *args: Any, count: int | None = None) -> list[R]:
        return Retry(self._watch)(lambda: self._attempt(function, args, count))

    def _compare(self, blocks: Sequence[int] | None) -> None:
        if self.dataset.read_digest(blocks) not in (None, self.cost.digest):
            raise CorruptDataError(
                f"{self.dataset.where}: workers read other points or labels than at the start of the run; "
                "let all of them see the same data, leave it alone during a run, and run again"
            )

    def _begin(self) -> None:
        self._sent += 1
        self._workers = self._watch.workers()
        if self._lease is not None and self._lease.status in ("cancelled", "lost"):
            self._lease = None

    def _attempt(self, function: Callable[..., R], args: tuple[Any, ...], count: int | None) -> list[R]:
        """One try of a pass, by one graph."""
        self._begin()
        parts, scans = self._parts(function, args, count), function in (scan_range, scan_with_cache)
        self.observe(0, parts[-1].stop)
        name, parcel = question_name(args[0]) if scans else CHECK, self._sendable(Parcel(self.source, function, args))
        tasks = [self._scan_part(self._key(name, i), parcel, part) for i, part in enumerate(parts)]
        wanted = self._merge(tasks, parcel) if scans else tasks
        futures = self._send(wanted if self.observer is None or wanted is tasks else [*wanted, *tasks])
        results, shown = futures[: len(wanted)], futures[-len(tasks) :]

        def look() -> None:
            self.observe(sum(p.stop - p.first for p, each in zip(parts, shown, strict=False) if each.done()), parts[-1].stop)

        try:
            found = self._watch.results(results, look, crew=self._workers)
        except BaseException:
            self._watch.cancel(futures)
            raise
        self._answers = futures  # released when the next pass has been sent: a client sends at most every 10 ms
        return found

    def _parts(self, function: Callable[..., Any], args: tuple[Any, ...], count: int | None) -> list[Part]:
        """Ranges of a pass. A sample is read by whoever is free."""
        if count is None:
            return self._assign("blocks", self.dataset.blocks)
        if function is scan_with_cache and count == all_pairs(self.dataset):
            return self._assign("pairs", count)
        ranges = cut(count, pieces(count * self.dataset.block_bytes, self.parallel, RANGES_PER_THREAD))
        return [Part(*each) for each in ranges]

    def _assign(self, kind: str, size: int) -> list[Part]:
        ask = partial(answer_within, self._watch.answer_seconds, self.client, locate, self.client, self._workers)
        return self._anchors[kind].assign(size, self.dataset.block_bytes, self._workers, ask)

    def _scan_part(self, key: str, parcel: Any, part: Part) -> Delayed:
        return delayed(on_worker, pure=False)(parcel, part.anchor, part.first, part.stop, dask_key_name=key)

    def _merge(self, tasks: Sequence[Delayed], parcel: Any) -> Sequence[Delayed]:
        """What merges the answers of ranges where they are; one is left, and the driver takes no more than a few nodes."""
        part, merge = count(), delayed(merge_ranges, pure=False)
        while len(tasks) > 1:
            groups = [tasks[i : i + FAN_IN] for i in range(0, len(tasks), FAN_IN)]
            tasks = [merge(parcel, *some, dask_key_name=self._key("merge", next(part))) for some in groups]
        return tasks

    def _send(self, tasks: Sequence[Delayed]) -> list[Future]:
        """One graph of all that they need, with the anchors that are new."""
        new = [
            (each.tasks, i) for each in self._anchors.values() for i, task in enumerate(each.tasks) if isinstance(task, Delayed)
        ]
        lease = self._lease or delayed(int, pure=False)(dask_key_name=lease_of(self.source.run))
        with self._watch.crew.annotate_tasks(self._workers):  # those whose loss ends the wait
            futures: list[Future]
            self._lease, *futures = self.client.compute([lease, *tasks, *(anchors[i] for anchors, i in new)])
        for (anchors, i), future in zip(new, futures[len(tasks) :], strict=True):
            anchors[i] = future
        return futures[: len(tasks)]

    def _fold(self, fold: Fold[Any, Any]) -> tuple[Any, Cost]:
        held = _Carried(Parcel(fold.start(), Cost()))
        Retry(self._watch)(lambda: self._carry_on(fold, held), lambda: held.done)
        carry, cost = held.carry.contents
        return fold.finish(carry), cost

    def _carry_on(self, fold: Fold[Any, Any], held: _Carried) -> None:
        """The carry travels, the points do not: what all workers read is folded where it was read. Two graphs, with a piece for
        each thread, are under way at a time; what came of one is where to go on when work is lost.
        """
        self._begin()
        some, name, sent = self._pieces(), question_name(fold), held.done
        parcel, link = self._sendable(Parcel(self.source, fold)), self._sendable(held.carry)
        under_way = deque[tuple[Future, int]]()
        try:
            while held.done < len(some):
                self.observe(some[held.done].first, self.dataset.blocks)
                while len(under_way) < RANGES_PER_THREAD and sent < len(some):
                    stop = min(sent + self.parallel, len(some))
                    for i in range(sent, stop):
                        link = self._fold_part(self._key(name, i), parcel, link, some[i])
                    [link], sent = self._send([link]), stop
                    under_way.append((link, stop))
                held.carry, held.done = self._watch.results([under_way[0][0]], crew=self._workers)[0], under_way[0][1]
                under_way.popleft()
        except BaseException:
            self._watch.cancel([future for future, _ in under_way])
            raise

    def _pieces(self) -> list[Part]:
        """Of a fold, each with the anchor of the range that it is in."""
        # small beside the cache, but not so small that the carry travels all the time
        most, kept = self._fold_bytes, self.source.cache_bytes
        length = min(most, max(most // 4, kept // 16)) if kept else most
        whole = self._assign("blocks", self.dataset.blocks)
        stops = [part.stop for part in whole]
        ranges = cut(self.dataset.blocks, -(-self.dataset.bytes // length))
        return [replace(whole[bisect_right(stops, sum(each) // 2)], first=each[0], stop=each[1]) for each in ranges]

    def _fold_part(self, key: str, parcel: Any, link: Any, piece: Part) -> Delayed:
        read = delayed(read_range, pure=False)(
            parcel, piece.anchor, piece.first, piece.stop, dask_key_name=self._key("read", piece.first)
        )
        return delayed(fold_range, pure=False)(parcel, link, read, dask_key_name=key)

    def _key(self, name: str, part: int) -> str:
        return f"dfeas-{name}-{self.source.run[:8]}-{self._sent}-{part}"

    def _sendable(self, parcel: Parcel) -> Any:
        return parcel if size(parcel.contents) <= INLINE_BYTES else self._watch.scatter(parcel)

    def keep_pairs(self, budget: int, scratch: Path | None = None) -> None:
        """As for an engine; without a ``scratch`` folder in Dask's temporary-directory there, if that is configured."""
        self._pair_cache = budget, None if scratch is None else str(scratch)

    def close(self) -> None:
        """Let the workers forget the blocks of this run; one that does not answer soon is left alone."""
        self._answers, self._lease = [], None
        for anchors in self._anchors.values():
            anchors.release()
        if self.client.status != "running" or not (self.source.cache_bytes or self._pair_cache):
            return
        forget = partial(self.client.run, workers=list(self._workers), on_error="return")
        with suppress(*LOST):
            # how long the end of a run waits for workers to forget its blocks
            answer_within(5.0, self.client, forget, asyncio.to_thread, forget_run, self.source.run)


def question_name(question: Any) -> str:
    """``softmin``, ``sample``, ``survey-moments``, ..: the classes of what is asked, each once."""
    if isinstance(question, Partial):
        return "sample"
    if isinstance(question, Together):
        return "-".join(dict.fromkeys(question_name(each) for each in question.passes))
    if isinstance(question, OfClass | OnVectors | Inspected):
        return question_name(question.pass_)
    if isinstance(question, Ordered):
        return question_name(question.fold)
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", type(question).__name__).strip("_").lower()
