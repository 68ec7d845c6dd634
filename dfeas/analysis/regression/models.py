"""Regressions by a formula of R, as formulaic knows it, of all rows or of parts of them; or by a model of statsmodels."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from dfeas.analysis.regression.design import (
    Column,
    ColumnSurvey,
    Design,
    Factor,
    Labels,
    Matrix,
    Places,
    Variable,
    dates_error,
    find_missing,
    inside,
)
from dfeas.analysis.regression.outcome import BOTH, Asked, Codes, Regression, Response, Values, find_weighted, flat, weightless
from dfeas.analysis.regression.thresholds import find_order, read_beside
from dfeas.data.storage.numbers import array_of, exact
from dfeas.errors import BadInputError, UsageError, either, install, spell
from dfeas.records import replace

KINDS = {"Logit": "binary", "Probit": "binary", "MNLogit": "multinomial", "Poisson": "poisson", "OrderedModel": "ordinal"}
KINDS |= {"ConditionalLogit": "conditional", "ConditionalPoisson": "poisson", "PHReg": "cox"}
"""What classes of models regress; a GLM does what its family says."""
OTHERS = {
    "GEE": "solves estimating equations and has no likelihood",
    "QIF": "solves estimating equations and has no likelihood",
    "_BayesMixedGLM": "has priors, by which its estimates are finite whatever the data",
    "PenalizedMixin": "has a penalty, by which its estimates may be finite where those of the likelihood are not",
}
"""Classes of models that ask something else, and why."""
LIKELIHOOD = {"loglike", "loglikeobs", "loglike_mu", "score", "score_obs", "cdf"}
"""What a class that has a likelihood of its own defines."""
PENALTY = ("penal", "penalty")
WEIGHTS = ("freq_weights", "var_weights", "n_trials")  # of a GLM
LINKS = {"Binomial": dict.fromkeys(("logit", "probit", "cloglog", "loglog", "cauchy"), "binary"), "Poisson": {"log": "poisson"}}
LINKS["Binomial"]["log"] = "log-binomial"
"""Links of families with which the likelihood has a maximum unless the points are separated."""


def is_model(X: Any) -> bool:
    """Whether it is a model, or what came of fitting one."""
    return all(hasattr(getattr(X, "model", X), name) for name in ("exog", "endog", "exog_names"))


def of_model(given: Any, outcome: str | None) -> Regression:
    """The regression of a model. Raises UsageError for one whose likelihood is another one than those that are known."""
    model = getattr(given, "model", given)
    kind, names = _kind_of(model), list(model.exog_names)[: model.exog.shape[1]]  # thresholds of an OrderedModel follow
    if outcome not in (None, kind):
        raise UsageError(f"outcome {outcome!r}: the model is {type(model).__name__}, whose outcome is {kind}")
    endog = array_of(model.endog, "the outcome")
    rows, n, kept = _rows(model, len(endog)), len(endog), None
    points = finite(exact(model.exog, np.float64, "the regressors"), names, rows)
    for name in ("offset", "exposure"):  # finite ones change nothing
        if getattr(model, name, None) is not None:
            finite(np.broadcast_to(exact(getattr(model, name), np.float64, name), n)[:, None], [name], rows)
    if _owner(model) == "GLM":
        kept = _in_likelihood(model, rows)
        endog = np.where(np.broadcast_to(model.n_trials, n) == 0, 0.0, endog)  # the share of no trials is not a number
    given = model.strata if kind == "cox" else model.groups if str(_owner(model)).startswith("Conditional") else None
    strata, times = read_beside(Asked(outcome=kind, strata=given, times=endog if kind == "cox" else None), rows)
    if strata is not None and kind != "cox":  # as statsmodels does, also for counts that are all the same and above 0
        kept = np.flatnonzero(np.array([np.ptp(endog[strata == each]) > 0 for each in range(strata.max() + 1)])[strata])
        strata = inside(strata, kept)
    endog, points, rows = inside(flat(endog, "y", rows), kept), inside(points, kept), inside(rows, kept)
    design, places = of_columns(points, names, _spec(model))
    about, codes = _outcome(model, kind, endog, n if strata is None else len(endog))
    if kind in ("binary", "log-binomial", "multinomial") and len(set(codes.tolist()) - {BOTH}) + 2 * (BOTH in codes) < 2:
        raise BadInputError(f"y: all rows are {about.classes[-1 if (codes > 0).all() else 0]}; two classes are needed")
    return Regression(design, points[:, places], codes, about, rows, strata, times)


def _outcome(model: Any, kind: str, endog: NDArray[Any], n: int) -> tuple[Response, Codes]:
    if kind == "multinomial":
        names = getattr(model, "_ynames_map", None) or {code: str(code) for code in range(int(endog.max()) + 1)}
        return Response(kind, tuple(str(names[code]) for code in sorted(names))), endog.astype(np.int64)
    if kind == "ordinal":
        labels, codes = tuple(map(str, model.labels)), endog.astype(np.int64)
        if len(labels) < 2 or len(set(codes.tolist())) < len(labels):
            raise BadInputError(f"y: expected rows of each of several categories, {', '.join(labels)}: leave out those without")
        if not np.isinf(model.distr.support()).all():
            raise UsageError("a model of class OrderedModel: expected a distribution on all numbers, such as logit or probit")
        return Response(kind, labels), codes
    if kind == "cox":
        return Response(kind, ("0", "1")), np.where(model.status == 1, 1, -1)
    if kind in ("binary", "log-binomial") and _owner(model) == "GLM":
        about = Response(kind, ("0", "1"), notes=weightless(n, len(endog)))
        return about, about.codes(endog)
    values = Values()
    values.add(endog, n)
    about = values.outcome(kind)
    return about, about.codes(endog)


def _rows(model: Any, n: int) -> list[Any]:
    data = getattr(model, "data", None)
    labels = getattr(data, "row_labels", None)
    if labels is not None:
        return list(labels)
    dropped = getattr(data, "missing_row_idx", [])
    return np.delete(np.arange(n + len(dropped)), dropped).tolist()


def _in_likelihood(model: Any, rows: list[Any]) -> Places | None:
    weights = [np.broadcast_to(getattr(model, name), len(rows)) for name in WEIGHTS]
    for name, each in zip(WEIGHTS, weights, strict=True):
        find_weighted(each, len(rows), f"{name} of the model", rows)
    return find_weighted(np.min(weights, axis=0), len(rows), "weights")


def _kind_of(model: Any) -> str:
    """What a model regresses, by its class, or its family and link. Raises UsageError for others. A class of a user's own is
    taken for the one of statsmodels whose likelihood it has.
    """
    bases = [base.__name__ if base.__module__.startswith("statsmodels.") else "" for base in type(model).__mro__]
    other = next((name for name in bases if name in OTHERS), None)
    if other is None and any(getattr(model, name, None) is not None for name in PENALTY):
        other = "PenalizedMixin"
    if other is not None:
        advice = "ask about the likelihood of a design and an outcome, check_separation(X, y)"
        raise UsageError(f"a model of class {type(model).__name__} {OTHERS[other]}: {advice}")
    owner = _owner(model)
    if owner == "GLM":
        return _kind_of_family(model.family)
    if owner not in KINDS:
        raise UsageError(f"a model of class {type(model).__name__}: expected {', '.join(KINDS)}, or GLM of Binomial or Poisson")
    if owner == "PHReg" and model.entry is not None and np.any(model.entry):
        raise UsageError("a model of class PHReg with entry times: expected rows at risk from the start, none truncated")
    return KINDS[owner]


def _owner(model: Any) -> str | None:
    """The class of statsmodels that defines the likelihood of a model; None where another one does."""
    for base in type(model).__mro__:
        if LIKELIHOOD & vars(base).keys():
            return base.__name__ if base.__module__.startswith("statsmodels.") else None
    return None


def _kind_of_family(family: Any) -> str:
    name, link = type(family).__name__, type(getattr(family, "link", None)).__name__
    kind = LINKS.get(name, {}).get(link.lower())
    if kind is None:
        what = f"{name} with link {link}"
        raise UsageError(f"a model of family {what}: expected Binomial ({', '.join(LINKS['Binomial'])}) or Poisson (log)")
    return kind


def finite(points: Matrix, names: list[Any], rows: Labels) -> Matrix:
    """The same. Raises BadInputError with the column of a value that is none, and the row."""
    bad = ~np.isfinite(points)
    if bad.any():
        row, place = np.argwhere(bad)[0]
        text = f"{int(bad[:, place].sum())} values are missing or infinite, the first in row {rows[row]}"
        raise BadInputError(f"column {names[place]}: {text}; fill them, or drop these rows")
    return points


def _spec(model: Any) -> Any:
    data = getattr(model, "data", None)
    owners = data, getattr(data, "orig_exog", None)
    found = (getattr(owner, name, None) for owner in owners for name in ("model_spec", "design_info"))
    return next((spec for spec in found if spec is not None), None)


def _levels(spec: Any) -> dict[str, list[str]]:
    contrasts = getattr(spec, "factor_contrasts", None)
    if contrasts:
        return {str(factor): [str(level) for level in state.levels] for factor, state in contrasts.items()}
    infos = getattr(spec, "factor_infos", None) or {}
    return {each.name(): [str(level) for level in info.categories] for each, info in infos.items() if info.categories}


def _code_columns(spec: Any, levels: dict[str, list[str]]) -> dict[str, Column]:
    found = dict[str, Column]()
    for term, places in (getattr(spec, "term_slices", None) or {}).items():
        names = list(spec.column_names)[places]
        factor = {each.name() if hasattr(each, "name") else str(each) for each in term.factors}
        for only in factor & levels.keys() if len(factor) == 1 else ():
            mark = "" if len(names) == len(levels[only]) else "T."  # by treatment coding one level has no column
            known = {f"{only}[{mark}{level}]": level for level in levels[only]}
            found |= {name: Column(name, only, known[name]) for name in names if name in known}
    return found


def of_columns(points: Matrix, names: list[Any], spec: Any, ones: Any = None, without: str = "\0") -> tuple[Design, list[int]]:
    """The design that columns (b, m) make, and the places of those that are not the intercept; a formula knows its factors. The
    intercept is the first of ``ones``, or of the columns that are constant; those that begin with ``without`` are left out.
    """
    terms = [place for place, name in enumerate(names) if not str(name).startswith(without)]
    if ones is None:
        ones = [place for place in terms if len(points) and points[0, place] != 0 and np.ptp(points[:, place]) == 0]
    kept = [place for place in terms if place not in ones[:1]]
    levels = _levels(spec)
    coded = _code_columns(spec, levels)
    columns = [coded.get(str(names[place]), Column(names[place], names[place])) for place in kept]
    factors = {}
    for term in dict.fromkeys(column.term for column in columns if column.level is not None):
        own = [column.level for column in columns if column.term == term]
        left = [level for level in levels[term] if level not in own]
        factors[term] = Factor(tuple(levels[term]), left[0] if len(left) == 1 else None)
    return Design(tuple(columns), factors, bool(ones)), kept


INTERCEPT = "Intercept"
DOT = "__formulaic_variables_available__"
"""Where formulaic looks for the columns that ``.`` stands for."""

_MARK = re.compile(r"\x1b\[[0-9;]*m|[⧛⧚]")
_WORD = re.compile(r"[^\W\d]\w*")
_FACTOR = re.compile(r"(?<![\w.`'\"])(as\.)?factor\(")
"""As R has it, where formulaic has C."""
_NAME = re.compile(r"\s*([^\W\d]\w*|`[^`]+`)\s*")
OFFSET, CONTEXT = "offset(", {"offset": lambda values: values}

_OF_NUMBERS = {"log", "log2", "log10", "log1p", "exp", "expm1", "sqrt", "abs"}
FUNCTIONS = {"C", "I", "Q", "poly", "bs", "cr", "cs", "cc", "te", "center", "scale", "standardize", "offset", "Surv", "strata"}
FUNCTIONS |= {"factor", "Treatment", "Sum", "Helmert", "Poly", "Diff", *_OF_NUMBERS}
OF_MODULES = {"np": _OF_NUMBERS, "contr": {"treatment", "SAS", "sum", "helmert", "diff", "poly"}}
"""What a formula may call: by itself, and of what stands under a name."""
_OPERATORS = ast.BinOp | ast.operator | ast.UnaryOp | ast.unaryop | ast.BoolOp | ast.boolop | ast.Compare | ast.cmpop
_NODES = ast.Expression | ast.Name | ast.Load | ast.Constant | ast.Call | ast.keyword | ast.List | ast.Tuple | _OPERATORS
"""Of Python, what a formula may be made of."""
MOST_BITS, MOST_POWER, MOST_COLUMNS = 4096, 9, 1000
"""Of a whole number, of terms (each power takes a product of all of them), and that one function makes of a column."""


class Formula:
    """What a formula says of outcome and terms."""

    def __init__(self, text: str, columns: Sequence[str] = (), trusted: bool = False) -> None:
        try:
            import formulaic
        except ImportError:
            raise UsageError(f"a formula is read by formulaic, which is not installed: {install('statistics')}") from None
        self.text, self._error = text, formulaic.errors.FormulaicError
        if text.lstrip().startswith("Surv("):
            of_cox = f"Surv(time, event) is of a Cox regression: check its separation with {spell('outcome', 'cox')}"
            raise UsageError(f"formula {text!r}: {of_cox}")
        try:
            if not trusted:
                require_no_code(without_bar(text))
            self._parsed: Any = formulaic.Formula(without_bar(text), _context={DOT: columns})
        except (self._error, SyntaxError) as error:
            raise UsageError(f"formula {text!r}: {_line(error)}") from None
        if not hasattr(self._parsed, "lhs") or len(list(self._parsed.lhs)) != 1:
            raise UsageError(f"formula {text!r}: expected one outcome on its left, such as died ~ age + C(ward)")
        if not hasattr(self._parsed.rhs, "get_model_matrix"):
            raise UsageError(f"formula {text!r}: a bar or brackets make several stages of it; ask about one of them")
        self.outcome = str(self._parsed.lhs)

    def of(self, frame: nw.DataFrame[Any], asked: Asked, rows: Labels | None, counted: Places | None) -> Regression:
        import scipy

        used = frame.select(*self.list_needed(frame.columns))
        survey = ColumnSurvey("the frame", rows)
        for name in used.columns:
            gap = find_missing(used[name])
            if gap.any():
                row = int(gap.argmax())
                text = f"{int(gap.sum())}, the first in row {survey.call_row(row)}"
                raise BadInputError(f"missing values in {name} ({text}); fill them, or say {spell('missing', 'drop')}")
        n, numbers = len(used), inside(range(len(used)), counted)
        used = inside(used, counted)
        order = find_order(used[self.outcome], asked) if self.outcome in used.columns else None
        values, y = Values(self.outcome, order), self.outcomes(used, numbers)
        values.add(y, n)
        about = values.outcome(asked.outcome, asked.positive)
        right = self._matrix(self._parsed.rhs, used.to_pandas())
        points = finite(exact(right, np.float64, "the table"), list(right.columns), numbers)
        design, kept = of_columns(points, list(right.columns), right.model_spec, without=OFFSET)
        labels = numbers if rows is None else inside(rows, counted)
        held = [place for place, name in enumerate(right.columns) if str(name).startswith(OFFSET)]
        offset = points[:, held].sum(axis=1) if held else None
        points = scipy.sparse.csr_array(points[:, kept]) if design.sparse else points[:, kept]
        if held:
            about = replace(about, notes=(*about.notes, "the offset is finite, and changes nothing about separation"))
        beside = read_beside(asked, range(n) if rows is None else rows, counted)
        return Regression(design, points, about.codes(y), about, labels, *beside, values=y, offset=offset)

    def list_needed(self, columns: Sequence[str]) -> list[str]:
        absent = sorted({str(name) for name in self._parsed.required_variables} - {*columns, *CONTEXT})
        if absent:
            hint = f" (name its column by {spell('strata', 'NAME')})" if absent == ["strata"] else ""
            kind = "function" if f"{absent[0]}(" in self.text else "column"
            raise BadInputError(
                f"formula {self.text!r}: no {kind} {', '.join(absent)}{hint}; the columns are {', '.join(columns)}"
            )
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
        """The design, and what codes rows part after part. Raises BadInputError for a formula that needs all rows together."""
        import scipy

        levels = {name: _order_levels(each) for name, each in variables.items() if each.is_factor}
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
        design, kept = of_columns(exact(right, np.float64, "the table"), names, spec, ones, OFFSET)

        def points(frame: nw.DataFrame[Any], rows: Labels) -> Matrix:
            used = _categorical(frame.select(*self.regressors(frame.columns)), levels)
            whole = exact(spec.get_model_matrix(used, CONTEXT, na_action="ignore"), np.float64, "the table")
            some = finite(whole, names, rows)[:, kept]
            return scipy.sparse.csr_array(some) if design.sparse else some

        return design, points

    def _require_rowwise(self, spec: Any) -> None:
        if states := [name for name in spec.transform_state if not name.startswith("Q(")]:  # which is a name with quotes
            raise BadInputError(
                f"formula {self.text!r}: {', '.join(states)} looks at all rows, and memory has room for a part: "
                "compute it into a column, or give more memory"
            )

    def _matrix(self, side: Any, frame: Any) -> Any:
        frame = frame.infer_objects()
        frame = frame.astype({name: object for name, kind in frame.dtypes.items() if kind == "string"})  # text for formulaic
        try:
            return side.get_model_matrix(frame, CONTEXT, na_action="ignore")
        except (self._error, ArithmeticError, LookupError, TypeError, ValueError) as error:  # whatever its functions raise
            dates = next((str(name) for name, kind in frame.dtypes.items() if getattr(kind, "kind", "") in ("M", "m")), None)
            if dates is not None and isinstance(error, TypeError | self._error):
                raise dates_error(dates, f"formula {self.text!r}") from None
            raise BadInputError(f"formula {self.text!r}: {_line(error)}") from None


def require_no_code(text: str) -> None:
    """Raise UsageError for a formula that is more than names, numbers, text, operators and functions of the list: as it will be
    evaluated, and before, since formulaic already calls functions to learn what a formula needs.
    """
    from formulaic.parser.algos.sanitize_tokens import sanitize_tokens
    from formulaic.parser.algos.tokenize import tokenize
    from formulaic.utils.code import sanitize_variable_names

    trusted, before = either("trust_formula=True", "--formula-code"), ""
    for token in sanitize_tokens(tokenize(text)):
        kind, piece = token.kind.value, token.token
        large = piece if before in ("**", "^") and kind == "value" and piece.isdigit() and int(piece) > MOST_POWER else None
        if kind == "python":
            tree = ast.parse(sanitize_variable_names(piece, {}, {}), mode="eval")
            found = _find_code(tree)
            if found is not None:
                raise UsageError(
                    f"formula {text!r}: {ast.unparse(found)} would run as code; expected names, numbers, text without quotes, "
                    f"operators, and functions such as C, I or log: compute it into a column, or trust the formula, {trusted}"
                )
            large = next((ast.unparse(node) for node in ast.walk(tree) if _is_large(node)), None)
        if large is not None:
            said = f"{large} may take more time and memory than there is"
            raise UsageError(f"formula {text!r}: {said}; give a smaller number, or trust the formula, {trusted}")
        before = piece


def _find_code(node: ast.AST) -> ast.AST | None:
    match node:
        case ast.Attribute(ast.Name(module), name) if name in OF_MODULES.get(module, ()):
            return None
        case ast.Call(ast.Name(name)) if name not in FUNCTIONS:
            return node
        case ast.Call(called) if not isinstance(called, ast.Name | ast.Attribute):
            return node
        case ast.Constant(str(value)) if {*value} & {*"'\"\\"}:  # formulaic puts calls between quotes, and does not escape them
            return node
        case ast.Constant(value) if not isinstance(value, str | int | float | None):
            return node
        case ast.Name(name) if name.startswith("__") and name.endswith("__"):
            return node
        case _ if not isinstance(node, _NODES):
            return node
    return next(filter(None, map(_find_code, ast.iter_child_nodes(node))), None)


def _is_large(node: ast.AST) -> bool:
    match node:
        case ast.BinOp():
            return _count_bits(node) > MOST_BITS
        case ast.Call(ast.Name("poly" | "bs" | "cr" | "cs" | "cc"), given, named):
            sizes = [*given[1:], *(each.value for each in named if each.arg in ("df", "degree"))]
            return any(MOST_COLUMNS.bit_length() < _count_bits(each) < math.inf for each in sizes)
    return False


def _count_bits(node: ast.AST) -> float:
    """At most, of what a piece makes of whole numbers of Python, which have no end; infinite of text and lists, which repeat.
    Columns, and fractions, have words of fixed lengths.
    """
    match node:
        case ast.Constant(int(value)):
            return value.bit_length()
        case ast.Constant(str()) | ast.List() | ast.Tuple():
            return math.inf
        case ast.BinOp(left, operator, right):
            first, second = _count_bits(left), _count_bits(right)
            if isinstance(operator, ast.Pow):
                return first * 2 ** min(second, 64)
            if isinstance(operator, ast.LShift):
                return first + 2 ** min(second, 64)
            return first + second if isinstance(operator, ast.Mult) else max(first, second) + 1
        case ast.Name() | ast.Call(ast.Name("Q")) | ast.Compare():  # what is compared is a piece, too
            return 0
    return max(map(_count_bits, ast.iter_child_nodes(node)), default=0)


def without_bar(text: str) -> str:
    """Fixed effects behind a bar, ``y ~ x | f + g``, and factors of R as categories. Raises UsageError for a second bar."""
    plain, *effects = re.split(r"\|(?![^(]*\))", _FACTOR.sub("C(", text))
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


def _order_levels(seen: Variable) -> list[Any]:
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
