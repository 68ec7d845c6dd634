"""Certificates with a kernel, given to the checker alone: parameters, lengths and offsets over the whole range of float64, and
points as they are or with a transform.

Balls of FLINT (arb) know what is true: products and distances of float64 are rational numbers, and exact in them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse
from flint import arb, arb_mat, ctx, fmpq

import dfeas
from dfeas.data.dataset import Dataset
from dfeas.data.source import DataSpec, Source, Transform
from dfeas.engine.local import LocalEngine
from dfeas.problem import read_transform
from dfeas.run.transform import with_transform
from dfeas.verify.certificate import Certificate
from dfeas.verify.core import check
from tests.fuzzing import gram
from tests.fuzzing.case import RIGHT, Case, Judgement, Word, rng_of, wrong
from tests.verify.test_verify import marked

BITS = 600
"""Of a ball: more than any margin of a certificate that is accepted needs."""
CLEAR = 1e-3
"""A share of all weights that rounding never takes: of scores above zero, and of bounds above the length of a sum."""
GAP = 2.0**-45
"""Relative, of bounds in float64 beside balls that are rounded to it."""
WORDS = [[], ["std"], ["center"], ["maxabs"], ["std", "center"], ["maxabs", "center"]]
"""Of transforms, and none."""

Balls = list[list[arb]]


def size(rng: np.random.Generator) -> float:
    """Of float64, with those below its normal numbers: each power of two as likely as any other."""
    return float(max(np.ldexp(1 + rng.random(), int(rng.integers(-1074, 1024))), 5e-324))


def kernel_of(rng: np.random.Generator, spread: float) -> dict[str, Any]:
    """Parameters anywhere; gamma half of the time where the kernel of points so far apart is between 0 and 1."""
    name = str(rng.choice(dfeas.KERNELS))
    found: dict[str, Any] = {"name": name, "gamma": 0.0, "degree": 0, "coef0": 0.0}
    if name in ("linear", "cosine"):
        return found
    power = 1 if name == "exponential" else 2
    near = 10.0 ** float(np.clip(rng.uniform(-3, 2) - power * math.log10(spread), -307, 307))
    found["gamma"] = near if rng.random() < 0.5 else size(rng)
    if name == "polynomial":
        found["degree"] = int(2.0 ** rng.uniform(0, rng.choice([3, 10, 19.9])))
        near = float(np.clip(math.log10(found["gamma"]) + 2 * math.log10(spread) + rng.uniform(-3, 3), -320, 307))
        found["coef0"] = (0.0, size(rng), 10.0**near)[rng.integers(3)]
    return found


def points(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A few, some of them zero, equal, an ulp apart, far from the origin, or of lengths of their own."""
    n, m = int(rng.integers(2, 7)), int(rng.integers(1, 4))
    X = rng.integers(-3, 4, (n, m)).astype(np.float64) if rng.random() < 0.5 else rng.standard_normal((n, m))
    way = rng.integers(5)
    if way == 0:
        X = X + 10.0 ** rng.uniform(0, 12)
    if way == 1:
        X = X * 10.0 ** rng.uniform(-120, 120)
    if way == 2:
        X = X * 10.0 ** rng.uniform(-120, 120, (n, 1))
    if way == 3:
        X[1:] = np.where(rng.random((n - 1, 1)) < 0.5, X[:1], np.nextafter(X[:1], np.inf))
    X[rng.random(n) < 0.1] = 0
    length = np.abs(X).max(axis=1)
    X[(length > 0) & (length < 1e-125)] = 1.0
    labels = np.where(rng.random(n) < 0.5, 1, -1)
    labels[0], labels[-1] = 1, -1
    return X, labels


def dot(x: list[fmpq], z: list[fmpq]) -> fmpq:
    return sum((a * b for a, b in zip(x, z, strict=True)), fmpq(0))


def entry(x: list[fmpq], z: list[fmpq], kernel: dict[str, Any]) -> arb:
    """The normalised kernel; 0 where K(x, x) is."""
    name, rate = kernel["name"], fmpq(*kernel["gamma"].as_integer_ratio())
    apart = [a - b for a, b in zip(x, z, strict=True)]
    if name in ("rbf", "exponential"):
        square = arb(dot(apart, apart))
        return (-arb(rate) * (square if name == "rbf" else square.sqrt())).exp()
    if name != "polynomial":
        rate = fmpq(1)
    shift = fmpq(*kernel["coef0"].as_integer_ratio())
    ours, theirs = rate * dot(x, x) + shift, rate * dot(z, z) + shift
    if not ours or not theirs:
        return arb(0)
    return (arb(rate * dot(x, z) + shift) / (arb(ours).sqrt() * arb(theirs).sqrt())) ** max(kernel["degree"], 1)


def see(X: Any, labels: np.ndarray, words: list[str]) -> Dataset:
    """Points in memory with their fingerprint, and with a transform of these words."""
    data = marked(X, labels, intercept=False)
    source = Source(DataSpec(X, labels, intercept=False))
    return with_transform((source, data), read_transform(words), 1 << 30)[1]


def exactly(X: np.ndarray, transform: Transform | None) -> np.ndarray:
    """(x - c) s (n, m), as fractions."""
    m = X.shape[1]
    shift, factor = ((), ()) if transform is None else (transform.shift, transform.factor)
    c, s = ([Fraction(v) for v in numbers or [default] * m] for numbers, default in ((shift, 0.0), (factor, 1.0)))
    rows = [[(Fraction(x) - c) * s for x, c, s in zip(row, c, s, strict=True)] for row in X.tolist()]
    return np.array(rows, object).reshape(X.shape)


