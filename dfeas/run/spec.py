"""What a run is asked, as a checkpoint keeps it: options that were checked against the data, methods, and where the data is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from dfeas.data.arrays import accept_array
from dfeas.data.dataset import Dataset
from dfeas.data.frames import values_of
from dfeas.data.source import ALL_POSITIVE, DataSpec
from dfeas.data.storage.numbers import exact
from dfeas.data.storage.places import local
from dfeas.data.storage.zarr_arrays import load_npy
from dfeas.errors import BadInputError, UsageError, brief, enough, spell
from dfeas.geometry.protocol import facts_of
from dfeas.geometry.registry import geometry_of
from dfeas.linalg.points import Floats
from dfeas.methods.protocol import Start
from dfeas.methods.registry import SOFT_MARGINS, base_name
from dfeas.problem import EPS, Goal, Objective
from dfeas.run.resources import Limits, Resources

if TYPE_CHECKING:
    from dfeas.methods.soft_margin.problem import SoftMargin

HARD_MARGIN, WIDEST, SEPARATED, SOLVABLE = "hard-margin", "widest", "separation", "feasible"
"""What a solve may be for, as its checkpoints say."""


class Request(Struct, frozen=True):
    """Options of a solve, as they will be used."""

    eps: float | None  # |Ax| that is an answer
    margin_tolerance: float | None
    max_passes: int | None
    time_limit: float | None  # seconds
    memory: int  # bytes
    began: float  # monotonic seconds

    @classmethod
    def begun(cls, goal: Goal, limits: Limits, resources: Resources) -> Request:
        """What is asked."""
        ends = limits.max_passes, limits.time_limit
        return cls(goal.eps, goal.margin_tolerance, *ends, resources.memory_bytes, limits.began)

    @property
    def margin(self) -> float:
        """That a run is planned for."""
        return EPS if self.eps is None else self.eps

    @property
    def limits(self) -> Limits:
        return Limits(max_passes=self.max_passes, time_limit=self.time_limit, began=self.began)


class SoftMarginOptions(Struct, frozen=True):
    """Options of a soft margin, as they will be used."""

    C: tuple[float, ...]  # ascending
    loss: str  # "hinge" | "squared_hinge"
    folds: int  # 0: no cross-validation
    classes: tuple[float, float] | None  # weights of the classes -1 and +1; None: n / (2 n_class)
    weight: Floats | None  # (n,) of points
    squares: Floats  # (m,) what each w_i^2 / 2 costs: 1, and of a bias 1/s^2, or 0
    seed: int
    gap: float  # relative, at which it ends
    start: Floats | None = None  # (m,) where to begin, instead of at the minimum of a sample; (classes, m) of several
    dual: str | None = None  # a .npy file for the dual variables
    probability: bool = False  # whether scores that folds left out are calibrated

    @property
    def problems(self) -> int:
        """Values of C, and folds of each."""
        return len(self.C) * (1 + self.folds)


class RunSpec(Struct, frozen=True):
    """What a run is: the same from its beginning to its end, however often it is interrupted."""

    asked: Request
    methods: tuple[str, ...]
    whys: tuple[str, ...]  # why each of them
    race: bool
    to_the_end: bool  # of a race
    data: DataSpec  # as it was opened, without what was in memory
    kernel: str = ""  # as certificates keep it
    soft: SoftMarginOptions | None = None  # of a soft margin
    classes: tuple[str, ...] = ()  # each against the rest, with one method; none: the labels as they are
    start: Start | None = None  # from an earlier run
    then: str = ""  # what is asked of the result of a solve: HARD_MARGIN | WIDEST | SEPARATED | SOLVABLE

    @property
    def names(self) -> tuple[str, ...]:
        """What runs side by side: methods, or classes."""
        return self.classes or self.methods

    @property
    def tolerance(self) -> float | None:
        """Of its own margin: with a free bias the widest one is looked for when there is a separator."""
        return None if self.then == WIDEST else self.asked.margin_tolerance

    @property
    def several(self) -> bool:
        """Whether each of them has a name, and a folder, of its own."""
        return self.race or bool(self.classes)

    def method_of(self, name: str) -> tuple[str, str]:
        """The method of one of them, and why."""
        place = 0 if self.classes else self.methods.index(name)
        return self.methods[place], self.whys[place]


def require_labels(spec: DataSpec, dataset: Dataset) -> None:
    """Raise UsageError where nobody said what the labels are: without them another question would be answered."""
    if spec.all_positive:
        if dataset.classes:
            raise UsageError(
                f"{dataset.where}: it has labels, and {spell('labels', ALL_POSITIVE)} asks about points without: leave it out"
            )
    elif not dataset.classes and spec.point is None and geometry_of(dataset).labelled:
        raise UsageError(f"{dataset.where}: no labels; give {spell('labels')}, or ask without: {spell('labels', ALL_POSITIVE)}")


def classes_to_share(dataset: Dataset) -> tuple[str, ...]:
    """The classes that will be set against the rest on the same reads. Raises BadInputError when there are none."""
    if not dataset.classes:
        raise BadInputError(f"{dataset.where}: no labels, so there are no classes to set against the rest")
    return dataset.classes


SOFT_METHODS = ("auto", "sgd")
"""Of a soft margin."""


def options_of(dataset: Dataset, objective: Objective, dual: Path | None = None, classes: int = 0) -> SoftMarginOptions:
    """Those of ``dfeas.soft_margin`` for this data, or of many ``classes``. Raises UsageError and BadInputError."""
    if objective.folds > dataset.n:
        raise UsageError(f"folds {brief(objective.folds)}: expected 0 for none, or 2 to the number of points, {dataset.n}")
    if dataset.transform is not None and not dataset.transform.normalize:
        raise UsageError("a soft margin has points with their lengths anyway: leave out lengths (--no-normalize)")
    return SoftMarginOptions(
        objective.prices,
        objective.loss,
        objective.folds,
        objective.weights_of_classes,
        _point_weights(objective.weights, dataset.n),
        _squares_of(dataset, objective.intercept_scaling),
        objective.random_state,
        float(objective.tol),
        _start_of(objective.start, (classes, dataset.dimension) if classes else (dataset.dimension,)),
        None if dual is None else str(dual),
        objective.probability,
    )


def require_memory(dataset: Dataset, options: SoftMarginOptions, memory: int) -> None:
    """Raise UsageError when the budget is too small, with what is needed."""
    if 8 * dataset.n > memory // 4 and options.weight is not None:
        raise UsageError(f"weights of {dataset.n} points need {enough(32 * dataset.n)} of memory: raise {spell('memory')}")
    from dfeas.methods.soft_margin.problem import least_memory

    need, several = least_memory(facts_of(dataset, memory), options.problems, options.loss != "hinge"), options.problems
    if need > memory // 4:
        raise UsageError(
            f"memory {enough(memory)} is too little for {dataset.m} features"
            f"{f' and {several} values of C and folds' if several > 1 else ''}: at least {enough(4 * need)} are needed"
        )


def method_for(method: str, options: SoftMarginOptions, n: int, *, shared: bool = False) -> tuple[str, str]:
    """The method, and why. Raises UsageError when it cannot do what is asked."""
    if base_name(method) == "sgd":
        from dfeas.methods.soft_margin.sgd import read_alpha

        if shared:
            raise UsageError("method sgd reads points in their order, and classes share their reads; take method auto")
        if options.loss != "hinge" or options.folds or len(options.C) > 1:
            raise UsageError("method sgd is for the hinge loss, one C and no folds")
        read_alpha(method, n * options.C[0])
        if options.dual is not None:
            raise UsageError("method sgd keeps nothing from which dual variables follow; leave out dual, or take method auto")
        if (options.squares != 1).any():
            raise UsageError(f"method sgd has the bias in |w|: give {spell('intercept_scaling', 1)}, or take method auto")
        return method, "a soft margin by stochastic steps, asked for"
    if method != "auto":
        raise UsageError(f"method {method}: expected {' or '.join(SOFT_METHODS)}")
    if options.loss == "hinge":
        return "hinge", "a soft margin, whose nearest points are kept in memory"
    return "squared-hinge", "a soft margin by Newton steps"


def _squares_of(dataset: Dataset, scaling: float | None) -> Floats:
    squares = np.ones(dataset.dimension)
    if dataset.intercept:
        squares[-1] = 0.0 if scaling is None else 1 / scaling**2
    elif scaling is not None:
        raise UsageError(f"{spell('intercept_scaling', scaling)} is for points with an intercept: leave it out")
    return squares


def _point_weights(weights: Any, n: int) -> Floats | None:
    if weights is None:
        return None
    name = "weights"
    if isinstance(weights, str | Path):
        name = str(local(weights, "weights"))
        if not Path(name).is_file():
            raise BadInputError(f"{name}: no such file of weights; of a column give its values, an array")
        weights = load_npy(Path(name))
    array = exact(accept_array(values_of(weights, name), name), np.float64, name)
    if array.shape != (n,):
        raise BadInputError(f"{name}: expected {n} numbers, one for each point, got an array of shape {array.shape}")
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        point = int(bad.argmax())
        raise BadInputError(f"{name}: point {point} has the weight {array[point]}; expected numbers of at least 0")
    return array


def _start_of(start: Any, shape: tuple[int, ...]) -> Floats | None:
    if start is None:
        return None
    array = exact(accept_array(values_of(start, "start"), "start"), np.float64, "start")
    if array.shape != shape or not np.isfinite(array).all():
        raise UsageError(f"start: expected {' x '.join(map(str, shape))} finite numbers, got an array of shape {array.shape}")
    return array


def margin_method(name: str, options: SoftMarginOptions, classes: tuple[float, float], start: Floats | None) -> SoftMargin:
    """A method of this name, with weights of the classes -1 and +1, that begins at ``start`` (m,) if there is one."""
    from dfeas.methods.soft_margin.problem import make_costs

    costs = make_costs(options.C, options.folds, classes, options.weight, options.seed)
    begin = None if start is None else np.repeat(start[:, None], len(costs.C), axis=1)
    return SOFT_MARGINS[base_name(name)].of(costs, options.squares, options.gap, begin).with_options(name)
