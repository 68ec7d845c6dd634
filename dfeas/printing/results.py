"""How runs ended, and where their files are."""

from __future__ import annotations

import json
from math import isfinite
from pathlib import Path

import click

from dfeas.hard_margin import HardMargin
from dfeas.hull import Hull
from dfeas.one_vs_rest import OneVsRest
from dfeas.racing import Race
from dfeas.report.compare import KEYS, table
from dfeas.result import Result
from dfeas.separation import Separation
from dfeas.soft_margin_result import SoftMarginResult

SHOWN = 5
"""Points of a conflict that are printed."""


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
    if found.dual is not None:
        click.echo(f"dual         {found.dual.support} variables above 0, worth {found.dual.value:.9g}: {found.dual.path}")
        click.echo(f"             y is their combination of the points up to {found.dual.residual:.3g}")
    for entry in found.validation:
        mark = "  chosen" if entry.C == found.C else ""
        click.echo(f"validation   C = {entry.C:g}: {100 * entry.error:.4g} % +- {100 * entry.deviation:.2g} %{mark}")
    _show_cost(found)
    click.echo(f"results      {out}")


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


def show_many(found: Race | OneVsRest, out: Path, as_json: bool) -> None:
    """How each method, or each class, ended, what was read for all, and where the files are."""
    if as_json:
        click.echo(json.dumps(found.to_json()))
        return
    rows = [{"run": name, **{key: getattr(result, key) for key in KEYS}} for name, result in found.results.items()]
    click.echo("\n".join(table(rows)))
    click.echo(f"{found.reads:.4g} reads of the data for all of them")
    click.echo(f"results      {out}")


def _show_cost(result: Result | SoftMarginResult) -> None:
    click.echo(
        f"cost         {result.passes:.4g} passes of {result.method}, {result.reads:.4g} reads in all, "
        f"{result.bytes_read / 1e9:.3g} GB, {result.seconds:.2f} s"
    )


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
