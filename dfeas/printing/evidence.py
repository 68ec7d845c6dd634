"""What checks proved, and what became of predictions."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from dfeas.class_prediction import ClassPrediction
from dfeas.cone_prediction import ConePrediction
from dfeas.kind import Kind
from dfeas.predicting import Prediction
from dfeas.printing.lines import say
from dfeas.rechecking import Recheck
from dfeas.table import aligned
from dfeas.verify import Check

MOST_CLASSES = 20
"""Classes whose confusion is printed."""


def show_check(proved: Check, kind: Kind | None, as_json: bool) -> None:
    """What was proved, and of which kind the separation is, where that was asked."""
    if as_json:
        say(json.dumps({**asdict(proved), **({} if kind is None else {"separation": asdict(kind)})}))
        return
    say(f"proved       {proved.verdict} ({proved.proof})")
    say(f"             {proved.message}")
    if kind is not None:
        say(f"separation   {kind.kind} ({kind.proof})")


def show_checks(checks: dict[str, Check | None], as_json: bool) -> None:
    """What was proved of each class."""
    if as_json:
        say(json.dumps({name: None if check is None else asdict(check) for name, check in checks.items()}))
        return
    for name, check in checks.items():
        said = "nothing, it is undecided" if check is None else f"{check.verdict} ({check.proof}): {check.message}"
        say(f"{name}: proved {said}")


def show_recheck(found: Recheck, out: Path | None, as_json: bool) -> None:
    """What holds of a run, and which points are on the wrong side of what does not."""
    if as_json:
        say(json.dumps(found.to_json()))
        return
    for name, result in found.results.items():
        say(f"{name + ': ' if name else ''}{result.verdict} holds (proof: {result.proof}): {result.message}")
    for name, points in found.refuted.items():
        which = f"class {name}: " if name else ""
        say(f"{which}no longer separated: {found.named} {', '.join(map(str, points))} on the wrong side; solve again")
    rows = "points" if found.named == "point" else "rows"
    say(f"read         {found.reads:.3g} of the data, for {found.new_points} new {rows}")
    if out is not None:
        say(f"results      {out if found.holds else 'none written'}")


def show_prediction(found: Prediction | ClassPrediction | ConePrediction, out: Path, as_json: bool) -> None:
    """How many points are of which class, and how that compares with their labels; of cones, how many hold A*y."""
    values = found.to_json()
    if as_json:
        say(json.dumps(values))
        return
    if isinstance(found, ConePrediction):
        count = len(found.least)
        say(f"cones        {count - found.outside} of {count} have A*y in their interior")
        say(f"critical     {', '.join(map(str, found.critical))}")
        say(f"eigenvalues  {out}")
        return
    say("predicted    " + ", ".join(f"{count} are {name}" for name, count in values["predicted"].items()))
    classes = isinstance(found, ClassPrediction)
    if found.accuracy is not None and found.confusion is not None:
        say(f"accuracy     {found.accuracy:.6g}")
        if len(found.classes) <= MOST_CLASSES:
            labels = found.labels if isinstance(found, ClassPrediction) else found.classes
            rows = [[name, *map(str, counts)] for name, counts in zip(labels, found.confusion, strict=True)]
            say(*aligned([["label \\ predicted", *found.classes], *rows], 1))
    say(f"{'classes' if classes else 'scores '}      {out}")
