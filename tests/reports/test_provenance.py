"""What a page says of the data and the making of a run: counts that are those of the data, commands that do what they say."""

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import dfeas
from dfeas.errors import format_bytes
from dfeas.machine import processors
from dfeas.reports.page import format_signed, list_coefficients, report
from dfeas.verify.certificate import Certificate
from tests.reports.pages import Page, cli, parse


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


def page_of(run: Path, **options: Any) -> Page:
    return parse(report([run], **options))


def commands_of(page: Page) -> dict[str, list[str]]:
    """What is to be typed, by what it is for."""
    said = [text.rstrip(": ") for text in page.texts["p"] if text.startswith("To ")]
    return dict(zip(said, map(shlex.split, page.texts["code"]), strict=True))


@pytest.mark.parametrize("data", [True, False])
def test_classes_are_named_and_counted(tmp_path: Path, *, data: bool) -> None:
    X, labels = people()
    data_path = ingested(tmp_path / "data", X, labels)
    dfeas.solve(data_path, intercept=True, transform="std", out=tmp_path / "run")
    facts = page_of(tmp_path / "run", data=data).facts
    many = int((labels == "repaid").sum())
    assert facts["label +1"] == f"repaid, {100 * many / 600:.3g} % ({many} points)"
    assert facts["label -1"] == f"default, {100 - 100 * many / 600:.3g} % ({600 - many} points)"
    if data:
        assert (facts["entries"], facts["size"], facts["zero points"]) == ("float64", "18.75 kiB", "none")
    assert facts["features"] == "4 and an intercept"
    assert facts["seen as"] == "scaled by std"


def test_what_the_result_says_of_classes_and_features_is_believed(tmp_path: Path) -> None:
    X, labels = three()
    dfeas.solve(X, labels == "dog", intercept=True, out=tmp_path / "run")
    values = json.loads((tmp_path / "run" / "result.json").read_text())
    more = {"sides": {"-1": {"name": "other", "points": 201}, "+1": {"name": "dog", "points": 99}}, "features": ["a", "b", "c"]}
    (tmp_path / "run" / "result.json").write_text(json.dumps({**values, **more}))
    page = page_of(tmp_path / "run")
    assert (page.facts["label +1"], page.facts["label -1"]) == ("dog, 33 % (99 points)", "other, 67 % (201 points)")
    assert {"a", "b", "c", "dog", "other"} <= set(page.texts["td"])
    (tmp_path / "run" / "result.json").write_text(json.dumps({**values, "sides": {"+1": {"name": None, "points": 300}}}))
    assert page_of(tmp_path / "run").facts["classes"] == "none: every point counts as +1"


def test_points_that_a_mask_leaves_are_counted(tmp_path: Path) -> None:
    X, labels = three()
    mask = np.arange(300) % 3 > 0
    data = ingested(tmp_path / "data", X, labels)
    np.save(tmp_path / "mask.npy", mask)
    dfeas.solve(data, positive="dog", mask=tmp_path / "mask.npy", intercept=True, out=tmp_path / "run")
    many = int((labels[mask] == "dog").sum())
    facts = page_of(tmp_path / "run").facts
    assert facts["points"] == "200"
    assert facts["mask"] == str(tmp_path / "mask.npy")
    assert facts["label +1"] == f"dog, {100 * many / 200:.3g} % ({many} points)"


@pytest.mark.parametrize("name", ["cat", "dog", "emu"])
def test_one_class_of_several_is_counted_against_the_rest(tmp_path: Path, name: str) -> None:
    X, labels = three()
    many = int((labels == name).sum())
    expected = f"{name}, {100 * many / 300:.3g} % ({many} points)"
    data = ingested(tmp_path / "data", X, labels)
    dfeas.solve(data, positive=name, out=tmp_path / "run", intercept=True)
    assert page_of(tmp_path / "run").facts["label +1"] == expected
    flipped = np.where(labels == name, labels, np.roll(labels, 1))
    dfeas.solve(ingested(tmp_path / "mixed", X, flipped), positive=name, out=tmp_path / "other")
    many = int((flipped == name).sum())
    facts = page_of(tmp_path / "other").facts
    assert facts["label +1"] == f"{name}, {100 * many / 300:.3g} % ({many} points)"


