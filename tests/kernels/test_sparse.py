"""Sparse points with kernels: the same answers as of the same points filled up."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy

import dfeas
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.engine import scan
from dfeas.engine.local import LocalEngine
from dfeas.errors import BadInputError, CheckFailedError
from dfeas.kernels.gram import GramProduct
from dfeas.kernels.kernel import kernel_of, opposite
from tests.kernels.dense import dense
from tests.kernels.test_gram import KERNELS


def texts(n: int, m: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, m) in float32, a few entries each, one of them none; labels that are no linear function."""
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, m)) * (rng.random((n, m)) < 0.15)).astype(np.float32)
    X[7] = 0
    size = np.linalg.norm(X, axis=1)
    return X, np.where(size > np.median(size), 1, -1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", KERNELS)
def test_products_are_those_of_arrays(monkeypatch: pytest.MonkeyPatch, name: str, dtype: type) -> None:
    monkeypatch.setattr(scan, "LEAST_ROWS", 40)
    monkeypatch.setattr("dfeas.linalg.csr.DENSE_WORK", 0 if dtype is np.float64 else 10**9)
    X, labels = texts(150)
    X[7, 3] = 1
    kernel = kernel_of(name, **KERNELS[name])[0]
    monkeypatch.setattr("dfeas.data.storage.layout.SPARSE_BLOCK_BYTES", 2000)
    dataset = open_source(Source(DataSpec(scipy.sparse.csr_array(X.astype(dtype)), labels, intercept=False)))
    assert dataset.blocks > 3
    engine, rng = LocalEngine(dataset, 1), np.random.default_rng(1)
    G = dense(kernel, X.astype(np.float64), labels)
    for V in (rng.standard_normal((150, 2)), np.eye(150, 1)):
        off = np.abs(engine.run(GramProduct(kernel, V, tile_rows=16)) - G @ V) / np.abs(V).sum()
        assert off.max() < (1e-6 if dtype is np.float32 or name == "exponential" else 1e-11)
    engine.close()


@pytest.mark.parametrize(("kernel", "method"), [*((name, "auto") for name in KERNELS), ("rbf", "mirror-prox")])
def test_verdicts_are_those_of_arrays(kernel: str, method: str) -> None:
    X, labels = texts(400)
    options: dict[str, Any] = {"kernel": kernel, "method": method, "max_passes": 60}
    ours, theirs = (dfeas.solve(points, labels, **options) for points in (scipy.sparse.csr_array(X), X))
    assert (ours.verdict, ours.proof) == (theirs.verdict, theirs.proof)
    assert ours.margin_lower == pytest.approx(theirs.margin_lower, abs=1e-7)
    assert ours.margin_upper == pytest.approx(theirs.margin_upper, abs=1e-7)


def test_a_run_on_sparse_data(tmp_path: Path) -> None:
    X, labels = texts(500)
    scipy.sparse.save_npz(tmp_path / "a.npz", scipy.sparse.csr_matrix(X))
    np.save(tmp_path / "y.npy", labels)
    dfeas.ingest(tmp_path / "a.npz", tmp_path / "data", y=tmp_path / "y.npy", sparse=True, block_rows=64)
    whole = dfeas.solve(tmp_path / "data", kernel="rbf")
    dfeas.solve(tmp_path / "data", kernel="rbf", out=tmp_path / "run", max_passes=1)
    found: Any = dfeas.resume(tmp_path / "run", max_passes=50)
    assert (found.verdict, found.margin_lower) == ("feasible", whole.margin_lower)
    assert dfeas.verify_run(tmp_path / "run").proof == "rigorous"
    scores = [dfeas.predict(tmp_path / "run", some).score for some in (tmp_path / "data", X.astype(np.float64))]
    assert np.allclose(*scores, atol=1e-12)
    assert ((scores[0] > 0) == (labels > 0)).all()
    with np.load(tmp_path / "run" / "certificate.npz") as arrays:
        kept = dict(arrays)
    np.savez(tmp_path / "c.npz", **{**kept, "weights": kept["weights"] * np.where(np.arange(len(kept["weights"])) % 2, 1, 3)})
    with pytest.raises(CheckFailedError, match="not a separator"):
        dfeas.verify_certificate(tmp_path / "data", tmp_path / "c.npz")


def test_equal_points_are_found_whatever_is_stored_of_them() -> None:
    X = scipy.sparse.csr_array(np.array([[0.0, 1, 2], [0, 1, 2], [3, 0, 0], [0, 0, 0]]))
    X.data[0] = 0.0  # stored, and nothing
    assert opposite(X, np.array([1, -1, 1, -1])) is None
    X.data[0] = 1.0
    assert opposite(X, np.array([-1, 1, 1, -1])) == (1, 0)
    assert opposite(np.array([[0.0], [-0.0]]), np.array([1, -1])) == (0, 1)
    result = dfeas.solve(scipy.sparse.vstack([X, X[[2]]], format="csr"), [1, 1, -1, -1, 1], kernel="rbf")
    assert (result.verdict, result.proof) == ("infeasible", "exact")


def test_a_function_is_given_the_blocks_as_they_are() -> None:
    X, labels = texts(120)
    X[7, 3] = 1
    seen = set()

    def cubic(a: Any, b: Any) -> Any:
        seen.add(type(a))
        product = a @ b.T
        return product.power(3) if scipy.sparse.issparse(product) else product**3

    ours, theirs = (dfeas.solve(points, labels, kernel=cubic) for points in (scipy.sparse.csr_array(X), X))
    assert seen == {scipy.sparse.csr_array, np.ndarray}
    assert (ours.verdict, ours.proof) == (theirs.verdict, theirs.proof)
    assert ours.margin_lower == pytest.approx(theirs.margin_lower, abs=1e-7)
    with pytest.raises(BadInputError, match="returned shape"):
        dfeas.solve(scipy.sparse.csr_array(X), labels, kernel=lambda a, b: (a @ b.T)[:1])
