"""What is asked, as values: a problem, and what ends a run. Each is checked once, where it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from msgspec import Struct

from dfeas.data.source import SCALES, DataSpec, Transform
from dfeas.data.storage.numbers import array_of
from dfeas.errors import BadInputError, UsageError, brief, either, none_of, spell
from dfeas.records import names_of, replace
from dfeas.settings import require_type, require_types

LEAST_EPS = 1e-12
"""The checker's own rounding bound must stay below eps."""
EPS = 1e-3
"""Of the methods of the papers, where nobody says another one."""
OWN_METHODS = ("auto", "working-set", "working-set-plain")
"""They look for a conflict, and go on below any eps."""
DISTANCES = ("rbf", "exponential")
"""Kernels that are functions of a distance: K(x, x) = 1, and they need gamma."""
PRODUCTS = ("polynomial", "linear", "cosine")
"""Those of x'z."""
KERNELS = (*DISTANCES, *PRODUCTS)
PARAMETERS = {"polynomial": ("gamma", "degree", "coef0"), **dict.fromkeys(DISTANCES, ("gamma",))}
"""Of kernels that have any."""
Function: TypeAlias = Callable[[Any, Any], Any]
"""Two blocks of points (b, m) and (c, m) to their kernel (b, c), symmetric and positive definite. Blocks are arrays, or
``scipy.sparse.csr_array`` where points are sparse; so may the answer be.
"""
LOSSES = ("hinge", "squared_hinge")
TRANSFORMS = (*SCALES, "center", "lengths")

Method: TypeAlias = str | Literal[
    "auto", "working-set", "working-set-plain", "mirror-prox", "mirror-prox-one-pass", "mirror-prox-fixed",
    "smooth-perceptron", "perceptron", "normalized-perceptron", "rescaled-perceptron", "rescaled-perceptron-ellipsoid",
    "online-perceptron", "margin-perceptron", "margin-perceptron-unit", "winnow", "smooth-winnow", "von-neumann",
    "von-neumann-away", "snkpvn", "ispvn", "mirror-prox-euclidean",
]  # fmt: skip
"""A name of a method, which an editor completes; options may stand after it, ``ispvn:gamma=4``."""
KernelName: TypeAlias = str | Literal["rbf", "exponential", "polynomial", "linear", "cosine"]
SoftMethod: TypeAlias = str | Literal["auto", "sgd"]
Loss: TypeAlias = Literal["hinge", "squared_hinge"]
Word: TypeAlias = Literal["std", "maxabs", "center", "lengths"]
Transforms: TypeAlias = Word | Sequence[Word]
"""How points are seen: see ``dfeas.solve``."""


class Kernel(Struct, frozen=True):
    """A kernel, in whose space points are separated; it is normalised, K(x, x) = 1.

    Parameters
    ----------
    kernel : str or callable
        A name of ``dfeas.KERNELS``, or a function of two blocks of points, (b, m) and (c, m), that returns (b, c), symmetric
        and positive definite.
    gamma : float, optional
        By default one over the median (squared) distance in a sample.
    degree : int, optional
        Of the polynomial kernel; by default 3.
    coef0 : float, optional
        Of the polynomial kernel; by default 1.

    Examples
    --------
    >>> import dfeas
    >>> parabola = dfeas.Kernel("polynomial", degree=2)
    >>> print(dfeas.solve([[0.0], [1.0], [2.0]], [1, -1, 1], kernel=parabola).verdict)
    feasible
    """

    kernel: str | Callable[..., Any]
    gamma: float | None = None
    degree: int | None = None
    coef0: float | None = None

    def __post_init__(self) -> None:
        require_types(self)


class Problem(Struct, frozen=True):
    """Points, labels and how they are seen, and the space in which they are to be separated."""

    spec: DataSpec
    kernel: Kernel | None = None

    @classmethod
    def of(
        cls,
        X: Any,
        labels: Any = None,
        *,
        positive: str | None = None,
        intercept: bool | None = None,
        mask: Any = None,
        transform: Transforms = (),
        kernel: KernelName | Callable[..., Any] | Kernel | None = None,
        one_vs_rest: bool = False,
        point: Any = None,
    ) -> Problem:
        """From the arguments of a verb. Raises UsageError for what contradicts each other."""
        require_type("one_vs_rest", one_vs_rest, "bool")
        if one_vs_rest and positive is not None:
            raise UsageError(f"{spell('one_vs_rest')} asks about every class: leave out {spell('positive')}")
        if kernel is not None and not isinstance(kernel, Kernel):
            kernel = Kernel(kernel)
        seen = read_transform(transform)
        if kernel is not None and not seen.normalize:
            lengths, std = either("'lengths'", "--no-normalize"), either("transform='std'", "--scale std")
            raise UsageError(f"points have length 1 in a kernel's space: leave out {lengths}; {std} scales features")
        spec = DataSpec(X, labels, (), mask, positive, intercept, point, transform=seen, one_vs_rest=one_vs_rest)
        if intercept is None and (kernel is not None or spec.all_positive):
            spec = replace(spec, intercept=False)
        return cls(spec, kernel)

    @property
    def function(self) -> Callable[..., Any] | None:
        """Of Python, that is the kernel."""
        return None if self.kernel is None or isinstance(self.kernel.kernel, str) else self.kernel.kernel


