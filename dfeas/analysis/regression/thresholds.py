"""Likelihoods with a threshold beside the coefficients, of which the rows in question are on one side, or on both.

A row x with the threshold t is above where x'b > t and below where x'b < t. A direction of b and all t along which no term of
the likelihood falls, and one rises, separates these rows; there is a maximum exactly where there is none.

* ordinal, P(y <= k) = F(t_k - x'b), F continuous and strictly increasing: a row of class k is above t_(k-1) and below t_k.
  Terms are at most 0, and fall without end where a row is on the wrong side (Haberman, discussion of McCullagh, JRSS B 1980).
* adjacent, log P(y = k) / P(y = k - 1) = a_k + x'b: a row of class c is above the mean of -a_k between c and each class before
  it, and below that between c and each class behind it. It is a multinomial logit with one slope: Albert and Anderson, 1984.
* conditional logit: in each stratum some t has the cases above and the controls below it, or on it: no set of as many rows has
  a larger sum. Strata of one kind only are not in the likelihood. Of Poisson with strata rows with y > 0 are on t, those of 0
  below it.
* cox, ties after Breslow or Efron: the event is the largest of its risk set (Bryson and Johnson, Technometrics 1981). So events
  of one time are on its t, all others are below the t of the last time at which they were at risk, and of the events of each
  time one is below the t of the time before: O(n) rows, as risk sets shrink.
"""

from __future__ import annotations

import math
import re
from itertools import combinations, pairwise
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from dfeas.analysis.regression.design import SPARSE_FROM, Column, Design, Floats, Labels, Places, inside, read_order
from dfeas.analysis.regression.outcome import BOTH, IN_ORDER, Asked, Codes, Regression, Response, flat
from dfeas.data.labels import plain
from dfeas.data.storage.numbers import exact
from dfeas.errors import BadInputError, UsageError
from dfeas.records import replace

_SURVIVAL = re.compile(r"\s*Surv\(\s*(\w+|`[^`]+`)\s*,([^,~]+)\)\s*~(.*)", re.DOTALL)


def require_decided(design: Design, outcome: Response) -> None:
    """Raise an error for a regression of which nothing can be said."""
    if not design.columns:
        raise BadInputError("no column beside the intercept: nothing can separate")
    if outcome.kind == "log-binomial" and not design.intercept:
        raise UsageError("log-binomial: expected an intercept; without one perhaps no coefficients have probabilities below 1")


def find_order(y: Any, asked: Asked) -> list[str] | None:
    """Categories of an ordinal outcome from the lowest to the highest; None where they have no order, or need none."""
    if asked.outcome not in IN_ORDER:
        return None
    series = nw.from_native(y, series_only=True, pass_through=True)  # looks for plug-ins, which takes 10 ms
    if not isinstance(series, nw.Series):
        return None
    ordered = isinstance(series.dtype, nw.Categorical | nw.Enum) and read_order(series)[0]
    return [plain(level) for level in series.cat.get_categories().to_list()] if ordered else None


def read_beside(asked: Asked, rows: Labels, kept: Places | None = None) -> tuple[Places | None, Floats | None]:
    """Strata (n,) of rows, in numbers, and times. Raises BadInputError for those that are missing, and times that are text."""
    beside = list[Any]()
    for given, where in ((asked.strata, "strata"), (asked.times, "time")):
        values = None if given is None else flat(given, where, rows)
        if values is not None and len(values) != len(rows):
            raise BadInputError(f"{where}: expected one value for each of {len(rows)} rows, got {len(values)}")
        beside.append(None if values is None else inside(values, kept))
    strata, times = beside
    strata = None if strata is None else np.unique(strata, return_inverse=True)[1].ravel()
    return strata, None if times is None else exact(times, np.float64, "time")


def split_times(y: Any) -> tuple[Any, Any]:
    """Time and event of a Cox regression, however they were given."""
    frame = nw.from_native(y, eager_only=True, pass_through=True)
    parts: Any = [each.to_native() for each in frame.iter_columns()] if isinstance(frame, nw.DataFrame) else y
    parts = parts.T if getattr(parts, "shape", ())[1:] == (2,) else parts
    if isinstance(parts, list | tuple | np.ndarray) and len(parts) == 2:
        return parts[0], parts[1]
    raise UsageError("outcome 'cox': expected time and event as y, names of two columns, two arrays, or an array (n, 2)")


def split_survival(formula: str) -> tuple[str, str]:
    """The column of times, and the formula of the event, ``Surv(time, event) ~ x``. Raises UsageError for another one."""
    found = _SURVIVAL.fullmatch(formula)
    if found is None:
        raise UsageError(f"formula {formula!r}: expected time and event of a Cox regression, as in Surv(time, event) ~ age")
    time, event, right = (each.strip() for each in found.groups())
    event = event if re.fullmatch(r"\w+|`[^`]+`", event) else f"I(1 * ({event}))"
    return time.strip("`"), f"{event} ~ {right}"


