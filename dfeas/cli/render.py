"""What commands print: a few lines for people, or one JSON object."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import click

from dfeas.analysis.hard_margin import HardMargin
from dfeas.analysis.hull import Hull
from dfeas.analysis.info import Info
from dfeas.analysis.recheck import Recheck
from dfeas.analysis.separation import Separation
from dfeas.cli.remote import RunStatus, Submitted
from dfeas.errors import format_bytes, visible
from dfeas.geometry.cones.space import ConePrediction
from dfeas.geometry.points import ClassPrediction, Prediction
from dfeas.report.compare import VERDICTS, table
from dfeas.run.cost import Plan
from dfeas.run.progress import aligned
from dfeas.run.results import Result
from dfeas.run.soft_margin.result import SoftMarginResult
from dfeas.run.verdict import OneVsRest, Race
from dfeas.verify.certificate import Check
from dfeas.verify.separation import Kind

Answer = Result | SoftMarginResult | Hull | HardMargin | Separation | Race | OneVsRest

MOST_CLASSES = 20
"""Classes that are printed with their points."""
MOST_CONFLICTS = 5
"""Points of a conflict that are printed."""


COLOURS = {"feasible": "green", "infeasible": "red", "eps-infeasible": "red", "undecided": "yellow"}
"""Of verdicts."""


@dataclass(frozen=True)
class Coloured:
    """A line whose verdict has a colour on a terminal."""

    head: str
    verdict: str
    tail: str

    def __str__(self) -> str:
        return f"{self.head}{self.verdict}{self.tail}"

    @property
    def shown(self) -> str:
        """With the codes of the colour, which what is no terminal does not get."""
        word = click.style(visible(self.verdict), fg=COLOURS.get(self.verdict), bold=True)
        return f"{visible(self.head)}{word}{visible(self.tail)}"


def say(*lines: object, err: bool = False) -> None:
    """Print lines; ends of lines within one are shown as escapes."""
    for line in lines:
        click.echo(line.shown if isinstance(line, Coloured) else visible(str(line)), err=err)


def put(values: Any, lines: Iterable[object], as_json: bool) -> None:
    """Print values as one JSON object, or lines that say the same."""
    say(*([json.dumps(values)] if as_json else lines))


def show(answer: Answer, out: Path, as_json: bool) -> None:
    """How a run ended, and where its files are."""
    values = answer.to_json()
    if isinstance(answer, HardMargin | Separation):
        name = "hard_margin" if isinstance(answer, HardMargin) else "separation"
        values = {name: values, **answer.result.to_json()}
    put(values, (*_LINES[type(answer)](answer), f"results      {out}"), as_json)


def _verdict(result: Result) -> Iterator[object]:
    yield Coloured("verdict      ", result.verdict, f" (proof: {result.proof})")
    yield f"             {result.message}"
    yield f"margin       {result.margin_lower:.6g} .. {result.margin_upper:.6g}"
    yield _cost(result)
    if not result.conflicts:
        return
    total, first = 0 if result.support is None else len(result.support), result.conflicts[:MOST_CONFLICTS]
    scored = first[0]["score"] is not None
    rest = f", {'the most suspect' if scored else 'the heaviest'} of them:" if total > len(first) else ":"
    yield f"conflict     {total} points that no hyperplane separates{rest}"
    for entry in first:
        score = f"  score {entry['score']:+.6f}" if scored else ""
        yield f"             point {entry['point']}  label {entry['label']}{score}  weight {entry['weight']:.6g}"


def _cost(result: Result | SoftMarginResult) -> str:
    return (
        f"cost         {result.passes:.4g} passes of {result.method}, {result.reads:.4g} reads in all, "
        f"{format_bytes(result.bytes_read)}, {result.seconds:.2f} s"
    )


def _soft_margin(result: SoftMarginResult) -> Iterator[str]:
    """The hyperplane, how good it is, and what was compared."""
    ends = f"{result.objective:.9g}, the minimum is at least {result.lower:.9g}"
    yield f"objective    {ends if isfinite(result.objective) else 'not known yet'}"
    yield f"             {result.message}"
    yield f"margin       {result.margin:.6g}, {result.support} points at it or beyond it, C = {result.C:g}, {result.loss}"
    if result.error is not None:
        yield f"error        {100 * result.error:.4g} % of all points are on the wrong side"
    if result.dual is not None:
        yield f"dual         {result.dual.support} variables above 0, worth {result.dual.value:.9g}: {result.dual.path}"
        yield f"             y is their combination of the points up to {result.dual.residual:.3g}"
    for entry in result.validation:
        mark = "  chosen" if entry.C == result.C else ""
        yield f"validation   C = {entry.C:g}: {100 * entry.error:.4g} % +- {100 * entry.deviation:.2g} %{mark}"
    yield _cost(result)


def _hull(hull: Hull) -> Iterator[str]:
    """Where a point is, and why."""
    result = hull.result
    where = {True: "inside the hull", False: "outside the hull", None: "not decided"}[hull.inside]
    yield f"the point is {where} (proof: {hull.proof})"
    if hull.support is not None:
        exactly = "; weights that make it exactly exist on the same points" if hull.inside and hull.distance else ""
        yield f"             {len(hull.support)} points make it, up to {hull.distance:.3g}{exactly}"
    elif hull.inside is False:
        yield "             a hyperplane through it has all points on its positive side: y in certificate.npz"
    else:
        yield f"             {result.message}"
    yield f"margin       {result.margin_lower:.6g} .. {result.margin_upper:.6g}"
    yield _cost(result)


def _hard_margin(answer: HardMargin) -> Iterator[object]:
    """The result, and the maximum margin with its figures."""
    yield from _verdict(answer.result)
    if answer.margin is not None and answer.bias is not None and answer.radius is not None:
        bias = f"bias {answer.bias:.6g} with the least score 1"
        yield f"hyperplane   {answer.margin:.6g} from the nearest point as stored, {bias}"
        yield f"             the longest point has length {answer.radius:.6g}"
        if answer.support is not None and answer.leave_one_out is not None:
            share = f"leaving one point out errs on at most {100 * answer.leave_one_out:.4g} %"
            yield f"support      {len(answer.support)} points, weights in margin.json; {share}"
        yield f"bounds       {answer.corrections:.4g} corrections of a perceptron, dimension {answer.dimension}"


def _separation(answer: Separation) -> Iterator[object]:
    """Which of the three, before the result."""
    yield f"separation   {answer.kind or 'not decided'} (proof: {answer.proof})"
    yield f"             {answer.message}"
    yield from _verdict(answer.result)


def _several(answer: Race | OneVsRest) -> Iterator[str]:
    """How each method, or each class, ended, and what was read for all."""
    yield from table([VERDICTS.row(name, Path(), vars(result)) for name, result in answer.results.items()])
    yield f"{answer.reads:.4g} reads of the data for all of them"


_LINES: Mapping[type, Callable[[Any], Iterator[object]]] = {
    Result: _verdict,
    SoftMarginResult: _soft_margin,
    Hull: _hull,
    HardMargin: _hard_margin,
    Separation: _separation,
    Race: _several,
    OneVsRest: _several,
}


def show_info(found: Info, as_json: bool) -> None:
    """A dataset: the header that it was written with, or what is known of an array."""
    put(found.to_json(), str(found).splitlines(), as_json)


def show_plan(data: str, plan: Plan, as_json: bool) -> None:
    """What a run would cost."""
    put(plan.to_json(), _plan(data, plan), as_json)


def _plan(data: str, plan: Plan) -> Iterator[str]:
    classes = f"; {plan.classes} classes, each against the rest, on the same reads" if plan.classes > 1 else ""
    what = f"rows of cones ({plan.cones})" if plan.cones else "points"
    yield f"{data}: {plan.n} {what} of {plan.m} features, {format_bytes(plan.bytes)}{classes}"
    first, later = plan.first_seconds, plan.later_seconds
    yield (
        f"a pass takes {_time(first)} ({format_bytes(plan.bytes / first)}/s), a later one {_time(later)} "
        f"({format_bytes(plan.bytes / later)}/s): measured now, {plan.threads} threads"
    )
    if plan.kernel:
        yield _products(plan)
    elif plan.later_bytes:
        yield f"memory keeps {format_bytes(plan.bytes - plan.later_bytes)} of the data: a later pass reads the rest"
    else:
        yield "memory keeps the data: a later pass reads nothing from storage"
    yield ""
    lines = [["method", "memory", "products" if plan.kernel else "passes", "at most", "time"]]
    for e in plan.estimates:
        remark = "; ".join(text for text in ("this is auto" if e.auto else "", e.remark) if text)
        most = "-" if e.most_passes is None else f"{e.most_passes:.3g}"
        lines.append([e.method, format_bytes(e.memory_bytes), f"{e.passes:.4g}", most, _time(e.seconds), remark])
    yield from aligned(lines, 1)
    yield ""
    if plan.margin is None:
        yield "passes and time as a relative gap of 1e-3 usually takes them; no theorem bounds them"
        return
    what = "products (of a working set: passes)" if plan.kernel else "passes"
    bound = f"at most: by theorem, for a margin or |Ax| of {plan.margin:g}"
    yield f"{what} and time as they usually are, without the check; {bound}"


def _products(plan: Plan) -> str:
    """What a product with the Gram matrix of all points takes."""
    values = plan.n * (plan.n + 1) / 2
    read = format_bytes(plan.product_bytes) if plan.product_bytes else "nothing"
    return (
        f"{plan.kernel}: a product with the Gram matrix evaluates {values:.3g} values, {_time(values * plan.value_seconds)}, "
        f"and reads {read} from storage; the matrix, which is never stored, has {format_bytes(8 * plan.n**2)}"
    )


def _time(seconds: float) -> str:
    """A length of time for people."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"


