"""Progress of writing and of reads: rate, share and time left, now and then; what is logged."""

import io
import logging
import math
import os
import pty
import re
import sys
from pathlib import Path
from typing import Any

import dask.utils
import numpy as np
import pytest

import dfeas
from dfeas.errors import format_bytes
from dfeas.records import replace
from dfeas.run.progress.screen import Line, Screen
from dfeas.run.progress.terminal import IngestProgress, Scoreboard, Terminal
from dfeas.run.resources import attend_runs
from dfeas.settings import parse_bytes
from tests.cli import terminal
from tests.run.making import RECORD, Clock, Gone, Live, events_of

PASS = replace(RECORD, passes=7, margin_lower=-1.234e-3, margin_upper=2.345e-2, violated=1234, seconds=70.0, pass_seconds=10.0)


def shown(stream: io.StringIO, columns: int = 80) -> terminal.Screen:
    screen = terminal.Screen(columns)
    screen.write(stream.getvalue().replace("\n", "\n\r"))
    return screen


def test_rate_and_time_left() -> None:
    stream, clock = io.StringIO(), Clock()
    told = IngestProgress(stream, clock=clock)
    for clock.now, done, total in ((1.0, 100, 2000), (10.0, 1000, 2000), (12.0, 1200, 2000), (20.0, 2000, 2000)):
        told(done, total)
    assert stream.getvalue().splitlines() == [
        "1000 of 2000 points  100 points/s  about 10 s left",
        "2000 points written in 20.0 s, 100 points/s",
    ]


def test_a_terminal_has_one_line() -> None:
    stream, clock = Live(), Clock()
    told = IngestProgress(stream, clock=clock)
    for clock.now, done in ((1.0, 500), (1.5, 750)):
        told(done, 1000)
        assert shown(stream).text.startswith(f"{done} of 1000 points")
        assert "500 points/s" in shown(stream).text
        assert f" {done // 10}%  500 points/s" in shown(stream).text
    clock.now = 2.0
    told(1000, 1000)
    screen = shown(stream)
    assert screen.text.strip() == "1000 points written in 2.0 s, 500 points/s"
    assert (screen.wrapped, screen.begun) == (0, 1)


@pytest.mark.parametrize("columns", [40, 80, 132])
def test_a_read_that_goes_on_is_shown_in_one_row_of_any_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    stream, clock = Live(), Clock()
    line = Terminal(stream, lambda records: 3.0, clock=clock)
    clock.now = 70.0
    line.record(PASS)
    for done in range(0, 101, 4):
        line.observe(done, 100, 10**10)
        clock.now += 2.0
        screen = shown(stream, columns)
        assert (screen.wrapped, screen.begun) == (0, 0)
        assert len(screen.rows[0].rstrip()) < columns
    if columns >= 80:
        assert "96%" in screen.text
        assert f"{format_bytes(10**10 / 50)}/s" in screen.text
        assert "pass 7  margin -1.234e-03 .. 2.345e-02" in screen.text
    line.note("check", "done")
    assert "done" in shown(stream, columns).rows[0]
    line.close()
    assert stream.getvalue().endswith("\x1b[2K"), "of a line that moves nothing stays"


def test_passes_in_a_pipe_are_said_every_five_seconds_and_the_last_one() -> None:
    stream, clock = io.StringIO(), Clock()
    line = Terminal(stream, lambda records: 1.0, clock=clock)
    for passes in range(1, 40):
        clock.now += 1
        line.record(replace(PASS, passes=passes, margin_lower=0.01 - 1 / passes, violated=9))
    line.note("check", "done")
    line.close()
    *_, last_but_one, last, note = stream.getvalue().splitlines()
    assert stream.getvalue().count("\n") == 8 + 2
    assert not {"\r", "\x1b"} & set(stream.getvalue())
    assert "pass 36" in last_but_one
    assert all(words in last for words in ("pass 39", "9 violated", "s left"))
    assert note.endswith("done")


def test_a_lost_terminal_ends_neither_a_run_nor_a_race() -> None:
    for told in (Terminal(Gone(), lambda records: math.inf), Scoreboard(Gone()).row("one")):
        told.record(RECORD)
        told.note("stopped", "", verdict="feasible", stopped="verdict")
        told.close()


