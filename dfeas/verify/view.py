"""A block as a view shows it: with its signs, as stored, as seen from a point, or with features centred and scaled; and whether
the numbers of a transform are those of the points.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dfeas.data.storage.files import Number, parse_json
from dfeas.errors import CheckFailedError
from dfeas.exact.arithmetic import PIECE_BYTES, Floats, Indices, U, Wide, gamma

if TYPE_CHECKING:
    from dfeas.exact.dyadic import ExactSums

SAME = 8 * U
"""Relative difference of a factor or of a length that is rounding: of a difference, a quotient, a root."""
SPREAD = (1e-9, 64 * U)
"""The same of a standard deviation: as a share of itself, and of the greatest magnitude."""
LEAST_WIDTH = 16
"""Features as which fewer of a point count."""
LIMITS = (1e-130, 1e130)
"""Factors are within."""


_VIEW = {
    "transform?": {
        "scale": str | None,
        "center": bool,
        "points": Number(1, whole=True),
        "shift": [Number(-1e308, 1e308)],
        "factor": [Number(*LIMITS)],
        "length": Number(1e-140, 1e140, none=True),
    }
}


class ViewTransform(Struct, frozen=True):
    """What a view says of points."""

    scale: str | None  # "maxabs" | "std"
    center: bool
    points: int  # the numbers are those of so many first points
    length: float | None  # of the longest one, which all are divided by; None: each by its own
    scaling: FeatureScaling | None  # of features; None when they are taken as they are stored


@lru_cache(maxsize=8)
def transform_of(view: str, m: int) -> ViewTransform | None:
    """Of a view of points of m features, if it has one. Raises CheckFailedError when it cannot be read."""
    try:
        values = parse_json(view or "{}", _VIEW).get("transform")
        if values is None:
            return None
        shift, factor = (np.array(values[name], np.float64) if values[name] else None for name in ("shift", "factor"))
        scale, center = values["scale"], values["center"]
        sound = center == (shift is not None) and scale in ((None,) if factor is None else ("maxabs", "std"))
        if not sound or any(each is not None and len(each) != m for each in (shift, factor)):
            raise ValueError("its numbers are not what it says")
    except (ValueError, LookupError, TypeError) as error:
        raise CheckFailedError(f"the view {view[:80]!r} cannot be read: {error}") from None
    scaling = None if shift is None and factor is None else FeatureScaling(shift, factor)
    return ViewTransform(scale, center, values["points"], values["length"], scaling)


class FeatureScaling(Struct, frozen=True, eq=False):
    """What is applied to stored points.

    z = (x - c) s has two roundings more than x: |fl(z) - z| <= gamma_2 |z|, and TINY where a product underflows. What is
    decided exactly is decided from x, c and s themselves. The score is [x, x, c, c]'[p, q, -p, -q] with p + q = s y, exactly
    (Dekker 1971). And sum w_j (x_j - c) s = 0 is sum w_j (x_j - c) = 0, whatever the positive s.
    """

    shift: Floats | None  # (m,)
    factor: Floats | None  # (m,) positive

    def __call__(self, points: Any) -> Any:
        """Points (r, m) in float64: an array, or a CSR matrix of the same pattern."""
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            if not isinstance(points, np.ndarray):
                assert self.shift is None, "sparse points are not centred"
                factor = 1.0 if self.factor is None else self.factor[points.indices]
                import scipy

                data = points.data.astype(np.float64) * factor
                return scipy.sparse.csr_array((data, points.indices, points.indptr), shape=points.shape)
            z = points.astype(np.float64)
            if self.shift is not None:
                z -= self.shift
            if self.factor is not None:
                z *= self.factor
            return z

    def signs(self, plain: Wide, y: Floats) -> tuple[NDArray[np.int8], Floats]:
        """Signs (r,) of exact scores, and lower bounds (r,) of their magnitudes, of points as stored, with their intercept.
        Raises CheckFailedError when a product of a factor with an entry of y underflows.
        """
        from dfeas.exact.dyadic import products
        from dfeas.exact.dyadic import signs as signs_of

        m = len(self.factor if self.factor is not None else self.shift if self.shift is not None else y)
        high, low = y.copy(), np.zeros(len(y))
        if self.factor is not None:
            exact = products(self.factor, y[:m])
            if exact is None:
                raise CheckFailedError("an entry of the separator is so small that scaling it loses bits; set it to zero")
            high[:m], low[:m] = exact
        rows, pairs = np.arange(plain.size), []
        for (some, p), (_, q) in zip(plain.narrow(rows, high), plain.narrow(rows, low), strict=True):
            parts, vector = [some, some], [p, q]
            if self.shift is not None:
                center = np.broadcast_to(self.shift, (len(some), m))
                parts, vector = [*parts, center, center], [*vector, -p[:m], -q[:m]]
            pairs.append(signs_of(np.hstack(parts), np.concatenate(vector)))
        return np.concatenate([part[0] for part in pairs]), np.concatenate([part[1] for part in pairs])

    def nonzero(self, points: Any) -> NDArray[np.bool_]:
        if isinstance(points, np.ndarray):
            wide = points.astype(np.float64)
            return np.asarray((wide != (0.0 if self.shift is None else self.shift)).any(axis=1))
        return np.asarray(np.bincount(points.nonzero()[0], minlength=points.shape[0]) > 0)


class FeatureMoments(Struct, eq=False):
    """What the points say that a transform is made of.

    Means are sums in integers, divided and rounded once: the numbers that points are centred at are these to the last bit, and
    so are least and greatest values. Spreads are sums in float64, which run in another order than those of the run.
    """

    points: int
    least: Floats  # (m,)
    greatest: Floats  # (m,)
    sums: ExactSums  # exact ones of features, where they are centred
    mean: Floats  # (m,) rounded
    squares: Floats  # (m,) sums of squared differences from the mean
    longest: float  # of the transformed points, with the intercept

    @classmethod
    def of(cls, points: Any, scaling: FeatureScaling | None, intercept: bool) -> FeatureMoments:
        """Of some points (r, m) as they are stored, r > 0. Raises CheckFailedError when sums of theirs cannot be exact."""
        dense = isinstance(points, np.ndarray)
        if scaling is not None and scaling.shift is not None and not dense:
            raise CheckFailedError("sparse points are not centred")
        pieces = _pieces(points) if dense else [points]
        numbers = [cls._of_piece(piece.astype(np.float64, copy=False), scaling, intercept) for piece in pieces]
        for other in numbers[1:]:
            numbers[0].add(other)
        return numbers[0]

    @classmethod
    def _of_piece(cls, wide: Any, scaling: FeatureScaling | None, intercept: bool) -> FeatureMoments:
        from dfeas.exact.dyadic import ExactSums

        count, sums = wide.shape[0], ExactSums.of(wide) if scaling is not None and scaling.shift is not None else ExactSums({})
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            z = wide if scaling is None else scaling(wide)
            if isinstance(wide, np.ndarray):
                mean, squares = wide.mean(axis=0), wide.var(axis=0) * count
                longest = float(np.sqrt(np.einsum("ij,ij->i", z, z).max()))
                least, greatest = wide.min(axis=0), wide.max(axis=0)
            else:
                mean = np.asarray(wide.sum(axis=0)).reshape(-1) / count
                rest = count - np.bincount(wide.indices, minlength=wide.shape[1])
                apart = (wide.data - mean[wide.indices]) ** 2
                squares = np.bincount(wide.indices, apart, minlength=wide.shape[1]) + rest * mean**2
                least, greatest = (np.asarray(end(axis=0).toarray()).reshape(-1) for end in (wide.min, wide.max))
                longest = float(np.sqrt(np.asarray(z.multiply(z).sum(axis=1)).max()))
        return cls(count, least, greatest, sums, mean, squares, float(np.hypot(longest, intercept)))

    def add(self, other: FeatureMoments) -> None:
        points = self.points + other.points
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            apart = other.mean - self.mean
            self.squares = self.squares + other.squares + apart**2 * (self.points * (other.points / points))
            self.mean = self.mean + apart * (other.points / points)
        self.sums.add(other.sums)
        self.least, self.greatest = np.minimum(self.least, other.least), np.maximum(self.greatest, other.greatest)
        self.points, self.longest = points, max(self.longest, other.longest)

    def refuse(self, said: ViewTransform, where: str) -> None:
        """Raise CheckFailedError when a transform is not made of these numbers."""
        whole = np.maximum(np.abs(self.least), np.abs(self.greatest))
        center, factor = (None, None) if said.scaling is None else (said.scaling.shift, said.scaling.factor)
        shift = np.zeros(len(whole)) if center is None else center
        if center is not None:
            mean = self._means()
            self._refuse(where, shift != mean, "centred at", shift, mean)
        if factor is not None:
            std = said.scale == "std"
            around = np.maximum(self.greatest - shift, shift - self.least)
            spread = np.sqrt(self.squares / self.points) if std else around
            plain = self.least == self.greatest if std or said.center else spread == 0
            slack = SPREAD[0] * spread + SPREAD[1] * whole if std else np.zeros(len(whole))
            with np.errstate(divide="ignore", over="ignore"):
                low = np.clip(1 / (spread + slack), *LIMITS) * (1 - SAME)
                high = np.clip(1 / np.maximum(spread - slack, 0.0), *LIMITS) * (1 + SAME)
            off = np.where(plain, factor != 1.0, (factor < low) | (factor > high))
            self._refuse(where, off, f"scaled by 1 / {said.scale} =", factor, np.where(plain, 1.0, low))
        longest = self.longest or 1.0
        if said.length is not None and not abs(said.length - longest) <= (2 * gamma(len(whole) + 8) + SAME) * longest:
            raise CheckFailedError(f"{where}: the longest point is said to be {said.length:g} long, it is {longest:g}")

    def _means(self) -> Floats:
        """Exact means (m,), each rounded once: Python divides integers so."""
        total = self.sums.exact(len(self.least))
        over, under = max(total.exponent, 0), self.points << max(-total.exponent, 0)
        return np.array([(digits << over) / under for digits in total.digits.tolist()], np.float64)

    @staticmethod
    def _refuse(where: str, off: NDArray[np.bool_], what: str, said: Floats, true: Floats) -> None:
        if off.any():
            i = int(off.argmax())
            raise CheckFailedError(
                f"{where}: feature {i} is said to be {what} {float(said[i])!r}, the points say {float(true[i])!r}"
            )


def _pieces(points: Any) -> Iterator[Any]:
    """Of dense points (r, m), so many that they stay in cache."""
    size = max(1, PIECE_BYTES // (16 * max(points.shape[1], LEAST_WIDTH)))
    return (points[first : first + size] for first in range(0, len(points), size))


class SignedBlock(Struct, frozen=True, eq=False):
    """A block with the labels that one certificate means."""

    where: str
    start: int
    points: Any  # (b, m) an array or a CSR matrix: as stored, or as seen from a point
    label: NDArray[Any]  # (b,)
    intercept: bool
    origin: tuple[NDArray[Any], Floats] | None  # points (b, m) as stored, and the one (m,) that they are seen from
    scaling: FeatureScaling | None = None  # what is applied to the points
    length: float | None = None  # what all points are divided by; None: each by its own length

    @property
    def size(self) -> int:
        return int(self.points.shape[0])

    def cut(self, rows: Indices, dimension: int) -> Iterator[slice]:
        """Runs of some rows that are looked at at a time; of few features their scores and bounds take more than they do."""
        dense = isinstance(self.points, np.ndarray)
        size = max(1, PIECE_BYTES // (8 * max(dimension, LEAST_WIDTH)) if dense else self.size)
        return (slice(first, first + size) for first in range(0, len(rows), size))

    @property
    def roundings(self) -> int:
        """Of an entry: that of a difference, and with a transform of a product, too."""
        return 1 if self.scaling is None else 2

    def nonzero(self, rows: Indices) -> NDArray[np.bool_]:
        if self.scaling is None or self.intercept:
            return self.wide(rows).nonzero()
        return self.scaling.nonzero(self.points[rows])

    def wide(self, rows: Indices | slice) -> Wide:
        """Some points in float64, with the intercept. Raises CheckFailedError when one is not finite."""
        points = self.points[rows] if self.scaling is None else self.scaling(self.points[rows])
        return Wide.of(points, self.intercept, self._where)

    def plain(self, rows: Indices) -> Wide:
        """The same without the transform."""
        return Wide.of(self.points[rows], self.intercept, self._where)

    @property
    def _where(self) -> str:
        return f"{self.where}: a point from {self.start} on"
