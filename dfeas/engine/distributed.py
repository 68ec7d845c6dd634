"""The Dask engine: a pass is a few tasks, each a range of blocks that its worker reads itself.

A home, the worker that had a range in the last pass, has it again. When it is gone, or silent, its tasks go to someone else;
when it is late they go to someone else, too, the first answer counts, and who gave it is the home then.
"""

from __future__ import annotations

import re
import uuid
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median
from time import monotonic, perf_counter
from typing import Any, TypeVar

from distributed import Client, Future

from dfeas.data.dataset import Dataset
from dfeas.data.source import Source
from dfeas.data.storage.readers import Cost
from dfeas.data.storage.scratch import Scratch
from dfeas.engine.clusters import LOST, answer_within
from dfeas.engine.crew import Crew, places_of
from dfeas.engine.pace import Pace, Sent
from dfeas.engine.ranges import RangeEngine
from dfeas.engine.scan import all_pairs, cut, pieces, scan_range
from dfeas.engine.watch import GoneError, Retry, Watch, await_tasks
from dfeas.engine.worker import fold_range, forget_run, lease_of, merge_ranges, on_worker, read_range, scan_with_cache, size
from dfeas.errors import CorruptDataError
from dfeas.passes.inspection import Inspected
from dfeas.passes.protocol import Fold, OfClass, OnPairs, OnVectors, Ordered, Partial, Together

Range = tuple[int, int]


CHECK = "check"
"""The name of what is no scan of ours: Dask's pages show a bar and a colour for each ``dask.utils.key_split`` of names."""


