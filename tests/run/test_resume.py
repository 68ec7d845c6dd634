"""Runs that are interrupted and go on: the same bits, whatever stopped them and wherever they go on."""

import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import dfeas
from dfeas.answers.files import load_values
from dfeas.answers.result import Result
from dfeas.answers.trace import TraceFile
from dfeas.data.source import DataSpec
from dfeas.data.storage.scratch import Scratch
from dfeas.errors import BadInputError, CorruptDataError, UsageError
from dfeas.methods.registry import METHODS
from dfeas.problem import Goal, Problem
from dfeas.run.checkpoint.folder import Checkpoints, run_folder
from dfeas.run.execute import execute
from dfeas.run.recovery import Checking
from dfeas.run.resources import Limits, Output, Resources, RunOptions, attend_runs
from dfeas.run.session import open_session
from dfeas.run.spec import Request, RunSpec
from dfeas.verify.certificate import load
from tests.typed import DFEAS
from tests.typed import dfeas as typed


@pytest.fixture
def saved_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint after every pass."""
    monkeypatch.setenv("DFEAS_CHECKPOINT_EVERY", "0")


def after(passes: int) -> Callable[[], bool]:
    """Asked to stop before the pass that follows so many."""
    left = iter(range(passes))
    return lambda: next(left, None) is None


def run_until(stop: Callable[[], bool], verb: Callable[..., Any], *asked: Any, **options: Any) -> Any:
    """The answer of a verb to whom somebody says when to stop."""
    with attend_runs(stop):
        return verb(*asked, **options)


CLOCKED = {
    "bytes_read",
    "cached_bytes",
    "seconds",
    "pass_seconds",
    "read_seconds",
    "scan_seconds",
    "engine_seconds",
    "method_seconds",
    "memory_bytes",
}


def passes_of(run: Path) -> list[dict[str, Any]]:
    """What the trace says of each pass, but for clocks, memory, and what came from storage."""
    events = [json.loads(line) for line in (run / "trace.jsonl").read_text().splitlines()]
    return [{k: v for k, v in e.items() if k not in CLOCKED} for e in events if e["event"] == "pass"]


def digest(run: Path) -> str:
    """sha256 over the certificate and what the trace says."""
    sha = hashlib.sha256(json.dumps(passes_of(run)).encode())
    certificate = load(run / "certificate.npz")
    for array in (certificate.y, certificate.support, certificate.weights):
        sha.update(array.tobytes())
    return sha.hexdigest()


@pytest.mark.parametrize(
    ("kind", "name"), [*(("halfspace", name) for name in METHODS), ("one-flip", "working-set"), ("one-flip", "ispvn")]
)
def test_every_method_goes_on_with_the_same_bits_wherever_it_was_stopped(
    arrays: Callable[..., Any], tmp_path: Path, kind: str, name: str
) -> None:
    X, labels = arrays(kind, 6, 300, seed=3)
    limits = {"eps": 0.02, "max_passes": 40}
    whole = dfeas.solve(X, labels, intercept=False, method=name, out=tmp_path / "whole", **limits)
    most = int(whole.passes)
    for passes in sorted({0, 1, 3, most - 1} & set(range(most))):
        run = tmp_path / f"after{passes}"
        begun = run_until(after(passes), dfeas.solve, X, labels, intercept=False, method=name, out=run, **limits)
        assert begun.stopped == "interrupted"
        resumed = dfeas.resume(run, X, labels)
        assert isinstance(resumed, Result)
        for key in ("verdict", "stopped", "margin_lower", "margin_upper", "passes", "iterations"):
            assert getattr(resumed, key) == getattr(whole, key), key
        assert resumed.reads == whole.reads + 1  # the survey of an array is made again
        assert digest(run) == digest(tmp_path / "whole")
        assert (run / "checkpoint").exists() == (whole.stopped == "pass_limit")
        assert not (run / "scratch").exists()


def test_a_run_goes_on_after_every_pass_again_and_again(arrays: Callable[..., Any], tmp_path: Path) -> None:
    X, labels = arrays("halfspace", 8, 500)
    options: dict[str, Any] = {"method": "ispvn", "max_passes": 12}
    dfeas.solve(X, labels, out=tmp_path / "whole", **options)
    result: Any = run_until(after(1), dfeas.solve, X, labels, out=tmp_path / "run", **options)
    turns = 0
    while result.stopped == "interrupted":
        result = run_until(after(1), dfeas.resume, tmp_path / "run", X, labels)
        turns += 1
    assert turns > 12
    assert (result.stopped, result.passes) == ("pass_limit", 12)
    assert digest(tmp_path / "run") == digest(tmp_path / "whole")
    assert len(list((tmp_path / "run" / "checkpoint").glob("*.state"))) == 2
    assert len(list((tmp_path / "run" / "checkpoint").glob("*.vectors"))) <= 2


def test_a_vector_is_summed_once_for_all_checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors are written once; one that is written anew is another."""
    summed, plain = [], Scratch.seal
    monkeypatch.setattr(Scratch, "seal", lambda self, name: summed.append(name) or plain(self, name))
    scratch, kept = Scratch(tmp_path / "scratch"), Checkpoints(tmp_path / "checkpoint")
    for turn, name in enumerate("aabc"):
        if name not in scratch.names:
            scratch.write(name, 0, np.full(10, float(turn)))
        kept.save({}, scratch)
    assert summed == ["a", "b", "c"]
    scratch.keep("bc")
    scratch.write("a", 0, np.zeros(10))
    kept.save({}, scratch)
    assert summed == ["a", "b", "c", "a"]
    kept.load(scratch)
    assert sorted(scratch.names) == ["a", "b", "c"]


