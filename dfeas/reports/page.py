"""``dfeas.report``: one page about finished runs, that opens offline. Most of its words are in ``page.html``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from dfeas import __version__
from dfeas.answers.feasibility import call_constraint
from dfeas.answers.files import (
    CHECKPOINT,
    RESULT,
    SOFT_MARGIN,
    SOFT_MARGINS,
    TRACE,
    VERDICTS,
    certificate_of,
    read_separation,
    require_followed,
)
from dfeas.answers.result import Result, class_names, cost_row, plane_of, sides_from
from dfeas.answers.soft_margin import SoftMarginResult
from dfeas.answers.trace import read_trace, what_is_missing
from dfeas.answers.words import FEASIBLE, INFEASIBLE, RESUMABLE, UNDECIDED, Proof, Stop, Verdict
from dfeas.data.storage.files import atomic_write
from dfeas.data.storage.places import Place, paths_of, place
from dfeas.display import Row, parse_integer
from dfeas.errors import CorruptDataError, DfeasError, UsageError, format_bytes, install, spell, visible
from dfeas.linalg.points import Floats
from dfeas.methods.registry import FOR_CONES, FOR_KERNELS, METHODS, base_name
from dfeas.problem import PARAMETERS
from dfeas.records import replace
from dfeas.reports.compare import Run, explain_difference, find_loss, find_runs, load_alike, load_run
from dfeas.reports.margins import NOT_READ, Seen, look
from dfeas.settings import parse_bytes, require_type
from dfeas.verify.certificate import Certificate

_TAG = b'<meta name="generator" content="dfeas report">'
MOST_POINTS, MOST_FEATURES = 50, 12
"""Of a conflict, and of a hyperplane, that are listed."""
SEPARATED = "{kind} (proof: {proof}); {message}"


def report(
    runs: str | Path | Sequence[str | Path],
    out: str | Path | None = None,
    *,
    memory: str | int | None = None,
    data: bool = True,
    follow: bool = False,
) -> Place:
    """Write one page about finished runs, that opens offline.

    Parameters
    ----------
    runs : path, or sequence of paths
        Folders of runs; one that holds runs in its direct subfolders stands for all of them. Soft margins cannot be reported
        together with others.
    out : path, optional
        The page; by default ``report.html`` in the folder, when a single one is given. A page that dfeas wrote is replaced.
    memory : int or str
        Budget in bytes for reading the data.
    data : bool
        Whether to read the data once for the distances of the points from the final hyperplane.
    follow : bool
        As in ``dfeas.verify_run``.

    Returns
    -------
    Path
        The page; an ObjectPath in an object store.

    Raises
    ------
    UsageError
        Without matplotlib, without ``out`` for several folders, if ``out`` is a file that dfeas did not write, or if a run says
        that its data is at a URL, and neither ``follow`` nor ``data=False`` is given.
    BadInputError
        There is no finished run.
    CorruptDataError
        Files of a run are missing or damaged. If only the data is gone, the page reports it.

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
    from dfeas.figures import draw_brackets, style

    require_type("data", data, "bool")
    require_type("follow", follow, "bool")
    runs = paths_of(runs, "runs")
    budget, folders = parse_bytes(memory), find_runs(runs)
    soft, values = load_alike(folders)
    finished = [
        Run(folder, name, values[name], (), (), certificate_of(folder, values[name])) if soft else load_run(name, folder)
        for name, folder in folders.items()
    ]
    lost = {run.name: find_loss(run.folder, run.values) for run in finished}
    if not soft:
        finished = [replace(run, values={**run.values, "proof": Proof.NONE}) if lost[run.name] else run for run in finished]
    for run in finished if data and not follow else ():
        require_followed(run.folder, run.values, f"do not read it, {spell('data', False)}")
    target = _choose_target(runs, out)
    seen = look(finished, budget) if data else dict.fromkeys(folders, NOT_READ)
    describe, table = (_describe_soft_margin, SOFT_MARGINS) if soft else (_describe_verdict, VERDICTS)
    first = "soft margin" if soft else finished[0].values.get("verdict")
    first = f"{first}, not proved" if lost[finished[0].name] and not soft else first
    shown: dict[str, Any] = {"title": f"{finished[0].name}: {first}", "grid": None}
    with style():
        if len(finished) > 1:
            rows = [table.row(run.name, run.folder, run.values) for run in finished]
            with_passes = {run.name: [record.to_json() for record in run.records] for run in finished if run.records}
            shown = {
                "title": f"{len(finished)} {'soft margins' if soft else 'runs'}",
                "grid": table.grid(rows),
                "beware": explain_difference(rows),
                "brackets": draw_brackets(with_passes, eps_of(finished)) if with_passes else None,
            }
        text = render_page(soft=soft, runs=[describe(run, seen[run.name]) for run in finished], **shown)
    with atomic_write(target) as file:
        file.write(text.encode())
    return target


