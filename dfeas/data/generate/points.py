"""Generated families with known answers, dense or sparse. Any block can be made again from the seed alone.

halfspace   random points on both sides of a random plane: feasible, with a thin margin
planted     every point at margin >= R from a planted plane, pairs of points exactly at R: the best margin is R
gaussian    standard normal points, random labels: infeasible when n is well above 2 m
one-flip    planted, with one label wrong: infeasible

Sparse points look like text. A point is a document: words are drawn with probabilities that fall as one over their rank, and
weigh (1 + log count) times the logarithm of how rare they are; points have length one. There planted is halfspace with no point
nearer to the plane than a margin R, so that the best margin is R or more, and one-flip has one point that is its neighbour with
the other label.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dfeas.data.storage.layout import DTYPES, SPARSE_BLOCK_BYTES, Header, default_block_rows, sparse_block_rows
from dfeas.data.storage.places import Place
from dfeas.data.writers.chunks import chunks_of_shard, shard_bytes
from dfeas.data.writers.dataset import DatasetWriter, Labelled, Progress, fill, output_place
from dfeas.data.writers.sparse import SparseWriter
from dfeas.errors import UsageError, brief
from dfeas.linalg.csr import csr, csr_array, stack_rows
from dfeas.linalg.points import LOW
from dfeas.settings import require_types

KINDS = ("halfspace", "planted", "gaussian", "one-flip")
CONE_KINDS = ("cones", "cones-infeasible", "cones-boundary", "cones-scattered")
"""Of products of cones."""
FLOATS = ("float32", "float64")

_PLANE, _FLIP, _BLOCK = 0, 1, 2  # streams of one seed
_TEXT_PLANE, _TEXT_FLIP, _TEXT_BLOCK = 3, 4, 5


class Generated(ABC):
    """A dataset that is made from a seed."""

    kind: str
    m: int
    margin: float
    seed: int
    dtype: str
    classes: ClassVar[tuple[str, ...]] = ("-1", "1")

    def _require(self, kinds: Sequence[str], dtypes: Sequence[str], features: int) -> None:
        require_types(self)
        if self.kind not in kinds:
            raise UsageError(f"unknown kind {self.kind}; expected one of {', '.join(kinds)}")
        if self.m < features:
            raise UsageError(f"expected at least {features} features, got {self.m}")
        if self.dtype not in dtypes:
            raise UsageError(f"expected a dtype of {', '.join(dtypes)}, got {self.dtype}")
        if self.seed < 0:
            raise UsageError(f"expected a seed of at least 0, got {brief(self.seed)}")

    @property
    def has_margin(self) -> bool:
        return self.kind not in ("halfspace", "gaussian")

    @property
    def about(self) -> dict[str, Any]:
        return {"kind": self.kind, "seed": self.seed, **({"margin": self.margin} if self.has_margin else {})}

    def random(self, stream: int, index: int = 0) -> np.random.Generator:
        return np.random.Generator(np.random.SFC64(np.random.SeedSequence((self.seed, stream, index))))

    @abstractmethod
    def block(self, index: int) -> Labelled:
        """Points (b, m) and labels (b,) of one block."""

    @abstractmethod
    def writer(self, path: Place, shard: int | None = None) -> DatasetWriter:
        """The writer that takes the blocks of it, with shards of so many bytes."""


def generate(instance: Generated, out: str | Path, progress: Progress | None = None, shard: str | int | None = None) -> Header:
    """Write an instance as a dataset; see ``dfeas.generate``."""
    size = shard_bytes(shard)
    with output_place(out) as path:
        target = instance.writer(path, size)
        fill(target, instance.block, progress)
        return target.finish(instance.classes, instance.about)


@dataclass(frozen=True)
class GeneratedPoints(Generated):
    """Points with labels, as many as are asked for."""

    kind: str
    m: int
    n: int

    def _require_points(self, dtypes: Sequence[str], least: int) -> None:
        """Raise UsageError for what is no family of points, and for fewer than two points, and ``least`` features."""
        self._require(KINDS, dtypes, least)
        if self.n < 2:
            raise UsageError(f"two classes need two points, got {self.n}")
        if self.has_margin and not (0 < self.margin < 1 and self.m >= 2 and self.n >= 4):
            raise UsageError(f"{self.kind} needs 0 < margin < 1, two features and four points")


@dataclass(frozen=True)
class Instance(GeneratedPoints):
    """A generated dataset: what, how large, from which seed.

    Parameters
    ----------
    kind : {"halfspace", "planted", "gaussian", "one-flip"}
        Random points on both sides of a random hyperplane; points at a margin of at least R, which is the best; standard normal
        points with random labels; planted, with one label wrong, which is infeasible.
    m : int
        Features.
    n : int
        Points.
    margin : float
        R, of planted and one-flip.
    seed : int
        The same seed gives the same data.
    dtype : str
        Type of the stored entries, such as ``float32``, ``float64`` or ``int8``.
    block_rows : int
        Points in a block; 0 chooses by their size.

    Raises
    ------
    UsageError
        No dataset can have these values.

    Examples
    --------
    >>> import dfeas
    >>> points, labels = dfeas.Instance("gaussian", 2, 5, seed=1).block(0)
    >>> points.shape, labels.shape
    ((5, 2), (5,))
    """

    margin: float = 0.01  # of planted and one-flip
    seed: int = 0
    dtype: str = "float32"
    block_rows: int = 0  # 0: the default of the store

    def __post_init__(self) -> None:
        self._require_points(DTYPES, 1)
        if self.kind == "halfspace" and self.dtype.startswith("uint") and self.m < 2:
            raise UsageError(f"no plane parts one feature in {self.dtype}, whose points are all on one side: take two or more")
        if self.has_margin and self.dtype in LOW:
            raise UsageError(
                f"{self.kind} has points at an exact margin, which {self.dtype} would round; take float32 or float64"
            )

    @property
    def rows(self) -> int:
        return self.block_rows or default_block_rows(self.m, np.dtype(self.dtype).itemsize, self.n)

    @property
    def wrong_point(self) -> int:
        """Index of the point with the wrong label (one-flip)."""
        return int(self.random(_FLIP).integers(self.n))

    def plane(self) -> NDArray[np.float64]:
        """The unit normal (m,) of the plane of halfspace, planted and one-flip.

        For unsigned entries it is orthogonal to the point around which they lie.
        """
        normal = self.random(_PLANE).standard_normal(self.m)
        if self.dtype.startswith("uint"):
            normal -= normal.mean()
        return np.asarray(normal / np.linalg.norm(normal))

    def block(self, index: int) -> tuple[NDArray[Any], NDArray[np.int8]]:
        first = index * self.rows
        size, random = min(self.rows, self.n - first), self.random(_BLOCK, index)
        label = (2 * random.integers(0, 2, size, dtype=np.int8) - 1).astype(np.int8)
        if first == 0:
            label[:2] = (1, -1)  # both classes, whatever the seed
        if self.dtype in LOW:
            return self._low(random, label)
        if self.kind == "gaussian":
            return _normal(random, (size, self.m), self.dtype), label
        if self.kind == "halfspace":
            columns = self._halfspace(random, size)
        else:
            columns = self._near_plane(random, size)
            if self.kind == "one-flip" and first <= self.wrong_point < first + size:
                # the normal itself: with any pair at R it makes x = (1, 1/2R, 1/2R), Ax = 0 up to rounding
                columns[self.wrong_point - first] = -self.plane()
        columns *= label[:, None]
        return columns, label

    def writer(self, path: Place, shard: int | None = None) -> DatasetWriter:
        row = self.m * np.dtype(self.dtype).itemsize
        chunks = chunks_of_shard(shard, self.n * row, self.rows * row)
        return DatasetWriter(path, self.n, self.m, np.dtype(self.dtype), self.rows, shard=chunks)

    def _low(self, random: np.random.Generator, label: NDArray[np.int8]) -> tuple[NDArray[Any], NDArray[np.int8]]:
        """Rounded normal points; of halfspace the label is the side of the plane."""
        points = round_points(random.standard_normal((len(label), self.m), np.float32), np.dtype(self.dtype))
        if self.kind == "gaussian":
            return points, label
        side = points.astype(np.float64) @ self.plane()
        # scores of unit points that rounding cannot tell from zero
        if (np.abs(side) <= 1e-12 * np.linalg.norm(points, axis=1)).any():
            raise UsageError(f"halfspace: a point of {self.m} {self.dtype} features lies on the plane; take more features")
        return points, np.where(side > 0, 1, -1).astype(np.int8)

    def _halfspace(self, random: np.random.Generator, size: int) -> NDArray[Any]:
        points = _normal(random, (size, self.m), self.dtype)
        points /= np.sqrt(np.einsum("ij,ij->i", points, points))[:, None]
        side = points.astype(np.float64, copy=False) @ self.plane()
        points[side < 0] *= -1
        return np.asarray(points)

    def _near_plane(self, random: np.random.Generator, size: int) -> NDArray[Any]:
        """Unit points t w + sqrt(1 - t^2) u, u a unit vector orthogonal to w, t >= R; pairs with t = R and u, -u."""
        normal = self.plane()
        u = random.standard_normal((size, self.m))
        u -= np.outer(u @ normal, normal)
        u /= np.linalg.norm(u, axis=1)[:, None]
        t = np.minimum(self.margin + np.abs(random.standard_normal(size)) / np.sqrt(self.m), 0.99)
        t = np.maximum(t, self.margin)
        pairs = min(size // 2, max(2, min(2 * self.m, size // 16)))
        place = random.permutation(size)[: 2 * pairs]
        t[place] = self.margin
        u[place[pairs:]] = -u[place[:pairs]]
        return np.asarray((t[:, None] * normal + np.sqrt(1 - t * t)[:, None] * u).astype(self.dtype))


def round_points(points: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Normal numbers in a narrower type: integers have an eighth of their range as deviation, its middle as mean."""
    if dtype.kind == "f":
        return points.astype(dtype)
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    points = points * ((most - least) / 8) + (least + most + 1) / 2
    return np.clip(np.rint(points), max(least, -most), most).astype(dtype)


