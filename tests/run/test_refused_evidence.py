"""Evidence that is refused, again and again: every loop of the driver reads, ends, or is bounded."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dfeas
from dfeas.answers.words import RESUMABLE
from dfeas.engine.local import LocalEngine
from dfeas.errors import CheckFailedError
from dfeas.methods.protocol import Bracket, Evidence, Facts, Method, Sparse, Traits
from dfeas.passes.survey import Survey
from dfeas.run.driver import Course, run
from dfeas.run.resources import Limits
from dfeas.run.task import VerdictTask
from dfeas.run.termination import UNDECIDED, Decision, Goal, Record
from dfeas.run.verdict import bracket
from dfeas.verify.certificate import Answer, Certificate, Check, Checked
from tests.run.making import opened

ENDS = [0.0, -0.0, 5e-324, 1e-310, 1e-18, 1e-9, 0.5, 1.0, 1e308, -1.0, math.inf, -math.inf, math.nan]
END = st.sampled_from(ENDS) | st.floats()
BOUND = st.sampled_from([0.0, 5e-324, 1e-9, 1.0, math.inf, math.nan]) | st.floats(0, 1)
PASSES = 5


@dataclass(frozen=True)
class Told(Method[int]):
    """A method that shows what it was made with, one bracket a pass."""

    brackets: Sequence[tuple[float, float]]
    hopeful: bool
    refining: bool
    name: str = "told"
    traits: Traits = Traits("told")

    def init(self, facts: Facts) -> int:
        return 0

    def ask(self, state: int) -> Survey:
        return Survey()

    def tell(self, state: int, answer: Any) -> int:
        return state + 1

    def evidence(self, state: int) -> Evidence:
        lower, upper = self.brackets[min(state, len(self.brackets) - 1)]
        shown = Bracket(lower, upper, np.array([1.0, 0.0]))
        return Evidence(shown, lambda: Sparse(np.array([0]), np.ones(1)), state, hopeful=self.hopeful, refining=self.refining)

    def bound(self, facts: Facts, margin: float) -> float:
        return math.inf


@dataclass
class Checker:
    """Answers as it was told to, and counts; more checks than evidence of two kinds after each pass are too many."""

    answers: Sequence[float | None]
    most: int
    seen: list[str] = field(default_factory=list)

    def reads(self, certificates: Sequence[Certificate]) -> float:
        return 1.0

    def __call__(self, certificates: Sequence[Certificate]) -> Checked:
        answers: list[Answer] = []
        for certificate in certificates:
            upper = self.answers[len(self.seen) % len(self.answers)]
            self.seen.append(certificate.kind)
            assert len(self.seen) <= self.most, "evidence is checked again and again"
            if upper is None:
                answers.append(CheckFailedError("refused"))
            elif certificate.kind == "separator":
                answers.append(Check("feasible", "rigorous", 1e-3, 1.0, 2, 0, "fine"))
            else:
                answers.append(Check("eps-infeasible", "rigorous", -1.0, upper, 2, 0, "fine"))
        return Checked(answers, 1.0)


LANE = st.tuples(st.lists(st.tuples(END, END), min_size=1, max_size=6), st.booleans(), st.booleans())


@given(
    st.lists(LANE, min_size=1, max_size=2),
    st.lists(st.none() | BOUND, min_size=1, max_size=6),
    st.sampled_from([1e-17, 1e-3, 1.0]),
    st.none() | st.just(0.5),
    st.none() | st.just(1e-9) | st.integers(1, 12),
    st.none() | st.integers(0, 12),
    st.booleans(),
)
def test_every_loop_reads_or_ends_whatever_is_shown_and_refused(
    shown: list[tuple[list[tuple[float, float]], bool, bool]],
    answers: list[float | None],
    eps: float,
    tolerance: float | None,
    late: float | None,
    stopped: int | None,
    to_the_end: bool,
) -> None:
    engine, methods = LocalEngine(opened(np.eye(2)), 1), [Told(*each) for each in shown]
    lanes = [VerdictTask(method, 0, Goal(eps, tolerance)) for method in methods]
    ticks, asks = iter(range(10_000)), iter(range(10_000))
    verify = Checker(answers, 2 * len(lanes) * (PASSES + 1))
    outcomes, reads = run(
        engine,
        lanes,
        verify,
        Course(
            Limits(max_passes=PASSES, time_limit=late),
            to_the_end=to_the_end,
            stop=lambda: stopped is not None and next(asks) >= stopped,
            clock=lambda: float(next(ticks)),
        ),
    )
    assert reads <= len(lanes) * PASSES + len(verify.seen)
    for lane, outcome in zip(lanes, outcomes, strict=True):
        assert lane.over
        assert outcome.record.passes <= PASSES
        assert outcome.decision.verdict == UNDECIDED or outcome.check is not None
        lower, upper = bracket(outcome.record, outcome.check)
        assert lower <= upper


@pytest.mark.parametrize(("seconds", "stops", "expected"), [(3, False, "time_limit"), (None, True, "interrupted")])
def test_no_second_kind_of_evidence_is_checked_when_time_is_up(seconds: int | None, stops: bool, expected: str) -> None:
    engine, method = LocalEngine(opened(np.eye(2)), 1), Told([(-1.0, 1.0), (1e-9, 1e-9)], False, False)
    ticks, stop = iter(range(100)), iter([False, *[stops] * 9])
    lane, verify = VerdictTask(method, 0, Goal()), Checker([None], 2)
    course = Course(Limits(time_limit=seconds), stop=lambda: next(stop), clock=lambda: float(next(ticks)))
    outcomes, _ = run(engine, [lane], verify, course)
    assert outcomes[0].decision == Decision(expected)
    assert expected in RESUMABLE
    assert verify.seen == ["separator"]


@pytest.mark.parametrize(
    "options", [{"kernel": "linear"}, {"kernel": "cosine"}, {"kernel": dfeas.Kernel("rbf", gamma=1e20), "eps": 1e-3}]
)
def test_a_sum_that_the_checker_cannot_bound_by_eps_ends_undecided(options: dict[str, Any]) -> None:
    X = np.array([[2.0], [1.0]]) if isinstance(options["kernel"], str) else np.array([[-0.35, 0.5], [2.2, 0.5], [0.3, 0.5]])
    result = dfeas.solve(X, np.array([1, -1, 1])[: len(X)], **{"eps": 1e-9, **options})
    assert result.margin_lower <= result.margin_upper
    if result.verdict == UNDECIDED:  # what is told of the sum is what is proved of it
        assert (result.stopped, result.margin_upper > result.eps) == ("stalled", True)
        assert "the evidence is refused" in result.message


def test_what_is_reported_of_a_bracket_is_in_order_and_finite() -> None:
    record = Record("m", 1, 1, 0.3, 0.2, None, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0)
    assert bracket(record, None) == (0.2, 0.3)
    assert bracket(record, Check("eps-infeasible", "rigorous", -1.0, 0.1, 1, 0, "")) == (0.1, 0.1)
    assert bracket(record, Check("feasible", "rigorous", 0.25, 1.0, 1, 0, "")) == (0.25, 0.25)
    broken = Record("m", 1, 1, math.nan, math.inf, None, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0)
    assert bracket(broken, None) == (-1.0, 1.0)