def eps_of(runs: Sequence[Run]) -> list[float]:
    """What was an answer to runs that asked for one."""
    return [run.values["eps"] for run in runs if run.values["eps"] is not None]


def render_page(**shown: Any) -> str:
    """The template with its values, all of which are text: controls are written as escapes, markup as entities."""
    import jinja2

    from dfeas.figures import encode_figure

    loader = jinja2.PackageLoader("dfeas.reports", "")
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    environment.finalize = lambda value: value if hasattr(value, "__html__") else visible(str(value))
    environment.filters |= {
        "encode": encode_figure,
        "number": "{:g}".format,
        "percent": format_percent,
        "points": format_points,
        "signed": format_signed,
        "size": format_bytes,
        "stop": Stop.explain,
        "proof": Proof.explain,
    }
    return environment.get_template("page.html").render(version=__version__, most=MOST_POINTS, **shown)


def format_percent(share: float) -> str:
    """A share of something, with three digits."""
    return f"{100 * share:.3g} %"


def format_points(count: int, of: int) -> str:
    """Which share of all points some are, and how many."""
    return f"{format_percent(count / of)} ({count:,} point{'s' if count != 1 else ''})"


def format_signed(value: float) -> str:
    """With a sign that is as wide as a plus."""
    return f"{value:+.3g}".replace("-", "−", 1) if value else "0"


def _describe_verdict(run: Run, seen: Seen) -> SimpleNamespace:
    from dfeas.figures import draw_brackets, draw_ranks

    if "violated" in run.values:
        try:
            return _describe_system(run, seen)
        except (LookupError, TypeError, ValueError) as error:
            raise _unreadable_error(run, error) from None
    values, certificate, ranks = run.values, run.certificate, None
    ordered = order_conflict(values["conflicts"])
    suspects, explained = explain_conflict(ordered) if ordered else ("", "")
    found = Verdict.explain(values["verdict"]).replace("above eps", f"above {values['eps']}")
    found = found.replace("no hyperplane", f"no hyperplane{_ask_about(values)}")
    answer, upper_only = Result.from_json(values, evidence=certificate), values["verdict"] == INFEASIBLE
    found = found if answer.term == answer.verdict else answer.term.capitalize()
    if ordered:
        scores = scores_of(ordered)
        ranks = draw_ranks(scores, "score", count_outliers(scores))
    elif certificate is not None and certificate.kind == "gordan":
        ranks = draw_ranks(np.sort(certificate.weights[certificate.weights > 0])[::-1], "weight")
    return _describe_run(
        run,
        seen,
        answer,
        headline=f"Not proved: {found}" if find_loss(run.folder, values) else f"{found}; {suspects}" if suspects else found,
        explained=explained,
        course=draw_brackets({"": [record.to_json() for record in run.records]}, eps_of([run]), upper_only=upper_only)
        if run.records
        else None,
        peak=max((record.memory_bytes for record in run.records), default=0),
        ordered=ordered,
        ranks=ranks,
    )


