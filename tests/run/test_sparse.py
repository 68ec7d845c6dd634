"""Solves of sparse points: verdicts and proofs are those of the same points in an array; runs go on from a checkpoint."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import dfeas
from dfeas.data.generate.points import SparseInstance, generate
from dfeas.engine.local import LocalEngine
from dfeas.errors import CheckFailedError
from dfeas.linalg.separation import AT, sparse_columns
from dfeas.records import replace
from dfeas.verify.blocks import crc
from dfeas.verify.certificate import Certificate, load
from dfeas.verify.core import check
from tests.run.making import opened


def points(seed: int, n: int = 400, m: int = 30) -> sp.csr_array:
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, m)) < 0.2, rng.standard_normal((n, m)), 0)
    X[np.arange(n), rng.integers(0, m, n)] = 1
    return sp.csr_array(X)


@pytest.mark.parametrize(
    ("method", "intercept"), [("auto", True), ("auto", False), ("online-perceptron", True), ("winnow", False)]
)
def test_verdicts_are_those_of_an_array(method: str, intercept: bool) -> None:
    X = points(0)
    score = X @ np.random.default_rng(1).standard_normal(30)
    far = np.abs(score) > 0.5
    separable, labels = X[far], score[far] > 0
    for some, signs in ((separable, labels), (X, np.resize([0, 1, 1], 400))):
        options: dict[str, Any] = {"method": method, "intercept": intercept, "eps": 0.05}
        result, dense = dfeas.solve(some, signs, **options), dfeas.solve(some.toarray(), signs, **options)
        assert (result.verdict, result.proof, result.passes) == (dense.verdict, dense.proof, dense.passes)
        assert result.margin_lower == pytest.approx(dense.margin_lower, rel=1e-6)
        if max(result.margin_upper, dense.margin_upper) > 0:  # below, it is what their conflicts show, which may be two
            assert result.margin_upper == pytest.approx(dense.margin_upper, rel=1e-6, abs=1e-12)


def test_the_checker_proves_what_it_proves_of_an_array(tmp_path: Path) -> None:
    """To the last bits of its bounds, which depend on the number of terms."""
    X = points(2)
    labels = X @ np.random.default_rng(3).standard_normal(30) > 0
    for name, some in (("sparse", X), ("dense", X.toarray())):
        np.save(tmp_path / f"{name}.npy", labels)
        if name == "sparse":
            sp.save_npz(tmp_path / "sparse.npz", some)
            dfeas.ingest(tmp_path / "sparse.npz", tmp_path / "sparse", y=str(tmp_path / "sparse.npy"), block_rows=90)
        else:
            np.savez(tmp_path / "dense.npz", X=some, y=labels)
            dfeas.ingest(tmp_path / "dense.npz", tmp_path / "dense", block_rows=90)
    stored = {name: opened(tmp_path / name, intercept=False) for name in ("sparse", "dense")}
    rng = np.random.default_rng(0)
    near = dfeas.solve(tmp_path / "sparse", intercept=False).separator
    row = X[[5]].toarray()[0]
    touching = near - row * (near @ row) / (row @ row)  # its score of point 5 is rounding of zero
    weights = rng.random(400)
    certificates = [Certificate("separator", "", y=near), Certificate("separator", "", y=touching)]
    certificates.append(Certificate("gordan", "", support=np.arange(400), weights=weights / weights.sum()))
    for certificate in certificates:
        outcomes = []
        for dataset in stored.values():
            engine = LocalEngine(dataset, 1)
            try:
                proved = check(engine, dataset, replace(certificate, fingerprint=dataset.fingerprint))
                outcomes.append((proved.verdict, proved.proof, proved.margin_lower, proved.margin_upper))
            except CheckFailedError as error:
                outcomes.append(("refused", str(error), 0.0, 0.0))
            engine.close()
        assert outcomes[0][:2] == outcomes[1][:2]
        assert outcomes[0][2:] == pytest.approx(outcomes[1][2:], rel=1e-11, abs=1e-15)


def test_scores_that_float64_cannot_tell_are_decided(tmp_path: Path) -> None:
    tiny = 2.0**-60
    X = sp.csr_array(np.array([[1, -1 + 2.0**-52, 0, 0], [0, 0, 1, 0], [0, 0, 0, -1]]))
    sp.save_npz(tmp_path / "X.npz", X)
    np.save(tmp_path / "y.npy", [1, 1, 0])
    dfeas.ingest(tmp_path / "X.npz", tmp_path / "data", y=str(tmp_path / "y.npy"), sparse=True)
    dataset = opened(tmp_path / "data", intercept=False)
    engine = LocalEngine(dataset, 1)
    y = np.array([1.0, 1.0, 1.0, 1.0])
    proved = check(engine, dataset, Certificate("separator", dataset.fingerprint, y=y))
    assert (proved.verdict, proved.exact_points) == ("feasible", 1)
    assert 0 < proved.margin_lower <= 2.0**-53
    with pytest.raises(CheckFailedError, match="point 0 is not on the positive side"):
        check(engine, dataset, Certificate("separator", dataset.fingerprint, y=y + np.array([0, 2 * 2.0**-52, 0, tiny])))
    engine.close()


def test_a_conflict_among_many_features_is_proved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sparse_columns, "AT", replace(AT, direct_sparse=150)
    )  # conjugate gradients, and conflicts without absent features
    texts = SparseInstance("one-flip", 200, 600, 0.05, margin=0.005, block_rows=100)
    generate(texts, tmp_path / "data")
    result = dfeas.solve(tmp_path / "data", out=tmp_path / "run")
    assert (result.verdict, result.proof, len(result.support)) == ("infeasible", "exact", 2)
    assert dfeas.verify_run(tmp_path / "run").proof == "exact"
    assert texts.wrong_point in result.support


def test_a_run_goes_on_from_its_checkpoint_with_the_same_bits(tmp_path: Path) -> None:
    generate(SparseInstance("planted", 600, 2000, 0.015, margin=0.001, block_rows=100), tmp_path / "data")
    options: dict[str, Any] = {"method": "working-set", "memory": "110MB"}
    whole = dfeas.solve(tmp_path / "data", out=tmp_path / "whole", **options)
    part = dfeas.solve(tmp_path / "data", out=tmp_path / "part", max_passes=1, **options)
    assert (whole.verdict, part.verdict) == ("feasible", "undecided")
    resumed = dfeas.resume(tmp_path / "part", max_passes=100)
    assert resumed.verdict == "feasible"
    assert np.array_equal(load(tmp_path / "part" / "certificate.npz").y, load(tmp_path / "whole" / "certificate.npz").y)


def test_crc_tells_where_entries_are() -> None:
    X = points(0)
    moved = X.copy()
    moved.indptr[3] -= 1
    assert crc(X) != crc(moved)


def test_a_conflict_that_float64_does_not_show_is_found_as_among_dense_points() -> None:
    rng = np.random.default_rng(25)
    X = rng.integers(-9, 10, (200, 4)).astype(float)
    y = (2 * (X @ [1, -2, 3, 1]) + 1 > 0).astype(int)
    y[5] = 1 - y[5]
    found = dfeas.solve(sp.csr_array(X + 2.0**25), y)
    assert (found.verdict, found.proof) == ("infeasible", "exact")
