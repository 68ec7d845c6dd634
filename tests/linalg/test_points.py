"""Products of points: right for any shape, and rounded no more than the number of terms says."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse

from dfeas.linalg.points import LINE_BYTES, PART, SLAB_BYTES, add_combinations, copy_rows, fresh, product, terms, times
from dfeas.machine import used_bytes
from dfeas.passes.block import rounding

SHAPES = [(1, 1), (3, 20), (300, 7), (5, PART), (5, PART + 1), (200, 3 * PART + 5), (130, 2 * PART), (9, 50_000)]


def unit(points: Any) -> Any:
    return points / np.linalg.norm(points, axis=-1, keepdims=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 30])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_products_are_those_of_long_doubles_up_to_rounding(shape: tuple[int, int], k: int, dtype: Any) -> None:
    t, m = shape
    rng = np.random.default_rng(t * m + k)
    points = unit(rng.random((t, m)) + 0.1).astype(dtype)  # of one sign: nothing cancels, rounding adds up
    questions = np.ascontiguousarray(unit(rng.random((k, m))).astype(dtype).T)
    expected = questions.T.astype(np.longdouble) @ points.T.astype(np.longdouble)
    off = rounding(terms(points), dtype is np.float32)
    assert np.abs(times(points, questions) - expected).max() <= off
    assert np.abs(product(points, questions[:, 0]) - expected[0]).max() <= off
    total, weights = np.ones((k, m)), rng.random((k, t)).astype(dtype)
    add_combinations(total, weights, points)
    assert np.allclose(total, 1 + weights.astype(np.float64) @ points, rtol=1e-5 if dtype is np.float32 else 1e-12)


@pytest.mark.parametrize("k", [1, 3, 4, 9])
def test_products_of_sparse_points_are_those_of_dense_ones(k: int) -> None:
    rng = np.random.default_rng(k)
    dense = rng.standard_normal((40, 300)) * (rng.random((40, 300)) < 0.05)
    points, questions = scipy.sparse.csr_array(dense), rng.standard_normal((300, k))
    assert np.allclose(times(points, questions), (dense @ questions).T, atol=1e-12)
    assert terms(points) == (dense != 0).sum(axis=1).max()


def test_wide_points_have_fewer_terms_than_features() -> None:
    assert terms(np.empty((2, PART))) == PART
    assert terms(np.empty((2, PART + 1))) == PART + 1
    assert terms(np.empty((2, 100_000))) == PART + 24


def test_arrays_that_stay_lie_apart_on_lines_of_their_own() -> None:
    arrays = [fresh((rows, 1000), np.dtype(np.float32)) for rows in (1, 40, 33, 1500, 700, 900, 2000, 50)]
    for i, array in enumerate(arrays):
        array[:] = i
    assert all((array == i).all() for i, array in enumerate(arrays))
    assert all(array.ctypes.data % LINE_BYTES == 0 for array in arrays if array.nbytes >= 1 << 17)


def test_copies_of_rows_that_are_gone_leave_no_more_than_one_slab() -> None:
    points = np.ones((1000, 1000), np.float32)
    before = used_bytes()[1]
    copies = [copy_rows(points, np.arange(0, 1000, 8)) for _ in range(200)]
    assert used_bytes()[1] - before > 200 * copies[0].nbytes // 2
    copies.clear()
    assert used_bytes()[1] - before <= 2 * SLAB_BYTES
