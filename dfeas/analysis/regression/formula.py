"""A formula with both sides, in the language of R, as formulaic knows it: of a frame, or of a table part after part."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them
from numpy.typing import NDArray

from dfeas.analysis.regression.design import ColumnSurvey, Design, Labels, Matrix, Places, Variable, find_missing, inside
from dfeas.analysis.regression.models import finite, of_columns
from dfeas.analysis.regression.outcome import Asked, Regression, Values, flat
from dfeas.data.storage.numbers import exact
from dfeas.errors import BadInputError, UsageError, install

INTERCEPT = "Intercept"

_MARK = re.compile(r"\x1b\[[0-9;]*m|[⧛⧚]")
_WORD = re.compile(r"[^\W\d]\w*")
_NAME = re.compile(r"\s*([^\W\d]\w*|`[^`]+`)\s*")
_OFFSET = re.compile(r"\boffset\s*\(")


class Formula:
    """What a formula says of outcome and terms."""

    def __init__(self, text: str) -> None:
        try:
            import formulaic
        except ImportError:
            raise UsageError(f"a formula is read by formulaic, which is not installed: {install('statistics')}") from None
        self.text, self._error = text, formulaic.errors.FormulaicError
        try:
            self._parsed: Any = formulaic.Formula(without_bar(text))
        except (self._error, SyntaxError) as error:
            raise UsageError(f"formula {text!r}: {_line(error)}") from None
        if not hasattr(self._parsed, "lhs") or len(list(self._parsed.lhs)) != 1:
            raise UsageError(f"formula {text!r}: expected one outcome on its left, such as died ~ age + C(ward)")
        if not hasattr(self._parsed.rhs, "get_model_matrix"):
            raise UsageError(f"formula {text!r}: a bar or brackets make several stages of it; ask about one of them")
        self.outcome = str(self._parsed.lhs)

    def of(self, frame: nw.DataFrame[Any], asked: Asked, rows: Labels | None, counted: Places | None) -> Regression:
        used = frame.select(*self.list_needed(frame.columns))
        survey = ColumnSurvey("the frame", rows)
        for name in used.columns:
            gap = find_missing(used[name])
            if gap.any():
                row = int(gap.argmax())
                text = f"{int(gap.sum())}, the first in row {survey.call_row(row)}"
                raise BadInputError(f"missing values in {name} ({text}); fill them, or drop rows")
        n, numbers = len(used), inside(range(len(used)), counted)
        used = inside(used, counted)
        values, y = Values(self.outcome), self.outcomes(used, numbers)
        values.add(y, n)
        about = values.outcome(asked.outcome, asked.positive)
        right = self._matrix(self._parsed.rhs, used.to_pandas())
        points = finite(exact(right, np.float64, "the table"), list(right.columns), numbers)
        design, kept = of_columns(points, list(right.columns), right.model_spec)
        labels = numbers if rows is None else inside(rows, counted)
        points = scipy.sparse.csr_array(points[:, kept]) if design.sparse else points[:, kept]
        return Regression(design, points, about.codes(y), about, labels)

    def list_needed(self, columns: Sequence[str]) -> list[str]:
        absent = sorted({str(name) for name in self._parsed.required_variables} - set(columns))
        if absent:
            raise BadInputError(f"formula {self.text!r}: no column {', '.join(absent)}; the columns are {', '.join(columns)}")
        return _find_columns(self._parsed, self.text, columns)

    def regressors(self, columns: Sequence[str]) -> list[str]:
        return _find_columns(self._parsed.rhs, self.text.partition("~")[2], columns)

    def outcomes(self, frame: nw.DataFrame[Any], rows: Labels) -> NDArray[Any]:
        """Values (b,) of the left side: those of a column as they are, or of what is computed of columns."""
        if self.outcome in frame.columns:
            return flat(frame[self.outcome], self.outcome, rows)
        left = self._matrix(self._parsed.lhs, frame.to_pandas())
        self._require_rowwise(left.model_spec)
        chosen = [column for column in left.columns if column != INTERCEPT]
        if len(chosen) != 1:
            raise UsageError(f"formula {self.text!r}: its outcome {self.outcome} makes {len(chosen)} columns; name a column")
        return flat(left[chosen[0]].to_numpy(), self.outcome, rows)

    def in_parts(
        self, sample: nw.DataFrame[Any], variables: dict[str, Variable]
    ) -> tuple[Design, Callable[[nw.DataFrame[Any], Labels], Matrix]]:
        """The design, and what codes rows part after part, by the levels of all.

        Raises BadInputError for a formula that needs all rows together.
        """
        levels = {name: list(_levels(each)) for name, each in variables.items() if each.is_factor}
        right = self._matrix(self._parsed.rhs, _categorical(sample.select(*variables), levels))
        spec = right.model_spec
        self._require_rowwise(spec)
        for factor, (kind, _) in spec.encoder_state.items():
            if kind.name == "CATEGORICAL" and not set(levels) & {str(each) for each in spec.factor_variables[factor]}:
                raise BadInputError(
                    f"formula {self.text!r}: the levels of {factor} are numbers, and memory has room for a part of the rows: "
                    "write the column as text, or give more memory"
                )
        names = list(right.columns)
        ones = [names.index(INTERCEPT)] if INTERCEPT in names else []
        design, kept = of_columns(exact(right, np.float64, "the table"), names, spec, ones)

        def points(frame: nw.DataFrame[Any], rows: Labels) -> Matrix:
            used = _categorical(frame.select(*self.regressors(frame.columns)), levels)
            whole = exact(spec.get_model_matrix(used, na_action="ignore"), np.float64, "the table")
            some = finite(whole, names, rows)[:, kept]
            return scipy.sparse.csr_array(some) if design.sparse else some

        return design, points

    def _require_rowwise(self, spec: Any) -> None:
        if spec.transform_state:
            raise BadInputError(
                f"formula {self.text!r}: {', '.join(spec.transform_state)} looks at all rows, and memory has room for a part: "
                "compute it into a column, or give more memory"
            )

    def _matrix(self, side: Any, frame: Any) -> Any:
        try:
            return side.get_model_matrix(frame, na_action="ignore")
        except (self._error, ArithmeticError, LookupError, TypeError, ValueError) as error:  # whatever its functions raise
            raise BadInputError(f"formula {self.text!r}: {_line(error)}") from None


def without_bar(text: str) -> str:
    """Fixed effects behind a bar, ``y ~ x | f + g``, as categories. Raises UsageError for an offset, and for a second bar."""
    if _OFFSET.search(text):
        raise UsageError(f"formula {text!r}: an offset changes nothing about separation: leave it out")
    plain, *effects = re.split(r"\|(?![^(]*\))", text)
    if len(effects) > 1:
        raise UsageError(f"formula {text!r}: expected one bar, before fixed effects; instruments are another question")
    terms = [term.strip() for part in effects for term in part.split("+")]
    if not all(terms):
        raise UsageError(f"formula {text!r}: expected the names of fixed effects after the bar, f + g")
    coded = [":".join(f"C({name})" if _NAME.fullmatch(name) else name for name in term.split("^")) for term in terms]
    return " + ".join([plain, *coded])


def _find_columns(side: Any, text: str, columns: Sequence[str]) -> list[str]:
    """Columns that a side is about; formulaic leaves out those within transforms such as center, so words count, too."""
    names = {str(name) for name in side.required_variables} | set(_WORD.findall(text))
    return [name for name in columns if name in names]


def _levels(seen: Variable) -> list[Any]:
    if seen.kind == nw.Boolean:
        return [level == "True" for level in sorted(seen.levels)]
    return seen.in_order


def _categorical(frame: nw.DataFrame[Any], levels: dict[str, list[Any]]) -> Any:
    """A frame of pandas with the levels of all rows, also where some of them are not here."""
    import pandas

    found = frame.to_pandas()
    return found.assign(**{name: pandas.Categorical(found[name], each) for name, each in levels.items() if name in found})


def _line(error: Exception) -> str:
    return " ".join(_MARK.sub("", str(error)).split())
