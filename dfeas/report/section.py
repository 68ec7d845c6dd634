"""The part of the page about one run: what happened, why it stopped, what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dfeas.report import evidence
from dfeas.report import figures as plots
from dfeas.report.figures import FLOOR, data_uri
from dfeas.report.html import Html, element, joined
from dfeas.report.margins import Margins
from dfeas.run.results import Run
from dfeas.run.termination import FEASIBLE, Proof, Stop, Verdict

SHOWN = 50
"""Points of a conflict that are listed."""


def section(run: Run, margins: Margins | str | None, anchor: str) -> Html:
    """All about a run; ``margins`` are None when it did not end with a separator or a direction."""
    parts = [_headline(run), element("h3", "Key figures"), _facts(run), *_course(run), *_evidence(run, margins)]
    return element("section", *parts, *log(run.notes), id=anchor)


def log(notes: Sequence[dict[str, Any]]) -> list[Html]:
    """What was noted between the passes."""
    entries = [element("li", element("span", note["event"]), element("span", note["text"])) for note in notes]
    return [element("h3", "Log"), element("ul", *entries, class_="log") if entries else _soft("The trace has no notes.")]


def picture(uri: str, title: str, alt: str, caption: str = "") -> Html:
    """A figure of the page."""
    captions = [element("figcaption", caption)] if caption else []
    return element("figure", element("h4", title), element("img", src=uri, alt=alt), *captions)


def _soft(text: str) -> Html:
    return element("p", text, class_="soft")


def _headline(run: Run) -> Html:
    values = run.values
    verdict, stopped = values["verdict"], values["stopped"]
    said = Verdict.explain(verdict).replace("above eps", f"above {values['eps']:g}")
    why = Stop.explain(stopped)
    message = [element("p", _sentence(values["message"]))] if values["message"] not in ("", why) else []
    return element(
        "div",
        element("p", run.name, class_="run-name"),
        element("h2", said),
        element("p", f"Why it stopped: {why}."),
        *message,
        element("p", f"Proof: {Proof.explain(values['proof'])}."),
        class_=f"verdict {verdict}",
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _facts(run: Run) -> Html:
    values = run.values
    data, tolerance = values["data"], values["margin_tolerance"]
    facts: dict[str, Any] = {
        "method": f"{values['method']} ({values['why']})",
        "data": "arrays in memory" if data is None else place(data),
        "points": f"{values['n']:,}",
        "features": f"{values['m']:,}{' and an intercept' if values.get('intercept') else ''}",
        "margin bracket": f"{values['margin_lower']:.6g} .. {values['margin_upper']:.6g}",
        "eps": f"{values['eps']:g}",
        "margin tolerance": "none: the first separator ends the run" if tolerance is None else f"{tolerance:g}",
        "passes": f"{values['passes']:.4g}",
        "reads in all": f"{values['reads']:.4g}, with survey, recovery and check",
        "iterations": f"{values['iterations']:,}",
        "read": f"{values['bytes_read'] / 1e9:.3g} GB ({values['bytes_read']:,} bytes)",
        "time": f"{values['seconds']:.2f} s",
        "certificate": "none" if run.certificate is None else run.certificate.kind,
        "run": str(run.folder),
        "versions": ", ".join(f"{name} {version}" for name, version in values["versions"].items()),
    }
    rows = [element("div", element("dt", name), element("dd", text)) for name, text in facts.items()]
    rows.append(element("div", element("dt", "fingerprint"), element("dd", element("code", values["fingerprint"]))))
    return element("dl", *rows, class_="facts")


def place(data: dict[str, Any]) -> str:
    """Where the data is, and how it was read."""
    more = [f"{name} {data[name]}" for name in ("labels", "positive") if data[name] is not None]
    return ", ".join([str(data["path"]), *more])


def _course(run: Run) -> list[Html]:
    """Bracket, violations and time of the passes."""
    title = element("h3", "Course of the run")
    if not run.records:
        return [title, _soft("No pass was made: the verdict, or the end of the run, came before the first one.")]
    values = run.values
    proved = None if values["proof"] == "none" else (values["margin_lower"], values["margin_upper"])
    figures = []
    for x, label in (("passes", "passes over the data"), ("seconds", "seconds since the start")):
        figure = plots.bracket(plots.upper_and_lower(run.records, x, proved), label, [values["eps"]])
        figures.append(picture(data_uri(figure), f"Bracket against {x}", f"Margin bracket of {run.name} against {x}"))
    missing = []
    if any(record.violated is not None for record in run.records):
        figure = plots.violations(run.records)
        figures.append(picture(data_uri(figure), "Violations", f"Points on the wrong side after each pass of {run.name}"))
    else:
        missing = [_soft("No pass of this run counted violations.")]
    figures.append(picture(data_uri(plots.times(run.records)), "Time of each read", f"Seconds of each read of {run.name}"))
    checked = " Diamonds: what the checker proved in the end." if proved is not None else ""
    said = f"The best margin lies between the two bounds.{checked} Margins nearer to 0 than {FLOOR:g} are drawn at {FLOOR:g}."
    return [title, element("div", *figures, class_="figures"), _soft(said), *missing]


def _evidence(run: Run, margins: Margins | str | None) -> list[Html]:
    """Distances of the points from the hyperplane, or weights of the points that conflict."""
    if run.certificate is None:
        return [element("h3", "Evidence"), _soft("The run left no certificate.")]
    if run.certificate.kind == "gordan":
        return _gordan(run)
    separates = run.values["verdict"] == FEASIBLE
    title = element("h3", "Distances of the points from the " + ("separator" if separates else "best direction so far"))
    if not isinstance(margins, Margins):
        return [title, _soft(margins or "The distances of the points are not shown.")]
    figure = evidence.distances(margins, run.values["margin_lower"], separates)
    said = "Points by class. Left of 0 is the wrong side" + ("; no point is there." if separates else ".")
    drawn = picture(data_uri(figure), "Margin distribution", f"Distances of the points from the hyperplane of {run.name}", said)
    return [title, element("div", drawn, class_="figures")]


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
    parts = [element("h3", "Weights of the certificate"), element("div", drawn, class_="figures"), element("h3", "Conflicts")]
    if not conflicts:
        return [*parts, _soft("No points are named: the weighted sum is more than rounding, and accuses nobody.")]
    lines = [element("tr", *(element("th", name) for name in ("point", "label", "weight", "score")))]
    for entry in conflicts[:SHOWN]:
        score = "" if entry["score"] is None else f"{entry['score']:+.6f}"
        texts = (str(entry["point"]), str(entry["label"]), f"{entry['weight']:.6g}", score)
        lines.append(element("tr", *(element("td", text) for text in texts)))
    rest = f"The first {SHOWN} of {len(conflicts)} points that are listed in result.json." if len(conflicts) > SHOWN else ""
    said = f"Points that no hyperplane separates, the most suspect first. {rest}"
    return [*parts, joined(_soft(said.strip()), element("div", element("table", *lines), class_="wide"))]
