"""Floating-point arithmetic of the checker: units and bounds of rounding, products and sums of points in float64 and float32,
and proved bounds of lengths, eigenvalues and singular values.

A symmetric matrix whose Cholesky factorisation runs to completion in float64 has a least eigenvalue above
-gamma(k + 1) / (1 - gamma(k + 1)) trace (Rump, Verification of positive definiteness, 2006; Higham, Theorem 10.3). Eigenvalues
of LAPACK say where to try, and are not believed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dfeas.errors import CheckFailedError

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

SQUARES = (1e-20, 1e30)
"""Squares of norms in float32 that underflow leaves alone, as it does the products of such points."""
EXACT32 = ("int8", "uint8", "int16", "uint16", "float16", "float32")
"""Types whose numbers are numbers of float32: integers below 2**24 are."""
PIECE_BYTES = 2 << 20
"""Of dense points that are looked at at a time."""
U, U32 = 2.0**-53, 2.0**-24
TINY, TINY32 = 2.0**-1074, 2.0**-149
UP = 1 + 2.0**-48
"""Enough to cover the handful of roundings in a bound itself."""
UP_SUMS = 1 + 2.0**-45
"""The same for bounds that are made of sums of bounds."""
UP_LOOSE = 1 + 2.0**-20
"""The same where a bound need not be sharp."""
ELEMENTARY = 4 * U
"""Relative error of exp and pow, which the libraries in use promise and no theorem does."""
NORMS = (1e-140, 1e140)
"""Norms of points for which squares neither underflow nor overflow to any effect."""


def gamma(terms: int) -> float:
    """Bound of the relative error of ``terms`` roundings."""
    return terms * U / (1 - terms * U)


class Wide(Struct, frozen=True, eq=False):
    """Some points (r, d) in float64. What a CSR matrix does not store is zero and adds nothing to a sum, rounding neither."""

    points: Any  # an array, or a CSR matrix

    @classmethod
    def of(cls, points: Any, intercept: bool, where: str) -> Wide:
        """Of points (r, m), with ones for an intercept; float64 is not copied. Raises CheckFailedError for NaN and infinity."""
        count, m = points.shape
        if isinstance(points, np.ndarray):
            if intercept or points.dtype != np.float64:
                stored, points = points, np.empty((count, m + intercept))
                points[:, :m], points[:, m:] = stored, 1
            with np.errstate(over="ignore", invalid="ignore"):
                finite = bool(np.isfinite(points.sum()))  # as it is not with any entry that is not finite
            finite = finite or bool(np.isfinite(points).all())
        else:
            points = points.astype(np.float64)
            finite = bool(np.isfinite(points.data).all())
            if intercept:
                import scipy

                points = scipy.sparse.hstack([points, scipy.sparse.csr_array(np.ones((count, 1)))], format="csr")
        if not finite:
            raise CheckFailedError(f"{where} is not finite; nothing can be proved")
        return cls(points)

    @property
    def dense(self) -> bool:
        return isinstance(self.points, np.ndarray)

    @property
    def size(self) -> int:
        return int(self.points.shape[0])

    @property
    def terms(self) -> int:
        """Terms of a product with one, at most."""
        return int(self.points.shape[1] if self.dense else np.diff(self.points.indptr).max(initial=0))

    def score(self, y: Floats) -> Floats:
        """Products (r,) with y (d,)."""
        return np.asarray(self.points @ y)

    def magnitude(self, rows: Indices, y: Floats) -> Floats:
        """Products (s,) of magnitudes, |x|'|y|, of some rows."""
        return np.asarray(abs(self.points[rows]) @ np.abs(y))

    def _like(self, data: Floats) -> Any:
        import scipy

        return scipy.sparse.csr_array((data, self.points.indices, self.points.indptr), shape=self.points.shape)

    def row_sums(self, data: Floats) -> Floats:
        """Sums (r,) of numbers in the places of what a CSR matrix stores."""
        return np.asarray(self._like(data) @ np.ones(self.points.shape[1]))

    def largest(self) -> Floats:
        """The greatest magnitudes (r,) of entries."""
        if self.dense:
            return np.asarray(np.maximum(self.points.max(axis=1), -self.points.min(axis=1)))
        return np.asarray(abs(self.points).max(axis=1).toarray()).reshape(-1)

    def squares(self) -> Floats:
        """Squares (r,) of Euclidean norms, rounded."""
        return np.einsum("ij,ij->i", self.points, self.points) if self.dense else self.row_sums(self.points.data**2)

    def norm(self) -> Floats:
        return np.asarray(np.sqrt(self.squares()))

    def nonzero(self) -> NDArray[np.bool_]:
        if self.dense:
            return np.asarray(self.points.any(axis=1))
        return np.asarray(self.row_sums((self.points.data != 0).astype(np.float64)) > 0)

    def sums(self, factor: Floats) -> tuple[Floats, Floats]:
        """sum_j factor_j x_j and sum_j |factor_j| |x_j|, (d,) each."""
        if self.dense:
            return factor @ self.points, np.abs(factor) @ np.abs(self.points)
        return self.points.T @ factor, abs(self.points).T @ np.abs(factor)

    def scale_rows(self, factor: Floats) -> Any:
        """Points times factors (r,), as an array or a sparse matrix."""
        if self.dense:
            return self.points * factor[:, None]
        return self._like(self.points.data * np.repeat(factor, np.diff(self.points.indptr)))

    def narrow(self, rows: Indices, y: Floats) -> Iterator[tuple[Floats, Floats]]:
        """Some rows in pieces: points (s, u), y (u,) with the features that matter to them."""
        if self.dense:
            yield self.points[rows], y
            return
        narrow_rows = 64  # sparse points that are looked at without the features that none of them has
        for first in range(0, len(rows), narrow_rows):
            points, used = without_zeros(self.points[rows[first : first + narrow_rows]])
            yield points.toarray(), y[used]


