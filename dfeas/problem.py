"""What was asked for: options of a solve, checked; and which method they mean."""

from __future__ import annotations

import time
from dataclasses import dataclass

from dfeas.data.dataset import Dataset
from dfeas.engine.memory import POINT_BYTES, WEIGHING
from dfeas.errors import BadInputError, UsageError
from dfeas.linalg.points import Floats, working
from dfeas.methods import working_set
from dfeas.methods.protocol import Facts
from dfeas.methods.registry import METHODS
from dfeas.options import Goal, Limits, Resources

ALONE = ("online-perceptron", "ispvn")
"""Linear methods that read points in their order, or n-vectors beside them: no two of them share a read."""


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


def known(method: object, more: tuple[str, ...] = ()) -> str:
    """A method's name. Raises UsageError when there is none of that name."""
    if not isinstance(method, str) or method not in (*more, *METHODS):
        raise UsageError(f"unknown method {method}; expected {', '.join((*more, *METHODS))}")
    return method


def classes_to_share(dataset: Dataset, linear: str | None = None) -> tuple[str, ...]:
    """The classes that will be set against the rest on the same reads, by a ``linear`` method or another one.

    Raises UsageError for a linear method that shares none, and BadInputError when there are no classes.
    """
    if linear in ALONE:
        raise UsageError(f"{linear} reads the data in a way of its own, and classes share their reads; choose another method")
    if not dataset.classes:
        raise BadInputError(f"{dataset.where}: no labels, so there are no classes to set against the rest")
    return dataset.classes


def facts_of(dataset: Dataset, memory: int, tolerance: float | None = None, radius: float = 1.0) -> Facts:
    """What a method may know: a quarter of the budget is for what it keeps, as much for answers, the rest for copies."""
    size = working(dataset.dtype).itemsize
    entries = 0.0 if dataset.entries is None else int(dataset.entries.offsets[-1]) / dataset.n + dataset.intercept
    return Facts(dataset.dimension, dataset.rank, memory // 4, dataset.blocks, size, tolerance, radius, entries)


def abreast(method: str, classes: int, dataset: Dataset, memory: int) -> int:
    """How many classes can share the memory side by side: all, or as many as leave each a working set that drops no columns.

    What keeps no columns keeps little; a working set that would not fit for one class is left to ``choose``.
    """
    if method != "auto" and not method.startswith("working-set"):
        return classes
    rounds = range(1, classes + 1)
    counts = list(dict.fromkeys(-(-classes // turns) for turns in rounds))
    for enough in (working_set.holds, working_set.fits):
        for count in counts:
            if enough(facts_of(dataset, memory // count)):
                return count
    return classes


def choose(method: str, facts: Facts) -> tuple[str, str]:
    """The method, and why. Raises UsageError when it cannot work within the memory."""
    columns = f"{working_set.least_memory(facts) * 4 / 1e6:.0f} MB of memory"
    weights = f"{POINT_BYTES * facts.n / 1e6:.0f} MB of memory"
    weighs = POINT_BYTES * facts.n <= 4 * facts.memory
    if method == "auto":
        if working_set.fits(facts):
            return "working-set", "chosen because its columns fit in memory: a few reads, where other methods need hundreds"
        if not weighs:
            raise UsageError(f"this data needs {columns} for a working set, or {weights} for weights of all points")
        return "mirror-prox-one-pass", f"chosen because a working set would need {columns}"
    if method.startswith("working-set") and not working_set.fits(facts):
        raise UsageError(f"{method} needs {columns} for this data, or use mirror-prox-one-pass, which keeps no columns")
    if method in (*WEIGHING, "online-perceptron") and not weighs:
        raise UsageError(f"{method} needs {weights} for weights of all points, or use working-set, which weighs a few")
    return method, "asked for"
