"""The page of a soft margin: facts and figures are those of the chosen fit, points are counted, and there is no verdict."""

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dfeas
from dfeas.errors import CorruptDataError
from dfeas.reports.page import report
from tests.reports.making import cli, page_of


@pytest.fixture(scope="module")
def loans() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((400, 5))
    return X, np.where(X[:, 0] - X[:, 1] + rng.standard_normal(400) > 0.4, "repaid", "default")


@pytest.fixture
def data(tmp_path: Path, loans: tuple[np.ndarray, np.ndarray]) -> Path:
    dfeas.ingest(loans[0], tmp_path / "data", y=loans[1])
    return tmp_path / "data"


def wrong(found: Any, X: np.ndarray, labels: np.ndarray) -> int:
    """Points on the wrong side of the hyperplane, or on it."""
    score = X @ found.y[:5] + found.y[5:].sum()
    return int((np.where(labels == "repaid", score, -score) <= 0).sum())


def test_a_share_is_said_with_its_points_and_no_verdict(
    data: Path, loans: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    found = dfeas.soft_margin(data, C=0.1, intercept=True, out=tmp_path / "run")
    count = wrong(found, *loans)
    page = page_of(tmp_path / "run")
    assert "Why it stopped: the gap that was asked for was reached." in page.texts["p"]
    assert "verdict" not in page.words
    assert page.pictures == ["Margin distribution", "Widest gap"]
    for each in (page, page_of(tmp_path / "run", data=False)):
        assert each.facts["error"] == f"{100 * count / 400:.4g} % of all points are on the wrong side"
    assert f"{count} of 400 points" in page.words
    assert page.facts["label +1"].startswith("repaid, ")


def test_of_several_fits_the_chosen_one_is_said_and_the_widest_gap_is_drawn(data: Path, tmp_path: Path) -> None:
    found = dfeas.soft_margin(data, C=[1e-3, 1e-2, 1.0], folds=3, intercept=True, out=tmp_path / "run")
    page = page_of(tmp_path / "run")
    assert page.pictures == ["Margin distribution", "Widest gap", "Path"]
    assert page.facts["objective"].startswith(f"{found.objective:.9g}, the minimum is at least {found.lower:.9g}")
    assert f"C = {found.C:g}, " in page.facts["margin"]
    assert f"C = {found.C:g}: " in page.facts["validation"]
    assert f"that of the chosen one is {found.gap:.2g} in the end" in page.words
    passes = [json.loads(line) for line in (tmp_path / "run" / "trace.jsonl").read_text().splitlines()]
    gaps = [event["gap"] for event in passes if event["event"] == "pass"]
    assert gaps == sorted(gaps, reverse=True)  # what is drawn never jumps


def test_the_command_does_it_again(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = dfeas.soft_margin("data", C=[1e-3, 1e-2], folds=3, loss="squared_hinge", intercept=True, out="run")
    page = page_of(Path("run"), data=False)
    assert "To check it: " not in page.texts["p"]
    (command,) = (shlex.split(text) for text in page.texts["code"] if text.startswith("dfeas svm"))
    assert cli(*command[1:]).exit_code == 0
    again = json.loads(Path("run-again/result.json").read_text())
    assert (again["C"], again["objective"], again["fits"]) == (found.C, found.objective, found.to_json()["fits"])


def test_a_damaged_one_is_one_line(data: Path, tmp_path: Path) -> None:
    dfeas.soft_margin(data, C=0.1, out=tmp_path / "run")
    values = json.loads((tmp_path / "run" / "result.json").read_text())
    (tmp_path / "run" / "result.json").write_text(json.dumps({**values, "fits": [{"C": 1}]}))
    with pytest.raises(CorruptDataError, match="not a readable result"):
        report([tmp_path / "run"])
