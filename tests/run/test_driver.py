"""The driver and its parts: decisions, refusals, limits, recovery, trace, memory."""

import json
import math
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dfeas
from dfeas.data.generate.points import KINDS
from dfeas.data.source import DataSpec
from dfeas.engine.local import LocalEngine
from dfeas.errors import BadInputError, CheckFailedError, UsageError
from dfeas.methods.protocol import Facts
from dfeas.methods.registry import METHODS
from dfeas.passes.protocol import OnVectors
from dfeas.problem import Goal as Wanted
from dfeas.problem import Problem
from dfeas.records import replace
from dfeas.run.driver import Course, run
from dfeas.run.execute import execute
from dfeas.run.resources import Limits, Output, Resources, RunOptions
from dfeas.run.session import open_session
from dfeas.run.spec import Request, RunSpec
from dfeas.run.task import VerdictTask
from dfeas.run.termination import (
    EPS_INFEASIBLE,
    FEASIBLE,
    Decision,
    Goal,
    before_limits,
    decide,
    passes_to_gap,
    remaining_passes,
)
from dfeas.verify.certificate import Certificate, Check
from tests.checkers import Each
from tests.run.making import RECORD, opened

LIMITS = Limits(max_passes=7, time_limit=20.0)
NEAR, IN_SIGHT = {"margin_lower": 0.09, "margin_upper": 0.1}, {"margin_upper": 1e-9, "hopeful": True}


@pytest.mark.parametrize(
    ("change", "goal", "expected"),
    [
        ({}, Goal(1e-3), None),
        ({"margin_lower": 1e-300}, Goal(1e-3), Decision("verdict", FEASIBLE)),
        ({"margin_lower": 0.0}, Goal(1e-3), None),
        ({"margin_upper": 0.9e-3}, Goal(1e-3), Decision("verdict", EPS_INFEASIBLE)),
        ({"margin_upper": 1e-3}, Goal(1e-3), None),
        ({"margin_lower": 1e-9, "margin_upper": 1e-9}, Goal(1e-3), Decision("verdict", FEASIBLE)),
        ({"margin_lower": math.nan}, Goal(1e-3), Decision("numerical_error")),
        ({"margin_upper": math.inf}, Goal(1e-3), Decision("numerical_error")),
        ({"stalled": "why"}, Goal(1e-3), Decision("stalled")),
        ({"stalled": "why", "margin_lower": 1.0}, Goal(1e-3), Decision("verdict", FEASIBLE)),
        ({"passes": 7}, Goal(1e-3), Decision("pass_limit")),
        ({"seconds": 20.0}, Goal(1e-3), Decision("time_limit")),
        ({"seconds": 20.0, "margin_upper": 1e-9}, Goal(1e-3), Decision("verdict", EPS_INFEASIBLE)),
        # a separator in sight
        (IN_SIGHT, Goal(1e-3), None),
        ({**IN_SIGHT, "stalled": "why"}, Goal(1e-3), Decision("verdict", EPS_INFEASIBLE)),
        ({**IN_SIGHT, "seconds": 20.0}, Goal(1e-3), Decision("verdict", EPS_INFEASIBLE)),
        ({"margin_upper": 0.5, "hopeful": True, "seconds": 20.0}, Goal(1e-3), Decision("time_limit")),
        # the widest margin is wanted
        (NEAR, Goal(1e-3, tolerance=0.2), Decision("verdict", FEASIBLE)),
        ({**NEAR, "refining": True}, Goal(1e-3, tolerance=0.2), Decision("verdict", FEASIBLE)),
        ({"margin_lower": 0.01, "refining": True}, Goal(1e-3), None),
        ({"margin_lower": 0.01, "refining": True, "passes": 7}, Goal(1e-3), Decision("verdict", FEASIBLE)),
        (NEAR, Goal(1e-3, tolerance=0.05), None),
        ({"margin_lower": 1e-9, "margin_upper": 1e-8}, Goal(1e-3, tolerance=0.05), None),
        ({"margin_lower": 1e-9, "margin_upper": 1e-8, "passes": 7.2}, Goal(1e-3, tolerance=0.05), Decision("pass_limit")),
        # bars that no margin can reach, after evidence was refused
        ({"margin_lower": 0.3, "margin_upper": 0.31}, Goal(1e-3, feasible_above=0.6), Decision("stalled")),
        ({"margin_upper": 1e-9}, Goal(1e-3, infeasible_below=1e-19), Decision("stalled")),
    ],
)
def test_decide_is_a_function_of_records(change: dict[str, Any], goal: Goal, expected: Decision | None) -> None:
    assert decide(replace(RECORD, **change), goal, LIMITS) == expected


