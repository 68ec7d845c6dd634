"""The page about runs that look for a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dfeas.report import plots
from dfeas.report.compare import COLUMNS, WORDS, cells, row, warning
from dfeas.report.document import document
from dfeas.report.drawing import FLOOR, data_uri, style
from dfeas.report.margins import Margins
from dfeas.report.markup import Html, element, joined
from dfeas.report.runs import Run
from dfeas.report.section import picture, section


def page(runs: Sequence[Run], margins: Mapping[str, Margins | str]) -> str:
    """The whole page: a comparison when there are several runs, then each run."""
    many = len(runs) > 1
    title = f"{len(runs)} runs" if many else f"{runs[0].name}: {runs[0].values['verdict']}"
    with style():
        parts = [_comparison(runs)] if many else []
        parts += [section(run, margins.get(run.name), f"run-{i}") for i, run in enumerate(runs, 1)]
    return document(title, *parts)


def _comparison(runs: Sequence[Run]) -> Html:
    """The table of all runs and their brackets over each other."""
    rows = [row(run.name, run.folder, run.values) for run in runs]
    differ = warning(rows)
    headings = [element("th", text, class_="word" if i < WORDS else "number") for i, text in enumerate(COLUMNS)]
    lines = [element("tr", *headings)]
    for number, one in enumerate(rows, 1):
        texts = cells(one)
        linked = element("td", element("a", texts[0], href=f"#run-{number}"))
        others = [element("td", text, class_="word" if i < WORDS else "number") for i, text in enumerate(texts) if i]
        lines.append(element("tr", linked, *others))
    return element(
        "section",
        element("h2", "Comparison"),
        *([element("p", f"Beware: {differ}.", class_="warning")] if differ else []),
        element("div", element("table", *lines), class_="wide"),
        element("h3", "Brackets of all runs"),
        _overlay(runs),
    )


def _overlay(runs: Sequence[Run]) -> Html:
    with_passes = {run.name: run.records for run in runs if run.records}
    if not with_passes:
        return element("p", "No run made a pass: there is nothing to draw.", class_="soft")
    eps = [run.values["eps"] for run in runs]
    pictures = [
        picture(
            data_uri(plots.bracket(plots.overlay(with_passes, name), label, eps)),
            f"Against {name}",
            f"Brackets of the runs against {name}",
        )
        for name, label in (("passes", "passes over the data"), ("seconds", "seconds since the start"))
    ]
    said = f"Upper ends solid, lower ends dashed. Margins nearer to 0 than {FLOOR:g} are drawn at {FLOOR:g}."
    return joined(element("div", *pictures, class_="figures"), element("p", said, class_="soft"))
