"""What was asked for: options of a solve, checked."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from dfeas.data.dataset import Dataset
from dfeas.engine.memory import parse_bytes
from dfeas.errors import BadInputError, UsageError
from dfeas.linalg.points import Floats

LEAST_EPS = 1e-12
"""The checker's own rounding bound must stay below eps."""


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


def request(
    eps: float, margin_tolerance: float | None, max_passes: int | None, time_limit: float | None, memory: str | int
) -> Request:
    """The options, begun now. Raises UsageError for one that makes no sense."""
    numbers = {"eps": eps, "margin_tolerance": margin_tolerance, "max_passes": max_passes, "time_limit": time_limit}
    for name, value in numbers.items():
        if value is not None and not isinstance(value, int | float | np.number):
            raise UsageError(f"{name} {value!r}: expected a number")
    if not LEAST_EPS <= eps < 1:
        raise UsageError(f"eps {eps}: expected a number from {LEAST_EPS:g}, which float64 can prove, to below 1")
    if margin_tolerance is not None and not 1e-6 <= margin_tolerance < 1:
        raise UsageError(f"margin_tolerance {margin_tolerance}: expected a number from 1e-6 to below 1")
    if max_passes is not None and max_passes < 1:
        raise UsageError(f"max_passes {max_passes}: expected at least 1")
    if time_limit is not None and not time_limit > 0:
        raise UsageError(f"time_limit {time_limit}: expected a positive number of seconds")
    return Request(eps, margin_tolerance, max_passes, time_limit, parse_bytes(memory), time.monotonic())


def classes_to_share(dataset: Dataset) -> tuple[str, ...]:
    """The classes that will be set against the rest on the same reads. Raises BadInputError when there are none."""
    if not dataset.classes:
        raise BadInputError(f"{dataset.where}: no labels, so there are no classes to set against the rest")
    return dataset.classes
