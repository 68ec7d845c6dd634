"""The driver and its parts: decisions, refusals, limits, recovery, trace, memory."""

import io
import json
import math
import re
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask.utils
import numpy as np
import pytest

import dfeas
from dfeas.answers.words import EPS_INFEASIBLE, FEASIBLE
from dfeas.data.generate.points import KINDS, Instance
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.engine.local import LocalEngine
from dfeas.engine.memory import thread_bytes, threads_that_fit
from dfeas.errors import BadInputError, CheckFailedError, ClusterLostError, UsageError, enough
from dfeas.methods.mistakes import Mistakes
from dfeas.methods.perceptron import Novikoff
from dfeas.methods.protocol import Bracket, Evidence, Facts, Sparse
from dfeas.methods.registry import METHODS
from dfeas.passes.protocol import OnVectors
from dfeas.problem import Goal as Wanted
from dfeas.problem import Problem
from dfeas.run.driver import Course, run
from dfeas.run.execute import execute
from dfeas.run.progress.terminal import Terminal
from dfeas.run.resources import Limits, Output, Resources, RunOptions
from dfeas.run.session import open_session
from dfeas.run.spec import Request, RunSpec
from dfeas.run.task import VerdictTask
from dfeas.run.termination import Decision, Goal, Record, decide, passes_to_gap, remaining_passes
from dfeas.settings import parse_bytes
from dfeas.verify.certificate import Certificate, Check
from tests.checkers import Each

RECORD = Record("m", 5, 5, -1.0, 1.0, None, 10.0, 2.0, 1.0, 1.0, 0.0, 100, 1000)


@pytest.mark.parametrize(
    ("change", "stopped", "verdict"),
    [
        ({}, None, None),
        ({"margin_lower": 1e-300}, "verdict", FEASIBLE),
        ({"margin_lower": 0.0}, None, None),
        ({"margin_upper": 0.9e-3}, "verdict", EPS_INFEASIBLE),
        ({"margin_upper": 1e-3}, None, None),
        ({"margin_lower": 1e-9, "margin_upper": 1e-9}, "verdict", FEASIBLE),
        ({"margin_lower": math.nan}, "numerical_error", "undecided"),
        ({"margin_upper": math.inf}, "numerical_error", "undecided"),
        ({"stalled": "why"}, "stalled", "undecided"),
        ({"stalled": "why", "margin_lower": 1.0}, "verdict", FEASIBLE),
        ({"passes": 7}, "pass_limit", "undecided"),
        ({"seconds": 20.0}, "time_limit", "undecided"),
        ({"seconds": 20.0, "margin_upper": 1e-9}, "verdict", EPS_INFEASIBLE),
    ],
)
def test_decide_is_a_function_of_records(change: dict[str, Any], stopped: str | None, verdict: str | None) -> None:
    decision = decide(replace(RECORD, **change), Goal(1e-3), Limits(max_passes=7, time_limit=20.0))
    assert (None if decision is None else decision.stopped) == stopped
    assert (None if decision is None else decision.verdict) == verdict


@pytest.mark.parametrize(
    ("change", "goal", "expected"),
    [
        ({"margin_upper": 1e-9, "hopeful": True}, Goal(1e-3), None),
        ({"margin_upper": 1e-9}, Goal(1e-3), Decision("verdict", EPS_INFEASIBLE)),
        ({"margin_upper": 1e-9, "hopeful": True, "stalled": "why"}, Goal(1e-3), Decision("verdict", EPS_INFEASIBLE)),
        ({"margin_upper": 1e-9, "hopeful": True, "seconds": 20.0}, Goal(1e-3), Decision("verdict", EPS_INFEASIBLE)),
        ({"margin_upper": 0.5, "hopeful": True, "seconds": 20.0}, Goal(1e-3), Decision("time_limit")),
        ({"margin_lower": 0.09, "margin_upper": 0.1}, Goal(1e-3, tolerance=0.2), Decision("verdict", FEASIBLE)),
        (
            {"margin_lower": 0.09, "margin_upper": 0.1, "refining": True},
            Goal(1e-3, tolerance=0.2),
            Decision("verdict", FEASIBLE),
        ),
        ({"margin_lower": 0.01, "refining": True}, Goal(1e-3), None),
        ({"margin_lower": 0.01, "refining": True, "passes": 7}, Goal(1e-3), Decision("verdict", FEASIBLE)),
        ({"margin_lower": 0.09, "margin_upper": 0.1}, Goal(1e-3, tolerance=0.05), None),
        ({"margin_lower": 1e-9, "margin_upper": 1e-8}, Goal(1e-3, tolerance=0.05), None),
        ({"margin_lower": 1e-9, "margin_upper": 1e-8, "passes": 7.2}, Goal(1e-3, tolerance=0.05), Decision("pass_limit")),
    ],
)
def test_a_separator_in_sight_and_a_maximum_margin_make_a_run_go_on(
    change: dict[str, Any], goal: Goal, expected: Decision | None
) -> None:
    assert decide(replace(RECORD, **change), goal, Limits(max_passes=7, time_limit=20.0)) == expected


