"""Runs that are interrupted and go on: the same bits, whatever stopped them and wherever they go on."""

import json
import os
import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import dfeas
from dfeas.answers.files import load_values
from dfeas.answers.trace import TraceFile
from dfeas.data.source import DataSpec
from dfeas.errors import BadInputError, CorruptDataError, UsageError
from dfeas.problem import Goal, Problem
from dfeas.records import replace
from dfeas.run.checkpoint.folder import run_folder
from dfeas.run.execute import execute
from dfeas.run.resources import Limits, Output, Resources, RunOptions
from dfeas.run.session import Checking, open_session
from dfeas.run.spec import Request, RunSpec
from tests.cli.making import start, wait_for
from tests.run.making import after, digest, events_of, run_until
from tests.typed import dfeas as typed


@pytest.fixture
def saved_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint after every pass."""
    monkeypatch.setenv("DFEAS_CHECKPOINT_EVERY", "0")


STATES = [
    "working-set",
    "mirror-prox",
    "smooth-winnow",
    "rescaled-perceptron",
    "online-perceptron",
    "von-neumann-away",
    "ispvn",
]
"""Methods whose states are of different kinds; ``conformance`` has all of them."""


@pytest.mark.parametrize(
    ("kind", "name"), [*(("halfspace", name) for name in STATES), ("one-flip", "working-set"), ("one-flip", "ispvn")]
)
def test_every_method_goes_on_with_the_same_bits_wherever_it_was_stopped(
    arrays: Callable[..., Any], tmp_path: Path, kind: str, name: str
) -> None:
    X, labels = arrays(kind, 6, 300, seed=3)
    limits = {"eps": 0.02, "max_passes": 40}
    whole = dfeas.solve(X, labels, intercept=False, method=name, out=tmp_path / "whole", **limits)
    most = int(whole.passes)
    for passes in sorted({1, most - 1} & set(range(most))):
        run = tmp_path / f"after{passes}"
        begun = run_until(after(passes), dfeas.solve, X, labels, intercept=False, method=name, out=run, **limits)
        assert begun.stopped == "interrupted"
        resumed = dfeas.resume(run, X, labels)
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
    assert dfeas.resume(tmp_path / "run", X, labels).verdict == "feasible"
    assert digest(tmp_path / "run") == digest(tmp_path / "whole")


def test_a_limit_can_be_raised(arrays: Callable[..., Any], tmp_path: Path) -> None:
    X, labels = arrays("planted", 20, 2000, margin=0.01)
    whole = dfeas.solve(X, labels, method="mirror-prox", out=tmp_path / "whole")
    first = dfeas.solve(X, labels, method="mirror-prox", out=tmp_path / "run", max_passes=3)
    again = dfeas.resume(tmp_path / "run", X, labels)
    assert [(each.stopped, each.passes) for each in (first, again)] == [("pass_limit", 3)] * 2
    last = dfeas.resume(tmp_path / "run", X, labels, max_passes=10_000)
    assert (last.verdict, last.passes) == (whole.verdict, whole.passes)
    assert digest(tmp_path / "run") == digest(tmp_path / "whole")
    assert last.seconds > first.seconds


@pytest.mark.usefixtures("saved_always")
def test_a_damaged_checkpoint_means_the_one_before_and_where_none_can_be_read_that_is_said(
    arrays: Callable[..., Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    X, labels = arrays("one-flip", 8, 500)
    options: dict[str, Any] = {"method": "ispvn", "max_passes": 30}
    whole = dfeas.solve(X, labels, **options)
    run_until(after(20), dfeas.solve, X, labels, out=tmp_path / "run", **options)
    for number, damage in enumerate((_damaged, lambda path: os.truncate(path, 8), Path.unlink, "state")):
        run = Path(shutil.copytree(tmp_path / "run", tmp_path / str(number)))
        *older, newest = sorted((run / "checkpoint").glob("*.vectors"))
        shared = {path.name for folder in older for path in folder.iterdir()}
        if damage == "state":
            os.truncate(newest.with_suffix(".state"), 100)
        else:
            damage(next(path for path in newest.iterdir() if path.name not in shared))
        caplog.clear()
        resumed = dfeas.resume(run, X, labels)
        assert "going on from the one before" in caplog.text
        assert (resumed.passes, resumed.margin_upper) == (whole.passes, whole.margin_upper)
    for path in (tmp_path / "run" / "checkpoint").glob("*.state"):
        path.write_bytes(b"{}")
    with pytest.raises(CorruptDataError, match="not a readable checkpoint"):
        dfeas.resume(tmp_path / "run", X, labels)


def test_what_cannot_go_on_is_refused_and_the_run_stays(arrays: Callable[..., Any], tmp_path: Path) -> None:
    X, labels = arrays("halfspace", 8, 500)
    run, empty = tmp_path / "run", tmp_path / "empty"
    empty.mkdir()
    run_until(after(1), dfeas.solve, X, labels, method="mirror-prox-fixed", out=run)
    for asked, refused, said in (
        (lambda: dfeas.solve(X, labels, out=run), UsageError, "dfeas resume"),
        (lambda: dfeas.resume(tmp_path / "none"), BadInputError, "no such run"),
        (lambda: dfeas.resume(empty), BadInputError, "nothing to resume"),
        (lambda: dfeas.resume(run), UsageError, "in memory"),
        (lambda: dfeas.resume(run, X, labels, max_passes=0), UsageError, "max_passes"),
        (lambda: dfeas.resume(run, X[::-1], labels), CorruptDataError, "not the data that this run began with"),
    ):
        with pytest.raises(refused, match=said):
            asked()
    assert isinstance(dfeas.resume(run, X, labels), dfeas.Result)
    with pytest.raises(BadInputError, match="finished"):
        dfeas.resume(run, X, labels)


def _damaged(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.unlink()  # its other names keep what they have
    path.write_bytes(content)


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
        monkeypatch.setattr(type(whole), "save", _cut_off)
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


"""Passes: more than there is time for until a signal comes."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT], ids=["TERM", "USR1", "INT"])
def test_a_signal_ends_a_run_with_75_and_it_goes_on_elsewhere(tmp_path: Path, number: signal.Signals) -> None:
    here, moved = tmp_path / "here", tmp_path / "moved"
    here.mkdir()
    moved.mkdir()
    assert typed("generate", "halfspace", tmp_path / "data", "--features", 60, "--points", 50_000).returncode == 0
    words = ["--method", "mirror-prox-fixed", "--max-passes", 200]
    assert typed("solve", tmp_path / "data", "--out", tmp_path / "whole", *words).returncode == 3
    begun = start("solve", "../data", "--out", "run", *words, cwd=here)
    wait_for(lambda: (here / "run/trace.jsonl").exists() and len(events_of(here / "run", "pass")) >= 3, begun)
    begun.send_signal(number)
    out, err = begun.communicate(timeout=60)
    assert (begun.returncode, "interrupted" in out, "dfeas resume run" in err) == (75, True, True), err
    (here / "run").rename(moved / "run")
    more = ["--local", "2"] if number == signal.SIGTERM else []
    done = typed("resume", "run", "--json", *more, cwd=moved)
    assert (done.returncode, json.loads(done.stdout)["passes"]) == (3, 200), done.stderr
    assert digest(moved / "run") == digest(tmp_path / "whole")