def _describe_system(run: Run, seen: Seen) -> SimpleNamespace:
    """What is known of linear inequalities: not what is known of the points that stand for them."""
    values, rows, head = run.values, list[tuple[str, ...]](), tuple[str, ...]()
    if values["verdict"] == INFEASIBLE:
        u, v, upper, lower = ([parse_integer(each) for each in values[name]] for name in ("u", "v", "upper", "lower"))
        named = [((f"row {row}", ""), each) for row, each in zip(values["rows"], u, strict=True)]
        for what, some in (("equality", v), ("upper bound of", upper), ("lower bound of", lower)):
            named += [((f"{what} {place}", ""), each) for place, each in enumerate(some) if each]
        if values.get("conflict"):
            named = [(call_constraint(each), parse_integer(each["multiplier"])) for each in values["conflict"]]
        most = max((abs(each) for _, each in named), default=1)
        head = "constraint", "", "multiplier, over the largest"
        rows = [(*call, f"{Fraction(each, most):.6g}") for call, each in sorted(named, key=lambda pair: -abs(pair[1]))]
    elif values["x"] is not None:
        head, names = ("variable", "value"), values.get("features") or ()
        rows = [(names[j] if len(names) == values["m"] else str(j), f"{each:.6g}") for j, each in enumerate(values["x"])]
    cost = cost_row(*(values[name] for name in ("passes", "method", "reads", "bytes_read", "seconds")))
    undecided, said = values["verdict"] == UNDECIDED, f"{str(values['verdict']).capitalize()}: {values['message']}"
    shown = _describe_run(
        replace(run, certificate=None, values={**values, "conflicts": [], "sides": None}),
        seen,
        Result.from_json(values),
        headline=Verdict.explain(values["verdict"]) if undecided else said,
        explained="",
        course=None,
        peak=max((record.memory_bytes for record in run.records), default=0),
        system=(head, rows),
        ordered=None,
    )
    verdict = f"{values['verdict']} (proof: {values['proof']}); {values['message']}"
    return SimpleNamespace(**{**vars(shown), "answer": {"verdict": verdict, cost.word: cost.text}})


def _describe_soft_margin(run: Run, seen: Seen) -> SimpleNamespace:
    """How near a soft margin is to its minimum, and its hyperplane. Raises CorruptDataError for a result that is damaged."""
    from dfeas.figures import Curve, draw_course, draw_errors

    values, reached = run.values, run.values["stopped"] == Stop.VERDICT
    passes, notes = read_trace(run.folder / TRACE, _parse_soft_pass)
    try:
        target = values["target"]
        near = f"as near to the minimum as {target:g}" if reached else "not as near to the minimum as asked"
        known, course, path = [each for each in passes if each["objective"] is not None], None, None
        if known:
            gaps = [max(each["gap"], target / 100) for each in known]  # 0 has no place on this axis
            curve: Curve = ("widest gap", [each["passes"] for each in known], gaps, {})
            course = draw_course([curve], {f"asked: {target:g}": target}, "relative gap")
            path = draw_errors(values) if len({fit["C"] for fit in values["fits"]}) > 1 else None
        return _describe_run(
            replace(run, notes=notes),
            seen,
            SoftMarginResult.from_json(values, y=np.empty(0), path=np.empty((1, 0))),
            headline=f"Soft margin, C = {values['C']:g}: {near}",
            course=course,
            peak=max((event["memory_bytes"] for event in passes if isinstance(event.get("memory_bytes"), int)), default=0),
            path=path,
        )
    except DfeasError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise _unreadable_error(run, error) from None


def _unreadable_error(run: Run, error: Exception) -> CorruptDataError:
    return CorruptDataError(f"{run.folder / RESULT}: not a readable result: {error}")


def _describe_run(run: Run, seen: Seen, answer: Result | SoftMarginResult, **more: Any) -> SimpleNamespace:
    """What the template needs of a run: all of its files, what its data says, and what was made of them."""
    from dfeas.figures import draw_margins

    values, certificate, place = run.values, run.certificate, run.values["data"] or {}
    separates = values.get("verdict") == FEASIBLE
    margin = values["margin_lower"] if separates else 0.0
    ordered = more.get("ordered") or []
    suspects = {f"point {_call_point(entry)}": entry["score"] for entry in ordered[: count_outliers(scores_of(ordered))][:3]}
    classes = class_names(sides_from(values.get("sides"))) or ("-1", "+1")
    of_cones = seen.header is not None and seen.header.cones is not None
    indirect = certificate is None or certificate.kernel or len(certificate.y) < values["m"] or place.get("point") or of_cones
    coefficients, bias, kind = None, 0.0, read_separation(run.folder)
    if certificate is not None and not indirect:
        names = values.get("features") or ()
        coefficients, bias = list_coefficients(certificate, values["m"], names, classes, seen.deviation)
    shown: dict[str, Any] = dict(
        **vars(run),
        seen=seen,
        place=place,
        answer={**describe_answer(answer), **({"separation": SEPARATED.format(**kind)} if kind else {})},
        kernel=kernel_parameters(values.get("kernel") or {}),
        direction="hyperplane" if "verdict" not in values else "separator" if separates else "best direction so far",
        margin=margin,
        distances=seen.margins and draw_margins(seen.margins, classes, margin, suspects),
        coefficients=coefficients,
        bias=bias,
        begun=next((note for note in run.notes if note["event"] == "projection"), {}),
        commands={what: shlex.join(words) for what, words in list_commands(run).items()},
        system=None,
        missing=what_is_missing(run.folder / TRACE, values["passes"]),
        lost=find_loss(run.folder, values),
    )
    return SimpleNamespace(**{**shown, **more})


