"""Hard margin: the planted plane, canonical form, weights that make the upper end, on disk and from the command line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dfeas


def test_the_hyperplane_is_canonical_and_the_weights_make_the_upper_end(
    arrays: Callable[..., Any], unit_columns: Callable[..., Any]
) -> None:
    X, y = arrays("planted", 6, 2000, margin=0.05, dtype="float64")
    X = X * np.random.default_rng(0).uniform(0.5, 20, (2000, 1))
    found = dfeas.hard_margin(X, y, intercept=False, margin_tolerance=1e-4)
    assert found.result.margin_upper == pytest.approx(0.05, rel=1e-3)
    assert found.result.margin_lower >= (1 - 1e-4) * found.result.margin_upper
    score = y * (X @ found.w)
    assert score.min() == pytest.approx(1, rel=1e-12)
    assert found.margin == pytest.approx(score.min() / np.linalg.norm(found.w))
    assert found.radius == pytest.approx(np.linalg.norm(X, axis=1).max())
    assert found.weights.min() >= 0
    assert found.weights.sum() == pytest.approx(1)
    A = unit_columns(X, y)
    assert np.linalg.norm(A[:, found.support] @ found.weights) == pytest.approx(found.result.margin_upper, rel=1e-9)
    assert found.leave_one_out == len(found.support) / 2000
    assert found.dimension == 7


def test_its_share_is_the_one_that_is_given() -> None:
    X, y = [[1.0, 2.0], [2.0, 1.0], [-1.0, -1.5]], [1, 1, -1]
    found = dfeas.hard_margin(X, y, intercept=False, margin_tolerance=0.25)
    assert found.margin_tolerance == found.result.margin_tolerance == 0.25
    assert found.result.margin_lower >= 0.75 * found.result.margin_upper
    assert dfeas.hard_margin(X, y, intercept=False).margin_tolerance == 1e-3


@pytest.mark.parametrize(
    ("X", "labels"),
    [
        ([[1.0], [np.nextafter(1, 2)], [-1e8], [1e8]], [0, 1, 0, 1]),
        ([[1.0, 1e-300], [2.0, -1e-300], [1.0, -1e-300]], [1, 0, 0]),
    ],
    ids=["no plane of float64 has the points on their sides", "one over the square of the margin is beyond float64"],
)
def test_a_margin_below_what_float64_tells_has_no_plane_and_is_verified(
    X: list[list[float]], labels: list[int], tmp_path: Path
) -> None:
    dfeas.ingest(np.array(X), tmp_path / "data", y=labels)
    found = dfeas.hard_margin(tmp_path / "data", out=tmp_path / "run")
    assert found.result.verdict == "feasible"
    assert found.margin is None or np.isfinite([*found.w, found.bias, found.margin]).all()
    assert found.margin is not None or "evidence.integers" in str(found)
    assert dfeas.verify_run(tmp_path / "run").verdict == "feasible"
