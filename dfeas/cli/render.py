"""What commands print: a few lines for people, or one JSON object."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import numpy as np

from dfeas.analysis.predict import ClassPrediction, ConePrediction, Prediction
from dfeas.analysis.recheck import Recheck
from dfeas.cli.remote import RunStatus, Submitted
from dfeas.data.storage.layout import ConeTable
from dfeas.errors import visible
from dfeas.linalg.points import working
from dfeas.run.cost.plan import Plan
from dfeas.run.progress import aligned
from dfeas.verify.evidence import Check
from dfeas.verify.separation import Kind


def say(*lines: object, err: bool = False) -> None:
    """Print lines; ends of lines within one are shown as escapes."""
    for line in lines:
        click.echo(visible(str(line)), err=err)


MOST_CLASSES = 20
"""Classes that are printed with their points."""


def show_header(path: str, values: dict[str, Any], as_json: bool) -> None:
    """A dataset: the header that it was written with, or what is known of an array."""
    size = values["n"] * values["m"] * np.dtype(values["dtype"]).itemsize
    if (entries := values.get("entries")) is not None:
        index_size = 4 if values["m"] < 2**31 else 8
        size = entries * (np.dtype(values["dtype"]).itemsize + index_size) + 8 * values["n"]
    cones = values.get("cones")
    blocks = -(-values["n"] // values["block_rows"])
    most = values.get("block_entries")
    worked = working(np.dtype(values["dtype"])).name
    work = "" if worked == values["dtype"] else f" (worked on as {worked})"
    if as_json:
        say(json.dumps({"path": str(path), "bytes": size, "blocks": blocks, **values}))
        return
    say(f"{path}")
    what = "points" if cones is None else "rows"
    say(f"  {what:12} {values['n']} of {values['m']} features, {values['dtype']}{work}, {size / 1e9:.3g} GB")
    say(f"  blocks       {blocks} of {values['block_rows']} {what}")
    if cones is not None:
        say(f"  cones        {ConeTable.from_json(cones)}; rank {cones['rank']}")
    if entries is not None:
        say(f"  entries      {entries}, {entries / values['n'] / values['m']:.3g} of all; at most {most} in a block")
    if len(values["classes"]) > 2:
        say(f"  classes      {len(values['classes'])}: {_classes(values)}")
    elif values["classes"]:
        negative, positive = values["classes"]
        counts = f" ({values['n'] - values['positive']} and {values['positive']})" if "positive" in values else ""
        say(f"  classes      {negative} is -1, {positive} is +1{counts}")
    if "norm_min" in values:
        zero = "" if cones is not None else f", {values['zero']} zero points"
        say(f"  norms        {values['norm_min']:.6g} .. {values['norm_max']:.6g}{zero}")
    if values.get("generator"):
        say("  generated    " + ", ".join(f"{k} {v}" for k, v in values["generator"].items()))
    if values.get("notes"):
        say(f"  ingested     {'; '.join(values['notes'])}")
    say(f"  fingerprint  {values['fingerprint'] or 'computed when it is solved'}")


def _classes(values: dict[str, Any]) -> str:
    """The classes with their points, the first of many."""
    names, counts = values["classes"], values.get("counts") or [None] * len(values["classes"])
    said = [name if count is None else f"{name} ({count})" for name, count in zip(names, counts, strict=True)]
    return ", ".join(said[:MOST_CLASSES]) + (", ..." if len(said) > MOST_CLASSES else "")


def show_plan(data: str, found: Plan, as_json: bool) -> None:
    """What a run would cost."""
    if as_json:
        say(json.dumps(found.to_json()))
        return
    classes = f"; {found.classes} classes, each against the rest, on the same reads" if found.classes > 1 else ""
    what = f"rows of cones ({found.cones})" if found.cones else "points"
    say(f"{data}: {found.n} {what} of {found.m} features, {found.bytes / 1e9:.3g} GB{classes}")
    first, later = found.first_seconds, found.later_seconds
    say(
        f"a pass takes {_time(first)} ({found.bytes / first / 1e9:.2g} GB/s), a later one {_time(later)} "
        f"({found.bytes / later / 1e9:.2g} GB/s): measured now, {found.threads} threads"
    )
    if found.kernel:
        _show_products(found)
    elif found.later_bytes:
        say(f"memory keeps {(found.bytes - found.later_bytes) / 1e9:.2g} GB of the data: a later pass reads the rest")
    else:
        say("memory keeps the data: a later pass reads nothing from storage")
    say("")
    lines = [["method", "memory", "products" if found.kernel else "passes", "at most", "time"]]
    for e in found.estimates:
        remark = "; ".join(text for text in ("this is auto" if e.auto else "", e.remark) if text)
        memory = f"{e.memory_bytes / 1e9:.2f} GB"
        lines.append([e.method, memory, f"{e.passes:.4g}", _most(e.most_passes), _time(e.seconds), remark])
    say(*aligned(lines, 1))
    say("")
    if found.margin is None:
        say("passes and time as a relative gap of 1e-3 usually takes them; no theorem bounds them")
        return
    what = "products (of a working set: passes)" if found.kernel else "passes"
    say(
        f"{what} and time as they usually are, without the check; at most: by theorem, for a margin or |Ax| of {found.margin:g}"
    )


def _show_products(found: Plan) -> None:
    """What a product with the Gram matrix of all points takes."""
    values = found.n * (found.n + 1) / 2
    read = f"{found.product_bytes / 1e9:.3g} GB" if found.product_bytes else "nothing"
    say(
        f"{found.kernel}: a product with the Gram matrix evaluates {values:.3g} values, {_time(values * found.value_seconds)}, "
        f"and reads {read} from storage; the matrix, which is never stored, has {8 * found.n**2 / 1e9:.3g} GB"
    )


def _most(passes: float | None) -> str:
    """A bound, where a theorem has one."""
    return "-" if passes is None else f"{passes:.3g}"


def _time(seconds: float) -> str:
    """A length of time for people."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


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


def show_statuses(statuses: list[RunStatus], as_json: bool) -> None:
    """How far runs are, a line each."""
    if as_json:
        say(json.dumps([status.to_json() for status in statuses]))
        return
    for status in statuses:
        say(f"{status.run}: {_described(status)}")


def show_submitted(runs: list[Submitted], as_json: bool) -> None:
    """How submitted runs are, a line each."""
    if as_json:
        say(json.dumps([run.to_json() for run in runs]))
        return
    for run in runs:
        said = run.error if run.error else "not begun" if run.status is None else _described(run.status)
        say(f"{run.id}: {said}  (driver {run.task}, {run.out})")


def _described(status: RunStatus) -> str:
    parts = [status.verdict or status.state if status.state == "finished" else status.state]
    if status.passes is not None:
        margins = status.gap is None
        ends = f"margin {status.margin_lower:+.3e} .. {status.margin_upper:.3e}" if margins else f"gap {status.gap:.2e}"
        parts.append(f"pass {status.passes:.4g}, {ends}")
        parts.append(f"{status.seconds:.1f} s")
    if status.checkpoint_age is not None:
        parts.append(f"checkpoint {status.checkpoint_age:.0f} s old")
    return ", ".join(parts)