def test_a_race_goes_on_and_what_has_ended_stays(arrays: Callable[..., Any], tmp_path: Path) -> None:
    X, labels = arrays("planted", 10, 800, margin=0.02)
    names = ["smooth-perceptron", "working-set", "mirror-prox", "ispvn"]
    options: dict[str, Any] = {"methods": names, "max_passes": 80}
    whole = dfeas.race(X, labels, intercept=False, out=tmp_path / "whole", **options)
    begun = run_until(after(7), dfeas.race, X, labels, intercept=False, out=tmp_path / "run", **options)
    assert begun.results["working-set"].stopped == "verdict"
    assert begun.results["smooth-perceptron"].stopped == "interrupted"
    resumed = dfeas.resume(tmp_path / "run", X, labels)
    assert isinstance(resumed, dfeas.Race)
    for name in names:
        assert resumed.results[name].passes == whole.results[name].passes
        assert digest(tmp_path / "run" / name) == digest(tmp_path / "whole" / name)
    assert resumed.reads == whole.reads + 1
    assert not (tmp_path / "run" / "checkpoint").exists()


class Interrupted(Checking):
    """Somebody presses Ctrl-C while it works."""

    def __call__(self, certificates: Any) -> Any:
        raise KeyboardInterrupt


def test_a_run_that_was_interrupted_in_its_check_has_no_pass_twice_in_its_trace(
    arrays: Callable[..., Any], tmp_path: Path
) -> None:
    X, labels = arrays("planted", 10, 800, margin=0.02)
    dfeas.solve(X, labels, intercept=False, out=tmp_path / "whole")
    request = Request.begun(Goal(), Limits(), Resources())
    job = RunSpec(request, ("working-set",), ("it fits",), False, False, DataSpec(None, intercept=False))
    opened = open_session(Problem.of(X, labels, intercept=False), Resources(), tmp_path / "run")
    with opened as session, run_folder(tmp_path / "run") as folder:
        checking = Interrupted(session.checking.engine, session.checking.dataset)
        with pytest.raises(KeyboardInterrupt, match="goes on"):
            execute(replace(session, checking=checking), job, RunOptions.of(30.0, Output()), folder)
    assert load_values(tmp_path / "run")["stopped"] == "interrupted"
    assert isinstance(resumed := dfeas.resume(tmp_path / "run", X, labels), Result)
    assert resumed.verdict == "feasible"
    assert digest(tmp_path / "run") == digest(tmp_path / "whole")


