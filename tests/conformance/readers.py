"""The laws of ``dfeas.data.storage.readers.Reader``: blocks are the rows that were written, however they are asked for."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse as sp

from dfeas.data.dataset import Dataset
from dfeas.data.storage.readers import Buffers, Cost
from dfeas.errors import CorruptDataError

Rows = Any
"""An array (n, m) or a CSR matrix."""


def same(first: Rows, second: Rows) -> bool:
    """The same entries, in the same type, -0.0 and all."""
    if sp.issparse(first) != sp.issparse(second) or first.shape != second.shape or first.dtype != second.dtype:
        return False
    if sp.issparse(first):
        parts = ((first.indptr, second.indptr), (first.indices, second.indices), (first.data, second.data))
        return all(np.array_equal(a, b) for a, b in parts)
    return bool(first.tobytes() == second.tobytes())


class ReaderTests(ABC):
    """Subclass for each reader of points, by the datasets that have it."""

    damages: ClassVar[Mapping[str, Callable[[Path], None]]] = {}
    """What may happen to the files of a dataset that this reader must notice, each in the folder that ``opened`` was given."""
    least_blocks = 2

    @abstractmethod
    def opened(self, folder: Path) -> tuple[Dataset, Rows]:
        """A dataset whose points are read so, and the rows that were written. May be called again after damage."""

    def rows(self, dataset: Dataset, written: Rows, index: int) -> Rows:
        return written[index * dataset.block_rows : (index + 1) * dataset.block_rows]

    def test_blocks_are_the_rows_that_were_written_in_any_order(self, tmp_path: Path) -> None:
        dataset, written = self.opened(tmp_path)
        assert (dataset.n, dataset.m) == written.shape
        assert dataset.blocks == -(-dataset.n // dataset.block_rows) >= self.least_blocks
        buffers, order = Buffers(), np.random.default_rng(0).permutation(np.repeat(np.arange(dataset.blocks), 2))
        for index in order.tolist():
            rows = dataset.points.read(index, buffers)
            assert rows.dtype == dataset.dtype
            assert rows.dtype.isnative
            assert sp.issparse(rows) or rows.flags.c_contiguous
            assert same(rows, self.rows(dataset, written, index)), index

    def test_any_range_of_blocks_is_read_once(self, tmp_path: Path) -> None:
        dataset, written = self.opened(tmp_path)
        edges = sorted({0, 1, dataset.blocks // 2, dataset.blocks - 1, dataset.blocks})
        for first, stop in combinations(edges, 2):
            cost, at = Cost(), first
            for block in dataset.read_blocks(range(first, stop), cost):
                assert block.start == at * dataset.block_rows
                assert same(block.points, self.rows(dataset, written, at))
                at += 1
            assert at == stop
            assert cost.points == min(stop * dataset.block_rows, dataset.n) - first * dataset.block_rows
            assert cost.bytes_read > 0

    def test_threads_read_at_the_same_time(self, tmp_path: Path) -> None:
        dataset, written = self.opened(tmp_path)

        def right(seed: int) -> bool:
            buffers, order = Buffers(), np.random.default_rng(seed).permutation(dataset.blocks)
            read = dataset.points.read
            return all(same(read(i, buffers), self.rows(dataset, written, i)) for i in order.tolist())

        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(right, range(4)))

    def test_advice_changes_nothing(self, tmp_path: Path) -> None:
        dataset, written = self.opened(tmp_path)
        reader = dataset.points
        assert isinstance(reader.overlaps, bool)
        assert isinstance(reader.distant, bool)
        for index in range(dataset.blocks):
            reader.advise(index)
        for index in reversed(range(dataset.blocks)):
            reader.advise(index)
            assert same(reader.read(index, Buffers()), self.rows(dataset, written, index))

    def test_a_stamp_stays_while_nothing_changes(self, tmp_path: Path) -> None:
        dataset, _ = self.opened(tmp_path)
        before = [dataset.points.stamp(index) for index in range(dataset.blocks)]
        for index in range(dataset.blocks):
            dataset.read(index, Buffers(), Cost())
        assert [dataset.points.stamp(index) for index in range(dataset.blocks)] == before

    def test_damage_is_noticed(self, tmp_path: Path) -> None:
        for number, (name, damage) in enumerate(self.damages.items()):
            folder = tmp_path / f"{tmp_path.name}-{number}"
            folder.mkdir()
            self.opened(folder)
            damage(folder)
            with pytest.raises(CorruptDataError) as error:
                self.read_all(folder)
            assert "\n" not in str(error.value), name

    def read_all(self, folder: Path) -> None:
        dataset, _ = self.opened(folder)
        for _ in dataset.read_blocks(range(dataset.blocks), Cost()):
            pass
