"""Pieces of answers: whatever is merged in whatever order, the same points in the order of the points, in few pieces."""

import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.engine.local import LocalEngine
from dfeas.linalg.points import take_together
from dfeas.passes.block import Columns
from dfeas.passes.protocol import Partial
from dfeas.passes.select import FEW_BYTES, Sample, Select, sample
from dfeas.passes.vectors import Gathers, SparseWeights


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.integers(0, 2**32), st.integers(1, 9))
def test_weights_of_many_blocks_come_in_order_whoever_is_merged_first(sizes: list[int], seed: int, few: int) -> None:
    edges, rng = np.cumsum([0, *sizes]), np.random.default_rng(seed)
    partials = [SparseWeights(((np.arange(a, b), np.arange(a, b) / 7),)) for a, b in pairwise(edges)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("dfeas.passes.select.FEW_BYTES", 16 * few)
        while len(partials) > 1:
            second, first = (partials.pop(rng.integers(len(partials))) for _ in range(2))
            partials.append(Gathers().merge(first, second))
    assert np.array_equal(partials[0].index(), np.arange(edges[-1]))
    assert np.array_equal(partials[0].weight(), np.arange(edges[-1]) / 7)


def test_few_points_of_many_blocks_are_one_piece() -> None:
    total, merge = SparseWeights(((np.arange(1), np.ones(1)),)), Gathers().merge
    few = FEW_BYTES // 16
    for point in range(1, few + 1):
        total = merge(total, SparseWeights(((np.array([point]), np.ones(1)),)))
    assert [len(index) for index, _ in total.pieces] == [few, 1]
    assert np.array_equal(total.index(), np.arange(few + 1))


def test_columns_of_many_features_are_not_copied_to_be_one_piece() -> None:
    wide = [Columns(np.array([point]), np.ones((1, FEW_BYTES // 8)), np.ones(1)) for point in range(3)]
    total: tuple[Columns, ...] = ()
    for column in wide:
        total = Sample(FEW_BYTES // 8, 1, 0).merge(total, (column,))
    assert all(piece is column for piece, column in zip(total, wide, strict=True))


def test_a_sample_of_all_points_names_its_blocks_by_a_range() -> None:
    assert sample(4, 100, 100, 10**6, 1, 0).blocks == range(10**6)
    drawn = sample(4, 10, 10**6, 10**4, 1, 0)
    assert isinstance(drawn, Partial)
    assert list(drawn.blocks) == sorted(set(drawn.blocks))


def test_nobody_else_holds_columns_when_they_are_put_together(
    dataset: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = dataset("gaussian", 1000, 12_000)
    points = open_source(Source(DataSpec(path, intercept=False)))
    holders: list[list[int]] = []

    def counted(parts: list[Any], most: int) -> Any:
        holders.append([sys.getrefcount(parts[place]) for place in range(len(parts))])
        return take_together(parts, most)

    alone = sys.getrefcount([np.ones(1)][0]) + 1  # and the list
    monkeypatch.setattr("dfeas.passes.block.take_together", counted)
    for threads in (2,):
        engine = LocalEngine(points, threads)
        drawn = engine.run(sample(1000, 12_000, 12_000, points.blocks, 1, 0))
        selected = engine.run(Select(np.ones(1000), np.inf, 12_000, 12_000))
        joined = selected.append_to(Columns.none(1000), 12_000)
        assert len(joined) == len(drawn) == 12_000
        engine.close()
    assert [len(parts) for parts in holders] == [12, 13]
    assert max(max(parts[-12:]) for parts in holders) <= alone
