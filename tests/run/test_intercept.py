"""The default of the intercept, of every verb, estimator and command: points with labels have one, all others have none.

Points on a line, two groups on one side of zero: with an intercept they are separated, and without one they are not.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr

import dfeas
from dfeas.estimators import KernelSeparator, LinearSVC, LinearSVCCV, Separator
from tests.typed import dfeas as typed

X = np.array([[1.0], [1.5], [2.0], [4.0], [4.5], [5.0]])
Y = np.array(["low"] * 3 + ["up"] * 3)
LABELS = np.arange(6) > 2
ON_BOTH_SIDES = np.array([[1.0], [-1.0]])  # of zero: all are positive only by an intercept


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The points in every form that has a path."""
    monkeypatch.chdir(tmp_path)
    dfeas.ingest(X, "data", y=Y)
    dfeas.ingest(X, "also", y=Y)
    zarr.create_array("bare.zarr", data=ON_BOTH_SIDES, chunks=(1, 1))
    zarr.create_array("foreign.zarr", data=X, chunks=(3, 1))
    np.save("X.npy", X)
    np.save("y.npy", LABELS)
    np.savez("small.npz", X=X, y=LABELS)
    Path("table.csv").write_text("size,kind\n" + "".join(f"{x},{y}\n" for (x,), y in zip(X, Y, strict=True)))
    return tmp_path


WITH_LABELS: dict[str, Callable[..., Any]] = {
    "arrays": lambda **more: dfeas.solve(X, Y, **more),
    "dataset": lambda **more: dfeas.solve("data", **more),
    "one class": lambda **more: dfeas.solve("data", positive="low", **more),
    "joined": lambda **more: dfeas.solve(["data", "also"], **more),
    "other labels": lambda **more: dfeas.solve("data", "y.npy", **more),
    "foreign": lambda **more: dfeas.solve("foreign.zarr", "y.npy", **more),
    "npy": lambda **more: dfeas.solve("X.npy", "y.npy", **more),
    "npz": lambda **more: dfeas.solve("small.npz", **more),
    "column": lambda **more: dfeas.solve("table.csv", "kind", **more),
    "lazy": lambda **more: dfeas.solve(da.from_array(X, chunks=(2, 1)), Y, **more),
    "classes": lambda **more: dfeas.one_vs_rest(X, Y, **more).results["up"],
    "race": lambda **more: dfeas.race(X, Y, methods=["perceptron", "working-set"], **more).results["working-set"],
}


@pytest.mark.parametrize("name", WITH_LABELS)
def test_points_with_labels_have_an_intercept(room: Path, name: str) -> None:
    ask = WITH_LABELS[name]
    found = ask()
    assert found.verdict == "feasible"
    assert found.separator.shape == (2,)
    assert (found.predict(X) == found.predict(X[:1])).tolist() == [True] * 3 + [False] * 3
    assert ask(intercept=False).verdict == "infeasible"


def test_the_other_verbs_have_it_of_points_with_labels() -> None:
    assert dfeas.hard_margin(X, Y).result.verdict == "feasible"
    assert dfeas.hard_margin(X, Y).bias != 0
    assert dfeas.separation(X, Y).kind == "complete"
    assert dfeas.separation(X, Y, intercept=False).kind == "overlap"
    assert dfeas.check_separation(X, Y).kind == "complete"
    fit = dfeas.soft_margin(X, Y, C=100)
    assert fit.y.shape == (2,)
    assert fit.predict(X).tolist() == Y.tolist()
    assert dfeas.soft_margin(X, Y, C=100, intercept=False).y.shape == (1,)
    memory = [dfeas.plan(X, Y, **more).estimates[0].memory_bytes for more in ({}, {"intercept": True}, {"intercept": False})]
    assert memory[0] == memory[1] > memory[2]


@pytest.mark.parametrize(
    "model", [Separator(), LinearSVC(C=100), LinearSVCCV(Cs=[10, 100], folds=3), KernelSeparator()], ids=repr
)
def test_estimators_have_it_but_in_the_space_of_a_kernel(model: Any) -> None:
    assert model.fit(X, Y).predict(X).tolist() == Y.tolist()
    assert isinstance(model, KernelSeparator) or (model.fit(X, Y).intercept_ != 0).all()
    assert [found.verdict for found in KernelSeparator(kernel="linear").fit(X, Y).results_] == ["infeasible"]


WITHOUT: dict[str, Callable[[], Any]] = {
    "no labels": lambda: dfeas.solve(ON_BOTH_SIDES, "all-positive"),
    "a path without labels": lambda: dfeas.solve("bare.zarr", "all-positive"),
    "a race": lambda: dfeas.race(ON_BOTH_SIDES, "all-positive", methods=["perceptron", "working-set"]).results["working-set"],
    "a kernel": lambda: dfeas.solve(X, Y, kernel="linear"),
    "a kernel of a dataset": lambda: dfeas.solve("data", kernel="linear"),
    "cones": lambda: dfeas.solve(dfeas.from_cone_rows(np.array([[1.0], [-1.0]]), {"l": 2})),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_others_have_none(room: Path, name: str) -> None:
    found = WITHOUT[name]()
    assert found.verdict == "infeasible"
    assert found.to_json()["intercept"] is False


def test_a_hull_has_none() -> None:
    assert dfeas.in_hull([3.0], X).inside
    assert not dfeas.in_hull([6.0], X).inside


def test_a_certificate_is_verified_with_the_same_default(room: Path) -> None:
    dfeas.solve("data", out="run")
    dfeas.solve("data", intercept=False, out="papers")
    dfeas.solve("data", kernel="rbf", out="kernel")
    dfeas.solve("bare.zarr", "all-positive", out="bare")
    for words, (code, said) in {
        ("data", "run"): (0, "proved       feasible"),
        ("data", "run", "--no-intercept"): (6, ""),
        ("data", "papers"): (6, ""),  # which says --no-intercept
        ("data", "papers", "--no-intercept"): (0, "proved       infeasible"),
        ("data", "kernel"): (0, "proved       feasible"),
        ("bare.zarr", "bare"): (0, "proved       infeasible"),
    }.items():
        done = typed("verify", words[0], f"{words[1]}/certificate.npz", *words[2:])
        assert (done.returncode, done.stdout.startswith(said)) == (code, True), (words, done.stdout, done.stderr)
    assert dfeas.verify_certificate("data", "run/certificate.npz").verdict == "feasible"
    assert dfeas.verify_certificate("data", "papers/certificate.npz", intercept=False).verdict == "infeasible"
    for run in ("run", "papers", "kernel", "bare"):
        assert dfeas.verify_run(run).verdict == json.loads(Path(run, "result.json").read_text())["verdict"]


def test_a_run_that_goes_on_keeps_what_it_had(room: Path) -> None:
    for given, expected in (({}, "feasible"), ({"intercept": False}, "infeasible")):
        out = f"run-{expected}"
        options: dict[str, Any] = {"method": "mirror-prox", "eps": 1e-2, **given}
        assert dfeas.solve("data", out=out, max_passes=1, **options).stopped == "pass_limit"
        resumed: Any = dfeas.resume(out, max_passes=5000)
        assert resumed.verdict == expected
        assert resumed.to_json()["intercept"] is (expected == "feasible")
        assert resumed.margin_upper == dfeas.solve("data", max_passes=5000, **options).margin_upper
