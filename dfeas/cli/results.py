"""How runs ended, and where their files are."""

from __future__ import annotations

import json
from math import isfinite
from pathlib import Path

from dfeas.analysis.hard_margin import HardMargin
from dfeas.analysis.hull import Hull
from dfeas.analysis.separation import Separation
from dfeas.cli.render import say
from dfeas.report.compare import VERDICTS, table
from dfeas.run.result_sets import OneVsRest, Race
from dfeas.run.results import Result
from dfeas.run.soft_margin.result import SoftMarginResult

SHOWN = 5
"""Points of a conflict that are printed."""


def show_result(result: Result, out: Path, as_json: bool) -> None:
    """How a run ended, and where its files are."""
    if as_json:
        say(json.dumps(result.to_json()))
        return
    say(f"verdict      {result.verdict} (proof: {result.proof})")
    say(f"             {result.message}")
    say(f"margin       {result.margin_lower:.6g} .. {result.margin_upper:.6g}")
    _show_cost(result)
    if result.conflicts:
        _show_conflicts(result)
    say(f"results      {out}")


def show_soft_margin(found: SoftMarginResult, out: Path, as_json: bool) -> None:
    """The hyperplane that was found, how good it is, and what was compared."""
    if as_json:
        say(json.dumps(found.to_json()))
        return
    known = (
        f"{found.objective:.9g}, the minimum is at least {found.lower:.9g}" if isfinite(found.objective) else "not known yet"
    )
    say(f"objective    {known}")
    say(f"             {found.message}")
    say(f"margin       {found.margin:.6g}, {found.support} points at it or beyond it, C = {found.C:g}, {found.loss}")
    if found.error is not None:
        say(f"error        {100 * found.error:.4g} % of all points are on the wrong side")
    if found.dual is not None:
        say(f"dual         {found.dual.support} variables above 0, worth {found.dual.value:.9g}: {found.dual.path}")
        say(f"             y is their combination of the points up to {found.dual.residual:.3g}")
    for entry in found.validation:
        mark = "  chosen" if entry.C == found.C else ""
        say(f"validation   C = {entry.C:g}: {100 * entry.error:.4g} % +- {100 * entry.deviation:.2g} %{mark}")
    _show_cost(found)
    say(f"results      {out}")


def show_hull(found: Hull, out: Path, as_json: bool) -> None:
    """Where a point is, and why."""
    if as_json:
        say(json.dumps(found.to_json()))
        return
    result = found.result
    where = {True: "inside the hull", False: "outside the hull", None: "not decided"}[found.inside]
    say(f"the point is {where} (proof: {found.proof})")
    if found.support is not None:
        exactly = "; weights that make it exactly exist on the same points" if found.inside and found.distance else ""
        say(f"             {len(found.support)} points make it, up to {found.distance:.3g}{exactly}")
    elif found.inside is False:
        say("             a hyperplane through it has all points on its positive side: y in certificate.npz")
    else:
        say(f"             {result.message}")
    say(f"margin       {result.margin_lower:.6g} .. {result.margin_upper:.6g}")
    _show_cost(result)
    say(f"results      {out}")


def show_hard_margin(found: HardMargin, out: Path, as_json: bool) -> None:
    """The maximum margin and its figures, before the result."""
    if as_json:
        say(json.dumps({"hard_margin": found.to_json(), **found.result.to_json()}))
        return
    if found.margin is not None and found.bias is not None and found.radius is not None:
        say(f"hyperplane   {found.margin:.6g} from the nearest point as stored, bias {found.bias:.6g} with the least score 1")
        say(f"             the longest point has length {found.radius:.6g}")
        if found.support is not None and found.leave_one_out is not None:
            share = f"leaving one point out errs on at most {100 * found.leave_one_out:.4g} %"
            say(f"support      {len(found.support)} points, weights in margin.json; {share}")
        say(f"bounds       {found.corrections:.4g} corrections of a perceptron, dimension {found.dimension}")
    show_result(found.result, out, as_json)


def show_separation(found: Separation, out: Path, as_json: bool) -> None:
    """Which of the three, before the result."""
    if as_json:
        say(json.dumps({"separation": found.to_json(), **found.result.to_json()}))
        return
    say(f"separation   {found.kind or 'not decided'} (proof: {found.proof})")
    say(f"             {found.message}")
    show_result(found.result, out, as_json)


def show_many(found: Race | OneVsRest, out: Path, as_json: bool) -> None:
    """How each method, or each class, ended, what was read for all, and where the files are."""
    if as_json:
        say(json.dumps(found.to_json()))
        return
    rows = [{"run": name, **{key: getattr(result, key) for key in VERDICTS.keys}} for name, result in found.results.items()]
    say(*table(rows))
    say(f"{found.reads:.4g} reads of the data for all of them")
    say(f"results      {out}")


def _show_cost(result: Result | SoftMarginResult) -> None:
    say(
        f"cost         {result.passes:.4g} passes of {result.method}, {result.reads:.4g} reads in all, "
        f"{result.bytes_read / 1e9:.3g} GB, {result.seconds:.2f} s"
    )


def _show_conflicts(result: Result) -> None:
    """The first points that conflict."""
    total = 0 if result.support is None else len(result.support)
    first = result.conflicts[:SHOWN]
    scored = first[0]["score"] is not None
    rest = f", {'the most suspect' if scored else 'the heaviest'} of them:" if total > len(first) else ":"
    say(f"conflict     {total} points that no hyperplane separates{rest}")
    for entry in first:
        score = f"  score {entry['score']:+.6f}" if scored else ""
        say(f"             point {entry['point']}  label {entry['label']}{score}  weight {entry['weight']:.6g}")
