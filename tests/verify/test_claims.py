"""What result.json claims is what is proved, or ``verify`` refuses it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dfeas
from dfeas.errors import CheckFailedError, CorruptDataError, UndecidedError

Run = Callable[..., Any]


def edited(run: Path, **changes: Any) -> Path:
    """A copy of a run, whose result says something else."""
    copy = run.parent / "edited"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(run, copy)
    values = json.loads((run / "result.json").read_text())
    (copy / "result.json").write_text(json.dumps({**values, **changes}))
    return copy


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs with verdicts of each kind; of what conflicts, points 1 and 2 are equal and of other classes."""
    room, rng = tmp_path_factory.mktemp("claims"), np.random.default_rng(0)
    X, sign = rng.standard_normal((300, 4)), np.where(rng.random(300) < 0.5, 1, -1)
    away = X + 9 * sign[:, None] * np.eye(4)[0]
    away[2] = away[1] = X[1]
    both = sign.copy()
    both[1], both[2] = 1, -1
    for name, points, labels in (
        ("feasible", X + 9 * sign[:, None] * np.eye(4)[0], sign),
        ("exact", away, both),
        ("eps", X, sign),
    ):
        np.savez(room / f"{name}.npz", X=points, y=np.where(labels > 0, "yes", "no"))
        dfeas.ingest(room / f"{name}.npz", room / f"{name}-data", positive="yes")
        options: dict[str, Any] = {"method": "mirror-prox", "eps": 0.5} if name == "eps" else {}
        assert dfeas.solve(room / f"{name}-data", out=room / name, **options).success
    return room


NUMBERS = [
    {"margin_lower": 0.9, "margin_upper": 0.1},
    {"margin_lower": float("nan")},
    {"margin_upper": float("inf")},
    {"margin_upper": None},
    {"eps": float("nan")},
    {"eps": 0.0},
    {"intercept": False},
    {"m": 5},
    {"n": 299},
    {"fingerprint": "0" * 64},
    {"kernel": {"name": "linear", "gamma": 1.0, "degree": 3, "coef0": 0.0}},
    {"stopped": "outran"},
    {"success": False},
    {"proof": "certain"},
    {"verdict": "maybe"},
    {"conflicts": [{"point": 3, "label": "yes", "weight": 1.0, "score": None}]},
    {"conflicts": None},
]


@pytest.mark.parametrize("name", ["feasible", "exact", "eps"])
def test_edits_are_refused_whatever_is_proved(runs: Path, name: str) -> None:
    proved = dfeas.verify_run(edited(runs / name))
    assert dfeas.verify_run(edited(runs / name, proof="floating_point")).proof == proved.proof  # less than is proved
    stronger = [] if proved.proof == "exact" else [{"proof": "exact"}]
    for change in (*NUMBERS, *stronger):
        with pytest.raises((CheckFailedError, CorruptDataError), match=r"result\.json: "):
            dfeas.verify_run(edited(runs / name, **change))
    with pytest.raises(CorruptDataError, match="not a readable result"):
        dfeas.verify_run(edited(runs / name, data=5))
    with pytest.raises(UndecidedError, match=r"ended undecided \(.*\): it claims nothing to check"):
        dfeas.verify_run(edited(runs / name, verdict="undecided"))


def test_points_that_conflict_are_those_of_the_certificate(runs: Path) -> None:
    listed = json.loads((runs / "exact" / "result.json").read_text())["conflicts"]
    assert {(entry["point"], entry["label"]) for entry in listed} == {(1, "yes"), (2, "no")}
    first, *others = listed
    changes: list[dict[str, Any]] = [{"point": 3}, {"point": others[0]["point"]}, {"label": "maybe"}, {"weight": 0.25}]
    for change in (*({**first, **each} for each in changes), {}, 5):
        with pytest.raises(CheckFailedError, match="conflicts has point"):
            dfeas.verify_run(edited(runs / "exact", conflicts=[change, *others]))
    for few in ([], others, [*listed, first]):
        with pytest.raises(CheckFailedError, match=f"conflicts names {len(few)} points, those of the certificate"):
            dfeas.verify_run(edited(runs / "exact", conflicts=few))


def test_what_is_listed_of_classes_is_what_their_runs_say(tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((90, 3)) + 9 * np.repeat(np.eye(3), 30, axis=0)
    np.savez(tmp_path / "a.npz", X=X, y=np.repeat(["ant", "bee", "cat"], 30))
    dfeas.ingest(tmp_path / "a.npz", tmp_path / "data")
    assert dfeas.one_vs_rest(tmp_path / "data", intercept=True, out=tmp_path / "run").success
    assert set(dfeas.verify_run(edited(tmp_path / "run")).classes) == {"ant", "bee", "cat"}
    classes = json.loads((tmp_path / "run" / "result.json").read_text())["classes"]
    for change in ({"proof": "exact"}, {"margin_lower": 0.5}, {"n": 91}):
        with pytest.raises(CheckFailedError, match="it lists bee with"):
            dfeas.verify_run(edited(tmp_path / "run", classes={**classes, "bee": {**classes["bee"], **change}}))
    for whole in ({"m": 4}, {"fingerprint": "0"}, {"data": {**_data(tmp_path / "run"), "intercept": False}}):
        with pytest.raises((CheckFailedError, CorruptDataError), match=r"result\.json: "):
            dfeas.verify_run(edited(tmp_path / "run", **whole))


def _data(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "result.json").read_text())["data"]
    return found
