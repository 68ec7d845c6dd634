"""Every pass answers for sparse points what it answers for the same points in an array."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from dfeas.linalg.points import norms
from dfeas.passes.block import Block, Columns
from dfeas.passes.select import Sample, Select, Selection
from dfeas.passes.softmin import Softmin
from dfeas.passes.steps import Online
from dfeas.passes.survey import Gram, Histogram, Survey
from dfeas.passes.vectors import Combine, Recover, Shift, SparseWeights
from tests.records import is_record, names_of


def both(seed: int, dtype: Any, intercept: bool, n: int = 60, m: int = 12) -> tuple[Block, Block]:
    """A sparse block and the dense one: empty rows, a feature that no point has, stored zeros."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, m)) < 0.3, rng.integers(-9, 9, (n, m)) / 4, 0).astype(dtype)
    X[:, 5] = 0
    X[3] = 0
    sparse = sp.csr_array(X)
    sparse.data[1] = 0  # a stored zero
    X = sparse.toarray()
    label = np.where(rng.random(n) < 0.5, 1, -1)
    return Block.of(0, sparse, label, norms(sparse), intercept), Block.of(0, X, label, norms(X), intercept)


def cut(block: Block, edges: list[int]) -> list[Block]:
    return [
        Block.of(a, block.points[a:b], block.label[a:b], block.norm[a:b], block.intercept) for a, b in pairwise(edges) if a < b
    ]


def close(first: Any, second: Any, off: float) -> None:
    """Two answers, whatever they are made of."""
    if isinstance(first, Columns):
        close((first.index, first.unit(), first.scale), (second.index, second.unit(), second.scale), off)
    elif isinstance(first, Selection):
        close((first.violated, first.low, first.arg), (second.violated, second.low, second.arg), off)
        close((first.score, first.columns), (second.score, second.columns), off)
    elif isinstance(first, SparseWeights):
        close((first.index(), first.weight()), (second.index(), second.weight()), off)
    elif is_record(first):
        for name in set(names_of(first)) - {"packed"}:
            close(getattr(first, name), getattr(second, name), off)
    elif isinstance(first, tuple):
        assert len(first) == len(second)
        for one, other in zip(first, second, strict=True):
            close(one, other, off)
    elif first is None:
        assert second is None
    else:
        assert np.allclose(first, second, rtol=off, atol=off, equal_nan=True)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
def test_all_passes_answer_as_for_an_array(dtype: str, intercept: bool) -> None:
    for seed in range(3):
        sparse, dense = both(seed, dtype, intercept)
        d, off = dense.dimension, 1e-12 if dtype == "float64" else 1e-5
        rng = np.random.default_rng(seed)
        Y, mu = rng.standard_normal((d, 3)), np.array([0.0, 0.05, 1.0])
        soft = Softmin(Y, mu)
        answer = soft.finish(soft.scan(dense))
        passes: list[Any] = [
            soft,
            Softmin(Y[:, :1], mu[2:]),
            Select(Y[:, 0], 0.1, 20, 9),
            Select(Y[:, 1], np.inf, 60, 60, raw=True),
            Survey(),
            Gram(),
            Histogram(Y[:, 0]),
            Recover(Y[:, 1:], mu[1:], answer.lse[1:], np.array([0.4, 0.6]), 1e-9),
            Sample(d, 7, seed),
        ]
        edges = [0, *sorted(rng.integers(0, 60, 3).tolist()), 60]
        for question in passes:
            close(question.finish(question.scan(sparse)), question.finish(question.scan(dense)), off)
            if isinstance(question, Sample):
                continue  # draws from each block
            if isinstance(question, Select) and question.quota < 60:
                continue  # takes from each block
            parts = [question.scan(part) for part in cut(sparse, edges)]
            while len(parts) > 1:
                parts[:2] = [question.merge(parts[0], parts[1])]
            found, whole = question.finish(parts[0]), question.finish(question.scan(sparse))
            close(found, whole, off)
            if isinstance(question, Softmin):  # to the bit, however blocks are cut
                assert np.array_equal(found.low, whole.low)
                assert np.array_equal(found.arg, whole.arg)
        close(
            Online(Y[:, 0]).step(Online(Y[:, 0]).start(), sparse), Online(Y[:, 0]).step(Online(Y[:, 0]).start(), dense), 1e-12
        )
        v = rng.random(60)
        for question in (Shift(Y[:, 0], 0.5, 1 / 60), Combine(d, 0.2, 1.0, 1.0)):
            close(question.scan(range(60), sparse, (v,)), question.scan(range(60), dense, (v,)), 1e-12)


def test_what_is_not_finite_is_found_where_it_is() -> None:
    sparse, _ = both(0, "float64", False)
    points = sparse.points.copy()
    points.data[[4, 40]] = np.nan, np.inf
    found = Survey().scan(Block.of(100, points, sparse.label, norms(points)))
    rows = np.repeat(np.arange(60), np.diff(points.indptr))[[4, 40]]
    assert found.nonfinite == 2
    assert [(p - 100, f) for p, f, _ in found.first_nonfinite] == list(zip(rows, points.indices[[4, 40]], strict=True))
    assert found.zero == (np.abs(sparse.points.toarray()).sum(axis=1) == 0).sum()


@pytest.mark.parametrize("edge", [(1, 1), (1, 5), (5, 1)])
def test_the_smallest_matrices(edge: tuple[int, int]) -> None:
    X = sp.csr_array(np.ones(edge))
    block = Block.of(0, X, np.ones(edge[0]), norms(X))
    question = Softmin(np.ones((edge[1], 1)), np.ones(1))
    assert question.finish(question.scan(block)).low[0] == pytest.approx(np.sqrt(edge[1]))
    nothing = sp.csr_array(edge)
    summary = Survey().scan(Block.of(0, nothing, np.ones(edge[0]), norms(nothing)))
    assert (summary.zero, summary.extreme, summary.nonfinite) == (edge[0], 0, 0)