def test_labels_beside_the_data_are_counted_when_it_is_read(tmp_path: Path) -> None:
    X, labels = three()
    zarr.create_array(tmp_path / "x", data=X, chunks=(100, 3))
    np.save(tmp_path / "y.npy", labels == "dog")
    dfeas.solve(tmp_path / "x", tmp_path / "y.npy", intercept=True, out=tmp_path / "run")
    many = int((labels == "dog").sum())
    assert f"({many} points)" in page_of(tmp_path / "run").facts["label +1"]


def test_zero_points_are_counted(tmp_path: Path) -> None:
    X, labels = three()
    X[[4, 9]] = 0
    dfeas.solve(ingested(tmp_path / "data", X, labels), positive="cat", out=tmp_path / "run")
    assert page_of(tmp_path / "run").facts["zero points"] == "2, the first of them 4, 9"


def test_names_come_from_the_result_or_are_numbers(tmp_path: Path) -> None:
    X, labels = people()
    dfeas.solve(ingested(tmp_path / "data", X, labels), intercept=True, transform="std", out=tmp_path / "run")
    assert "feature 3" in page_of(tmp_path / "run").texts["td"]
    values = json.loads((tmp_path / "run" / "result.json").read_text())
    names = ["age", "income <$>", "date of first contract", "client"]
    (tmp_path / "run" / "result.json").write_text(json.dumps({**values, "features": names}))
    page = page_of(tmp_path / "run")
    assert set(names) <= set(page.texts["td"])
    assert "feature 3" not in page.texts["td"]


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
    "rbf": {"positive": "cat", "kernel": "rbf"},
    "plain": {"positive": "cat", "method": "perceptron", "max_passes": 9},
    "papers": {"positive": "cat", "intercept": False, "max_passes": 9},
}


@pytest.mark.parametrize("name", RUNS)
def test_commands_do_what_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    X, labels = three()
    ingested(tmp_path / "my data", X, labels)
    first = dfeas.solve("my data", out="run", **RUNS[name])
    typed = commands_of(parse(report([Path("run")])))
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
    again = commands_of(parse(report([Path("run")])))["To do it again"]
    assert "--no-intercept" not in again
    assert cli(*again[1:]).exit_code == 0
    assert json.loads(Path("run-again/result.json").read_text())["verdict"] == first.verdict


def test_a_run_that_can_go_on_says_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    dfeas.solve(ingested(tmp_path / "data", *three()), positive="cat", method="mirror-prox", eps=1e-9, max_passes=1, out="run")
    typed = commands_of(parse(report([Path("run")])))
    assert typed["To go on"] == ["dfeas", "resume", "run"]
    assert "To check it" not in typed
    cli(*typed["To go on"][1:], "--max-passes", "400")
    assert "To go on" not in commands_of(parse(report([Path("run")])))


def test_arrays_in_memory_have_no_commands(tmp_path: Path) -> None:
    X, labels = three()
    dfeas.solve(X, labels == "dog", intercept=True, out=tmp_path / "run")
    page = page_of(tmp_path / "run")
    assert any("there is nothing to check it against" in text for text in page.texts["p"])
    assert "code" not in page.texts


def test_the_machine_is_said_and_old_traces_do_without(tmp_path: Path) -> None:
    dfeas.solve(ingested(tmp_path / "data", *three()), positive="dog", intercept=True, out=tmp_path / "run")
    facts = page_of(tmp_path / "run").facts
    assert f"{processors()} cores" in facts["machine"]
    assert facts["work"] == "threads of one process"
    assert facts["began"].endswith(" UTC")
    events = [json.loads(line) for line in (tmp_path / "run" / "trace.jsonl").read_text().splitlines()]
    peak = max(event["memory_bytes"] for event in events if event["event"] == "pass")
    assert facts["memory"].startswith(f"{format_bytes(peak)} ")
    for event in events:
        for key in ("machine", "began", "workers"):
            event.pop(key, None)
    (tmp_path / "run" / "trace.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    assert not {"machine", "began", "work"} & set(page_of(tmp_path / "run").facts)
