"""Firth's penalised likelihood of a logistic or a Poisson regression: its maximum is finite also where rows are separated.

    l(b)  =  sum_i y_i t_i - c(t_i)  +  log det(X'WX) / 2,    t = Xb + offset,    W = diag c''(t_i)

With the canonical link, c = log(1 + e^t), or e^t for counts, the maximum has no bias of the first order (Firth 1993). Where
the columns of X are independent l falls without end along each direction: det(X'WX) goes to 0 where each row that moves loses
its weight, as all do in a logistic regression (Kosmidis and Firth 2021), and as rows that fall do in one of counts, where one
that rises costs e^t. The gradient is X'(y - c' + h c''' / (2 c'')), with h the diagonal of W^(1/2) X (X'WX)^-1 X'W^(1/2).
Fisher's scoring takes h as it is: as h/2 more successes and failures of each row, so with weights (1 + h) W, or as h/2 more
counts. Steps are halved until l does not fall. All happens in coordinates X = QR, where det R is a constant: units of columns
do not matter.

Standard errors are those of (X'WX)^-1 at the maximum. p-values and intervals compare twice the fall of l, where one
coefficient is held and the others follow, with a chi-square of one degree (Heinze and Schemper 2002): Wald's are wrong in
sparse tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them

from dfeas.analysis.check_separation import read_formula, read_table, take_chosen
from dfeas.analysis.regression.design import Floats
from dfeas.analysis.regression.models import is_model
from dfeas.analysis.regression.outcome import Asked, Regression
from dfeas.data.frames import make_frame
from dfeas.display import Displayed, Grid, Part, Row
from dfeas.errors import BadInputError, UndecidedError, UsageError, format_bytes
from dfeas.settings import require_type

STEPS, MIXED = 1000, 5
"""Of scoring, at most, and earlier ones that a step is mixed with."""
FALL = 3.841458820694124
"""Of 2 l at the ends of an interval: the 95 % quantile of a chi-square of one degree."""
KINDS = ("binary", "poisson")
"""Outcomes that are fitted."""
EXACT = 1e-9
"""Difference from it that an end may leave."""


@dataclass(frozen=True, repr=False)
class FirthFit(Displayed):
    """Estimates of a regression by Firth's penalised likelihood. Print it for a table of them.

    Attributes
    ----------
    names : list
        Of the coefficients, the intercept last, as in ``check_separation``.
    coef : array (p,) of float64
        Estimates, in float64: nothing of them is proved. Not a number where a column follows from those before it.
    standard_errors : array (p,) of float64
        Roots of the diagonal of the inverse information at the maximum.
    low, high : array (p,) of float64
        Ends of the intervals of 95 %, of profiles of the penalised likelihood; not a number where float64 has none.
    p : array (p,) of float64
        p-values that a coefficient is zero, of the same profiles.
    log_likelihood : float
        The penalised one at the maximum, without what does not depend on the coefficients.
    rows : int
        Rows in the likelihood.
    outcome : str
        "binary": a logistic regression; or "poisson".
    classes : tuple of str
        (negative, positive); none of counts.
    notes : list of str
        What else is to be known, such as rows that were dropped.
    library : str, optional
        Whose data frames ``to_frame`` makes.

    Examples
    --------
    >>> import dfeas
    >>> fit = dfeas.firth([[0.0]] * 5 + [[1.0]] * 5, [0, 0, 0, 1, 1, 1, 1, 1, 1, 1])
    >>> fit.coef.round(6).tolist()  # log of (5.5 / 0.5) / (2.5 / 3.5), and of 2.5 / 3.5
    [2.734368, -0.336472]
    """

    HIDDEN: ClassVar = ("library",)

    names: list[Any]
    coef: Floats
    standard_errors: Floats
    low: Floats
    high: Floats
    p: Floats
    log_likelihood: float
    rows: int
    outcome: str
    classes: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)
    library: str | None = None

    def _parts(self) -> Iterator[Part]:
        of = f" that {self.classes[1]} comes rather than {self.classes[0]}" if self.classes else ""
        kind = "logistic" if self.outcome == "binary" else "Poisson"
        yield Row(None, f"{kind} regression by Firth's penalised likelihood{of}, {self.rows} rows")
        numbers = (self.coef, self.standard_errors, self.low, self.high, self.p)
        rows = [[str(name), *(f"{value:.4g}" for value in some)] for name, *some in zip(self.names, *numbers, strict=True)]
        yield Grid(["coefficient", "estimate", "std. error", "95 % from", "to", "p"], rows)
        yield from (Row(None, f"note: {text}") for text in self.notes)

    def to_frame(self) -> Any:
        """The table in a data frame of the library that X is of, else of pandas or polars. Raises UsageError for none."""
        columns = ["coefficient", "estimate", "standard_error", "low", "high", "p"]
        values = zip(map(str, self.names), self.coef, self.standard_errors, self.low, self.high, self.p, strict=True)
        return make_frame([dict(zip(columns, row, strict=True)) for row in values], columns, self.library)


def firth(
    X: Any,
    y: Any = None,
    *,
    intercept: bool = True,
    outcome: str | None = None,
    positive: Any = None,
    text: Sequence[str] = (),
    missing: str = "raise",
    trust_formula: bool = False,
) -> FirthFit:
    """Fit a logistic or a Poisson regression by Firth's penalised likelihood, whose estimates are finite whatever separates.

    It takes what ``dfeas.check_separation`` takes of a table in memory, and codes it in the same way.

    Parameters
    ----------
    X : data frame, ``dfeas.table`` of one, array (n, m), SciPy sparse matrix, or formula
        With a formula, such as ``"died ~ age + C(ward)"``, ``y`` is the frame. An offset of it counts.
    y : array (n,), str, or data frame, optional
        Outcomes, or the name of a column of the frame: two classes, shares between 0 and 1, or counts.
    intercept : bool
        Whether the regression has an intercept.
    outcome : {"binary", "poisson"}, optional
        For shares "binary", for counts "poisson", under a log link.
    positive : scalar, optional
        The class that is 1, of two or against all others.
    text, missing, trust_formula : optional
        As in ``dfeas.check_separation``.

    Returns
    -------
    FirthFit
        Estimates, standard errors, intervals of 95 % and p-values; print it for a table.

    Raises
    ------
    UsageError
        Another outcome, a file, a model, or a formula that would run code.
    BadInputError
        What ``dfeas.check_separation`` refuses, fewer rows than coefficients, and tables that memory does not hold.
    UndecidedError
        The maximum was not found in float64.

    References
    ----------
    .. [1] D. Firth, Bias reduction of maximum likelihood estimates, Biometrika 80 (1993).
    .. [2] G. Heinze and M. Schemper, A solution to the problem of separation in logistic regression, Statistics in Medicine 21
       (2002): intervals and p-values of profiles.
    .. [3] I. Kosmidis and D. Firth, Jeffreys-prior penalty, finiteness and shrinkage in binomial-response generalized linear
       models, Biometrika 108 (2021).

    Examples
    --------
    >>> import dfeas
    >>> fit = dfeas.firth([[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1])  # separated: the likelihood has no maximum
    >>> print(fit)
    logistic regression by Firth's penalised likelihood that 1 comes rather than 0, 4 rows
    coefficient  estimate  std. error  95 % from     to       p
    0                1.31       1.293    -0.3478  6.698  0.1378
    intercept      -3.275       3.458     -17.34  1.225  0.1742
    """
    formula = isinstance(X, str) and "~" in X and not X.startswith("~/")
    X, y, library = take_chosen(X, y)
    if is_model(X) or isinstance(y if formula else X, str | Path):
        raise UsageError("a fit is one of a table in memory: expected a data frame, an array, or a formula beside a frame")
    require_type("outcome", outcome, "str | None")
    if outcome is not None:
        _require_fitted(outcome)
    text = (text,) if isinstance(text, str) else text
    asked = Asked(None if formula else y, intercept, outcome, positive, text=text, missing=missing, trust_formula=trust_formula)
    if formula and not intercept:
        raise UsageError("a formula says itself whether it has an intercept: write 0 + into it")
    if formula:
        regression, asked = read_formula(X, y, asked)
    else:
        regression = read_table(X, asked)
    return fit_firth(regression, asked, library)


@dataclass(frozen=True)
class Slope:
    """The penalised likelihood in one place."""

    value: float
    gradient: Floats  # (p,)
    information: Floats  # (p, p) X'WX
    curvature: Floats  # (p, p) of the next step


Held: TypeAlias = tuple[Floats, Slope]
"""Coordinates, and the likelihood there."""


@dataclass(frozen=True)
class PenalisedLikelihood:
    """That of rows in coordinates g = R b."""

    Q: Floats  # (n, p) orthonormal columns
    y: Floats  # (n,)
    offset: Floats  # (n,)
    counts: bool

    def at(self, g: Floats) -> Slope | None:
        """None where it is below what float64 holds."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            t = self.Q @ g + self.offset
            if self.counts:
                mean = weight = np.exp(t)
                value, residual = self.y @ t - mean.sum(), self.y - mean
            else:  # of rows that are separated the terms of y and of the mean nearly cancel: those that stay are added
                mean, rest = scipy.special.expit(t), scipy.special.expit(-t)
                weight = mean * rest
                value = -(self.y @ np.logaddexp(0.0, -t) + (1 - self.y) @ np.logaddexp(0.0, t))
                residual = self.y * rest - (1 - self.y) * mean
            half = np.sqrt(weight)[:, None] * self.Q
            information = half.T @ half
        if not (np.isfinite(value) and np.isfinite(information).all()):
            return None
        unit, R = np.linalg.qr(half)  # which has the determinant of nearly dependent rows to more digits than their products
        size = np.abs(R.diagonal())
        if not (size > 0).all():
            return None
        hat = np.einsum("ij,ij->i", unit, unit)
        residual += hat * (0.5 if self.counts else 0.5 - mean)
        curvature = information if self.counts else half.T @ ((1 + hat)[:, None] * half)
        return Slope(float(value + np.log(size).sum()), self.Q.T @ residual, information, curvature)

    def maximise(self, g: Floats, free: int) -> Held:
        """Where it is largest over the first ``free`` coordinates. Raises UndecidedError where that was not found."""
        here, past = self.at(g), list[tuple[Floats, Floats]]()
        for _ in range(STEPS if here is not None else 0):
            assert here is not None
            step = np.zeros(len(g))
            step[:free] = np.linalg.solve(here.curvature[:free, :free], here.gradient[:free])
            # the square of the distance to the maximum, in standard errors
            if here.gradient @ step <= 1e-18:
                return g + step, here
            past = [*past[-MIXED:], (g, step)]
            for tried in chain([_mix(past)], (step / 2**i for i in range(60))):
                there = self.at(g + tried)
                if there is not None and there.value >= here.value - 1e-13 * abs(here.value):
                    break
            g, here = g + tried, there
            if here is None:
                break
        raise UndecidedError("the maximum of the penalised likelihood was not found in float64: scale columns, or merge levels")

    def start(self) -> Floats:
        return self.Q.T @ (np.log(self.y + 0.5) - self.offset) if self.counts else np.zeros(self.Q.shape[1])


def _mix(past: Sequence[tuple[Floats, Floats]]) -> Floats:
    """Where to go from the last of some places, each with the step of scoring there, which alone comes nearer by the same
    share each time: to the mean of places whose mean step is shortest, and by that (Anderson 1965).
    """
    (g, step), others = past[-1], past[:-1]
    if not others:
        return step
    moves, changes = (np.stack([now - then[i] for then in others], axis=1) for i, now in enumerate((g, step)))
    share = np.linalg.lstsq(changes, step, rcond=None)[0]
    return np.asarray(step - (moves + changes) @ share)


def fit_firth(regression: Regression, asked: Asked, library: str | None = None) -> FirthFit:
    """Raises UsageError for an outcome of another kind, and BadInputError for columns that follow from others."""
    design, outcome = regression.design, regression.outcome
    _require_fitted(outcome.kind)
    n, names = len(regression.codes), [*design.names, *(["intercept"] if design.intercept else [])]
    # copies of the table in memory at once, at most
    size, most = 8 * n * len(names) * 6, asked.resources.memory_bytes
    if size > most:
        raise BadInputError(f"a fit of {n} rows and {len(names)} columns takes {format_bytes(size)}, more than memory has")
    X: Any = regression.points if isinstance(regression.points, np.ndarray) else regression.points.toarray()
    X = np.hstack([X, np.ones((n, 1))]) if design.intercept else X
    scale = np.abs(X).max(axis=0, initial=0.0)
    scale = np.where(scale > 0, scale, 1.0)
    X = X / scale  # lengths would overflow
    kept = _find_independent(X, design.intercept)
    idle = [str(names[place]) for place in range(len(names)) if place not in kept]
    dropped = f"no estimates of {', '.join(idle)}: as far as float64 tells, they follow from columns before them"
    own = outcome.lookup and outcome.kind == "binary"
    y = np.asarray((regression.codes + 1) / 2 if own else regression.values, np.float64)
    offset = np.zeros(n) if regression.offset is None else np.asarray(regression.offset, np.float64)
    found, value = np.full((5, len(names)), math.nan), 0.0
    for place in range(len(kept)):
        *found[:, kept[place]], value = _profile(X[:, kept], y, offset, outcome.kind == "poisson", place)
    coef, errors, low, high = found[:4] / scale
    value += float(np.log(scale[kept]).sum())
    notes = [*design.notes, *outcome.notes, *([dropped] if idle else [])]
    return FirthFit(names, coef, errors, low, high, found[4], value, n, outcome.kind, outcome.classes, notes, library)


def _require_fitted(kind: str) -> None:
    if kind not in KINDS:
        fitted = "Firth's likelihood is fitted for two classes, shares, and counts"
        raise UsageError(f"outcome {kind!r}: {fitted}; expected one of {', '.join(KINDS)}")


def _find_independent(X: Floats, intercept: bool) -> list[int]:
    """Columns without those that follow from others before them, of which the intercept is one. Raises BadInputError for more
    columns than rows.
    """
    order = [*([X.shape[1] - 1] if intercept else []), *range(X.shape[1] - int(intercept))]
    while order:
        left = np.abs(np.diagonal(np.asarray(np.linalg.qr(X[:, order], "r"))))
        # as in R's glm, such a share beside the others is a column that follows from them
        short = np.flatnonzero(left <= 1e-11 * np.linalg.norm(X[:, order[: len(left)]], axis=0))
        if not len(short) and len(left) < len(order):
            raise BadInputError(f"{X.shape[0]} rows do not identify {len(order)} coefficients: leave out columns")
        if not len(short):
            break
        order.pop(int(short[0]))
    return sorted(order)


def _profile(X: Floats, y: Floats, offset: Floats, counts: bool, place: int) -> tuple[float, ...]:
    """Estimate, standard error, ends of the interval and p-value of one coefficient, and the largest value."""
    order = [*(other for other in range(X.shape[1]) if other != place), place]
    Q, R = np.linalg.qr(X[:, order])
    ask, last, size = PenalisedLikelihood(Q, y, offset, counts), len(order) - 1, abs(R[-1, -1])
    best, top = ask.maximise(ask.start(), last + 1)
    error = math.sqrt(np.linalg.inv(top.information)[last, last])

    def follow(held: Held, end: float) -> Held:
        """Where the last coordinate is ``end``, and the others are best, by steps that float64 can take."""
        while held[0][last] != end:
            (g, there), move = held, end - held[0][last]
            along = np.append(-np.linalg.solve(there.information[:last, :last], there.information[:last, last]), 1.0)
            while ask.at(g + move * along) is None:
                move /= 2
            start = g + move * along
            start[last] = end if move == end - g[last] else start[last]
            held = ask.maximise(start, last)
        return held

    def find_end(side: float) -> float:
        """Newton's steps between what is inside of the interval and what is not; not a number where float64 is at its end."""
        inside, beyond, end = (best, top), side * math.inf, best[last] + side * error * math.sqrt(FALL)
        for _ in range(STEPS):
            try:
                there = follow(inside, end)
            except UndecidedError:
                break
            short, slope = FALL - 2 * (top.value - there[1].value), -2 * there[1].gradient[last]
            if abs(short) <= EXACT:
                return float(end / R[-1, -1])
            inside, beyond = (there, beyond) if short > 0 else (inside, end)
            low = inside[0][last]
            widest = 3 * low - 2 * best[last] if math.isinf(beyond) else (low + beyond) / 2
            target = end + short / slope if slope * side > 0 else beyond
            end = target if 0 < side * (target - low) < side * ((widest if math.isinf(beyond) else beyond) - low) else widest
        return math.nan

    try:
        fall = 2 * (top.value - follow((best, top), 0.0)[1].value)
        p = math.erfc(math.sqrt(max(0.0, fall) / 2))
    except UndecidedError:
        p = math.nan
    ends = [find_end(side) for side in np.sign(R[-1, -1]) * np.array([-1.0, 1.0])]
    value = top.value + float(np.log(np.abs(R.diagonal())).sum())
    return float(best[last] / R[-1, -1]), error / size, *ends, p, value
