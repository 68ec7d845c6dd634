"""One class against the rest with a kernel: the answers of separate solves, from values that are computed once."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import dfeas
from dfeas.cli.main import commands
from dfeas.data.dataset import Dataset
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.engine.local import LocalEngine
from dfeas.errors import CheckFailedError, UsageError
from dfeas.geometry.prediction import Prediction
from dfeas.kernels.gram import GramProduct
from dfeas.kernels.kernel import NormalisedKernel, kernel_of
from dfeas.kernels.space import KernelSpace
from dfeas.kernels.working_set import KernelSelect
from dfeas.run.cost import abreast
from dfeas.verify.certificate import load
from tests.kernels.dense import dense
from tests.run.test_resume import after, run_until

NAMES = ("ant", "bee", "cat")


def rings(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three classes around each other, a little apart."""
    rng = np.random.default_rng(seed)
    place = rng.integers(0, 3, n)
    X = rng.standard_normal((n, 3))
    X *= ((1 + 2 * place + 0.8 * rng.random(n)) / np.linalg.norm(X, axis=1))[:, None]
    return X.astype(np.float32), np.array(NAMES)[place]


def coded(X: np.ndarray, labels: np.ndarray, rows: int) -> Dataset:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dfeas.data.storage.layout.BLOCK_BYTES", rows * X[0].nbytes)
        return open_source(Source(DataSpec(X, labels, intercept=False, one_vs_rest=True)))


