"""Forged evidence: certificates, result.json and separation.json that say what is not so; nothing false is accepted."""

from __future__ import annotations

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
from tests.fuzzing import gram
from tests.fuzzing.case import RIGHT, Case, Judgement, Word, rng_of, wrong
from tests.fuzzing.families import dates, gaussian, integers, low_rank, one_hot, touching, twins
from tests.fuzzing.oracle import Truth

FAMILIES = (gaussian, integers, low_rank, one_hot, dates, twins)
KERNELS = (
    {"kernel": "rbf", "gamma": 0.5}, {"kernel": "linear"}, {"kernel": "exponential", "gamma": 2.0},
    {"kernel": "polynomial", "gamma": 1.0, "degree": 2, "coef0": 1.0},
    {"kernel": "polynomial", "gamma": 1e-3, "degree": 200, "coef0": 0.0},
)  # fmt: skip
SLACK = 1e-12
PROOFS = ("none", "floating_point", "rigorous", "exact")

Arrays = dict[str, np.ndarray]
Values = dict[str, Any]


def forged_certificate(rng: np.random.Generator, held: Arrays, n: int, d: int) -> str:
    """Change a certificate; returns how."""
    ways = (
        "kind",
        "y",
        "tiny",
        "flip",
        "drop",
        "one",
        "dense",
        "shift",
        "negative",
        "scale",
        "nan",
        "support",
        "none",
        "kernel",
    )
    way = str(rng.choice(ways))
    y, weights, support = held["y"], held["weights"], held["support"]
    if way == "kind":
        held["kind"] = np.array("gordan" if str(held["kind"]) == "separator" else "separator")
    if way == "y":
        held.update(kind=np.array("separator"), y=rng.standard_normal(d), support=support[:0], weights=weights[:0])
    if way == "tiny" and len(y):
        held["y"] = y + 10.0 ** rng.integers(-17, 0) * np.abs(y).max() * rng.standard_normal(len(y))
    if way == "flip" and len(y):
        held["y"] = y * np.where(np.arange(len(y)) == rng.integers(len(y)), -1, 1)
    if way in ("drop", "one") and len(support):
        kept = np.arange(len(support)) == rng.integers(len(support))
        kept = kept if way == "one" else ~kept
        held.update(support=support[kept], weights=weights[kept] / (weights[kept].sum() or 1))
    if way == "dense":
        held.update(kind=np.array("gordan"), y=y[:0], support=np.arange(n, dtype=np.int64), weights=rng.dirichlet(np.ones(n)))
    if way in ("shift", "support") and len(support):
        held["support"] = (support + 1) % n if way == "shift" else np.sort(rng.choice(n, len(support), replace=False))
    if way == "negative" and len(weights):
        held["weights"] = weights * np.where(rng.random(len(weights)) < 0.5, -1, 1)
    if way == "scale":
        held.update(y=y * 10.0 ** rng.integers(-320, 300), weights=weights * 10.0 ** rng.integers(-20, 20))
    if way == "nan":
        held.update(y=np.where(rng.random(len(y)) < 0.5, np.nan, y), weights=np.where(weights == weights, np.inf, 0))
    if way == "kernel":
        held["kernel"] = np.array(json.dumps({"name": "polynomial", "gamma": 1e-3, "degree": 200, "coef0": 0.0}))
        held.update(kind=np.array("gordan"), y=y[:0], support=np.array([rng.integers(n)]), weights=np.ones(1))
    return way


def stronger(proof: str) -> list[str]:
    """Levels of proof above one; to claim less is no lie."""
    return list(PROOFS[PROOFS.index(proof) + 1 :])


def forged_result(rng: np.random.Generator, values: Values) -> tuple[str, Any]:
    """A key of result.json, and what it is not."""
    lies: dict[str, list[Any]] = {
        "verdict": ["infeasible"] if values["verdict"] == "feasible" else ["feasible"],
        "proof": stronger(values["proof"]),
        "margin_lower": [values["margin_upper"] + 0.1, math.nan, None, "0.1"],
        "margin_upper": [min(values["margin_lower"], 0) - 0.1, math.nan, None],
        "eps": [math.nan, -1.0, "small"],
        "intercept": [not values["intercept"], 1.5],
        "n": [values["n"] + 1, None], "m": [values["m"] + 1, -1],
        "fingerprint": ["0" * 64, None],
        "data": [5, "x", [], {"path": 3}, {}],
        "conflicts": [[{"point": int(rng.integers(values["n"])) - values["n"], "label": "1", "weight": 1.0, "score": None}]],
    }  # fmt: skip
    key = str(rng.choice(sorted(key for key, some in lies.items() if some)))
    return key, lies[key][rng.integers(len(lies[key]))]


def forged_separation(rng: np.random.Generator, values: Values) -> tuple[str, Any]:
    """A key of separation.json, and what it is not."""
    lies: dict[str, list[Any]] = {
        "kind": [v for v in ("complete", "quasi-complete", "overlap") if v != values["kind"]],
        "proof": stronger(values["proof"]),
        "fingerprint": ["0" * 64, None],
    }
    if values["kind"] == "quasi-complete":
        lies |= {"on": [values["on"] + 1], "y": [[0] * len(values["y"] or [0]), [-v for v in values["y"] or [1]], [1]]}
    key = str(rng.choice(sorted(key for key, some in lies.items() if some)))
    return key, lies[key][rng.integers(len(lies[key]))]


