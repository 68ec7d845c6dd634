"""Files of runs of every kind with one thing edited: what ``dfeas verify`` accepts is a key that it lists as not checked."""

from __future__ import annotations

import copy
import io
import json
import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import dfeas
from tests.fuzzing.case import RIGHT, Case, Judgement, Word, rng_of, wrong
from tests.fuzzing.families import gaussian, integers, one_hot, touching, twins

FAMILIES = (gaussian, integers, one_hot, twins, touching)
RUNS = ("solve", "solve", "seen", "eps", "hard", "hard", "separation", "hull", "soft", "race", "classes", "kernel", "feasible")
RUNS += ("suspects", "suspects")
PROOFS = ("none", "floating_point", "rigorous", "exact")
WORDS = (PROOFS, ("feasible", "infeasible", "eps-infeasible"), ("complete", "quasi-complete", "overlap"))
"""One of each is exchanged for another one that is as good a word."""
HERE = b"/dfeas-edited/"
"""Stands for the folder in which a run was."""
SLACK = 1e-9


def written(what: str, rng: np.random.Generator, folder: Path) -> None:
    """A run in ``folder / "run"`` of data in ``folder / "data"``."""
    if what == "feasible":
        A, b = rng.integers(-4, 5, (int(rng.integers(2, 9)), 3)) * 0.1, rng.integers(-3, 4, 9) * 0.1
        np.save(folder / "A.npy", A)
        np.save(folder / "b.npy", b[: len(A)])
        dfeas.feasible(folder / "A.npy", folder / "b.npy", bounds=[(0, None), (-1.0, 2.0)][rng.integers(2)], out=folder / "run")
        return
    X, labels = (touching if what == "separation" else FAMILIES[rng.integers(len(FAMILIES))])(rng)
    X, labels = X[:40, :5], labels[:40].copy()
    labels[0], labels[-1] = 1, -1 if len(X) > 1 else 1
    names = np.where(labels > 0, "ham", "spam")
    if what == "classes":
        names[::3] = "eggs"
    if what == "hard":
        X = X + 3 * np.outer(labels, np.ones(X.shape[1]))
    dfeas.ingest(X, folder / "data", y=names, block_rows=int(rng.choice([4, 16, 64])))
    options: dict[str, Any] = {"out": folder / "run", "max_passes": 100}
    options["intercept"] = what != "kernel" and bool(rng.random() < 0.5)
    if what in ("seen", "hard") and rng.random() < (1 if what == "seen" else 0.3):
        center, scale, lengths = rng.random() < 0.7, rng.choice(["", "std", "maxabs"]), rng.random() >= 0.7
        words = {"center": center, str(scale): bool(scale), "lengths": lengths}
        options["transform"] = [word for word, given in words.items() if given]
    if what == "eps" or (what == "hard" and rng.random() < 0.3):
        options["method"] = "mirror-prox"
    if what == "kernel":
        options |= {"kernel": dfeas.Kernel("rbf", gamma=0.5)}
    if what == "hull":
        options.pop("intercept")
        dfeas.in_hull(X.mean(axis=0), folder / "data", **options)
    elif what == "soft":
        dfeas.soft_margin(folder / "data", C=1.0, **options)
    elif what == "race":
        dfeas.race(folder / "data", methods=["perceptron", "working-set"], **options)
    elif what == "hard":
        dfeas.hard_margin(folder / "data", **options)
    elif what == "separation":
        dfeas.separation(folder / "data", **options)
    elif what == "classes":
        dfeas.one_vs_rest(folder / "data", **options)
    elif what == "suspects":
        dfeas.suspects(folder / "data", **options)
    else:
        dfeas.solve(folder / "data", **({"eps": 0.5} if what == "eps" else {}), **options)


def other(rng: np.random.Generator, value: Any) -> Any:
    """A value that is not this one."""
    if isinstance(value, dict) and value and rng.random() < 0.7:
        return {name: each for name, each in value.items() if name != rng.choice(sorted(value))} | {"more": 1}
    if isinstance(value, list) and len(value) > 1:
        return [value[::-1], value[:-1], [*value, value[0]], value[1:] + value[:1]][rng.integers(4)]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return [value + 1, -value - 1, value * 1.01 + 1e-3, 0.5, str(value), None, math.nan, value + 0.25][rng.integers(8)]
    if isinstance(value, str):
        words = [word for some in WORDS if value in some for word in some if word != value]
        if words and rng.random() < 0.7:
            return str(rng.choice(words))
        return [value[::-1] + "x", "", value + "0", None, 3][rng.integers(5)]
    return [0, 1.5, "x", [], {}, True][rng.integers(6)]


def edited(rng: np.random.Generator, values: dict[str, Any]) -> tuple[str, Any, dict[str, Any]]:
    """The key of a JSON file that is edited, somewhere in its value, what was there, and the file."""
    found = copy.deepcopy(values)
    key = str(rng.choice(sorted(found)))
    before = copy.deepcopy(found[key])
    if rng.random() < 0.05:
        del found[key]
        return key, before, found
    holder, place = found, key
    while isinstance(holder[place], dict | list) and holder[place] and rng.random() < 0.7:
        holder = holder[place]
        place = sorted(holder)[rng.integers(len(holder))] if isinstance(holder, dict) else int(rng.integers(len(holder)))
    holder[place] = other(rng, holder[place])
    return key, before, found


