"""The outcome of a regression, and the question about signed points that its likelihood comes down to.

* binary (logit, probit, cloglog, cauchit): x_i labelled +1 or -1; a share between 0 and 1 is both. Albert and Anderson,
  Biometrika 1984. Terms are at most 0 and fall without end on the wrong side, so that their sum need not be concave.
* Poisson with log link: the likelihood has a maximum unless some z has x_i'z = 0 where y_i > 0, and x_i'z <= 0, < 0 for one of
  them, where y_i = 0. Correia, Guimaraes and Zylkin, "Verifying the existence of maximum likelihood estimates for generalized
  linear models", 2019. So x_i is labelled -1 where y_i = 0, and is both, +1 and -1, where y_i > 0.
* log-binomial, P(y = 1) = exp(x'b) <= 1: the same labels. A row with y_i > 0 can neither fall, as its term does, nor rise above
  0, and log(1 - exp(x'b)) rises as x'b falls. With an intercept some b has all x'b < 0. The maximum need not be the only one.
* multinomial logit of K classes: some z = (z_1 .. z_{K-1}), z_0 = 0, has x_i'(z_c - z_k) >= 0 for the class c of i and all
  others, k: K - 1 points in K - 1 blocks of features for each i, all +1. Albert and Anderson, 1984.

There is no maximum exactly when the signed points are separated, completely or quasi-completely. A row of weight 0 has no
points: it is not in the likelihood. All other weights count alike, and an offset that is finite changes no direction along
which the likelihood never falls, so nothing. Likelihoods with thresholds are in ``thresholds``.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from msgspec import Struct, field, structs
from numpy.typing import NDArray

from dfeas.analysis.regression.design import Design, Floats, Labels, Matrix, Places, find_gaps
from dfeas.data.arrays import accept_array
from dfeas.data.frames import is_categorical, values_of
from dfeas.data.labels import MOST_CLASSES, place_of, plain
from dfeas.data.storage.numbers import array_of, exact
from dfeas.data.writers.dataset import Progress
from dfeas.errors import BadInputError, UsageError, brief, either, none_of, spell
from dfeas.records import replace
from dfeas.run.resources import Limits, Resources
from dfeas.settings import require_types

MISSING = ("raise", "drop")
OUTCOMES = ("binary", "multinomial", "poisson", "log-binomial", "ordinal", "adjacent", "conditional", "cox")
LIKE = {"log-binomial": "binary", "conditional": "binary", "ordinal": "multinomial", "adjacent": "multinomial"}
"""Outcomes whose values are read as those of another one."""
OF_ZEROS = ("poisson", "log-binomial")
RISING = (*OF_ZEROS, "cox")
"""Outcomes of which only rows where they are 0 can be separated, and those with which no separation is complete."""
IN_STRATA, IN_ORDER = ("conditional", "cox", "poisson"), ("ordinal", "adjacent")
THRESHOLDS = (*IN_ORDER, "conditional", "cox")

Codes = NDArray[np.int64]
BOTH = 0
"""Code of a row that counts as +1 and as -1."""


class Asked(Struct, frozen=True):
    """What is asked about a regression; see ``dfeas.check_separation``."""

    y: Any = None  # outcomes, or the name of their column; a formula says it
    intercept: bool = True
    outcome: str | None = None
    positive: Any = None
    weights: Any = None  # of the rows, or the name of their column
    text: Sequence[str] = ()
    sep: str | None = None
    decimal: str = "."
    missing: str = "raise"  # or "drop": the rows that miss a value
    formula: str | None = None  # where one was asked about
    trust_formula: bool = False  # to run as code
    strata: Any = None  # as weights
    times: Any = None  # as weights, of a Cox regression
    order: Sequence[str] | None = None  # of classes, where their categories say it
    without: Sequence[str] = ()  # columns of a file that are left out
    id: str | None = None  # the column of a file that names its rows
    library: str | None = None  # whose data frames are made of the answer
    limits: Limits = field(default_factory=Limits)
    resources: Resources = field(default_factory=Resources)
    progress: Progress | None = None  # where points are written to a scratch folder

    def __post_init__(self) -> None:
        require_types(self, {"intercept", "outcome", "text", "sep", "decimal", "missing", "trust_formula"})
        if isinstance(self.weights, str) and isinstance(self.y, str) and self.y == self.weights:
            raise UsageError(f"column {self.weights}: expected the outcome and the weights in columns of their own")
        if self.outcome in THRESHOLDS:  # which stand for the intercept: levels are coded beside a reference
            structs.force_setattr(self, "intercept", True)
        if self.missing not in MISSING:
            raise UsageError(f"{spell('missing')} {none_of(self.missing, MISSING)}")
        if self.strata is not None and self.outcome not in IN_STRATA:
            raise UsageError(f"strata: expected an outcome compared in them, {', '.join(IN_STRATA)}, got {self.outcome}")
        if (self.outcome == "cox") != (self.times is not None):
            named = either("y=[TIME, EVENT] with outcome='cox'", "--time-column NAME with --outcome cox")
            raise UsageError(f"a Cox regression has times beside its events, others have none: {named}")
        if self.outcome == "conditional" and self.strata is None:
            raise UsageError(f"a conditional logit has strata: name their column, {spell('strata', 'NAME')}")

    @property
    def beside(self) -> list[str]:
        """Columns that are no regressors."""
        return [each for each in (self.weights, self.strata, self.times) if isinstance(each, str)]


class Response(Struct, frozen=True):
    """What is regressed, and how."""

    kind: str  # one of OUTCOMES
    classes: tuple[str, ...] = ()  # (negative, positive), or all; none of counts
    lookup: dict[Any, int] = field(default_factory=dict)  # code of each value
    notes: tuple[str, ...] = ()  # on rows that do not count
    name: str = "y"

    def codes(self, values: NDArray[Any]) -> Codes:
        """+1, -1 or BOTH; of more classes their places. Raises BadInputError for a value that is new."""
        if self.kind == "poisson" or (self.of_shares and self.kind in OF_ZEROS):
            return np.where(values > 0, BOTH, -1).astype(np.int64)
        if self.of_shares:
            return np.where(values >= 1, 1, np.where(values <= 0, -1, BOTH)).astype(np.int64)
        try:
            codes = np.fromiter((self.lookup[value] for value in values.tolist()), np.int64, len(values))
        except KeyError as error:
            raise BadInputError(f"y: class {error} came only now; the table changed meanwhile") from None
        return np.minimum(codes, BOTH) if self.kind in OF_ZEROS else codes

    @property
    def of_shares(self) -> bool:
        return LIKE.get(self.kind, self.kind) == "binary" and not self.lookup

    @property
    def blocks(self) -> int:
        return len(self.classes) - 1 if self.kind == "multinomial" else 1


def row_numbers(codes: Codes, outcome: Response) -> Codes:
    """The row of the table that each signed point is of."""
    times = np.full(len(codes), outcome.blocks) if outcome.kind == "multinomial" else 1 + (codes == BOTH)
    return np.repeat(np.arange(len(codes)), times)


def sign_rows(
    points: Matrix, codes: Codes, outcome: Response, intercept: bool, positive: bool
) -> tuple[Matrix, NDArray[np.int8]]:
    """Points that some rows (b, m) ask about, and labels; with ``positive`` all are 1, and the intercept is the last column."""
    points = wide(points) if positive and intercept else points
    if outcome.kind == "multinomial":
        points = _oppose_classes(points, codes, outcome.blocks)
        return points, np.ones(points.shape[0], np.int8)
    row = row_numbers(codes, outcome)
    labels = codes[row].astype(np.int8)
    place = np.flatnonzero(labels == BOTH)
    labels[place[::2]], labels[place[1::2]] = 1, -1
    points = points[row] if len(place) else points
    if not positive:
        return points, labels
    sign = labels.astype(np.float64)[:, None]
    if isinstance(points, np.ndarray):
        return points * sign, np.ones_like(labels)
    import scipy

    return scipy.sparse.csr_array(points.multiply(sign)), np.ones_like(labels)


def _oppose_classes(points: Matrix, codes: Codes, blocks: int) -> Matrix:
    """(b (K - 1), (K - 1) m): x_i in the block of its class, and -x_i in that of another; the first class has none."""
    import scipy

    n, m = points.shape
    other = np.broadcast_to(np.arange(blocks + 1), (n, blocks + 1))
    own = other == codes[:, None]
    row, other = np.nonzero(~own)[0], other[~own]
    each = scipy.sparse.csr_array(points)[row]
    size = np.diff(each.indptr)

    def place_rows(place: Codes, sign: float) -> Any:
        """The rows in blocks of features; those of the first class vanish."""
        data = sign * each.data * np.repeat(place > 0, size)
        indices = each.indices + np.repeat(np.maximum(place - 1, 0) * m, size)
        return scipy.sparse.csr_array((data, indices, each.indptr), shape=(len(row), blocks * m))

    whole = scipy.sparse.csr_array(place_rows(codes[row], 1.0) + place_rows(other, -1.0))
    whole.eliminate_zeros()
    whole.sort_indices()
    return whole


def wide(points: Matrix) -> Matrix:
    """With the intercept as the last column."""
    one: Matrix = np.ones((points.shape[0], 1))
    if isinstance(points, np.ndarray):
        return np.hstack([points, one])
    import scipy

    return scipy.sparse.csr_array(scipy.sparse.hstack([points, one], format="csr"))


class Values:
    """Looks at an outcome part after part."""

    def __init__(self, where: str = "y", order: Sequence[str] | None = None) -> None:
        self._where, self._order = where, order  # of categories
        self._known: dict[Any, None] = {}
        self._many = False
        self._numeric = self._whole = True
        self._least, self._most = np.inf, -np.inf
        self.rows = self.counted = 0

    def add(self, values: NDArray[Any], rows: int, order: Sequence[str] | None = None) -> None:
        """Values of the rows in the likelihood, none of them missing, of so many rows that follow, and the order of their
        categories. Raises BadInputError for another order than before.
        """
        if order is not None and self._order not in (None, order):
            raise BadInputError(f"{self._where}: its categories are not the same, in the same order, in all files")
        self._order = order or self._order
        self.rows, self.counted = self.rows + rows, self.counted + len(values)
        self._numeric &= values.dtype.kind in "iufb"
        if self._numeric and len(values):
            self._least, self._most = min(self._least, float(values.min())), max(self._most, float(values.max()))
            self._whole &= bool((values == np.floor(values.astype(np.float64))).all())
        if not self._many:
            self._known |= dict.fromkeys(np.unique(values).tolist() if self._numeric else values.tolist())
            self._many = len(self._known) > MOST_CLASSES

    def outcome(self, asked: str | None, positive: Any = None) -> Response:
        notes = weightless(self.rows, self.counted)
        if positive is not None and asked in ("multinomial", "poisson", *IN_ORDER):
            raise UsageError(f"outcome {asked}: none of its classes is the positive one; leave out {spell('positive')}")
        about = self._outcome(LIKE.get(asked or "", asked), positive)
        if asked == "conditional" and about.of_shares:
            raise BadInputError(f"{self._where}: shares between 0 and 1; expected cases and controls of a conditional logit")
        if asked in IN_ORDER and self._order is None and not self._numeric:
            raise BadInputError(f"{self._where}: text has no order; expected numbers, or a category with an order")
        return replace(about, kind=asked or about.kind, notes=notes, name=self._where)

    def _outcome(self, asked: str | None, positive: Any) -> Response:
        if asked not in (None, *OUTCOMES):
            raise UsageError(f"outcome {brief(asked)}: expected one of {', '.join(OUTCOMES)}")
        if asked == "poisson":
            if not self._numeric or self._least < 0:
                what = f"{self._least:g} is below 0" if self._numeric else "it holds text"
                raise BadInputError(f"{self._where}: a Poisson outcome is a count, and {what}")
            return Response("poisson")
        if asked == "cox":
            if positive is not None and not self._many:
                chosen = place_of(plain(positive), list(map(plain, known := self._sort_known())), self._where)
                return Response("cox", ("0", "1"), {value: 2 * (i == chosen) - 1 for i, value in enumerate(known)})
            if not self._numeric or self._known.keys() - {0, 1}:
                raise BadInputError(
                    f"{self._where}: expected 1 or true where the event came, 0 or false where it did not, or what says that "
                    f"it came, {spell('positive', 'NAME')}"
                )
            return Response("cox", ("0", "1"), {0: -1, 1: 1})
        values, few = self._sort_known(), 2
        shares = self._numeric and not self._whole and self._least >= 0 and self._most <= 1
        if asked == "binary" and shares and positive is None:
            return Response("binary", ("0", "1"))
        if asked is None and positive is None and len(values) > few and self._numeric:
            counts = f"counts ({spell('outcome', 'poisson')}), " if self._whole and self._least >= 0 else ""
            counts = f"shares ({spell('outcome', 'binary')}), " if shares else counts
            number = f"more than {MOST_CLASSES}" if self._many else len(values)
            kinds = f"{counts}classes ({spell('outcome', 'multinomial')})"
            rest = f"or name one against all others, {spell('positive', 'NAME')}"
            raise UsageError(f"{self._where} has {number} different numbers: say whether they are {kinds}, {rest}")
        if self._many:
            raise BadInputError(f"{self._where}: more than {MOST_CLASSES} different values; is this the outcome?")
        names = [plain(value) for value in values]
        if len(names) < few:
            raise BadInputError(f"{self._where}: all rows are {names[0] if names else 'missing'}; two classes are needed")
        if positive is not None and asked != "multinomial":
            chosen = place_of(plain(positive), names, self._where)
            rest = names[1 - chosen] if len(names) == few else "rest"
            return Response("binary", (rest, names[chosen]), {value: 2 * (i == chosen) - 1 for i, value in enumerate(values)})
        if asked == "binary" and len(names) > few:
            shown = ", ".join(names[:6])
            raise BadInputError(f"{self._where}: {len(names)} classes ({shown}); name one, {spell('positive', 'NAME')}")
        if asked == "multinomial" or len(names) > few:
            return Response("multinomial", tuple(names), {value: code for code, value in enumerate(values)})
        return Response("binary", (names[0], names[1]), {values[0]: -1, values[1]: 1})

    def _sort_known(self) -> list[Any]:
        if self._order is not None:
            return [level for level in self._order if level in self._known]
        try:
            numbers = {value: float(value) for value in self._known}
        except ValueError:
            return sorted(self._known)
        if not np.isfinite(list(numbers.values())).all():
            return sorted(self._known)
        return sorted(numbers, key=lambda value: numbers[value])


def find_weighted(weights: Any, n: int, where: str, rows: Labels | None = None) -> Places | None:
    """Places of the rows in the likelihood, which have a weight above 0; None where there are no weights, and all count. Raises
    BadInputError for a weight that is missing, infinite or below 0, with its row, called as in ``rows``.
    """
    if weights is None:
        return None
    values = _numbers(weights, where)
    if values.shape != (n,):
        raise BadInputError(f"{where}: expected one number for each of {n} rows, got shape {values.shape}")
    bad = ~((values >= 0) & np.isfinite(values))
    if bad.any():
        row = int(bad.argmax())
        what, called = "is missing" if np.isnan(values[row]) else f"is {values[row]:g}", row if rows is None else rows[row]
        advice = f"correct it, or drop the row{', by ' + spell('missing', 'drop') if np.isnan(values[row]) else ''}"
        raise BadInputError(f"{where}: the weight of row {called} {what}, expected a number >= 0: {advice}")
    return np.flatnonzero(values > 0)


def _numbers(weights: Any, where: str) -> Floats:
    series = nw.from_native(weights, series_only=True, pass_through=True)
    if isinstance(series, nw.Series) and (series.dtype.is_numeric() or series.dtype == nw.Boolean):
        return series.cast(nw.Float64).to_numpy()
    held: Any = series if isinstance(series, nw.Series) else array_of(weights, where)
    if isinstance(series, nw.Series) or held.dtype.kind not in "biuf":
        raise BadInputError(f"{where}: expected weights that are numbers, got {held.dtype}")
    return exact(held, np.float64, where)


def weightless(rows: int, counted: int) -> tuple[str, ...]:
    """What is to be said of rows without a weight. Raises BadInputError where none has one."""
    if rows and not counted:
        raise BadInputError(f"none of {rows} rows has a weight above 0: the likelihood has no row")
    gone = rows - counted
    has = "has no weight, and is" if gone == 1 else "have no weight, and are"
    return (f"{gone} of {rows} rows {has} not in the likelihood",) if gone else ()


def flat(y: Any, where: str = "y", rows: Labels | None = None) -> NDArray[Any]:
    """An outcome as an array (n,). Raises BadInputError for one that is missing somewhere, or no array of numbers or text."""
    numbers = isinstance(y, np.ndarray) and y.dtype.kind not in "OT"
    _require_values(np.zeros(0, np.bool_) if numbers else find_gaps(y, where=where), where, rows)
    values = array_of(accept_array(values_of(y, where), where), where)
    values = exact(values, np.float64, where) if values.dtype.kind == "f" and values.dtype.itemsize > 8 else values
    if is_categorical(y):  # classes, also where they are called by numbers
        values = np.array([plain(value) for value in values.tolist()], np.str_)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise BadInputError(f"{where}: expected one value for each row, got shape {values.shape}")
    if values.dtype.kind == "O":
        kinds = {type(value) for value in values.tolist()}
        if kinds and bool not in kinds and all(issubclass(kind, Real | Decimal) for kind in kinds):
            return exact(values, np.float64, where)
        if not (kinds <= {str} or kinds <= {bool, np.bool_}):
            named = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise BadInputError(f"{where}: expected numbers, booleans or text, got {named}")
        values = values.astype(np.bool_) if kinds and kinds <= {bool, np.bool_} else values
    elif values.dtype.kind not in "biufUT":
        raise BadInputError(f"{where} holds {values.dtype}: expected numbers, booleans or text")
    if values.dtype.kind == "f":
        _require_values(~np.isfinite(values), where, rows)
    return values


def _require_values(gap: NDArray[np.bool_], where: str, rows: Labels | None) -> None:
    if gap.any():
        first = int(gap.argmax())
        text = f"{int(gap.sum())} values are missing or infinite, the first in row {first if rows is None else rows[first]}"
        raise BadInputError(f"{where}: {text}; fill them, or drop these rows, by {spell('missing', 'drop')}")


class Regression(Struct, frozen=True):
    """A design with its rows and their outcomes."""

    design: Design
    points: Matrix  # (n, m)
    codes: Codes  # (n,)
    outcome: Response
    rows: Sequence[Any]  # labels of the rows of the table
    strata: Places | None = None  # (n,) of each row the number of its stratum
    times: Any = None  # (n,) of a Cox regression
    numbers: Any = None  # (n,) rows of the table, of which some come several times or not at all
    values: Any = None  # (n,) outcomes as they are given, of a table in memory
    offset: Any = None  # (n,) of a formula

    def without(self, places: Sequence[int]) -> Regression | None:
        design, kept = self.design.without(places)
        if not kept and not design.intercept:
            return None
        return replace(self, design=design, points=self.points[:, kept])

    def merge_level(self, term: Any, level: str, other: str) -> Regression | None:
        column = {self.design.columns[place].level: place for place in self.design.places(term)}
        reference = self.design.factors[term].reference
        if level == reference:
            level, other = other, level
        if level not in column:
            return None
        points = self.points
        if other in column:
            change = np.zeros((points.shape[1], points.shape[1]))
            change[column[level], column[other]] = 1
            points = points + points @ change
        return replace(self, points=points).without([column[level]])