def test_auto_takes_the_working_set_where_it_fits_and_says_why(arrays: Callable[..., Any]) -> None:
    X, labels = arrays("planted", 2000, 3000, margin=0.1)
    rich = dfeas.solve(X, labels, intercept=False)
    assert (rich.method, rich.verdict) == ("working-set", "feasible")
    assert "fit in memory" in rich.why
    poor = dfeas.solve(X, labels, intercept=False, memory="60MB", max_passes=2)
    assert poor.method == "mirror-prox-one-pass"
    # 3000 columns of 2000 float32 and 100 bytes, four times
    assert "would need 97.2MB of memory" in poor.why
    with pytest.raises(
        UsageError, match=r"working-set needs memory='97\.2MB' for points in memory, .* use mirror-prox-one-pass"
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
    assert dfeas.solve(X, labels).passes <= plan.estimates[0].passes + 1
    assert dfeas.plan(X, labels, method="working-set", memory="40MB").estimates[0].remark == ""
    one = dfeas.plan(np.ones((1, 1)), "all-positive").estimates[0]
    assert (one.passes, one.most_passes) == (2, 2)
    wide = np.random.default_rng(0).standard_normal((60, 20_000))
    tracemalloc.start()
    assert dfeas.plan(wide, np.arange(60) % 2).estimates[0].seconds < 60
    assert tracemalloc.get_traced_memory()[1] < 200e6
    tracemalloc.stop()
    for asked, refused, said in (
        ({"method": "newton"}, UsageError, "unknown method"),
        ({"margin": 1e-200}, UsageError, "margin"),
        ({"X": np.full((60_000, 1), np.nan)}, BadInputError, "not finite"),
    ):
        with pytest.raises(refused, match=said):
            dfeas.plan(asked.pop("X", X), labels, **asked)


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


@pytest.mark.parametrize(
    "limits", [Limits(), Limits(max_passes=1000), Limits(time_limit=125.0), Limits(max_passes=2000, time_limit=300.0)]
)
def test_a_limit_caps_a_forecast_and_is_none(limits: Limits) -> None:
    last = replace(RECORD, passes=10.0, seconds=1.0)
    assert before_limits(math.inf, last, limits) == math.inf
    assert before_limits(5.0, last, limits) == 5.0
    most = [each for each in (limits.max_passes, 10 * (limits.time_limit or math.inf)) if each is not None]
    assert before_limits(1e9, last, limits) == min(1e9, min(most) - 10)
    ended = replace(last, passes=3000.0, seconds=400.0)
    assert (before_limits(1e9, ended, limits) == math.inf) == bool(limits.max_passes or limits.time_limit)


def test_the_time_left_of_a_soft_margin_is_to_its_gap() -> None:
    gaps = [SimpleNamespace(passes=t, gap=2 / t) for t in range(1, 41)]
    assert passes_to_gap(gaps, 0.01) == pytest.approx(160)
    assert passes_to_gap(gaps, 0.1) == 0
    assert passes_to_gap(gaps[:3], 0.01) == math.inf


@pytest.mark.parametrize(("forecast", "left"), [(math.inf, math.inf), (1e6, 95.0), (7.0, 7.0)])
def test_a_limit_cuts_a_forecast_and_is_none(forecast: float, left: float) -> None:
    last = replace(RECORD, passes=5, seconds=2.0)
    for limits in (Limits(max_passes=100), Limits(time_limit=40.0)):
        assert before_limits(forecast, last, limits) == pytest.approx(left)


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
    assert result.verdict == ("feasible" if kind == "planted" else infeasible(name))
    recovery = int(kind == "gaussian" and (name.startswith("mirror-prox") or name in ("smooth-perceptron", "smooth-winnow")))
    assert passes.passes == 1 + result.passes + recovery  # survey, passes, recovery
    looked = kind == "planted" and name.startswith(("working-set", "rescaled"))  # by the checker, on the last pass
    assert checks.maps == int(not looked)
    assert result.reads == passes.passes + checks.maps
    assert result.bytes_read == result.reads * 400 * 5 * 4


FAMILIES = [*zip(METHODS, [*KINDS] * len(METHODS), strict=False), *(("working-set", kind) for kind in KINDS)]


@pytest.mark.parametrize(("name", "kind"), dict.fromkeys(FAMILIES))
def test_a_verdict_is_proved_by_a_margin_or_by_weights(arrays: Callable[..., Any], name: str, kind: str) -> None:
    X, labels = arrays(kind, 6, 500, margin=0.05)
    result = dfeas.solve(X, labels, intercept=False, method=name, eps=0.01, max_passes=3000)
    if kind == "halfspace":  # the best margin may be below eps: both answers are right then
        assert result.verdict in ("feasible", "eps-infeasible")
    else:
        assert result.verdict == ("feasible" if kind == "planted" else infeasible(name))
    assert (result.success, result.status, result.nit) == (True, 0, result.iterations)
    assert result.proof == ("exact" if result.verdict == "infeasible" else "rigorous")
    wide = X.astype(float) * labels[:, None]
    A = (wide / np.linalg.norm(wide, axis=1)[:, None]).T
    if result.verdict == "feasible":
        assert 0 < result.margin_lower <= (A.T @ result.separator).min() + 1e-12
    else:
        assert result.weights.sum() == pytest.approx(1)
        rounding = 1e-14 if result.proof == "exact" else 0.0
        assert np.linalg.norm(A[:, result.support] @ result.weights) <= max(0, result.margin_upper) + rounding
        assert result.margin_upper <= result.eps


def infeasible(method: str) -> str:
    """The verdict where there is no separator."""
    return "infeasible" if method.startswith("working-set") else "eps-infeasible"


def test_evidence_that_the_checker_refuses_does_not_end_the_run(arrays: Callable[..., Any]) -> None:
    dataset = opened(*arrays("planted", 5, 400, margin=0.1), intercept=False)
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


def test_a_zero_point_is_an_exact_no_without_a_pass(arrays: Callable[..., Any]) -> None:
    X, labels = arrays("planted", 4, 100, margin=0.1)
    X[37] = 0
    result = dfeas.solve(X, labels, intercept=False)
    assert (result.verdict, result.proof, result.passes, result.margin_upper) == ("infeasible", "exact", 0, 0.0)
    assert result.support is not None
    assert result.support.tolist() == [37]
    assert dfeas.solve(X, labels, intercept=True, max_passes=3).verdict != "infeasible"


@pytest.mark.parametrize("method", ["working-set", "mirror-prox-one-pass", "perceptron", "von-neumann-away", "ispvn"])
def test_the_intercept_separates_what_the_origin_cannot(method: str) -> None:
    X, labels = np.array([[1.0], [2.0], [4.0], [5.0]]), ["a", "a", "b", "b"]
    assert dfeas.solve(X, labels, intercept=False, method=method, eps=0.01).verdict in ("infeasible", "eps-infeasible")
    result = dfeas.solve(X, labels, method=method, intercept=True, eps=1e-4)
    assert result.verdict == "feasible"
    assert -4 < result.separator[1] / result.separator[0] < -2


def test_a_run_leaves_its_files_and_an_event_for_each_pass(arrays: Callable[..., Any], tmp_path: Path) -> None:
    result = dfeas.solve(*arrays("planted", 5, 400, margin=0.1), out=tmp_path / "run")
    assert {p.name for p in (tmp_path / "run").iterdir()} == {"certificate.npz", "nearest.state", "result.json", "trace.jsonl"}
    assert result.certificate == str(tmp_path / "run" / "certificate.npz")
    events = [json.loads(line)["event"] for line in (tmp_path / "run" / "trace.jsonl").read_text().splitlines()]
    assert events == ["start", "method", "projection", *["pass"] * int(result.passes), "check", "stopped"]
