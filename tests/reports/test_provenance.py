"""What a page says of the data and the making of a run: counts that are those of the data, commands that do what they say."""

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import dfeas
from dfeas.errors import format_bytes
from dfeas.machine import processors
from dfeas.reports.page import format_signed, list_coefficients
from dfeas.verify.certificate import Certificate
from tests.reports.making import Page, cli, page_of


def people(n: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Ages, incomes, days since 1970 and a dummy, and a class that follows from them."""
    rng = np.random.default_rng(5)
    age, income = rng.integers(18, 90, n), rng.lognormal(10, 0.7, n).round(2)
    X = np.column_stack([age, income, rng.integers(10_000, 20_000, n), rng.integers(0, 2, n)]).astype(np.float64)
    return X, np.where(1000 * age + income > 80_000, "repaid", "default")


def three(n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Points around three corners."""
    rng = np.random.default_rng(1)
    kind = rng.integers(0, 3, n)
    return np.eye(3)[kind] * 5 + rng.uniform(-1, 1, (n, 3)), np.array(["cat", "dog", "emu"])[kind]


def ingested(place: Path, X: np.ndarray, labels: np.ndarray) -> Path:
    np.savez(place.with_suffix(".npz"), X=X, y=labels)
    dfeas.ingest(place.with_suffix(".npz"), place)
    return place


def commands_of(page: Page) -> dict[str, list[str]]:
    """What is to be typed, by what it is for."""
    said = [text.rstrip(": ") for text in page.texts["p"] if text.startswith("To ")]
    return dict(zip(said, map(shlex.split, page.texts["code"]), strict=True))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of people, scaled, with an intercept."""
    folder = tmp_path_factory.mktemp("people")
    dfeas.solve(ingested(folder / "data", *people()), intercept=True, transform="std", out=folder / "run")
    return folder / "run"


@pytest.mark.parametrize("data", [True, False])
def test_classes_are_named_and_counted(run: Path, tmp_path: Path, *, data: bool) -> None:
    facts, many = page_of(run, out=tmp_path / "page.html", data=data).facts, int((people()[1] == "repaid").sum())
    assert facts["label +1"] == f"repaid, {100 * many / 600:.3g} % ({many} points)"
    assert facts["label -1"] == f"default, {100 - 100 * many / 600:.3g} % ({600 - many} points)"
    if data:
        assert (facts["entries"], facts["size"], facts["zero points"]) == ("float64", "18.75 kiB", "none")
    assert facts["features"] == "4 and an intercept"
    assert facts["seen as"] == "scaled by std"


def test_points_of_one_class_a_mask_and_length_zero_are_counted(tmp_path: Path) -> None:
    X, labels = three()
    X[[4, 9]] = 0
    mask = np.arange(300) % 3 > 0
    np.save(tmp_path / "mask.npy", mask)
    data = ingested(tmp_path / "data", X, labels)
    for out, options, some in (("all", {}, labels), ("some", {"mask": tmp_path / "mask.npy"}, labels[mask])):
        dfeas.solve(data, positive="dog", intercept=True, out=tmp_path / out, **options)
        facts, many = page_of(tmp_path / out).facts, int((some == "dog").sum())
        assert facts["points"] == str(len(some))
        assert facts["label +1"] == f"dog, {100 * many / len(some):.3g} % ({many} points)"
        assert facts.get("mask") == (str(tmp_path / "mask.npy") if options else None)
        assert facts.get("zero points") == (None if options else "2, the first of them 4, 9")


def test_labels_beside_the_data_are_counted_when_it_is_read(tmp_path: Path) -> None:
    X, labels = three()
    zarr.create_array(tmp_path / "x", data=X, chunks=(100, 3))
    np.save(tmp_path / "y.npy", labels == "dog")
    dfeas.solve(tmp_path / "x", tmp_path / "y.npy", intercept=True, out=tmp_path / "run")
    assert f"({(labels == 'dog').sum()} points)" in page_of(tmp_path / "run").facts["label +1"]


def test_names_and_classes_come_from_the_result(run: Path, tmp_path: Path) -> None:
    assert "feature 3" in page_of(run, out=tmp_path / "page.html", data=False).texts["td"]
    copied = Path(shutil.copytree(run, tmp_path / "run"))
    values, names = json.loads((run / "result.json").read_text()), ["age", "income <$>", "date of first contract", "client"]
    sides = {"-1": {"name": "other", "points": 201}, "+1": {"name": "dog", "points": 399}}
    (copied / "result.json").write_text(json.dumps({**values, "features": names, "sides": sides}))
    page = page_of(copied, data=False)
    assert {*names, "dog", "other"} <= set(page.texts["td"])
    assert "feature 3" not in page.texts["td"]
    assert (page.facts["label +1"], page.facts["label -1"]) == ("dog, 66.5 % (399 points)", "other, 33.5 % (201 points)")
    (copied / "result.json").write_text(json.dumps({**values, "sides": {"+1": {"name": None, "points": 600}}}))
    assert page_of(copied, data=False).facts["classes"] == "none: every point counts as +1"


@pytest.mark.parametrize("transform", [[], ["std", "center"], ["maxabs", "center"]])
def test_coefficients_in_the_units_of_the_data_separate_it(transform: list[Any]) -> None:
    X, labels = three()
    X = X * [1, 1e4, 1e-3] + [0, 5e4, 2]
    result = dfeas.solve(X, labels == "dog", intercept=True, transform=transform)
    assert result.separator is not None
    assert result.evidence is not None
    w, bias = result.coef, result.bias
    assert np.array_equal(X @ w + bias > 0, labels == "dog")
    rows, intercept = list_coefficients(result.evidence, 3, (), ("-1", "+1"), None)
    assert intercept == bias
    listed = {row[0]: row[2] for row in rows}
    assert listed == {f"feature {place}": format_signed(w[place]) for place in range(3)}


def test_features_are_ordered_by_what_a_usual_change_does(tmp_path: Path) -> None:
    X, labels = three()
    X = X * [1, 1e4, 1e-3]
    dfeas.solve(ingested(tmp_path / "data", X, labels), positive="dog", intercept=True, transform="std", out=tmp_path / "run")
    run = dfeas.solve(X, labels == "dog", intercept=True, transform="std")
    assert run.separator is not None
    named = [text for text in page_of(tmp_path / "run").texts["td"] if text.startswith("feature ")]
    assert named == [
        f"feature {place}" for place in np.argsort(-np.abs(run.separator[:3]))
    ]  # scaled features have a deviation of 1


def test_coefficients_that_are_zero_are_not_listed() -> None:
    rows, _ = list_coefficients(Certificate("separator", "", np.array([0.0, -2.0, 1.0])), 3, (), ("-1", "+1"), None)
    assert [row[:2] for row in rows] == [("feature 1", "-1"), ("feature 2", "+1")]
    zero = Certificate("separator", "", np.zeros(2))
    assert list_coefficients(zero, 2, (), ("-1", "+1"), None) == ([], 0.0)


RUNS = {
    "scaled": {"intercept": True, "transform": ["std", "center"], "positive": "dog"},
    "margin": {"intercept": True, "positive": "emu", "margin_tolerance": 0.05, "eps": 2e-3, "transform": "lengths"},
    "kernel": {"positive": "cat", "kernel": dfeas.Kernel("polynomial", degree=2)},
    "papers": {"positive": "cat", "method": "perceptron", "intercept": False, "max_passes": 9},
}


@pytest.mark.parametrize("name", RUNS)
def test_commands_do_what_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    X, labels = three()
    ingested(tmp_path / "my data", X, labels)
    first = dfeas.solve("my data", out="run", **RUNS[name])
    typed = commands_of(page_of(Path("run")))
    if first.success:
        assert typed["To check it"] == ["dfeas", "verify", "run"]
        assert cli(*typed["To check it"][1:]).exit_code == 0
    done = cli(*typed["To do it again"][1:])
    assert done.exit_code in (0, 3), done.stderr
    again, values = (json.loads((Path(run) / "result.json").read_text()) for run in ("run-again", "run"))
    same = ("verdict", "proof", "fingerprint", "method", "eps", "margin_tolerance", "intercept", "kernel")
    assert {key: again[key] for key in same} == {key: values[key] for key in same}


def test_the_command_of_a_run_on_cones_says_nothing_of_an_intercept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    dfeas.ingest(dfeas.from_cone_rows(np.eye(3), {"q": [3]}), "data")
    first = dfeas.solve("data", out="run")
    again = commands_of(page_of(Path("run"), data=False))["To do it again"]
    assert "--no-intercept" not in again
    assert cli(*again[1:]).exit_code == 0
    assert json.loads(Path("run-again/result.json").read_text())["verdict"] == first.verdict


def test_a_run_that_can_go_on_says_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    dfeas.solve(ingested(tmp_path / "data", *three()), positive="cat", method="mirror-prox", eps=1e-9, max_passes=1, out="run")
    typed = commands_of(page_of(Path("run"), data=False))
    assert typed["To go on"] == ["dfeas", "resume", "run"]
    assert "To check it" not in typed
    cli(*typed["To go on"][1:], "--max-passes", "400")
    assert "To go on" not in commands_of(page_of(Path("run"), data=False))


def test_the_machine_is_said_and_old_traces_do_without(run: Path, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(run, tmp_path / "run"))
    facts, events = page_of(copied, data=False).facts, [*map(json.loads, (run / "trace.jsonl").read_text().splitlines())]
    assert f"{processors()} cores" in facts["machine"]
    assert facts["work"] == "threads of one process"
    assert facts["began"].endswith(" UTC")
    peak = max(event["memory_bytes"] for event in events if event["event"] == "pass")
    assert facts["memory"].startswith(f"{format_bytes(peak)} ")
    old = [{key: value for key, value in event.items() if key not in ("machine", "began", "workers")} for event in events]
    (copied / "trace.jsonl").write_text("".join(json.dumps(event) + "\n" for event in old))
    assert not {"machine", "began", "work"} & set(page_of(copied, data=False).facts)


def test_arrays_in_memory_are_not_read_again_and_have_no_commands(tmp_path: Path) -> None:
    X, labels = three()
    dfeas.solve(X, labels == "dog", intercept=True, out=tmp_path / "run")
    page = page_of(tmp_path / "run")
    assert "the run was on arrays in memory" in page.words
    assert "Margin distribution" not in page.pictures
    assert any("there is nothing to check it against" in text for text in page.texts["p"])
    assert "code" not in page.texts