def describe_answer(answer: Result | SoftMarginResult) -> dict[str, str]:
    """The rows that commands print of an answer, but for points of a conflict, which have a table."""
    texts: dict[str, str] = {}
    word = ""
    for row in answer._parts():
        if isinstance(row, Row):
            word, text = row.word or word, f"{row.verdict}{row.text}"
            texts[word] = f"{texts[word]}; {text}" if word in texts else text
    texts.pop("conflict", None)
    return texts


def count_outliers(scores: Floats) -> int:
    """How many of the first of ascending scores stand out: fewer than the others, and far beyond the plane that these lie close
    to. Where classes overlap the others are far from the plane as well, on either side, and nobody stands out.
    """
    steps = np.diff(scores)
    if not len(steps):
        return 0
    count = int(steps.argmax()) + 1
    # one wrong label among Gaussian points of 2 to 30 features was 6 to 12 times as far from the plane as any other point of
    # the conflict, the first of a conflict of overlapping classes 2 times at most
    apart = np.abs(scores[count:]).max() <= -scores[count - 1] / 4
    return count if apart and scores[count - 1] < 0 and 2 * count < len(scores) else 0


def order_conflict(entries: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]] | None:
    """The points of a conflict, the most suspect first; None where no direction was known, so that nobody is accused."""
    if not entries or any(entry["score"] is None for entry in entries):
        return None
    return sorted(entries, key=lambda entry: float(entry["score"]))


def scores_of(ordered: Sequence[Mapping[str, Any]]) -> Floats:
    """Of the points of a conflict."""
    return np.array([entry["score"] for entry in ordered], np.float64)


def _call_point(entry: Mapping[str, Any]) -> str:
    return f"{entry['point']}" + (f", {entry['name']}" if entry.get("name") is not None else "")