def test_auto_takes_the_working_set_where_it_fits_and_says_why(arrays: Callable[..., Any]) -> None:
    X, labels = arrays("planted", 2000, 3000, margin=0.1)
    rich = dfeas.solve(X, labels, intercept=False)
    assert (rich.method, rich.verdict) == ("working-set", "feasible")
    assert "fit in memory" in rich.why
    poor = dfeas.solve(X, labels, intercept=False, memory="60MB", max_passes=2)
    assert poor.method == "mirror-prox-one-pass"
    # 3000 columns of 2000 float32 and 100 bytes, four times
    assert "would need 92.70MiB of memory" in poor.why
    with pytest.raises(
        UsageError, match=r"working-set needs memory='92\.70MiB' for points in memory, .* use mirror-prox-one-pass"
    ):
        dfeas.solve(X, labels, intercept=False, method="working-set", memory="60MB")


def test_a_plan_says_what_a_run_will_cost(arrays: Callable[..., Any]) -> None:
    X, labels = arrays("halfspace", 50, 60_000)
    plan = dfeas.plan(X, labels, margin=0.01)
    assert [e.method for e in plan.estimates] == list(METHODS)
    assert [e.method for e in plan.estimates if e.auto] == ["working-set"]
    assert plan.bytes == X.nbytes
    assert plan.later_seconds > 0
    for e in plan.estimates:
        assert 0 < e.passes <= e.most_passes
        assert 0 < e.seconds < 1e6
        assert 0 < e.memory_bytes < 1e10
    predicted = plan.estimates[0].passes
    assert dfeas.solve(X, labels).passes <= predicted + 1
    tight = dfeas.plan(X, labels, method="working-set", memory="40MB")
    assert tight.estimates[0].remark == ""
    with pytest.raises(UsageError, match="unknown method"):
        dfeas.plan(X, labels, method="newton")
    with pytest.raises(UsageError, match="margin"):
        dfeas.plan(X, labels, margin=1e-200)
    with pytest.raises(BadInputError, match="not finite"):
        dfeas.plan(np.array([[1.0, np.nan], [1.0, 1.0]]), [0, 1])
    one = dfeas.plan(np.ones((1, 1)), "all-positive").estimates[0]
    assert (one.passes, one.most_passes) == (2, 2)


def test_a_plan_of_wide_data_takes_no_memory_for_it(arrays: Callable[..., Any]) -> None:
    wide = np.random.default_rng(0).standard_normal((60, 20_000))
    tracemalloc.start()
    plan = dfeas.plan(wide, np.arange(60) % 2)
    assert tracemalloc.get_traced_memory()[1] < 200e6
    tracemalloc.stop()
    assert plan.estimates[0].seconds < 60


def test_a_bar_that_no_margin_can_reach_ends_the_run() -> None:
    refused = Goal(1e-3, feasible_above=0.6)
    assert decide(replace(RECORD, margin_lower=0.3, margin_upper=0.31), refused, Limits()) == Decision("stalled")
    assert decide(replace(RECORD, margin_upper=1e-9), Goal(1e-3, infeasible_below=1e-19), Limits()) == Decision("stalled")


def test_a_folder_can_be_used_again_after_a_failed_solve(tmp_path: Path) -> None:
    X = np.array([[1.0, 2.0], [np.nan, 1.0]])
    with pytest.raises(BadInputError, match="not finite"):
        dfeas.solve(X, [0, 1], out=tmp_path / "run")
    assert dfeas.solve(np.array([[1.0, 2.0], [-2.0, 1.0]]), [1, 0], out=tmp_path / "run").success


