"""Points in and out of hulls, against rational arithmetic and by hand; the evidence is that of the stored points."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dfeas
from dfeas.errors import CheckFailedError, CorruptDataError
from dfeas.exact.dyadic import Dyadic
from dfeas.verify.certificate import Kind
from tests.exact import conflicts


def inside(point: np.ndarray, X: np.ndarray) -> bool:
    """In rational arithmetic: (x_j, 1) and -(p, 1) conflict."""
    columns = np.vstack([np.hstack([X, np.ones((len(X), 1))]), -np.append(point, 1.0)])
    return conflicts(Dyadic.of(columns.astype(np.float64).T).digits)


def test_a_large_hull(tmp_path: Path) -> None:
    offset = 1e5
    X = (np.random.default_rng(0).standard_normal((30_000, 12)) + offset).astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    np.savez(tmp_path / "both.npz", X=X, y=np.arange(len(X)) % 2)
    dfeas.ingest(tmp_path / "both.npz", tmp_path / "data")
    centre, far = X.astype(float).mean(axis=0), X[np.linalg.norm(X - offset, axis=1).argmax()].astype(float)
    outside = offset + 1.01 * (far - offset)
    for name, point, expected in (("centre", centre, True), ("vertex", far, True), ("outside", outside, False)):
        found = dfeas.in_hull(point, tmp_path / "data", out=tmp_path / name)
        assert found.inside == expected, name
        assert found.inside == dfeas.in_hull(point, X).inside
        assert dfeas.verify_run(tmp_path / name).verdict == found.result.verdict
    values = json.loads((tmp_path / "centre" / "result.json").read_text())
    values["data"]["point"][0] += 1.0
    (tmp_path / "centre" / "result.json").write_text(json.dumps(values))
    with pytest.raises((CorruptDataError, CheckFailedError)):
        dfeas.verify_run(tmp_path / "centre")


def test_a_difference_that_rounds_is_decided_from_what_is_stored() -> None:
    # the differences round to 1 and -1
    assert dfeas.in_hull([2.0**-60], np.array([[1.0], [-1.0]])).inside is True
    # the differences round to points on one line, with the origin between them; the point is on it or beside it
    X = np.array([[1.0, 1.0], [-1.0, -1.0]])
    for point, expected in (([2.0**-60, 2.0**-60], True), ([2.0**-60, 0.0], False), ([0.5, 0.5 + 2.0**-53], False)):
        assert inside(np.array(point), X) is expected
        assert dfeas.in_hull(point, X).inside is expected, point


def test_what_float64_cannot_tell_is_proved_again_from_the_files(tmp_path: Path) -> None:
    told = set()
    for seed in range(16):
        rng = np.random.default_rng(seed)
        X = rng.integers(-2, 3, (6, 3)) + rng.standard_normal((6, 3)) * 1e-14
        point = X[:2].mean(axis=0)
        found = dfeas.in_hull(point, X)
        assert found.inside is inside(point, X)
        kind = "integers" if found.result.evidence.integers else None if found.exactly is None else found.exactly.kind
        if kind is None or kind in told:
            continue
        told.add(kind)
        np.savez(tmp_path / f"{seed}.npz", X=X, y=np.arange(6) % 2)
        dfeas.ingest(tmp_path / f"{seed}.npz", tmp_path / f"data{seed}")
        run = tmp_path / f"run{seed}"
        dfeas.in_hull(point, tmp_path / f"data{seed}", out=run)
        proved = dfeas.verify_run(run)
        if kind == "integers":
            assert (proved.verdict, proved.proof, found.inside) == ("feasible", "exact", False)
        else:
            assert proved.separation == Kind(kind, "exact")
    assert told == {"integers", "overlap"}


def test_a_hull_resumed_is_a_hull(tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((300, 4))
    early = dfeas.in_hull(2 * X.max(axis=0), X, method="perceptron", max_passes=1, out=tmp_path / "run")
    assert (early.inside, early.result.stopped) == (None, "pass_limit")
    found = dfeas.resume(tmp_path / "run", X, max_passes=1000)
    assert isinstance(found, dfeas.Hull)
    assert found.inside is False


def test_damaged_points_are_noticed(dataset: Callable[..., Any]) -> None:
    path, _ = dataset("gaussian", 8, 4000, block_rows=500)
    (file,) = (path / "X").glob("c*3*")
    file.write_bytes(b"\x01" + file.read_bytes()[1:])
    with pytest.raises(CorruptDataError, match="chunk 3 of X is damaged"):
        dfeas.in_hull([0.0] * 8, path)
