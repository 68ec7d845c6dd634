"""Lines that fit a model so that all estimates are finite, in Python and in R, into whose words formulas are translated."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Container
from itertools import chain
from typing import Any

from dfeas.analysis.regression.design import Design
from dfeas.analysis.regression.outcome import Asked, Response

_RESERVED = "TRUE|FALSE|NULL|NA|NaN|Inf|T|F|if|else|for|while|in|break|function|repeat|next"
_DOT, _PLAIN = re.compile(r"(?<![\w.])\.(?![\w.])"), re.compile(rf"(?!(?:{_RESERVED})$)[^\W\d_]\w*")
"""All other columns; a name that needs no quotes in R."""
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")
_PARTS = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|`([^`]+)`""")
"""Of Python in a formula: text, and names in backticks."""
_SIGNS = {"+": " + ", "-": " - ", "+-": " - ", "*": " * ", "/": " / ", ":": ":", "^": "^", "**": "^"}
"""Operators between terms."""
_OPERATORS: dict[type, str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "^"}
_OPERATORS |= {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_OF_NUMBERS = ("log", "log2", "log10", "log1p", "exp", "expm1", "sqrt", "abs")
_CALLS: dict[str, tuple[str, dict[str, str]]] = {name: (name, {}) for name in ("I", "offset", *_OF_NUMBERS)}
_CALLS |= {f"np.{name}": (name, {}) for name in _OF_NUMBERS}
_CALLS["poly"] = "poly", {"degree": "degree", "raw": "raw"}
_CALLS["bs"] = "splines::bs", {"df": "df", "knots": "knots", "degree": "degree", "include_intercept": "intercept"}
_CALLS["scale"] = "scale", {"center": "center", "scale": "scale"}
"""What R calls a function and its arguments by name."""


def find_fits(design: Design, outcome: Response, asked: Asked) -> dict[str, str]:
    """What fits the model so that all estimates are finite, by language. None of a model, whose table is not known, where
    rows have weights or strata, of other outcomes than these, and for true and false as text, which readers of files change.
    """
    if asked.y is None and asked.formula is None:
        return {}
    known = {str(each).lower() for each in outcome.lookup if isinstance(each, str)}
    if asked.weights is not None or asked.strata is not None or known == {"true", "false"}:
        return {}
    lines = {"R": _line_of_r(design, outcome, asked), "Python": _line_of_python(design, outcome, asked)}
    return {language: line for language, line in lines.items() if line}


def _line_of_python(design: Design, outcome: Response, asked: Asked) -> str:
    """The call whose values are literals: ``table`` and ``y`` are what was given."""
    if outcome.kind not in ("binary", "poisson"):
        return ""
    words: dict[str, Any] = {"outcome": asked.outcome} if asked.outcome else {}
    if asked.positive is not None:
        words["positive"] = next(value for value, code in outcome.lookup.items() if code == 1)
    if asked.formula is None and not asked.intercept:
        words["intercept"] = False
    words |= {"text": list(asked.text)} if len(asked.text) else {}
    words |= {"missing": asked.missing} if asked.missing == "drop" else {}
    words |= {"trust_formula": True} if asked.trust_formula else {}
    named = type(asked.y) in (str, int)
    gone, table = [*asked.without, *([asked.id] if asked.id else [])], "table"
    if gone and named:
        table = f"table[{[*design.terms, asked.y]!r}]"
    elif gone and _DOT.search(asked.formula or ""):
        table = f"dfeas.table(table, without={gone!r})"
    first = f"{table}, {asked.y!r}" if named else f"{asked.formula!r}, {table}" if asked.formula else "table, y"
    return f"dfeas.firth({', '.join([first, *(f'{name}={value!r}' for name, value in words.items())])})"


def _line_of_r(design: Design, outcome: Response, asked: Asked) -> str:
    """None where columns of a ``table`` have no names; nor where a name or text has characters that do not print, or a name has
    quotes; nor of a formula that says what R does not.
    """
    if outcome.kind not in ("binary", "poisson", "multinomial"):
        return ""
    one = next((value for value, code in outcome.lookup.items() if outcome.kind == "binary" and code == 1), None)
    text = {
        term for term, factor in design.factors.items() if term in asked.text and all(map(_NUMBER.fullmatch, factor.levels))
    }
    try:
        y, x = (_name(outcome.name), None) if asked.formula is None else _translate(asked.formula, text)
        if x is None:
            x = " + ".join(_term(name, text) for name in design.terms) + ("" if design.intercept else " + 0")
        if outcome.kind == "binary" and (isinstance(one, bool) or not {*outcome.lookup} <= {0, 1}):
            y = f"I(1 * ({y} == {_text(one) if isinstance(one, str) else _in_r(ast.Constant(one))}))"
    except (LookupError, ValueError):
        return ""
    if outcome.kind == "multinomial":
        return f"brglm2::brmultinom({y} ~ {x}, data = table)"
    family = {"binary": "binomial", "poisson": "poisson"}[outcome.kind]
    return f"glm({y} ~ {x}, family = {family}, data = table, method = brglm2::brglm_fit)"


def _name(text: Any) -> str:
    """A column as R writes it. Raises ValueError for a name that R does not take."""
    if not (isinstance(text, str) and text and text.isprintable()) or {*'`"\\'} & {*text}:
        raise ValueError(f"{text!r} is no name in R")
    return text if _PLAIN.fullmatch(text) else f"`{text}`"


def _text(value: str) -> str:
    if not value.isprintable():
        raise ValueError(f"{value!r} does not print")
    return json.dumps(value, ensure_ascii=False)


def _term(name: Any, text: Container[Any]) -> str:
    """A column as a term, as a factor where it is text that R reads as numbers."""
    return f"factor({_name(name)})" if name in text else _name(name)


def _translate(formula: str, text: Container[Any]) -> tuple[str, str | None]:
    """Both sides of a formula in R; None for a right one that stands for all other columns. Raises LookupError or ValueError
    where R has no such formula.
    """
    from formulaic.parser.algos.sanitize_tokens import sanitize_tokens
    from formulaic.parser.algos.tokenize import tokenize

    sides, every = [""], False
    for kind, piece in ((token.kind.value, token.token) for token in sanitize_tokens(tokenize(formula))):
        if piece == "~":
            sides.append("")
        elif (kind, piece) == ("operator", "."):
            every = True
        elif kind == "python":
            tree = ast.parse(_PARTS.sub(lambda found: found[1] or f"Q({json.dumps(found[2])})", piece), mode="eval").body
            sides[-1] += _in_r(tree) if isinstance(tree, ast.Call) else f"I({_in_r(tree)})"
        elif kind == "name":
            sides[-1] += _term(piece, text if len(sides) > 1 else ())
        elif kind == "operator":
            sides[-1] += _SIGNS[piece]
        elif kind == "value":
            sides[-1] += str(json.loads(piece))
        elif piece in ("(", ")"):
            sides[-1] += piece
        else:
            raise ValueError(f"{piece} is not of R")
    left, right = (side.strip() for side in sides)
    if every and {*"():*/^"} & {*right}:
        raise ValueError("all other columns within more than a sum")
    return left, None if every else right


def _in_r(node: ast.expr) -> str:
    """An expression of Python in R. Raises LookupError or ValueError for one that R may not have, or has in another sense."""

    def inner(part: ast.expr) -> str:
        return f"({_in_r(part)})" if isinstance(part, ast.BinOp | ast.UnaryOp | ast.Compare) else _in_r(part)

    match node:
        case ast.Name(name):
            return _name(name)
        case ast.Constant(bool(value)):
            return str(value).upper()
        case ast.Constant(str(value)) if value.isprintable():
            return _text(value) if {*"'\\"} & {*value} else f"'{value}'"
        case ast.Constant(int(value) | float(value)) if abs(value) < 1 << 53:
            return repr(value)
        case ast.List(items) | ast.Tuple(items):
            return f"c({', '.join(map(_in_r, items))})"
        case ast.UnaryOp(ast.USub(), part):
            return f"-{inner(part)}"
        case ast.BinOp(left, sign, right) | ast.Compare(left, [sign], [right]):
            return f"{inner(left)} {_OPERATORS[type(sign)]} {inner(right)}"
        case ast.Call(ast.Name("Q"), [ast.Constant(name)], []):
            return _name(name)
        case ast.Call(ast.Name("center"), [values], []):
            return f"scale({_in_r(values)}, scale = FALSE)"
        case ast.Call(ast.Name("C"), [values, *coding], words) if len(coding) < 2:
            return _factor(values, {word.arg: word.value for word in words} | dict(zip(["contrasts"], coding, strict=False)))
        case ast.Call(called, given, words) if given and not any(isinstance(each, ast.Starred) for each in given):
            name, arguments = _CALLS[ast.unparse(called)]
            named = [*zip(arguments, given[1:], strict=False), *((word.arg or "", word.value) for word in words)]
            if len(given) <= 1 + len(arguments):
                more = (f"{arguments[word]} = {_in_r(value)}" for word, value in named)
                return f"{name}({', '.join(chain([_in_r(given[0])], more))})"
    raise ValueError(f"{ast.unparse(node)} is not of R")


def _factor(values: ast.expr, words: dict[str | None, ast.expr]) -> str:
    """A column as a factor in R, by treatment coding. Raises ValueError for another one."""
    levels, coding = words.pop("levels", None), words.pop("contrasts", None)
    factor = f"factor({_in_r(values)}{'' if levels is None else f', levels = {_in_r(levels)}'})"
    base = list[ast.expr]()
    if isinstance(coding, ast.Call):
        base, coding = [*coding.args, *(word.value for word in coding.keywords)], coding.func
    if words or (coding is not None and ast.unparse(coding) not in ("Treatment", "contr.treatment")):
        raise ValueError("another coding")
    match base:
        case []:
            return factor
        case [ast.Constant(str(level) | int(level))] if not isinstance(level, bool):
            return f"relevel({factor}, ref = {_text(str(level))})"
    raise ValueError("a level that R calls by another name")