def signed_gram(X: np.ndarray, labels: np.ndarray, kernel: dict[str, Any]) -> Balls:
    """l_i l_j K(x_i, x_j) / sqrt(K_ii K_jj); call it with ``BITS``."""
    rows = [[fmpq(*v.as_integer_ratio()) for v in row] for row in X.tolist()]
    found = [[arb(0)] * len(rows) for _ in rows]
    for i, x in enumerate(rows):
        for j, z in enumerate(rows[: i + 1]):
            found[i][j] = found[j][i] = int(labels[i]) * int(labels[j]) * entry(x, z, kernel)
    return found


def weights_of(rng: np.random.Generator, G: Balls) -> tuple[str, np.ndarray]:
    """A kind of certificate, and weights (n,): good ones of separators and of sums, spoilt ones, and any."""
    n = len(G)
    near = np.array([[float(v.mid()) for v in row] for row in G])
    way = rng.integers(6)
    if way < 2:
        weights = np.linalg.lstsq(near, np.ones(n), rcond=None)[0] if way else np.ones(n)
        return "separator", weights if rng.random() < 0.7 else weights * (1 + 10.0 ** rng.uniform(-16, 1, n))
    if way == 2:
        return "separator", rng.standard_normal(n) * 10.0 ** rng.uniform(-30, 30, n)
    if way == 3:
        weights = np.eye(n)[rng.integers(n)]
    elif way == 4:
        weights = rng.random(n) * 10.0 ** rng.uniform(-rng.choice([1, 20, 300]), 0, n)
    else:
        weights = np.abs(np.linalg.eigh(near)[1][:, 0])
    return "gordan", weights / weights.sum()


def examine(X: Any, labels: np.ndarray, words: list[str], **fields: Any) -> Any:
    """What the checker says of a certificate about points in memory."""
    data = see(X, labels, words)
    engine = LocalEngine(data, 1)
    try:
        return check(engine, data, Certificate(fingerprint=data.fingerprint, view=data.view, **fields))
    finally:
        engine.close()


@dataclass(frozen=True)
class KernelProof:
    examine: Callable[..., Any] = examine
    name: str = "kernel-proof"
    weight: float = 1.5
    seconds: float = 20.0

    def draw(self, seed: int) -> Case:
        rng = rng_of(self.name, seed)
        X, labels = points(rng)
        words = WORDS[int(rng_of(f"{self.name} seen", seed).integers(2 * len(WORDS))) % len(WORDS)]
        try:
            seen = exactly(X, see(X, labels, words).transform)
        except dfeas.DfeasError:  # what a transform makes of them has no length in float64
            words, seen = [], X
        kernel = kernel_of(rng, float(np.ptp(seen, axis=0).max()) or 1.0)
        with ctx.workprec(BITS):
            kind, weights = weights_of(rng, signed_gram(seen, labels, kernel))
        sparse = bool(rng.random() < 0.3) and "center" not in words
        options = {"kernel": kernel, "kind": kind, "sparse": sparse, "seen": words}
        return Case(self.name, seed, f"{kernel['name']} {kind}", {"X": X, "labels": labels, "weights": weights}, options)

    def judge(self, case: Case) -> Judgement:
        X, labels, weights = (case.arrays[name] for name in ("X", "labels", "weights"))
        kind, kernel = case.options["kind"], case.options["kernel"]
        support = np.flatnonzero(weights)
        stored, words = scipy.sparse.csr_array(X) if case.options["sparse"] else X, case.options["seen"]
        X = exactly(X, see(stored, labels, words).transform)
        with ctx.workprec(BITS):
            G = arb_mat(signed_gram(X, labels, kernel))
            w = arb_mat([[arb(v)] for v in weights.tolist()])
            scores = G * w
            length = (w.transpose() * scores)[0, 0].max(arb(0)).sqrt()
            least = min((scores[i, 0] for i in range(len(X))), key=lambda v: float(v.lower()))
            total = float(np.abs(weights).sum())
            text, some = json.dumps(kernel), weights[support]
            try:
                found = self.examine(stored, labels, words, kind=kind, support=support, weights=some, kernel=text)
            except dfeas.DfeasError as error:
                clear = is_sharp(X, kernel, words) and (kind == "gordan" or float(least.lower()) > CLEAR * total)
                text = f"{error}; the least score is {float(least.lower())!r}, of a length {float(length.upper())!r}"
                return Judgement(Word.UNPROVED if clear else Word.RIGHT, text)
            said = f"{found.verdict}/{found.proof} {found.margin_lower!r} .. {found.margin_upper!r}"
            if found.verdict == "infeasible":
                exact = gram.separable(X, labels, {**kernel, "kernel": kernel["name"]})
                return wrong(f"{said}: a separator exists") if exact else RIGHT
            if kind == "separator":
                best = float((least / length).upper()) * (1 + GAP) if least > 0 else 0.0
                return RIGHT if found.margin_lower <= best else wrong(f"{said}: the margin is {best!r}")
            share = float(length.lower()) / total
            if found.margin_upper < min(share, 1.0) * (1 - GAP):
                return wrong(f"{said}: the sum is {share!r} long")
            loose = is_sharp(X, kernel, words) and found.margin_upper > float(length.upper()) / total + CLEAR
            return Judgement(Word.UNPROVED, f"{said}: the sum is {share!r} long") if loose else RIGHT


def is_sharp(X: np.ndarray, kernel: dict[str, Any], words: list[str]) -> bool:
    """Whether the roundings of a transform leave a kernel what it is: not where it tells points apart that they move."""
    power = {"rbf": 2, "exponential": 1}.get(kernel["name"])
    if power is None or not words:
        return True
    reach = 2 * max(abs(float(v)) for v in X.ravel())
    return bool(kernel["gamma"] * len(X[0]) * reach**power * 2.0**-46 < CLEAR)
