"""What is asked, as values: a problem, and what ends a run. Each is checked once, where it is made.

The keyword arguments of the public verbs and the options of the commands are the fields of these classes, and of those in
``run.resources``: an option is added there, and nowhere else. Their docstrings are the parameters of the verbs; a field has the
help of its command-line option, which stands under the HEADING of its class unless it has a heading of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dfeas.data.source import ALL_POSITIVE, SCALES, UNSEEN, DataSpec, Transform
from dfeas.data.storage.numbers import array_of
from dfeas.data.storage.places import paths_of
from dfeas.errors import BadInputError, UsageError, none_of
from dfeas.settings import option, require_types

LEAST_EPS = 1e-12
"""The checker's own rounding bound must stay below eps."""
LOSSES = ("hinge", "squared_hinge")


@dataclass(frozen=True, kw_only=True)
class View:
    """Which points count, with which labels, and how they are seen.

    Parameters
    ----------
    intercept : bool, optional
        Ask about any hyperplane, by a feature equal to 1; False: about those through the origin. By default points with labels
        have one; without labels, with a kernel and on cones there is none.
    positive : str, optional
        The class that counts as +1, against all others.
    one_vs_rest : bool
        Solve each class against the rest, on the same reads; limits of passes hold for each. Memory is shared, and ``out`` gets
        a run folder for each class. Not with ``positive`` or ``point``.
    also : path, or sequence of paths
        Datasets whose points follow those of X: all of them as one.
    mask : array (n,) of bool, or path, optional
        Only these points count; the path is that of a .npy file. Of cones whole ones: an entry for each cone, in their order,
        or one for each of their rows.
    scale : {"std", "maxabs"}, optional
        Multiply each feature by one over its standard deviation, or over its greatest magnitude, after centring. Nothing is
        written. It changes margins and the work, not which points can be separated.
    center : bool
        Subtract the mean of each feature. With an intercept that changes nothing but margins and the work; without one the
        hyperplane goes through the mean of the points. Not for sparse points.
    normalize : bool
        Columns are points over their own length; False: over the length of the longest point, so that margins are distances of
        the points from the hyperplane, as a share of that length.
    point : array (m,), or series by names of features, optional
        Ask about the points x_j - point, without labels: see ``dfeas.in_hull``, which says what the answer means.

    Raises
    ------
    UsageError
        Options that contradict each other.

    Examples
    --------
    >>> import dfeas
    >>> dfeas.View(intercept=False, scale="std").scale
    'std'
    """

    HEADING: ClassVar[str] = "Question"

    intercept: bool | None = option(
        None, "Any hyperplane, or only those through the origin.  [default: any, of points with labels]", flag=True
    )
    positive: str | None = option(None, "This class against all others.", metavar="CLASS")
    one_vs_rest: bool = option(False, "Each class against the rest, on the same reads.")
    also: str | Path | Sequence[str | Path] = option(
        (), "A dataset whose points follow; any number of them.", metavar="DATA", place="data", multiple=True
    )
    mask: Any = option(None, "Booleans (.npy), one a point or cone: only these count.", metavar="FILE", place="local")
    scale: str | None = option(None, "Scale each feature, without writing anything.", choices=SCALES)
    center: bool = option(False, "Subtract the mean of each feature, likewise.")
    normalize: bool = option(True, "Points over their own lengths, or over the greatest.  [default: own]")
    point: Any = option(None)

    def __post_init__(self) -> None:
        if isinstance(self.positive, int | np.integer | np.bool_):
            object.__setattr__(self, "positive", str(self.positive))  # as labels that are numbers are called
        require_types(self)
        object.__setattr__(self, "also", paths_of(self.also, "--also"))
        if self.scale not in (None, *SCALES):
            raise UsageError(f"--scale {none_of(self.scale, SCALES)}")
        if self.one_vs_rest and (self.positive is not None or self.point is not None):
            raise UsageError("--one-vs-rest asks about every class: leave out --positive and point")

    @property
    def transform(self) -> Transform:
        """Of the points, without its numbers."""
        return Transform(self.scale, bool(self.center), bool(self.normalize))


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """A kernel and its parameters; None for one that was not given.

    Parameters
    ----------
    kernel : str or callable, optional
        Ask about the points in the space of a kernel: a name of ``dfeas.KERNELS``, or a function of two blocks of points, (b,
        m) and (c, m), that returns (b, c), symmetric and positive definite. It is normalised, K(x, x) = 1.
    gamma : float, optional
        Of the kernel; by default one over the median (squared) distance of a sample.
    degree : int, optional
        Of the polynomial kernel; by default 3.
    coef0 : float, optional
        Of the polynomial kernel; by default 1.

    Raises
    ------
    UsageError
        Parameters without a kernel.

    Examples
    --------
    >>> import dfeas
    >>> dfeas.Kernel(kernel="rbf", gamma=0.5)
    Kernel(kernel='rbf', gamma=0.5, degree=None, coef0=None)
    """

    HEADING: ClassVar[str] = "Kernel"

    kernel: str | Callable[..., Any] | None = option(None, "Of the space in which to separate.", metavar="NAME")
    gamma: float | None = option(None, "Of the kernel.  [default: one over the median (squared) distance]", metavar="G")
    degree: int | None = option(None, "Of the polynomial kernel.  [default: 3]", metavar="D")
    coef0: float | None = option(None, "Of the polynomial kernel.  [default: 1]", metavar="C0")

    def __post_init__(self) -> None:
        require_types(self)
        if self.kernel is None and (self.gamma, self.degree, self.coef0) != (None, None, None):
            raise UsageError("--gamma, --degree and --coef0 are those of a --kernel, and none is given")

    @property
    def function(self) -> Callable[..., Any] | None:
        """Of Python, that is the kernel."""
        return None if self.kernel is None or isinstance(self.kernel, str) else self.kernel


