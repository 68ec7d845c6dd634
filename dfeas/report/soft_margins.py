"""The page about soft margins: how near each is to its minimum, the hyperplane that was chosen, and all fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dfeas.errors import CorruptDataError, DfeasError, format_bytes
from dfeas.report import evidence
from dfeas.report.figures import drawing, style
from dfeas.report.html import Html, document, element, facts, picture, pictures, soft, table
from dfeas.report.margins import Seen
from dfeas.report.numbers import number, percent, points
from dfeas.report.provenance import data_block, making_block, trace_warning
from dfeas.report.verdicts import coefficients, comparison, distances, log
from dfeas.run.result_files import RESULT, TRACE, Run
from dfeas.run.table import SOFT_MARGINS
from dfeas.run.termination import Stop
from dfeas.run.trace import read_trace

REACHED = "the gap that was asked for was reached"
"""Why a soft margin stopped that has what it looked for: it has no verdict."""


def soft_page(runs: Sequence[Run], seen: Mapping[str, Seen]) -> str:
    """The whole page. Raises CorruptDataError for a run that is damaged."""
    with style(on_a_page=True):
        sections = [element("section", *_soft_margin(run, seen[run.name]), id=f"run-{i}") for i, run in enumerate(runs, 1)]
    if len(runs) == 1:
        return document(f"{runs[0].name}: soft margin", *sections)
    rows = [SOFT_MARGINS.row(run.name, run.folder, run.values) for run in runs]
    grid = SOFT_MARGINS.grid(rows)
    linked = [[element("a", name, href=f"#run-{i}"), *others] for i, (name, *others) in enumerate(grid.rows, 1)]
    lines = table(grid.head, linked, grid.left, "Comparison of the soft margins")
    return document(f"{len(runs)} soft margins", comparison(rows, lines), *sections)


def _soft_margin(run: Run, seen: Seen) -> list[Html]:
    """Headline, key figures, hyperplane, course and all fits, from the keys of the result."""
    folder, values = run.folder, run.values
    passes, notes = read_trace(folder / TRACE, _soft_pass)
    try:
        memory = [event["memory_bytes"] for event in passes if isinstance(event.get("memory_bytes"), int)]
        parts = [
            _headline(run),
            *trace_warning(folder, values),
            element("h3", "Key figures"),
            facts(_key_figures(values, seen)),
        ]
        if run.certificate is not None:
            parts += [*distances(run, seen, "hyperplane"), *coefficients(run, seen)]
        parts += [*data_block(values, seen), *_course(values, passes), *_fits(values)]
        return [*parts, *making_block(folder, values, notes, memory), *log(notes)]
    except DfeasError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise CorruptDataError(f"{folder / RESULT}: not a readable result: {error}") from None


def _headline(run: Run) -> Html:
    values = run.values
    reached = values["stopped"] == Stop.VERDICT
    why = REACHED if reached else Stop.explain(values["stopped"])
    near = f"as near to the minimum as {values['target']:g}" if reached else "not as near to the minimum as asked"
    return element(
        "div",
        element("p", run.name, class_="run-name"),
        element("h2", f"Soft margin, C = {values['C']:g}: {near}"),
        element("p", f"Why it stopped: {why}."),
        element("p", f"{values['message'][:1].upper()}{values['message'][1:]}."),
        class_=f"verdict {'feasible' if reached else 'undecided'}",
    )


def _key_figures(values: Mapping[str, Any], seen: Seen) -> dict[str, str]:
    """Of the fit that was chosen."""
    prices = len({fit["C"] for fit in values["fits"]})
    chosen = "" if prices == 1 else f", the greatest of {prices}"
    if values["validation"] and prices > 1:
        chosen = f", chosen of {prices} by cross-validation"
    what = {
        "C": f"{values['C']:g}{chosen}",
        "loss": values["loss"].replace("_", " "),
        "method": values["method"],
        "objective": number(values["objective"]),
        "minimum at least": number(values["lower"]),
        "relative gap": f"{values['gap']:.2g} (asked: {values['target']:g})",
        "margin": number(values["margin"]),
        "points at the margin or beyond it": points(values["support"], values["n"]),
        "points on the wrong side": _wrong(values, seen),
    }
    tested = next((each for each in values["validation"] if each["C"] == values["C"]), None)
    if tested is not None and tested["error"] is not None:
        what["error on points left out"] = f"{percent(tested['error'])} ± {percent(tested['deviation'] or 0.0)}"
    return what | {
        "passes": f"{values['passes']:.4g}",
        "reads in all": f"{values['reads']:.4g}",
        "iterations": f"{values['iterations']:,}",
        "read": format_bytes(values["bytes_read"]),
        "time": f"{values['seconds']:.2f} s",
    }


def _wrong(values: Mapping[str, Any], seen: Seen) -> str:
    """The share of the points, and how many; where they have weights, what the points on the wrong side weigh, too."""
    error, n = values["error"], values["n"]
    if seen.margins is None:
        count = None if error is None else error * n
        whole = count is not None and abs(count - round(count)) < 1e-6
        return "-" if error is None else points(round(error * n), n) if whole else f"{percent(error)} of the weight"
    counted = points(seen.margins.wrong, n)
    same = error is None or abs(error - seen.margins.wrong / n) < 1e-6
    return counted if same else f"{counted}, {percent(error)} of the weight"


def _course(values: dict[str, Any], passes: Sequence[dict[str, Any]]) -> list[Html]:
    """Both ends of a single fit; of several the widest of their gaps, as an objective of one is not that of another."""
    many = len(values["fits"])
    title = element("h3", "Course of the run")
    if all(each["objective"] is None for each in passes):
        return [title, soft("No pass came as far as to know the objective.")]
    if many == 1:
        figure, name = evidence.ends_figure(passes), "Both ends"
        drawn = [picture(drawing(figure, "Objective and lower bound of the minimum against passes"), name)]
    else:
        figure, name = evidence.gap_figure(passes, values["target"]), "Widest gap"
        alt = f"The widest relative gap of all {many} fits against passes"
        said = f"The widest of the gaps of all {many} fits; that of the chosen one is {values['gap']:.2g} in the end."
        drawn = [picture(drawing(figure, alt), name, said)]
    if len({fit["C"] for fit in values["fits"]}) > 1:
        drawn.append(picture(drawing(evidence.path_figure(values), "Errors and support points against C"), "Path"))
    return [title, pictures(*drawn)]


def _fits(values: Mapping[str, Any]) -> list[Html]:
    """A table of all fits, where there are several; the chosen one is marked."""
    if len(values["fits"]) == 1:
        return []
    folds = any(fit["fold"] is not None for fit in values["fits"])
    rows = []
    for fit in values["fits"]:
        chosen = fit["C"] == values["C"] and fit["fold"] is None
        price = element("strong", f"{number(fit['C'])} (chosen)") if chosen else number(fit["C"])
        left_out = [] if not folds else ["none" if fit["fold"] is None else f"fold {fit['fold']}"]
        error = "-" if fit["error"] is None else percent(fit["error"])
        numbers = (number(fit["objective"]), number(fit["lower"]), f"{fit['gap']:.2g}", f"{fit['support']:,}", error)
        rows.append((price, *left_out, *numbers))
    head = ("C", *(["left out"] if folds else []), "objective", "minimum at least", "gap", "support", "error")
    return [element("h3", "All fits"), table(head, rows, 1 + folds, "All fits")]


def _soft_pass(event: dict[str, Any]) -> dict[str, Any]:
    """A pass; what was not known then is null."""
    for name in ("passes", "objective", "lower", "gap"):
        if not isinstance(event[name], int | float | None):
            raise TypeError(f"{name} is {event[name]!r}")
    return event