def test_a_limit_can_be_raised_and_an_ended_run_says_that_it_has_ended(arrays: Callable[..., Any], tmp_path: Path) -> None:
    X, labels = arrays("planted", 20, 2000, margin=0.01)
    whole = dfeas.solve(X, labels, method="mirror-prox", out=tmp_path / "whole")
    first = dfeas.solve(X, labels, method="mirror-prox", out=tmp_path / "run", max_passes=3)
    assert first.stopped == "pass_limit"
    again = dfeas.resume(tmp_path / "run", X, labels)
    assert isinstance(again, Result)
    assert (again.stopped, again.passes) == ("pass_limit", 3)
    last = dfeas.resume(tmp_path / "run", X, labels, max_passes=10_000)
    assert isinstance(last, Result)
    assert (last.verdict, last.passes) == (whole.verdict, whole.passes)
    assert digest(tmp_path / "run") == digest(tmp_path / "whole")
    assert last.seconds > first.seconds
    with pytest.raises(BadInputError, match="finished"):
        dfeas.resume(tmp_path / "run", X, labels)


def test_a_separator_that_is_not_wide_enough_does_not_end_a_resumed_run(arrays: Callable[..., Any], tmp_path: Path) -> None:
    X, labels = arrays("planted", 10, 800, margin=0.1)
    options: dict[str, Any] = {"method": "mirror-prox-one-pass", "margin_tolerance": 0.02}
    whole = dfeas.solve(X, labels, **options)
    cut = dfeas.solve(X, labels, max_passes=10, out=tmp_path / "run", **options)
    assert (cut.verdict, cut.stopped) == ("feasible", "pass_limit")
    resumed = dfeas.resume(tmp_path / "run", X, labels, max_passes=100_000)
    assert isinstance(resumed, Result)
    assert (resumed.stopped, resumed.passes, resumed.margin_lower) == ("verdict", whole.passes, whole.margin_lower)


