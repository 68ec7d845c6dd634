"""The signed normalised Gram matrix, plainly: no tiles, nothing of dfeas but names of parameters; data in small blocks."""

from __future__ import annotations

import numpy as np
import pytest

from dfeas.data.dataset import Dataset
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.kernels.kernel import NormalisedKernel


def plain(kernel: NormalisedKernel, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """K(x, z) (n, k), not normalised."""
    d = X[:, None, :] - Z[None, :, :]
    if kernel.name == "rbf":
        return np.asarray(np.exp(-kernel.gamma * (d**2).sum(axis=2)))
    if kernel.name == "exponential":
        return np.asarray(np.exp(-kernel.gamma * np.sqrt((d**2).sum(axis=2))))
    if kernel.name == "polynomial":
        return np.asarray((kernel.gamma * X @ Z.T + kernel.coef0) ** kernel.degree)
    return np.asarray(X @ Z.T)  # linear, and cosine once it is normalised


def dense(kernel: NormalisedKernel, X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """G (n, n) of points without a zero point."""
    K = plain(kernel, X, X)
    scale = labels / np.sqrt(np.diagonal(K))
    return np.asarray(scale[:, None] * K * scale)


def in_blocks(X: np.ndarray, labels: np.ndarray, rows: int, intercept: bool = False) -> Dataset:
    """A dataset in memory whose blocks have so many rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dfeas.data.storage.layout.BLOCK_BYTES", rows * X[0].nbytes)
        return open_source(Source(DataSpec(X, labels, intercept=intercept)))
