"""Options of a soft margin for data that is known; and which method they mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dfeas.data.dataset import Dataset
from dfeas.data.storage.npy import load_npy
from dfeas.errors import BadInputError, UsageError
from dfeas.geometry.protocol import facts_of
from dfeas.linalg.points import Floats
from dfeas.methods.soft_margin.memory import least_memory
from dfeas.problem import Objective
from dfeas.run.request import SoftMarginOptions

METHODS = ("auto", "sgd")


def options_of(dataset: Dataset, objective: Objective, dual: Path | None = None, classes: int = 0) -> SoftMarginOptions:
    """Those of ``dfeas.soft_margin`` for this data, or of many ``classes``. Raises UsageError and BadInputError."""
    if objective.folds > dataset.n:
        raise UsageError(f"folds {objective.folds}: expected 0 for none, or 2 to the number of points, {dataset.n}")
    return SoftMarginOptions(
        objective.prices,
        objective.loss,
        objective.folds,
        objective.weights_of_classes,
        _point_weights(objective.weights, dataset.n),
        objective.seed,
        _start_of(objective.start, (classes, dataset.dimension) if classes else (dataset.dimension,)),
        None if dual is None else str(dual),
    )


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
    if method not in METHODS:
        raise UsageError(f"method {method}: expected {' or '.join(METHODS)}")
    if method == "sgd":
        if options.loss != "hinge" or options.folds or len(options.C) > 1:
            raise UsageError("method sgd is for the hinge loss, one C and no folds")
        if options.dual is not None:
            raise UsageError("method sgd keeps nothing from which dual variables follow; leave out dual, or take method auto")
        return "sgd", "a soft margin by stochastic steps, asked for"
    if options.loss == "hinge":
        return "hinge", "a soft margin, whose nearest points are kept in memory"
    return "squared-hinge", "a soft margin by Newton steps"


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
