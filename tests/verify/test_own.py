"""What the checker has of its own, beside what the search has: conflicts of equal points, and what a view says."""

import json
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from dfeas.data.source import Transform, view_text
from dfeas.errors import CheckFailedError
from dfeas.kernels.checker.core import opposite
from dfeas.verify.view import transform_of


@given(st.integers(0, 10_000), st.booleans())
def test_equal_points_with_opposite_signs_are_those_of_the_definition(seed: int, sparse: bool) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(-1, 2, (int(rng.integers(1, 12)), 2)) * rng.choice([-0.0, 0.5, 1.0], 2)
    amounts = rng.choice([-0.3, 0.2], len(X))
    pairs = [(i, j) for i in np.flatnonzero(amounts > 0) for j in np.flatnonzero(amounts < 0) if (X[i] == X[j]).all()]
    points: Any = X
    if sparse:
        column = np.indices(X.shape)[1]
        points = scipy.sparse.csr_array((X.ravel(), column.ravel(), np.arange(0, X.size + 1, 2)), shape=X.shape)  # zeros stored
    assert opposite(points, amounts) == min(pairs, key=lambda pair: (min(pair), max(pair)), default=None)


VALUES = Transform("std", True, False, 7, (1.0, -2.0), (0.5, 3.0), 2.5).to_json()


def test_a_view_is_read_as_it_is_written() -> None:
    assert transform_of("", 2) is None
    assert transform_of(view_text("cat", None), 2) is None
    transform = transform_of(json.dumps({"positive": "cat", "transform": VALUES}), 2)
    assert transform is not None
    assert transform.scaling is not None
    assert (transform.scale, transform.center, transform.points, transform.length) == ("std", True, 7, 2.5)
    assert transform.scaling([[1.0, -1.0]] * np.ones((1, 1))).tolist() == [[0.0, 3.0]]
    plain = transform_of(view_text(None, Transform(normalize=False, points=7, length=2.5)), 2)
    assert plain is not None
    assert plain.scaling is None


@pytest.mark.parametrize(
    "change",
    [
        {"shift": [1.0]},  # of another number of features: it would be that of all
        {"shift": []},
        {"factor": [0.5, 0.0]},
        {"factor": [0.5, float("nan")]},
        {"scale": None},
        {"scale": "rank"},
        {"points": 0},  # nothing would be compared
        {"length": float("inf")},
    ],
)
def test_a_view_of_other_numbers_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(CheckFailedError, match="cannot be read"):
        transform_of(json.dumps({"transform": VALUES | change}), 2)
