"""What ``dfeas.hard_margin`` returns, and what ``margin.json`` claims."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sized
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dfeas.answers.base import FLOATS, PLACES, Conclusion
from dfeas.answers.result import Result
from dfeas.answers.words import Stop
from dfeas.data.storage import files
from dfeas.data.storage.files import COUNT, Number, conform, read_json
from dfeas.data.storage.places import Place
from dfeas.display import Part, Row
from dfeas.errors import CheckFailedError, CorruptDataError, NewerFormatError
from dfeas.verify.certificate import Certificate
from dfeas.verify.core import Hulls, Reach
from dfeas.verify.view import transform_of

SAME = 1e-9
"""Relative difference of numbers between machines, whose sums run in other orders."""


FAR = 1e300


_LISTS = {"w": [Number(-FAR, FAR)], "support": [COUNT], "weights": [Number(0, 2)]}


MARGIN = "margin.json"


Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class HardMargin(Conclusion):
    """The hyperplane of maximum margin, up to a share of it; if there is none, ``result``, and how infeasible the points are.

    With an intercept it is that of the textbooks: the hyperplane farthest from its nearest point, with a free bias, for points
    as they are centred and scaled, whatever their lengths. Without an intercept it is that of the unit points.

    Attributes
    ----------
    result : Result
        Result of the solve; margin_lower and margin_upper are those of unit points, with the bias in |w|.
    lower : float, optional
        With an intercept: distance of ``result.separator`` from its nearest point, centred and scaled as asked, proved.
    upper : float, optional
        With an intercept: no hyperplane is farther than this from its nearest point, proved; half of the distance between a
        point of the hull of one class and one of the other. None where all points are of one class.
    bias : float, optional
        0 without an intercept, unless points are centred.
    margin : float, optional
        1 / |w|, the least distance of the stored points from the hyperplane, up to rounding.
    radius : float, optional
        Length of the longest point, centred and scaled as asked, with its intercept.
    corrections : float, optional
        A perceptron makes at most so many on unit points: 1 / margin_lower^2.
    dimension : int, optional
        Vapnik: with an intercept at most min(m, radius^2 / lower^2) + 1, for unit points min(m, 1 / margin_lower^2) + 1.
    leave_one_out : float, optional
        Support points / n: the exact hyperplane errs on at most this share if it has no other ones, which nothing proves.
    w : array (m,), optional
        Canonical: the least l_j (x_j'w + bias) of the stored points is 1, up to rounding. For infeasible points the unit
        vector (m,) or (m+1,) whose margin on unit points is margin_lower, if a ball is proved.
    support : array of int64, optional
        Points that prove the upper end: those of the hulls, or without an intercept unit points; for infeasible points some
        whose hull has a ball of radius -margin_upper about the origin.
    weights : array, optional
        Weights of these points, on the simplex, half in each class; None with methods that weigh all points.

    Examples
    --------
    >>> import dfeas
    >>> answer = dfeas.hard_margin([[1.0, 0.0], [-3.0, 0.0]], [1, -1], intercept=False)
    >>> print(round(answer.margin, 3), round(answer.radius, 3), answer.dimension)
    1.0 3.0 2
    """

    FILE: ClassVar = MARGIN
    FORMAT: ClassVar = files.HARD_MARGIN
    BESIDE: ClassVar = "hard_margin"
    SHAPE: ClassVar = {"fingerprint": str}
    READ: ClassVar = {"w": FLOATS, "support": PLACES, "weights": FLOATS}
    DERIVED: ClassVar = ("margin_tolerance", "fingerprint")

    result: Result
    lower: float | None = None
    upper: float | None = None
    bias: float | Any = None
    margin: float | None = None
    radius: float | None = None
    corrections: float | None = None
    dimension: int | None = None
    leave_one_out: float | None = None
    w: Floats | None = None
    support: NDArray[np.int64] | None = None
    weights: Floats | None = None

    def _parts(self) -> Iterator[Part]:
        yield from self.result._parts()
        if self.margin is None or self.bias is None or self.radius is None:
            if self.radius is not None:
                yield Row("hyperplane", "none of float64 has it: evidence.integers of the result do")
            return
        bias = f"bias {self.bias:.6g} with the least score 1"
        yield Row("hyperplane", f"{self.margin:.6g} from the nearest point as stored, {bias}")
        if self.lower is not None and self.upper is not None:
            same = math.isclose(self.lower, self.margin, rel_tol=SAME)
            seen = "" if same else f"; as points are scaled this one is {self.lower:.6g}"
            yield Row("", f"no hyperplane is farther than {self.upper:.6g} from its nearest point{seen}")
        yield Row("", f"the longest point has length {self.radius:.6g}")
        if self.support is not None and self.leave_one_out is not None:
            share = f"if there are no others, leaving one point out errs on at most {100 * self.leave_one_out:.4g} %"
            where = "" if self.result.certificate is None else ", weights in margin.json"
            yield Row("support", f"{len(self.support)} points{where}; {share}")
        if self.corrections is not None:
            yield Row("bounds", f"{self.corrections:.4g} corrections of a perceptron, dimension {self.dimension}")

    @property
    def margin_tolerance(self) -> float:
        """Share of the margin that may be missing, that of the solve."""
        assert self.result.margin_tolerance is not None, "it was asked for"
        return self.result.margin_tolerance

    @property
    def fingerprint(self) -> str:
        """Hash of the data, that of the solve."""
        return self.result.fingerprint


_MAYBE = Number(0, none=True)


_SHAPE = {
    "fingerprint": str,
    "margin_tolerance": Number(0, 1),
    "lower": _MAYBE,
    "upper": _MAYBE,
    "bias": Number(-FAR, FAR, none=True),
    "margin": _MAYBE,
    "radius": _MAYBE,
    "corrections": Number(0, FAR, none=True),
    "dimension": Number(1, whole=True, none=True),
    "leave_one_out": _MAYBE,
    "w": list | None,
    "support": list | None,
    "weights": list | None,
}
"""What the file says."""


@dataclass(frozen=True)
class MarginClaim:
    """What ``margin.json`` says, which is to be proved: see ``HardMargin``."""

    where: Place
    values: dict[str, Any]

    @classmethod
    def load(cls, run: Place) -> MarginClaim | None:
        """None where there is no such file. Raises CheckFailedError when it cannot be read."""
        where = run / MARGIN
        if not where.is_file():
            return None
        try:
            values = read_json(where, _SHAPE, "margin", files.HARD_MARGIN)
            conform({name: values[name] or [] for name in _LISTS}, _LISTS)
        except NewerFormatError:
            raise
        except (CorruptDataError, ValueError) as error:
            raise CheckFailedError(f"{where}: not readable: {error}") from None
        return cls(where, values)

    def upper(self) -> Hulls | None:
        """The points, and their weights, that make the upper end; None where it has none."""
        support, weights = (self.values[name] for name in ("support", "weights"))
        if support is None and weights is None:
            return None
        if support is None or weights is None or len(support) != len(weights):
            raise CheckFailedError(f"{self.where}: not as many weights as points of the support")
        return np.array(support, np.int64), np.array(weights, np.float64)

    def require(self, values: Mapping[str, Any], separator: Certificate, reach: Reach | None) -> tuple[str, ...]:
        """Raise CheckFailedError unless it follows from the result and the points; returns keys that cannot be decided."""
        said, known = self.values, self._derive_values(values, separator, reach)
        facts = {"fingerprint": values["fingerprint"], "margin_tolerance": values["margin_tolerance"]}
        for name, true in facts.items():
            if said[name] != true:
                raise CheckFailedError(f"{self.where}: {name} is {said[name]!r}, that of the result is {true!r}")
        for name, (true, off) in known.items():
            number = np.nan if said[name] is None else np.array(said[name], np.float64)
            if true is None:
                sound = said[name] is None
            else:
                sound = np.shape(number) == np.shape(true) and bool((np.abs(number - true) <= off).all())
            if not sound:
                shown = repr(said[name])[:60]
                raise CheckFailedError(
                    f"{self.where}: {name} is {shown}, from the data it follows that it is {repr(true)[:60]}"
                )
        ends = said["lower"], said["upper"]
        near = None not in ends and ends[0] >= (1 - said["margin_tolerance"] - SAME) * ends[1]
        if reach is not None and values["intercept"] and values["stopped"] == Stop.VERDICT and not near:
            raise CheckFailedError(f"{self.where}: {ends[0]!r} is not the largest distance as closely as asked: {ends[1]!r}")
        keys = {*_SHAPE} - {*facts, *known, "support", "weights"}
        return tuple(f"{name} of {MARGIN}" for name in said if name in keys or name not in _SHAPE)

    def _derive_values(
        self, values: Mapping[str, Any], separator: Certificate, reach: Reach | None
    ) -> dict[str, tuple[Any, Any]]:
        """What keys are, and how far off they may be."""
        if reach is None:
            found = ("fingerprint", "margin_tolerance", *(_LISTS if separator.kind == "gordan" else ()))
            return {name: (None, 0.0) for name in _SHAPE if name not in found}
        y, m = separator.y, int(values["m"])
        ends = distances(y, m, reach) if values["intercept"] else (None, None)
        bounds = bound(values["margin_lower"], len(y), self.values["support"], values["n"], ends[0], reach.longest)
        exact = bounds | {"radius": reach.longest, "lower": ends[0], "upper": ends[1]}
        known: dict[str, tuple[Any, Any]] = {name: (true, SAME * (true or 0)) for name, true in exact.items()}
        if reach.apart is not None:
            known["upper"] = ends[1], known["upper"][1] + 2 * reach.apart.rounding
            known["weights"] = reach.apart.weights, SAME
        if reach.low <= 0:
            return known  # the least score is not above its rounding error
        transform = transform_of(separator.view, m)
        scaling = None if transform is None else transform.scaling
        shift, factor = (None, None) if scaling is None else (scaling.shift, scaling.factor)
        off = SAME + (reach.high - reach.low) / reach.low
        with np.errstate(all="ignore"):
            w = y[:m] / reach.low if factor is None else y[:m] * factor / reach.low
            bias, size = float(y[m:].sum()) / reach.low, float(np.abs(y[m:]).sum()) / reach.low
            if shift is not None:
                bias, size = bias - float(shift @ w), size + float(np.abs(shift) @ np.abs(w))
            length = float(np.linalg.norm(w))
        if not (np.isfinite([length, bias, size]).all() and length > 0):
            return known | dict.fromkeys(("w", "bias", "margin"), (None, 0.0))
        margin = 1 / length
        return known | {"w": (w, off * np.abs(w)), "bias": (bias, off * size), "margin": (margin, off * margin)}


def distances(y: Floats, m: int, reached: Reach) -> tuple[float | None, float | None]:
    """Of a hyperplane with a free bias from its nearest point, and what that of no hyperplane is above; None: not known."""
    size = float(np.linalg.norm(y[:m]))
    return reached.low / size if reached.low > 0 < size else None, None if reached.apart is None else reached.apart.half


def bound(
    margin: float, d: int, support: Sized | None, n: int, lower: float | None = None, radius: float = 1.0
) -> dict[str, Any]:
    """What follows from a margin of at least ``margin`` of n unit points (d,), as ``HardMargin`` has it, or from a distance
    ``lower`` from points (d - 1,) in a ball of some radius and a free bias; None beyond float64.
    """
    corrections = 1 / margin**2 if margin**2 > 1 / FAR else None
    most = min(d, corrections or d)
    if lower is not None:
        most = d - 1 if lower * math.sqrt(d - 1) <= radius else (radius / lower) ** 2
    share = None if support is None else len(support) / n
    return {"corrections": corrections, "dimension": int(most) + 1, "leave_one_out": share}
