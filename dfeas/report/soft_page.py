"""The page of a soft margin: its gap, its figures, its path, and all fits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dfeas.errors import CorruptDataError
from dfeas.report.compare import SOFT_COLUMNS, cells, soft_row, warning
from dfeas.report.evidence import ends_figure, path_figure
from dfeas.report.figures import data_uri, style
from dfeas.report.html import Html, document, element
from dfeas.report.section import log, picture, place
from dfeas.run.results import RESULT, TRACE, load_result
from dfeas.run.termination import Stop
from dfeas.run.trace import read_trace

_FIT = ("C", "fold", "objective", "lower", "gap", "support", "error")


def soft_page(folders: Mapping[str, Path]) -> str:
    """The whole page: a table when there are several, then each run. Raises CorruptDataError for one that is damaged."""
    runs = {name: (folder, load_result(folder, soft=True)) for name, folder in folders.items()}
    sections = [element("section", *_parts(folder, values)) for folder, values in runs.values()]
    if len(runs) == 1:
        return document(f"{next(iter(runs))}: soft margin", *sections)
    rows = [soft_row(name, folder, values) for name, (folder, values) in runs.items()]
    differ = warning(rows)
    lines = [[element("th", text) for text in SOFT_COLUMNS], *([element("td", text) for text in cells(row)] for row in rows)]
    head = element(
        "section",
        element("h2", "Comparison"),
        *([element("p", f"Beware: {differ}.", class_="warning")] if differ else []),
        element("div", element("table", *(element("tr", *line) for line in lines)), class_="wide"),
    )
    return document(f"{len(runs)} soft margins", head, *sections)


def _parts(folder: Path, values: dict[str, Any]) -> list[Html]:
    """What there is to say of a run, from the keys of its result."""
    passes, notes = read_trace(folder / TRACE, _told)
    try:
        with style():
            figures = [
                picture(data_uri(ends_figure(passes)), "Both ends", "Objective and lower bound of the minimum against passes")
            ]
            if len({fit["C"] for fit in values["fits"]}) > 1:
                figures.append(picture(data_uri(path_figure(values)), "Path", "Errors and support points against C"))
        return [
            _headline(folder, values),
            element("h3", "Key figures"),
            _facts(folder, values),
            element("h3", "Course of the run"),
            element("div", *figures, class_="figures"),
            element("h3", "All fits"),
            _fits(values),
            *log(notes),
        ]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise CorruptDataError(f"{folder / RESULT}: not a readable result: {error}") from None


def _told(event: dict[str, Any]) -> dict[str, Any]:
    """A pass; what was not known then is null."""
    for name in ("passes", "objective", "lower"):
        if not isinstance(event[name], int | float | None):
            raise TypeError(f"{name} is {event[name]!r}")
    return event


def _headline(folder: Path, values: dict[str, Any]) -> Html:
    reached = values["stopped"] == "verdict"
    said = f"Soft margin, C = {values['C']:g}: " + ("as near to the minimum as asked" if reached else "not as near as asked")
    return element(
        "div",
        element("p", folder.resolve().name, class_="run-name"),
        element("h2", said),
        element("p", f"Why it stopped: {Stop.explain(values['stopped'])}."),
        element("p", f"{values['message']}."),
        class_=f"verdict {'feasible' if reached else 'undecided'}",
    )


def _facts(folder: Path, values: dict[str, Any]) -> Html:
    facts = {
        "loss": values["loss"].replace("_", " "),
        "method": values["method"],
        "data": "arrays in memory" if values["data"] is None else place(values["data"]),
        "points": f"{values['n']:,}",
        "features": f"{values['m']:,}{' and an intercept' if values['intercept'] else ''}",
        "objective": _number(values["objective"]),
        "minimum at least": _number(values["lower"]),
        "relative gap": f"{values['gap']:.2g} (asked: {values['target']:g})",
        "margin": _number(values["margin"]),
        "points at the margin or beyond it": f"{values['support']:,}",
        "points on the wrong side": _number(values["error"]),
        "passes": f"{values['passes']:.4g}",
        "reads in all": f"{values['reads']:.4g}",
        "iterations": f"{values['iterations']:,}",
        "time": f"{values['seconds']:.2f} s",
        "run": str(folder),
        "versions": ", ".join(f"{name} {version}" for name, version in values["versions"].items()),
    }
    rows = [element("div", element("dt", name), element("dd", text)) for name, text in facts.items()]
    rows.append(element("div", element("dt", "fingerprint"), element("dd", element("code", values["fingerprint"]))))
    return element("dl", *rows, class_="facts")


def _fits(values: dict[str, Any]) -> Html:
    lines = [element("tr", *(element("th", "left out" if name == "fold" else name) for name in _FIT))]
    for fit in values["fits"]:
        texts = ["" if name == "fold" and fit[name] is None else _number(fit[name]) for name in _FIT]
        lines.append(element("tr", *(element("td", text) for text in texts)))
    return element("div", element("table", *lines), class_="wide")


def _number(value: float | None) -> str:
    """JSON has no infinity: what is null was not known, or has no bound."""
    return "-" if value is None else f"{value:.6g}"
