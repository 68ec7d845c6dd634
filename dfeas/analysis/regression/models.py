"""Models of statsmodels, fitted or not, as regressions; and the design that columns of known names make."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.analysis.regression.design import Column, Design, Factor, Matrix
from dfeas.analysis.regression.likelihood import Regression
from dfeas.analysis.regression.outcome import BOTH, Outcome, Values
from dfeas.data.storage.numbers import array_of, exact
from dfeas.errors import BadInputError, UsageError

KINDS = {"Logit": "binary", "Probit": "binary", "MNLogit": "multinomial", "Poisson": "poisson"}
"""What classes of models regress."""
LINKS = {"binary": ("logit", "probit", "cloglog", "loglog"), "poisson": ("log",)}
"""Links of families with which the likelihood has a maximum unless the points are separated."""

_LEVEL = re.compile(r"(.*)\[(?:T\.)?([^\[\]]*)\]", re.DOTALL)
"""A column of a factor, as patsy and formulaic call it."""


def is_model(X: Any) -> bool:
    """Whether it is a model, or what came of fitting one."""
    return all(hasattr(getattr(X, "model", X), name) for name in ("exog", "endog", "exog_names"))


def of_model(given: Any, outcome: str | None) -> Regression:
    """The regression of a model. Raises UsageError for one whose likelihood is another one than those that are known."""
    model = getattr(given, "model", given)
    kind, family = _kind_of(model), getattr(model, "family", None)
    if outcome not in (None, kind):
        raise UsageError(f"outcome {outcome!r}: the model is {type(model).__name__}, whose outcome is {kind}")
    points = finite(exact(model.exog, np.float64, "the regressors"), list(model.exog_names))
    design, kept = of_columns(points, list(model.exog_names), _levels_known(model))
    endog = array_of(model.endog, "the outcome")
    codes: NDArray[np.int64]
    if kind == "multinomial":
        names = getattr(model, "_ynames_map", None) or {code: str(code) for code in range(int(endog.max()) + 1)}
        about = Outcome(kind, tuple(str(names[code]) for code in sorted(names)))
        codes = endog.astype(np.int64)
    elif kind == "binary" and family is not None:
        about, codes = Outcome(kind, ("0", "1")), np.where(endog >= 1, 1, np.where(endog <= 0, -1, BOTH)).astype(np.int64)
    else:
        values = Values()
        values.add(endog)
        about = values.outcome(kind)
        codes = about.codes(endog)
    if kind != "poisson" and len(set(codes.tolist()) - {BOTH}) + 2 * (BOTH in codes) < 2:
        raise BadInputError(f"y: all rows are {about.classes[-1 if (codes > 0).all() else 0]}; two classes are needed")
    rows = getattr(getattr(model, "data", None), "row_labels", None)
    return Regression(design, points[:, kept], codes, about, range(len(codes)) if rows is None else list(rows))


def _kind_of(model: Any) -> str:
    """What a model regresses, by its class, or its family and link. Raises UsageError for others."""
    family = getattr(model, "family", None)
    if family is not None:
        kind = {"Binomial": "binary", "Poisson": "poisson"}.get(type(family).__name__)
        link = type(getattr(family, "link", None)).__name__
        if kind is None or link.lower() not in LINKS[kind]:
            what = f"{type(family).__name__} with link {link}"
            raise UsageError(f"a model of family {what}: expected Binomial ({', '.join(LINKS['binary'])}) or Poisson (log)")
        return kind
    for base in type(model).__mro__:
        if base.__name__ in KINDS:
            return KINDS[base.__name__]
    raise UsageError(f"a model of class {type(model).__name__}: expected {', '.join(KINDS)}, or GLM of Binomial or Poisson")


def finite(points: Matrix, names: list[Any]) -> Matrix:
    """The same. Raises BadInputError with the column of a value that is none."""
    bad = ~np.isfinite(points)
    if bad.any():
        row, place = np.argwhere(bad)[0]
        text = f"{int(bad[:, place].sum())} values are missing or infinite, the first in row {row}"
        raise BadInputError(f"column {names[place]}: {text}; fill them, or drop these rows")
    return points


def _levels_known(model: Any) -> dict[str, Sequence[str]]:
    """Levels of each factor, where the formula of a model knows them."""
    data = getattr(model, "data", None)
    return levels_of_spec(getattr(data, "model_spec", None) or getattr(data, "design_info", None))


def levels_of_spec(spec: Any) -> dict[str, Sequence[str]]:
    """The same, of what formulaic or patsy made of a formula."""
    contrasts = getattr(spec, "factor_contrasts", None)
    if contrasts:
        return {str(factor): [str(level) for level in state.levels] for factor, state in contrasts.items()}
    infos = getattr(spec, "factor_infos", None) or {}
    return {each.name(): [str(level) for level in info.categories] for each, info in infos.items() if info.categories}


def of_columns(
    points: Matrix, names: list[Any], levels: dict[str, Sequence[str]], ones: Sequence[int] | None = None
) -> tuple[Design, list[int]]:
    """The design that columns (b, m) make, and the places of those that are not the intercept; names tell factors.

    The intercept is the first of ``ones``, or of the columns that are constant.
    """
    if ones is None:
        ones = [place for place, column in enumerate(points.T) if len(column) and column[0] != 0 and np.ptp(column) == 0]
    kept = [place for place in range(len(names)) if place not in ones[:1]]
    columns = [_column(names[place], points[:, [place]]) for place in kept]
    factors = {}
    for term in dict.fromkeys(column.term for column in columns if column.level is not None):
        own = [column.level or "" for column in columns if column.term == term]
        every = list(levels.get(str(term), ())) or ["the reference", *own]
        left = [level for level in every if level not in own]
        factors[term] = Factor(tuple(every), left[0] if len(left) == 1 else None)
    return Design(tuple(columns), factors, bool(ones)), kept


def _column(name: Any, values: Matrix) -> Column:
    found = _LEVEL.fullmatch(str(name))
    if found is None or ":" in found[1] or not np.isin(values, (0, 1)).all():
        return Column(name, name)
    return Column(name, found[1], found[2])