def test_other_data_is_noticed_and_moved_data_is_found(tmp_path: Path) -> None:
    data, moved, run = tmp_path / "data", tmp_path / "moved", tmp_path / "run"
    dfeas.generate(dfeas.Instance("halfspace", 8, 500), data)
    dfeas.solve(data, method="mirror-prox-fixed", max_passes=9, out=tmp_path / "whole")
    dfeas.solve(data, method="mirror-prox-fixed", max_passes=5, out=run)
    data.rename(moved)
    with pytest.raises(BadInputError, match="no such file"):
        dfeas.resume(run, max_passes=9)
    dfeas.generate(dfeas.Instance("halfspace", 8, 500, seed=9), data)
    with pytest.raises(CorruptDataError, match="not the data that this run began with"):
        dfeas.resume(run, max_passes=9)
    dfeas.resume(run, moved, max_passes=9)
    assert digest(run) == digest(tmp_path / "whole")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".svm", ".npz"])
@pytest.mark.parametrize("again", [dfeas.resume, dfeas.verify_run])
def test_columns_of_a_file_that_was_moved_are_those_of_the_run(again: Any, suffix: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    points = rng.standard_normal((60, 2))
    labels = np.where(points @ [1.0, 2.0] > 0.1, 1, -1)
    frame = pandas.DataFrame({"a": points[:, 0], "day": "Mon", "good": labels, "b": points[:, 1], "name": np.arange(60)})
    data, moved, table = tmp_path / f"data{suffix}", tmp_path / f"moved{suffix}", suffix in (".csv", ".tsv", ".parquet")
    if suffix == ".npz":
        np.savez(data, X=points, good=labels)
    elif suffix == ".svm":
        data.write_text("".join(f"{good} 1:{a} 2:{b}\n" for good, (a, b) in zip(labels, points, strict=True)))
    elif suffix == ".parquet":
        frame.to_parquet(data)
    else:
        frame.to_csv(data, index=False, sep="\t" if suffix == ".tsv" else ",")
    asked = dfeas.table(data, "good", without="day", id="name") if table else data
    y = None if table or suffix == ".svm" else "good"
    passes = 1 if again is dfeas.resume else 500
    dfeas.solve(asked, y, method="perceptron", max_passes=passes, out=tmp_path / "run")
    data.rename(moved)
    found = again(tmp_path / "run", moved, **({"max_passes": 500} if passes == 1 else {}))
    assert found.verdict == "feasible"
