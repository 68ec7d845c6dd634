"""``dfeas.hard_margin``: the hyperplane of maximum margin, and the figures that textbooks derive from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sized
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dfeas.analysis.distance import FreeBias, find_widest, measure_ball
from dfeas.data.source import Transform, parse_view
from dfeas.data.storage import files
from dfeas.data.storage.files import COUNT, Number, conform, read_json
from dfeas.data.storage.places import Place, place
from dfeas.display import Part, Row
from dfeas.errors import CheckFailedError, CorruptDataError, NewerFormatError
from dfeas.geometry.registry import require_points
from dfeas.methods.protocol import Sparse
from dfeas.passes.select import Select
from dfeas.problem import Goal, Problem, Transforms
from dfeas.run.checkpoint.folder import discard_checkpoints
from dfeas.run.resources import Limits, Output, Resources, choose_client
from dfeas.run.result_files import RESULT, Saved
from dfeas.run.results import Result
from dfeas.run.session import open_session, survey
from dfeas.run.solve import decide, run_terms
from dfeas.run.spec import HARD_MARGIN, WIDEST
from dfeas.run.termination import FEASIBLE, INFEASIBLE, Stop
from dfeas.verify.certificate import Certificate
from dfeas.verify.core import Hulls, Reach
from dfeas.verify.view import transform_of

if TYPE_CHECKING:
    from dfeas.engine.protocol import Workers

SAME = 1e-9
"""Relative difference of numbers between machines, whose sums run in other orders."""
FAR = 1e300
_LISTS = {"w": [Number(-FAR, FAR)], "support": [COUNT], "weights": [Number(0, 2)]}
MARGIN = "margin.json"
TOLERANCE = 1e-3

Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class HardMargin(Saved):
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
    HIDDEN: ClassVar = ("result",)
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


def hard_margin(
    X: Any,
    y: Any = None,
    *,
    margin_tolerance: float | None = None,
    method: str = "auto",
    positive: str | None = None,
    intercept: bool | None = None,
    mask: Any = None,
    transform: Transforms = (),
    eps: float | None = None,
    max_passes: int | None = None,
    time_limit: float | None = None,
    memory: str | int | None = None,
    client: Workers | None = None,
    out: str | Path | None = None,
    force: bool = False,
    callback: Callable[[Any], object] | None = None,
) -> HardMargin:
    """Find the hyperplane of maximum margin up to a share of it, and what follows from it.

    With an intercept this is the hard-margin support vector machine of the textbooks: of points as they are stored, or centred
    and scaled, with a free bias. It takes a few reads more than ``dfeas.solve``. With ``intercept=False`` points count as unit
    vectors, as elsewhere in dfeas. If the points are infeasible and have up to 50 features, it finds out how infeasible they
    are, in a few reads more: both ends of the bracket come nearer to the negative margin. With ``out`` the folder also gets
    ``margin.json``.

    Parameters
    ----------
    X, y : array (n, m), data frame, or path
        As in ``dfeas.solve``.
    margin_tolerance : float, optional
        The share; by default 0.001.
    method, positive, intercept, mask, transform, eps : optional
        As in ``dfeas.solve``.
    max_passes, time_limit, memory, client, out, force, callback : optional
        As in ``dfeas.solve``.

    Returns
    -------
    HardMargin
        The canonical hyperplane, its margin, and bounds that textbooks derive from it; only the result if there is none.

    Raises
    ------
    UsageError, BadInputError, CorruptDataError
        As in ``dfeas.solve``.

    References
    ----------
    .. [1] V. Vapnik, Statistical Learning Theory, Wiley 1998, section 10: dimension of hyperplanes with a margin,
       leave-one-out.
    .. [2] A. Novikoff, On convergence proofs for perceptrons, 1962: corrections of a perceptron.
    .. [3] K. Bennett and E. Bredensteiner, Duality and geometry in SVM classifiers, ICML 2000: hulls of both classes.

    Examples
    --------
    >>> import dfeas
    >>> answer = dfeas.hard_margin([[1.0, 0.0], [-3.0, 0.0]], [1, -1])
    >>> print(f"{answer.margin:.3f} from the nearest point; w has {len(answer.w)} entries")
    2.000 from the nearest point; w has 2 entries
    """
    problem = Problem.of(X, y, positive=positive, intercept=intercept, mask=mask, transform=transform)
    require_points(problem.spec.where, "a hard margin")
    goal = Goal(eps=eps, margin_tolerance=TOLERANCE if margin_tolerance is None else margin_tolerance)
    with run_terms(max_passes, time_limit, memory, choose_client(client, X), out, callback, force) as terms:
        result = decide(problem, method, goal, *terms, then=HARD_MARGIN if problem.spec.intercept is False else WIDEST)
        return conclude_margin(result, problem, *terms)


def conclude_margin(result: Result, problem: Problem, limits: Limits, resources: Resources, output: Output) -> HardMargin:
    """What follows from the solve, also from one that went on; written to its folder, ``result.json`` last: it says what only
    all files together prove. Nothing is written of one that is to go on at once.
    """
    margin = HardMargin(result)
    if result.verdict == FEASIBLE and result.separator is not None and result.stopped != "interrupted":
        transform = None if result.evidence is None else parse_view(result.evidence.view)[1]
        seen = replace(problem, spec=replace(problem.spec, transform=transform))
        if result.intercept:
            margin = _describe_widest(find_widest(result, seen, limits, resources, output), transform)
        else:
            margin = _derive_margin(result, seen, transform, resources)
    if result.verdict == INFEASIBLE:
        nearer, ball = measure_ball(result, problem, limits, resources)
        margin = HardMargin(nearer)
        if ball is not None:
            margin = replace(margin, w=ball.y, support=ball.support, weights=ball.weights)
    if margin.result.stopped == "interrupted":
        return margin
    if output.out is not None:
        folder = place(output.out)
        (folder / RESULT).unlink(missing_ok=True)  # of an earlier limit
        margin.save(folder)
        margin = replace(margin, result=margin.result.save(folder))
    discard_checkpoints(output.out, margin.result.stopped)
    return margin


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


def _canonical(
    y: Floats, least: float, m: int, transform: Transform | None
) -> tuple[Floats, float, float] | tuple[None, None, None]:
    """The hyperplane with a least score of 1, and its margin; nothing where float64 does not hold one."""
    with np.errstate(all="ignore"):
        canonical = y / least if least > 0 else np.full(len(y), np.nan)
        w, bias = (canonical[:m], float(canonical[m:].sum())) if transform is None else transform.restore_plane(canonical, m)
        size = float(np.linalg.norm(w))
    return (w, bias, 1 / size) if np.isfinite([size, bias]).all() and size > 0 else (None, None, None)


def _describe_widest(widest: FreeBias, transform: Transform | None) -> HardMargin:
    result, reached = widest.result, widest.reached
    if reached is None or result.separator is None:
        return HardMargin(result)
    y, m, (support, weights) = result.separator, result.m, widest.hulls or (None, None)
    lower, upper = distances(y, m, reached)
    w, bias, margin = _canonical(y, reached.low, m, transform)
    bounds = bound(result.margin_lower, len(y), support, result.n, lower, reached.longest)
    found = HardMargin(result, lower, upper, bias, margin, reached.longest, w=w, support=support, weights=weights)
    return replace(found, **bounds)


def _derive_margin(result: Result, seen: Problem, transform: Transform | None, resources: Resources) -> HardMargin:
    y, m = result.separator, result.m
    assert y is not None, "a separator has a direction"
    with open_session(seen, resources) as session:
        radius = survey(session).radius
        least = session.engine.run(Select(y, math.inf, 1, 1, raw=True))
    w, bias, margin = _canonical(y, float(least.score[0]), m, transform)
    weighed: Sparse | None = result.weighed
    support, weights = (None, None) if weighed is None else (weighed.index, weighed.weight)
    bounds = bound(result.margin_lower, len(y), support, result.n)
    return HardMargin(result, w=w, bias=bias, margin=margin, radius=radius, support=support, weights=weights, **bounds)
