"""``force=True`` of all verbs that write: what dfeas wrote is replaced once the new one is there, and nothing else."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dfeas
from dfeas.errors import UsageError
from tests.run.making import everything

X = np.array([[1.0, 2.0], [2.0, 1.0], [-1.0, -1.0], [-2.0, -1.0]])
LABELS = np.array([1, 1, -1, -1])
MODEL = dfeas.solve(X, LABELS)
VERBS: dict[str, Callable[..., Any]] = {
    "solve": lambda **how: dfeas.solve(X, LABELS, **how),
    "one_vs_rest": lambda **how: dfeas.one_vs_rest(X, LABELS, **how),
    "race": lambda **how: dfeas.race(X, LABELS, methods="perceptron,working-set", **how),
    "separation": lambda **how: dfeas.separation(X, LABELS, **how),
    "hard_margin": lambda **how: dfeas.hard_margin(X, LABELS, **how),
    "soft_margin": lambda **how: dfeas.soft_margin(X, LABELS, **how),
    "soft_margin_classes": lambda **how: dfeas.soft_margin_classes(X, LABELS, **how),
    "in_hull": lambda **how: dfeas.in_hull([0.0, 0.0], X, **how),
    "ingest": lambda **how: dfeas.ingest(X, y=LABELS, **how),
    "sparse": lambda **how: dfeas.ingest(X, y=LABELS, sparse=True, **how),
    "generate": lambda **how: dfeas.generate(dfeas.Instance("planted", 3, 40, 0.1), **how),
    "cones": lambda **how: dfeas.ingest(dfeas.from_cone_rows(X, {"l": 4}), **how),
    "suspects": lambda **how: dfeas.suspects(X, LABELS, **how),
    "feasible": lambda **how: dfeas.feasible(X, [4.0, 4.0, 4.0, 4.0], **how),
    "predict": lambda **how: dfeas.predict(MODEL, X, **how),
}


def test_all_verbs_that_write_are_here() -> None:
    named = {
        name
        for name in dfeas.__all__
        if inspect.isfunction(verb := getattr(dfeas, name)) and "out" in inspect.signature(verb).parameters
    }
    assert named - {"report"} == set(VERBS) - {"cones", "sparse"}, "a report replaces its own pages"
    assert all("force" in inspect.signature(getattr(dfeas, name)).parameters for name in named - {"report"})


@pytest.mark.parametrize("verb", VERBS)
def test_a_cell_may_be_run_twice(verb: str, tmp_path: Path) -> None:
    out = tmp_path / ("out.npy" if verb == "predict" else "out")
    VERBS[verb](out=out)
    before = everything(tmp_path)
    with pytest.raises(UsageError, match="exists already; say force=True to replace it"):
        VERBS[verb](out=out)
    assert everything(tmp_path) == before
    VERBS[verb](out=out, force=True)
    assert before.keys() <= everything(tmp_path).keys()
    assert [each.name for each in tmp_path.iterdir()] == [out.name]


@pytest.mark.parametrize("verb", VERBS)
def test_what_dfeas_did_not_write_is_left_alone(verb: str, tmp_path: Path) -> None:
    out = tmp_path / ("out.npy" if verb == "predict" else "out")
    if verb == "predict":
        out.write_text("not of NumPy")
    else:
        out.mkdir()
        (out / "thesis.tex").write_text("years of work")
    before = everything(tmp_path)
    with pytest.raises(UsageError, match="force=True leaves alone"):
        VERBS[verb](out=out, force=True)
    assert everything(tmp_path) == before


def made_by_others(path: Path, names: str) -> None:
    for name in names.split():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text('{"accuracy": 0.9}')


def with_notes(path: Path) -> None:
    dfeas.solve(X, LABELS, out=path)
    (path / "notes.txt").write_text("why we ran it")


def linked(path: Path) -> None:
    dfeas.solve(X, LABELS, out=path.parent / "elsewhere")
    path.symlink_to(path.parent / "elsewhere")


@pytest.mark.parametrize("verb", ["solve", "race"])
@pytest.mark.parametrize(
    "make",
    [
        partial(made_by_others, names="result.json"),
        partial(made_by_others, names="race.json checkpoint/1.state"),
        partial(made_by_others, names="trace.jsonl"),
        partial(made_by_others, names="dfeas.lock checkpoint/model.pt"),
        partial(made_by_others, names="dfeas.lock scratch/mine.txt"),
        with_notes,
        linked,
        lambda path: dfeas.ingest(X, path, y=LABELS),
        lambda path: path.write_text("a file"),
    ],
)
def test_no_verb_replaces_what_only_looks_like_its_output(verb: str, make: Callable[[Path], Any], tmp_path: Path) -> None:
    make(tmp_path / "theirs")
    before = everything(tmp_path)
    with pytest.raises(UsageError, match="force=True"):
        VERBS[verb](out=tmp_path / "theirs", force=True)
    assert everything(tmp_path) == before
    assert (tmp_path / "theirs").is_symlink() == (make is linked)


@pytest.mark.parametrize("names", ["", "dfeas.lock", "dfeas.lock trace.jsonl scratch/x.f64"])
def test_what_was_killed_before_its_first_checkpoint_is_replaced(names: str, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    for name in names.split():
        (tmp_path / "run" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "run" / name).touch()
    dfeas.solve(X, LABELS, out=tmp_path / "run", force=True)
    assert (tmp_path / "run" / "result.json").exists()
    assert not (tmp_path / "run" / "scratch").exists()


def test_scores_never_replace_data(tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", LABELS)
    pd.DataFrame(X, columns=["a", "b"]).to_parquet(tmp_path / "X.parquet")
    before = everything(tmp_path)
    for points, labels, out in (
        (tmp_path / "X.npy", LABELS, "X.npy"),
        (X, LABELS, "X.npy"),
        (X, LABELS, "X.parquet"),
        (X, tmp_path / "y.npy", "y.npy"),
        (X, np.load(tmp_path / "y.npy", mmap_mode="r"), "y.npy"),
    ):
        with pytest.raises(UsageError, match=r"it is the data|leaves alone"):
            dfeas.predict(MODEL, points, labels, out=tmp_path / out, force=True)
    assert everything(tmp_path) == before


def test_what_is_there_comes_back_when_the_new_one_fails(tmp_path: Path) -> None:
    dfeas.solve(X, LABELS, out=tmp_path / "run")
    dfeas.ingest(X, tmp_path / "data", y=LABELS)
    before = everything(tmp_path)
    for fails in (
        lambda: dfeas.solve(np.full((4, 2), np.nan), LABELS, out=tmp_path / "run", force=True),
        lambda: dfeas.race(X, LABELS, methods="winnow,winow", out=tmp_path / "run", force=True),
        lambda: dfeas.ingest(np.full((4, 2), np.nan), tmp_path / "data", y=LABELS, force=True),
    ):
        with pytest.raises(dfeas.DfeasError):
            fails()
    assert everything(tmp_path) == before


def test_dual_variables_are_replaced_with_their_run(tmp_path: Path) -> None:
    def fit(**how: Any) -> Any:
        return dfeas.soft_margin(X, LABELS, out=tmp_path / "run", dual=tmp_path / "dual.npy", **how)

    fit()
    fit(C=3.0, force=True)
    assert np.load(tmp_path / "dual.npy") @ (LABELS[:, None] * X) == pytest.approx(dfeas.load(tmp_path / "run").coef, abs=1e-3)


def test_progress_is_a_line_or_a_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DFEAS_PROGRESS", raising=False)
    told: list[tuple[int, int]] = []
    dfeas.ingest(X, tmp_path / "a", y=LABELS, progress=lambda done, of: told.append((done, of)))
    dfeas.ingest(X, tmp_path / "b", y=LABELS)
    assert (told[-1], capsys.readouterr().err) == ((4, 4), "")
    dfeas.ingest(X, tmp_path / "c", y=LABELS, progress=True)
    dfeas.generate(dfeas.Instance("planted", 3, 40, 0.1), tmp_path / "d", progress=True)
    monkeypatch.setenv("DFEAS_PROGRESS", "1")
    dfeas.ingest(dfeas.from_cone_rows(X, {"l": 4}), tmp_path / "e")
    assert [line.split(" in ")[0] for line in capsys.readouterr().err.splitlines()] == [
        f"{n} points written" for n in (4, 40, 4)
    ]
    with pytest.raises(UsageError, match="progress='no': expected True or False or a function"):
        dfeas.ingest(X, tmp_path / "f", y=LABELS, progress="no")  # type: ignore[arg-type]


@pytest.mark.parametrize("suffix", [".npy", ".parquet", ".zarr"])
def test_what_is_in_the_place_of_scores_is_said_before_points_are_read(tmp_path: Path, suffix: str) -> None:
    X, out = np.array([[1.0, 2.0], [2.0, 1.0], [-1.0, -1.0]]), tmp_path / f"scores{suffix}"
    result = dfeas.solve(X, [1, 1, -1])
    (out / "of others").mkdir(parents=True)
    for force in (False, True):
        with pytest.raises(dfeas.UsageError, match="choose another output"):
            dfeas.predict(result, X, out=out, force=force)
    assert (out / "of others").is_dir()
    (empty := tmp_path / f"empty{suffix}").touch()
    with pytest.raises(dfeas.UsageError, match="no output of this kind"):
        dfeas.predict(result, X, out=empty, force=True)
    with pytest.raises(dfeas.BadInputError, match="no such folder"):
        dfeas.suspects(X, [1, -1, -1]).to_csv(tmp_path / "none" / "points.csv")