def test_a_lost_terminal_does_not_end_a_run() -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    terminal = Terminal(Gone(), lambda records: math.inf)
    terminal.record(RECORD)
    terminal.note("check", "text")
    terminal.close()


def test_the_time_left_follows_the_bracket() -> None:
    records = [replace(RECORD, passes=t, margin_lower=0.01 - 1 / t, margin_upper=0.02 + 1 / t) for t in range(1, 51)]
    assert remaining_passes(records, Goal(1e-9)) == pytest.approx(50, rel=0.1)  # the lower end reaches 0 at t = 100
    records = [replace(RECORD, passes=t, margin_lower=-0.5, margin_upper=1 / (t + 1)) for t in range(1, 51)]
    assert remaining_passes(records, Goal(0.01)) == pytest.approx(48, rel=0.1)
    assert remaining_passes(records[:2], Goal(0.01)) == math.inf
    assert remaining_passes([replace(each, hopeful=True) for each in records], Goal(0.01)) == math.inf


def test_the_time_left_is_to_the_margin_that_was_asked_for() -> None:
    """A separator was found at once, and an eps far above the margin was passed: neither ends a run with a tolerance."""
    records = [replace(RECORD, passes=t, margin_lower=0.1 - 0.05 / t, margin_upper=0.1 + 0.05 / t) for t in range(1, 51)]
    shares = [1 - each.margin_lower / each.margin_upper for each in records]
    assert shares[-1] > 0.01
    t = next(t for t in range(1, 1000) if 0.1 - 0.05 / t >= 0.99 * (0.1 + 0.05 / t))
    assert remaining_passes(records, Goal(0.5, 0.01)) == pytest.approx(t - 50, rel=0.1)
    assert remaining_passes(records, Goal(0.5)) == 0
    flat = [replace(RECORD, passes=t, margin_lower=0.05, margin_upper=0.1) for t in range(1, 51)]
    assert remaining_passes(flat, Goal(0.5, 0.01)) == math.inf


def test_the_time_left_of_a_soft_margin_is_to_its_gap() -> None:
    gaps = [SimpleNamespace(passes=t, gap=2 / t) for t in range(1, 41)]
    assert passes_to_gap(gaps, 0.01) == pytest.approx(160)
    assert passes_to_gap(gaps, 0.1) == 0
    assert passes_to_gap(gaps[:3], 0.01) == math.inf


def test_the_upper_end_of_a_bracket_is_not_below_what_is_proved() -> None:
    # in float32 |Ax| is below 1, which it is
    result = dfeas.solve(np.array([[1, 2]], np.float32), "all-positive", method="mirror-prox")
    assert 1 - 1e-7 < result.margin_lower <= result.margin_upper


class Counting(LocalEngine):
    """Counts reads."""

    passes = maps = 0

    def run(self, question: Any) -> Any:
        self.passes += not isinstance(question, OnVectors) or question.points
        return super().run(question)

    def map(self, function: Any, *args: Any, count: int | None = None) -> Any:
        self.maps += 1
        return super().map(function, *args, count=count)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("kind", ["planted", "gaussian"])
