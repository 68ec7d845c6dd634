"""Complete, quasi-complete, overlap: against linear programming in rational arithmetic, with evidence that is checked here."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy
from click.testing import CliRunner

import dfeas
from dfeas.cli.main import commands
from dfeas.errors import CheckFailedError
from dfeas.exact.dyadic import common
from dfeas.verify.certificate import Kind
from tests.analysis.making import forged
from tests.conformance.checkers import CheckerTests
from tests.exact import conflicts


def dummies(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Groups as dummy variables and two numbers; everybody in group 2 has label 1: quasi-complete, with the intercept."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 4, n)
    X = np.hstack([(group[:, None] == [1, 2, 3]).astype(float), rng.integers(0, 9, (n, 2))])
    labels = rng.integers(0, 2, n)
    labels[group == 2] = 1
    return X, labels


def test_a_group_with_one_outcome_is_quasi_complete(tmp_path: Path) -> None:
    X, labels = dummies(3000, 0)
    found = dfeas.separation(X, labels, intercept=True, out=tmp_path / "run")
    assert (found.kind, found.proof, found.on) == ("quasi-complete", "exact", int((X[:, 1] == 0).sum()))
    y = np.array(found.y, object)
    assert y[1] > 0
    assert not y[[0, 2, 3, 4, 5]].any()
    written = json.loads((tmp_path / "run" / "separation.json").read_text())
    assert written["y"] == found.y
    assert written["kind"] == "quasi-complete"
    labels[np.flatnonzero(X[:, 1])[0]] = 0
    assert dfeas.separation(X, labels, intercept=True).kind == "overlap"


def test_it_is_the_same_on_a_cluster(tmp_path: Path, client: Any) -> None:
    X, labels = dummies(3000, 1)
    np.savez(tmp_path / "both.npz", X=X, y=labels)
    dfeas.ingest(tmp_path / "both.npz", tmp_path / "data")
    here = dfeas.separation(tmp_path / "data", intercept=True)
    there = dfeas.separation(tmp_path / "data", intercept=True, client=client)
    assert here.to_json() == there.to_json()
    assert here.kind == "quasi-complete"


def test_features_that_depend_on_each_other_are_said() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, (500, 3)).astype(float)
    X = np.hstack([X, X[:, :1] + X[:, 1:2]])
    found = dfeas.separation(X, rng.integers(0, 2, 500), intercept=False)
    assert (found.kind, found.proof, found.rank) == ("overlap", "exact", 3)
    (relation,) = found.flat
    assert relation in ([1, 1, 0, -1], [-1, -1, 0, 1])
    assert "not a unique one" in found.message


def test_a_limit_leaves_it_open(tmp_path: Path) -> None:
    X, labels = dummies(3000, 0)
    found = dfeas.separation(X, labels, method="perceptron", max_passes=1, out=tmp_path / "run")
    assert (found.kind, found.stopped) == (None, "pass_limit")
    assert not (tmp_path / "run" / "separation.json").exists()


def test_what_is_open_after_the_verdict_is_said_and_goes_on(tmp_path: Path) -> None:
    X, labels = dummies(3000, 0)
    run = tmp_path / "run"
    dfeas.ingest(X, tmp_path / "data", y=labels)

    def typed(*words: object) -> tuple[int, str]:
        done = CliRunner().invoke(commands, [*map(str, words)])
        return done.exit_code, done.output

    found = dfeas.separation(tmp_path / "data", max_passes=1, out=run)
    assert (found.result.verdict, found.kind, found.stopped) == ("infeasible", None, "pass_limit")
    assert dfeas.load(run).to_json() == found.to_json()
    assert dfeas.verify_run(run).separation == Kind("not decided", "none")
    assert f"{run}: resumable, separation not decided" in typed("status", run)[1]
    assert "separation</dt><dd>not decided (proof: none); not decided: the limit of passes" in dfeas.report(run).read_text()
    assert typed("resume", run)[0] == 3
    code, out = typed("resume", run, "--max-passes", 99)
    assert (code, "separation   quasi-complete (proof: exact)" in out) == (0, True)
    assert f"{run}: infeasible, separation quasi-complete" in typed("status", run)[1]


@pytest.mark.parametrize("intercept", [False, True])
def test_zero_points_change_nothing(intercept: bool) -> None:
    X, labels = dummies(2000, 2)
    expected = dfeas.separation(X, labels, intercept=intercept)
    X = np.vstack([X, np.zeros((1, X.shape[1]))])
    found = dfeas.separation(X, np.append(labels, 0), intercept=intercept)
    assert found.kind == ("overlap" if expected.kind == "overlap" else "quasi-complete")


@pytest.mark.parametrize("seed", range(4))
def test_what_holds_up_to_rounding_only_is_decided_as_it_is_exactly(seed: int) -> None:
    X, labels = dummies(120, seed)
    X = X @ np.linalg.qr(np.random.default_rng(seed).normal(size=(5, 5)))[0]
    found = dfeas.separation(X, labels, intercept=bool(seed % 2))
    wide = np.hstack([X, np.ones((len(X), 1))]) if seed % 2 else X
    A = common(wide * np.where(labels == 1, 1.0, -1.0)[:, None])[0].T
    assert found.kind == ("complete" if not conflicts(A) else found.kind)
    assert found.kind in ("quasi-complete", "overlap")
    assert found.proof == "exact"


def _run(kind: str, folder: Path) -> Path:
    X, labels = dummies(600, 0)
    if kind.startswith("overlap"):
        labels[np.flatnonzero(X[:, 1])[0]] = 0
    if kind == "overlap in a plane":
        X[:, 4] = X[:, 3] - 2 * X[:, 0]
    if kind == "complete":
        labels = np.where(X @ np.arange(1, 6) > 20, 1, 0)
    np.savez(folder / "both.npz", X=X, y=labels)
    dfeas.ingest(folder / "both.npz", folder / "data")
    found = dfeas.separation(folder / "data", intercept=True, out=folder / "run")
    assert (found.kind, len(found.flat)) == (kind.split(" ")[0], "plane" in kind)
    return folder / "run"


FORGED: list[tuple[str, dict[str, Any]]] = [
    ("complete", {"kind": "overlap", "support": [1, 2]}),
    ("complete", {"proof": "exact"}),
    *(("complete", each) for each in ({"support": [1, 2]}, {"weights": [1]}, {"rank": 1}, {"on": 1}, {"flat": [[0, 1]]})),
    ("quasi-complete", {"kind": "complete"}),
    ("quasi-complete", {"kind": "overlap"}),
    ("quasi-complete", {"y": [0, 1, 0, 0, 0, 1]}),
    ("quasi-complete", {"y": [0, 0, 0, 0, 0, 0]}),
    ("quasi-complete", {"y": [1]}),
    ("quasi-complete", {"y": None}),
    ("quasi-complete", {"y": "all"}),
    *(("quasi-complete", {key: value}) for key in ("y", "support", "weights") for value in (["0x1"], [True], [0.5], [None])),
    ("quasi-complete", {"flat": [[]]}),
    ("quasi-complete", {"on": True}),
    ("quasi-complete", {"rank": None}),
    ("quasi-complete", {"on": 3}),
    ("quasi-complete", {"fingerprint": "0"}),
    ("overlap", {"support": [0, 1]}),
    ("overlap", {"support": [[0, 1]]}),
    ("overlap", {"support": [5, 10**9]}),
    ("overlap", {"support": None}),
    ("overlap", {"weights": None}),
    ("overlap", {"weights": [1, 2]}),
    ("overlap", {"proof": "floating_point"}),
    ("quasi-complete", {"kind": "overlap", "flat": [[0, 1, 0, 0, 0, 0]]}),
    ("quasi-complete", {"support": None, "weights": None}),
    ("quasi-complete", {"proof": "rigorous"}),
    ("overlap", {"support": [0], "weights": [1], "rank": 1}),
    ("overlap", {"rank": 3}),
    ("overlap", {"proof": "rigorous"}),
    ("overlap", {"kind": "nothing"}),
    ("overlap", {"kind": ""}),
    ("quasi-complete", {"kind": None}),
    ("overlap", {"kind": "quasi-complete", "y": [0, 1, 0, 0, 0, 0], "proof": "exact"}),
]


def changed(kind: str, change: dict[str, Any]) -> Callable[[Path], Path | None]:
    """Something else in the file of a run of this kind; none in those of others."""

    def made(run: Path) -> Path | None:
        held = json.loads((run / "separation.json").read_text())["kind"]
        return forged_with(run, change) if held == kind else None

    return made


def forged_with(run: Path, change: dict[str, Any]) -> Path:
    return forged(run, lambda values: values.update(change), "separation.json")


class TestProofs(CheckerTests):
    """Kinds of separation are proved again from the file and the data, and nothing else is."""

    names = ("complete", "quasi-complete", "overlap", "overlap in a plane")
    changes: ClassVar[dict[str, Callable[[Path], Path | None]]] = {
        f"{kind} {what}": changed(kind, what) for kind, what in FORGED
    }

    @pytest.fixture(autouse=True)
    def folder_of_runs(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def claim(self, name: str) -> Path:
        return _run(name, self.folder)

    def check(self, claim: Path, threads: int = 1) -> Any:
        return dfeas.verify_run(claim).separation

    def require_true(self, claim: Path, proved: Any) -> None:
        kind = json.loads((claim / "separation.json").read_text())["kind"]
        assert (proved.kind, proved.proof) == (kind, "rigorous" if kind == "complete" else "exact")


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("seed", range(4))
def test_a_hyperplane_that_leaves_points_on_it_which_another_has_beyond_is_refused(
    seed: int, sparse: bool, tmp_path: Path
) -> None:
    """A pair that cancels, its multiples, points e_2 that all but the worse hyperplane have beyond, and e_3, in other axes."""
    rng = np.random.default_rng(seed)
    turn = np.tril(rng.integers(-3, 4, (5, 5)), -1) + np.eye(5, dtype=int)  # of determinant 1
    back = np.linalg.inv(turn).round().astype(int)
    plain = np.array([[1, 0, 0, 0, 0], [-1, 0, 0, 0, 0], [2, 0, 0, 0, 0], [1, 1, 0, 0, 0], [-3, 2, 0, 0, 0], [1, 0, 1, 0, 0]])
    labels = np.array([1, 0, 0, 1, 1, 0])
    points = ((2 * labels - 1)[:, None] * plain @ turn).astype(float)
    dfeas.ingest(scipy.sparse.csr_array(points) if sparse else points, tmp_path / "data", y=labels)
    run = tmp_path / "run"
    assert dfeas.separation(tmp_path / "data", intercept=False, out=run).on == 3
    claim = {"support": [0, 1], "weights": [1, 1], "rank": 1, "kind": "quasi-complete"}
    best, worse, all_on = ((back @ y).tolist() for y in ([0, 1, 1, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 1]))
    assert dfeas.verify_run(forged_with(run, claim | {"y": best, "on": 3})).separation.proof == "exact"
    for change, refusal in (
        ({"y": worse, "on": 5}, "point 3 is on the hyperplane and not in what the points of the support span"),
        ({"kind": "overlap", "y": None, "on": 0, "flat": [all_on] * 4}, "no basis says that all points stay in them"),
        (
            {"kind": "complete", "y": None, "on": 0, "support": None, "weights": None, "rank": None},
            "complete, infeasible is proved",
        ),
    ):
        with pytest.raises(CheckFailedError, match=refusal):
            dfeas.verify_run(forged_with(run, claim | change))


@pytest.mark.parametrize("seed", range(4))
def test_a_separator_beyond_the_range_of_floats_is_no_crash(seed: int) -> None:
    """Features of 1e91 and 1e-282: a separator has entries 372 decades apart, and its integers are not sums of floats."""
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal((24, 3))
    labels = np.where(hidden @ rng.standard_normal(3) > 0, 1, -1)
    answer = dfeas.check_separation(hidden * [1e-114, 1e91, 1e-282], labels, intercept=True)
    assert answer.kind == "complete"


@pytest.mark.parametrize("seed", [*range(6), *range(7, 10)])  # of 6 all points are of one class
@pytest.mark.parametrize("transform", [(), "center"])
def test_classes_are_right_of_points_a_few_units_in_the_last_place_apart(seed: int, transform: Any) -> None:
    """Though the plane that is returned is a rounding of the one that was proved."""
    rng, m = np.random.default_rng(seed), 1 + seed % 3
    base = 2.0 ** rng.integers(20, 48, m)
    step = np.spacing(base) * 2.0 ** rng.integers(0, 6, m)
    X = base + rng.integers(-5, 6, (6, m)) * step
    away = (X - base) @ (rng.integers(-3, 4, m) / step)
    labels = np.where(away > np.median(away), 1.0, -1.0)
    result = dfeas.solve(X, labels, transform=transform)
    assert result.verdict != "feasible" or np.array_equal(result.predict(X), labels)
