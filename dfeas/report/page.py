"""``dfeas.report``: one page about finished runs, that opens offline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dfeas import __version__
from dfeas.data.storage.files import atomic_write
from dfeas.data.storage.places import paths_of
from dfeas.display import Grid
from dfeas.errors import CorruptDataError, DfeasError, UsageError, install, visible
from dfeas.report import facts
from dfeas.report.compare import all_soft, load_soft, warning
from dfeas.report.margins import NOT_READ, Seen, look
from dfeas.run.result_files import RESULT, TRACE, Run, certificate_of, find_runs, load_run
from dfeas.run.table import SOFT_MARGINS, VERDICTS
from dfeas.run.termination import FEASIBLE, INFEASIBLE, Proof, Stop, Verdict
from dfeas.run.trace import read_trace, what_is_missing
from dfeas.settings import parse_bytes, require_type

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_TAG = b'<meta name="generator" content="dfeas report">'
_HEAD_BYTES = 1000
REACHED = "the gap that was asked for was reached"
"""Why a soft margin stopped that has what it looked for: it has no verdict."""


@dataclass(frozen=True)
class Picture:
    """A figure, and what is to be seen there."""

    title: str
    url: str
    caption: str = ""


@dataclass
class Part:
    """What stands under one heading."""

    title: str
    said: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    figures: Sequence[Picture] = ()
    table: Grid | None = None
    commands: Sequence[tuple[str, str]] = ()


@dataclass
class Section:
    """What is said of one run."""

    name: str
    headline: str
    said: Sequence[str]
    beware: str  # what is missing of the trace
    parts: Sequence[Part]


def report(
    runs: str | Path | Sequence[str | Path],
    out: str | Path | None = None,
    *,
    memory: str | int | None = None,
    data: bool = True,
) -> Path:
    """Write one page about finished runs, that opens offline.

    Parameters
    ----------
    runs : path, or sequence of paths
        Folders of runs; one that holds runs in its direct subfolders stands for all of them. Soft margins are not reported with
        others.
    out : path, optional
        The page; by default ``report.html`` in the folder, when a single one is given. A page of ours is replaced.
    memory : int or str
        Budget in bytes for reading the data.
    data : bool
        Whether to read the data once for the distances of the points from the final hyperplane.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    UsageError
        Without matplotlib, without ``out`` for several folders, or when ``out`` is a file that is not ours.
    BadInputError
        There is no finished run.
    CorruptDataError
        Files of a run are missing or damaged. Data that has gone is said on the page.

    Examples
    --------
    Drawing takes a second or two:

    >>> import dfeas
    >>> result = dfeas.solve([[1.0, 2.0], [-1.0, -1.0]], [1, -1], out="run")
    >>> dfeas.report(["run"])  # doctest: +SKIP
    PosixPath('run/report.html')
    """
    if find_spec("matplotlib") is None or find_spec("jinja2") is None:
        raise UsageError(f"dfeas report needs matplotlib and jinja2: {install('report')}")
    from dfeas.report.figures import draw_brackets, style

    require_type("data", data, "bool")
    runs = paths_of(runs, "runs")
    budget, folders = parse_bytes(memory), find_runs(runs)
    soft = all_soft(folders)
    finished = [_load_soft_run(name, folder) if soft else load_run(name, folder) for name, folder in folders.items()]
    target = _choose_target(runs, out)
    seen = look(finished, budget) if data else {run.name: NOT_READ for run in finished}
    describe, table = (_describe_soft_margin, SOFT_MARGINS) if soft else (_describe_verdict, VERDICTS)
    many = len(finished) > 1
    shown: dict[str, Any] = {"version": __version__, "grid": None}
    with style():
        sections = [describe(run, seen[run.name]) for run in finished]
        if many:
            rows = [table.row(run.name, run.folder, run.values) for run in finished]
            with_passes = {run.name: run.records for run in finished if run.records}
            drawn = draw_brackets(with_passes, [run.values["eps"] for run in finished]) if with_passes else None
            brackets = [] if drawn is None else [_picture("Margin brackets of all runs", drawn)]
            shown |= {"grid": table.grid(rows), "beware": warning(rows), "brackets": brackets}
    first = "soft margin" if soft else finished[0].values.get("verdict")
    title = f"{len(finished)} {'soft margins' if soft else 'runs'}" if many else f"{finished[0].name}: {first}"
    text = render_page(title=title, sections=sections, **shown)
    with atomic_write(target) as file:
        file.write(text.encode())
    return target


def render_page(**shown: Any) -> str:
    """The template with its values, all of which are text: controls are written as escapes, markup as entities."""
    import jinja2

    loader = jinja2.PackageLoader("dfeas.report", "")
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, finalize=_show_controls)
    return environment.get_template("page.html").render(shown)


def _show_controls(value: Any) -> Any:
    return visible(value) if type(value) is str else value


def _picture(title: str, drawing: Drawing, caption: str = "") -> Picture:
    from dfeas.report.figures import encode_figure

    return Picture(title, encode_figure(drawing), caption)


def _describe_verdict(run: Run, seen: Seen) -> Section:
    from dfeas.report.figures import draw_brackets, draw_times

    values, ordered = run.values, facts.order_conflict(run.values["conflicts"])
    suspects, explained = ("", "") if ordered is None else facts.explain_conflict(ordered)
    why, found = Stop.explain(values["stopped"]), Verdict.explain(values["verdict"])
    found = found.replace("above eps", f"above {values['eps']:g}").replace(
        "no hyperplane", f"no hyperplane{_ask_about(values)}"
    )
    said = [explained, f"Why it stopped: {why}.", f"Proof: {Proof.explain(values['proof'])}."]
    course, infeasible = Part("Course of the run"), values["verdict"] == INFEASIBLE
    if run.records:
        brackets = draw_brackets({run.name: run.records}, [values["eps"]], upper_only=infeasible)
        between = "No margin is above the bound." if infeasible else "The best margin lies between the two bounds."
        course.figures = _picture("Margin bracket", brackets, between), _picture("Time of each read", draw_times(run.records))
    else:
        why = "No pass was made: the verdict, or the end of the run, came before the first one."
        course.said = "No pass is in the trace." if values["passes"] else why
    parts = [Part("Answer", facts=facts.describe_answer(run)), *_show_evidence(run, seen), course]
    headline = f"{found}; {suspects}" if suspects else found
    return _build_section(run, seen, headline, said, parts, [record.memory_bytes for record in run.records])


def _build_section(
    run: Run, seen: Seen, headline: str, said: Sequence[str], parts: Sequence[Part], memory: Sequence[int]
) -> Section:
    log = Grid(("event", "what"), [(str(note["event"]), str(note["text"])) for note in run.notes], left=2)
    commands = facts.list_commands(run)
    nothing = facts.IN_MEMORY if run.values["data"] is None else "No command checks this run or does it again."
    more = (
        Part("Data", facts=facts.describe_data(run.values, seen)),
        Part("How this was made", "" if commands else nothing, facts.describe_making(run, memory), commands=commands),
        Part("Log", table=log) if run.notes else Part("Log", "The trace has no notes."),
    )
    missing = what_is_missing(run.folder / TRACE, run.values["passes"])
    return Section(run.name, headline, list(filter(None, said)), missing, [*parts, *more])


def _ask_about(values: dict[str, Any]) -> str:
    if values["intercept"]:
        return ""
    if values.get("kernel"):
        return " of the kernel's space"
    return " through the point" if (values["data"] or {}).get("point") is not None else " through the origin"


def _show_evidence(run: Run, seen: Seen) -> list[Part]:
    certificate, values = run.certificate, run.values
    if certificate is None:
        return [Part("Evidence", "The run left no certificate.")]
    if certificate.kind == "gordan":
        return [_show_conflict(run)]
    separates = values["verdict"] == FEASIBLE
    what = "separator" if separates else "best direction so far"
    parts = [_show_distances(run, seen, what, values["margin_lower"] * separates)]
    of_cones = seen.header is not None and seen.header.cones is not None
    indirect = certificate.kernel or len(certificate.y) < values["m"] or (values["data"] or {}).get("point") or of_cones
    return parts if indirect else [*parts, _show_coefficients(run, seen)]


def _show_distances(run: Run, seen: Seen, what: str, margin: float = 0.0) -> Part:
    from dfeas.report.figures import draw_margins

    part, margins = Part(f"Distances of the points from the {what}"), seen.margins
    if margins is None:
        part.said = seen.why
        return part
    wrong, n = margins.wrong, run.values["n"]
    if margin > 0:
        said = "Every point is on its own side, at least as far as the margin."
    elif wrong:
        said = f"Left of 0 is the wrong side: {wrong:,} of {n:,} points, {facts.format_percent(wrong / n)}, are there or at 0."
    else:
        said = "No point was found on the wrong side, which is not proved."
    drawn = draw_margins(margins.counts, facts.classes_of(run.values), margin)
    part.figures = [_picture("Margin distribution", drawn, said)]
    return part


def _show_coefficients(run: Run, seen: Seen) -> Part:
    assert run.certificate is not None, "it has coefficients"
    deviation = None if seen.margins is None else seen.margins.deviation
    names, classes = run.values.get("features") or (), facts.classes_of(run.values)
    said, table = facts.list_coefficients(run.certificate, run.values["m"], names, classes, deviation)
    return Part("Largest coefficients", said, table=table)


def _show_conflict(run: Run) -> Part:
    """Points by their scores, where these are known, or else by their weights, and their list."""
    from dfeas.report.figures import draw_ranks

    values, entries, certificate = run.values, run.values["conflicts"], run.certificate
    assert certificate is not None, "it has weights"
    ordered = facts.order_conflict(entries)
    if ordered is not None:
        scores = np.array([entry["score"] for entry in ordered], np.float64)
        caption = "How far a point is on its own side of the plane that most of them agree with: below 0 it is on the other."
        picture = _picture("Scores, sorted", draw_ranks(scores, "score", facts.count_outliers(scores)), caption)
    else:
        caption = f"{len(certificate.support):,} points whose weighted sum is zero, or nearly so"
        if values["verdict"] != INFEASIBLE:
            caption += f": no unit vector has a margin above {values['margin_upper']:.3g}"
        heavy = np.sort(certificate.weights[certificate.weights > 0])[::-1]
        picture = _picture("Weights, sorted", draw_ranks(heavy, "weight"), f"{caption}.")
    if not entries:
        nobody = "No points are named: the weighted sum is not proved to be zero, and accuses nobody."
        return Part("Weights of the certificate", nobody, figures=[picture])
    said = f"A weighted sum of these points is zero, {'the heaviest' if ordered is None else 'the most suspect'} first."
    if len(entries) > facts.MOST_POINTS:
        said += f" The first {facts.MOST_POINTS} of {len(entries)} points that are listed in result.json."
    return Part("Points in conflict", said, figures=[picture], table=facts.list_conflict(entries))


def _describe_soft_margin(run: Run, seen: Seen) -> Section:
    """How near a soft margin is to its minimum, and its hyperplane. Raises CorruptDataError for a result that is damaged."""
    values, reached = run.values, run.values["stopped"] == Stop.VERDICT
    passes, notes = read_trace(run.folder / TRACE, _parse_soft_pass)
    run = Run(run.folder, run.name, values, (), notes, run.certificate)
    try:
        near = f"as near to the minimum as {values['target']:g}" if reached else "not as near to the minimum as asked"
        why = REACHED if reached else Stop.explain(values["stopped"])
        parts = [Part("Answer", facts=facts.describe_answer(run))]
        if run.certificate is not None:
            parts += [_show_distances(run, seen, "hyperplane"), _show_coefficients(run, seen)]
        parts.append(_show_soft_course(values, [each for each in passes if each["objective"] is not None]))
        said = [f"Why it stopped: {why}."]
        memory = [event["memory_bytes"] for event in passes if isinstance(event.get("memory_bytes"), int)]
        return _build_section(run, seen, f"Soft margin, C = {values['C']:g}: {near}", said, parts, memory)
    except DfeasError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise CorruptDataError(f"{run.folder / RESULT}: not a readable result: {error}") from None


def _show_soft_course(values: dict[str, Any], passes: Sequence[dict[str, Any]]) -> Part:
    """How the gap shrank, the widest where there are several fits, and what came of each C."""
    from dfeas.report.figures import draw_errors, draw_gaps

    part = Part("Course of the run")
    if not passes:
        part.said = "No pass came as far as to know the objective."
        return part
    caption = f"The widest of the gaps of all fits; that of the chosen one is {values['gap']:.2g} in the end."
    part.figures = [_picture("Widest gap", draw_gaps(passes, values["target"]), caption)]
    if len({fit["C"] for fit in values["fits"]}) > 1:
        part.figures = [*part.figures, _picture("Path", draw_errors(values))]
    return part


def _parse_soft_pass(event: dict[str, Any]) -> dict[str, Any]:
    for name in ("passes", "objective", "lower", "gap"):
        if not isinstance(event[name], int | float | None):
            raise TypeError(f"{name} is {event[name]!r}")
    return event


def _load_soft_run(name: str, folder: Path) -> Run:
    values = load_soft(folder)
    return Run(folder, name, values, (), (), certificate_of(folder, values))


def _choose_target(runs: Sequence[str | Path], out: str | Path | None) -> Path:
    if out is None and len(runs) != 1:
        raise UsageError("several runs: say where the page goes, with --out FILE")
    target = Path(runs[0]) / "report.html" if out is None else Path(out)
    if not target.parent.is_dir():
        raise UsageError(f"{target}: no such folder")
    if target.is_dir():
        raise UsageError(f"{target}: a folder; give the name of a file")
    if target.exists():
        with target.open("rb") as file:
            if _TAG not in file.read(_HEAD_BYTES):
                raise UsageError(f"{target}: exists already and is no report of dfeas; choose another name with --out")
    return target