def with_thresholds(regression: Regression) -> Regression:
    """The rows beside their thresholds, the first columns, where there are some. Raises BadInputError without a term."""
    kind, names = regression.outcome.kind, [f"{low}|{high}" for low, high in pairwise(regression.outcome.classes)]
    if kind in IN_ORDER:
        row, codes, beside = (_order_classes if kind == "ordinal" else _compare_classes)(regression.codes, len(names))
    elif kind == "cox":
        row, codes, beside = _order_times(regression)
    elif regression.strata is not None:
        row, codes, beside = _share_strata(regression.codes, regression.strata)
    else:
        return replace(regression, numbers=np.arange(len(regression.codes)))
    import scipy

    names = names if kind in IN_ORDER else [f"the {'times' if kind == 'cox' else 'strata'}"] * beside.shape[1]
    points = regression.points[row]
    sparse = beside.shape[1] >= SPARSE_FROM or not isinstance(points, np.ndarray)
    stack = scipy.sparse.hstack([beside, points], format="csr") if sparse else np.hstack([beside.toarray(), points])
    columns = (*(Column(name, None, own=False) for name in names), *regression.design.columns)
    design = replace(regression.design, columns=columns, factors={}, intercept=False)
    points = scipy.sparse.csr_array(stack) if sparse else stack
    return replace(regression, design=design, points=points, codes=codes, numbers=row, strata=None, times=None)


def _place(row: Places, column: Any, value: float, q: int) -> Any:
    import scipy

    return scipy.sparse.csr_array((np.full(len(row), value), (np.arange(len(row)), column)), shape=(len(row), q))


def _order_classes(codes: Codes, q: int) -> tuple[Places, Codes, Any]:
    row = np.repeat(np.arange(len(codes)), 2)
    cut, sign = (codes[:, None] + [-1, 0]).ravel(), np.tile([1, -1], len(codes))
    kept = (cut >= 0) & (cut < q)
    return row[kept], sign[kept], _place(row[kept], cut[kept], -1.0, q)


def _compare_classes(codes: Codes, q: int) -> tuple[Places, Codes, Any]:
    import scipy

    scale, rows, signs, cuts = math.lcm(*range(1, q + 1)), list[Places](), list[Codes](), list[Any]()
    if scale > 1 << 53:
        raise BadInputError(f"y: {q + 1} classes; expected at most 40 of an adjacent-category logit")
    for low, high in combinations(range(q + 1), 2):
        for own, sign in ((low, -1), (high, 1)):
            row, width = np.flatnonzero(codes == own), high - low
            between, start = np.tile(np.arange(low, high), len(row)), np.arange(len(row) + 1) * width
            cut = scipy.sparse.csr_array((np.full(len(between), float(scale // width)), between, start), shape=(len(row), q))
            rows, signs, cuts = [*rows, row], [*signs, np.full_like(row, sign)], [*cuts, cut]
    return np.concatenate(rows), np.concatenate(signs), scipy.sparse.vstack(cuts, format="csr")


def _share_strata(codes: Codes, strata: Places) -> tuple[Places, Codes, Any]:
    most = int(strata.max(initial=-1)) + 1
    both = (np.bincount(strata[codes >= BOTH], minlength=most) > 0) & (np.bincount(strata[codes <= BOTH], minlength=most) > 0)
    row = np.flatnonzero(both[strata])
    if not len(row):
        raise BadInputError(f"strata: none of {most} has both outcomes: the conditional likelihood has no term")
    stratum = (np.cumsum(both) - 1)[strata[row]]
    return row, codes[row], _place(row, stratum, 1.0, int(both.sum()))


def _order_times(regression: Regression) -> tuple[Places, Codes, Any]:
    event, times = regression.codes > BOTH, regression.times
    strata = np.zeros(len(event), np.int64) if regression.strata is None else regression.strata
    if not event.any():
        raise BadInputError("y: no row has an event: the partial likelihood has no term")
    known, rank = np.unique(np.column_stack([strata, times]), axis=0, return_inverse=True)
    rank = rank.ravel()
    ends, first = np.unique(rank[event], return_index=True)  # a threshold for each stratum and time with an event
    last = np.searchsorted(ends, rank, "right") - 1
    at_risk = np.flatnonzero((last >= 0) & (known[ends[last], 0] == strata))
    later = np.flatnonzero(known[ends[1:], 0] == known[ends[:-1], 0])
    begin = np.searchsorted(known[ends, 0], strata[at_risk])  # follows from the others, and names rows below a later threshold
    below = np.flatnonzero(begin < last[at_risk])
    row = np.concatenate([at_risk, np.flatnonzero(event)[first[1:][later]], at_risk[below]])
    codes = np.concatenate([np.where(event[at_risk], BOTH, -1), np.full(len(later) + len(below), -1)])
    return row, codes, _place(row, np.concatenate([last[at_risk], later, begin[below]]), -1.0, len(ends))