@pytest.mark.usefixtures("saved_always")
def test_the_newest_checkpoint_that_can_be_read_is_taken(
    arrays: Callable[..., Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    X, labels = arrays("halfspace", 8, 500)
    run = tmp_path / "run"
    whole = dfeas.solve(X, labels, method="mirror-prox-fixed", max_passes=9, out=tmp_path / "whole")
    run_until(after(5), dfeas.solve, X, labels, method="mirror-prox-fixed", max_passes=9, out=run)
    older, newest = sorted((run / "checkpoint").glob("*.state"))
    newest.write_bytes(newest.read_bytes()[:-40])
    resumed = dfeas.resume(run, X, labels)
    assert "going on from the one before" in caplog.text
    assert isinstance(resumed, Result)
    assert (resumed.passes, resumed.margin_lower) == (whole.passes, whole.margin_lower)
    shutil.rmtree(run)
    run_until(after(5), dfeas.solve, X, labels, method="mirror-prox-fixed", max_passes=9, out=run)
    for path in (run / "checkpoint").glob("*.state"):
        path.write_bytes(b"{}")
    with pytest.raises(CorruptDataError, match="not a readable checkpoint"):
        dfeas.resume(run, X, labels)
    assert older.exists()


def test_a_run_that_can_go_on_is_not_overwritten(arrays: Callable[..., Any], tmp_path: Path) -> None:
    X, labels = arrays("halfspace", 8, 500)
    run_until(after(1), dfeas.solve, X, labels, method="mirror-prox-fixed", out=tmp_path / "run")
    with pytest.raises(UsageError, match="dfeas resume"):
        dfeas.solve(X, labels, out=tmp_path / "run")
    with pytest.raises(BadInputError, match="no such run"):
        dfeas.resume(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInputError, match="nothing to resume"):
        dfeas.resume(tmp_path / "empty")
    with pytest.raises(UsageError, match="in memory"):
        dfeas.resume(tmp_path / "run")
    with pytest.raises(UsageError, match="max_passes"):
        dfeas.resume(tmp_path / "run", X, labels, max_passes=0)
    with pytest.raises(CorruptDataError, match="not the data that this run began with"):
        dfeas.resume(tmp_path / "run", X[::-1], labels)
    assert isinstance(dfeas.resume(tmp_path / "run", X, labels), Result)


@pytest.mark.usefixtures("saved_always")
def test_a_checkpoint_that_cannot_be_written_does_not_end_a_run(
    arrays: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, labels = arrays("halfspace", 8, 500)
    save, calls = Checkpoints.save, []

    def full(self: Checkpoints, value: Any, scratch: Scratch) -> None:
        calls.append(value)
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        save(self, value, scratch)

    monkeypatch.setattr(Checkpoints, "save", full)
    result = dfeas.solve(X, labels, method="mirror-prox-fixed", out=tmp_path / "run", max_passes=5)
    assert result.passes == 5
    assert len(calls) > 2
    assert "no checkpoint could be written" in (tmp_path / "run" / "trace.jsonl").read_text()


def _damaged(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.unlink()  # its other names keep what they have
    path.write_bytes(content)


@pytest.mark.usefixtures("saved_always")
@pytest.mark.parametrize("damage", [_damaged, lambda path: os.truncate(path, 8), Path.unlink])
def test_a_damaged_vector_of_a_checkpoint_means_the_one_before(
    arrays: Callable[..., Any], tmp_path: Path, damage: Callable[[Path], Any], caplog: pytest.LogCaptureFixture
) -> None:
    X, labels = arrays("one-flip", 8, 500)
    whole = dfeas.solve(X, labels, method="ispvn", max_passes=30)
    run = tmp_path / "run"
    run_until(after(20), dfeas.solve, X, labels, method="ispvn", max_passes=30, out=run)
    *older, newest = sorted((run / "checkpoint").glob("*.vectors"))
    shared = {path.name for folder in older for path in folder.iterdir()}
    damage(next(path for path in newest.iterdir() if path.name not in shared))
    resumed = dfeas.resume(run, X, labels)
    assert isinstance(resumed, Result)
    assert "going on from the one before" in caplog.text
    assert (resumed.passes, resumed.margin_upper) == (whole.passes, whole.margin_upper)


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """No file can grow beyond so many bytes, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_costs_a_part_of_the_trace_and_it_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    trace = TraceFile(tmp_path / "trace.jsonl")
    trace.note("start", "it begins")
    with files_up_to(trace.size + 10):
        for number in range(3):
            trace.note("lost", f"event {number}")
    trace.note("end", "it ends")
    events = [json.loads(line) for line in (tmp_path / "trace.jsonl").read_text().splitlines()]
    assert [event["event"] for event in events] == ["start", "gap", "end"]
    assert events[1]["events"] == 3
    assert caplog.text.count("its trace has a gap") == 1


def test_a_result_that_cannot_be_written_says_how_to_go_on(arrays: Callable[..., Any], tmp_path: Path) -> None:
    X, labels = arrays("halfspace", 8, 500)
    run = tmp_path / "run"
    words = {"method": "mirror-prox-fixed", "max_passes": 9}
    whole = dfeas.solve(X, labels, **words)
    with ExitStack() as stack:
        full = [files_up_to(0)]
        with pytest.raises(CorruptDataError, match=rf"run/certificate.npz: File too large; .* dfeas resume {run}"):
            dfeas.solve(X, labels, **words, out=run, callback=lambda record: full and stack.enter_context(full.pop()) and None)
    resumed = dfeas.resume(run, X, labels)
    assert isinstance(resumed, Result)
    assert (resumed.passes, resumed.margin_lower) == (whole.passes, whole.margin_lower)


@pytest.mark.parametrize("question", [dfeas.hard_margin, dfeas.separation])
@pytest.mark.parametrize("cut", ["while it solves", "before its answer"])
def test_what_a_solve_was_for_is_written_when_it_goes_on(
    arrays: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, question: Any, cut: str
) -> None:
    X, labels = arrays("planted", 6, 800, margin=0.05)
    whole = question(X, labels, method="working-set", out=tmp_path / "whole")
    run, name = tmp_path / "run", "margin.json" if question is dfeas.hard_margin else "separation.json"
    if cut == "while it solves":
        run_until(after(1), question, X, labels, method="working-set", out=run)
    else:
        monkeypatch.setattr(dfeas.HardMargin if question is dfeas.hard_margin else dfeas.Separation, "save", _cut_off)
        with pytest.raises(KeyboardInterrupt):
            question(X, labels, method="working-set", out=run)
        monkeypatch.undo()
    assert not (run / name).exists()
    resumed = dfeas.resume(run, X, labels)
    assert type(resumed) is type(whole)
    assert (run / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert not (run / "checkpoint").exists()


def _cut_off(path: Path, *content: Any) -> Any:
    raise KeyboardInterrupt


@pytest.mark.usefixtures("saved_always")
def test_checkpoints_are_seldom_when_they_are_slow(
    arrays: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, labels = arrays("halfspace", 8, 500)
    calls = []

    def slow(self: Checkpoints, value: Any, scratch: Scratch) -> None:
        calls.append(value)
        until = time.monotonic() + 0.2
        while time.monotonic() < until:
            pass

    monkeypatch.setattr(Checkpoints, "save", slow)
    dfeas.solve(X, labels, method="perceptron", out=tmp_path / "run", max_passes=40, time_limit=3)
    assert len(calls) <= 3  # at the start, one after a pass, and the last


# ---- whole processes


@contextmanager
def running(*words: str | Path, cwd: Path | None = None) -> Iterator[subprocess.Popen[str]]:
    """dfeas in a process of its own, which does not outlive the test."""
    with subprocess.Popen(
        [*DFEAS, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def finished(*words: str | Path, cwd: Path | None = None) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of dfeas in this process."""
    done = typed(*words, cwd=cwd)
    return done.returncode, done.stdout, done.stderr


def await_passes(run: Path, passes: int, process: subprocess.Popen[str]) -> None:
    """Wait until the trace holds so many passes."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        trace = run / "trace.jsonl"
        if trace.exists() and trace.read_text().count('"event": "pass"') >= passes:
            return
        time.sleep(0.01)
    raise AssertionError("the passes did not come")


LONG = "100"
"""Passes: more than there is time for until a signal comes."""


@pytest.fixture(scope="module")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A dataset, and a whole run on it."""
    folder = tmp_path_factory.mktemp("long")
    assert finished("generate", "halfspace", folder / "data", "--features", "60", "--points", "100000")[0] == 0
    words = ["--method", "mirror-prox-fixed", "--max-passes", LONG]
    assert finished("solve", folder / "data", "--out", folder / "whole", *words)[0] == 3
    return folder / "data", folder / "whole"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT], ids=["TERM", "USR1", "INT"])
def test_a_signal_ends_a_run_with_75_and_it_goes_on_elsewhere(
    long_run: tuple[Path, Path], tmp_path: Path, number: signal.Signals
) -> None:
    data, whole = long_run
    words = ["--method", "mirror-prox-fixed", "--max-passes", LONG]
    with running("solve", os.path.relpath(data, tmp_path), "--out", "run", *words, cwd=tmp_path) as process:
        await_passes(tmp_path / "run", 3, process)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 75, err
    assert "interrupted" in out
    assert "dfeas resume run" in err
    (tmp_path / "moved").mkdir()
    (tmp_path / "run").rename(tmp_path / "moved" / "run")
    more = ["--local", "2"] if number == signal.SIGTERM else []
    code, out, err = finished("resume", tmp_path / "moved" / "run", "--json", *more, cwd=tmp_path / "moved")
    assert code == 3, err
    assert json.loads(out)["passes"] == int(LONG)
    assert digest(tmp_path / "moved" / "run") == digest(whole)


@pytest.mark.usefixtures("saved_always")
def test_a_driver_that_was_killed_goes_on(long_run: tuple[Path, Path], tmp_path: Path) -> None:
    data, whole = long_run
    words = ["--method", "mirror-prox-fixed", "--max-passes", LONG]
    with running("solve", data, "--out", tmp_path / "run", "--local", "2", *words) as process:
        await_passes(tmp_path / "run", 10, process)
        process.kill()
        process.communicate(timeout=60)
    code, _, err = finished("solve", data, "--out", tmp_path / "run", *words)
    assert code == 2
    assert "dfeas resume" in err
    left = tmp_path / "run" / ".certificate.npz.1.part"
    left.write_bytes(b"as a kill may leave it")
    code, _, err = finished("resume", tmp_path / "run")
    assert code == 3, err
    assert "going on after pass" in err
    assert not left.exists()
    assert digest(tmp_path / "run") == digest(whole)
    code, _, err = finished("solve", data, "--out", tmp_path / "new", "--max-passes", "9")
    assert code == 0, err
    code, out, _ = finished("resume", tmp_path / "new")
    assert (code, "is finished" in out) == (0, True)


def test_two_processes_do_not_work_on_one_run(long_run: tuple[Path, Path], tmp_path: Path) -> None:
    data, _ = long_run
    with running("solve", data, "--out", tmp_path / "run", "--method", "mirror-prox-fixed") as process:
        await_passes(tmp_path / "run", 2, process)
        code, _, err = finished("resume", tmp_path / "run")
        assert code == 2
        assert "another process" in err


def test_other_data_is_noticed_and_moved_data_is_found(long_run: tuple[Path, Path], tmp_path: Path) -> None:
    data, whole = long_run
    shutil.copytree(data, tmp_path / "data")
    words = ["--method", "mirror-prox-fixed", "--max-passes"]
    assert finished("solve", tmp_path / "data", "--out", tmp_path / "run", *words, "5")[0] == 3
    (tmp_path / "data").rename(tmp_path / "moved")
    code, _, err = finished("resume", tmp_path / "run", "--max-passes", LONG)
    assert code == 4
    assert "no such file" in err
    finished("generate", "halfspace", tmp_path / "data", "--features", "60", "--points", "100000", "--seed", "9")
    code, _, err = finished("resume", tmp_path / "run", "--max-passes", LONG)
    assert code == 5
    assert "not the data that this run began with" in err
    code, _, err = finished("resume", tmp_path / "run", "--max-passes", LONG, "--data", tmp_path / "moved")
    assert code == 3, err
    assert digest(tmp_path / "run") == digest(whole)


def test_a_zarr_array_of_others_is_surveyed_again(arrays: Callable[..., Any], tmp_path: Path) -> None:
    X, labels = arrays("halfspace", 8, 500)
    zarr.save_array(tmp_path / "X", X)
    zarr.save_array(tmp_path / "y", labels)
    options: dict[str, Any] = {"method": "mirror-prox-fixed", "max_passes": 6, "y": str(tmp_path / "y")}
    whole = dfeas.solve(str(tmp_path / "X"), **options)
    run_until(after(2), dfeas.solve, str(tmp_path / "X"), out=tmp_path / "run", **options)
    zarr.open_array(tmp_path / "X", mode="r+")[7, 3] = np.float32(0.125)
    with pytest.raises(CorruptDataError, match="not the data"):
        dfeas.resume(tmp_path / "run")
    zarr.open_array(tmp_path / "X", mode="r+")[7, 3] = X[7, 3]
    resumed = dfeas.resume(tmp_path / "run")
    assert isinstance(resumed, Result)
    assert (resumed.margin_lower, resumed.margin_upper, resumed.reads) == (
        whole.margin_lower,
        whole.margin_upper,
        whole.reads + 1,
    )
