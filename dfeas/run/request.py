"""What was asked for: options of a solve, checked."""

from __future__ import annotations

import time
from dataclasses import dataclass

from dfeas.linalg.points import Floats
from dfeas.problem import Goal, Limits, Resources


@dataclass(frozen=True)
class Request:
    """Options of a solve, as they will be used."""

    eps: float
    margin_tolerance: float | None
    max_passes: int | None
    time_limit: float | None  # seconds
    memory: int  # bytes
    began: float  # monotonic seconds


@dataclass(frozen=True, slots=True)
class SoftMarginOptions:
    """Options of a soft margin, as they will be used."""

    C: tuple[float, ...]  # ascending
    loss: str  # "hinge" | "squared_hinge"
    folds: int  # 0: no cross-validation
    classes: tuple[float, float] | None  # weights of the classes -1 and +1; None: n / (2 n_class)
    weight: Floats | None  # (n,) of points
    seed: int
    start: Floats | None = None  # (m,) where to begin, instead of at the minimum of a sample; (classes, m) of several
    dual: str | None = None  # a .npy file for the dual variables


def request(goal: Goal, limits: Limits, resources: Resources) -> Request:
    """The options, begun now."""
    ends = limits.max_passes, limits.time_limit
    return Request(goal.eps, goal.margin_tolerance, *ends, resources.memory_bytes, time.monotonic())
