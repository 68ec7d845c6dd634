"""The parts of a page: a comparison, and about each run what happened, why it stopped, what it cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dfeas.errors import CorruptDataError
from dfeas.report import evidence
from dfeas.report import figures as plots
from dfeas.report.compare import SOFT_MARGINS, VERDICTS, load_soft, warning
from dfeas.report.figures import FLOOR, data_uri, style
from dfeas.report.html import Html, document, element, facts, joined, picture, row, soft, table
from dfeas.report.margins import Margins
from dfeas.run.results import RESULT, TRACE, Run
from dfeas.run.termination import FEASIBLE, Proof, Stop, Verdict
from dfeas.run.trace import read_trace

SHOWN = 50
"""Points of a conflict that are listed."""
AXES = (("passes", "passes over the data"), ("seconds", "seconds since the start"))
"""What brackets are drawn against."""
_FIT = ("C", "fold", "objective", "lower", "gap", "support", "error")


def page(runs: Sequence[Run], margins: Mapping[str, Margins | str]) -> str:
    """The whole page about verdicts: a comparison when there are several runs, then each run.

    ``margins`` are missing for runs that did not end with a separator or a direction.
    """
    many = len(runs) > 1
    title = f"{len(runs)} runs" if many else f"{runs[0].name}: {runs[0].values['verdict']}"
    with style():
        parts = [_compared_verdicts(runs)] if many else []
        parts += [_verdict(run, margins.get(run.name), f"run-{i}") for i, run in enumerate(runs, 1)]
    return document(title, *parts)


def soft_page(folders: Mapping[str, Path]) -> str:
    """The same about soft margins. Raises CorruptDataError for one that is damaged."""
    runs = {name: (folder, load_soft(folder)) for name, folder in folders.items()}
    with style():
        sections = [element("section", *_soft_margin(folder, values)) for folder, values in runs.values()]
    if len(runs) == 1:
        return document(f"{next(iter(runs))}: soft margin", *sections)
    rows = [SOFT_MARGINS.row(name, folder, values) for name, (folder, values) in runs.items()]
    lines = [row("th", SOFT_MARGINS.columns), *(row("td", SOFT_MARGINS.cells(each)) for each in rows)]
    return document(f"{len(runs)} soft margins", _comparison(rows, lines), *sections)


def _comparison(rows: Sequence[Mapping[str, Any]], lines: Sequence[Html], *more: Html) -> Html:
    differ = warning(rows)
    beware = [element("p", f"Beware: {differ}.", class_="warning")] if differ else []
    return element("section", element("h2", "Comparison"), *beware, table(*lines), *more)


def _compared_verdicts(runs: Sequence[Run]) -> Html:
    """The table of all runs and their brackets over each other."""
    rows = [VERDICTS.row(run.name, run.folder, run.values) for run in runs]
    lines = [element("tr", *_aligned("th", VERDICTS.columns))]
    for number, each in enumerate(rows, 1):
        name, *others = VERDICTS.cells(each)
        linked = element("td", element("a", name, href=f"#run-{number}"))
        lines.append(element("tr", linked, *_aligned("td", others, 1)))
    with_passes = {run.name: run.records for run in runs if run.records}
    overlay = soft("No run made a pass: there is nothing to draw.")
    if with_passes:
        eps = [run.values["eps"] for run in runs]
        pictures = [
            picture(
                data_uri(plots.bracket(plots.overlay(with_passes, name), label, eps)),
                f"Against {name}",
                f"Brackets of the runs against {name}",
            )
            for name, label in AXES
        ]
        text = f"Upper ends solid, lower ends dashed. Margins nearer to 0 than {FLOOR:g} are drawn at {FLOOR:g}."
        overlay = joined(_figures(pictures), soft(text))
    return _comparison(rows, lines, element("h3", "Brackets of all runs"), overlay)


def _aligned(cell: str, texts: Iterable[str], first: int = 0) -> list[Html]:
    """Cells from this column on, of words or of numbers."""
    return [element(cell, text, class_="word" if i < VERDICTS.left else "number") for i, text in enumerate(texts, first)]


def _verdict(run: Run, margins: Margins | str | None, anchor: str) -> Html:
    values = run.values
    why = Stop.explain(values["stopped"])
    said = Verdict.explain(values["verdict"]).replace("above eps", f"above {values['eps']:g}")
    headline = element(
        "div",
        element("p", run.name, class_="run-name"),
        element("h2", said),
        element("p", f"Why it stopped: {why}."),
        *([element("p", _sentence(values["message"]))] if values["message"] not in ("", why) else []),
        element("p", f"Proof: {Proof.explain(values['proof'])}."),
        class_=f"verdict {values['verdict']}",
    )
    tolerance = values["margin_tolerance"]
    what = {
        "method": f"{values['method']} ({values['why']})",
        **_data(values, values.get("intercept")),
        "margin bracket": f"{values['margin_lower']:.6g} .. {values['margin_upper']:.6g}",
        "eps": f"{values['eps']:g}",
        "margin tolerance": "none: the first separator ends the run" if tolerance is None else f"{tolerance:g}",
        "passes": f"{values['passes']:.4g}",
        "reads in all": f"{values['reads']:.4g}, with survey, recovery and check",
        "iterations": f"{values['iterations']:,}",
        "read": f"{values['bytes_read'] / 1e9:.3g} GB ({values['bytes_read']:,} bytes)",
        "time": f"{values['seconds']:.2f} s",
        "certificate": "none" if run.certificate is None else run.certificate.kind,
        **_provenance(run.folder, values),
    }
    parts = [headline, element("h3", "Key figures"), facts(what), *_course(run), *_evidence(run, margins)]
    return element("section", *parts, *_log(run.notes), id=anchor)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _data(values: Mapping[str, Any], intercept: Any) -> dict[str, str]:
    """Where the data is, how it was read, and how large it is."""
    place, text = values["data"], "arrays in memory"
    if place is not None:
        more = [f"{name} {place[name]}" for name in ("labels", "positive") if place[name] is not None]
        text = ", ".join([str(place["path"]), *more])
    features = f"{values['m']:,}{' and an intercept' if intercept else ''}"
    return {"data": text, "points": f"{values['n']:,}", "features": features}


def _provenance(folder: Path, values: Mapping[str, Any]) -> dict[str, str]:
    versions = ", ".join(f"{name} {version}" for name, version in values["versions"].items())
    return {"run": str(folder), "versions": versions, "fingerprint": element("code", values["fingerprint"])}


def _log(notes: Sequence[dict[str, Any]]) -> list[Html]:
    """What was noted between the passes."""
    entries = [element("li", element("span", note["event"]), element("span", note["text"])) for note in notes]
    return [element("h3", "Log"), element("ul", *entries, class_="log") if entries else soft("The trace has no notes.")]


def _figures(pictures: Sequence[Html]) -> Html:
    return element("div", *pictures, class_="figures")


def _course(run: Run) -> list[Html]:
    """Bracket, violations and time of the passes."""
    title = element("h3", "Course of the run")
    if not run.records:
        return [title, soft("No pass was made: the verdict, or the end of the run, came before the first one.")]
    values = run.values
    proved = None if values["proof"] == "none" else (values["margin_lower"], values["margin_upper"])
    pictures = []
    for x, label in AXES:
        figure = plots.bracket(plots.upper_and_lower(run.records, x, proved), label, [values["eps"]])
        pictures.append(picture(data_uri(figure), f"Bracket against {x}", f"Margin bracket of {run.name} against {x}"))
    missing = []
    if any(record.violated is not None for record in run.records):
        figure = plots.violations(run.records)
        pictures.append(picture(data_uri(figure), "Violations", f"Points on the wrong side after each pass of {run.name}"))
    else:
        missing = [soft("No pass of this run counted violations.")]
    pictures.append(picture(data_uri(plots.times(run.records)), "Time of each read", f"Seconds of each read of {run.name}"))
    checked = " Diamonds: what the checker proved in the end." if proved is not None else ""
    said = f"The best margin lies between the two bounds.{checked} Margins nearer to 0 than {FLOOR:g} are drawn at {FLOOR:g}."
    return [title, _figures(pictures), soft(said), *missing]


def _evidence(run: Run, margins: Margins | str | None) -> list[Html]:
    """Distances of the points from the hyperplane, or weights of the points that conflict."""
    if run.certificate is None:
        return [element("h3", "Evidence"), soft("The run left no certificate.")]
    if run.certificate.kind == "gordan":
        return _gordan(run)
    separates = run.values["verdict"] == FEASIBLE
    title = element("h3", "Distances of the points from the " + ("separator" if separates else "best direction so far"))
    if not isinstance(margins, Margins):
        return [title, soft(margins or "The distances of the points are not shown.")]
    figure = evidence.distances(margins, run.values["margin_lower"], separates)
    said = "Points by class. Left of 0 is the wrong side" + ("; no point is there." if separates else ".")
    alt = f"Distances of the points from the hyperplane of {run.name}"
    return [title, _figures([picture(data_uri(figure), "Margin distribution", alt, said)])]


def _gordan(run: Run) -> list[Html]:
    certificate, conflicts = run.certificate, run.values["conflicts"]
    assert certificate is not None
    drawn = picture(
        data_uri(evidence.sorted_weights(certificate.weights)),
        "Weights, sorted",
        f"Sorted weights of the certificate of {run.name}",
        f"{len(certificate.support):,} points whose weighted sum is zero, or nearly so: no hyperplane has a margin above "
        f"{run.values['margin_upper']:.3g}.",
    )
    parts = [element("h3", "Weights of the certificate"), _figures([drawn]), element("h3", "Conflicts")]
    if not conflicts:
        return [*parts, soft("No points are named: the weighted sum is more than rounding, and accuses nobody.")]
    lines = [row("th", ("point", "label", "weight", "score"))]
    for entry in conflicts[:SHOWN]:
        score = "" if entry["score"] is None else f"{entry['score']:+.6f}"
        lines.append(row("td", (str(entry["point"]), str(entry["label"]), f"{entry['weight']:.6g}", score)))
    rest = f"The first {SHOWN} of {len(conflicts)} points that are listed in result.json." if len(conflicts) > SHOWN else ""
    said = f"Points that no hyperplane separates, the most suspect first. {rest}"
    return [*parts, joined(soft(said.strip()), table(*lines))]


def _soft_margin(folder: Path, values: dict[str, Any]) -> list[Html]:
    """Gap, figures, path and all fits of a soft margin, from the keys of its result."""
    passes, notes = read_trace(folder / TRACE, _soft_pass)
    try:
        alt = "Objective and lower bound of the minimum against passes"
        pictures = [picture(data_uri(evidence.ends_figure(passes)), "Both ends", alt)]
        if len({fit["C"] for fit in values["fits"]}) > 1:
            alt = "Errors and support points against C"
            pictures.append(picture(data_uri(evidence.path_figure(values)), "Path", alt))
        reached = values["stopped"] == Stop.VERDICT
        headline = element(
            "div",
            element("p", folder.resolve().name, class_="run-name"),
            element("h2", f"Soft margin, C = {values['C']:g}: {'' if reached else 'not '}as near to the minimum as asked"),
            element("p", f"Why it stopped: {Stop.explain(values['stopped'])}."),
            element("p", f"{values['message']}."),
            class_=f"verdict {'feasible' if reached else 'undecided'}",
        )
        what = {
            "loss": values["loss"].replace("_", " "),
            "method": values["method"],
            **_data(values, values["intercept"]),
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
            **_provenance(folder, values),
        }
        fits = [row("th", ("left out" if name == "fold" else name for name in _FIT))]
        for fit in values["fits"]:
            fits += [row("td", ("" if name == "fold" and fit[name] is None else _number(fit[name]) for name in _FIT))]
        return [
            headline,
            element("h3", "Key figures"),
            facts(what),
            element("h3", "Course of the run"),
            _figures(pictures),
            element("h3", "All fits"),
            table(*fits),
            *_log(notes),
        ]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise CorruptDataError(f"{folder / RESULT}: not a readable result: {error}") from None


def _soft_pass(event: dict[str, Any]) -> dict[str, Any]:
    """A pass; what was not known then is null."""
    for name in ("passes", "objective", "lower"):
        if not isinstance(event[name], int | float | None):
            raise TypeError(f"{name} is {event[name]!r}")
    return event


def _number(value: float | None) -> str:
    """JSON has no infinity: what is null was not known, or has no bound."""
    return "-" if value is None else f"{value:.6g}"
