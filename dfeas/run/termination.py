"""When a run ends: pure functions of records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, structs

from dfeas.answers.trace import ProgressRecord
from dfeas.answers.words import EPS_INFEASIBLE, FEASIBLE, UNDECIDED, Stop
from dfeas.run.resources import Limits
from dfeas.verify.points import NEARLY

NEARLY_ZERO = 1e-10
"""|Ax| up to this, as the checker bounds it, may be zero, or that of points which integers separate."""
SLACK = 1e-3
"""A method is asked for |Ax| <= (1 - SLACK) eps, so that rounding and dropped weights leave the certificate below eps."""


class Record(Struct, frozen=True):
    """What is known after a pass."""

    method: str
    passes: float  # a partial read counts as its share
    iterations: int
    margin_lower: float
    margin_upper: float
    violated: int | None  # points on the wrong side of the method's y, if the pass counted them
    seconds: float  # since the start of the run
    pass_seconds: float
    read_seconds: float  # all threads or workers together
    scan_seconds: float
    engine_seconds: float  # of the pass, not explained by its busiest share of reading and scanning
    bytes_read: int  # by this pass, from storage
    memory_bytes: int  # resident memory of the driver's process
    method_seconds: float = 0.0  # of the method, between the passes
    stalled: str = ""
    hopeful: bool = False  # a separator is expected, however small margin_upper is
    refining: bool = False  # a wider separator is expected, as the method's theorem promises
    cached_bytes: int = 0  # of this pass, from blocks that were kept in memory
    reads: float = 0.0  # of the data so far, by passes and checks of the method
    warnings: tuple[str, ...] = ()  # since the pass before, for a callback
    rounded: float = 0.0  # of margin_upper, which sums in the precision of the points may be too short by

    @property
    def sums(self) -> float:
        """|Ax| as the method's sums have it."""
        return self.margin_upper - self.rounded

    @property
    def ends(self) -> str:
        return f"margin {self.margin_lower:+.3e} .. {self.margin_upper:.3e}"

    def to_json(self) -> dict[str, Any]:
        """All that is known of the pass; warnings are events of their own."""
        return {name: value for name, value in structs.asdict(self).items() if name not in ("warnings", "rounded")}


class Goal(Struct, frozen=True):
    """What counts as a verdict: margin_lower above one bar, or margin_upper below another; refused evidence moves its bar."""

    eps: float | None = None  # |Ax| that is an answer; None: only an exact proof is one
    tolerance: float | None = None  # a separator must have a margin within this share of margin_upper
    feasible_above: float = 0.0
    infeasible_below: float = math.inf
    unproved: float = 0.0  # of the tolerance: what rounding of the checker took before

    @property
    def bar(self) -> float:
        """|Ax| that is worth a check: without an eps, where an exact proof is tried."""
        return NEARLY if self.eps is None else self.eps


class Decision(Struct, frozen=True):
    """Why the run ends, a ``Stop``; with a verdict that remains to be checked, if it is one."""

    stopped: str
    verdict: str = UNDECIDED


def decide(record: Record, goal: Goal, limits: Limits) -> Decision | None:
    """Whether the run ends here; None to go on. Feasible comes first: it is proved however small the margin. While the method
    is hopeful, a small |Ax| counts only when the run ends anyway; while it is refining, a separator does.
    """
    if not (math.isfinite(record.margin_lower) and math.isfinite(record.margin_upper)):
        return Decision(Stop.NUMERICAL_ERROR)
    separated = record.margin_lower > goal.feasible_above
    gap, room = record.margin_upper - record.margin_lower, None if goal.tolerance is None else goal.tolerance - goal.unproved
    # a bar for |Ax| below 1e-18, after refused evidence, can never be met in float64
    beyond = goal.feasible_above >= record.margin_upper or goal.infeasible_below < 1e-18 or (room or 1) < 0
    ended = Stop.STALLED if record.stalled or beyond else limit_reached(record, limits)
    wide = (bool(ended) or not record.refining) if room is None else gap <= room * record.margin_upper
    if separated and wide:
        return Decision(Stop.VERDICT, FEASIBLE)
    bar = max(goal.bar, NEARLY) if ended else goal.bar  # what ends with an eps below that may be proved exactly as well
    small = record.sums <= (1 - SLACK) * bar and record.sums < goal.infeasible_below
    if small and not separated and (ended or not record.hopeful):
        return Decision(Stop.VERDICT, EPS_INFEASIBLE)
    return Decision(ended) if ended else None


def describe_ending(decision: Decision, record: Record) -> str:
    """Why a run ended, in a sentence."""
    more = f": {record.stalled}" if decision.stopped == Stop.STALLED and record.stalled else ""
    return Stop(decision.stopped).sentence + more


def limit_reached(record: ProgressRecord, limits: Limits) -> Stop | None:
    """The limit that ends a run here; None to go on."""
    if limits.max_passes is not None and record.passes >= limits.max_passes:
        return Stop.PASS_LIMIT
    if limits.time_limit is not None and record.seconds >= limits.time_limit:
        return Stop.TIME_LIMIT
    return None


def remaining_passes(records: Sequence[Record], goal: Goal) -> float:
    """Passes still needed, extrapolated from the bracket; inf when it tells nothing yet. Both ends move like a - b / t: the
    lower one from t/2 and t to its zero, the upper one like c / t to eps. With a tolerance a separator is not enough: the gap
    goes on to its share of the upper end.
    """
    if len(records) < 4 or records[-1].hopeful:
        return math.inf
    late, early = records[-1], records[len(records) // 2 - 1]
    t, half = late.passes, early.passes
    falls = goal.eps is not None and late.margin_upper < 1 and late.margin_lower <= 0
    upper = t * late.margin_upper / goal.bar if falls else math.inf
    if goal.tolerance is not None:
        gaps = [1 - each.margin_lower / each.margin_upper if each.margin_upper > 0 else math.inf for each in (early, late)]
        return min(upper - t, _until(goal.tolerance, half, gaps[0], t, gaps[1]))
    rise = late.margin_lower - early.margin_lower
    lower = math.inf
    if rise > 0 and half < t:
        b = rise / (1 / half - 1 / t)
        a = late.margin_lower + b / t
        lower = b / a if a > 0 else math.inf
    return max(0.0, min(upper, lower) - t)


def before_limits(left: float, last: ProgressRecord, limits: Limits) -> float:
    """Passes of these that are ``left`` which a run has before a limit ends it; inf, which is no number to show, at one, and
    where nothing foretells the end: a limit does not.
    """
    if left == math.inf or limit_reached(last, limits):
        return math.inf
    if limits.max_passes is not None:
        left = min(left, limits.max_passes - last.passes)
    if limits.time_limit is not None and last.seconds > 0:
        left = min(left, (limits.time_limit - last.seconds) * max(1, last.passes) / last.seconds)
    return left


def passes_to_gap(records: Sequence[Any], goal: float) -> float:
    """The same for a soft margin, from its relative gap."""
    if len(records) < 4:
        return math.inf
    late, early = records[-1], records[len(records) // 2 - 1]
    return _until(goal, early.passes, early.gap, late.passes, late.gap)


def _until(goal: float, half: float, before: float, t: float, now: float) -> float:
    """Passes until something that falls like a power of the passes is at its goal."""
    if not (now < before < math.inf and 0 < half < t):
        return math.inf
    if now <= goal:
        return 0.0
    power = math.log(before / now) / math.log(t / half)
    return float(t * math.expm1(min(math.log(now / goal) / power, 700.0)))
