"""The Dask engine over a Dask array or frame: a task for each partition, which Dask brings to it or it to the partition.

What the user persisted is read where it lies; anything else is computed anew in each pass. Nothing is persisted here. A worker
that dies takes partitions with it, which Dask makes again; each block is compared with what the survey saw in every pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from dask.delayed import Delayed, delayed
from distributed import Client

from dfeas.data.arrays import stored_dtype
from dfeas.data.collections import Labelled, Window, add_counts, block_rows_of, collection_of, dataset_of, lazy_table
from dfeas.data.dataset import Dataset
from dfeas.data.partitions import WHERE, Compute, chunks_of, label_counts, require_held
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.numbers import is_dask_array
from dfeas.data.storage.scratch import Scratch
from dfeas.data.storage.sparse_readers import csr_chunks, cut_entries, has_sparse_chunks
from dfeas.engine.anchors import Part
from dfeas.engine.distributed import DaskEngine
from dfeas.engine.scan import scan_range
from dfeas.engine.watch import Retry, Watch
from dfeas.engine.worker import fold_partition, on_partition
from dfeas.errors import UsageError
from dfeas.passes.protocol import OnPairs, OnVectors, Partial, Question
from dfeas.records import replace


def open_collection(client: Client, spec: DataSpec) -> Dataset:
    """A dataset of a Dask array or frame that stays where it lies; what is not known of it is seen there. Raises BadInputError
    for what cannot be used, UsageError for what is not on this cluster.
    """
    compute = compute_on(client, spec.where, spec.beside)
    table = lazy_table(spec, compute, keep=False)
    labelled: Labelled = (), {}
    if table.labels is not None:
        counts = [label_counts(table.labels, 0)] if table.counts is None else table.counts
        labelled = add_counts(counts, int(table.X.shape[0]), spec.positive, many=spec.one_vs_rest)
    if not has_sparse_chunks(table.X):
        return dataset_of(compute, table, block_rows_of(table.X), labelled)
    dtype = stored_dtype(np.dtype(table.X.dtype), WHERE)
    chunks, counts_of_rows = csr_chunks(table.X, dtype, WHERE)  # in blocks as in memory, where they have other bits
    ends = np.append(0, np.cumsum(np.concatenate(compute(chunks_of(counts_of_rows)))))
    rows, entries = cut_entries(ends, dtype.itemsize, int(chunks.shape[1]))
    return dataset_of(compute, replace(table, X=chunks), rows, labelled, entries)


def compute_on(client: Client, *collections: Any) -> Compute:
    """What computes parts of these collections on the workers of a client that may work. Raises UsageError for one that was
    persisted on another cluster, or by a client that is closed.
    """
    require_held(*collections, address=client.scheduler.address if client.scheduler else None)
    return partial(_compute, Watch(client))


def _compute(watch: Watch, parts: Sequence[Any]) -> list[Any]:
    """Lost work is asked for again."""

    def attempt() -> list[Any]:
        watch.workers()
        with watch.crew.annotate_tasks():
            futures = watch.client.compute(list(parts))
        try:
            return watch.results(futures)
        except BaseException:
            watch.cancel(futures)
            raise

    return Retry(watch)(attempt)


class CollectionEngine(DaskEngine):
    """Runs passes on the partitions of a collection, each of which is the anchor of its range."""

    def __init__(self, client: Client, dataset: Dataset, scratch: Scratch | None = None, watch: Watch | None = None) -> None:
        super().__init__(client, Source(DataSpec(None)), dataset, scratch, watch)
        collection = collection_of(dataset)
        assert collection is not None, "a dataset of a collection"
        self.collection = collection
        # the optimiser would make one task of what two partitions share, and compute it twice
        self._points = chunks_of(collection.X)
        self._labels = chunks_of(collection.labels) if is_dask_array(collection.labels) else None
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

    def _parts(self, function: Callable[..., Any], args: tuple[Any, ...], count: int | None) -> list[Part]:
        chosen: Sequence[int] = range(self.dataset.blocks if count is None else count)
        if function is scan_range and isinstance(args[0], Partial):
            chosen = args[0].blocks
        edges = [i for i in range(1, len(chosen)) if chosen[i] // self._blocks != chosen[i - 1] // self._blocks]
        return [Part(a, b, chosen[a] // self._blocks) for a, b in pairwise([0, *edges, len(chosen)])]

    def _pieces(self) -> list[Part]:
        return self._parts(fold_partition, (), None)

    def _window(self, partition: int) -> tuple[Callable[..., Dataset], Any, Any]:
        """What makes a dataset of a partition, its points, and its labels where they are a partition, too."""
        labels, rows = self.collection.labels, self.collection.range(partition)
        here = labels[rows.start : rows.stop] if isinstance(labels, np.ndarray) else None
        there = self._labels[partition] if self._labels is not None else None
        window = Window.of(self.dataset, self.collection, partition)
        return partial(window.open, labels=here), self._points[partition], there

    def _scan_part(self, key: str, parcel: Any, part: Part) -> Delayed:
        task = delayed(on_partition, pure=False)
        return task(parcel, part.first, part.stop, *self._window(part.place), dask_key_name=key)

    def _fold_part(self, key: str, parcel: Any, link: Any, piece: Part) -> Delayed:
        task = delayed(fold_partition, pure=False)
        return task(parcel, link, piece.first, piece.stop, *self._window(piece.place), dask_key_name=key)
