"""``dfeas.check_separation``: before a regression, will its coefficients run away, because of what, and what helps?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, overload

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.stable.v2 import dependencies

from dfeas.analysis.regression.blame import Advice
from dfeas.analysis.regression.design import (
    Column,
    ColumnSurvey,
    Design,
    Places,
    as_text,
    columns_of,
    find_gaps,
    inside,
    note_dropped,
    points_of,
    require_column,
)
from dfeas.analysis.regression.likelihood import Separated, Separations, check_likelihood
from dfeas.analysis.regression.models import Formula, is_model, of_model, without_bar
from dfeas.analysis.regression.outcome import Asked, Regression, Values, find_weighted, flat, weightless
from dfeas.analysis.regression.thresholds import find_order, read_beside, split_survival, split_times
from dfeas.data.arrays import accept_array
from dfeas.data.collections import LazyRows, is_collection
from dfeas.data.frames import (
    categories_of_pandas,
    compute_in_order,
    fill_sparse,
    is_frame,
    is_lazy,
    open_frame,
    require_aligned,
)
from dfeas.data.frames import columns_of as columns_in
from dfeas.data.index import ids_in_memory
from dfeas.data.partitions import table_of
from dfeas.data.source import ChosenTable
from dfeas.data.storage.numbers import array_of, exact
from dfeas.errors import BadInputError, UsageError, format_bytes
from dfeas.linalg.csr import with_data
from dfeas.records import replace
from dfeas.run.resources import Limits, Resources
from dfeas.settings import require_type

__all__ = ["Advice", "Separated", "Separations", "check_separation"]

FRAME = "the frame"


@overload
def check_separation(
    X: Any, y: list[str], *, intercept: bool = True, outcome: str | None = None, positive: Any = None, weights: Any = None,
    strata: Any = None, text: Sequence[str] = (), sep: str | None = None, decimal: str = ".", missing: str = "raise",
    trust_formula: bool = False, max_passes: int | None = None, time_limit: float | None = None,
    memory: str | int | None = None,
) -> Separations | Any: ...  # fmt: skip
@overload
def check_separation(
    X: Any, y: Any = None, *, intercept: bool = True, outcome: str | None = None, positive: Any = None, weights: Any = None,
    strata: Any = None, text: Sequence[str] = (), sep: str | None = None, decimal: str = ".", missing: str = "raise",
    trust_formula: bool = False, max_passes: int | None = None, time_limit: float | None = None,
    memory: str | int | None = None,
) -> Separated: ...  # fmt: skip
def check_separation(
    X: Any,
    y: Any = None,
    *,
    intercept: bool = True,
    outcome: str | None = None,
    positive: Any = None,
    weights: Any = None,
    strata: Any = None,
    text: Sequence[str] = (),
    sep: str | None = None,
    decimal: str = ".",
    missing: str = "raise",
    trust_formula: bool = False,
    max_passes: int | None = None,
    time_limit: float | None = None,
    memory: str | int | None = None,
) -> Separated | Separations:
    """Decide whether a regression of y on X has finite estimates; if not, because of which columns and rows.

    Logit, probit, multinomial logit and Poisson regressions have no finite estimates if a combination of columns separates
    the outcomes; software then reports large numbers with larger errors, or none at all. Every answer is proved.

    Parameters
    ----------
    X : data frame, ``dfeas.table``, array (n, m), SciPy sparse matrix, formula, model, or path
        A frame of pandas, polars, pyarrow or Dask; a formula such as ``"died ~ age + C(ward)"``, by formulaic, where ``y`` is
        the frame or path; a model of statsmodels (Logit, Probit, MNLogit, Poisson, GLM of Binomial or Poisson with its weights
        and trials), fitted or not; or the
        path of a CSV, Parquet, Stata, SPSS or SAS file, of any size. Text, categories and booleans of a frame are coded by
        treatment: the first level in order is the reference, and ``kind[b]`` is 1 where kind is b.
    y : array (n,), str, list of str, data frame, or path, optional
        Outcomes, or the name of a column of the frame; with a formula the frame; a model has its own. A list of column names
        asks about each in turn, and none is a regressor of the others. A file whose columns take at most a sixteenth of memory
        is read once for all of them, text once before to see which columns are numbers; a larger file is read anew for each
        outcome.
    intercept : bool
        Whether the regression has an intercept. Without one the first column of text keeps all its levels, as in R.
    outcome : str, optional
        "binary", "multinomial", "poisson", "log-binomial", "ordinal", "adjacent", "conditional" or "cox". Without it two values
        are binary and more texts multinomial; for more numbers it must be given. For counts, or amounts >= 0, under a log link
        give ``"poisson"``. With "cox" y is time and event, which is 1 or 0: names of two columns, two arrays, or an array
        (n, 2); a formula has ``Surv(time, event) ~``.
    positive : scalar, optional
        The class that is 1, of two or against all others; with "cox" the value that is an event.
    weights : array (n,), series, or str, optional
        Weights of the rows, >= 0, or the name of their column, which then is no regressor. Rows of weight 0 are not in the
        likelihood: their outcomes are no classes, and their texts no levels. All others count alike. A missing value is
        refused in every row, as by statsmodels.
    strata : array (n,), series, or str, optional
        Strata, or the name of their column: only rows of one are compared, in "conditional", "poisson" and "cox".
    text : list of str
        Columns of a frame or a file that are text even if levels look like numbers: ``5 mg``, ``<5``. Other columns are
        refused, with the cell, if they are text only because of some cells.
    sep, decimal : str
        Separator of cells in a CSV file, by default a comma, and the decimal sign of its numbers.
    missing : {"raise", "drop"}
        What happens to rows that miss a value, as in statsmodels; ``notes`` of the answer counts those that were dropped.
    trust_formula : bool
        Whether a formula may run any Python. By default it has names, numbers, text, operators, and calls of C, I, Q, poly,
        bs, cr, cs, cc, center, scale, standardize, offset, contrasts, log, exp, sqrt, abs and the like, also as ``np.log``.
    max_passes, time_limit, memory : optional
        As in ``dfeas.solve``; with several outcomes they hold for each.

    Returns
    -------
    Separated, or Separations of a list of names
        ``finite``, ``kind``, ``estimates`` of all coefficients, ``columns``, ``levels``, ``points`` and ``advice``; print it
        for sentences and a table. For several outcomes a mapping by name.

    Raises
    ------
    BadInputError
        Missing values, by column, count and first row; dates; texts that differ in all rows; columns and outcomes that
        cannot be used.
    UsageError
        An ``outcome`` that must be given, a formula that would run code, a model with another likelihood or none (GEE), or with
        priors or a penalty, a package that is not installed.

    Examples
    --------
    >>> import dfeas
    >>> age = [31, 44, 52, 38, 61, 47, 55, 29]
    >>> ward = ["a", "a", "b", "b", "c", "c", "a", "b"]
    >>> died = [0, 1, 0, 1, 1, 1, 0, 0]
    >>> import pandas as pd
    >>> found = dfeas.check_separation(pd.DataFrame({"age": age, "ward": ward}), died)
    >>> print(found.message)
    quasi-complete separation: level c of ward separates 2 points (4, 5) from the others; no finite estimate of ward[c]
    >>> {each.name: each.estimate for each in found.estimates}
    {'age': 'finite', 'ward[b]': 'finite', 'ward[c]': '+Inf', 'intercept': 'finite'}
    >>> print(found.advice[0])
    merge level c of ward (2 of 2 rows are 1) with a (1 of 3 rows are 1): then the estimates are finite
    """
    require_type("outcome", outcome, "str | None")
    limits = Limits.begun(max_passes, time_limit)
    without: tuple[str, ...] = ()
    formula, times = isinstance(X, str) and "~" in X and not X.startswith("~/"), None
    table, named = y if formula else X, None
    if isinstance(table, ChosenTable) and isinstance(table.X, str):
        without, named = tuple(name for name in table.left_out if name != table.choice.id), table.choice.id
    X, y, library = take_chosen(X, y)
    if outcome == "cox" and not is_model(X):
        if formula:
            times, X = split_survival(X)
        else:
            times, y = split_times(y)
    asked = Asked(
        None if formula else y,
        intercept,
        None if is_model(X) else outcome,
        positive,
        compute_in_order(weights),
        (text,) if isinstance(text, str) else text,
        sep,
        decimal,
        missing,
        without=without,
        id=named,
        strata=compute_in_order(strata),
        trust_formula=trust_formula,
        times=times,
        library=library,
        limits=limits,
        resources=Resources(memory=memory),
    )
    if is_model(X):
        if not intercept or missing != "raise" or any(each is not None for each in (y, positive, weights, strata)):
            raise UsageError(
                "a model says itself what it regresses: leave out y, positive, weights, strata, missing, intercept"
            )
        return check_likelihood(of_model(X, outcome), asked)
    if formula:
        if not intercept:
            raise UsageError("a formula says itself whether it has an intercept: write 0 + into it")
        return _of_formula(X, y, asked)
    if isinstance(X, str | Path):
        from dfeas.analysis.regression.files import of_table, of_tables

        if isinstance(y, list) and y and all(isinstance(name, str) for name in y):
            return of_tables(X, asked)
        if not isinstance(y, str):
            raise UsageError(f"{X}: say which column has the outcomes, by its name")
        return of_table(X, asked)
    if (sep, decimal) != (None, "."):
        raise UsageError("sep and decimal are for files of text; leave them out")
    if not (is_lazy(X) or is_frame(X)):
        return check_likelihood(read_table(X, asked), asked)
    X = _whole(X, asked)

    def find(name: Any) -> Separated:
        others = [each for each in y if each != name] if several else []
        alone, needed = replace(asked, y=name, without=others), [each for each in columns if each not in others]
        return check_likelihood(_of_complete(X, alone, needed if several else None, _of_frame), alone)

    columns = columns_in(X) if isinstance(y, list) and all(isinstance(each, str) for each in y) else ()
    several = not {*columns}.isdisjoint(y) and len({*y}) == len(y) if columns else False  # not labels, which are texts, too
    for each in y if several else ():
        require_column(each, columns, FRAME)
    return Separations.of(y, find) if several else find(y)


def _name_rows(X: Any, column: Any) -> Any:
    """A frame in memory as one of pandas whose index is that column, by which an answer names rows."""
    ids = ids_in_memory(X, column)
    assert ids is not None, "of a column"
    if find_spec("pandas") is None:
        raise UsageError("rows are named by an index of pandas, which is not installed: leave out id, or pip install pandas")
    if is_lazy(X):
        X = compute_in_order(X)
    frame = X if hasattr(X, "iloc") else open_frame(X, FRAME).to_pandas()
    return frame.set_axis([*ids.every()])


def take_chosen(X: Any, y: Any) -> tuple[Any, Any, str | None]:
    """X and y with what ``dfeas.table`` chose, as X or beside a formula, as the frame or path that it is of, and the library of
    a frame. Rows of a frame have the ids of the table.
    """
    beside = isinstance(X, str)
    table = y if beside else X
    if not isinstance(table, ChosenTable):
        return X, y, library_of(table)
    frame, labels, _, ids = table.take(None if beside else y)
    library, frame = library_of(frame), frame if ids is None else _name_rows(frame, ids)
    return (X, frame, library) if beside else (frame, labels if table.label is None else table.label, library)


def _of_formula(formula: str, frame: Any, asked: Asked) -> Separated:
    if isinstance(frame, str | Path):
        from dfeas.analysis.regression.files import of_formula

        return of_formula(frame, formula, asked)
    return check_likelihood(*read_formula(formula, frame, asked))


def read_formula(formula: str, frame: Any, asked: Asked) -> tuple[Regression, Asked]:
    """The regression of a formula about a frame. Raises UsageError and BadInputError for what cannot be read."""
    if not (is_lazy(frame) or is_frame(frame)):
        raise UsageError(f"formula {formula!r}: expected a data frame beside it, got {type(frame).__name__}")
    names = [name for name in columns_in(frame) if name not in asked.beside]
    parsed, asked = Formula(formula, names, asked.trust_formula), replace(asked, formula=without_bar(formula))
    if is_lazy(frame):
        needed = {*parsed.list_needed(names), *asked.beside}
        frame = frame[[name for name in frame.columns if name in needed]]

    def read(whole: Any, asked: Asked) -> Regression:
        table = as_text(fill_sparse(open_frame(whole, FRAME)), asked.text)
        kept = _in_likelihood(table, whole, asked.weights)
        beside = {name: _beside(table, whole, getattr(asked, name), name) for name in ("strata", "times")}
        asked = replace(asked, **beside)
        return parsed.of(table, asked, _index(whole), kept)

    whole = _whole(frame, asked)
    needed = {*parsed.list_needed(names), *asked.beside}
    for name in asked.beside:
        require_column(name, columns_in(whole), FRAME)
    return _of_complete(whole, asked, sorted(needed), read), asked


def read_table(X: Any, asked: Asked) -> Regression:
    """The regression of all columns of a frame or an array. Raises UsageError and BadInputError for what cannot be read."""
    framed = is_lazy(X) or is_frame(X)
    return _of_complete(_whole(X, asked), asked, None, _of_frame if framed else _of_array)


def _of_complete(X: Any, asked: Asked, columns: Sequence[str] | None, read: Callable[[Any, Asked], Regression]) -> Regression:
    """What is read of a table; where rows that miss a value are dropped, of all others, which keep their names."""
    if asked.missing != "drop":
        return read(X, asked)
    beside = {name: getattr(asked, name) for name in ("y", "weights", "strata", "times")}
    beside = {name: each for name, each in beside.items() if each is not None and not isinstance(each, str)}
    for name, each in beside.items():
        require_aligned(X, each, name)
    gap = np.any([find_gaps(X, columns), *map(find_gaps, beside.values())], axis=0)
    kept = np.flatnonzero(~gap)
    regression = read(_take(X, kept), replace(asked, **{name: _take(each, kept) for name, each in beside.items()}))
    rows = regression.rows if _index(X) else inside(kept, np.asarray(regression.rows)).tolist()
    notes = (*note_dropped(int(gap.sum()), len(gap)), *regression.outcome.notes)
    return replace(regression, rows=rows, outcome=replace(regression.outcome, notes=notes))


def _take(values: Any, kept: Places) -> Any:
    """Some rows of a frame, a series, an array or a list."""
    if hasattr(values, "iloc"):
        return values.iloc[kept]
    native = nw.from_native(values, allow_series=True, pass_through=True)
    if isinstance(native, nw.DataFrame | nw.Series):
        return native[kept].to_native()
    rows: Any = values.tocsr() if hasattr(values, "tocsr") else array_of(values, "the rows")
    return rows[kept]


def _in_likelihood(frame: nw.DataFrame[Any], whole: Any, weights: Any) -> Places | None:
    """Places of the rows in the likelihood, by weights in a column or beside the frame. Raises BadInputError for none."""
    n, where = len(frame), f"{FRAME}: column {weights}" if isinstance(weights, str) else "weights"
    kept = find_weighted(_beside(frame, whole, weights, where), n, where, _index(whole))
    weightless(n, n if kept is None else len(kept))
    return kept


def _beside(frame: nw.DataFrame[Any], whole: Any, values: Any, where: str) -> Any:
    """Values of the rows in a column, or beside the frame."""
    if not isinstance(values, str):
        require_aligned(whole, values, where)
        return values
    require_column(values, frame.columns, FRAME)
    return frame[values]


def _of_frame(X: Any, asked: Asked) -> Regression:
    whole, y = X, asked.y
    frame, rows = as_text(fill_sparse(open_frame(whole, FRAME)), asked.text), _index(whole)
    kept, beside = _in_likelihood(frame, whole, asked.weights), asked.beside
    strata, times = _beside(frame, whole, asked.strata, "strata"), _beside(frame, whole, asked.times, "time")
    frame = frame.drop([name for name in (*beside, *asked.without) if name in frame.columns])
    name = "y"
    if isinstance(y, int | tuple) and str(y) in frame.columns:  # as the column is called in pandas
        y = str(y)
    if isinstance(y, str):
        require_column(y, frame.columns, FRAME)
        name, frame, y = y, frame.drop(y), frame[y]
    elif y is None:
        raise UsageError("y is missing: give the outcomes, or the name of their column")
    else:
        y = compute_in_order(y)
        require_aligned(whole, y, "y")
    values, asked = flat(y, name), replace(asked, order=find_order(y, asked), strata=strata, times=times)
    _require_rows(len(frame), len(values))
    survey = ColumnSurvey(FRAME, rows, text=asked.text, categories=categories_of_pandas(whole))
    columns, n = columns_of(frame), len(frame)
    survey.add(columns, n, kept)
    design = survey.design(asked.intercept)
    given = {str(name): name for name in getattr(whole, "columns", []) if not isinstance(name, str)}
    design = replace(design, columns=tuple(replace(each, name=given.get(each.name, each.name)) for each in design.columns))
    columns = {name: inside(series, kept) for name, series in columns.items()}
    X = points_of(columns, n if kept is None else len(kept), design, FRAME)
    return _regression(design, X, values, name, asked, rows or range(n), kept)


def _of_array(X: Any, asked: Asked) -> Regression:
    if asked.y is None:
        raise UsageError("y is missing: give the outcomes of the rows of X")
    X = LazyRows(table_of(X, None).X)[:] if is_collection(X) else X
    sparse = False
    if not isinstance(X, np.ndarray | list | tuple):
        import scipy

        sparse = scipy.sparse.issparse(X)
    matrix: Any = X.tocsr() if sparse else exact(accept_array(X, "X"), np.float64, "X")
    matrix = with_data(matrix, exact(matrix.data, np.float64, "X")) if sparse else matrix
    if matrix.ndim != 2:
        raise BadInputError(f"X: expected numbers (n, m), got an array of shape {matrix.shape}")
    entries = matrix if isinstance(matrix, np.ndarray) else matrix.data
    if not np.isfinite(entries).all():
        place = np.argwhere(~np.isfinite(matrix if isinstance(matrix, np.ndarray) else matrix.toarray()))[0]
        raise BadInputError(f"X: row {place[0]}, column {place[1]} is not a finite number; fill it in, or drop the row")
    values, weights = flat(asked.y), asked.weights
    asked = replace(asked, order=find_order(asked.y, asked))
    _require_rows(matrix.shape[0], len(values))
    if asked.beside:
        raise UsageError(f"{asked.beside[0]!r}: an array has no columns of that name; give an array of values")
    kept = find_weighted(weights, len(values), "weights")
    design = Design(tuple(Column(i, i) for i in range(matrix.shape[1])), {}, asked.intercept)
    return _regression(design, inside(matrix, kept), values, "y", asked, range(len(values)), kept)


def _regression(
    design: Design, X: Any, y: Any, name: str, asked: Asked, rows: Sequence[Any], kept: Places | None
) -> Regression:
    values, known = Values(name, asked.order), inside(y, kept)
    values.add(known, len(y))
    about = values.outcome(asked.outcome, asked.positive)
    beside = read_beside(asked, rows, kept)
    return Regression(design, X, about.codes(known), about, inside(rows, kept), *beside, values=known)


def _require_rows(rows: int, values: int) -> None:
    if rows != values:
        raise BadInputError(f"X has {rows} rows, and y {values} values: give one for each")
    if not rows:
        raise BadInputError("X has no rows")


def _whole(frame: Any, asked: Asked) -> Any:
    """A frame of Dask in memory, computed once. Raises BadInputError for one that is too large."""
    if not is_lazy(frame):
        return frame
    most, taken = asked.resources.memory_bytes // 2, 0

    def take(part: Any) -> Any:
        nonlocal taken
        taken += int(part.memory_usage(deep=True).sum())
        if taken > most:
            raise BadInputError(
                f"{FRAME} takes {format_bytes(taken)} or more, more than half of memory: write it as Parquet, and give "
                "the path of that"
            )
        return part

    whole = compute_in_order(frame.map_partitions(take, meta=frame._meta))
    taken = 0  # each process has counted its own
    return take(whole)


def library_of(frame: Any) -> str | None:
    """Whose data frames a user has; None where X is none."""
    if not (is_lazy(frame) or is_frame(frame)):
        return None
    return "pandas" if is_lazy(frame) else nw.get_native_namespace(frame).__name__


def _index(frame: Any) -> list[Any] | None:
    return list(frame.index) if dependencies.is_pandas_like_dataframe(frame) else None