@dataclass(frozen=True)
class Forged:
    verify_certificate: Callable[..., Any] = dfeas.verify_certificate
    verify_run: Callable[..., Any] = dfeas.verify_run
    name: str = "forged"
    weight: float = 1.5
    seconds: float = 20.0

    def draw(self, seed: int) -> Case:
        """What a solve wrote, with one thing in it changed."""
        rng = rng_of(self.name, seed)
        what = str(rng.choice(["certificate", "certificate", "kernel", "result", "separation"]))
        X, labels = touching(rng) if what == "separation" else FAMILIES[rng.integers(len(FAMILIES))](rng)
        labels[0], labels[-1] = 1, -1 if len(X) > 1 else 1
        options: Values = {"eps": float(rng.choice([1e-3, 0.3])), "intercept": bool(rng.random() < 0.3)}
        if what == "kernel":
            X, labels = X[:8, :3], labels[:8]
            options = {"eps": 1e-3, **KERNELS[rng.integers(len(KERNELS))]}
        if what == "result" and rng.random() < 0.5:
            options |= {"method": "mirror-prox", "eps": 0.5}
        head = {"what": what, **options}
        with tempfile.TemporaryDirectory() as folder:
            try:
                files = written(X, labels, options, Path(folder), what)
            except dfeas.DfeasError:
                return Case(self.name, seed, "refused", {"X": X, "labels": labels}, head)
        if "certificate.npz" not in files or (what == "separation" and "separation.json" not in files):
            return Case(self.name, seed, "refused", {"X": X, "labels": labels}, head)
        if what in ("certificate", "kernel"):
            held = dict(np.load(io.BytesIO(files["certificate.npz"])))
            head["way"] = forged_certificate(rng, held, len(X), X.shape[1] + bool(options.get("intercept")))
            buffer = io.BytesIO()
            np.savez(buffer, **held)
            files["certificate.npz"] = buffer.getvalue()
        else:
            name, forge = ("result.json", forged_result) if what == "result" else ("separation.json", forged_separation)
            values = json.loads(files[name])
            head["way"], lie = forge(rng, values)
            head["lie"] = repr(lie)
            values[head["way"]] = lie
            files[name] = json.dumps(values).encode()
        arrays = {"X": X, "labels": labels}
        return Case(self.name, seed, what, arrays | {name: np.frombuffer(text, np.uint8) for name, text in files.items()}, head)

    def judge(self, case: Case) -> Judgement:
        if case.family == "refused":
            return Judgement(Word.REFUSED)
        with tempfile.TemporaryDirectory() as folder:
            data, run = Path(folder) / "data", Path(folder) / "run"
            dfeas.ingest(case.arrays["X"], data, y=case.arrays["labels"])
            run.mkdir()
            for name in ("certificate.npz", "result.json", "separation.json"):
                if name in case.arrays:
                    text = case.arrays[name].tobytes()
                    (run / name).write_bytes(text if name != "result.json" else moved(text, data))
            try:
                return self._judged(case, data, run)
            except dfeas.DfeasError as error:
                return Judgement(Word.RIGHT, str(error))

    def _judged(self, case: Case, data: Path, run: Path) -> Judgement:
        """What comes of something that was accepted."""
        options = case.options
        if case.family in ("result", "separation"):
            check = self.verify_run(run)
            return wrong(f"accepted {options['way']} = {options['lie']}: {check}")
        certificate = run / "certificate.npz"
        check = self.verify_certificate(data, certificate, intercept=bool(options.get("intercept")))
        with np.load(certificate) as held:
            kernel = json.loads(str(held["kernel"])) if "kernel" in held.files else None
        return believed(check, case.arrays["X"], case.arrays["labels"], kernel, intercept=bool(options.get("intercept")))


def written(X: np.ndarray, labels: np.ndarray, options: Values, folder: Path, what: str) -> dict[str, bytes]:
    """What a solve writes."""
    dfeas.ingest(X, folder / "data", y=labels)
    if what == "separation":  # whose eps is its own
        dfeas.separation(folder / "data", out=folder / "run", max_passes=200, intercept=options["intercept"])
    else:
        dfeas.solve(folder / "data", out=folder / "run", max_passes=200, **gram.arguments(options))
    names = ("certificate.npz", "result.json", "separation.json")
    return {name: (folder / "run" / name).read_bytes() for name in names if (folder / "run" / name).exists()}


def moved(text: bytes, data: Path) -> bytes:
    """The result, about data in another folder, where it has not been made to say something else."""
    values = json.loads(text)
    if isinstance(values["data"], dict) and isinstance(values["data"].get("path"), str):
        values["data"]["path"] = str(data)
    return json.dumps(values).encode()


def believed(check: Any, X: np.ndarray, labels: np.ndarray, kernel: Values | None, *, intercept: bool) -> Judgement:
    """Whether what a check says is true, whatever the certificate was."""
    if kernel is None:
        truth = Truth(X, labels, intercept)
        feasible, (low, high) = truth.feasible, truth.margin
    else:
        asked = {**kernel, "kernel": kernel["name"]}
        feasible, (low, high) = gram.separable(X, labels, asked), gram.bracket(X, labels, asked)
    said = f"accepted: {check.verdict}/{check.proof} {check.margin_lower!r} .. {check.margin_upper!r}"
    if check.verdict == "feasible" and (feasible is False or check.margin_lower > high * (1 + SLACK) + SLACK):
        return wrong(f"{said}; the margin is {low!r} .. {high!r}, separable is {feasible}")
    if check.verdict == "infeasible" and feasible:
        return wrong(f"{said}; a separator exists")
    if check.verdict == "eps-infeasible" and check.margin_upper < low * (1 - SLACK) - SLACK:
        return wrong(f"{said}; a margin of {low!r} exists")
    return RIGHT
