"""What a soft margin returns, and the files of its run."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas import formats
from dfeas.certificate import HYPERPLANE, Certificate
from dfeas.result import CERTIFICATE, RESULT, SOFT_MARGIN
from dfeas.store.json_file import write_json

Floats = NDArray[np.float64]


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
    """One C, by cross-validation."""

    C: float
    error: float  # mean over the folds
    deviation: float  # standard deviation over the folds


@dataclass(frozen=True)
class DualVariables:
    """Those of all points, in a file: 0 <= alpha_j <= c_j for the hinge, 0 <= alpha_j for its square."""

    path: str  # alpha (n,) float64, .npy
    value: float  # of the other problem at alpha: a lower bound of the minimum, as ``lower``
    residual: float  # |y - sum alpha_j l_j x_j|
    most: float  # sqrt(2 (objective - value)): what the residual cannot exceed
    support: int  # points with alpha_j > 0
    full: int  # points with alpha_j = c_j > 0, of the hinge


@dataclass(frozen=True)
class SoftMarginResult:
    """The hyperplane of the chosen C, and both ends of what it minimises.

    That is |w|^2/2 + sum_j c_j loss(1 - l_j x_j'w) over the points as they are stored; c_j is C times the weights of the
    class and of the point.
    """

    stopped: str  # "verdict" when all gaps are small enough
    message: str
    C: float  # the one that was given, or that cross-validation chose
    loss: str  # "hinge" | "squared_hinge"
    objective: float
    lower: float
    gap: float
    margin: float  # 1 / |w|: half of the width between both margins; inf for w = 0
    support: int
    error: float | None  # weighted share of all points on the wrong side
    fits: list[Fit]  # of all C and folds
    validation: list[Validation]  # of each C; empty without folds
    method: str
    m: int
    n: int
    intercept: bool  # a feature equal to 1, the last of y, and in |w| like the others
    target: float  # the gap that was asked for
    passes: float
    reads: float  # also those of the survey
    iterations: int
    bytes_read: int
    seconds: float
    fingerprint: str
    versions: dict[str, str]
    data: dict[str, Any] | None  # path, labels, positive, intercept; None for arrays in memory
    y: Floats = field(repr=False, compare=False)  # (m,) or (m+1,) with the intercept last
    path: Floats = field(repr=False, compare=False)  # (fits, m) or (fits, m+1)
    certificate: str | None = None  # path of the file with y
    dual: DualVariables | None = None  # where they were asked for

    @property
    def success(self) -> bool:
        """Whether all gaps are as small as asked."""
        return self.stopped == "verdict"

    @property
    def nit(self) -> int:
        """Iterations of the method."""
        return self.iterations

    def to_json(self) -> dict[str, Any]:
        """The keys of ``result.json``; y is in its file."""
        hidden = ("y", "path")
        values = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in hidden}
        fits, validation = [asdict(fit) for fit in self.fits], [asdict(entry) for entry in self.validation]
        dual = None if self.dual is None else asdict(self.dual)
        plain = {"kind": SOFT_MARGIN, **values, "fits": fits, "validation": validation, "dual": dual, "success": self.success}
        found: dict[str, Any] = _plain(plain)
        return found

    def save(self, run: Path) -> SoftMarginResult:
        """Write the hyperplane and the result, the result last: a run without it did not end. Returns what was written."""
        Certificate(HYPERPLANE, self.fingerprint, y=self.y).save(run / CERTIFICATE)
        written = replace(self, certificate=str(run / CERTIFICATE))
        write_json(run / RESULT, written.to_json(), formats.RESULT)
        return written


def _plain(value: Any) -> Any:
    """JSON has no numbers that are not finite: they are null."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