def explain_conflict(ordered: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Who stands out, in a few words, which are empty where nobody does; and what the scores say, in a sentence."""
    scores = scores_of(ordered)
    count, first = count_outliers(scores), format_signed(scores[0])
    if not count:
        lowest = f"point {_call_point(ordered[0])}, labelled {ordered[0]['label']}, has the lowest score, {first}"
        return "", f"{len(scores):,} points conflict, and none stands out: {lowest}."
    few = count <= 3  # that are named
    named = [f"{_call_point(entry)} (labelled {entry['label']})" for entry in ordered[:count]]
    suspects = f"{count:,} points stand out" if not few else f"suspect{'s' * (count > 1)}: point{'s' * (count > 1)} "
    suspects += ", ".join(named) * few
    own = f"score {first}" if count == 1 else f"scores {first} to {format_signed(scores[count - 1])}"
    others = f"{len(scores) - count:,} others of the conflict {format_signed(scores[count])} or more"
    return suspects, f"{own}, {others}: look at {'its label' if count == 1 else 'their labels'} first."


def list_coefficients(
    certificate: Certificate, m: int, names: Sequence[str], classes: tuple[str, str], deviation: Floats | None
) -> tuple[list[tuple[str, ...]], float]:
    """The features of the largest coefficients, each with the class towards which it pulls and its coefficient in the units of
    the data, where the intercept is what is returned beside them. Their order is by what one standard deviation more of a
    feature does, which stands last, where deviations (m,) of points as they were seen are known.
    """
    w, bias = plane_of(certificate.y, m, certificate.view)
    weight = w if deviation is None else certificate.y[:m] * deviation
    order = np.argsort(-np.abs(weight), kind="stable")[: int(np.count_nonzero(weight))]
    rows = []
    for feature in order[:MOST_FEATURES]:
        name = names[feature] if len(names) == m else f"feature {feature}"
        effects = [] if deviation is None else [format_signed(float(weight[feature]))]
        rows.append((name, classes[int(weight[feature] > 0)], format_signed(float(w[feature])), *effects))
    return rows, bias


def kernel_parameters(kernel: Mapping[str, Any]) -> dict[str, Any]:
    """Those that a kernel has; the others are zeros."""
    return {name: kernel[name] for name in PARAMETERS.get(str(kernel.get("name")), ()) if name in kernel}


def list_commands(run: Run) -> dict[str, list[str]]:
    """What to type to go on with the run, to check it, or to do it again."""
    values, folder, place = run.values, run.folder, run.values["data"]
    soft, commands = values.get("kind") == SOFT_MARGIN, {}
    if values["stopped"] in RESUMABLE and (folder / CHECKPOINT).is_dir():
        commands["To go on"] = ["dfeas", "resume", str(folder)]
    if (place is not None or values.get("asked")) and not soft and values["verdict"] != UNDECIDED:
        commands["To check it"] = ["dfeas", "verify", str(folder)]
    if place is not None and not (place.get("many") and place.get("labels")):
        with_what = ", with the weights and the seed that it had" if soft else ""
        commands[f"To do it again{with_what}"] = build_command(values, f"{folder.name}-again")
    return {what: words for what, words in commands.items() if words}


def build_command(values: Mapping[str, Any], out: str) -> list[str]:
    """The command line of a run on stored data, but for limits and whoever did the work; empty where there is none."""
    place, kernel, soft = values["data"], values.get("kernel") or {}, values.get("kind") == SOFT_MARGIN
    known = soft or base_name(values["method"]) in {*METHODS, *FOR_KERNELS, *FOR_CONES}
    if place.get("point") or kernel.get("name") == "callable" or not known:
        return []
    transform = place.get("transform") or {}
    options: dict[str, Any] = {
        "out": out,
        **{name: place.get(name) for name in ("labels", "positive", "mask")},
        "no-intercept": not (values["intercept"] or kernel or values.get("sides") is None),
        "scale": transform.get("scale"),
        "center": bool(transform.get("center")),
        "no-normalize": not transform.get("normalize", True),
    }
    if soft:
        prices = dict.fromkeys(fit["C"] for fit in values["fits"])
        folds = 1 + max((fit["fold"] for fit in values["fits"] if fit["fold"] is not None), default=-1)
        options |= {"C": ",".join(map(repr, prices)), "loss": values["loss"], "tol": values["target"], "folds": folds or None}
        options |= {"method": values["method"] if base_name(values["method"]) == "sgd" else None}
    else:
        options |= {"kernel": kernel.get("name"), **kernel_parameters(kernel), "method": values["method"]}
        options |= {"eps": values["eps"], "margin-tolerance": values["margin_tolerance"]}
    words = ["dfeas", "svm" if soft else "solve", str(place["path"])]
    for name, value in [*options.items(), *(("also", other) for other in place.get("also") or ())]:
        if value is not None and value is not False:
            words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return words


def _ask_about(values: dict[str, Any]) -> str:
    if values["intercept"]:
        return ""
    if values.get("kernel"):
        return " of the kernel's space"
    return " through the point" if (values["data"] or {}).get("point") is not None else " through the origin"


def _parse_soft_pass(event: dict[str, Any]) -> dict[str, Any]:
    for name in ("passes", "objective", "lower", "gap"):
        if not isinstance(event[name], int | float | None):
            raise TypeError(f"{name} is {event[name]!r}")
    return event


def _choose_target(runs: Sequence[str | Path], out: str | Path | None) -> Place:
    if out is None and len(runs) != 1:
        raise UsageError(f"several runs: say where the page goes, with {spell('out', 'FILE')}")
    target = place(runs[0]) / "report.html" if out is None else place(out)
    if not target.parent.is_dir():
        raise UsageError(f"{target}: no such folder")
    if target.is_dir():
        raise UsageError(f"{target}: a folder; give the name of a file")
    if target.exists():
        with target.open("rb") as file:
            if _TAG not in file.read(1000):
                raise UsageError(f"{target}: exists already and is no report of dfeas; choose another name with {spell('out')}")
    return target
