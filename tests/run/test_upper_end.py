"""The upper end of a margin: no hyperplane that is proved has a wider one, whatever method says it and however it rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import dfeas
from dfeas.linalg.points import add_combinations
from dfeas.passes.softmin import roundings

METHODS = sorted({"auto", *dfeas.METHODS})


@pytest.mark.parametrize("method", METHODS)
@given(st.data())
def test_it_is_not_below_a_margin_that_is_proved(method: str, data: st.DataObject) -> None:
    seed, m, few = data.draw(st.integers(0, 10**6)), data.draw(st.integers(1, 6)), data.draw(st.integers(1, 40))
    n, dtype = data.draw(st.sampled_from([2, 40, 3000])), data.draw(st.sampled_from(["f2", "f4", "f8"]))
    random = np.random.default_rng(seed)
    distinct = np.eye(m)[0] * 3 + random.standard_normal((few, m)) * 10.0 ** random.integers(-4, 0)
    # many equal points: sums of equal numbers are rounded to one side
    X: Any = distinct[random.integers(0, few, n)].astype(dtype)
    asked: dict[str, Any] = {"intercept": data.draw(st.booleans()), "method": method, "max_passes": 20}
    if dtype != "f2" and data.draw(st.booleans()):
        X = scipy.sparse.csr_array(X)
    tolerance = data.draw(st.sampled_from([None, 0.01]))
    found = dfeas.solve(X, "all-positive", margin_tolerance=tolerance, **asked)
    widest = dfeas.solve(X, "all-positive", margin_tolerance=1e-6, **{**asked, "method": "working-set-plain"})
    assert widest.verdict == "feasible"
    assert found.margin_lower <= widest.margin_upper
    assert widest.margin_lower <= found.margin_upper
    if tolerance and found.stopped == "verdict":
        assert found.margin_upper - found.margin_lower <= tolerance * found.margin_upper


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("shape", [(1, 5), (255, 3), (256, 3), (100_001, 2), (700, 3000)], ids=str)
@pytest.mark.parametrize("sparse", [False, True])
def test_sums_of_many_equal_points_are_off_by_no_more_than_is_said(sparse: bool, shape: tuple[int, int], k: int) -> None:
    t, m = shape
    points: Any = np.full((t, m), np.float32(1 / 3))
    weights, total = np.full((k, t), np.float32(1.1 / t)), np.zeros((k, m))
    expected = weights.astype(np.float64) @ points.astype(np.float64)
    add_combinations(total, weights, scipy.sparse.csr_array(points) if sparse else points)
    assert np.abs(total - expected).max() <= roundings(np.dtype(np.float32), sparse, t, m) / 3