class Locality:
    """Workers of ranges of blocks."""

    def __init__(self) -> None:
        self._stops: list[int] = []  # of the ranges of the last pass, ascending
        self._workers: list[str] = []  # who went through each

    @property
    def is_known(self) -> bool:
        return bool(self._workers)

    def remember(self, ranges: Sequence[Range], workers: Sequence[str]) -> None:
        """Who went through which range; the ranges cover all blocks in order."""
        self._stops, self._workers = [stop for _, stop in ranges], list(workers)

    def place(self, ranges: Sequence[Range], threads: Mapping[str, int]) -> list[str]:
        """A worker for each range, from workers and their threads. It is the one that had the middle of the range, unless it is
        gone or has its share already: no worker gets more ranges than its threads are worth.
        """
        total = sum(threads.values())
        share = {worker: -(-len(ranges) * count // total) for worker, count in threads.items()}
        given, placed = dict.fromkeys(threads, 0), dict[int, str]()
        for i, (first, stop) in enumerate(ranges):
            at = bisect_right(self._stops, (first + stop) // 2)
            home = self._workers[at] if at < len(self._workers) else ""
            if given.get(home, 0) < share.get(home, 0):
                placed[i] = home
                given[home] += 1
        for i in range(len(ranges)):
            if i not in placed:
                placed[i] = min(given, key=lambda w: given[w] / threads[w])
                given[placed[i]] += 1
        return [placed[i] for i in range(len(ranges))]


R = TypeVar("R")

RANGES_PER_THREAD = 2
HOLD_SECONDS = 5.0
"""How often the carry of a fold is brought to the driver: what a lost worker costs beyond its own task."""
FOLD_BYTES = 32 << 20
"""What a worker reads ahead for a fold, at a time."""
FORGET_SECONDS = 5.0
"""How long the end of a run waits for workers to forget its blocks."""
MERGED_BYTES = 4 << 20
"""Answers of ranges that would come to more than that at the driver are merged by the workers first."""
FAN_IN = 8
"""So many at a time."""
INLINE_BYTES = 1 << 16
"""Questions up to this size travel in each task; larger ones are scattered once a pass."""


@dataclass
class _Carried:
    """How far a fold is, as the driver knows it."""

    carry: tuple[Any, Cost]
    done: int = 0  # ranges


class DaskEngine(RangeEngine):
    """Runs passes on the workers of a Dask cluster, which must see the data under the same path."""

    def __init__(
        self,
        client: Client,
        source: Source,
        dataset: Dataset,
        scratch: Scratch | None = None,
        watch: Watch | None = None,
        fold_bytes: int = FOLD_BYTES,
        hold_seconds: float = HOLD_SECONDS,
        merged_bytes: int = MERGED_BYTES,
    ) -> None:
        self.client = client
        self.dataset = dataset
        self.scratch = scratch
        header = dataset.base.header
        mark = "" if header is None else header.fingerprint
        self.source = replace(source, run=uuid.uuid4().hex, fingerprint=mark)
        self.cost = Cost()
        self._watch = watch or Watch(client, places=places_of(source.spec))
        self._fold_bytes, self._hold_seconds, self._merged_bytes = fold_bytes, hold_seconds, merged_bytes
        self._homes, self._pair_homes = Locality(), Locality()  # of blocks, and of all pairs
        self._pair_cache: tuple[int, str | None] | None = None  # bytes in memory of each process, and a folder for more
        self._workers: dict[str, int] = {}  # threads of each, when the last pass began
        self._answers: list[Future] = []  # of the last pass
        self._sent = 0
        self._pace = Pace()
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
        homes = self._pair_homes if pairs == all_pairs(self.dataset) else None
        return Retry(self._watch)(lambda: self._attempt(question_name(question), scan_with_cache, args, pairs, homes))

    def map(self, function: Callable[..., R], *args: Any, count: int | None = None) -> list[R]:
        name = question_name(args[0]) if function is scan_range else CHECK
        homes = self._homes if count is None else None
        return Retry(self._watch)(lambda: self._attempt(name, function, args, count, homes))

    def _compare(self, blocks: Sequence[int] | None) -> None:
        if self.dataset.read_digest(blocks) not in (None, self.cost.digest):
            raise CorruptDataError(
                f"{self.dataset.where}: workers read other points or labels than at the start of the run; "
                "let all of them see the same data, leave it alone during a run, and run again"
            )

    def _begin(self) -> None:
        self._sent += 1
        self._workers = self._watch.workers()
        if self._lease is None or self._lease.status in ("cancelled", "lost"):
            with self._watch.crew.annotate_tasks():
                self._lease = self.client.submit(int, key=lease_of(self.source.run), pure=False)

    def _fold(self, fold: Fold[Any, Any]) -> tuple[Any, Cost]:
        held = _Carried((fold.start(), Cost()))
        Retry(self._watch)(lambda: self._carry_on(fold, held), lambda: held.done)
        carry, cost = held.carry
        return fold.finish(carry), cost

    def _carry_on(self, fold: Fold[Any, Any], held: _Carried) -> None:
        """The carry travels, the points do not: ranges are read ahead by all workers, and folded where they were read. Goes on
        from what is held, and brings it forward now and then.
        """
        self._begin()
        ahead = self.parallel * RANGES_PER_THREAD
        # small beside the cache, but not so small that the carry travels all the time
        most, kept = self._fold_bytes, self.source.cache_bytes
        size = min(most, max(most // 4, kept // 16)) if kept else most
        ranges = cut(self.dataset.blocks, -(-self.dataset.bytes // size))
        homes = self._homes.place(ranges, self._pace.fit(self._workers))
        if not self._homes.is_known:
            self._homes.remember(ranges, homes)
        name, reads, began, took = question_name(fold), dict[int, Any](), dict[int, float](), list[float]()
        link = self._sendable(held.carry)
        sent, at = held.done, perf_counter()

        def send(before: Any, i: int, _: int, part: str, home: str) -> Future:
            read = self._submit("read", f"{i}-{part}", home, read_range, self.source, *ranges[i])
            return self._submit(name, f"{i}-{part}", home, fold_range, self.source, fold, before, read)

        try:
            for i in range(held.done, len(ranges)):
                self.observe(ranges[i][0], self.dataset.blocks)
                while sent < min(i + ahead, len(ranges)):
                    reads[sent] = self._submit("read", sent, homes[sent], read_range, self.source, *ranges[sent])
                    began[sent] = monotonic()
                    sent += 1
                again, near = partial(send, link, i), homes[max(held.done, i - 1) : sent]
                link = self._submit(name, i, homes[i], fold_range, self.source, fold, link, reads[i])
                one = Sent([link], [1], [homes[i]], again, near, took, began=began[i])
                self._settle(one, observed=False)
                took.append(monotonic() - began[i])
                link, homes[i], reads[i] = one.futures[0], one.homes[0], None
                if link.status == "error" or i + 1 == len(ranges) or perf_counter() - at > self._hold_seconds:
                    brought = self._watch.gather([link], self._workers)
                    if brought is None:
                        raise GoneError
                    held.carry, held.done = brought[0], i + 1
                    link, at = self._sendable(held.carry), perf_counter()
            self._pace.usual = median(took)
        except BaseException:
            self._watch.cancel([link, *reads.values()])
            raise

    def _attempt(
        self, name: str, function: Callable[..., R], args: tuple[Any, ...], count: int | None, known: Locality | None
    ) -> list[R]:
        """One try by tasks of a name; ``known`` are the homes of such ranges, where they have any."""
        self._begin()
        blocks = self.dataset.blocks if count is None else count
        ranges = cut(blocks, pieces(blocks * self.dataset.block_bytes, self.parallel, RANGES_PER_THREAD))
        homes = (known or Locality()).place(ranges, self._pace.fit(self._workers))
        self.observe(0, blocks)
        sent = self._sendable(args)
        constants = {"work": function, "source": self.source, "args": sent}

        def send(i: int, part: str, home: str) -> Future:
            return self._submit(name, part, home, on_worker, *ranges[i], **constants)

        futures, lengths = self._submit_all(name, homes, ranges, constants), [stop - first for first, stop in ranges]
        whole = Sent(futures, lengths, homes, send, self._workers if isinstance(sent, Future) else ())
        # an answer is about as large as its question
        large = function is scan_range and len(ranges) > 1 and len(ranges) * size(args[0]) > self._merged_bytes
        done = self._gather_results(whole, sent if large else None)
        workers = done[0][0] if large else [worker for worker, _ in done]
        if known is not None:
            known.remember(ranges, workers)
        return [answer for _, answer in done]

    def _gather_results(self, sent: Sent, merged: Any = None) -> list[tuple[Any, Any]]:
        """Who did each part of a pass, and its result; of scans with ``merged`` arguments only the whole is wanted."""
        done: list[tuple[Any, Any]] | None = None
        workers, turns = self._workers, count()
        try:
            while done is None:
                self._settle(sent)
                results = sent.futures if merged is None else self._merge_on_workers(sent, merged, next(turns))
                if merged is None or self._watch.settle(results, workers):
                    done = self._watch.gather(results, workers)
                workers = self._watch.threads() if done is None else workers
        except BaseException:
            self._watch.cancel(sent.futures)
            raise
        # released when the next pass has been sent: a client sends at most every 10 ms, and the pass would wait
        self._answers = sent.futures
        return done

    def _merge_on_workers(self, sent: Sent, args: Any, turn: int) -> list[Future]:
        """What merges the answers of ranges where they are; one is left, and the driver takes no more than a few nodes."""
        part, futures, homes = count(), sent.futures, sent.homes
        while len(futures) > 1:
            groups = [futures[i : i + FAN_IN] for i in range(0, len(futures), FAN_IN)]
            homes = homes[::FAN_IN]
            names = [f"{turn}-{next(part)}" for _ in groups]
            whole = zip(names, homes, groups, strict=True)
            futures = [self._submit("merge", name, home, merge_ranges, args, *some) for name, home, some in whole]
        return futures

    def _settle(self, sent: Sent, *, observed: bool = True) -> None:
        """Wait for all results. What is at a worker that is gone is sent to another one, and what is late to a second one."""

        def look(there: dict[str, int]) -> bool:
            if observed:
                self.observe(sent.done, sum(sent.sizes))
            return bool(sent.find_late(self._pace, there))

        while True:
            there = self._watch.threads()
            if sent.homes and there:
                if not there.keys() >= set(sent.bound):
                    raise GoneError
                self._watch.cancel(sent.replace_gone(self._pace, there))
                self._watch.bear(max(sent.deaths.values(), default=0))
                sent.copies |= {i: sent.send_anew(i, home) for i, home in sent.find_late(self._pace, there)}
            homes = {*sent.homes, *sent.bound, *(home for _, home in sent.copies.values())}
            if self._watch.settle(sent.futures, homes, look, sent.copies, sent.ended):
                break
        self._watch.cancel(sent.decide(self._pace))

    def _submit(
        self, name: str, part: int | str, home: str | None, function: Callable[..., Any], *args: Any, **more: Any
    ) -> Future:
        with self._watch.crew.annotate_tasks(home):
            return self.client.submit(function, *args, key=self._key(name, part), pure=False, **more)

    def _submit_all(
        self, name: str, homes: Sequence[str], ranges: Sequence[Range], constants: Mapping[str, Any]
    ) -> list[Future]:
        """The ranges of a pass as one graph, which takes a scheduler half of what it takes for them one by one."""
        keys = [self._key(name, part) for part in range(len(ranges))]
        with self._watch.crew.annotate_tasks(dict(zip(keys, homes, strict=True)).__getitem__):
            firsts, stops = map(list, zip(*ranges, strict=True))
            return list(self.client.map(on_worker, firsts, stops, key=keys, pure=False, **constants))

    def _key(self, name: str, part: int | str) -> str:
        return f"dfeas-{name}-{self.source.run[:8]}-{self._sent}-{part}"

    def _sendable(self, value: Any) -> Any:
        if size(value) <= INLINE_BYTES:
            return value
        return self._watch.scatter(value, self._workers)

    def keep_pairs(self, budget: int, scratch: Path | None = None) -> None:
        """As for an engine; without a ``scratch`` folder in Dask's temporary-directory there, if that is configured."""
        self._pair_cache = budget, None if scratch is None else str(scratch)

    def close(self) -> None:
        """Let the workers forget the blocks of this run; one that does not answer soon is left alone."""
        self._answers, self._lease = [], None
        if self.client.status != "running" or not (self.source.cache_bytes or self._pair_cache):
            return
        asked = [self._submit("forget", worker, worker, forget_run, self.source.run) for worker in self._workers]
        with suppress(*LOST):
            answer_within(FORGET_SECONDS, self.client, await_tasks, asked)


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
