"""A small file of points is opened as it is, by every verb: the answer is that of the same points after an ingest."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas
import pytest
from sklearn.datasets import dump_svmlight_file

import dfeas
from tests.typed import dfeas as typed

NAMES = ("age", "dose", "bmi")


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same points, which a plane separates, in files of many formats."""
    path = tmp_path_factory.mktemp("files")
    X = np.random.default_rng(0).standard_normal((300, 3))
    X = X[np.abs(X @ [1, 2, 3]) > 0.2]
    kind = np.where(X @ [1, 2, 3] > 0, "good", "bad")
    frame = pandas.DataFrame(X, columns=NAMES).assign(kind=kind)
    frame.to_csv(path / "table.csv", index=False)
    frame.to_parquet(path / "table.parquet")
    np.save(path / "points.npy", X)
    np.save(path / "labels.npy", kind)
    np.savez(path / "both.npz", X=X, y=kind)
    dump_svmlight_file(X, kind == "good", str(path / "points.svm"), zero_based=False)
    dfeas.ingest(path / "both.npz", path / "data")
    return path


@pytest.fixture
def here(room: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(room)
    return room


FILES = {
    "table.csv": "kind",
    "table.parquet": "kind",
    "points.npy": "labels.npy",
    "both.npz": None,
    "points.svm": None,
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_what_its_ingest_is_and_is_verified_from_itself(name: str, here: Path, tmp_path: Path) -> None:
    found = dfeas.solve(name, FILES[name], method="perceptron", out=tmp_path / "run")
    expected = dfeas.solve(here / "data", method="perceptron")
    assert found.verdict == expected.verdict == "feasible"
    assert found.n == expected.n
    assert np.allclose(found.separator, expected.separator, rtol=1e-4)
    assert found.features == (list(NAMES) if name.startswith("table") else None)
    assert dfeas.verify_run(tmp_path / "run").verdict == "feasible"


def test_a_file_that_changed_is_not_the_data_of_its_run(here: Path, tmp_path: Path) -> None:
    frame = pandas.read_csv("table.csv")
    frame.to_csv(tmp_path / "table.csv", index=False)
    dfeas.solve(tmp_path / "table.csv", "kind", method="perceptron", max_passes=1, out=tmp_path / "run")
    frame.loc[3, "dose"] += 1
    frame.to_csv(tmp_path / "table.csv", index=False)
    with pytest.raises(dfeas.DfeasError, match=r"not the data|fingerprint|changed"):
        dfeas.verify_run(tmp_path / "run")


def test_a_run_on_a_file_goes_on_where_it_stopped(here: Path, tmp_path: Path) -> None:
    asked = {"method": "mirror-prox", "margin_tolerance": 0.01}
    assert dfeas.solve("table.csv", "kind", max_passes=2, out=tmp_path / "run", **asked).stopped == "pass_limit"
    whole = dfeas.solve("table.csv", "kind", max_passes=9, **asked)
    resumed = dfeas.resume(tmp_path / "run", max_passes=9)
    assert isinstance(resumed, dfeas.Result)
    assert (resumed.margin_lower, resumed.margin_upper) == (whole.margin_lower, whole.margin_upper)


def test_the_commands_take_it_by_its_name(here: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = typed("solve", "table.csv", "--label-column", "kind", "--out", run, "--json", cwd=here)
    assert json.loads(done.stdout)["verdict"] == "feasible", done.stderr
    assert typed("verify", "table.csv", run / "certificate.npz", "--label-column", "kind", cwd=here).returncode == 0
    done = typed("predict", run, "table.parquet", tmp_path / "scores.npy", "--json", cwd=here)
    assert json.loads(done.stdout)["accuracy"] == 1.0, done.stderr
    X, y = np.load(here / "points.npy"), dfeas.load(run).separator
    assert np.allclose(np.load(tmp_path / "scores.npy"), X @ y[:-1] + y[-1], rtol=1e-12)


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["table.csv"], 2, "say which column holds the labels with --label-column NAME; the columns are age, dose, bmi, kind"),
        (["table.csv", "--label-column", "knd"], 4, "no column knd; did you mean kind?"),
        (["table.csv", "--label-column", "kind", "--labels", "kind"], 2, "choose one of --labels and --label-column"),
        (["points.npy"], 2, "it has no labels beside the points; give --labels FILE"),
        (["points.npy", "--labels", "labels.npy", "--one-vs-rest", "--positive", "good"], 2, "takes no --positive"),
        (["points.svm", "--labels", "labels.npy"], 2, "svmlight has its labels beside the points"),
        (["odd.csv", "--label-column", "kind"], 4, "line 3, column dose: the cell is empty"),
        (["doubt.csv", "--labels", "0"], 2, "say --header or --no-header: these are options of dfeas ingest"),
        (["counted.csv", "--labels", "1", "--positive", "a"], 2, "say --header or --no-header"),
    ],
)
def test_what_cannot_be_opened_is_one_line(words: list[str], code: int, text: str, here: Path, tmp_path: Path) -> None:
    (here / "odd.csv").write_text("age,dose,kind\n1,2,a\n3,,b\n")
    (here / "doubt.csv").write_text("1,x,3\n2,1,2\n")
    (here / "counted.csv").write_text("0,1,2\n2.5,a,2\n1,b,3.5\n")  # names that pandas gives where nobody does
    done = typed("solve", *words, "--out", tmp_path / "run", cwd=here)
    assert done.returncode == code, done.stderr
    assert text in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_large_file_is_answered_by_what_to_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("large.npz", X=np.zeros((1, 1_600_000)), y=np.zeros(1))
    (tmp_path / "wide.csv").write_text("a,b,c,d\n" + "0,1,2,3\n" * 500_000)  # more in memory than on disk
    done = typed("solve", "large.npz", "--memory", "40MB", "--out", "run", cwd=tmp_path)
    assert done.returncode == 2
    assert "Convert it first: dfeas ingest" in done.stderr
    assert "large.data --labels y, and then ask about large.data" in done.stderr
    with pytest.raises(dfeas.UsageError, match=r"dfeas\.ingest\('.*wide\.csv', 'wide\.data', label_column='d'\), and then"):
        dfeas.solve("wide.csv", "d", memory="40MB")


