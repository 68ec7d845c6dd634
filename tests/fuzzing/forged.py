"""Forged evidence: certificates that say what is not so; nothing false is accepted."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import dfeas
from tests.fuzzing import gram
from tests.fuzzing.case import RIGHT, Case, Judgement, Word, rng_of, wrong
from tests.fuzzing.families import dates, gaussian, integers, low_rank, one_hot, twins
from tests.fuzzing.oracle import Truth

FAMILIES = (gaussian, integers, low_rank, one_hot, dates, twins)
KERNELS = (
    {"kernel": "rbf", "gamma": 0.5}, {"kernel": "linear"}, {"kernel": "exponential", "gamma": 2.0},
    {"kernel": "polynomial", "gamma": 1.0, "degree": 2, "coef0": 1.0},
    {"kernel": "polynomial", "gamma": 1e-3, "degree": 200, "coef0": 0.0},
)  # fmt: skip
SLACK = 1e-12

FILE = "certificate.npz"
WAYS = ("kind", "y", "tiny", "flip", "drop", "one", "dense", "shift", "negative", "scale", "nan", "support", "none", "kernel")
Arrays = dict[str, np.ndarray]
Values = dict[str, Any]


def forged_certificate(rng: np.random.Generator, held: Arrays, n: int, d: int) -> str:
    """Change a certificate; returns how."""
    way = str(rng.choice(WAYS))
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


@dataclass(frozen=True)
class Forged:
    verify_certificate: Callable[..., Any] = dfeas.verify_certificate
    name: str = "forged"
    weight: float = 1.5
    seconds: float = 20.0

    def draw(self, seed: int) -> Case:
        """What a solve wrote, with one thing in it changed."""
        rng = rng_of(self.name, seed)
        what = str(rng.choice(["certificate", "certificate", "kernel"]))
        X, labels = FAMILIES[rng.integers(len(FAMILIES))](rng)
        labels[0], labels[-1] = 1, -1 if len(X) > 1 else 1
        options: Values = {"eps": float(rng.choice([1e-3, 0.3])), "intercept": bool(rng.random() < 0.3)}
        if what == "kernel":
            X, labels = X[:8, :3], labels[:8]
            options = {"eps": 1e-3, **KERNELS[rng.integers(len(KERNELS))]}
        head = {"what": what, **options}
        with tempfile.TemporaryDirectory() as folder:
            try:
                dfeas.ingest(X, Path(folder) / "data", y=labels)
                dfeas.solve(Path(folder) / "data", out=Path(folder) / "run", max_passes=200, **gram.arguments(options))
                held = dict(np.load(Path(folder) / "run" / "certificate.npz"))
            except (dfeas.DfeasError, FileNotFoundError):
                return Case(self.name, seed, "refused", {"X": X, "labels": labels}, head)
        head["way"] = forged_certificate(rng, held, len(X), X.shape[1] + bool(options.get("intercept")))
        buffer = io.BytesIO()
        np.savez(buffer, **held)
        return Case(self.name, seed, what, {"X": X, "labels": labels, FILE: np.frombuffer(buffer.getvalue(), np.uint8)}, head)

    def judge(self, case: Case) -> Judgement:
        if case.family == "refused":
            return Judgement(Word.REFUSED)
        with tempfile.TemporaryDirectory() as folder:
            data, certificate, intercept = Path(folder) / "data", Path(folder) / FILE, bool(case.options.get("intercept"))
            dfeas.ingest(case.arrays["X"], data, y=case.arrays["labels"])
            certificate.write_bytes(case.arrays[FILE].tobytes())
            try:
                check = self.verify_certificate(data, certificate, intercept=intercept)
            except dfeas.DfeasError as error:
                return Judgement(Word.RIGHT, str(error))
            with np.load(certificate) as held:
                kernel = json.loads(str(held["kernel"])) if "kernel" in held.files else None
        return believed(check, case.arrays["X"], case.arrays["labels"], kernel, intercept=intercept)


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
