"""Where weights sum to no more than rounding, whether points conflict exactly after all, or are separated after all.

The solvers in memory find conflicts in float64. Features of scales that are many orders of magnitude apart, or far from the
origin, hide from them which points these are; ``dfeas.exact_search`` finds out, and the checker proves it from a certificate.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dfeas.data.dataset import Dataset
from dfeas.run.exact.partition import parts
from dfeas.run.exact_search import Face, search
from dfeas.run.recovery import CONFLICTING
from dfeas.run.request import Request
from dfeas.run.session import Setting
from dfeas.run.task import Outcome
from dfeas.run.termination import EPS_INFEASIBLE, FEASIBLE, Decision
from dfeas.verify.certificate import Certificate
from dfeas.verify.evidence import Check
from dfeas.verify.exact.dyadic import Integers
from dfeas.verify.separation import COMPLETE, rows

WIDE = 300
"""Features up to which the exact search is worth its time here; ``dfeas.separation`` asks it whatever the width."""


def exact_outcome(setting: Setting, asked: Request, outcome: Outcome, stop: Callable[[], bool]) -> Outcome:
    """The outcome of a run about points as they are stored; exact where it was proved up to rounding and can be exactly."""
    dataset = setting.checking.dataset
    if not _open(outcome) or dataset.dimension > WIDE or dataset.entries is not None:
        return outcome
    near = Certificate("gordan", dataset.fingerprint, view=dataset.view)
    if outcome.certificate is not None and outcome.certificate.kind == near.kind:
        near = outcome.certificate
    left = math.inf if asked.max_passes is None else asked.max_passes - outcome.record.passes
    face = search(setting.checking, near.support, until(asked, stop), left)
    if isinstance(face, str):
        return outcome
    better = certificate_of(dataset, face, near)
    (proved,) = setting.checking([better])
    reads = outcome.reads + face.reads + better.checking_reads
    if not isinstance(proved, Check) or proved.verdict == EPS_INFEASIBLE:
        return replace(outcome, reads=reads)
    tolerance = asked.margin_tolerance
    enough = 0.0 if tolerance is None else (1 - tolerance) * outcome.record.margin_upper
    wide = proved.verdict != FEASIBLE or proved.margin_lower >= enough
    decision = Decision("verdict" if wide else "stalled", proved.verdict)
    return replace(outcome, decision=decision, certificate=better, check=proved, reads=reads)


def _open(outcome: Outcome) -> bool:
    """Whether float64 went as far as it can, and left a verdict open."""
    if outcome.check is None:
        return outcome.decision.stopped == "stalled"
    return outcome.check.verdict == EPS_INFEASIBLE and outcome.check.margin_upper <= CONFLICTING


def until(asked: Request, stop: Callable[[], bool]) -> Callable[[], bool]:
    """Whether somebody asks to stop, or time is up."""
    limit = asked.time_limit
    return lambda: stop() or (limit is not None and time.monotonic() - asked.began >= limit)


def certificate_of(dataset: Dataset, face: Face, near: Certificate) -> Certificate:
    """What was found in integers, in float64."""
    if face.kind == COMPLETE:
        assert face.y is not None, "it separates"
        y = floats(face.y[: dataset.dimension])  # without what a point that is seen from another one has besides
        return replace(near, kind="separator", y=y / np.linalg.norm(y), support=near.support[:0], weights=near.weights[:0])
    stored = face.support < dataset.n
    support, weights = face.support[stored], floats(face.weights[stored])
    points = rows(dataset, support)
    weights *= np.sqrt(np.asarray((points * points).sum(axis=1))).ravel()
    kept = weights > 0
    return replace(near, support=support[kept], weights=weights[kept] / weights.sum())


def floats(values: Integers) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Integers in proportion, the largest about 1."""
    mantissa, exponent = parts(values)
    return np.asarray(np.ldexp(mantissa, np.maximum(exponent - exponent.max(), -2000)))