def test_svmlight_without_the_last_features_is_predicted(here: Path, tmp_path: Path) -> None:
    """Its lines leave out zeros: what is beyond the last entry of a file are zeros, too."""
    found = dfeas.solve("points.svm", out=tmp_path / "run")
    (tmp_path / "new.svm").write_text("1 1:2\n0 1:-1 2:-1\n")
    X = np.array([[2.0, 0.0, 0.0], [-1.0, -1.0, 0.0]])
    assert np.array_equal(dfeas.predict(tmp_path / "run", tmp_path / "new.svm").score, found.decision_function(X))
    (tmp_path / "wide.svm").write_text("1 4:2\n")
    with pytest.raises(dfeas.BadInputError, match="index 4 is beyond the 3 features"):
        dfeas.predict(tmp_path / "run", tmp_path / "wide.svm")
    dfeas.ingest(tmp_path / "new.svm", tmp_path / "new")
    with pytest.raises(dfeas.BadInputError, match=r"points of 2 features, the run .* had 3; .* ingest it with features=3"):
        dfeas.predict(tmp_path / "run", tmp_path / "new")


def test_labels_of_new_rows_are_classes_of_the_run(here: Path, tmp_path: Path) -> None:
    frame, result = pandas.read_csv("table.csv"), dfeas.solve("table.csv", "kind", intercept=True)
    frame.assign(kind="mad").to_csv(tmp_path / "mad.csv", index=False)
    with pytest.raises(dfeas.BadInputError, match=r"column kind is no feature .* no classes of the run \(bad, good\)"):
        dfeas.predict(result, tmp_path / "mad.csv")
    frame["kind"] = np.where(frame.kind == "good", "good", np.resize(["ill", "dead"], len(frame)))
    frame.to_csv(tmp_path / "three.csv", index=False)
    one = dfeas.solve(tmp_path / "three.csv", "kind", positive="good", out=tmp_path / "one")
    assert (one.classes, dfeas.predict(tmp_path / "one", tmp_path / "three.csv").accuracy) == (("rest", "good"), 1.0)
