"""The Dask engine over a Dask array or frame: a task for each partition, which Dask brings to it or it to the partition.

What the user persisted is read where it lies; anything else is computed anew in each pass. Nothing is persisted here. A worker
that dies takes partitions with it, which Dask makes again; each block is compared with what the survey saw in every pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import Any, TypeVar

import numpy as np
from dask.delayed import delayed
from distributed import Client, Future

from dfeas.data.arrays import stored_dtype
from dfeas.data.collections import Compute, Window, add_counts, block_rows_of, collection_of, dataset_of, label_counts, table_of
from dfeas.data.dataset import Dataset
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.numbers import is_dask_array
from dfeas.data.storage.readers import Cost
from dfeas.data.storage.scratch import Scratch
from dfeas.data.storage.sparse_readers import csr_chunks, cut_entries, has_sparse_chunks
from dfeas.engine.distributed import DaskEngine, Locality, question_name
from dfeas.engine.pace import Sent
from dfeas.engine.scan import fold_blocks, scan_range
from dfeas.engine.watch import GoneError, Retry, Watch
from dfeas.engine.worker import on_partition
from dfeas.errors import UsageError
from dfeas.passes.protocol import Fold, OnPairs, OnVectors, Partial, Question

R = TypeVar("R")

FOLDED = 4
"""Partitions for each thread that a fold goes through before its carry is brought to the driver."""


def open_collection(client: Client, spec: DataSpec) -> Dataset:
    """A dataset of a Dask array or frame, whose lengths are known or counted, and whose classes are looked up where it lies.
    Raises BadInputError for what cannot be used, UsageError for what is not done there.
    """
    for what in ("mask", "point"):
        if getattr(spec, what) is not None:
            raise UsageError(f"{what}: not for a Dask array or frame on its cluster; ingest it first, or client=False")
    with client.as_current():
        table = table_of(spec.where, spec.beside)
    compute = partial(_compute, Watch(client))
    labelled: tuple[tuple[str, ...], dict[int, int]] = ((), {})
    if table.labels is not None:
        found = _label_counts(compute, table.labels)
        labelled = add_counts(found, int(table.X.shape[0]), spec.positive, many=spec.one_vs_rest)
    if not has_sparse_chunks(table.X):
        return dataset_of(compute, table, block_rows_of(table.X), labelled, intercept=spec.intercept)
    dtype = stored_dtype(np.dtype(table.X.dtype), "X")
    chunks, counts = csr_chunks(table.X, dtype, "X")  # in blocks as in memory, where they have other bits
    rows, entries = cut_entries(np.append(0, np.cumsum(compute([counts])[0])), dtype.itemsize, int(chunks.shape[1]))
    return dataset_of(compute, table._replace(X=chunks), rows, labelled, intercept=spec.intercept, entries=entries)


def _compute(watch: Watch, parts: Sequence[Any]) -> list[Any]:
    """Parts of a collection, from the workers that may work. Lost work is asked for again."""

    def attempt() -> list[Any]:
        workers = watch.workers()
        with watch.crew.annotate_tasks():
            futures = watch.client.compute(list(parts))
        try:
            found = watch.gather(futures, workers) if watch.settle(futures, workers) else None
            if found is None:
                raise GoneError
            return found
        except BaseException:
            watch.cancel(futures)
            raise

    return Retry(watch)(attempt)


def _label_counts(compute: Compute, labels: Any) -> list[dict[Any, int]]:
    if isinstance(labels, np.ndarray):
        return [label_counts(labels, 0)]
    starts = np.cumsum([0, *labels.chunks[0]]).tolist()
    look, chunks = delayed(label_counts, pure=False), labels.to_delayed().ravel()
    return compute([look(part, first) for part, first in zip(chunks, starts, strict=False)])


class PartitionTask:
    """What a task does with its partition. No data class, through whose fields Dask would look for what it could compute."""

    def __init__(self, function: Callable[..., Any], window: Window, args: tuple[Any, ...], labels: Any = None) -> None:
        self.function, self.window, self.args = function, window, args
        self.labels = labels  # (rows,) of the partition where they are no partition of their own

    def __call__(self, X: Any, labels: Any, sent: Any) -> Any:
        """The answer for a partition; ``sent`` are more arguments that travelled apart."""
        dataset = self.window.open(X, self.labels if labels is None else labels)
        return self.function(dataset, *self.args, *(sent or ()))


def fold_partition(dataset: Dataset, fold: Fold[Any, Any], first: int, stop: int, carry: Any, before: Cost) -> tuple[Any, Cost]:
    """The next carry, and all cost so far."""
    cost = Cost()
    cost.add(before)
    return fold_blocks(fold, carry, dataset.read_blocks(range(first, stop), cost), cost), cost


class CollectionEngine(DaskEngine):
    """Runs passes on the partitions of a collection, on the workers that have them."""

    def __init__(self, client: Client, dataset: Dataset, scratch: Scratch | None = None, watch: Watch | None = None) -> None:
        super().__init__(client, Source(DataSpec(None)), dataset, scratch, watch)
        collection = collection_of(dataset)
        assert collection is not None, "a dataset of a collection"
        self.collection = collection
        self._points = collection.X.to_delayed().ravel().tolist()
        self._labels = collection.labels.to_delayed().ravel().tolist() if is_dask_array(collection.labels) else None
        self._blocks = collection.rows // dataset.block_rows  # of each partition but the last

    def run(self, question: Question) -> Any:
        """As for an engine. Raises UsageError for vectors beside the points, and for pairs of them."""
        if isinstance(question, OnVectors):
            raise UsageError("ispvn keeps numbers for each point beside the data: use another method, or ingest the data first")
        if isinstance(question, OnPairs):
            raise UsageError("a kernel needs points by pairs of blocks: ingest the data first, or client=False")
        return super().run(question)

    def _compare(self, blocks: Sequence[int] | None) -> None:
        """Each task compares what it reads."""

    def _attempt(
        self, name: str, function: Callable[..., R], args: tuple[Any, ...], count: int | None, known: Locality | None
    ) -> list[R]:
        self._begin()
        chosen: Sequence[int] = range(self.dataset.blocks if count is None else count)
        if function is scan_range and isinstance(args[0], Partial):
            chosen = args[0].blocks
        positions = groupby(range(len(chosen)), lambda position: chosen[position] // self._blocks)
        sent, tasks, sizes = self._sendable(args), [], []
        self.observe(0, len(chosen))
        for partition, group in positions:
            first, *others = group
            stop = others[-1] + 1 if others else first + 1
            tasks.append(self._task(name, partition, function, (first, stop), sent))
            sizes.append(stop - first)
        with self._watch.crew.annotate_tasks():
            futures = self.client.compute(tasks)
        return [answer for _, answer in self._gather_results(Sent(futures, sizes))]

    def _task(self, name: str, partition: int, function: Callable[..., Any], args: tuple[Any, ...], sent: Any) -> Any:
        """A Delayed of what a function makes of a partition; ``sent`` are more arguments, or what Dask has of them."""
        collection, apart = self.collection, hasattr(sent, "key")
        labels = self._labels[partition] if self._labels is not None else None
        rows = collection.range(partition)
        here = collection.labels[rows.start : rows.stop] if isinstance(collection.labels, np.ndarray) else None
        window = Window.of(self.dataset, collection, partition)
        task = PartitionTask(function, window, args if apart else (*args, *sent), here)
        key = f"dfeas-{name}-{self.source.run[:8]}-{self._sent}-{partition}"
        return delayed(on_partition, pure=False)(
            task, self._points[partition], labels, sent if apart else None, dask_key_name=key
        )

    def _carry_on(self, fold: Fold[Any, Any], held: Any) -> None:
        """The carry goes from partition to partition, and comes to the driver now and then."""
        while held.done < self.collection.partitions:
            self._begin()
            self.observe(held.done * self._blocks, self.dataset.blocks)
            stop = min(held.done + FOLDED * self.parallel, self.collection.partitions)
            link: Any = held.carry
            for partition in range(held.done, stop):
                first = partition * self._blocks
                blocks = first, min(first + self._blocks, self.dataset.blocks)
                link = self._task(question_name(fold), partition, fold_partition, (fold, *blocks), link)
                if partition + 1 < stop:
                    link = link[1]
            with self._watch.crew.annotate_tasks():
                future: Future = self.client.compute(link)
            try:
                if not self._watch.settle([future]) and self._watch.threads().keys().isdisjoint(self._workers):
                    raise GoneError
                brought = self._watch.gather([future], self._workers)
                if brought is None:
                    raise GoneError
            except BaseException:
                self._watch.cancel([future])
                raise
            held.carry, held.done = brought[0][1], stop
