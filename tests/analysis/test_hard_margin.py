"""Hard margin: the planted plane, canonical form, weights that make the upper end, on disk and from the command line."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import dfeas
from dfeas.cli.main import commands
from dfeas.run.task import VerdictTask


def test_the_hyperplane_is_canonical_and_the_weights_make_the_upper_end(
    arrays: Callable[..., Any], unit_columns: Callable[..., Any]
) -> None:
    X, y = arrays("planted", 6, 2000, margin=0.05, dtype="float64")
    X = X * np.random.default_rng(0).uniform(0.5, 20, (2000, 1))
    found = dfeas.hard_margin(X, y, intercept=False, margin_tolerance=1e-4)
    assert found.result.margin_upper == pytest.approx(0.05, rel=1e-3)
    assert found.result.margin_lower >= (1 - 1e-4) * found.result.margin_upper
    assert found.w is not None
    score = y * (X @ found.w)
    assert score.min() == pytest.approx(1, rel=1e-12)
    assert found.margin == pytest.approx(score.min() / np.linalg.norm(found.w))
    assert found.radius == pytest.approx(np.linalg.norm(X, axis=1).max())
    assert found.support is not None
    assert found.weights is not None
    assert found.weights.min() >= 0
    assert found.weights.sum() == pytest.approx(1)
    A = unit_columns(X, y)
    assert np.linalg.norm(A[:, found.support] @ found.weights) == pytest.approx(found.result.margin_upper, rel=1e-9)
    assert found.leave_one_out == len(found.support) / 2000
    assert found.dimension == 7


def test_its_share_is_the_one_that_is_given() -> None:
    X, y = [[1.0, 2.0], [2.0, 1.0], [-1.0, -1.5]], [1, 1, -1]
    found = dfeas.hard_margin(X, y, intercept=False, margin_tolerance=0.25)
    assert found.margin_tolerance == found.result.margin_tolerance == 0.25
    assert found.result.margin_lower >= 0.75 * found.result.margin_upper
    assert dfeas.hard_margin(X, y, intercept=False).margin_tolerance == 1e-3


@pytest.mark.parametrize(("method", "taken"), [("working-set", 0.02), ("working-set", 0.2), ("mirror-prox", 0.02)])
def test_a_margin_is_as_near_as_promised_by_what_is_proved_of_it(
    method: str, taken: float, arrays: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    lower, judge = lambda check: replace(check, margin_lower=(1 - taken) * check.margin_lower), VerdictTask.judge
    monkeypatch.setattr(VerdictTask, "judge", lambda self, evidence, check, *more: judge(self, evidence, lower(check), *more))
    X, y = arrays("planted", 5, 300, margin=0.05, dtype="float64")
    found = dfeas.solve(X, y, method=method, margin_tolerance=0.1)
    assert (found.verdict, found.stopped) == ("feasible", "verdict" if taken < 0.1 else "stalled")
    assert (found.margin_upper - found.margin_lower <= 0.1 * found.margin_upper) == (taken < 0.1)


def test_the_command_writes_the_figures(dataset: Callable[..., Any], tmp_path: Path) -> None:
    data, _ = dataset("planted", 5, 500, margin=0.1)
    runner, out = CliRunner(), tmp_path / "run"
    done = runner.invoke(commands, ["solve", str(data), "--intercept", "--hard-margin", "--out", str(out)])
    assert done.exit_code == 0
    assert "hyperplane" in done.stdout
    values = json.loads((out / "margin.json").read_text())
    assert len(values["w"]) == 5
    assert values["bias"] != 0
    mixed, _ = dataset("gaussian", 5, 500, name="mixed")
    other = runner.invoke(commands, ["solve", str(mixed), "--hard-margin", "--out", str(tmp_path / "other"), "--json"])
    assert other.exit_code == 0
    values = json.loads(other.stdout)["hard_margin"]
    assert (values["margin"], np.linalg.norm(values["w"])) == (None, pytest.approx(1))
    both = runner.invoke(commands, ["solve", str(data), "--hard-margin", "--separation", "--out", str(tmp_path / "both")])
    assert both.exit_code == 2


@pytest.mark.parametrize(
    ("X", "labels"),
    [
        ([[1.0], [np.nextafter(1, 2)], [-1e8], [1e8]], [0, 1, 0, 1]),
        ([[1.0, 1e-300], [2.0, -1e-300], [1.0, -1e-300]], [1, 0, 0]),
    ],
    ids=["no plane of float64 has the points on their sides", "one over the square of the margin is beyond float64"],
)
def test_a_margin_below_what_float64_tells_has_no_plane_and_is_verified(
    X: list[list[float]], labels: list[int], tmp_path: Path
) -> None:
    dfeas.ingest(np.array(X), tmp_path / "data", y=labels)
    found = dfeas.hard_margin(tmp_path / "data", out=tmp_path / "run")
    assert found.result.verdict == "feasible"
    assert found.margin is None or np.isfinite([*found.w, found.bias, found.margin]).all()
    assert found.margin is not None or "evidence.integers" in str(found)
    assert dfeas.verify_run(tmp_path / "run").verdict == "feasible"
