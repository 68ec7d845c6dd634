"""Complete, quasi-complete, overlap: against linear programming in rational arithmetic, with evidence that is checked here."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import dfeas
from dfeas.cli.main import commands
from dfeas.exact.dyadic import common
from dfeas.verify.certificate import Kind
from tests.conformance.checkers import CheckerTests
from tests.exact import conflicts, small_instance


def kind_of(A: np.ndarray) -> str:
    """In rational arithmetic, for integers A (m, n): y with A'y >= 0 and y'a_j > 0 for one j, by Farkas' lemma."""
    if not conflicts(A):
        return "complete"
    # a_j can be positive exactly when -a_j is not in the cone of all: x >= 0, x_j = 1 with Ax = 0 does not exist
    forced = [in_cone(A, -A[:, j]) for j in range(A.shape[1])]
    return "overlap" if all(forced) else "quasi-complete"


def in_cone(A: np.ndarray, b: np.ndarray) -> bool:
    """Whether Ax = b has a solution x >= 0: then so has Ax - t b = 0 with t > 0, which an extra row tells."""
    m, n = A.shape
    if not b.any():
        return True
    # columns (a_j, 0), (-b, 1), (0, -1): a conflict weighs the last two alike; one of the a_j alone is no conflict of interest
    wide = np.zeros((m + 1, n + 2), int)
    wide[:m, :n], wide[:m, n], wide[m, n], wide[m, n + 1] = A, -b, 1, -1
    return forced_weight(wide, n)


def forced_weight(A: np.ndarray, j: int) -> bool:
    """Whether x >= 0, Ax = 0, x_j = 1 has a solution, by linear programming over small integers."""
    from scipy.optimize import linprog

    wanted = np.zeros(A.shape[1])
    wanted[j] = 1
    found = linprog(np.zeros(A.shape[1]), A_eq=np.vstack([A, wanted]), b_eq=np.append(np.zeros(len(A)), 1), method="highs")
    return bool(found.status == 0)


@given(st.integers(0, 100_000))
@settings(max_examples=80)
def test_small_instances_are_classified_as_in_linear_programming(seed: int) -> None:
    A = small_instance(seed)
    found = dfeas.separation(A.T.astype(float), "all-positive")
    assert found.kind == kind_of(A)
    if found.kind == "quasi-complete":
        assert found.proof == "exact"
        assert found.y is not None
        scores = np.array(found.y, object) @ A.astype(object)
        assert (scores >= 0).all()
        assert (scores > 0).any()
        assert (scores == 0).sum() == found.on
    if found.kind == "overlap" and np.linalg.matrix_rank(A) == len(A):
        assert found.proof == "exact"


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


def test_data_in_general_position_overlaps_or_is_complete(dataset: Callable[..., Any]) -> None:
    path, _ = dataset("gaussian", 8, 4000)
    found = dfeas.separation(path, intercept=False)
    assert (found.kind, found.proof, found.rank) == ("overlap", "exact", 8)


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


def test_what_is_open_after_the_verdict_is_said_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    monkeypatch.setattr("dfeas.analysis.separation.search", lambda *args: "nothing was found")
    found = dfeas.separation(tmp_path / "data", out=run, force=True)
    assert (found.result.stopped, found.stopped) == ("verdict", "stalled")
    assert typed("resume", run) == (3, f"{run} is finished; separation not decided: nothing was found\n")


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
    if kind == "overlap":
        labels[np.flatnonzero(X[:, 1])[0]] = 0
    if kind == "complete":
        labels = np.where(X @ np.arange(1, 6) > 20, 1, 0)
    np.savez(folder / "both.npz", X=X, y=labels)
    dfeas.ingest(folder / "both.npz", folder / "data")
    assert dfeas.separation(folder / "data", intercept=True, out=folder / "run").kind == kind
    return folder / "run"


FORGED: list[tuple[str, dict[str, Any]]] = [
    ("complete", {"kind": "overlap", "support": [1, 2]}),
    ("complete", {"proof": "exact"}),
    ("quasi-complete", {"kind": "complete"}),
    ("quasi-complete", {"kind": "overlap"}),
    ("quasi-complete", {"y": [0, 1, 0, 0, 0, 1]}),
    ("quasi-complete", {"y": [0, 0, 0, 0, 0, 0]}),
    ("quasi-complete", {"y": [1]}),
    ("quasi-complete", {"y": None}),
    ("quasi-complete", {"y": "all"}),
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


def forged(kind: str, change: dict[str, Any]) -> Callable[[Path], Path | None]:
    """Something else in the file of a run of this kind; none in those of others."""

    def made(run: Path) -> Path | None:
        values = json.loads((run / "separation.json").read_text())
        if values["kind"] != kind:
            return None
        other = run.with_name("forged")
        shutil.rmtree(other, ignore_errors=True)
        shutil.copytree(run, other)
        (other / "separation.json").write_text(json.dumps({**values, **change}))
        return other

    return made


class TestProofs(CheckerTests):
    """Kinds of separation are proved again from the file and the data, and nothing else is."""

    names = ("complete", "quasi-complete", "overlap")
    changes: ClassVar[dict[str, Callable[[Path], Path | None]]] = {
        f"{kind} {what}": forged(kind, what) for kind, what in FORGED
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


@pytest.mark.parametrize("seed", range(4))
def test_a_separator_beyond_the_range_of_floats_is_no_crash(seed: int) -> None:
    """Features of 1e91 and 1e-282: a separator has entries 372 decades apart, and its integers are not sums of floats."""
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal((24, 3))
    labels = np.where(hidden @ rng.standard_normal(3) > 0, 1, -1)
    answer = dfeas.check_separation(hidden * [1e-114, 1e91, 1e-282], labels, intercept=True)
    assert answer.kind == "complete"
