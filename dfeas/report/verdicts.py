"""The page about verdicts: a comparison, and about each run what was found, why it stopped, what it cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dfeas.data.source import seen_as
from dfeas.errors import format_bytes
from dfeas.report import evidence
from dfeas.report import figures as plots
from dfeas.report.coefficients import Coefficients
from dfeas.report.compare import warning
from dfeas.report.conflict import Conflict
from dfeas.report.figures import FLOOR, drawing, style
from dfeas.report.html import Html, document, element, facts, joined, picture, pictures, soft, table
from dfeas.report.margins import Seen
from dfeas.report.numbers import number, percent
from dfeas.report.provenance import classes_of, data_block, kernel_parameters, making_block, names_of, trace_warning
from dfeas.run.result_files import Run
from dfeas.run.table import VERDICTS
from dfeas.run.termination import FEASIBLE, INFEASIBLE, UNDECIDED, Proof, Record, Stop, Verdict

SHOWN = 50
"""Points of a conflict that are listed."""
SCORE = "How far a point is on its own side of the plane that most of them agree with: below 0 it is on the other side."
AXES = (("passes", "passes over the data"), ("seconds", "seconds since the start"))
"""What brackets are drawn against."""


def page(runs: Sequence[Run], seen: Mapping[str, Seen]) -> str:
    """The whole page: a comparison when there are several runs, then each run, with what is known of its data."""
    many = len(runs) > 1
    title = f"{len(runs)} runs" if many else f"{runs[0].name}: {runs[0].values['verdict']}"
    with style(on_a_page=True):
        parts = [_compared(runs)] if many else []
        parts += [_verdict(run, seen[run.name], f"run-{i}") for i, run in enumerate(runs, 1)]
    return document(title, *parts)


def comparison(rows: Sequence[Mapping[str, Any]], lines: Html, *more: Html) -> Html:
    """The section above all runs."""
    differ = warning(rows)
    beware = [element("p", f"Beware: {differ}.", class_="warning")] if differ else []
    return element("section", element("h2", "Comparison"), *beware, lines, *more)


def _compared(runs: Sequence[Run]) -> Html:
    """The table of all runs and their brackets over each other."""
    rows = [VERDICTS.row(run.name, run.folder, run.values) for run in runs]
    grid = VERDICTS.grid(rows)
    linked = [[element("a", name, href=f"#run-{i}"), *others] for i, (name, *others) in enumerate(grid.rows, 1)]
    with_passes = {run.name: run.records for run in runs if run.records}
    overlay = soft("No run made a pass: there is nothing to draw.")
    if with_passes:
        eps = [run.values["eps"] for run in runs]
        drawn = [
            picture(
                drawing(plots.bracket(plots.overlay(with_passes, name), label, eps), f"Brackets of the runs against {name}"),
                f"Against {name}",
            )
            for name, label in AXES
        ]
        overlay = joined(pictures(*drawn), soft(f"Upper ends solid, lower ends dashed. {_floor(with_passes.values())}".strip()))
    lines = table(grid.head, linked, grid.left, "Comparison of the runs")
    return comparison(rows, lines, element("h3", "Brackets of all runs"), overlay)


def _floor(runs: Iterable[Sequence[Record]], *proved: float) -> str:
    """Said where some margin is too near to zero to be drawn."""
    records = [record for each in runs for record in each]
    ends = [*proved, *(abs(end) for record in records for end in (record.margin_lower, record.margin_upper))]
    return f"Margins nearer to 0 than {FLOOR:g} are drawn at {FLOOR:g}." if min(ends, default=1) < FLOOR else ""


def _verdict(run: Run, seen: Seen, anchor: str) -> Html:
    values, conflict = run.values, Conflict.of(run.values["conflicts"])
    parts = [
        _headline(run, conflict),
        *trace_warning(run.folder, values),
        element("h3", "Key figures"),
        facts(_key_figures(run)),
    ]
    parts += [*_evidence(run, seen, conflict), *data_block(values, seen), *_course(run)]
    parts += making_block(run.folder, values, run.notes, [record.memory_bytes for record in run.records])
    return element("section", *parts, *log(run.notes), id=anchor)


def _headline(run: Run, conflict: Conflict | None) -> Html:
    """What was found, who is to be looked at, and how sure that is."""
    values = run.values
    why = Stop.explain(values["stopped"])
    said = Verdict.explain(values["verdict"]).replace("above eps", f"above {values['eps']:g}")
    said = said.replace("no hyperplane", f"no hyperplane{_asked_about(values)}")
    suspects = "" if conflict is None else conflict.suspects
    parts = [element("p", run.name, class_="run-name"), element("h2", f"{said}; {suspects}" if suspects else said)]
    if conflict is not None:
        parts.append(element("p", conflict.explain(), class_="lead"))
    parts.append(element("p", f"Why it stopped: {why}."))
    if values["message"] not in ("", why):
        parts.append(element("p", _sentence(values["message"])))
    parts.append(element("p", f"Proof: {Proof.explain(values['proof'])}."))
    return element("div", *parts, class_=f"verdict {values['verdict']}")


def _asked_about(values: dict[str, Any]) -> str:
    """Which hyperplanes; any, where there is an intercept."""
    if values["intercept"]:
        return ""
    if values.get("kernel"):
        return " of the kernel's space"
    return " through the point" if (values["data"] or {}).get("point") is not None else " through the origin"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _key_figures(run: Run) -> dict[str, str]:
    """What was asked, found and read."""
    values = run.values
    tolerance, kernel = values["margin_tolerance"], values.get("kernel")
    what = {"method": f"{values['method']} ({values['why']})"}
    if kernel:
        what["kernel"] = ", ".join([str(kernel["name"]), *(f"{k} {v:g}" for k, v in kernel_parameters(kernel).items())])
    what |= {
        **_margin(values),
        "eps": f"{values['eps']:g}",
        "margin tolerance": "none: the first separator ends the run" if tolerance is None else f"{tolerance:g}",
        "passes": f"{values['passes']:.4g}",
        "reads in all": f"{values['reads']:.4g}, with survey, recovery and check",
        "iterations": f"{values['iterations']:,}",
        "read": format_bytes(values["bytes_read"]),
        "time": f"{values['seconds']:.2f} s",
        "certificate": "none" if run.certificate is None else run.certificate.kind,
    }
    return what


def _margin(values: Mapping[str, Any]) -> dict[str, str]:
    """What is known of the best margin, where a verdict does not say it all."""
    if values["verdict"] == INFEASIBLE and values["proof"] != "none":
        return {}
    if values["verdict"] in (FEASIBLE, UNDECIDED):
        return {"margin bracket": f"{values['margin_lower']:.6g} .. {values['margin_upper']:.6g}"}
    return {"best margin": f"{values['margin_upper']:.6g} at most"}


def log(notes: Sequence[Mapping[str, Any]]) -> list[Html]:
    """What was noted between the passes."""
    entries = [element("li", element("span", note["event"]), element("span", note["text"])) for note in notes]
    return [element("h3", "Log"), element("ul", *entries, class_="log") if entries else soft("The trace has no notes.")]


def _course(run: Run) -> list[Html]:
    """Bracket, violations and time of the passes."""
    title = element("h3", "Course of the run")
    if not run.records:
        why = "No pass was made: the verdict, or the end of the run, came before the first one."
        return [title, soft("No pass is in the trace." if run.values["passes"] else why)]
    values = run.values
    proved = None if values["proof"] == "none" else (values["margin_lower"], values["margin_upper"])
    infeasible = values["verdict"] == INFEASIBLE  # a lower bound is of no interest
    drawn = []
    for x, label in AXES:
        curves = plots.upper_and_lower(run.records, x, proved)
        figure = plots.bracket(curves[: 1 if infeasible else 2], label, [values["eps"]])
        drawn.append(picture(drawing(figure, f"Margin bracket of {run.name} against {x}"), f"Bracket against {x}"))
    missing = []
    if any(record.violated is not None for record in run.records):
        figure = plots.violations(run.records)
        drawn.append(picture(drawing(figure, f"Points on the wrong side after each pass of {run.name}"), "Violations"))
    else:
        missing = [soft("No pass of this run counted violations.")]
    drawn.append(picture(drawing(plots.times(run.records), f"Seconds of each read of {run.name}"), "Time of each read"))
    checked = " Diamonds: what the checker proved in the end." if proved is not None else ""
    between = "No margin is above the bound" if infeasible else "The best margin lies between the two bounds"
    said = f"{between}.{checked} {_floor([run.records], *map(abs, proved or ()))}"
    return [title, pictures(*drawn), soft(said.strip()), *missing]


def _evidence(run: Run, seen: Seen, conflict: Conflict | None) -> list[Html]:
    """Distances of the points from the hyperplane and its coefficients, or the points that conflict."""
    certificate, values = run.certificate, run.values
    if certificate is None:
        return [element("h3", "Evidence"), soft("The run left no certificate.")]
    if certificate.kind == "gordan":
        return _gordan(run, conflict)
    separates = values["verdict"] == FEASIBLE
    parts = distances(run, seen, "separator" if separates else "best direction so far", values["margin_lower"] * separates)
    place = values["data"] or {}
    of_cones = seen.header is not None and seen.header.cones is not None
    if certificate.kernel or len(certificate.y) < values["m"] or place.get("point") or of_cones:
        return parts
    return [*parts, *coefficients(run, seen)]


def distances(run: Run, seen: Seen, what: str, margin: float = 0.0) -> list[Html]:
    """How far the points are from a hyperplane, with a line at its margin where it separates them."""
    title, margins = element("h3", f"Distances of the points from the {what}"), seen.margins
    if margins is None:
        return [title, soft(seen.why)]
    figure = evidence.distances(margins, margin, margin > 0)
    wrong, n = margins.wrong, run.values["n"]
    if margin > 0:
        said = "Points by class, on a scale of decades: every point is on its own side, at least as far as the margin."
    elif wrong:
        there = f"{wrong:,} of {n:,} points, {percent(wrong / n)}, are there or at 0"
        said = f"Points by class. Left of 0 is the wrong side: {there}."
    else:
        said = "Points by class, on a scale of decades: no point was found on the wrong side, which is not proved."
    alt = f"Distances of the points from the hyperplane of {run.name}"
    return [title, pictures(picture(drawing(figure, alt), "Margin distribution", said))]


def coefficients(run: Run, seen: Seen) -> list[Html]:
    """The largest coefficients of the final hyperplane."""
    assert run.certificate is not None
    values, y = run.values, run.certificate.y
    deviation = None if seen.margins is None else seen.margins.deviation
    transform = seen_as(run.certificate.view)[1]
    found = Coefficients.of(y, values["m"], names_of(values, seen), transform, deviation)
    return found.show(classes_of(values, seen))


def _gordan(run: Run, conflict: Conflict | None) -> list[Html]:
    """Points by their scores, where these are known, or else by their weights, and their list beside them."""
    certificate, conflicts = run.certificate, run.values["conflicts"]
    assert certificate is not None
    if conflict is not None:
        figure, alt = evidence.conflict_scores(conflict), f"Scores of the points in conflict of {run.name}"
        drawn = picture(drawing(figure, alt), "Scores, sorted", SCORE)
    else:
        figure, alt = evidence.sorted_weights(certificate.weights), f"Sorted weights of the certificate of {run.name}"
        said = f"{len(certificate.support):,} points whose weighted sum is zero, or nearly so"
        if run.values["verdict"] != INFEASIBLE:
            said += f": no unit vector has a margin above {run.values['margin_upper']:.3g}"
        drawn = picture(drawing(figure, alt), "Weights, sorted", f"{said}.")
    if not conflicts:
        nobody = soft("No points are named: the weighted sum is not proved to be zero, and accuses nobody.")
        return [element("h3", "Weights of the certificate"), pictures(drawn), nobody]
    rows = [
        (str(entry["point"]), str(entry["label"]), f"{entry['weight']:.6g}", _score(entry["score"]))
        for entry in conflicts[:SHOWN]
    ]
    order = "the most suspect first" if conflict is not None else "the heaviest first"
    rest = f" The first {SHOWN} of {len(conflicts)} points that are listed in result.json." if len(conflicts) > SHOWN else ""
    said = soft(f"A weighted sum of these points is zero, {order}.{rest}")
    listed = table(("point", "label", "weight", "score"), rows, 2, f"Points in conflict of {run.name}")
    return [element("h3", "Points in conflict"), pictures(drawn, element("div", said, listed))]


def _score(score: float | None) -> str:
    return number(None) if score is None else f"{score:+.6f}"