@dataclass(frozen=True)
class Problem:
    """Points, labels, how they are seen, and the space in which they are to be separated.

    Parameters
    ----------
    X : array (n, m), data frame, path, cones, or Problem
        Row j is point j, of NumPy, SciPy, zarr, HDF5 or Dask; or the path of a dfeas dataset, of a zarr array or of a small
        file of points. With a client a dense array or frame of Dask is solved where it lies, in its partitions, as they are
        persisted or computed anew in each pass. Or cones: what ``dfeas.from_scs`` and ``dfeas.from_cone_rows`` return,
        or a dataset that ``dfeas.ingest_cone_rows`` wrote, without labels.
    labels : array (n,) of two values, path, or str, optional
        Of a frame also the name of a column. None when the dataset has them, and for cones. ``"all-positive"`` asks about
        points without labels: A'y > 0 for all of them as they are.
    view : View
        Which points count, and how they are seen.
    kernel : Kernel
        The space.

    Raises
    ------
    UsageError
        A view that is not for a kernel.

    Examples
    --------
    >>> import dfeas
    >>> problem = dfeas.Problem([[1.0, 2.0], [-1.0, 0.5]], [1, -1], dfeas.View(intercept=False))
    >>> dfeas.solve(problem).verdict.value
    'feasible'
    """

    X: Any
    labels: Any = None
    view: View = View()
    kernel: Kernel = Kernel()

    @property
    def all_positive(self) -> bool:
        """Whether the question is asked without labels, by name."""
        return isinstance(self.labels, str) and self.labels == ALL_POSITIVE

    def __post_init__(self) -> None:
        if self.view.intercept is None and (self.kernel.kernel is not None or self.all_positive):
            object.__setattr__(self, "view", replace(self.view, intercept=False))
        if self.view.transform and self.kernel.kernel is not None:
            raise UsageError(UNSEEN)

    @cached_property
    def spec(self) -> DataSpec:
        """What the data is, and how it is seen. Raises UsageError for what contradicts each other."""
        view = self.view
        how = view.mask, view.positive, view.intercept, view.point
        also = paths_of(view.also, "--also")
        return DataSpec(self.X, self.labels, also, *how, transform=view.transform, one_vs_rest=view.one_vs_rest)


@dataclass(frozen=True, kw_only=True)
class Goal:
    """What is enough.

    Parameters
    ----------
    eps : float
        A run may end with ``eps-infeasible``: no unit vector has a margin above eps on the unit points.
    margin_tolerance : float, optional
        Go on past the first separator until margin_lower >= (1 - margin_tolerance) margin_upper: the hyperplane of maximum
        margin (hard-margin SVM) up to this share.

    Raises
    ------
    UsageError
        An eps that float64 cannot prove, or no share.

    Examples
    --------
    >>> import dfeas
    >>> dfeas.Goal(margin_tolerance=0.01)
    Goal(eps=0.001, margin_tolerance=0.01)
    """

    HEADING: ClassVar[str] = "Question"

    eps: float = option(1e-3, "Stop with eps-infeasible when no margin above it exists.", metavar="E", shown=True)
    margin_tolerance: float | None = option(None, "Go on to the maximum margin, up to this share of it.", metavar="T")

    def __post_init__(self) -> None:
        require_types(self)
        if not LEAST_EPS <= self.eps < 1:
            raise UsageError(f"--eps {self.eps}: expected a number from {LEAST_EPS:g}, which float64 can prove, to below 1")
        if self.margin_tolerance is not None and not 1e-6 <= self.margin_tolerance < 1:
            raise UsageError(f"--margin-tolerance {self.margin_tolerance}: expected a number from 1e-6 to below 1")


