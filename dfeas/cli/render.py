"""What commands print: the lines of an answer for people, or one JSON object."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from dfeas.analysis.hard_margin import HardMargin
from dfeas.analysis.hull import Hull
from dfeas.analysis.separation import Separation
from dfeas.analysis.verify import Checks
from dfeas.cli.answer import put
from dfeas.display import Row
from dfeas.geometry.prediction import ClassPrediction, ConePrediction, Prediction
from dfeas.run.results import Result
from dfeas.run.soft_margin.result import SoftMarginClasses, SoftMarginResult
from dfeas.run.verdict import OneVsRest, Race
from dfeas.verify.certificate import Check

Answer = Result | SoftMarginResult | Hull | HardMargin | Separation | Race | OneVsRest | SoftMarginClasses


def show(answer: Answer, out: Path, as_json: bool) -> None:
    """How a run ended, and where its files are."""
    if isinstance(answer, SoftMarginClasses):
        put({name: result.to_json() for name, result in answer.results.items()}, answer, as_json, Row("results", str(out)))
        return
    values = answer.to_json()
    if isinstance(answer, HardMargin | Separation):
        name = "hard_margin" if isinstance(answer, HardMargin) else "separation"
        values = {name: values, **answer.result.to_json()}
    put(values, answer, as_json, Row("results", str(out)))


def show_check(check: Check, as_json: bool) -> None:
    """What was proved, and what was not."""
    put(asdict(check), check, as_json)


def show_checks(checks: Checks, as_json: bool) -> None:
    """What was proved of each class."""
    put({name: None if check is None else asdict(check) for name, check in checks.items()}, checks, as_json)


def show_prediction(prediction: Prediction | ClassPrediction | ConePrediction, out: Path, as_json: bool) -> None:
    """How many points are of which class, and how that compares with their labels; of cones, how many hold A*y."""
    words = {ConePrediction: "eigenvalues", ClassPrediction: "classes", Prediction: "scores"}
    put(prediction.to_json(), prediction, as_json, Row(words[type(prediction)], str(out)))
