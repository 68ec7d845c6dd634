"""Results in the units of X: coefficients, scores and classes, from memory and from a folder, and what interrupts raise."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import dfeas
from dfeas.answers import files


def people(count: int = 300) -> tuple[pandas.DataFrame, np.ndarray]:
    """Features of very different sizes, and labels of text that a plane tells apart."""
    rng = np.random.default_rng(3)
    frame = pandas.DataFrame(
        {"age": rng.integers(18, 90, count), "income": rng.lognormal(10, 1, count), "id": rng.integers(10**9, 10**10, count)}
    )
    score = frame.age / 20 - np.log(frame.income) / 2 + rng.normal(size=count) / 9
    frame["dose"] = score
    return frame, np.where(score > score.median(), "high", "low")


WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "scaled": {"transform": ["std", "center"]},
    "greatest": {"transform": ["maxabs", "lengths"]},
    "tolerance": {"transform": "std", "margin_tolerance": 0.1},
}


@pytest.mark.parametrize("way", WAYS)
def test_coefficients_and_scores_are_in_the_units_of_the_data(way: str, tmp_path: Path) -> None:
    frame, label = people()
    result = dfeas.solve(frame, label, intercept=True, out=tmp_path / "run", **WAYS[way])
    assert (result.verdict, result.success) == ("feasible", True)
    assert result.classes == ("high", "low")
    assert {key: (side.name, side.points) for key, side in result.sides.items()} == {
        "-1": ("high", int((label == "high").sum())),
        "+1": ("low", int((label == "low").sum())),
    }
    assert result.features == list(frame.columns)
    for each in (result, dfeas.load(tmp_path / "run")):
        score = frame.to_numpy() @ each.coef + each.bias
        np.testing.assert_array_equal(score > 0, label == "low")
        np.testing.assert_allclose(each.decision_function(frame), score, rtol=1e-6, atol=1e-9 * abs(score).max())
        np.testing.assert_array_equal(each.predict(frame), label)
        assert dfeas.predict(each, frame, label).accuracy == 1


def test_a_result_that_is_read_back_is_the_same(tmp_path: Path) -> None:
    frame, label = people()
    made = {
        "solve": dfeas.solve(frame, label, intercept=True, out=tmp_path / "solve"),
        "race": dfeas.race(frame, label, methods=["working-set", "perceptron"], max_passes=3, out=tmp_path / "race"),
        "classes": dfeas.one_vs_rest(frame, label, intercept=True, out=tmp_path / "classes"),
        "soft": dfeas.soft_margin(frame, label, C=[1e-9, 1e-8], out=tmp_path / "soft"),
        "hard": dfeas.hard_margin(frame, label, transform="std", intercept=True, out=tmp_path / "hard"),
        "kind": dfeas.separation(frame, label, intercept=True, out=tmp_path / "kind"),
    }
    for name, result in made.items():
        again = dfeas.load(tmp_path / name)
        assert type(again) is type(result)
        assert again.to_json() == result.to_json()
    with pytest.raises(dfeas.BadInputError, match="no finished run"):
        dfeas.load(tmp_path / "nothing")
    for name, file, key in (("solve", "result.json", "stopped"), ("soft", "result.json", "fits")):
        values = json.loads((tmp_path / name / file).read_text())
        (tmp_path / name / file).write_text(json.dumps({k: v for k, v in values.items() if k != key}))
        with pytest.raises(dfeas.CorruptDataError, match=f"{name}: not a readable run: {key} is missing$"):
            dfeas.load(tmp_path / name)


def test_each_class_against_the_rest_has_scores_and_the_labels_come_back_as_they_were() -> None:
    rng = np.random.default_rng(0)
    code = rng.integers(0, 3, 200)
    X = np.eye(3)[code] * 5 + rng.normal(size=(200, 3))
    X[:, 0] += 1000
    soft = dfeas.soft_margin_classes(X, code * 10, intercept=True, C=1e-3)
    scores = soft.decision_function(X)
    assert scores.shape == (200, 3)
    assert soft.coef.shape == (3, 3)
    np.testing.assert_allclose(scores, X @ soft.coef.T + soft.bias, rtol=1e-6, atol=1e-9)  # as they are, whatever their lengths
    np.testing.assert_array_equal(soft.predict(X), np.array([0, 10, 20])[scores.argmax(axis=1)])
    proved = dfeas.one_vs_rest(X, code * 10)
    lengths = np.linalg.norm([each.separator for each in proved.results.values()], axis=1)
    np.testing.assert_allclose(proved.decision_function(X), (X @ proved.coef.T + proved.bias) / lengths, rtol=1e-6)


@pytest.mark.parametrize("names", [("001", "010"), ("inf", "nan"), ("1_000", "2_000"), ("1.0", "2.5"), ("b c", "a, d")])
def test_labels_of_text_come_back_as_text_unless_they_are_called_as_numbers_are(names: tuple[str, str]) -> None:
    X = np.array([[1.0, 2.0], [-1.0, 0.5], [2.0, 1.0]])
    label = np.array(names)[[0, 1, 0]]
    np.testing.assert_array_equal(dfeas.solve(X, label).predict(X), label)


PACKAGES = ("numpy", "scipy", "zarr", "dask", "distributed")


@pytest.mark.parametrize("first", ["none", "another version", "no folder"])
def test_versions_are_those_of_importlib_metadata(first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if first == "another version":
        (tmp_path / "numpy-9.9.dist-info").mkdir()
        (tmp_path / "numpy-9.9.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 9.9\n")
    if first != "none":
        monkeypatch.setattr(sys, "path", [str(tmp_path / "absent" if first == "no folder" else tmp_path), *sys.path])
    files._find_versions.cache_clear()
    found = files.versions()
    files._find_versions.cache_clear()
    assert {name: found[name] for name in PACKAGES} == {name: version(name) for name in PACKAGES}
    assert (found["numpy"] == "9.9") == (first == "another version")
    assert found["dfeas"] == dfeas.__version__


def test_versions_that_no_folder_is_named_for_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "glob", lambda self, pattern: iter(()))
    files._find_versions.cache_clear()
    found = files.versions()
    files._find_versions.cache_clear()
    assert {name: found[name] for name in PACKAGES} == {name: version(name) for name in PACKAGES}


SAVED: dict[str, Callable[[Any, Any], Any]] = {
    "solve": dfeas.solve,
    "race": lambda X, y: dfeas.race(X, y, methods=["working-set", "perceptron"]),
    "classes": lambda X, y: dfeas.one_vs_rest(X, np.arange(len(X)) % 3),
    "soft": dfeas.soft_margin,
    "soft classes": lambda X, y: dfeas.soft_margin_classes(X, np.arange(len(X)) % 3),
    "hard margin": dfeas.hard_margin,
    "separation": dfeas.separation,
    "feasible": lambda X, y: dfeas.feasible(X, np.ones(len(X))),
    "suspects": lambda X, y: dfeas.suspects(X, np.roll(y, 1)),
}


@pytest.mark.parametrize("asked", SAVED)
def test_what_is_saved_by_hand_is_loaded_as_what_a_run_leaves(tmp_path: Path, asked: str) -> None:
    X = np.random.default_rng(0).standard_normal((60, 3))
    answer = SAVED[asked](X, np.where(X[:, 0] > 0, 1, -1))
    for _ in range(2):  # in the place of what is there, too
        answer.save(str(tmp_path / "run"))
        loaded = dfeas.load(tmp_path / "run")
        assert type(loaded) is type(answer)
        assert str(loaded).splitlines()[:2] == str(answer).splitlines()[:2]
    for name, result in getattr(answer, "results", {}).items():
        assert (loaded.results[name].stopped, loaded.results[name].reads) == (result.stopped, result.reads)
