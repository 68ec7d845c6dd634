"""Traces of results: the same rows from memory and from a folder, bounded, as frames, as figures; tables of LaTeX."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

import dfeas
from dfeas.answers.trace import MOST_ROWS, Trace
from dfeas.errors import CorruptDataError, UsageError
from dfeas.records import replace
from tests.run.making import RECORD

TIMES = {name for name in RECORD.to_json() if name.endswith("seconds")} | {"memory_bytes"}


def known(trace: Trace) -> list[dict[str, Any]]:
    """What does not depend on clocks."""
    return [{name: value for name, value in row.items() if name not in TIMES} for row in trace]


@settings(max_examples=40)
@given(st.integers(0, 800), st.integers(20, 500))
def test_a_trace_is_bounded_evenly_spaced_and_has_both_ends(count: int, sharers: int) -> None:
    trace = Trace(sharers=sharers)
    for passes in range(count):
        trace.record(replace(RECORD, passes=passes))
    found = [row["passes"] for row in trace]
    assert found == sorted({*range(0, count, trace.every), *range(count)[-1:]})
    assert len(trace) == len(found) <= max(MOST_ROWS // 100, MOST_ROWS // sharers)
    assert trace.every == 1 or len(found) > MOST_ROWS // sharers // 2
    assert trace.total == count


@pytest.mark.parametrize("verb", ["solve", "soft_margin"])
def test_memory_and_folder_have_the_same_trace(verb: str, arrays: Callable[..., Any], tmp_path: Path) -> None:
    X, labels = arrays("planted", 5, 300, margin=0.05)
    options = {"method": "mirror-prox"} if verb == "solve" else {"tol": 1e-6}
    here, there = (getattr(dfeas, verb)(X, labels, out=out, **options) for out in (None, tmp_path / "run"))
    assert len(here.trace) == len(there.trace) > 1
    assert known(here.trace) == known(there.trace) == known(dfeas.load(tmp_path / "run").trace)  # type: ignore[union-attr]
    for result in (here, there):
        again = pickle.loads(pickle.dumps(result))
        assert [*again.trace] == [*result.trace]
    last = here.trace[-1]
    assert (last["passes"], last["method"], last["reads"] <= here.reads) == (here.passes, here.method, True)
    assert [row["passes"] for row in here.trace[1:]] == [row["passes"] for row in here.trace][1:]


def test_a_run_that_went_on_has_all_of_its_passes(arrays: Callable[..., Any], tmp_path: Path) -> None:
    X, labels = arrays("planted", 5, 300, margin=0.02)
    options: dict[str, Any] = {"method": "normalized-perceptron", "intercept": False}
    dfeas.solve(X, labels, max_passes=3, out=tmp_path / "run", **options)
    resumed = dfeas.resume(tmp_path / "run", X, labels, max_passes=8)
    assert isinstance(resumed, dfeas.Result)
    assert resumed.trace is not None
    assert [row["passes"] for row in resumed.trace] == [1, 2, 3, 4, 5, 6, 7, 8]
    (tmp_path / "run" / "trace.jsonl").unlink()
    lost = dfeas.load(tmp_path / "run").trace  # type: ignore[union-attr]
    for _ in range(2):
        with pytest.raises(CorruptDataError, match=r"trace.jsonl: missing"):
            len(lost)  # type: ignore[arg-type]


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_traces_and_rows_become_frames(
    package: str, arrays: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if package == "polars":
        monkeypatch.setattr("dfeas.data.frames.find_spec", lambda name: name == "polars" or None)
    X, labels = arrays("planted", 5, 300, margin=0.05)
    dfeas.race(X, labels, methods=["perceptron", "mirror-prox"], out=tmp_path / "race")
    rows = dfeas.compare(tmp_path / "race")
    trace = dfeas.load(tmp_path / "race" / "mirror-prox").trace  # type: ignore[union-attr]
    assert trace is not None
    for source in (rows, trace):
        frame = source.to_frame()
        assert type(frame).__module__.startswith(package)
        assert list(frame.columns) == list(source[0])
        for name in frame.columns:
            assert [value if value == value else None for value in frame[name]] == [row[name] for row in source]
    assert len(Trace().to_frame()) == 0
    monkeypatch.setattr("dfeas.data.frames.find_spec", lambda name: None)
    with pytest.raises(UsageError, match="needs pandas or polars"):
        rows.to_frame()


def test_a_table_of_latex_has_no_letter_that_means_something_there(tmp_path: Path) -> None:
    for name in ("50%_of $x$", "a&b#{c}", "~^"):
        dfeas.solve([[1.0, 2.0], [-1.0, -1.0]], [1, -1], out=tmp_path / name, method="perceptron", max_passes=1)
    rows = dfeas.compare(sorted(tmp_path.iterdir()))
    lines = rows.to_latex().splitlines()
    assert lines[0] == r"\begin{tabular}{lllllrrrrrrr}"
    assert [lines[1], lines[3], *lines[-2:]] == [r"\toprule", r"\midrule", r"\bottomrule", r"\end{tabular}"]
    cells = [line.removesuffix(r" \\").split(" & ") for line in (lines[2], *lines[4:-2])]
    assert [len(row) for row in cells] == [12] * 4
    assert [row[0] for row in cells[1:]] == [r"50\%\_of \$x\$", r"a\&b\#\{c\}", r"\textasciitilde{}\textasciicircum{}"]
    shown = [line.split() for line in str(rows).splitlines()]
    assert [row[-3].replace("$-$", "-") for row in cells[1:]] == [row[-4] for row in shown[1:]]  # a size has two words


def test_a_plot_has_the_bracket_of_each_pass(arrays: Callable[..., Any], tmp_path: Path) -> None:
    X, labels = arrays("planted", 5, 300, margin=0.05)
    result = dfeas.solve(X, labels, method="mirror-prox")
    axes = Figure().subplots()
    assert result.plot(axes) is axes
    for line, name in zip(axes.lines, ("margin_upper", "margin_lower"), strict=True):
        assert result.trace is not None
        assert line.get_xdata().tolist() == [row["passes"] for row in result.trace]  # type: ignore[union-attr]
        assert line.get_ydata().tolist() == [row[name] for row in result.trace]  # type: ignore[union-attr]
    soft = dfeas.soft_margin(X, labels).plot(Figure().subplots())
    assert [line.get_label() for line in soft.lines] == ["objective", "lower bound"]
    race = dfeas.race(X, labels, methods=["perceptron", "mirror-prox"], out=tmp_path / "race")
    for drawn in (race.plot(Figure().subplots()), dfeas.compare(tmp_path / "race").plot(Figure().subplots())):
        assert {text.get_text().strip() for text in drawn.get_legend().get_texts()} == {
            "perceptron",
            "mirror-prox",
            "upper bound",
            "lower bound",
        }
    nothing = dfeas.solve([[0.0, 0.0], [1.0, 1.0]], [1, -1], intercept=False)
    assert nothing.passes == 0
    assert len(nothing.plot(Figure().subplots()).lines) == 2


def test_a_plot_has_the_gap_of_each_pass(arrays: Callable[..., Any]) -> None:
    X, labels = arrays("gaussian", 5, 300)
    result, soft = dfeas.solve(X, labels, method="mirror-prox", eps=0.05), dfeas.soft_margin(X, labels)
    race = dfeas.race(X, labels, methods=["perceptron", "mirror-prox"], eps=0.05, max_passes=9)
    for against in ("passes", "reads", "seconds"):
        axes = result.plot(Figure().subplots(), gap=True, against=against)
        ((line,), rows) = axes.lines, [*(result.trace or ())]
        assert line.get_xdata().tolist() == [row[against] for row in rows]
        assert line.get_ydata().tolist() == [row["margin_upper"] - row["margin_lower"] for row in rows]
        assert axes.get_legend() is None
        heights = soft.plot(Figure().subplots(), gap=True, against=against).lines[0].get_ydata()
        assert np.isfinite(heights).tolist() == [row["objective"] is not None for row in soft.trace or ()]
        assert len(race.plot(Figure().subplots(), gap=True, against=against).lines) == 2
    with pytest.raises(UsageError, match="against: expected passes, reads, seconds, got 'time'"):
        result.plot(Figure().subplots(), against="time")


def test_a_plot_without_matplotlib_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    result = dfeas.solve([[1.0, 2.0], [-1.0, -1.0]], [1, -1])
    monkeypatch.delitem(sys.modules, "dfeas.figures", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match="a figure needs matplotlib: pip install"):
        result.plot()