@dataclass(frozen=True, kw_only=True)
class Objective:
    """What a soft margin minimises, and how near to the minimum is enough.

    Parameters
    ----------
    C : float, or sequence of float
        Price of losses, above 0; of several, all are found on the same reads. With folds the one of least error on the points
        that were left out is chosen, of equals the smallest; without folds the greatest.
    loss : {"hinge", "squared_hinge"}
        max(0, z), or its square; as LIBLINEAR, without a factor of one half.
    gap : float
        (objective - lower bound of the minimum) / objective at which it ends.
    folds : int
        Of cross-validation, at least 2; each point is in one, by its index and ``seed``. 0: none.
    class_weight : "balanced", or two floats, optional
        Of the classes -1 and +1; ``balanced`` is n / (2 n_class).
    weights : array (n,), or path, optional
        Of the points that count, >= 0; the path is that of a .npy file.
    seed : int
        Draws the folds.
    dual : path, optional
        A .npy file for the dual variables alpha (n,) of the chosen C, those that prove ``lower``, written in one more read
        without keeping them: 0 <= alpha_j <= c_j for the hinge, 0 <= alpha_j for its square, and y is the sum of alpha_j l_j
        x_j up to ``dual.residual``. At a limit they are those of the bound so far. Not for ``sgd``.
    start : array (m,), (m+1,) or (classes, m), optional
        A hyperplane to begin from, as a result has it in y; of each class against the rest.

    Raises
    ------
    UsageError
        Numbers out of their range.

    Examples
    --------
    >>> import dfeas
    >>> dfeas.Objective(C=[10, 0.1], folds=5).prices
    (0.1, 10.0)
    """

    HEADING: ClassVar[str] = "Question"

    C: float | Sequence[float] = option(
        1.0, "Price of losses; several on the same reads.", metavar="C,..", numbers=True, shown=True
    )
    loss: str = option("hinge", "What a point on the wrong side costs.", choices=LOSSES, shown=True)
    gap: float = option(1e-3, "Relative gap of objective and lower bound to end at.", metavar="G", shown=True)
    folds: int = option(0, "Choose C by cross-validation in K folds, on the same reads.", metavar="K")
    class_weight: str | Sequence[float] | None = option(
        None, "Of the classes -1 and +1, or balanced.", metavar="A,B", numbers=True
    )
    weights: Any = option(None, "A .npy file with a weight for each point.", metavar="FILE", place="local")
    seed: int = option(0, "Draws the folds.", metavar="S")
    dual: str | Path | None = option(None, "Write the dual variables to this .npy file.", metavar="FILE", place="local")
    start: Any = option(None)

    def __post_init__(self) -> None:
        require_types(self)
        if not LEAST_EPS <= self.gap < 1:
            raise UsageError(f"--gap {self.gap}: expected a number from {LEAST_EPS:g} to below 1")
        if self.loss not in LOSSES:
            raise UsageError(f"--loss {none_of(self.loss, LOSSES)}")
        if self.folds and self.folds < 2:
            raise UsageError(f"--folds {self.folds}: expected 0 for none, or 2 to the number of points")
        _ = self.prices, self.weights_of_classes

    @property
    def prices(self) -> tuple[float, ...]:
        """All values of C, ascending."""
        try:
            values = sorted({float(value) for value in array_of(self.C, "C").reshape(-1).tolist()})
        except (BadInputError, TypeError, ValueError):
            raise UsageError(f"C {self.C}: expected a number above 0, or several") from None
        if not values or not all(1e-30 <= value <= 1e30 for value in values):
            raise UsageError(f"C {self.C}: expected numbers from 1e-30 to 1e30")
        return tuple(values)

    @property
    def weights_of_classes(self) -> tuple[float, float] | None:
        """Of -1 and +1; None for balanced ones."""
        if self.class_weight is None:
            return 1.0, 1.0
        if isinstance(self.class_weight, str):
            if self.class_weight != "balanced":
                raise UsageError(f"class weight {self.class_weight}: expected balanced")
            return None
        text = f"class weights {self.class_weight}: expected two numbers of at least 0, for the classes -1 and +1, or balanced"
        try:
            both = tuple(float(value) for value in self.class_weight)
        except (TypeError, ValueError):
            raise UsageError(text) from None
        if len(both) != 2 or not all(0 <= value < np.inf for value in both):
            raise UsageError(text)
        return both


def check(options: Mapping[str, Any], *groups: type) -> None:
    """Raise UsageError for options by name that make no sense, whatever the data."""
    for group in groups:
        group(**{each.name: options[each.name] for each in fields(group) if each.name in options})