def show_check(check: Check, kind: Kind | None, as_json: bool) -> None:
    """What was proved, and of which kind the separation is, where that was asked."""
    lines: list[object] = [Coloured("proved       ", check.verdict, f" ({check.proof})"), f"             {check.message}"]
    lines += [] if kind is None else [f"separation   {kind.kind} ({kind.proof})"]
    put({**asdict(check), **({} if kind is None else {"separation": asdict(kind)})}, lines, as_json)


def show_checks(checks: dict[str, Check | None], as_json: bool) -> None:
    """What was proved of each class."""
    values, lines = {}, []
    for name, check in checks.items():
        values[name] = None if check is None else asdict(check)
        said = "nothing, it is undecided" if check is None else f"{check.verdict} ({check.proof}): {check.message}"
        lines.append(f"{name}: proved {said}")
    put(values, lines, as_json)


def show_recheck(recheck: Recheck, out: Path | None, as_json: bool) -> None:
    """What holds of a run, and which points are on the wrong side of what does not."""
    put(recheck.to_json(), _rechecked(recheck, out), as_json)


def _rechecked(recheck: Recheck, out: Path | None) -> Iterator[str]:
    for name, result in recheck.results.items():
        yield f"{name + ': ' if name else ''}{result.verdict} holds (proof: {result.proof}): {result.message}"
    for name, points in recheck.refuted.items():
        which = f"class {name}: " if name else ""
        yield f"{which}no longer separated: {recheck.named} {', '.join(map(str, points))} on the wrong side; solve again"
    yield f"read         {recheck.reads:.3g} of the data, for {recheck.new_points} new {recheck.rows}"
    if out is not None:
        yield f"results      {out if recheck.holds else 'none written'}"