def edited_arrays(rng: np.random.Generator, file: bytes) -> tuple[str, bytes]:
    """One array of a certificate is another one; which."""
    held = dict(np.load(io.BytesIO(file)))
    name = str(rng.choice(sorted(held)))
    value = held[name]
    if value.dtype.kind == "U":
        held[name] = np.array(str(value)[::-1] + "x")
    elif value.size:
        held[name] = (
            np.array([value * 2 + 1, value[::-1] + 1, value[:-1], -value][rng.integers(4)]) if value.ndim else value + 1
        )
    else:
        held[name] = np.ones(3, value.dtype)
    buffer = io.BytesIO()
    np.savez(buffer, **held)
    return name, buffer.getvalue()


@dataclass(frozen=True)
class Edited:
    verify_run: Callable[..., Any] = dfeas.verify_run
    name: str = "edited"
    weight: float = 1.5
    seconds: float = 20.0

    def draw(self, seed: int) -> Case:
        """All files of a run and of its data, one of them edited."""
        rng = rng_of(self.name, seed)
        what = str(rng.choice(RUNS))
        with tempfile.TemporaryDirectory() as folder:
            try:
                written(what, rng, Path(folder))
            except dfeas.DfeasError:
                return Case(self.name, seed, "refused", {}, {"what": what})
            there = f"{folder}/".encode()
            paths = [path for path in sorted(Path(folder).rglob("*")) if path.is_file()]
            files = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
        names = [name for name in files if name.startswith("run/") and name.endswith((".json", ".npz"))]
        name = str(rng.choice(names))
        head: dict[str, Any] = {"what": what, "file": name}
        if name.endswith(".npz"):
            head["key"], files[name] = edited_arrays(rng, files[name])
        else:
            head["key"], head["before"], values = edited(rng, json.loads(files[name]))
            head |= {"after": values[head["key"]]} if head["key"] in values else {}
            files[name] = json.dumps(values).encode()
        texts = {each: text.replace(there, HERE) if each.endswith(".json") else text for each, text in files.items()}
        held = {each: np.frombuffer(text, np.uint8) for each, text in texts.items()}
        return Case(self.name, seed, what, held, head)

    def judge(self, case: Case) -> Judgement:
        if case.family == "refused":
            return Judgement(Word.REFUSED)
        with tempfile.TemporaryDirectory() as folder:
            for name, held in case.arrays.items():
                (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
                text = held.tobytes()
                (Path(folder) / name).write_bytes(text.replace(HERE, f"{folder}/".encode()) if name.endswith(".json") else text)
            run = Path(folder) / "run"
            try:
                listed = self._listed(case, run)
            except dfeas.DfeasError as error:
                return Judgement(Word.RIGHT, str(error))
        options = case.options
        file, key = Path(options["file"]).name, options["key"]
        if file.endswith(".npz"):
            return RIGHT  # what it says now is proved, and so is what the result says
        if case.family == "suspects" and (key in ("y", "conflicts", "weights") or says_as_much(key, options)):
            return RIGHT  # the evidence itself
        names = {key, f"{key} of {file}", f"{key} of all classes"}
        if key == "data" or "after" not in options:
            return RIGHT  # the same data, by its fingerprint; or nothing is said
        if names & set(listed) or says_less(key, options["before"], options["after"]):
            return RIGHT
        return wrong(f"accepted {options['file']}: {key} = {options['after']!r}, was {options['before']!r}; listed {listed}")

    def _listed(self, case: Case, run: Path) -> list[str]:
        """What is not checked of something that was accepted."""
        folder = run.parent / Path(case.options["file"]).parent
        if case.family == "classes" and folder == run:
            return [name for each in self.verify_run(run).classes.values() if each is not None for name in each.not_checked]
        return list(self.verify_run(folder if case.family in ("classes", "race") else run).not_checked)


def says_as_much(key: str, options: dict[str, Any]) -> bool:
    """Whether a list names the same needed points."""
    if key != "points":
        return False
    kept = [
        sorted((each["point"], each["label"], each["flip"]) for each in options[when] if each["needed"])
        for when in ("before", "after")
    ]
    return kept[0] == kept[1]


def says_less(key: str, before: Any, after: Any) -> bool:
    """Whether the edit changes nothing but rounding, or claims less than was claimed."""
    if key == "proof" and before in PROOFS and after in PROOFS:
        return PROOFS.index(after) <= PROOFS.index(before)
    if key == "verdict" and (before, after) == ("infeasible", "eps-infeasible"):
        return True
    return alike(before, after)


def alike(before: Any, after: Any) -> bool:
    if isinstance(before, dict) and isinstance(after, dict):
        return before.keys() == after.keys() and all(alike(before[name], after[name]) for name in before)
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(alike, before, after))
    number = isinstance(before, float) and isinstance(after, int | float)
    return before == after or (number and abs(before - after) <= SLACK)