def test_time_left_is_to_the_goal_and_without_one_to_the_end_of_the_read() -> None:
    for passes, left in ((3.0, "20 s left"), (math.inf, "15 s left")):
        stream, clock = Live(), Clock()
        line = Terminal(stream, lambda records, passes=passes: passes, clock=clock)
        clock.now = 70.0
        line.record(PASS)  # ten seconds a pass
        line.observe(0, 10, 1000)
        for done, seconds in ((1, 2.5), (4, 10.0)):
            clock.now = 70.0 + seconds
            line.observe(done, 10, 1000)
        assert shown(stream).text.rstrip().endswith(left)


def test_a_log_says_every_five_seconds_how_far_a_read_is() -> None:
    stream, clock = io.StringIO(), Clock()
    line = Terminal(stream, lambda records: math.inf, clock=clock)
    for done in range(61):
        line.observe(done, 60, 6 << 30)
        clock.now += 0.5
    rows = stream.getvalue().splitlines()
    assert rows[0] == "first read  2 %  204.80 MiB/s  30 s left"
    assert len(rows) == 6
    assert not {"\r", "\x1b", "|"} & set(stream.getvalue())


def test_a_terminal_that_grows_narrow_has_no_row_that_wraps() -> None:
    leader, follower = pty.openpty()
    with os.fdopen(leader, "rb", buffering=0), os.fdopen(follower, "w") as stream:
        screen = Screen(stream)
        for columns in (120, 80, 30):
            terminal.resize(follower, columns)
            assert screen.columns == columns - 1
            screen.show([Line("x" * 200), Line("pass 1", 0.5, "y" * 200)])
            seen = ""
            while seen.count("…") < 2:  # each row is longer than any of them
                seen += os.read(leader, 1 << 16).decode()
            rows = [
                part for part in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen).replace("\n", "\r").split("\r") if part.strip()
            ]
            assert max(len(row.rstrip()) for row in rows) == columns - 1
        screen.leave()


def test_what_is_no_progress_is_logged(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    X = np.random.default_rng(0).standard_normal((300, 3))
    with caplog.at_level(logging.INFO, "dfeas"):
        dfeas.solve(X, np.where(X @ [1.0, 2.0, 3.0] > 0, "yes", "no"))
    assert [record.name for record in caplog.records][:1] == ["dfeas"]
    assert "300 points, 3 features" in caplog.text
    assert "300 points" not in capsys.readouterr().err  # it is not said twice
    monkeypatch.setenv("DFEAS_PROGRESS", "1")
    dfeas.solve(X, np.where(X @ [1.0, 2.0, 3.0] > 0, "yes", "no"))
    assert "300 points, 3 features" in capsys.readouterr().err


@pytest.mark.parametrize("handled", [False, True])
@pytest.mark.parametrize("progress", [False, True])
def test_a_warning_is_said_once_and_every_sink_is_told(
    handled: bool, progress: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = logging.getLogger("dfeas")
    monkeypatch.setattr(log, "propagate", False)  # pytest has handlers of its own
    heard: list[str] = []
    if handled:
        monkeypatch.setattr(log, "handlers", [logging.StreamHandler(sys.stderr)])

    def warn(record: Any) -> None:
        heard.extend(record.warnings)
        if record.passes == 2:
            log.warning("storage does not answer")

    X = np.random.default_rng(0).standard_normal((300, 3))
    with attend_runs(progress=progress):
        dfeas.solve(X, X[:, 0] > 1, method="mirror-prox", eps=1e-9, max_passes=4, callback=warn, out=tmp_path / "run")
    assert heard == ["storage does not answer"]
    assert [event["text"] for event in events_of(tmp_path / "run", "warning")] == heard
    assert capsys.readouterr().err.count("storage does not answer") == 1
    assert not log.filters


@pytest.mark.parametrize("size", [0, 1, 900, 921, 922, 1234, 10**6, 943717, 943718, 12345678, 1.2e9, 1.2e12, 3e15, 2**60])
def test_sizes_are_said_as_dask_says_them(size: float) -> None:
    assert format_bytes(size) == (dask.utils.format_bytes(size) if size >= 900 else f"{size} B")


@pytest.mark.parametrize("text", ["2GB", "512MiB", "100", "1.5 k", "1e6 kB", ".5 GiB", "2PB", 4096, "3gb"])
def test_sizes_are_read_as_dask_reads_them(text: str | int) -> None:
    assert parse_bytes(text) == dask.utils.parse_bytes(text)