def test_a_solve_reads_exactly_what_it_says(arrays: Callable[..., Any], name: str, kind: str) -> None:
    request = Request.begun(Wanted(eps=0.02), Limits(), Resources())
    job = RunSpec(request, (name,), ("asked for",), False, False, DataSpec(None, intercept=False))
    with open_session(Problem.of(*arrays(kind, 5, 400, margin=0.1)), Resources()) as session:
        passes = Counting(session.dataset, 1, session.scratch)
        checks = Counting(session.checking.dataset, 1)
        counted = replace(session, engine=passes, checking=replace(session.checking, engine=checks))
        result = execute(counted, job, RunOptions.of(0.0, Output()))
    infeasible = "infeasible" if name.startswith("working-set") else "eps-infeasible"
    assert result.verdict == ("feasible" if kind == "planted" else infeasible)
    recovery = int(kind == "gaussian" and (name.startswith("mirror-prox") or name in ("smooth-perceptron", "smooth-winnow")))
    assert passes.passes == 1 + result.passes + recovery  # survey, passes, recovery
    looked = kind == "planted" and name.startswith(("working-set", "rescaled"))  # by the checker, on the last pass
    assert checks.maps == int(not looked)
    assert result.reads == passes.passes + checks.maps
    assert result.bytes_read == result.reads * 400 * 5 * 4


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_method_on_every_family_from_python(arrays: Callable[..., Any], name: str, kind: str) -> None:
    X, labels = arrays(kind, 6, 500, margin=0.05)
    result = dfeas.solve(X, labels, intercept=False, method=name, eps=0.01, max_passes=3000)
    if kind == "halfspace":  # the best margin may be below eps: both answers are right then
        assert result.verdict in ("feasible", "eps-infeasible")
    else:
        infeasible = "infeasible" if name.startswith("working-set") else "eps-infeasible"
        assert result.verdict == ("feasible" if kind == "planted" else infeasible)
    assert result.success
    assert result.status == 0
    assert result.proof == ("exact" if result.verdict == "infeasible" else "rigorous")
    assert result.nit == result.iterations
    wide = X.astype(float) * labels[:, None]
    A = (wide / np.linalg.norm(wide, axis=1)[:, None]).T
    if result.verdict == "feasible":
        assert result.separator is not None
        assert 0 < result.margin_lower <= (A.T @ result.separator).min() + 1e-12
    else:
        assert result.support is not None
        assert result.weights is not None
        assert result.weights.sum() == pytest.approx(1)
        rounding = 1e-14 if result.proof == "exact" else 0.0
        assert np.linalg.norm(A[:, result.support] @ result.weights) <= max(0, result.margin_upper) + rounding
        assert result.margin_upper <= result.eps


def test_a_margin_perceptron_goes_on_to_a_quarter_of_the_best_margin(arrays: Callable[..., Any]) -> None:
    X, labels = arrays("planted", 20, 2000, margin=0.02)
    plain = dfeas.solve(X, labels, intercept=False, method="perceptron")
    wide = dfeas.solve(X, labels, intercept=False, method="margin-perceptron-unit")
    assert (wide.verdict, wide.stopped) == ("feasible", "verdict")
    assert wide.margin_lower > 0.02 / 4 > plain.margin_lower
    assert wide.margin_upper < 4 * wide.margin_lower
    cut = dfeas.solve(X, labels, intercept=False, method="margin-perceptron-unit", max_passes=wide.passes - 1)
    assert cut.passes == wide.passes - 1  # a separator of an earlier pass is a verdict when a limit ends the run
    assert (cut.verdict, cut.stopped) == ("feasible", "verdict")


def test_limits_end_a_run_with_the_best_evidence(arrays: Callable[..., Any]) -> None:
    X, labels = arrays("halfspace", 20, 2000)
    result = dfeas.solve(X, labels, intercept=False, method="mirror-prox", max_passes=7)
    assert (result.verdict, result.stopped, result.proof, result.passes) == ("undecided", "pass_limit", "none", 7)
    assert result.margin_lower < 0 < result.margin_upper < 1
    assert result.separator is not None
    assert result.message == "the limit of passes was reached"
    assert dfeas.solve(X, labels, intercept=False, time_limit=1e-9).stopped == "time_limit"


def test_evidence_that_the_checker_refuses_does_not_end_the_run(arrays: Callable[..., Any]) -> None:
    dataset = open_source(Source(DataSpec(*arrays("planted", 5, 400, margin=0.1), intercept=False)))
    margins: list[float] = []

    def grudging(certificate: Certificate) -> Check:
        A = dataset.points.array.astype(float) * dataset.labels.array[:, None]
        margins.append(float((A @ certificate.y).min()))
        if len(margins) < 3:
            raise CheckFailedError("not yet")
        return Check("feasible", "rigorous", margins[-1], 1.0, 400, 0, "fine")

    method = METHODS["mirror-prox"]
    lane = VerdictTask(method, method.init(Facts(5, 400)), Goal(1e-6))
    outcome = run(LocalEngine(dataset, 1), [lane], Each(grudging), Course(Limits(max_passes=500)))[0][0]
    assert outcome.decision.verdict == FEASIBLE
    assert len(margins) == 3
    assert margins[1] > 1.9 * margins[0]
    assert margins[2] > 1.9 * margins[1]
    assert outcome.reads == outcome.record.passes + 3


