"""Many elements side by side: weights without eigenvectors, and the least eigenvalue of all without those of each."""

from typing import Any

import numpy as np
import pytest

from dfeas.cones.algebra import Group
from dfeas.cones.batch import ConeBatch
from tests.cones.plain import element, matrix


def batch_of(kind: str, size: int, s: np.ndarray) -> ConeBatch:
    return ConeBatch.of(Group(kind, size, np.arange(0, s.size, s.shape[1])), s.reshape(-1))


@pytest.mark.parametrize(
    ("dtype", "mu"),
    [(dtype, mu) for dtype in (np.float32, np.float64) for mu in (1e-3, 0.03, 1.0, 50.0)] + [(np.float64, 1e-9)],
)
@pytest.mark.parametrize("k", [2, 6])
def test_weights_are_exponentials_of_matrices(k: int, mu: float, dtype: Any) -> None:
    rng = np.random.default_rng(k)
    S = rng.standard_normal((40, k, k)) / k
    s = np.array([element(each + each.T + rng.standard_normal() * np.eye(k)) for each in S]).astype(dtype)
    decomposed = [np.linalg.eigh(matrix(each, k)) for each in s.astype(np.float64)]
    low = min(value[0] for value, _ in decomposed)
    total, some, found = batch_of("s", k, s).gibbs(low, mu)
    weights = np.zeros((len(s[0]), len(s)))
    weights[:, slice(None) if some is None else some] = found
    expected = [element((V * np.exp((low - value) / mu)) @ V.T) for value, V in decomposed]
    close = 40 * float(np.finfo(dtype).eps) * (1 + 3 / mu)
    np.testing.assert_allclose(weights.T, expected, rtol=0, atol=close)
    assert total == pytest.approx(sum(np.exp((low - value) / mu).sum() for value, _ in decomposed), rel=40 * close)


@pytest.mark.parametrize(("kind", "size"), [("l", 1), ("q", 5), ("s", 6), ("s", 30)])
@pytest.mark.parametrize("spread", [0.0, 1e-6, 1.0])
def test_the_least_eigenvalue_is_among_those_that_are_looked_at(kind: str, size: int, spread: float) -> None:
    rng = np.random.default_rng(size)
    d = size * (size + 1) // 2 if kind == "s" else size
    e = element(np.eye(size)) if kind == "s" else np.eye(d)[0]
    for _ in range(2 if size > 6 else 5):
        s = (e * (1 + 1e-4 * rng.random((60, 1))) + spread * rng.standard_normal((60, d))).astype(np.float32)
        wide = s.astype(np.float64)
        least = np.linalg.eigvalsh([matrix(each, size) for each in wide])[:, 0] if kind == "s" else None
        if least is None:
            least = wide[:, 0] - np.linalg.norm(wide[:, 1:], axis=1)
        batch, off = batch_of(kind, size, s), 1e-5 * (1 + spread)
        some, value = batch.lowest(np.inf, off, 1e-6 * (1 + spread))
        assert int(least.argmin()) in some
        np.testing.assert_allclose(value, least[some], atol=1e-5 * (1 + spread))
        assert (batch.below - off <= least).all()
        assert (least <= batch.above + off).all()
        level = float(np.median(least))
        assert set(np.flatnonzero(least < level - off)) <= set(batch.up_to(np.arange(60), level).tolist())