def row_numbers(points: Any) -> Indices:
    """The row (nnz,) of each entry of a CSR matrix."""
    return np.repeat(np.arange(points.shape[0]), np.diff(points.indptr))


def without_zeros(points: Any) -> tuple[Any, Indices]:
    """A CSR matrix without the features that no point has, and those that are left; one stays in any case."""
    import scipy

    used, place = np.unique(points.indices, return_inverse=True)
    if not len(used):
        used = np.zeros(1, np.int64)
    shape = (points.shape[0], len(used))
    return scipy.sparse.csr_array((points.data, place.reshape(-1), points.indptr), shape=shape), used


class Fast(Struct, frozen=True, eq=False):
    """Products of points with one separator, in float32."""

    y: Floats  # (d,) entries below 1; with an intercept it comes last
    intercept: bool
    score: NDArray[np.float32]  # (b,) of the points as stored, without the intercept
    inverse: Floats  # (b,) 1 / norm, with the intercept
    measured: NDArray[np.bool_]  # (b,) where squares neither under- nor overflow

    @classmethod
    def of(
        cls, points: Any, separators: list[Floats], intercept: bool, scaling: Callable[[Any], Any] | None = None
    ) -> list[Fast]:
        """Of all separators, where products in float32 tell something; scaled points are rounded, as bounds allow for."""
        b, m = points.shape
        exact = isinstance(points, np.ndarray) and (points.dtype.name in EXACT32 or scaling is not None)
        if not separators or not exact or m + intercept >= 10_000:  # features up to which products in float32 tell anything
            return []
        scaled = [np.ldexp(y, -int(np.frexp(np.abs(y).max())[1])) for y in separators]
        single = np.column_stack(scaled)[:m].astype(np.float32)
        score, square = np.empty((b, len(scaled)), np.float32), np.empty(b, np.float32)
        # smaller ones for several vectors: OpenBLAS copies larger ones first
        size = max(1, (PIECE_BYTES if len(scaled) == 1 else 64 << 10) // (4 * m))
        with np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore"):
            for piece in range(0, b, size):  # each in cache for both
                part = points[piece : piece + size]
                part = (part if scaling is None else scaling(part)).astype(np.float32, copy=False)
                np.dot(part, single, out=score[piece : piece + size])
                # 64: terms from which a call of BLAS for each takes less: with 1000 a quarter of the time
                if m >= 64:
                    np.vecdot(part, part, out=square[piece : piece + size])
                else:
                    np.einsum("ij,ij->i", part, part, out=square[piece : piece + size])
            wide = square.astype(np.float64)
            measured = (wide > SQUARES[0]) & (wide < SQUARES[1])
            inverse = 1 / np.sqrt(wide + intercept)
        columns = np.ascontiguousarray(score.T)
        return [cls(y, intercept, column, inverse, measured) for y, column in zip(scaled, columns, strict=True)]

    def find_unproved(self, label: NDArray[Any], known: float) -> Indices:
        """Points with these signs (b,) that are not proved here to be on the positive side, with a margin above the least.
        ``known`` is a margin that is proved of other points. The bounds are those of float64 with another unit: with x and y
        rounded, |fl(x'y) - x'y| <= (gamma_m + 3 u) |x| |y|, and so for the squares of the norm; 2 gamma_(m+5) covers each. What
        under- or overflows is left to float64.
        """
        m = len(self.y) - self.intercept
        with np.errstate(over="ignore", invalid="ignore", under="ignore", divide="ignore"):
            if self.intercept:
                cosine = self.score + np.float64(self.y[m])
                cosine *= self.inverse
            else:
                cosine = self.score * self.inverse  # but for the length of y
            cosine *= label
        terms = (m + 5) * U32
        rate = 2 * terms / (1 - terms) * UP
        size_of_y = float(np.linalg.norm(self.y)) * UP
        if not size_of_y:
            return np.arange(len(label))
        error = (rate * (1 + rate) * size_of_y + 4 * m * TINY32 * (1 + SQUARES[0] ** -0.5)) * UP
        proved = self.measured & (cosine > error)
        # a point that is certainly beyond another one, or beyond what is known, is not where the margin is
        least = float(cosine[proved].min(initial=np.inf))
        bar = min(known, (least + error) / ((1 - rate) * size_of_y) * UP**2)
        return np.flatnonzero(~(proved & (cosine > (bar * (1 + rate) * size_of_y + error) * UP**2)))


def longest(entries: Floats) -> Floats:
    """Upper bounds (...,) of Euclidean lengths along the last axis."""
    size = np.abs(entries).max(axis=-1, initial=0.0)
    scale = np.where(size > 0, size, 1.0)
    squares = (entries / scale[..., None]) ** 2
    return np.asarray(np.sqrt(squares.sum(axis=-1)) * scale * (1 + gamma(entries.shape[-1] + 8)) * UP)


def shortest(entries: Floats) -> Floats:
    """Lower bounds (...,) of Euclidean lengths along the last axis."""
    return np.asarray(longest(entries) * (1 - 3 * gamma(entries.shape[-1] + 8)) / UP)


def largest_singular(X: Floats) -> tuple[Floats, Floats]:
    """Bounds (c,) from below and above of the largest singular values of matrices (c, d, m)."""
    if min(X.shape[1:]) == 1:
        flat = X.reshape(len(X), -1)
        return shortest(flat), longest(flat)
    # by powers of two, so that squares neither overflow nor underflow
    power = np.frexp(np.abs(X).max(axis=(1, 2), initial=0.0))[1]
    X = np.ldexp(X, -power[:, None, None])
    across = np.swapaxes(X, 1, 2)
    tall = X.shape[1] > X.shape[2]
    gram = across @ X if tall else X @ across
    terms = X.shape[1] if tall else X.shape[2]
    frobenius = longest(longest(X))
    above = -floor_of(-gram) + 2 * gamma(terms) * frobenius**2 * UP
    vector = np.linalg.eigh(gram)[1][:, :, -1]
    left = (X @ vector[:, :, None])[:, :, 0] if tall else (across @ vector[:, :, None])[:, :, 0]
    wrong = gamma(len(vector[0])) * frobenius * longest(vector) * UP
    below = np.maximum(0.0, (shortest(left) - wrong) / longest(vector)) * (1 - 4 * U)
    above = np.minimum(np.sqrt(np.maximum(above, 0.0)) * UP, frobenius)
    above = np.where(np.isfinite(above), above, frobenius)
    return np.ldexp(below, power), np.ldexp(above, power)


def floor_of(S: Floats) -> Floats:
    """Lower bounds (c,) of the least eigenvalues of symmetric matrices (c, k, k), of which the lower triangles are read."""
    k = S.shape[1]
    S = np.tril(S) + np.swapaxes(np.tril(S, -1), 1, 2)
    size = np.sqrt(np.einsum("cij,cij->c", S, S))
    bar = np.linalg.eigvalsh(S)[:, 0] - (8 * k * (k + 2) * U * size + 64 * k * TINY)
    shifted = S - bar[:, None, None] * np.eye(k)
    diagonal = np.diagonal(shifted, axis1=1, axis2=2)
    trace = np.abs(diagonal).sum(axis=1) * UP
    rate = gamma(k + 1) / (1 - 2 * gamma(k + 1))
    lost = (rate + 2 * U) * trace * UP + 4 * k * (2 * (k + 1) + trace) * TINY + 2 * U * np.abs(bar)
    floor = np.asarray((bar - lost) - U * (np.abs(bar) + lost))
    floor[~_try_cholesky(shifted)] = -np.inf
    return floor


def _try_cholesky(S: Floats) -> NDArray[np.bool_]:
    """For which matrices (c, k, k) Cholesky's factorisation runs to completion."""
    try:
        return np.asarray(np.isfinite(np.linalg.cholesky(S)).all(axis=(1, 2)))
    except np.linalg.LinAlgError:
        if len(S) == 1:
            return np.zeros(1, bool)
        half = len(S) // 2
        return np.concatenate([_try_cholesky(S[:half]), _try_cholesky(S[half:])])