def test_no_verdict_leaves_unchecked_when_one_kind_of_evidence_is_refused_after_the_other() -> None:
    dataset = open_source(Source(DataSpec(np.eye(2))))
    kinds: list[str] = []

    class Both(Mistakes):
        """Claims a separator, and weights with a small |Ax|, and that no further pass can help."""

        def evidence(self, state: Any) -> Evidence:
            bracket = Bracket(1e-17, 1e-5, np.array([1.0, 0.0]))
            return Evidence(bracket, lambda: Sparse(np.array([0]), np.ones(1)), 1, stalled="made up")

    def refuse(certificate: Certificate) -> Check:
        kinds.append(certificate.kind)
        raise CheckFailedError("never")

    method, engine = Both(Novikoff(), METHODS["perceptron"].traits), LocalEngine(dataset, 1)
    lane = VerdictTask(method, method.init(Facts(2, 2)), Goal(1e-3))
    outcome = run(engine, [lane], Each(refuse), Course(Limits(max_passes=1)))[0][0]
    assert kinds == ["separator", "gordan"]
    assert (outcome.decision, outcome.check) == (Decision("stalled"), None)


@pytest.mark.parametrize("reason", [KeyboardInterrupt(), ClusterLostError("gone")], ids=["ctrl-c", "cluster lost"])
def test_an_interrupt_ends_the_run_with_the_best_evidence(arrays: Callable[..., Any], reason: BaseException) -> None:
    dataset = open_source(Source(DataSpec(*arrays("halfspace", 20, 2000), intercept=False)))

    class Impatient(LocalEngine):
        count = 0

        def run(self, pass_: Any) -> Any:
            self.count += 1
            if self.count == 6:
                raise reason
            return super().run(pass_)

    method = METHODS["mirror-prox"]
    lane = VerdictTask(method, method.init(Facts(20, 2000)), Goal())
    outcome = run(Impatient(dataset, 1), [lane], Each(lambda c: None), Course(Limits()))[0][0]
    assert (outcome.decision.stopped, outcome.record.passes) == ("interrupted", 5)
    assert outcome.certificate is not None
    assert outcome.check is None


def test_a_zero_point_is_an_exact_no_without_a_pass(arrays: Callable[..., Any]) -> None:
    X, labels = arrays("planted", 4, 100, margin=0.1)
    X[37] = 0
    result = dfeas.solve(X, labels, intercept=False)
    assert (result.verdict, result.proof, result.passes, result.margin_upper) == ("infeasible", "exact", 0, 0.0)
    assert result.support is not None
    assert result.support.tolist() == [37]
    assert dfeas.solve(X, labels, intercept=True, max_passes=3).verdict != "infeasible"


def test_two_equal_points_with_opposite_labels_are_an_exact_no() -> None:
    result = dfeas.solve([[1.5, -2.25], [1.5, -2.25]], [0, 1], method="perceptron")
    assert (result.verdict, result.proof) == ("infeasible", "exact")


def test_the_intercept_separates_what_the_origin_cannot() -> None:
    X, labels = np.array([[1.0], [2.0], [4.0], [5.0]]), ["a", "a", "b", "b"]
    for method in METHODS:
        without = dfeas.solve(X, labels, intercept=False, method=method, eps=0.01)
        assert without.verdict in ("infeasible", "eps-infeasible")
        result = dfeas.solve(X, labels, method=method, intercept=True, eps=1e-4)
        assert result.verdict == "feasible", method
        assert result.separator is not None
        assert -4 < result.separator[1] / result.separator[0] < -2


def test_margins_near_rounding_are_decided_by_the_checker() -> None:
    for margin, n in ((1e-7, 60), (1e-9, 40)):
        instance = Instance("planted", 3, n, margin, dtype="float64")
        X, labels = instance.block(0)
        result = dfeas.solve(X, labels, intercept=False, eps=1e-12, max_passes=800)
        assert result.verdict in ("feasible", "undecided")
        assert result.margin_lower <= margin * (1 + 1e-6) <= result.margin_upper * (1 + 1e-5)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("2GB", 2 * 10**9),
        ("512MiB", 2**29),
        ("100", 100),
        ("1.5 k", 1500),
        ("1e6 kB", 10**9),
        (".5 GiB", 2**29),
        ("2PB", 2 * 10**15),
        (4096, 4096),
        ("3gb", 3 * 10**9),
    ],
)
def test_sizes_are_read_as_people_write_them(text: str | int, number: int) -> None:
    assert parse_bytes(text) == number == dask.utils.parse_bytes(text)


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "2XB", "1e99", "2 GB 3x"])
def test_other_sizes_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected a size"):
        parse_bytes(text)


