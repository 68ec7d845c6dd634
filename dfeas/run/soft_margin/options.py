"""Options of a soft margin, checked: what makes no sense is refused in one line, before anything is read."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dfeas.data.dataset import Dataset
from dfeas.data.storage.npy import load_npy
from dfeas.errors import BadInputError, UsageError
from dfeas.geometry.protocol import facts_of
from dfeas.linalg.points import Floats
from dfeas.methods.soft_margin.memory import least_memory
from dfeas.problem import LEAST_EPS, SoftMarginOptions

LOSSES = ("hinge", "squared_hinge")
METHODS = ("auto", "sgd")
GAP = 1e-3
"""Relative gap at which a run ends, if nothing else is asked for."""

ClassWeight = str | Sequence[float] | None


def options_of(
    dataset: Dataset,
    *,
    C: float | Sequence[float] = 1.0,
    loss: str = "hinge",
    folds: int = 0,
    class_weight: ClassWeight = None,
    weights: Any = None,
    seed: int = 0,
    start: Any = None,
    dual: Path | None = None,
    many: bool = False,
) -> SoftMarginOptions:
    """Those of ``dfeas.soft_margin`` for this data, or of ``many`` classes. Raises UsageError and BadInputError."""
    return SoftMarginOptions(
        _values_of_c(C),
        _one_of(loss, LOSSES, "loss"),
        _folds_of(folds, dataset.n),
        _class_weights(class_weight),
        _point_weights(weights, dataset.n),
        seed,
        _start_of(start, (len(dataset.classes), dataset.dimension) if many else (dataset.dimension,)),
        None if dual is None else str(dual),
    )


def require_sane(
    *,
    C: float | Sequence[float],
    gap: float = GAP,
    loss: str = "hinge",
    folds: int = 0,
    class_weight: ClassWeight = None,
) -> None:
    """Raise UsageError for options that make no sense for any data."""
    require_gap(gap)
    _values_of_c(C)
    _one_of(loss, LOSSES, "loss")
    _folds_of(folds, sys.maxsize)
    _class_weights(class_weight)


def require_gap(gap: float) -> float:
    """The relative gap. Raises UsageError for one that makes no sense."""
    if not (isinstance(gap, int | float | np.number) and LEAST_EPS <= gap < 1):
        raise UsageError(f"gap {gap}: expected a number from {LEAST_EPS:g} to below 1")
    return float(gap)


def require(dataset: Dataset, options: SoftMarginOptions, memory: int) -> None:
    """Raise UsageError when the budget is too small, with what is needed."""
    if 8 * dataset.n > memory // 4 and options.weight is not None:
        raise UsageError(f"weights of {dataset.n} points need {32 * dataset.n / 1e6:.0f} MB of memory: raise --memory")
    count = len(options.C) * (1 + options.folds)
    need = least_memory(facts_of(dataset, memory), count)
    if need > memory // 4:
        raise UsageError(
            f"memory {memory / 1e6:.0f} MB is too little for {dataset.m} features and {count} values of C and folds: "
            f"at least {4 * need / 1e6:.0f} MB are needed"
        )


def method_for(method: str, options: SoftMarginOptions) -> tuple[str, str]:
    """The method, and why. Raises UsageError when it cannot do what is asked."""
    if _one_of(method, METHODS, "method") == "sgd":
        if options.loss != "hinge" or options.folds or len(options.C) > 1:
            raise UsageError("method sgd is for the hinge loss, one C and no folds")
        if options.dual is not None:
            raise UsageError("method sgd keeps nothing from which dual variables follow; leave out dual, or take method auto")
        return "sgd", "a soft margin by stochastic steps, asked for"
    if options.loss == "hinge":
        return "hinge", "a soft margin, whose nearest points are kept in memory"
    return "squared-hinge", "a soft margin by Newton steps"


def _one_of(value: str, names: tuple[str, ...], what: str) -> str:
    if value not in names:
        raise UsageError(f"{what} {value}: expected {' or '.join(names)}")
    return value


def _values_of_c(C: float | Sequence[float]) -> tuple[float, ...]:
    try:
        values = sorted({float(value) for value in np.atleast_1d(np.asarray(C, np.float64))})
    except (TypeError, ValueError):
        raise UsageError(f"C {C}: expected a number above 0, or several") from None
    if not values or not all(1e-30 <= value <= 1e30 for value in values):
        raise UsageError(f"C {C}: expected numbers from 1e-30 to 1e30")
    return tuple(values)


def _folds_of(folds: int, n: int) -> int:
    if folds and not 2 <= folds <= n:
        raise UsageError(f"folds {folds}: expected 0 for none, or 2 to the number of points, {n}")
    return folds


def _class_weights(weight: ClassWeight) -> tuple[float, float] | None:
    if weight is None:
        return 1.0, 1.0
    if isinstance(weight, str):
        _one_of(weight, ("balanced",), "class weight")
        return None
    both = tuple(float(value) for value in weight)
    if len(both) != 2 or not all(0 <= value < np.inf for value in both):
        raise UsageError(f"class weights {weight}: expected two numbers of at least 0, for the classes -1 and +1, or balanced")
    return both


def _point_weights(weights: Any, n: int) -> Floats | None:
    if weights is None:
        return None
    name = "weights"
    if isinstance(weights, str | Path):
        name = str(weights)
        if not Path(name).is_file():
            raise BadInputError(f"{name}: no such file of weights")
        weights = load_npy(Path(name))
    found = np.asarray(weights)
    if found.shape != (n,) or found.dtype.kind not in "biuf":
        raise BadInputError(f"{name}: expected {n} numbers, one for each point, got {found.dtype} of shape {found.shape}")
    found = found.astype(np.float64)
    bad = ~(np.isfinite(found) & (found >= 0))
    if bad.any():
        point = int(bad.argmax())
        raise BadInputError(f"{name}: point {point} has the weight {found[point]}; expected numbers of at least 0")
    return found


def _start_of(start: Any, shape: tuple[int, ...]) -> Floats | None:
    if start is None:
        return None
    found = np.asarray(start)
    if found.shape != shape or found.dtype.kind not in "biuf" or not np.isfinite(found).all():
        raise UsageError(
            f"start: expected {' x '.join(map(str, shape))} finite numbers, got {found.dtype} of shape {found.shape}"
        )
    return found.astype(np.float64)
