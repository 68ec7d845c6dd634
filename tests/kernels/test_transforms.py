"""A kernel of centred and scaled features: that of the same points as arrays, proved about the numbers that are stored."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import dfeas
from dfeas.data.source import parse_view
from dfeas.data.storage.layout import seen_fingerprint
from dfeas.errors import DfeasError
from dfeas.records import replace
from dfeas.verify.certificate import Certificate, load
from tests.fuzzing.case import Word
from tests.fuzzing.kernel_proofs import KernelProof
from tests.kernels.making import ring
from tests.run.test_resume import after, run_until

SIZES = np.array([3e4, 0.02, 5.0])
"""Of features, without which points differ by the first one only."""


def squares(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray((a @ b.T + 1) ** 2)


KERNELS = ("rbf", "exponential", "polynomial", "cosine", "linear", squares)
WAYS = (["std", "center"], ["maxabs"], ["center"])


def unlike(n: int = 700, dtype: str = "float64") -> tuple[np.ndarray, np.ndarray]:
    """A sphere whose features have other units, away from the origin."""
    X, labels = ring(n, 1, 3)
    return (X * SIZES + 2 * SIZES).astype(dtype), labels


def store(folder: Path, X: Any, labels: np.ndarray, name: str = "data") -> Path:
    """A dataset of small blocks."""
    dfeas.ingest(X, folder / name, y=labels, block_rows=96)
    return folder / name


def seen(result: dfeas.Result, X: Any) -> Any:
    """The points as a result says that it saw them, by NumPy."""
    assert result.evidence is not None
    transform = parse_view(result.evidence.view)[1]
    assert transform is not None
    factor = np.array(transform.factor or [1.0] * X.shape[1])
    if scipy.sparse.issparse(X):
        return scipy.sparse.csr_array((X.data * factor[X.indices], X.indices, X.indptr), shape=X.shape)
    return (X.astype(np.float64) - np.array(transform.shift or [0.0] * X.shape[1])) * factor


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("way", "dtype"), list(zip(WAYS, ("float32", "int32", "float64"), strict=True)))
def test_the_function_is_that_of_the_same_points_as_an_array(kernel: Any, way: list[str], dtype: str, tmp_path: Path) -> None:
    X, labels = unlike(dtype=dtype)
    found = dfeas.solve(store(tmp_path, X, labels), kernel=kernel, transform=way, eps=1e-3)
    Z = seen(found, X)
    plain = dfeas.solve(store(tmp_path, Z, labels, "plain"), kernel=kernel, eps=1e-3)
    assert (found.verdict, found.kernel) == (plain.verdict, plain.kernel), "gamma is that of the points as they are seen"
    assert found.support is not None
    assert found.weights is not None
    assert plain.weights is not None
    if found.verdict == "feasible":
        assert (found.support.tolist(), found.weights.tobytes()) == (plain.support.tolist(), plain.weights.tobytes())
        assert found.margin_lower == pytest.approx(plain.margin_lower, rel=1e-4)
        assert np.allclose(found.decision_function(X), plain.decision_function(Z), atol=1e-9)
        assert (found.predict(X) == labels).all()
    assert found.verify(kernel=None if isinstance(kernel, str) else kernel).verdict == found.verdict


def test_sparse_points_are_scaled(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = scipy.sparse.random_array((600, 40), density=0.1, rng=rng, format="csr") * rng.uniform(0.1, 1e4, 40)
    X, labels = scipy.sparse.csr_array(X), rng.choice([-1, 1], 600)
    scipy.sparse.save_npz(tmp_path / "a.npz", X)
    np.save(tmp_path / "y.npy", labels)
    dfeas.ingest(tmp_path / "a.npz", tmp_path / "data", y=tmp_path / "y.npy", block_rows=96)
    found = dfeas.solve(tmp_path / "data", kernel="rbf", transform="std", out=tmp_path / "run")
    plain = dfeas.solve(seen(found, X), labels, kernel="rbf")
    assert (found.verdict, found.kernel) == (plain.verdict, plain.kernel)
    assert dfeas.verify_run(tmp_path / "run").verdict == found.verdict
    with pytest.raises(DfeasError, match="sparse points would fill up"):
        dfeas.solve(tmp_path / "data", kernel="rbf", transform="center")


def test_the_bits_are_those_of_threads_workers_and_second_starts(client: Any, tmp_path: Path) -> None:
    X, labels = unlike(900, "float32")
    names = np.where(labels > 0, "far", np.where(X[:, 0] > 2 * SIZES[0], "near", "left"))
    data = store(tmp_path, X, names)
    options: dict[str, Any] = {"kernel": "rbf", "transform": ["std", "center"], "method": "snkpvn", "max_passes": 30}
    dfeas.one_vs_rest(data, out=tmp_path / "here", **options)
    dfeas.one_vs_rest(data, out=tmp_path / "there", client=client, **options)
    run_until(after(2), dfeas.one_vs_rest, data, out=tmp_path / "again", **options)
    dfeas.resume(tmp_path / "again")
    for name in sorted(set(names.tolist())):
        kept = [load(tmp_path / run / f"class-{name}" / "certificate.npz") for run in ("here", "there", "again")]
        assert len({(each.weights.tobytes(), each.view, each.fingerprint) for each in kept}) == 1


@pytest.mark.parametrize("kernel", ["rbf", dfeas.Kernel("polynomial", degree=2, coef0=1.0)], ids=str)
def test_equal_points_with_opposite_labels_conflict_however_they_are_seen(kernel: Any) -> None:
    X, labels = unlike(300)
    X, labels = np.vstack([X, X[7]]), np.append(labels, -labels[7])
    found = dfeas.solve(X, labels, kernel=kernel, transform=["std", "center"])
    assert (found.verdict, found.proof, found.support.tolist()) == ("infeasible", "exact", [7, 300])


def test_points_that_only_rounding_makes_equal_are_no_conflict() -> None:
    X, labels = np.array([[2.0**-30], [3 * 2.0**-30], [4e9], [-1e9]]), [1, -1, 1, -1]
    kernel = dfeas.Kernel("rbf", gamma=2.0**60)
    found = dfeas.solve(X, labels, kernel=kernel, transform="center")
    assert (found.verdict, found.proof) == ("undecided", "none")
    assert dfeas.solve(X, labels, kernel=kernel).verdict == "feasible"


def test_monomials_conflict_exactly_where_points_are_centred() -> None:
    X = np.array([[a, b] for a in range(-2, 3) for b in range(-2, 3)], np.float64) * [100, 3] + [7, 1]
    labels = np.where((np.arange(25) // 5 + np.arange(25) % 5) % 2, 1, -1)  # a chess board is of no degree below 4
    for way in (["std", "center"], ["maxabs"]):
        found = dfeas.solve(X, labels, kernel=dfeas.Kernel("polynomial", degree=2), transform=way)
        assert (found.verdict, found.proof) == ("infeasible", "exact")


@pytest.mark.parametrize("seed", [*range(40), 167, 1956])
def test_what_is_proved_is_true_of_the_fractions_that_a_transform_is(seed: int) -> None:
    """Two of these seeds are proofs that forget what a transform rounds."""
    kind = KernelProof()
    judged = kind.judge(kind.draw(seed))
    assert judged.word == Word.RIGHT, judged.text


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], dict[str, Any]], str]] = {
    "another mean": (lambda said: {"shift": [said["shift"][0] * (1 + 2**-40), *said["shift"][1:]]}, "is said to be centred at"),
    "another spread": (lambda said: {"factor": [2 * said["factor"][0], *said["factor"][1:]]}, "is said to be scaled by"),
    "a length": (lambda said: {"length": 3.0, "normalize": False}, "have a length of their own"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_certificate_with_other_numbers_is_refused(change: str, tmp_path: Path) -> None:
    X, labels = unlike(300)
    data = store(tmp_path, X, labels)
    dfeas.solve(data, kernel="rbf", transform=["std", "center"], out=tmp_path / "run")
    true: Certificate = load(tmp_path / "run" / "certificate.npz")
    assert dfeas.verify_certificate(data, tmp_path / "run" / "certificate.npz").verdict == "feasible"
    other, said = CHANGES[change]
    view = json.loads(true.view)
    view["transform"] |= other(view["transform"])
    text = json.dumps(view)
    mark = seen_fingerprint(dfeas.info(data).fingerprint, text)
    replace(true, view=text, fingerprint=mark).save(tmp_path / "forged.npz")
    with pytest.raises(DfeasError, match=said):
        dfeas.verify_certificate(data, tmp_path / "forged.npz")


def test_lengths_have_no_meaning_in_a_kernels_space() -> None:
    X, labels = unlike(30)
    for transform in ("lengths", ["std", "lengths"]):
        with pytest.raises(dfeas.UsageError, match="points have length 1 in a kernel's space: leave out 'lengths'"):
            dfeas.solve(X, labels, kernel="rbf", transform=transform)