def test_products_of_classes_share_their_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    X, labels = rings(120)
    kernel = kernel_of("polynomial", 0.7)[0]
    engine, rng = LocalEngine(coded(X, labels, 50), 1), np.random.default_rng(1)
    asked = [GramProduct(kernel, rng.standard_normal((120, 2)), signed=code < 2).of_class(code) for code in range(3)]
    counted: list[int] = []
    tile = NormalisedKernel.tile

    def counting(self: NormalisedKernel, left: Any, right: Any) -> Any:
        counted.append(left.points.shape[0] * right.points.shape[0])
        return tile(self, left, right)

    monkeypatch.setattr(NormalisedKernel, "tile", counting)
    engine.run(asked[0])
    alone, counted[:] = sum(counted), []
    answers = engine.run(asked[0].batch(asked))
    engine.close()
    assert sum(counted) == alone
    for code, (question, answer) in enumerate(zip(asked, answers, strict=True)):
        G = dense(kernel, X.astype(float), np.where(labels == NAMES[code], 1, -1) if code < 2 else np.ones(120))
        assert np.allclose(answer, G @ question.V, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_selections_of_classes_are_those_of_each_alone(dtype: type) -> None:
    X, labels = rings(300)
    X, rng, kernel = X.astype(dtype), np.random.default_rng(2), kernel_of("rbf", 0.3)[0]
    engine = LocalEngine(coded(X, labels, 80), 2)
    asked = []
    for code in range(3):
        index = np.sort(rng.choice(100, 20 + code, replace=False))  # many are in two of them
        asked.append(KernelSelect(kernel, index, X[index], rng.standard_normal(len(index)), 0.1, 40, 20).of_class(code))
    for question, mine in zip(asked, engine.run(asked[0].batch(asked)), strict=True):
        alone = engine.run(question)
        assert (mine.violated, mine.arg) == (alone.violated, alone.arg)
        assert mine.low == pytest.approx(alone.low, abs=1e-12)
        assert np.array_equal(mine.columns.index, alone.columns.index)
        assert np.array_equal(mine.columns.scale, alone.columns.scale)
    engine.close()


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Separable but for one point of a class that is there again with another one."""
    folder = tmp_path_factory.mktemp("classes")
    X, labels = rings(4000)
    far = np.flatnonzero(labels == "cat")[-1]
    X, labels = np.vstack([X, X[far]]), np.append(labels, "bee")
    np.savez(folder / "a.npz", X=X, y=labels)
    dfeas.ingest(folder / "a.npz", folder / "data", block_rows=500)
    return folder / "data"


@pytest.mark.parametrize(("method", "passes"), [("working-set", 12), ("mirror-prox", 3)])
def test_both_engines_and_a_second_start_give_the_same_bits(
    client: Any, data: Path, tmp_path: Path, method: str, passes: int
) -> None:
    options: dict[str, Any] = {"kernel": "rbf", "method": method, "max_passes": passes}
    here = dfeas.one_vs_rest(data, out=tmp_path / "here", **options)
    dfeas.one_vs_rest(data, out=tmp_path / "there", client=client, **options)
    run_until(after(1), dfeas.one_vs_rest, data, out=tmp_path / "again", **options)
    dfeas.resume(tmp_path / "again")
    for name in NAMES:
        bits = []
        for run in ("here", "there", "again"):
            kept = load(tmp_path / run / f"class-{name}" / "certificate.npz")
            bits.append((kept.support.tobytes(), kept.weights.tobytes(), kept.fingerprint))
        assert bits[0] == bits[1] == bits[2]
    if method == "working-set":
        found = {name: (result.verdict, result.proof) for name, result in here.results.items()}
        assert found == {"ant": ("feasible", "rigorous"), "bee": ("infeasible", "exact"), "cat": ("infeasible", "exact")}
        assert {entry["point"] for entry in here.results["bee"].conflicts} >= {4000}
        assert here.reads < max(result.reads for result in here.results.values()) + 4


def test_a_run_is_a_run_for_all_commands(data: Path, tmp_path: Path) -> None:
    def dfeas_(*words: Any) -> Any:
        return CliRunner().invoke(commands, [str(word) for word in words])

    run = tmp_path / "run"
    done = dfeas_("solve", data, "--one-vs-rest", "--kernel", "exponential", "--out", run)
    assert done.exit_code == 0, done.output
    assert "ant: proved feasible (rigorous)" in dfeas_("verify", run).output
    assert dfeas_("verify", run / "class-bee").exit_code == 0
    assert "2 of 3 classes have no separator" in dfeas_("predict", run, data, tmp_path / "p.npy").output
    checks = dfeas.verify_run(run).classes
    assert checks["ant"] is not None
    alone = dfeas.verify_certificate(data, run / "class-ant" / "certificate.npz", positive="ant")
    assert alone.margin_lower == pytest.approx(checks["ant"].margin_lower, rel=1e-4)
    (run / "class-ant" / "certificate.npz").write_bytes((run / "class-bee" / "certificate.npz").read_bytes())
    with pytest.raises(CheckFailedError, match="another class"):
        dfeas.verify_run(run)


def test_points_get_their_classes(tmp_path: Path) -> None:
    X, labels = rings(600)
    labels[17] = "one"  # a class of a single point, in the middle of another one
    np.savez(tmp_path / "a.npz", X=X, y=labels)
    dfeas.ingest(tmp_path / "a.npz", tmp_path / "data")
    found = dfeas.one_vs_rest(tmp_path / "data", kernel=dfeas.Kernel("rbf", gamma=5.0), out=tmp_path / "run", eps=1e-6)
    assert {result.verdict for result in found.results.values()} == {"feasible"}
    predicted = dfeas.predict(tmp_path / "run", tmp_path / "data", out=tmp_path / "p.npy")
    assert isinstance(predicted, Prediction)
    assert predicted.accuracy == 1.0
    assert (np.array(predicted.classes)[np.load(tmp_path / "p.npy")] == labels).all()
    with pytest.raises(UsageError, match="winnow does not work with a kernel"):
        dfeas.one_vs_rest(X, labels, kernel="rbf", method="winnow")


def test_classes_wait_where_memory_holds_some_of_them() -> None:
    X, labels = rings(3000)
    dataset = open_source(Source(DataSpec(X, labels, intercept=False, one_vs_rest=True)))
    space = KernelSpace(kernel_of("rbf", 1.0)[0])
    assert abreast(space, "working-set", 3, dataset, 10**9) == 3
    assert abreast(space, "mirror-prox", 1000, dataset, 10**8) < 100
    X, labels = rings(400)
    found = dfeas.one_vs_rest(X, labels, kernel="rbf", method="mirror-prox", memory="20MB")
    assert [result.verdict for result in found.results.values()] == ["feasible"] * 3
