"""What commands print: a few lines for people, or one JSON object. Results only; progress goes elsewhere."""

from __future__ import annotations

import json
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any

import click
import numpy as np

from dfeas.class_prediction import ClassPrediction
from dfeas.estimate import Plan
from dfeas.hard_margin import HardMargin
from dfeas.hull import Hull
from dfeas.kind import Kind
from dfeas.looking import Look
from dfeas.one_vs_rest import OneVsRest
from dfeas.passes.points import working
from dfeas.predicting import Prediction
from dfeas.racing import Race
from dfeas.rechecking import Recheck
from dfeas.report.compare import KEYS, table
from dfeas.result import Result
from dfeas.separation import Separation
from dfeas.soft_margin_result import SoftMarginResult
from dfeas.submitting import Submitted
from dfeas.table import aligned
from dfeas.verify import Check

MOST_CLASSES = 20
"""Classes that are printed with their points."""

SHOWN = 5
"""Points of a conflict that are printed."""


def show_header(path: str, values: dict[str, Any], as_json: bool) -> None:
    """A dataset: the header that it was written with, or what is known of an array."""
    size = values["n"] * values["m"] * np.dtype(values["dtype"]).itemsize
    if (entries := values.get("entries")) is not None:
        index_size = 4 if values["m"] < 2**31 else 8
        size = entries * (np.dtype(values["dtype"]).itemsize + index_size) + 8 * values["n"]
    blocks = -(-values["n"] // values["block_rows"])
    most = values.get("block_entries")
    worked = working(np.dtype(values["dtype"])).name
    work = "" if worked == values["dtype"] else f" (worked on as {worked})"
    if as_json:
        click.echo(json.dumps({"path": str(path), "bytes": size, "blocks": blocks, **values}))
        return
    click.echo(f"{path}")
    click.echo(f"  points       {values['n']} of {values['m']} features, {values['dtype']}{work}, {size / 1e9:.3g} GB")
    click.echo(f"  blocks       {blocks} of {values['block_rows']} points")
    if entries is not None:
        click.echo(f"  entries      {entries}, {entries / values['n'] / values['m']:.3g} of all; at most {most} in a block")
    if len(values["classes"]) > 2:
        click.echo(f"  classes      {len(values['classes'])}: {_classes(values)}")
    elif values["classes"]:
        negative, positive = values["classes"]
        counts = f" ({values['n'] - values['positive']} and {values['positive']})" if "positive" in values else ""
        click.echo(f"  classes      {negative} is -1, {positive} is +1{counts}")
    if "norm_min" in values:
        click.echo(f"  norms        {values['norm_min']:.6g} .. {values['norm_max']:.6g}, {values['zero']} zero points")
    if values.get("generator"):
        click.echo("  generated    " + ", ".join(f"{k} {v}" for k, v in values["generator"].items()))
    if values.get("notes"):
        click.echo(f"  ingested     {'; '.join(values['notes'])}")
    click.echo(f"  fingerprint  {values['fingerprint'] or 'computed when it is solved'}")


def _classes(values: dict[str, Any]) -> str:
    """The classes with their points, the first of many."""
    names, counts = values["classes"], values.get("counts") or [None] * len(values["classes"])
    said = [name if count is None else f"{name} ({count})" for name, count in zip(names, counts, strict=True)]
    return ", ".join(said[:MOST_CLASSES]) + (", ..." if len(said) > MOST_CLASSES else "")


def show_plan(data: str, found: Plan, as_json: bool) -> None:
    """What a run would cost."""
    if as_json:
        click.echo(json.dumps(found.to_json()))
        return
    click.echo(f"{data}: {found.n} points of {found.m} features, {found.bytes / 1e9:.3g} GB")
    first, later = found.first_seconds, found.later_seconds
    click.echo(
        f"a pass takes {_time(first)} ({found.bytes / first / 1e9:.2g} GB/s), a later one {_time(later)} "
        f"({found.bytes / later / 1e9:.2g} GB/s): measured now, {found.threads} threads"
    )
    if found.kernel:
        _show_products(found)
    elif found.later_bytes:
        click.echo(f"memory keeps {(found.bytes - found.later_bytes) / 1e9:.2g} GB of the data: a later pass reads the rest")
    else:
        click.echo("memory keeps the data: a later pass reads nothing from storage")
    click.echo("")
    lines = [["method", "memory", "products" if found.kernel else "passes", "at most", "time"]]
    for e in found.estimates:
        remark = "; ".join(text for text in ("this is auto" if e.auto else "", e.remark) if text)
        memory = f"{e.memory_bytes / 1e9:.2f} GB"
        lines.append([e.method, memory, f"{e.passes:.4g}", f"{e.most_passes:.3g}", _time(e.seconds), remark])
    click.echo("\n".join(aligned(lines, 1)))
    click.echo("")
    what = "products (of a working set: passes)" if found.kernel else "passes"
    click.echo(
        f"{what} and time as they usually are, without the check; at most: by theorem, for a margin or |Ax| of {found.margin:g}"
    )


def _show_products(found: Plan) -> None:
    """What a product with the Gram matrix of all points takes."""
    values = found.n * (found.n + 1) / 2
    read = f"{found.product_bytes / 1e9:.3g} GB" if found.product_bytes else "nothing"
    click.echo(
        f"{found.kernel}: a product with the Gram matrix evaluates {values:.3g} values, {_time(values * found.value_seconds)}, "
        f"and reads {read} from storage; the matrix, which is never stored, has {8 * found.n**2 / 1e9:.3g} GB"
    )


def _time(seconds: float) -> str:
    """A length of time for people."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


def show_result(result: Result, out: Path, as_json: bool) -> None:
    """How a run ended, and where its files are."""
    if as_json:
        click.echo(json.dumps(result.to_json()))
        return
    click.echo(f"verdict      {result.verdict} (proof: {result.proof})")
    click.echo(f"             {result.message}")
    click.echo(f"margin       {result.margin_lower:.6g} .. {result.margin_upper:.6g}")
    _show_cost(result)
    if result.conflicts:
        _show_conflicts(result)
    click.echo(f"results      {out}")


def show_soft_margin(found: SoftMarginResult, out: Path, as_json: bool) -> None:
    """The hyperplane that was found, how good it is, and what was compared."""
    if as_json:
        click.echo(json.dumps(found.to_json()))
        return
    known = (
        f"{found.objective:.9g}, the minimum is at least {found.lower:.9g}" if isfinite(found.objective) else "not known yet"
    )
    click.echo(f"objective    {known}")
    click.echo(f"             {found.message}")
    click.echo(f"margin       {found.margin:.6g}, {found.support} points at it or beyond it, C = {found.C:g}, {found.loss}")
    if found.error is not None:
        click.echo(f"error        {100 * found.error:.4g} % of all points are on the wrong side")
    for entry in found.validation:
        mark = "  chosen" if entry.C == found.C else ""
        click.echo(f"validation   C = {entry.C:g}: {100 * entry.error:.4g} % +- {100 * entry.deviation:.2g} %{mark}")
    _show_cost(found)
    click.echo(f"results      {out}")


def _show_cost(result: Result | SoftMarginResult) -> None:
    click.echo(
        f"cost         {result.passes:.4g} passes of {result.method}, {result.reads:.4g} reads in all, "
        f"{result.bytes_read / 1e9:.3g} GB, {result.seconds:.2f} s"
    )


def show_hull(found: Hull, out: Path, as_json: bool) -> None:
    """Where a point is, and why."""
    if as_json:
        click.echo(json.dumps(found.to_json()))
        return
    result = found.result
    where = {True: "inside the hull", False: "outside the hull", None: "not decided"}[found.inside]
    click.echo(f"the point is {where} (proof: {result.proof})")
    if found.support is not None:
        exactly = "; weights that make it exactly exist on the same points" if found.inside and found.distance else ""
        click.echo(f"             {len(found.support)} points make it, up to {found.distance:.3g}{exactly}")
    elif found.inside is False:
        click.echo("             a hyperplane through it has all points on its positive side: y in certificate.npz")
    else:
        click.echo(f"             {result.message}")
    click.echo(f"margin       {result.margin_lower:.6g} .. {result.margin_upper:.6g}")
    _show_cost(result)
    click.echo(f"results      {out}")


def show_hard_margin(found: HardMargin, out: Path, as_json: bool) -> None:
    """The maximum margin and its figures, before the result."""
    if as_json:
        click.echo(json.dumps({"hard_margin": found.to_json(), **found.result.to_json()}))
        return
    if found.margin is not None and found.bias is not None and found.radius is not None:
        click.echo(
            f"hyperplane   {found.margin:.6g} from the nearest point as stored, bias {found.bias:.6g} with the least score 1"
        )
        click.echo(f"             the longest point has length {found.radius:.6g}")
        if found.support is not None and found.leave_one_out is not None:
            share = f"leaving one point out errs on at most {100 * found.leave_one_out:.4g} %"
            click.echo(f"support      {len(found.support)} points, weights in margin.json; {share}")
        click.echo(f"bounds       {found.corrections:.4g} corrections of a perceptron, dimension {found.dimension}")
    show_result(found.result, out, as_json)


def show_separation(found: Separation, out: Path, as_json: bool) -> None:
    """Which of the three, before the result."""
    if as_json:
        click.echo(json.dumps({"separation": found.to_json(), **found.result.to_json()}))
        return
    click.echo(f"separation   {found.kind or 'not decided'} (proof: {found.proof})")
    click.echo(f"             {found.message}")
    show_result(found.result, out, as_json)


def show_prediction(found: Prediction, out: Path, as_json: bool) -> None:
    """How many points are of which class, and how that compares with their labels."""
    values = found.to_json()
    if as_json:
        click.echo(json.dumps(values))
        return
    click.echo("predicted    " + ", ".join(f"{count} are {name}" for name, count in values["predicted"].items()))
    if found.accuracy is not None and found.confusion is not None:
        click.echo(f"accuracy     {found.accuracy:.6g}")
        for name, counts in zip(found.classes, found.confusion, strict=True):
            said = ", ".join(f"{count} as {other}" for other, count in zip(found.classes, counts, strict=True))
            click.echo(f"             of label {name}: {said}")
    click.echo(f"scores       {out}")


def show_race(found: Race, out: Path, as_json: bool) -> None:
    """How each method ended, what was read for all, and where the files are."""
    if as_json:
        click.echo(json.dumps(found.to_json()))
        return
    results = found.results.items()
    rows = [{"run": name, **{key: getattr(result, key) for key in KEYS}} for name, result in results]
    click.echo("\n".join(table(rows)))
    click.echo(f"{found.reads:.4g} reads of the data for all of them")
    click.echo(f"results      {out}")


def show_classes(found: OneVsRest, out: Path, as_json: bool) -> None:
    """How each class ended, what was read for all, and where the files are."""
    if as_json:
        click.echo(json.dumps(found.to_json()))
        return
    rows = [{"run": name, **{key: getattr(result, key) for key in KEYS}} for name, result in found.results.items()]
    click.echo("\n".join(table(rows)))
    click.echo(f"{found.reads:.4g} reads of the data for all of them")
    click.echo(f"results      {out}")


def show_checks(checks: dict[str, Check | None], as_json: bool) -> None:
    """What was proved of each class."""
    if as_json:
        click.echo(json.dumps({name: None if check is None else asdict(check) for name, check in checks.items()}))
        return
    for name, check in checks.items():
        said = "nothing, it is undecided" if check is None else f"{check.verdict} ({check.proof}): {check.message}"
        click.echo(f"{name}: proved {said}")


def show_recheck(found: Recheck, out: Path | None, as_json: bool) -> None:
    """What holds of a run, and which points are on the wrong side of what does not."""
    if as_json:
        click.echo(json.dumps(found.to_json()))
        return
    for name, result in found.results.items():
        click.echo(f"{name + ': ' if name else ''}{result.verdict} holds (proof: {result.proof}): {result.message}")
    for name, points in found.refuted.items():
        which = f"class {name}: " if name else ""
        click.echo(f"{which}no longer separated: point {', '.join(map(str, points))} on the wrong side; solve again")
    click.echo(f"read         {found.reads:.3g} of the data, for {found.new_points} new points")
    if out is not None:
        click.echo(f"results      {out if found.holds else 'none written'}")


def show_class_prediction(found: ClassPrediction, out: Path, as_json: bool) -> None:
    """How many points are of which class, and how that compares with their labels."""
    values = found.to_json()
    if as_json:
        click.echo(json.dumps(values))
        return
    click.echo("predicted    " + ", ".join(f"{count} are {name}" for name, count in values["predicted"].items()))
    if found.accuracy is not None and found.confusion is not None:
        click.echo(f"accuracy     {found.accuracy:.6g}")
        if len(found.classes) <= MOST_CLASSES:
            rows = [[name, *map(str, counts)] for name, counts in zip(found.labels, found.confusion, strict=True)]
            click.echo("\n".join(aligned([["label \\ predicted", *found.classes], *rows], 1)))
    click.echo(f"classes      {out}")


def _show_conflicts(result: Result) -> None:
    """The first points that conflict."""
    total = 0 if result.support is None else len(result.support)
    first = result.conflicts[:SHOWN]
    scored = first[0]["score"] is not None
    rest = f", {'the most suspect' if scored else 'the heaviest'} of them:" if total > len(first) else ":"
    click.echo(f"conflict     {total} points that no hyperplane separates{rest}")
    for entry in first:
        score = f"  score {entry['score']:+.6f}" if scored else ""
        click.echo(f"             point {entry['point']}  label {entry['label']}{score}  weight {entry['weight']:.6g}")


def show_check(proved: Check, kind: Kind | None, as_json: bool) -> None:
    """What was proved, and of which kind the separation is, where that was asked."""
    if as_json:
        click.echo(json.dumps({**asdict(proved), **({} if kind is None else {"separation": asdict(kind)})}))
        return
    click.echo(f"proved       {proved.verdict} ({proved.proof})")
    click.echo(f"             {proved.message}")
    if kind is not None:
        click.echo(f"separation   {kind.kind} ({kind.proof})")


def show_looks(looks: list[Look], as_json: bool) -> None:
    """How far runs are, a line each."""
    if as_json:
        click.echo(json.dumps([found.to_json() for found in looks]))
        return
    for found in looks:
        click.echo(f"{found.run}: {_described(found)}")


def show_submitted(runs: list[Submitted], as_json: bool) -> None:
    """How submitted runs are, a line each."""
    if as_json:
        values = [{**run.__dict__, "look": None if run.look is None else run.look.to_json()} for run in runs]
        click.echo(json.dumps(values))
        return
    for run in runs:
        said = run.error if run.error else "not begun" if run.look is None else _described(run.look)
        click.echo(f"{run.id}: {said}  (driver {run.task}, {run.out})")


def _described(found: Look) -> str:
    """One line."""
    parts = [found.verdict or found.state if found.state == "finished" else found.state]
    if found.passes is not None:
        margins = found.gap is None
        ends = f"margin {found.margin_lower:+.3e} .. {found.margin_upper:.3e}" if margins else f"gap {found.gap:.2e}"
        parts.append(f"pass {found.passes:.4g}, {ends}")
        parts.append(f"{found.seconds:.1f} s")
    if found.checkpoint_age is not None:
        parts.append(f"checkpoint {found.checkpoint_age:.0f} s old")
    return ", ".join(parts)