def _normal(random: np.random.Generator, shape: tuple[int, int], dtype: str) -> NDArray[Any]:
    return random.standard_normal(shape, np.float32) if dtype == "float32" else random.standard_normal(shape)


@dataclass(frozen=True)
class SparseInstance(GeneratedPoints):
    """A generated sparse dataset: what, how large, from which seed."""

    density: float  # share of entries that are not zero, on average
    margin: float = 0.01  # of planted and one-flip
    seed: int = 0
    dtype: str = "float32"
    block_rows: int = 0  # 0: the default of the store

    def __post_init__(self) -> None:
        self._require_points(FLOATS, 2)
        if not 0 < self.density < 1 or self.density * self.m < 1:
            raise UsageError(
                f"density {self.density}: expected a number below 1, and at least one entry a point ({1 / self.m:g})"
            )

    @property
    def rows(self) -> int:
        size = np.dtype(self.dtype).itemsize + 4
        return self.block_rows or max(2, sparse_block_rows(self.density * self.m, size, self.n))

    @property
    def wrong_point(self) -> int:
        """Index of the point that is its neighbour with the other label (one-flip)."""
        index = int(self.random(_TEXT_FLIP).integers(self.n))
        return index - 1 if self.n - 1 == index and self.n % self.rows == 1 else index  # a block of one point has no neighbour

    @property
    def about(self) -> dict[str, Any]:
        return {**super().about, "density": self.density}

    def writer(self, path: Place, shard: int | None = None) -> DatasetWriter:
        row = self.density * self.m * (np.dtype(self.dtype).itemsize + 4) + 8
        chunks = chunks_of_shard(shard, int(self.n * row), SPARSE_BLOCK_BYTES)
        return SparseWriter(path, self.n, self.m, np.dtype(self.dtype), self.rows, shard=chunks)

    @cached_property
    def _words(self) -> tuple[NDArray[np.float64], float, NDArray[np.float64]]:
        """Cumulated probabilities (m,), words of a document, and the share (m,) of documents that have each word."""
        p = 1.0 / (10 + np.arange(self.m))  # rank of the most frequent word: the words before it would be in every document
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
        normal = self.random(_TEXT_PLANE).standard_normal(self.m) * np.sqrt(self._words[2])
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
        """See Generated. Raises UsageError when nearly no point has the margin."""
        first = index * self.rows
        size, random = min(self.rows, self.n - first), self.random(_TEXT_BLOCK, index)
        if self.kind == "gaussian":
            return self._documents(random, size), np.where(random.random(size) < 0.5, 1, -1).astype(np.int8)
        points, side = self._draw_sides(random, size)
        label = np.where(side > 0, 1, -1).astype(np.int8)
        if self.kind == "one-flip" and first <= self.wrong_point < first + size:
            place = self.wrong_point - first
            other = place - 1 if place else 1
            rows = np.arange(size)
            rows[place] = other
            points, label[place] = points[rows], -label[other]
        return points, label

    def _draw_sides(self, random: np.random.Generator, size: int) -> tuple[csr_array, NDArray[np.float64]]:
        """Points with scores of at least the margin in magnitude, and their scores."""
        least = self.margin if self.has_margin else 1e-12
        parts, sides, count = [], [], 0
        for _ in range(100):  # draws of a block after which a margin is too wide for this data
            points = self._documents(random, size)
            side = np.asarray(points.astype(np.float64) @ self._plane)
            kept = np.flatnonzero(np.abs(side) >= least)[: size - count]
            parts.append(points[kept])
            sides.append(side[kept])
            count += len(kept)
            if count == size:
                return stack_rows(parts), np.concatenate(sides)
        raise UsageError(f"margin {self.margin}: hardly a point of this data is as far from its plane; take a smaller one")