def read_transform(words: Transforms) -> Transform:
    """What words of ``TRANSFORMS`` ask for, without its numbers. Raises UsageError for others."""
    require_type("transform", words, "str | Sequence[str]")
    several = [words] if isinstance(words, str) else [str(word) for word in words]
    for word in several:
        if word not in TRANSFORMS:
            raise UsageError(f"transform: {none_of(word, TRANSFORMS)}")
    scales = [word for word in SCALES if word in several]
    if len(scales) > 1:
        raise UsageError(f"transform: choose one of {' and '.join(scales)}")
    return Transform(scales[0] if scales else None, "center" in several, "lengths" not in several)


class Goal(Struct, frozen=True, kw_only=True):
    """What is enough."""

    eps: float | None = None  # None: a small |Ax| is no answer
    margin_tolerance: float | None = None

    def __post_init__(self) -> None:
        require_types(self)
        if self.eps is not None and not LEAST_EPS <= self.eps < 1:
            raise UsageError(
                f"{spell('eps', self.eps)}: expected a number from {LEAST_EPS:g}, which float64 can prove, to below 1"
            )
        if self.margin_tolerance is not None and not 1e-6 <= self.margin_tolerance < 1:
            raise UsageError(f"{spell('margin_tolerance', self.margin_tolerance)}: expected a number from 1e-6 to below 1")

    def of_methods(self, names: Sequence[str]) -> Goal:
        """With the eps of the papers where none is said, and one of some methods is theirs."""
        return self if self.eps is not None or {*names} <= {*OWN_METHODS} else replace(self, eps=EPS)


class Objective(Struct, frozen=True):
    """What a soft margin minimises, and how near to the minimum is enough: see ``dfeas.soft_margin``."""

    C: float | Sequence[float] = 1.0
    loss: str = "hinge"
    tol: float = 1e-3
    folds: int = 0
    class_weight: str | Sequence[float] | None = None
    weights: Any = None  # (n,), or the path of a file
    intercept_scaling: float | None = None
    random_state: int = 0
    dual: str | Path | None = None
    start: Any = None
    probability: bool = False

    def __post_init__(self) -> None:
        require_types(self)
        if self.probability and not self.folds:
            raise UsageError(f"{spell('probability', True)}: it is from points that folds leave out; give {spell('folds', 5)}")
        if not LEAST_EPS <= self.tol < 1:
            raise UsageError(f"{spell('tol', self.tol)}: expected a number from {LEAST_EPS:g} to below 1")
        if self.loss not in LOSSES:
            raise UsageError(f"{spell('loss')} {none_of(self.loss, LOSSES)}")
        if self.folds and self.folds < 2:
            raise UsageError(f"{spell('folds', self.folds)}: expected 0 for none, or 2 to the number of points")
        if self.intercept_scaling is not None and not 1e-6 <= self.intercept_scaling <= 1e6:
            said = spell("intercept_scaling", self.intercept_scaling)
            raise UsageError(f"{said}: expected a number from 1e-6 to 1e6; without it the bias is free")
        _ = self.prices, self.weights_of_classes

    @property
    def prices(self) -> tuple[float, ...]:
        """All values of C, ascending."""
        try:
            values = sorted({float(value) for value in array_of(self.C, "C").reshape(-1).tolist()})
        except (BadInputError, TypeError, ValueError, OverflowError):
            values = []
        if not values or not all(1e-30 <= value <= 1e30 for value in values):
            raise UsageError(f"C {brief(self.C, say=str)}: expected a number above 0, or several, from 1e-30 to 1e30")
        return tuple(values)

    @property
    def weights_of_classes(self) -> tuple[float, float] | None:
        """Of -1 and +1; None for balanced ones."""
        if self.class_weight is None:
            return 1.0, 1.0
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            return None
        try:
            both = () if isinstance(self.class_weight, str) else tuple(float(value) for value in self.class_weight)
        except (TypeError, ValueError, OverflowError):
            both = ()
        if len(both) != 2 or not all(0 <= value < np.inf for value in both):
            what = "expected two numbers of at least 0, for the classes -1 and +1, or balanced"
            raise UsageError(f"class weights {brief(self.class_weight, say=str)}: {what}")
        return both


def check(options: Mapping[str, Any], *groups: type) -> None:
    """Raise UsageError for options by name that make no sense, whatever the data."""
    for group in groups:
        group(**{name: options[name] for name in names_of(group) if name in options})
