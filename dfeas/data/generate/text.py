"""Generated sparse points that look like text, with known answers. Any block can be made again from the seed alone.

A point is a document: words are drawn with probabilities that fall as one over their rank, and weigh (1 + log count) times the
logarithm of how rare they are; points have length one. Labels make what ``instances`` calls

halfspace   the side of a random plane: feasible, with a thin margin
planted     the same, and no point nearer to the plane than a margin R: feasible, the best margin is R or more
gaussian    labels at random: infeasible when there are many more points than features
one-flip    planted, and one point is its neighbour with the other label: infeasible
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dfeas.data.generate.points import KINDS
from dfeas.data.storage.layout import Header, sparse_block_rows
from dfeas.data.storage.places import place
from dfeas.data.writers.dataset import Progress, fill
from dfeas.data.writers.output import output
from dfeas.data.writers.sparse import SparseWriter
from dfeas.errors import UsageError
from dfeas.linalg.csr import csr, stacked

if TYPE_CHECKING:
    from scipy.sparse import csr_array

FIRST_RANK = 10
"""Rank of the most frequent word: the words before it would be in every document."""

ROUNDS = 100
"""Draws of a block after which a margin is too wide for this data."""

_PLANE, _FLIP, _BLOCK = 3, 4, 5  # streams of one seed


@dataclass(frozen=True)
class Texts:
    """A generated sparse dataset."""

    kind: str
    m: int
    n: int
    density: float  # share of entries that are not zero, on average
    margin: float = 0.01  # of planted and one-flip
    seed: int = 0
    dtype: str = "float32"
    block_rows: int = 0  # 0: the default of the store

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UsageError(f"unknown kind {self.kind}; expected one of {', '.join(KINDS)}")
        if self.m < 2 or self.n < 4 or self.seed < 0:
            raise UsageError(f"expected two features, four points and a seed of 0 or more, got {self.m}, {self.n}, {self.seed}")
        if not 0 < self.density < 1 or self.density * self.m < 1:
            raise UsageError(
                f"density {self.density}: expected a number below 1, and at least one entry a point ({1 / self.m:g})"
            )
        if self.dtype not in ("float32", "float64"):
            raise UsageError(f"expected dtype float32 or float64 with a density, got {self.dtype}")
        if self._planted and not 0 < self.margin < 1:
            raise UsageError(f"{self.kind} needs 0 < margin < 1")

    @property
    def _planted(self) -> bool:
        return self.kind in ("planted", "one-flip")

    @property
    def rows(self) -> int:
        size = np.dtype(self.dtype).itemsize + 4
        return self.block_rows or max(2, sparse_block_rows(self.density * self.m, size, self.n))

    @property
    def flipped(self) -> int:
        """Index of the point that is its neighbour with the other label (one-flip)."""
        index = int(self._random(_FLIP).integers(self.n))
        return index - 1 if self.n - 1 == index and self.n % self.rows == 1 else index  # a block of one point has no neighbour

    def _random(self, stream: int, index: int = 0) -> np.random.Generator:
        return np.random.Generator(np.random.SFC64(np.random.SeedSequence((self.seed, stream, index))))

    @cached_property
    def _words(self) -> tuple[NDArray[np.float64], float, NDArray[np.float64]]:
        """Cumulated probabilities (m,), words of a document, and the share (m,) of documents that have each word."""
        p = 1.0 / (FIRST_RANK + np.arange(self.m))
        p /= p.sum()
        low, high = 0.0, 1.0
        while -np.expm1(-high * p).sum() < self.density * self.m:
            high *= 2
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if -np.expm1(-middle * p).sum() < self.density * self.m else (low, middle)
        return np.cumsum(p), high, -np.expm1(-high * p)

    @cached_property
    def _plane(self) -> NDArray[np.float64]:
        normal = self._random(_PLANE).standard_normal(self.m) * np.sqrt(self._words[2])
        return np.asarray(normal / np.linalg.norm(normal))

    def _documents(self, random: np.random.Generator, size: int) -> csr_array:
        cumulated, words, share = self._words
        length = np.maximum(1, random.poisson(words, size))
        row = np.repeat(np.arange(size), length)
        word = np.minimum(np.searchsorted(cumulated, random.random(len(row))), self.m - 1)
        place, count = np.unique(row * self.m + word, return_counts=True)
        row, word = place // self.m, place % self.m
        value = (1 + np.log(count)) * (np.log(1 / share[word]) + 0.1)
        value /= np.sqrt(np.bincount(row, weights=value**2, minlength=size))[row]
        ends = np.append(0, np.cumsum(np.bincount(row, minlength=size))).astype(np.int32)
        return csr(value.astype(self.dtype), word.astype(np.int32), ends, self.m)

    def block(self, index: int) -> tuple[csr_array, NDArray[np.int8]]:
        """Points (b, m) and labels (b,) of one block. Raises UsageError when nearly no point has the margin."""
        first = index * self.rows
        size = min(self.rows, self.n - first)
        random = self._random(_BLOCK, index)
        if self.kind == "gaussian":
            return self._documents(random, size), np.where(random.random(size) < 0.5, 1, -1).astype(np.int8)
        points, side = self._sided(random, size)
        label = np.where(side > 0, 1, -1).astype(np.int8)
        if self.kind == "one-flip" and first <= self.flipped < first + size:
            place = self.flipped - first
            other = place - 1 if place else 1
            rows = np.arange(size)
            rows[place] = other
            points, label[place] = points[rows], -label[other]
        return points, label

    def _sided(self, random: np.random.Generator, size: int) -> tuple[csr_array, NDArray[np.float64]]:
        """Points with scores of at least the margin in magnitude, and their scores."""
        least = self.margin if self._planted else 1e-12
        parts, sides, count = [], [], 0
        for _ in range(ROUNDS):
            points = self._documents(random, size)
            side = np.asarray(points.astype(np.float64) @ self._plane)
            kept = np.flatnonzero(np.abs(side) >= least)[: size - count]
            parts.append(points[kept])
            sides.append(side[kept])
            count += len(kept)
            if count == size:
                return stacked(parts), np.concatenate(sides)
        raise UsageError(f"margin {self.margin}: hardly a point of this data is as far from its plane; take a smaller one")


def generate_texts(texts: Texts, out: str | Path, progress: Progress | None = None) -> Header:
    """Write the instance as a sparse dataset; memory does not depend on n. Raises UsageError when OUT exists."""
    about = {"kind": texts.kind, "seed": texts.seed, "density": texts.density}
    if texts.kind in ("planted", "one-flip"):
        about["margin"] = texts.margin
    with output(place(out)):
        target = SparseWriter(place(out), texts.n, texts.m, np.dtype(texts.dtype), texts.rows)
        fill(target, texts.block, progress)
        return target.finish(("-1", "1"), about)