def show_prediction(prediction: Prediction | ClassPrediction | ConePrediction, out: Path, as_json: bool) -> None:
    """How many points are of which class, and how that compares with their labels; of cones, how many hold A*y."""
    values = prediction.to_json()
    lines = _cones(prediction, out) if isinstance(prediction, ConePrediction) else _points(prediction, values["predicted"], out)
    put(values, lines, as_json)


def _cones(prediction: ConePrediction, out: Path) -> Iterator[str]:
    count = len(prediction.least)
    yield f"cones        {count - prediction.outside} of {count} have A*y in their interior"
    yield f"critical     {', '.join(map(str, prediction.critical))}"
    yield f"eigenvalues  {out}"


def _points(prediction: Prediction | ClassPrediction, counts: dict[str, int], out: Path) -> Iterator[str]:
    yield "predicted    " + ", ".join(f"{count} are {name}" for name, count in counts.items())
    many = isinstance(prediction, ClassPrediction)
    if prediction.accuracy is not None and prediction.confusion is not None:
        yield f"accuracy     {prediction.accuracy:.6g}"
        if len(prediction.classes) <= MOST_CLASSES:
            labels = prediction.labels if isinstance(prediction, ClassPrediction) else prediction.classes
            rows = [[name, *map(str, counts)] for name, counts in zip(labels, prediction.confusion, strict=True)]
            yield from aligned([["label \\ predicted", *prediction.classes], *rows], 1)
    yield f"{'classes' if many else 'scores '}      {out}"


def show_statuses(statuses: list[RunStatus], as_json: bool) -> None:
    """How far runs are, a line each."""
    put([status.to_json() for status in statuses], [f"{each.run}: {_described(each)}" for each in statuses], as_json)


def show_submitted(runs: list[Submitted], as_json: bool) -> None:
    """How submitted runs are, a line each."""
    lines = []
    for run in runs:
        said = run.error if run.error else "not begun" if run.status is None else _described(run.status)
        lines.append(f"{run.id}: {said}  (driver {run.task}, {run.out})")
    put([run.to_json() for run in runs], lines, as_json)


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
