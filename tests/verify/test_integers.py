"""Exact linear algebra, beside the same without what is known of sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dfeas.exact import integers
from dfeas.exact.integers import combine, independent, solve


def draw(seed: int) -> Any:
    """A square matrix of integers, sparse, with chains, stars and blocks."""
    rng = np.random.default_rng(seed)
    r = int(rng.integers(integers.FEW, integers.FEW + 30))
    matrix = np.zeros((r, r), object)
    matrix[np.arange(r), rng.permutation(r)] = rng.integers(1, 1 << 40, r).astype(object)
    more = int(rng.integers(0, 4 * r))
    place = rng.integers(0, r, (2, more))
    if seed % 3 == 0:
        place = np.sort(place, axis=0)
    matrix[tuple(place)] = rng.integers(-5, 6, more).astype(object)
    if seed % 5 == 0:
        matrix[:, 0] = rng.integers(-3, 4, r).astype(object)
    return matrix


def test_sparse_systems_have_the_solutions_of_dense_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    solved = singular = 0
    for seed in range(60):
        matrix, rng = draw(seed), np.random.default_rng(seed)
        right = rng.integers(-(1 << 30), 1 << 30, (len(matrix), 1 + seed % 3)).astype(object)
        with monkeypatch.context() as changed:
            changed.setattr(integers, "MANY", 0)
            try:
                dense, below = solve(matrix, right)
            except ZeroDivisionError:
                dense = None
        if dense is None:
            singular += 1
            with pytest.raises(ZeroDivisionError):
                solve(matrix, right)
            continue
        x, denominator = solve(matrix, right)
        assert denominator > 0
        assert (x * below == dense * denominator).all()
        solved += 1
    assert min(solved, singular) > 2


def test_the_first_independent_rows_are_the_same_of_sparse_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = set()
    for seed in range(60):
        matrix, rng = draw(seed), np.random.default_rng(seed)
        rows = np.vstack([matrix, matrix[rng.integers(0, len(matrix), 20)]])[:, : len(matrix) - seed % 4 * 5]
        rows = rows[rng.permutation(len(rows))]
        found = independent(rows)
        with monkeypatch.context() as changed:
            changed.setattr(integers, "MANY", 0)
            assert found.tolist() == independent(rows).tolist()
        ranks.add(len(found) == rows.shape[1])
    assert len(ranks) == 2


def test_sums_of_rows_are_those_of_a_product() -> None:
    matrix = draw(2)
    weights = np.random.default_rng(0).integers(-2, 3, len(matrix)).astype(object)
    assert (combine(weights, matrix) == weights @ matrix).all()