def test_threads_fit_the_budget_and_too_small_a_budget_is_refused_with_the_number() -> None:
    dataset = open_source(Source(DataSpec(np.zeros((100_000, 50)) + 1)))
    need = thread_bytes(dataset)
    assert threads_that_fit(dataset, need, 8) == 1
    assert threads_that_fit(dataset, 3 * need, 8) == 3
    assert threads_that_fit(dataset, 100 * need, 8) == 8
    with pytest.raises(UsageError, match=f"at least memory='{enough(need)}' is needed"):
        threads_that_fit(dataset, need - 1, 8)


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def test_progress_is_live_on_a_terminal_and_plain_in_a_pipe() -> None:
    records = [replace(RECORD, passes=t, margin_lower=0.01 - 1 / t, violated=9) for t in range(1, 40)]
    screen, pipe = Screen(), io.StringIO()
    for stream in (screen, pipe):
        now = [0.0]
        terminal = Terminal(stream, lambda records: 1.0, clock=lambda now=now: now[0])
        for record in records:
            now[0] += 1
            terminal.record(record)
        terminal.note("check", "done")
        terminal.close()
    live = screen.getvalue()
    assert {int(t) for t in re.findall(r"pass (\d+) ", live)} == set(range(1, 40))
    assert "done\n" in live
    assert live.endswith("\x1b[2K")  # of a line that moves nothing stays
    lines = pipe.getvalue().splitlines()
    assert "\r" not in pipe.getvalue()
    assert "\x1b" not in pipe.getvalue()
    assert len(lines) == 8 + 2  # one in five seconds, and the last
    assert "pass 36" in lines[-3]
    assert "pass 39" in lines[-2]
    assert "9 violated" in lines[-2]
    assert "s left" in lines[-2]


def test_the_run_folder_holds_result_certificate_and_trace(arrays: Callable[..., Any], tmp_path: Path) -> None:
    result = dfeas.solve(*arrays("planted", 5, 400, margin=0.1), out=tmp_path / "run")
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == [
        "certificate.npz",
        "nearest.state",
        "result.json",
        "trace.jsonl",
    ]
    values = json.loads((tmp_path / "run" / "result.json").read_text())
    promised = (
        "verdict stopped proof method m n margin_lower margin_upper eps passes reads iterations bytes_read seconds "
        "certificate fingerprint versions"
    )
    assert set(promised.split()) <= set(values)
    assert values["certificate"] == result.certificate == str(tmp_path / "run" / "certificate.npz")
    events = [json.loads(line) for line in (tmp_path / "run" / "trace.jsonl").read_text().splitlines()]
    assert [e["event"] for e in events] == ["start", "method", "projection", *["pass"] * int(result.passes), "check", "stopped"]
    for event in events[3:-2]:
        assert {"margin_lower", "margin_upper", "bytes_read", "read_seconds", "scan_seconds", "memory_bytes"} <= set(event)
    with pytest.raises(UsageError, match="exists already"):
        dfeas.solve(*arrays("planted", 5, 400, margin=0.1), out=tmp_path / "run")


@pytest.mark.parametrize(
    "options",
    [
        {"eps": 0},
        {"eps": 2},
        {"method": "newton"},
        {"max_passes": 0},
        {"time_limit": -1},
        {"eps": "x"},
        {"eps": 1e-17},
        {"margin_tolerance": 0},
        {"margin_tolerance": 1.0},
        {"margin_tolerance": "x"},
        {"method": ["a"]},
        {"memory": "1k"},
    ],
)
def test_options_that_make_no_sense_are_usage_errors(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        dfeas.solve(np.eye(3), [0, 1, 1], **options)


def test_dask_and_hdf5_arrays_are_solved_in_place(arrays: Callable[..., Any], tmp_path: Path) -> None:
    import dask.array as da
    import h5py

    X, labels = arrays("planted", 5, 400, margin=0.1)
    expected = dfeas.solve(X, labels)
    assert dfeas.solve(da.from_array(X, chunks=(90, 5)), labels).margin_lower == expected.margin_lower
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["X"] = X
        assert dfeas.solve(file["X"], labels).margin_lower == expected.margin_lower
