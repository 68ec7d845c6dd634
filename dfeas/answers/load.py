"""``dfeas.load``: the object that a finished run returned, from its folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dfeas.answers.feasibility import Feasibility
from dfeas.answers.files import (
    CERTIFICATE,
    RACE,
    RESULT,
    SEPARATION,
    SOFT_MARGIN,
    SUSPECTS,
    TRACE,
    certificate_of,
    classes_of,
    load_result,
)
from dfeas.answers.hard_margin import MARGIN, HardMargin
from dfeas.answers.prediction.model import named_as_there
from dfeas.answers.result import Result
from dfeas.answers.separation import Separation
from dfeas.answers.several import OneVsRest, Race
from dfeas.answers.soft_margin import SoftMarginClasses, SoftMarginResult
from dfeas.answers.suspects import Suspects, load_suspects
from dfeas.answers.trace import Trace
from dfeas.answers.words import Proof, Stop, Verdict
from dfeas.data.storage import files
from dfeas.data.storage.files import COUNT, conform, read_json
from dfeas.data.storage.places import Place, place
from dfeas.display import parse_integer
from dfeas.errors import BadInputError, CorruptDataError

Loaded: TypeAlias = (
    Result | Race | OneVsRest | SoftMarginResult | SoftMarginClasses | HardMargin | Separation | Feasibility | Suspects
)


def load(run: str | Path) -> Loaded:
    """Read a finished run back.

    Parameters
    ----------
    run : path
        Folder of a run of ``dfeas.solve``, ``dfeas.race``, ``dfeas.soft_margin``, ``dfeas.hard_margin``,
        ``dfeas.separation``, ``dfeas.feasible`` or ``dfeas.suspects``; it may have been moved.

    Returns
    -------
    Result, Race, OneVsRest, SoftMarginResult, SoftMarginClasses, HardMargin, Separation, Feasibility or Suspects
        What the call returned, with its certificate, but without data that was in memory and without a function that was the
        kernel. ``path`` of a soft margin has only the chosen hyperplane.

    Raises
    ------
    BadInputError
        There is no finished run.
    CorruptDataError
        Its files are damaged.

    Examples
    --------
    >>> import dfeas
    >>> result = dfeas.solve([[1.0, 2.0], [-1.0, -1.0]], [1, -1], out="run")
    >>> dfeas.load("run").margin_lower == result.margin_lower
    True
    """
    folder = place(run)
    try:
        return _load_run(folder)
    except (TypeError, KeyError, ValueError, ArithmeticError) as error:
        if isinstance(error, BadInputError):
            raise
        raise CorruptDataError(f"{folder}: not a readable run: {error}") from None


def _load_run(folder: Place) -> Loaded:
    if (folder / SUSPECTS).is_file():
        return load_suspects(folder)
    if (folder / RACE).is_file():
        values = read_json(folder / RACE, {"reads": int | float, "results": {str: dict}}, "race", files.RACE)
        return Race({name: _result(folder / name) for name in values["results"]}, values["reads"])
    classes, values = classes_of(folder), load_result(folder, soft=True)
    soft = values.get("kind") == SOFT_MARGIN
    if classes is not None:
        whole = values["reads"], values["seconds"], values["fingerprint"]
        if soft:
            return SoftMarginClasses({name: _soft_margin(path) for name, path in classes.items()}, *whole)
        return OneVsRest({name: _result(path) for name, path in classes.items()}, *whole)
    if soft:
        return _soft_margin(folder)
    result = _result(folder)
    if "violated" in values:
        return _feasibility(result, values)
    if (folder / MARGIN).is_file():
        return _hard_margin(result, read_json(folder / MARGIN, {"fingerprint": str}, "margin", files.HARD_MARGIN))
    if (folder / SEPARATION).is_file():
        return _separation(result, read_json(folder / SEPARATION, {"proof": str}, "separation", files.SEPARATION))
    return result


def _result(folder: Place) -> Result:
    values = named_as_there(load_result(folder))
    certificate = certificate_of(folder, values)
    place = None if certificate is None else str(folder / CERTIFICATE)
    return Result.from_json(values, evidence=certificate, certificate=place, trace=Trace(folder / TRACE), loaded=True)


def _soft_margin(folder: Place) -> SoftMarginResult:
    values = named_as_there(load_result(folder, soft=True))
    certificate = certificate_of(folder, values)
    if certificate is None:
        raise CorruptDataError(f"{folder / CERTIFICATE}: missing, and the hyperplane is there")
    kept: dict[str, Any] = {"certificate": str(folder / CERTIFICATE), "view": certificate.view, "trace": Trace(folder / TRACE)}
    return SoftMarginResult.from_json(values, certificate.y, **kept)


def _hard_margin(result: Result, values: Mapping[str, Any]) -> HardMargin:
    known: dict[str, Any] = {each.name: values.get(each.name) for each in fields(HardMargin) if each.name != "result"}
    for name, kind in (("w", np.float64), ("support", np.int64), ("weights", np.float64)):
        known[name] = None if known[name] is None else np.array(known[name], kind)
    return HardMargin(result, **known)


def _feasibility(result: Result, values: Mapping[str, Any]) -> Feasibility:
    known: dict[str, Any] = {each.name: values.get(each.name) for each in fields(Feasibility) if each.name != "result"}
    conform(known["violated"], COUNT, "violated")
    for name in ("exact", "rows", "u", "v", "upper", "lower"):
        conform([] if known[name] is None else known[name], [object], name)
    parts, asked = ("A", "b", "equal", "bounds"), known["asked"] or {}
    conform(asked, {f"{name}?": str | list | None for name in parts})
    if more := [name for name in asked if name not in parts]:
        raise CorruptDataError(f"{RESULT}: asked has {more[0]!r}, which is no part of a system")
    kinds: dict[str, Callable[[Any], Any]] = dict.fromkeys(
        ("u", "v", "upper", "lower"), lambda each: [*map(parse_integer, each)]
    )
    kinds |= {
        "x": np.array,
        "exact": lambda each: [Fraction(*map(parse_integer, pair)) for pair in each],
        "rows": lambda each: np.array([*map(parse_integer, each)], np.int64),
    }
    known |= {name: make(known[name]) for name, make in kinds.items() if known[name] is not None}
    return Feasibility(**{**known, "verdict": Verdict(known["verdict"]), "proof": Proof(known["proof"]), "result": result})


def _separation(result: Result, values: Mapping[str, Any]) -> Separation:
    known: dict[str, Any] = {each.name: values.get(each.name) for each in fields(Separation) if each.name != "result"}
    for name in ("y", "weights"):
        known[name] = None if known[name] is None else [parse_integer(value) for value in known[name]]
    known["flat"] = [[parse_integer(value) for value in vector] for vector in known["flat"] or []]
    known["support"] = None if known["support"] is None else np.array(known["support"], np.int64)
    known["stopped"] = Stop(known["stopped"] or Stop.VERDICT)
    return Separation(**{**known, "proof": Proof(known["proof"]), "result": result})
