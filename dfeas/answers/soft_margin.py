"""What a soft margin returns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from dfeas.answers.files import CERTIFICATE, SOFT_MARGIN, SOFT_MARGINS, TRACE, certificate_of, load_result
from dfeas.answers.result import Fitted, Sides, cost_row, plane_of, sides_from
from dfeas.answers.several import PerClass
from dfeas.answers.trace import Trace
from dfeas.answers.words import Stop
from dfeas.data.storage.places import Place, place
from dfeas.display import Part, Row
from dfeas.errors import CorruptDataError
from dfeas.linalg.points import Floats
from dfeas.methods.protocol import Sparse
from dfeas.verify.certificate import HYPERPLANE, Certificate


@dataclass(frozen=True)
class Fit:
    """One C, on all points or without one fold."""

    C: float
    fold: int | None  # the one that was left out
    objective: float  # |w|^2/2 + sum c_j loss_j at the w that was found
    lower: float  # of its minimum
    gap: float  # (objective - lower) / objective
    support: int  # points at the margin or beyond it: l_j x_j'w <= 1
    error: float | None  # weighted share of points on the wrong side: of the fold that was left out, or of all


@dataclass(frozen=True)
class Validation:
    """What cross-validation says of one C."""

    C: float
    error: float  # mean over the folds
    deviation: float  # standard deviation over the folds

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Validation:
        """From the keys of a result; what is not known yet is infinite."""
        return cls(*(math.inf if values[name] is None else values[name] for name in ("C", "error", "deviation")))


@dataclass(frozen=True)
class DualVariables:
    """Those of all points, in a file: 0 <= alpha_j <= c_j for the hinge, 0 <= alpha_j for its square."""

    path: str  # alpha (n,) float64, .npy
    value: float  # of the other problem at alpha: a lower bound of the minimum, as ``lower``
    residual: float  # |w - sum alpha_j l_j x_j|, without a free bias
    most: float  # sqrt(2 (objective - value)): what the residual cannot exceed
    support: int  # points with alpha_j > 0
    full: int  # points with alpha_j = c_j > 0, of the hinge


@dataclass(frozen=True, repr=False)
class SoftMarginResult(Fitted):
    """The hyperplane of the chosen C, and both ends of what it minimises.

    That is |w|^2/2 + sum_j c_j loss(1 - l_j (x_j'w + b)) over the points as they are stored, or centred and scaled; c_j is C
    times the weights of the class and of the point. With ``intercept_scaling`` s it also has b^2/(2 s^2).

    Attributes
    ----------
    stopped : Stop
        ``VERDICT`` when all gaps are small enough.
    message : str
        How near to the minimum the hyperplane is, in words.
    C : float
        The C that was given, or that cross-validation chose.
    loss : str
        "hinge" or "squared_hinge".
    objective : float
        |w|^2/2 + the sum of all losses, at the w that was found.
    lower : float
        Lower bound of the minimum, by weak duality, up to rounding.
    gap : float
        (objective - lower) / objective.
    margin : float
        1 / |w|: half of the width between both margins, without the bias; inf for w = 0.
    support : int
        Points at the margin or beyond it.
    error : float, optional
        Weighted share of all points on the wrong side.
    fits : list of Fit
        The fits of all C and folds.
    validation : list of Validation
        Errors of each C; empty without folds.
    method : str
        The method that found the hyperplane.
    m : int
        Features.
    n : int
        Points.
    intercept : bool
        Whether y has a bias, its last entry.
    target : float
        The gap that was asked for.
    passes : float
        Reads that the method asked for.
    reads : float
        All reads, also those of the survey.
    iterations : int
        Steps of the method.
    bytes_read : int
        Bytes of these reads.
    seconds : float
        Wall time of the run.
    fingerprint : str
        Hash of the data.
    versions : dict of str
        Versions of dfeas and the libraries that computed the result.
    data : dict, optional
        Path, labels, positive, intercept; None for arrays in memory.
    y : array (m,) or (m+1,)
        The hyperplane with the intercept last, for points as they were seen; ``coef`` and ``bias`` are in the units of X.
    path : array (fits, m) or (fits, m+1)
        The hyperplanes of all C and folds, as y.
    certificate : str, optional
        Path of the file with y.
    dual : DualVariables, optional
        Dual variables, if they were asked for.
    bits : str, optional
        ``same``; ``mixed`` if a worker had other software or another processor than this process; None: there were no
        workers.
    workers : list of dict, optional
        These workers, and those left out, with the reason; None: there are none.
    sides : dict of Side, optional
        Which class is -1 and which is +1, and how many points each has.
    features : list of str, optional
        Names of the features; None if the data has none.
    calibration : tuple of two floats, optional
        a and b of ``predict_proba``: P(+1) = 1 / (1 + exp(-(a s + b))) for a score s; None if it was not asked for.
    weighed : Sparse, optional
        With the hinge: dual variables of the points in memory, divided by their sum.
    view : str
        How points were seen, as in certificates; empty for points as they are stored.
    trace : Trace, optional
        What was known after each pass about the problem with the widest gap, as ``trace.jsonl`` has it.

    Examples
    --------
    >>> import dfeas
    >>> X, labels = [[1.0, 2.0], [2.0, 1.0], [-1.0, -1.0]], [1, 1, -1]
    >>> fit = dfeas.soft_margin(X, labels, C=[0.1, 10])
    >>> print(fit.C, len(fit.fits), fit.lower <= fit.objective, fit.coef.shape)
    10.0 2 True (2,)
    """

    HIDDEN: ClassVar = ("y", "path", "weighed", "view", "trace")
    DERIVED: ClassVar = ("success",)
    READ: ClassVar = {
        "stopped": Stop,
        "sides": sides_from,
        "fits": lambda fits: [Fit(**fit) for fit in fits],
        "validation": lambda entries: [Validation.of(entry) for entry in entries],
        "calibration": tuple,
    }

    stopped: Stop
    message: str
    C: float
    loss: str
    objective: float
    lower: float
    gap: float
    margin: float
    support: int
    error: float | None
    fits: list[Fit]
    validation: list[Validation]
    method: str
    m: int
    n: int
    intercept: bool
    target: float
    passes: float
    reads: float
    iterations: int
    bytes_read: int
    seconds: float
    fingerprint: str
    versions: dict[str, str]
    data: dict[str, Any] | None
    y: Floats = field(repr=False, compare=False)
    path: Floats = field(repr=False, compare=False)
    certificate: str | None = None
    dual: DualVariables | None = None
    bits: str | None = None
    workers: list[dict[str, str]] | None = None
    sides: Sides | None = None
    features: list[str] | Any = None
    calibration: tuple[float, float] | None = None
    weighed: Sparse | None = field(default=None, repr=False, compare=False)
    view: str = field(default="", repr=False, compare=False)
    trace: Trace | None = field(default=None, repr=False, compare=False)

    @classmethod
    def load(cls, run: str | Place) -> SoftMarginResult:
        """Read it back from the folder of its run, with its hyperplane."""
        from dfeas.answers.prediction.model import named_as_there

        run = place(run)
        values = named_as_there(load_result(run, soft=True))
        certificate = certificate_of(run, values)
        if certificate is None:
            raise CorruptDataError(f"{run / CERTIFICATE}: missing, and the hyperplane is there")
        kept: dict[str, Any] = {"certificate": str(run / CERTIFICATE), "view": certificate.view, "trace": Trace(run / TRACE)}
        return cls.from_json(values, y=certificate.y, path=certificate.y[None], **kept)

    @classmethod
    def from_json(cls, values: Mapping[str, Any], **known: Any) -> SoftMarginResult:
        unknown = {name: math.inf for name in ("objective", "gap", "margin") if values.get(name, 0) is None}
        return super().from_json({**values, **unknown, "dual": None}, **known)

    def _parts(self) -> Iterator[Part]:
        ends = f"{self.objective:.9g}, the minimum is at least {self.lower:.9g}"
        yield Row("objective", ends if math.isfinite(self.objective) else "not known yet")
        yield Row("", self.message)
        known = math.isfinite(self.objective)
        if known:
            yield Row("margin", f"{self.margin:.6g}, {self.support} points at it or beyond it, C = {self.C:g}, {self.loss}")
        if self.error is not None:
            yield Row("error", f"{100 * self.error:.4g} % of all points are on the wrong side")
        if self.dual is not None:
            yield Row("dual", f"{self.dual.support} variables above 0, worth {self.dual.value:.9g}: {self.dual.path}")
            yield Row("", f"y is their combination of the points up to {self.dual.residual:.3g}")
        for entry in self.validation:
            error = f"{100 * entry.error:.4g} % +- {100 * entry.deviation:.2g} %"
            chosen = "  chosen" * (known and entry.C == self.C)
            yield Row("validation", f"C = {entry.C:g}: {error if math.isfinite(entry.error) else 'not known yet'}{chosen}")
        yield cost_row(self.passes, self.method, self.reads, self.bytes_read, self.seconds)

    @property
    def coef(self) -> Floats:
        """(m,) of the hyperplane, in the units of X."""
        return plane_of(self.y, self.m, self.view)[0]

    @property
    def bias(self) -> float:
        """What X @ coef is added to; 0 without an intercept, unless points were centred."""
        return plane_of(self.y, self.m, self.view)[1]

    def to_json(self) -> dict[str, Any]:
        return {"kind": SOFT_MARGIN, **super().to_json()}

    @property
    def _certificate(self) -> Certificate:
        return Certificate(HYPERPLANE, self.fingerprint, y=self.y, view=self.view, features=tuple(self.features or ()))


@dataclass(frozen=True, repr=False)
class SoftMarginClasses(PerClass):
    """One soft margin for each class, and what was read for all of them together.

    Attributes
    ----------
    results : dict of SoftMarginResult
        In the order of the classes.
    reads : float
        Of the data: what several classes asked at once counts once.
    seconds : float
        Wall time of the run.
    fingerprint : str
        Of the data with all its classes.

    Examples
    --------
    >>> import dfeas
    >>> fits = dfeas.soft_margin_classes([[2.0, 0.0], [0.0, 2.0], [-1.0, -1.0]], ["a", "b", "c"])
    >>> fits.classes, fits.coef.shape
    (('a', 'b', 'c'), (3, 2))
    """

    SHARED: ClassVar = ("m", "n", "intercept", "loss", "target", "method")
    EACH: ClassVar = SoftMarginResult

    results: dict[str, SoftMarginResult]
    reads: float
    seconds: float
    fingerprint: str

    def to_json(self) -> dict[str, Any]:
        return {"kind": SOFT_MARGIN, **super().to_json()}

    def _parts(self) -> Iterator[Part]:
        yield SOFT_MARGINS.grid([SOFT_MARGINS.row(name, Path(), vars(each)) for name, each in self.results.items()])
        yield Row(None, f"{self.reads:.4g} reads of the data for all of them")
