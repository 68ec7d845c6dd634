"""Points whose answer is known from how they were made, and proved in whole numbers on the floats that are stored.

Feasible ones come with a direction w, and the label of a point is the exact sign of its score; what lies on the plane is left
out. Infeasible ones come with points among them that conflict. Where points are made from two others, these are ``crossed``: a
and b on one side, and on the other c and d, which are a and b with some entries exchanged, so that a + b - c - d is zero in any
floats; or ``opposed``: a, b and -(a + b), entries being multiples of a power of two that leaves room for the sum.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.tables.truth import conflict, signs

Rng = np.random.Generator
Floats = np.ndarray

FEASIBLE, INFEASIBLE = "feasible", "infeasible"
GRID = 2.0**-47
"""Entries below 16 are multiples of it in 51 bits, and the sum of two in 52."""


@dataclass(frozen=True)
class Points:
    """Points with their labels, and why the answer is known."""

    X: Any  # (n, m) dense or CSR
    y: np.ndarray  # (n,) -1 and 1
    w: Floats | None = None  # (m,) a direction that separates them
    against: np.ndarray | None = None  # indices of points that conflict

    def truth(self) -> str:
        """Proved here, or an assertion fails: the regime was made wrongly."""
        if self.w is not None:
            assert (signs(self.X, self.w) == self.y).all(), "a direction that does not separate"
            return FEASIBLE
        assert self.against is not None
        rows = self.X[self.against].astype(np.float64)
        rows = (
            sp.diags(self.y[self.against].astype(float)) @ rows if sp.issparse(rows) else rows * self.y[self.against][:, None]
        )
        assert conflict(rows), "points that do not conflict"
        return INFEASIBLE


@dataclass(frozen=True)
class Regime:
    """A family at one size, and the memory that a run may take."""

    family: str
    n: int
    m: int
    make: Callable[[Rng, int, int], Points]
    detail: str = ""
    memory: str = ""  # that of dfeas by default

    @property
    def name(self) -> str:
        words = [self.family, self.detail, f"{self.m} x {self.n}", f"in {self.memory}" if self.memory else ""]
        return " ".join(word for word in words if word)

    def points(self, seed: int, scale: float = 1.0) -> Points:
        """The same for the same seed: those of a family in little memory are those in much."""
        rng = np.random.default_rng([seed, zlib.crc32(f"{self.family} {self.detail} {self.m} {self.n}".encode())])
        return self.make(rng, max(3 * self.m if self.n > 3 * self.m else self.n, int(self.n * scale)), self.m)


def labelled(X: Any, w: Floats) -> Points:
    """Points with the exact signs of their scores; those on the plane are left out."""
    sign = signs(X, w)
    return Points(X[sign != 0], sign[sign != 0], w)


def shuffled(rng: Rng, X: Any, y: np.ndarray, against: int) -> Points:
    """Points in another order; the last ones, as many as ``against``, conflict."""
    order = rng.permutation(len(y))
    place = np.argsort(order)
    return Points(X[order], y[order], against=place[len(y) - against :])


def crossed(rng: Rng, made: Points) -> Points:
    """With four points more, two of them on the side of their labels, and two that are these with entries exchanged."""
    m = made.X.shape[1]
    side = np.flatnonzero(made.y == made.y[0])
    for _ in range(100):
        pair = made.X[rng.choice(side, 2, replace=False)]
        swap = rng.random(m) < 0.5
        if sp.issparse(made.X):
            keep, move = sp.diags((~swap).astype(pair.dtype)), sp.diags(swap.astype(pair.dtype))
            other = sp.csr_array(pair @ keep + pair[[1, 0]] @ move).astype(pair.dtype)
            differs = abs(other - pair).sum() > 0 and abs(other - pair[[1, 0]]).sum() > 0
            X = sp.csr_array(sp.vstack([made.X, pair, other]))
        else:
            other = np.where(swap, pair[::-1], pair)
            differs = bool((other != pair).any() and (other != pair[::-1]).any())
            X = np.vstack([made.X, pair, other])
        if differs:
            break
    label = made.y[0]
    return shuffled(rng, X, np.concatenate([made.y, [label, label, -label, -label]]).astype(np.int8), 4)


def opposed(rng: Rng, made: Points) -> Points:
    """With three points more: two on the side of their labels, and their sum with the label of the other side."""
    side = np.flatnonzero(made.y == made.y[0])
    pair = made.X[rng.choice(side, 2, replace=False)]
    X = np.vstack([made.X, pair, pair.sum(axis=0)])
    return shuffled(rng, X, np.concatenate([made.y, [made.y[0], made.y[0], -made.y[0]]]).astype(np.int8), 3)


def units(rng: Rng, n: int, m: int) -> Floats:
    X = rng.standard_normal((n, m))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def rotation(rng: Rng, m: int) -> Floats:
    return np.linalg.qr(rng.standard_normal((m, m)))[0]


def halfspace(rng: Rng, n: int, m: int, dtype: str = "float32", wrong: bool = False) -> Points:
    made = labelled(units(rng, n, m).astype(dtype), rng.standard_normal(m))
    return crossed(rng, made) if wrong else made


def overlap(rng: Rng, n: int, m: int, share: float) -> Points:
    """A share of the labels is wrong, and four points conflict for sure."""
    made = crossed(rng, halfspace(rng, n, m))
    flip = rng.random(len(made.y)) < share
    flip[made.against] = False
    return Points(made.X, np.where(flip, -made.y, made.y), against=made.against)


def condition(rng: Rng, n: int, m: int, number: float, wrong: bool = False) -> Points:
    """Features of scales from 1 to 1 / number, rotated: no scale of features helps."""
    scales = np.logspace(0, -np.log10(number), m)
    turn = rotation(rng, m)
    X = np.round(rng.standard_normal((n, m)) * scales @ turn / GRID) * GRID
    made = labelled(X, (rng.standard_normal(m) / scales) @ turn)
    return opposed(rng, made) if wrong else made


def hair(rng: Rng, n: int, m: int, distance: float) -> Points:
    """All points at a distance from a plane but one, which is at twice as much beyond it: another plane separates them."""
    B = units(rng, n, m - 1)
    s = np.full(n, distance)
    odd = n // 3
    s[odd] = -2 * distance
    least = min(0.0, float((B @ B[odd]).min()))
    tilt = distance * (2 + 1 / max(-least, 0.01)) / 2  # between twice the distance and the distance over -least
    turn = rotation(rng, m)
    X = np.hstack([s[:, None], np.sqrt(1 - s[:, None] ** 2) * B]) @ turn
    side = rng.choice([-1, 1], n).astype(np.int8)
    return Points(X * side[:, None], side, np.concatenate([[1.0], tilt * B[odd]]) @ turn)


def planted(rng: Rng, n: int, m: int, margin: float) -> Points:
    """Pairs at the margin from a plane, opposite to each other along it: no plane has more; the others lie further off."""
    B, s = units(rng, n, m - 1), margin + (1 - margin) * rng.random(n) ** 2
    tight = min(4 * m, n - n % 2)
    B[1:tight:2], s[:tight] = -B[:tight:2], margin
    turn = rotation(rng, m)
    X = np.hstack([s[:, None], np.sqrt(1 - s[:, None] ** 2) * B]) @ turn
    side, order = rng.choice([-1, 1], n).astype(np.int8), rng.permutation(n)
    return Points((X * side[:, None])[order], side[order], turn[0])


def beyond(rng: Rng, n: int, m: int, by: float) -> Points:
    """As ``planted``, and m points at the margin around one that is beyond the plane by some margins: m + 1 that conflict."""
    B, s = units(rng, n, m - 1), by + (1 - by) * rng.random(n) ** 2
    corners = rotation(rng, m - 1)
    around = np.vstack([corners, -corners.sum(axis=0) / np.sqrt(m - 1)])  # weights 1, .., 1, sqrt(m - 1) make their sum zero
    odd = units(rng, 1, m - 1)
    shares = -odd[0] @ corners.T  # of the corners, that make their sum the opposite of the odd one; made positive next
    more = 1.5 * max(0.0, -float(shares.min())) + 0.1
    total = float((shares + more).sum() + more * np.sqrt(m - 1))
    B = np.vstack([B, around, odd])
    s = np.concatenate([s, np.full(m, by), [-total * by]])
    X = np.hstack([s[:, None], np.sqrt(1 - s[:, None] ** 2) * B]) @ rotation(rng, m)
    side = rng.choice([-1, 1], len(X)).astype(np.int8)
    return shuffled(rng, X * side[:, None], side, m + 1)


def few(rng: Rng, n: int, m: int) -> Points:
    """Fewer points than features, labels at random: some direction has any scores on them."""
    X, y = units(rng, n, m), rng.choice([-1, 1], n).astype(np.int8)
    return Points(X, y, np.linalg.lstsq(X, y.astype(float), rcond=None)[0])


def text(rng: Rng, n: int, m: int, wrong: bool = False, words: int = 50) -> Points:
    """Rows of some words of m, the first ones in many rows, with weights."""
    chance = np.arange(1, m + 1) ** -0.6
    at = rng.choice(m, (n, words), p=chance / chance.sum())
    X = sp.csr_array((rng.random(n * words), (np.repeat(np.arange(n), words), at.ravel())), shape=(n, m))
    X.sum_duplicates()
    made = labelled(X, rng.standard_normal(m))
    return crossed(rng, made) if wrong else made


def dummies(rng: Rng, n: int, m: int, labels: str, factors: int = 10) -> Points:
    """One-hot levels of some factors; labels of a plane, of one but for a cross of four points, or by chance beside a plane."""
    levels = m // factors
    at = rng.integers(0, levels, (n, factors)) + np.arange(factors) * levels
    X = sp.csr_array((np.ones(n * factors), at.ravel(), np.arange(0, n * factors + 1, factors)), shape=(n, m))
    w = rng.integers(-1000, 1000, m) / 1000
    made = labelled(X, w)
    if labels == "of a plane":
        return made
    made = crossed_levels(rng, made, levels)
    if labels == "by chance":
        flip = rng.random(len(made.y)) < 1 / (1 + np.exp(abs(made.X @ w)))
        flip[made.against] = False
        made = Points(made.X, np.where(flip, -made.y, made.y), against=made.against)
    return made


def crossed_levels(rng: Rng, made: Points, levels: int) -> Points:
    """``crossed``, by whole factors: each point keeps one level of each."""
    side = np.flatnonzero(made.y == made.y[0])
    while True:
        at = made.X[rng.choice(side, 2, replace=False)].indices.reshape(2, -1)
        swap = rng.random(at.shape[1]) < 0.5
        other = np.where(swap, at[::-1], at)
        if (other != at).any() and (other != at[::-1]).any():
            break
    rows = np.vstack([at, other])
    more = sp.csr_array(
        (np.ones(rows.size), rows.ravel(), np.arange(0, rows.size + 1, rows.shape[1])), shape=(4, made.X.shape[1])
    )
    label = made.y[0]
    y = np.concatenate([made.y, [label, label, -label, -label]]).astype(np.int8)
    return shuffled(rng, sp.csr_array(sp.vstack([made.X, more])), y, 4)


def ternary(rng: Rng, n: int, m: int, labels: str) -> Points:
    """Entries -1, 0 and 1: many points touch the plane where it has whole numbers, and are left out, or have both labels."""
    X = rng.integers(-1, 2, (n, m)).astype(np.float64)
    w = rng.integers(-3, 4, m).astype(float)
    if labels == "touching":
        w[0] = 0  # points on the plane stay there when their first entries are exchanged
        on = np.flatnonzero(signs(X, w) == 0)
        one, two = on[X[on, 0] == 1][0], on[X[on, 0] == -1][0]
        four = X[[one, two, one, two]]
        four[:2, 0], four[2:, 0] = [1, -1], [-1, 1]
        sign = signs(X, w)
        y = np.concatenate([np.where(sign, sign, rng.choice([-1, 1], n)), [1, 1, -1, -1]]).astype(np.int8)
        return shuffled(rng, np.vstack([X, four]), y, 4)
    made = labelled(X[X.any(axis=1)], w)
    return crossed(rng, made) if labels == "crossed" else made


def clusters(rng: Rng, n: int, m: int, width: float, labels: str) -> Points:
    """Tight clusters, one after the other; the plane goes through the centre of one."""
    centres = units(rng, 40, m)
    X = centres[np.sort(rng.integers(0, len(centres), n))] + width * rng.standard_normal((n, m))
    w = rng.standard_normal(m)
    made = labelled(X, w - (w @ centres[7]) * centres[7])
    return crossed(rng, made) if labels == "crossed" else made


def polynomials(rng: Rng, n: int, m: int, wrong: bool = False) -> Points:
    """Powers 0 to m - 1 of numbers in [0, 1]; the plane is a polynomial with all of its roots there."""
    x = np.sort(rng.random(n))
    X = x[:, None] ** np.arange(m)
    inner = (np.arange(1, m) - 0.5 + 0.3 * rng.uniform(-1, 1, m - 1)) / m
    made = labelled(X, np.polynomial.polynomial.polyfromroots(inner))
    if not wrong:
        return made
    # a sign more than a polynomial can have: one point in the midst of a run of one sign, with what surrounds it
    runs = np.flatnonzero(np.diff(made.y)) + 1
    edges = [0, *runs.tolist(), len(made.y)]
    middles = [(a + b) // 2 for a, b in pairwise(edges)]
    k = len(middles) // 2
    at = middles[k]
    y = made.y.copy()
    y[at] = -y[at]
    low, high = (edges[k] + at) // 2, (at + edges[k + 1]) // 2
    chosen = [*middles[:k], low, at, high, *middles[k + 1 :]]
    return Points(made.X, y, against=np.array(chosen[: m + 1]))


def near_duplicates(rng: Rng, n: int, m: int, width: float, labels: str) -> Points:
    """Each point three times, a hair apart; ``astride`` they lie on the plane but for that hair."""
    w = rng.standard_normal(m)
    base = units(rng, -(-n // 3), m)
    if labels == "astride":
        base -= np.outer(base @ w, w) / (w @ w)
    made = labelled(np.repeat(base, 3, axis=0)[:n] + width * rng.standard_normal((n, m)), w)
    return crossed(rng, made) if labels == "crossed" else made


def regimes() -> list[Regime]:
    """All of them, family by family."""
    found: list[Regime] = []

    def add(family: str, shapes: str, make: Callable[..., Points], detail: str = "", memory: str = "", **options: Any) -> None:
        for shape in shapes.split():
            m, n = map(int, shape.split("x"))
            found.append(Regime(family, n, m, partial(make, **options) if options else make, detail, memory))

    for number in (1e6, 1e8, 1e10, 1e12):
        add("condition", "30x20000 30x100000", condition, f"{number:.0e}", number=number)
    add("condition", "200x50000", condition, "1e+10", number=1e10)
    for number in (1e8, 1e12):
        add("condition", "30x20000", condition, f"{number:.0e}, wrong label", number=number, wrong=True)
    for distance in (1e-3, 1e-6, 1e-8, 1e-10, 1e-12):
        add("hair", "100x20000 100x50000", hair, f"{distance:.0e}", distance=distance)
    for margin in (1e-4, 1e-8, 1e-11, 1e-13):
        add("planted", "20x20000 20x50000 100x20000 100x50000", planted, f"{margin:.0e}", margin=margin)
    for by in (1e-3, 1e-6, 1e-9, 1e-12):
        add("beyond", "5x20000 20x20000 100x20000", beyond, f"{by:.0e}", by=by)
    add("half-space", "100x200000", halfspace)
    add("half-space", "100x200000", halfspace, "crossed", wrong=True)
    add("half-space", "100x200000", overlap, "10 % wrong", share=0.1)
    add("wide", "1000x800", few, "labels at random")
    add("wide", "2000x4000", halfspace)
    add("wide", "1000x3000", halfspace, "crossed", wrong=True)
    add("tall", "20x1000000", halfspace)
    add("tall", "20x1000000", halfspace, "crossed", wrong=True)
    add("text", "5000x20000", text)
    add("text", "1000x20000", text, "crossed", wrong=True)
    for labels in ("of a plane", "crossed", "by chance"):
        add("dummies", "300x30000", dummies, labels, labels=labels)
    add("dummies", "1000x100000", dummies, "by chance", labels="by chance", factors=20)
    for labels in ("of a plane", "crossed", "touching"):
        add("ternary", "20x20000 50x50000", ternary, labels, labels=labels)
    for labels in ("cut", "crossed"):
        add("clusters", "20x20000", clusters, f"1e-06, {labels}", width=1e-6, labels=labels)
        add("clusters", "50x20000", clusters, f"1e-10, {labels}", width=1e-10, labels=labels)
    add("polynomials", "9x5000 13x5000 17x5000 21x5000", polynomials)
    add("polynomials", "9x5000 13x5000", polynomials, "wrong label", wrong=True)
    for labels in ("apart", "astride", "crossed"):
        add("near-duplicates", "20x20000", near_duplicates, f"1e-09, {labels}", width=1e-9, labels=labels)
    for memory in ("24MiB", "36MiB"):
        add("half-space", "400x50000", halfspace, memory=memory)
        add("half-space", "400x50000", halfspace, "crossed", memory, wrong=True)
    add("half-space", "400x50000", halfspace)
    add("half-space", "1000x30000", halfspace, memory="64MiB")
    add("half-space", "3000x12000", halfspace)
    add("condition", "200x50000", condition, "1e+10", "24MiB", number=1e10)
    add("hair", "100x50000", hair, "1e-08", "24MiB", distance=1e-8)
    add("planted", "100x50000", planted, "1e-11", "24MiB", margin=1e-11)
    add("beyond", "100x20000", beyond, "1e-09", "24MiB", by=1e-9)
    add("tall", "20x1000000", halfspace, memory="24MiB")
    add("dummies", "300x30000", dummies, "by chance", "24MiB", labels="by chance")
    return found
