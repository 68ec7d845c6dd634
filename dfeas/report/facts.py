"""What a page says in words and numbers: of the question, the answer, the data, and how the run was made."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dfeas.display import Grid, Row
from dfeas.errors import format_bytes
from dfeas.linalg.points import Floats
from dfeas.report.margins import Seen
from dfeas.run.result_files import CHECKPOINT, SOFT_MARGIN, Run
from dfeas.run.results import Result, class_names, plane_of, sides_from
from dfeas.run.soft_margin.result import SoftMarginResult
from dfeas.run.termination import RESUMABLE, UNDECIDED
from dfeas.verify.certificate import Certificate

MOST_POINTS, MOST_FEATURES, MOST_ENTRIES = 50, 12, 12
"""Of a conflict, of a hyperplane, of a point, that are listed."""
NAMED = 3
"""Points that stand out are named up to so many."""
APART = 4
"""Who stands out is so many times as far from the plane as any other point of the conflict. One wrong label among Gaussian
points of 2 to 30 features was at 6 to 12 times, the first of a conflict of overlapping classes at 2 at most."""
IN_MEMORY = "The data was in the memory of the process that made this run: there is nothing to check it against."


def format_percent(share: float) -> str:
    """A share of something, with three digits."""
    return f"{100 * share:.3g} %"


def format_points(count: int, of: int) -> str:
    """Which share of all points some are, and how many."""
    return f"{format_percent(count / of)} ({count:,} point{'s' if count != 1 else ''})"


def format_signed(value: float) -> str:
    """With a sign that is as wide as a plus."""
    return f"{value:+.3g}".replace("-", "−", 1) if value else "0"


def count_outliers(scores: Floats) -> int:
    """How many of the first of ascending scores stand out: fewer than the others, and far beyond the plane that these lie close
    to. Where classes overlap the others are far from the plane as well, on either side, and nobody stands out.
    """
    steps = np.diff(scores)
    if not len(steps):
        return 0
    count = int(steps.argmax()) + 1
    apart = np.abs(scores[count:]).max() <= -scores[count - 1] / APART
    return count if apart and scores[count - 1] < 0 and 2 * count < len(scores) else 0


def order_conflict(entries: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]] | None:
    """The points of a conflict, the most suspect first; None where no direction was known, so that nobody is accused."""
    if not entries or any(entry["score"] is None for entry in entries):
        return None
    return sorted(entries, key=lambda entry: float(entry["score"]))


def explain_conflict(ordered: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """Who stands out, in a few words, which are empty where nobody does; and what the scores say, in a sentence."""
    scores = np.array([entry["score"] for entry in ordered], np.float64)
    count, first = count_outliers(scores), format_signed(scores[0])
    if not count:
        lowest = f"point {ordered[0]['point']}, labelled {ordered[0]['label']}, has the lowest score, {first}"
        return "", f"{len(scores):,} points conflict, and none stands out: {lowest}."
    named = [f"{entry['point']} (labelled {entry['label']})" for entry in ordered[:count]]
    suspects = f"{count:,} points stand out" if count > NAMED else f"suspect{'s' * (count > 1)}: point{'s' * (count > 1)} "
    suspects += ", ".join(named) * (count <= NAMED)
    own = f"score {first}" if count == 1 else f"scores {first} to {format_signed(scores[count - 1])}"
    others = f"{len(scores) - count:,} others of the conflict {format_signed(scores[count])} or more"
    return suspects, f"{own}, {others}: look at {'its label' if count == 1 else 'their labels'} first."


def list_conflict(entries: Sequence[Mapping[str, Any]]) -> Grid:
    """The first points of a conflict as they are in the result."""
    rows = []
    for entry in entries[:MOST_POINTS]:
        score = "-" if entry["score"] is None else f"{entry['score']:+.6f}"
        rows.append((str(entry["point"]), str(entry["label"]), f"{entry['weight']:.6g}", score))
    return Grid(("point", "label", "weight", "score"), rows, left=2)


def list_coefficients(
    certificate: Certificate, m: int, names: Sequence[str], classes: tuple[str, str], deviation: Floats | None
) -> tuple[str, Grid | None]:
    """The largest coefficients in the units of the data, and towards which class each of them pulls.

    Their order is by what one standard deviation more of a feature does, where deviations (m,) of points as they were seen are
    known.
    """
    (w, bias), effect = plane_of(certificate.y, m, certificate.view), None
    if deviation is not None:
        effect = certificate.y[:m] * deviation
    weight = w if effect is None else effect
    order = np.argsort(-np.abs(weight), kind="stable")[: int(np.count_nonzero(weight))]
    if not len(order):
        return "All coefficients are zero.", None
    rows = []
    for place in order[:MOST_FEATURES]:
        name = names[place] if len(names) == m else f"feature {place}"
        effects = [] if effect is None else [format_signed(float(effect[place]))]
        rows.append((name, classes[int(weight[place] > 0)], format_signed(float(w[place])), *effects))
    by = "its size" if effect is None else "what one standard deviation more of the feature adds"
    said = (
        f"{len(rows)} of {m:,}, in the order of {by}; in the units of the data, where the intercept is {format_signed(bias)}."
    )
    head = ("feature", "towards", "coefficient", *([] if effect is None else ["one deviation"]))
    return said, Grid(head, rows, left=2)


def classes_of(values: Mapping[str, Any]) -> tuple[str, str]:
    """How the labels -1 and +1 are called."""
    return class_names(sides_from(values.get("sides"))) or ("-1", "+1")


def describe_answer(run: Run) -> dict[str, str]:
    """What was asked, and the rows that commands print of the answer, but for points of a conflict, which have a table."""
    values, word = run.values, ""
    what = {"method": f"{values['method']} ({values['why']})" if "why" in values else values["method"]}
    if values.get("kernel"):
        parameters = (f"{name} {value:g}" for name, value in kernel_parameters(values["kernel"]).items())
        what["kernel"] = ", ".join([str(values["kernel"]["name"]), *parameters])
    answer: Result | SoftMarginResult = (
        SoftMarginResult.from_json(values, np.empty(0))
        if values.get("kind") == SOFT_MARGIN
        else Result.from_json(values, evidence=run.certificate)
    )
    for row in answer._parts():
        if isinstance(row, Row):
            word = row.word or word
            text = f"{row.verdict}{row.text}"
            what[word] = f"{what[word]}; {text}" if word in what else text
    what.pop("conflict", None)
    goals = ("eps", "margin_tolerance", "target")
    return what | {name.replace("_", " "): f"{values[name]:g}" for name in goals if values.get(name) is not None}


def describe_data(values: Mapping[str, Any], seen: Seen) -> dict[str, str]:
    """Where the data is, how many points of which class it has, how large it is, and how it was seen."""
    place, header = values["data"] or {}, seen.header
    what = {"data": str(place.get("path", "arrays in memory"))}
    what |= {name: str(place[name]) for name in ("labels", "mask") if place.get(name)}
    if place.get("also"):
        what["and"] = ", ".join(map(str, place["also"]))
    what |= {"points": f"{values['n']:,}", "features": f"{values['m']:,}{' and an intercept' if values['intercept'] else ''}"}
    if header is not None and header.cones is not None:
        what["cones"] = str(header.cones)
    elif not place.get("point"):
        what |= _describe_classes(values)
    if header is not None:
        share = "" if header.entries is None else f", sparse: {header.entries:,} entries"
        what |= {"entries": f"{header.dtype}{share}", "size": format_bytes(seen.bytes)}
        if header.cones is None:
            first = f", the first of them {', '.join(map(str, header.first_zero))}" if header.first_zero else ""
            what["zero points"] = f"{header.zero:,}{first}" if header.zero else "none"
        if header.generator is not None:
            what["generated"] = ", ".join(f"{name} {value}" for name, value in header.generator.items() if value is not None)
    transform = place.get("transform")
    if transform:
        scaled = [f"scaled by {transform['scale']}"] if transform["scale"] else []
        centred = ["centred"] if transform["center"] else []
        what["seen as"] = ", ".join([*scaled, *centred, *([] if transform["normalize"] else ["not normalised"])])
    if place.get("point"):
        what["seen from"] = ", ".join(f"{entry:g}" for entry in place["point"][:MOST_ENTRIES])
    return what | {"fingerprint": values["fingerprint"]}


def _describe_classes(values: Mapping[str, Any]) -> dict[str, str]:
    """How many points are labelled +1, and how many -1."""
    sides = values.get("sides") or {}
    if len(sides) == 1:
        return {"classes": "none: every point counts as +1"}
    texts = {}
    for label, side in reversed(sides.items()):
        called = "" if side["name"] in (None, "+1", "-1") else f"{side['name']}, "
        texts[f"label {label}"] = called + format_points(side["points"], values["n"])
    return texts


def kernel_parameters(kernel: Mapping[str, Any]) -> dict[str, Any]:
    """Those that a kernel has; the others are zeros."""
    names = {"polynomial": ("gamma", "degree", "coef0"), "linear": (), "cosine": (), "callable": ()}
    return {name: kernel[name] for name in names.get(str(kernel.get("name")), ("gamma",)) if name in kernel}


def describe_making(run: Run, memory_bytes: Sequence[int]) -> dict[str, str]:
    """Machine, workers, memory and versions."""
    begun = next((note for note in run.notes if note["event"] == "projection"), {})
    machine, workers, what = begun.get("machine"), begun.get("workers"), {"run": str(run.folder)}
    if isinstance(begun.get("began"), str):
        what["began"] = begun["began"].replace("+00:00", " UTC")
    if isinstance(machine, Mapping):
        kind = [str(machine[name]) for name in ("system", "processor") if machine.get(name)]
        cores = [f"{machine['cores']} cores"] if machine.get("cores") else []
        memory = [f"{format_bytes(machine['memory_bytes'])} of memory"] if isinstance(machine.get("memory_bytes"), int) else []
        what["machine"] = ", ".join([*kind, *cores, *memory])
    if isinstance(workers, int):
        what["work"] = f"{workers} worker processes of a Dask cluster" if workers else "threads of one process"
    if memory_bytes:
        what["memory"] = f"{format_bytes(max(memory_bytes))} at its peak after a pass, in the process that began the run"
    return what | {"versions": ", ".join(f"{name} {version}" for name, version in run.values["versions"].items())}


def list_commands(run: Run) -> list[tuple[str, str]]:
    """What to type to go on with the run, to check it, or to do it again."""
    values, folder = run.values, run.folder
    place, soft, lines = values["data"], values.get("kind") == SOFT_MARGIN, []
    if values["stopped"] in RESUMABLE and (folder / CHECKPOINT).is_dir():
        lines.append(("To go on", ["dfeas", "resume", str(folder)]))
    if place is not None and not soft and values["verdict"] != UNDECIDED:
        lines.append(("To check it", ["dfeas", "verify", str(folder)]))
    again = (
        [] if place is None or (place.get("many") and place.get("labels")) else build_command(values, f"{folder.name}-again")
    )
    if again:
        lines.append(("To do it again, with the weights and the seed that it had" if soft else "To do it again", again))
    return [(what, shlex.join(words)) for what, words in lines]


def build_command(values: Mapping[str, Any], out: str) -> list[str]:
    """The command line of a run on stored data, but for limits and whoever did the work; empty where there is none."""
    place, soft = values["data"], values.get("kind") == SOFT_MARGIN
    kernel: Mapping[str, Any] = values.get("kernel") or {}
    if place.get("point") or kernel.get("name") == "callable":
        return []
    words = ["dfeas", "svm" if soft else "solve", str(place["path"]), "--out", out]
    for name in ("labels", "positive", "mask"):
        words += [f"--{name}", str(place[name])] if place.get(name) else []
    for other in place.get("also") or ():
        words += ["--also", str(other)]
    of_cones = values.get("sides") is None
    words += [] if values["intercept"] or kernel or of_cones else ["--no-intercept"]
    transform = place.get("transform") or {}
    words += ["--scale", transform["scale"]] if transform.get("scale") else []
    words += ["--center"] if transform.get("center") else []
    words += [] if transform.get("normalize", True) else ["--no-normalize"]
    return [*words, *(_soft_options(values) if soft else _verdict_options(values, kernel))]


def _verdict_options(values: Mapping[str, Any], kernel: Mapping[str, Any]) -> list[str]:
    words = ["--kernel", str(kernel["name"])] if kernel else []
    for name, value in kernel_parameters(kernel).items():
        words += [f"--{name}", f"{value!r}"]
    words += ["--method", values["method"], "--eps", f"{values['eps']!r}"]
    tolerance = values["margin_tolerance"]
    return words if tolerance is None else [*words, "--margin-tolerance", f"{tolerance!r}"]


def _soft_options(values: Mapping[str, Any]) -> list[str]:
    prices = list(dict.fromkeys(fit["C"] for fit in values["fits"]))
    folds = 1 + max((fit["fold"] for fit in values["fits"] if fit["fold"] is not None), default=-1)
    words = ["--C", ",".join(f"{price!r}" for price in prices), "--loss", values["loss"], "--gap", f"{values['target']!r}"]
    words += ["--folds", str(folds)] if folds else []
    return [*words, "--method", "sgd"] if values["method"] == "sgd" else words
