"""Generated families with known answers. Any block can be made again from the seed alone.

halfspace   random points on both sides of a random plane: feasible, with a thin margin
planted     every point at margin >= R from a planted plane, pairs of points exactly at R: the best margin is R
gaussian    standard normal points, random labels: infeasible when n is well above 2 m
one-flip    planted, with one label wrong: infeasible
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.data.storage.layout import DTYPES, Header, default_block_rows
from dfeas.data.writers.dataset import Progress, fill
from dfeas.data.writers.output import writer
from dfeas.errors import UsageError
from dfeas.linalg.points import LOW

KINDS = ("halfspace", "planted", "gaussian", "one-flip")

ON_PLANE = 1e-12
"""Scores of unit points that rounding cannot tell from zero."""

_PLANE, _FLIP, _BLOCK = 0, 1, 2  # streams of one seed


@dataclass(frozen=True)
class Instance:
    """A generated dataset: what, how large, from which seed."""

    kind: str
    m: int
    n: int
    margin: float = 0.01  # of planted and one-flip
    seed: int = 0
    dtype: str = "float32"
    block_rows: int = 0  # 0: the default of the store

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UsageError(f"unknown kind {self.kind}; expected one of {', '.join(KINDS)}")
        if self.m < 1 or self.n < 1:
            raise UsageError(f"expected at least one feature and one point, got {self.m} and {self.n}")
        if self.dtype not in DTYPES:
            raise UsageError(f"expected a dtype of {', '.join(DTYPES)}, got {self.dtype}")
        if self._planted and self.dtype in LOW:
            raise UsageError(
                f"{self.kind} has points at an exact margin, which {self.dtype} would round; take float32 or float64"
            )
        if self._planted and not (0 < self.margin < 1 and self.m >= 2 and self.n >= 4):
            raise UsageError(f"{self.kind} needs 0 < margin < 1, two features and four points")
        if self.seed < 0:
            raise UsageError(f"expected a seed of at least 0, got {self.seed}")
        if self.n < 2:
            raise UsageError("two classes need two points")

    @property
    def _planted(self) -> bool:
        return self.kind in ("planted", "one-flip")

    @property
    def rows(self) -> int:
        return self.block_rows or default_block_rows(self.m, np.dtype(self.dtype).itemsize, self.n)

    @property
    def flipped(self) -> int:
        """Index of the point with the wrong label (one-flip)."""
        return int(self._random(_FLIP).integers(self.n))

    def _random(self, stream: int, index: int = 0) -> np.random.Generator:
        return np.random.Generator(np.random.SFC64(np.random.SeedSequence((self.seed, stream, index))))

    def plane(self) -> NDArray[np.float64]:
        """The unit normal (m,) of the plane of halfspace, planted and one-flip.

        For unsigned entries it is orthogonal to the point around which they lie.
        """
        normal = self._random(_PLANE).standard_normal(self.m)
        if self.dtype.startswith("uint"):
            normal -= normal.mean()
        return np.asarray(normal / np.linalg.norm(normal))

    def block(self, index: int) -> tuple[NDArray[Any], NDArray[np.int8]]:
        """Points (b, m) and labels (b,) of one block."""
        first = index * self.rows
        size = min(self.rows, self.n - first)
        random = self._random(_BLOCK, index)
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
            if self.kind == "one-flip" and first <= self.flipped < first + size:
                # the normal itself: with any pair at R it makes x = (1, 1/2R, 1/2R), Ax = 0 up to rounding
                columns[self.flipped - first] = -self.plane()
        columns *= label[:, None]
        return columns, label

    def _low(self, random: np.random.Generator, label: NDArray[np.int8]) -> tuple[NDArray[Any], NDArray[np.int8]]:
        """Rounded normal points; of halfspace the label is the side of the plane."""
        points = rounded(random.standard_normal((len(label), self.m), np.float32), np.dtype(self.dtype))
        if self.kind == "gaussian":
            return points, label
        side = points.astype(np.float64) @ self.plane()
        if (np.abs(side) <= ON_PLANE * np.linalg.norm(points, axis=1)).any():
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


def rounded(points: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Normal numbers in a narrower type: integers have an eighth of their range as deviation, its middle as mean."""
    if dtype.kind == "f":
        return points.astype(dtype)
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    points = points * ((most - least) / 8) + (least + most + 1) / 2
    return np.clip(np.rint(points), max(least, -most), most).astype(dtype)


def _normal(random: np.random.Generator, shape: tuple[int, int], dtype: str) -> NDArray[Any]:
    return random.standard_normal(shape, np.float32) if dtype == "float32" else random.standard_normal(shape)


def generate(instance: Instance, out: str | Path, progress: Progress | None = None) -> Header:
    """Write the instance as a dataset; memory does not depend on n. Raises UsageError when OUT exists."""
    dtype = np.dtype(instance.dtype)
    about = {"kind": instance.kind, "seed": instance.seed}
    if instance.kind in ("planted", "one-flip"):
        about["margin"] = instance.margin
    with writer(out, instance.n, instance.m, dtype, instance.rows) as target:
        fill(target, instance.block, progress)
        return target.finish(("-1", "1"), about)
