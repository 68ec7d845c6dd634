"""What a run was about and how it was made: its data, the machine, and the commands that check it or do it again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dfeas.errors import format_bytes
from dfeas.report.html import Html, element, facts, joined
from dfeas.report.margins import Seen
from dfeas.report.numbers import number, percent, points
from dfeas.run.result_files import CHECKPOINT, SOFT_MARGIN, TRACE
from dfeas.run.termination import RESUMABLE, UNDECIDED
from dfeas.run.trace import what_is_missing

MOST_ENTRIES = 12
"""Entries of a point that are shown."""
IN_MEMORY = "The data was in the memory of the process that made this run: there is nothing to check it against."
NO_COMMAND = "No command checks this run or does it again."


def names_of(values: Mapping[str, Any], seen: Seen) -> tuple[str, ...]:
    """Of the features, from the result or from the dataset; empty where they have none."""
    header = {} if seen.header is None else seen.header.to_json()
    found = (place.get(key) for key in ("features", "feature_names") for place in (values, header))
    return tuple(map(str, next((names for names in found if names), ())))


def classes_of(values: Mapping[str, Any], seen: Seen) -> tuple[str, str]:
    """How the labels -1 and +1 are called."""
    sides = values.get("sides") or {}
    negative, positive = ((sides.get(label) or {}).get("name") for label in ("-1", "+1"))
    if negative is not None and positive is not None:
        return str(negative), str(positive)
    return (seen.classes[0], seen.classes[1]) if len(seen.classes) == 2 else ("-1", "+1")


def trace_warning(folder: Path, values: Mapping[str, Any]) -> list[Html]:
    """Said where passes are missing on a page, or may be."""
    missing = what_is_missing(folder / TRACE, values["passes"])
    return [element("p", f"Beware: {missing}; the course below is not all of it.", class_="warning")] if missing else []


def data_block(values: Mapping[str, Any], seen: Seen) -> list[Html]:
    """Where the data is, how many points of which class it has, how large it is, and how it was seen."""
    place = values["data"] or {}
    what = {"data": str(place.get("path", "arrays in memory"))}
    what |= {name: str(place[name]) for name in ("labels", "mask") if place.get(name)}
    if place.get("also"):
        what["and"] = ", ".join(map(str, place["also"]))
    m = f"{values['m']:,}{' and an intercept' if values['intercept'] else ''}"
    what |= {"points": f"{values['n']:,}", "features": m}
    cones = None if seen.header is None else seen.header.cones
    if cones is not None:
        what |= {"cones": str(cones)}
    elif not place.get("point"):
        what |= _classes(values, seen)
    what |= _stored(seen)
    transform = place.get("transform")
    if transform:
        scaled = [f"scaled by {transform['scale']}"] if transform["scale"] else []
        centred = ["centred"] if transform["center"] else []
        what["seen as"] = ", ".join([*scaled, *centred, *([] if transform["normalize"] else ["not normalised"])])
    if place.get("point"):
        what["seen from"] = ", ".join(f"{entry:g}" for entry in place["point"][:MOST_ENTRIES])
    what["fingerprint"] = element("code", values["fingerprint"])
    return [element("h3", "Data"), facts(what)]


def _classes(values: Mapping[str, Any], seen: Seen) -> dict[str, str]:
    """How many points are labelled +1, and how many -1."""
    names, counts = classes_of(values, seen), _counts(values, seen)
    if counts[0] == 0 and names == ("-1", "+1"):
        return {"classes": "none: every point counts as +1"}
    texts = {}
    for sign, name, many in ((1, names[1], counts[1]), (0, names[0], counts[0])):
        label = "label +1" if sign else "label −1"
        called = [] if name in ("+1", "-1") else [name]
        counted = [] if many is None else [points(many, values["n"])]
        if called or counted:
            texts[label] = ", ".join([*called, *counted])
    return texts


def _counts(values: Mapping[str, Any], seen: Seen) -> tuple[int | None, int | None]:
    """Points labelled -1 and +1, where that is known."""
    sides = values.get("sides")
    if sides:
        negative, positive = ((sides.get(label) or {}).get("points", 0) for label in ("-1", "+1"))
        return negative, positive
    if seen.margins is not None:
        return seen.margins.points
    header, place = seen.header, values["data"] or {}
    if header is None or header.n != values["n"] or any(place.get(name) for name in ("labels", "mask", "also")):
        return None, None
    positive = header.positive
    if place.get("positive") is not None:
        if place["positive"] not in header.classes:
            return None, None
        index = header.classes.index(place["positive"])
        positive = header.counts[index] if header.counts else (header.positive, header.n - header.positive)[1 - index]
    return header.n - positive, positive


def _stored(seen: Seen) -> dict[str, str]:
    """What a dataset of ours says of its entries."""
    header = seen.header
    if header is None:
        return {}
    entries = header.entries
    share = "" if entries is None else f", sparse: {entries:,} entries ({percent(entries / (header.n * header.m))})"
    what = {"entries": f"{header.dtype}{share}", "size": format_bytes(seen.bytes)}
    if header.cones is None:
        first = f", the first of them {', '.join(map(str, header.first_zero))}" if header.first_zero else ""
        what["zero points"] = f"{header.zero:,}{first}" if header.zero else "none"
        what["lengths of points"] = f"{number(header.norm_min)} to {number(header.norm_max)}"
    if header.generator is not None:
        what["generated"] = ", ".join(f"{name} {value}" for name, value in header.generator.items() if value is not None)
    return what


def kernel_parameters(kernel: Mapping[str, Any]) -> dict[str, Any]:
    """Those that a kernel has; the others are zeros."""
    names = {"polynomial": ("gamma", "degree", "coef0"), "linear": (), "cosine": (), "callable": ()}
    return {name: kernel[name] for name in names.get(str(kernel.get("name")), ("gamma",)) if name in kernel}


def making_block(
    folder: Path, values: Mapping[str, Any], notes: Sequence[Mapping[str, Any]], memory_bytes: Sequence[int]
) -> list[Html]:
    """Machine, workers, memory and versions, and what to type to check the run, to go on with it, or to do it again."""
    begun = next((note for note in notes if note["event"] == "projection"), {})
    machine, workers = begun.get("machine"), begun.get("workers")
    what = {"run": str(folder)}
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
    what["versions"] = ", ".join(f"{name} {version}" for name, version in values["versions"].items())
    return [element("h3", "How this was made"), facts(what), joined(*_commands(folder, values))]


def _commands(folder: Path, values: Mapping[str, Any]) -> list[Html]:
    place, soft = values["data"], values.get("kind") == SOFT_MARGIN
    lines = []
    if values["stopped"] in RESUMABLE and (folder / CHECKPOINT).is_dir():
        lines.append(("To go on", ["dfeas", "resume", str(folder)]))
    if place is not None and not soft and values["verdict"] != UNDECIDED:
        lines.append(("To check it", ["dfeas", "verify", str(folder)]))
    again = [] if place is None or (place.get("many") and place.get("labels")) else command(values, f"{folder.name}-again")
    if again:
        lines.append(("To do it again, with the weights and the seed that it had" if soft else "To do it again", again))
    shown = [element("p", f"{what}: ", element("code", shlex.join(words)), class_="command") for what, words in lines]
    return shown or [element("p", IN_MEMORY if place is None else NO_COMMAND, class_="soft")]


def command(values: Mapping[str, Any], out: str) -> list[str]:
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
    words += [] if values["intercept"] or kernel else ["--no-intercept"]
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
