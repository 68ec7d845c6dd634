"""``dfeas.hard_margin``: the hyperplane of maximum margin, and the figures that textbooks derive from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sized
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dfeas.data.source import Transform, parse_view
from dfeas.data.storage import files
from dfeas.data.storage.files import COUNT, Number, conform, read_json
from dfeas.data.storage.places import Place, place
from dfeas.display import Part, Row
from dfeas.errors import CheckFailedError, CorruptDataError, NewerFormatError
from dfeas.geometry.cones.space import require_points
from dfeas.methods.protocol import Sparse
from dfeas.passes.select import Select
from dfeas.problem import Goal, Problem, Transforms
from dfeas.run.checkpoint.folder import discard_checkpoints
from dfeas.run.resources import Resources, choose_client, run_terms
from dfeas.run.result_files import Saved
from dfeas.run.results import Result
from dfeas.run.session import open_session, survey
from dfeas.run.solve import decide
from dfeas.run.termination import FEASIBLE
from dfeas.verify.certificate import Certificate
from dfeas.verify.core import Reach
from dfeas.verify.view import transform_of

if TYPE_CHECKING:
    from dfeas.engine.protocol import Workers

SAME = 1e-9
"""Relative difference of numbers between machines, whose sums run in other orders."""
FAR = 1e300
_LISTS = {"w": [Number(-FAR, FAR)], "support": [COUNT], "weights": [Number(0, 2)]}
MARGIN = "margin.json"
HARD_MARGIN = "hard-margin"
TOLERANCE = 1e-3

Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class HardMargin(Saved):
    """The hyperplane of maximum margin of the unit points, up to a share of it; where there is none, only ``result``.

    Attributes
    ----------
    result : Result
        Of the solve; margin_lower and margin_upper are those of unit points.
    bias : float, optional
        0 without an intercept, unless points are centred.
    margin : float, optional
        Of the stored points: 1 / |w|, their least distance from the hyperplane.
    radius : float, optional
        Length of the longest point, centred and scaled as asked, with its intercept.
    corrections : float, optional
        Of a perceptron on unit points, at most: 1 / margin_lower^2.
    dimension : int, optional
        Vapnik: of unit points, at most min(m, 1 / margin_lower^2) + 1.
    leave_one_out : float, optional
        Share of errors of the exact one, at most: support points / n.
    w : array (m,), optional
        Canonical: the least l_j (x_j'w + bias) of the stored points is 1.
    support : array of int64, optional
        Points whose unit columns make the upper end of the bracket.
    weights : array, optional
        Theirs, on the simplex; None with methods that weigh all points.

    Examples
    --------
    >>> import dfeas
    >>> answer = dfeas.hard_margin([[1.0, 0.0], [-3.0, 0.0]], [1, -1], intercept=False)
    >>> print(round(answer.margin, 3), round(answer.radius, 3), answer.dimension)
    1.0 3.0 2
    """

    FILE: ClassVar = MARGIN
    FORMAT: ClassVar = files.HARD_MARGIN
    HIDDEN: ClassVar = ("result",)
    DERIVED: ClassVar = ("margin_tolerance", "fingerprint")

    result: Result
    bias: float | None = None
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
        yield Row("", f"the longest point has length {self.radius:.6g}")
        if self.support is not None and self.leave_one_out is not None:
            share = f"leaving one point out errs on at most {100 * self.leave_one_out:.4g} %"
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


def hard_margin(
    X: Any,
    labels: Any = None,
    *,
    margin_tolerance: float | None = None,
    method: str = "auto",
    positive: str | None = None,
    intercept: bool | None = None,
    mask: Any = None,
    transform: Transforms = (),
    eps: float = 1e-3,
    max_passes: int | None = None,
    time_limit: float | None = None,
    memory: str | int | None = None,
    client: Workers | None = None,
    out: str | Path | None = None,
    callback: Callable[[Any], object] | None = None,
) -> HardMargin:
    """Find the hyperplane of maximum margin up to a share of it, and what follows from it; one read more than the solve.

    With ``out`` the folder gets ``margin.json``, too. Points count as unit
    vectors, as everywhere in dfeas; for the widest margin of the points as they are stored see ``dfeas.soft_margin`` with a
    large C.

    Parameters
    ----------
    X, labels : array (n, m), data frame, or path
        As of ``dfeas.solve``.
    margin_tolerance : float, optional
        The share; by default 0.001.
    method, positive, intercept, mask, transform, eps : optional
        As of ``dfeas.solve``.
    max_passes, time_limit, memory, client, out, callback : optional
        As of ``dfeas.solve``.

    Returns
    -------
    HardMargin
        The canonical hyperplane, its margin, and bounds that textbooks derive from it; where there is none only the result.

    Raises
    ------
    UsageError, BadInputError, CorruptDataError
        As ``dfeas.solve``.

    References
    ----------
    .. [1] V. Vapnik, Statistical Learning Theory, Wiley 1998, section 10: dimension of hyperplanes with a margin,
       leave-one-out.
    .. [2] A. Novikoff, On convergence proofs for perceptrons, 1962: corrections of a perceptron.

    Examples
    --------
    >>> import dfeas
    >>> answer = dfeas.hard_margin([[1.0, 0.0], [-3.0, 0.0]], [1, -1])
    >>> print(f"{answer.margin:.3f} from the nearest point; w has {len(answer.w)} entries")
    1.236 from the nearest point; w has 2 entries
    """
    problem = Problem.of(X, labels, positive=positive, intercept=intercept, mask=mask, transform=transform)
    require_points(problem.spec.where, "a hard margin")
    goal = Goal(eps=eps, margin_tolerance=TOLERANCE if margin_tolerance is None else margin_tolerance)
    with run_terms(max_passes, time_limit, memory, choose_client(client, X), out, callback) as terms:
        result = decide(problem, method, goal, *terms, then=HARD_MARGIN)
        return widest(result, problem, terms[1], out)


def widest(result: Result, problem: Problem, resources: Resources, out: str | Path | None) -> HardMargin:
    """What follows from the solve, also from one that went on; written to its folder. Not of one that is to go on at once."""
    margin = HardMargin(result)
    if result.stopped == "interrupted":
        return margin
    if result.verdict == FEASIBLE and result.y is not None:
        margin = _derive_margin(result, problem, resources)
    if out is not None:
        margin.save(place(out))
    discard_checkpoints(out, result.stopped)
    return margin


_MAYBE = Number(0, none=True)
_SHAPE = {
    "fingerprint": str,
    "margin_tolerance": Number(0, 1),
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

    def upper(self, separator: Certificate) -> Certificate | None:
        """The weights that make the upper end of the margin, as a certificate of the same data; None where it has none."""
        support, weights = (self.values[name] for name in ("support", "weights"))
        if support is None and weights is None:
            return None
        if support is None or weights is None or len(support) != len(weights):
            raise CheckFailedError(f"{self.where}: not as many weights as points of the support")
        points, amounts = np.array(support, np.int64), np.array(weights, np.float64)
        return replace(separator, kind="gordan", y=np.empty(0), support=points, weights=amounts)

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
        keys = {*_SHAPE} - {*facts, *known, "support", "weights"}
        return tuple(f"{name} of {MARGIN}" for name in said if name in keys or name not in _SHAPE)

    def _derive_values(
        self, values: Mapping[str, Any], separator: Certificate, reach: Reach | None
    ) -> dict[str, tuple[Any, Any]]:
        """What keys are, and how far off they may be."""
        if reach is None:
            return {name: (None, 0.0) for name, each in _SHAPE.items() if name not in ("fingerprint", "margin_tolerance")}
        y, m = separator.y, int(values["m"])
        bounds = bound(values["margin_lower"], len(y), self.values["support"], values["n"])
        known: dict[str, tuple[Any, Any]] = {name: (true, SAME * (true or 0)) for name, true in bounds.items()}
        known |= {"radius": (reach.longest, SAME * reach.longest)}
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


def bound(lower: float, d: int, support: Sized | None, n: int) -> dict[str, Any]:
    """What follows from a margin of at least ``lower`` of n unit points (d,), as ``HardMargin`` has it; None beyond float64."""
    corrections = 1 / lower**2 if lower**2 > 1 / FAR else None
    share = None if support is None else len(support) / n
    return {"corrections": corrections, "dimension": int(min(d, corrections or d)) + 1, "leave_one_out": share}


def _canonical(
    y: Floats, least: float, m: int, transform: Transform | None
) -> tuple[Floats, float, float] | tuple[None, None, None]:
    """The hyperplane with a least score of 1, and its margin; nothing where float64 does not hold one."""
    with np.errstate(all="ignore"):
        canonical = y / least if least > 0 else np.full(len(y), np.nan)
        w, bias = (canonical[:m], float(canonical[m:].sum())) if transform is None else transform.restore_plane(canonical, m)
        size = float(np.linalg.norm(w))
    return (w, bias, 1 / size) if np.isfinite([size, bias]).all() and size > 0 else (None, None, None)


def _derive_margin(result: Result, problem: Problem, resources: Resources) -> HardMargin:
    y, m = result.y, result.m
    assert y is not None, "a separator has a direction"
    transform = parse_view(result.evidence.view)[1] if result.evidence is not None else None
    seen = replace(problem, spec=replace(problem.spec, transform=transform))
    with open_session(seen, resources) as session:
        radius = survey(session).radius
        least = session.engine.run(Select(y, math.inf, 1, 1, raw=True))
    w, bias, margin = _canonical(y, float(least.score[0]), m, transform)
    weighed: Sparse | None = result.weighed
    support, weights = (None, None) if weighed is None else (weighed.index, weighed.weight)
    bounds = bound(result.margin_lower, len(y), support, result.n)
    return HardMargin(result, w=w, bias=bias, margin=margin, radius=radius, support=support, weights=weights, **bounds)
