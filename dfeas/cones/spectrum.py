"""Eigenvalues and extreme points of elements of cones, many of one size at a time.

An element of a semidefinite cone is the lower triangle of its matrix, column by column, entries off the diagonal times sqrt 2
(the order and scaling of SCS): products of two elements are traces of products of matrices. Of a second-order cone (t, u) the
eigenvalues are t - |u| and t + |u|, those of extreme points (1, -u/|u|) and (1, u/|u|).
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from dfeas.errors import BadInputError
from dfeas.passes.block import Floats, Indices

SYMMETRIC = 1e-12
"""Difference of entries across the diagonal, relative to the largest, that is rounding."""


@cache
def triangle(k: int) -> tuple[Indices, Indices, Floats]:
    """Rows, columns and factors (k (k + 1) / 2,) of the entries of an element."""
    columns, rows = np.triu_indices(k)
    return rows, columns, np.where(rows == columns, 1.0, np.sqrt(2.0))


@cache
def _square(k: int) -> tuple[Indices, Floats]:
    """For each entry of a matrix (k, k) its place in an element, and the factor of that."""
    rows, columns, factor = triangle(k)
    place, factors = np.empty((k, k), np.int64), np.empty((k, k))
    for i, j in ((rows, columns), (columns, rows)):
        place[i, j], factors[i, j] = np.arange(len(rows)), 1 / factor
    return place, factors


def matrices(elements: NDArray[np.float64] | NDArray[np.float32], k: int) -> Floats:
    """Symmetric matrices (..., k, k) in float64 of elements (..., k (k + 1) / 2)."""
    place, factor = _square(k)
    return np.asarray(np.asarray(elements, np.float64)[..., place] * factor)


def svec(S: Floats) -> Floats:
    """Elements (..., k (k + 1) / 2) of symmetric matrices (..., k, k), as SCS orders and scales them.

    Raises BadInputError when they are not square, not symmetric up to rounding, or not finite.
    """
    S = np.asarray(S, np.float64)
    if S.ndim < 2 or S.shape[-1] != S.shape[-2] or S.shape[-1] == 0:
        raise BadInputError(f"expected square matrices (..., k, k), got shape {S.shape}")
    if not np.isfinite(S).all():
        raise BadInputError("a matrix has entries that are not finite; remove or correct them")
    off = np.abs(S - np.swapaxes(S, -1, -2))
    if off.max(initial=0.0) > SYMMETRIC * np.abs(S).max(initial=0.0):
        at = np.unravel_index(int(off.argmax()), off.shape)
        raise BadInputError(
            f"not symmetric: entries {tuple(int(i) for i in at[-2:])} and {tuple(int(i) for i in at[:-3:-1])} differ by "
            f"{off[at]:g}; expected symmetric matrices"
        )
    return elements(S)


def elements(S: Floats) -> Floats:
    """Elements (..., k (k + 1) / 2) of symmetric matrices (..., k, k)."""
    rows, columns, factor = triangle(S.shape[-1])
    return np.asarray(S[..., rows, columns] * factor)


def unit(kind: str, size: int) -> Floats:
    """The element e (dimension,), whose eigenvalues are all 1."""
    return elements(np.eye(size)) if kind == "s" else np.eye(size)[0]


def length(u: Floats) -> Floats:
    """|u| (...,) along the last axis."""
    return np.asarray(np.sqrt((u * u).sum(axis=-1)))


def bounds(kind: str, size: int, s: Floats) -> tuple[Floats, Floats]:
    """Two numbers (...,) that the least eigenvalue lies between, equal but for semidefinite cones (Wolkowicz, Styan 1980)."""
    if kind == "l":
        return s[..., 0], s[..., 0]
    if kind == "q":
        found = s[..., 0] - length(s[..., 1:])
        return found, found
    rows, columns, _ = triangle(size)
    mean = s[..., rows == columns].sum(axis=-1) / size
    spread = np.sqrt(np.maximum(np.einsum("...i,...i->...", s, s) / size - mean * mean, 0.0))
    return np.asarray(mean - spread * np.sqrt(size - 1)), np.asarray(mean - spread / np.sqrt(size - 1))


def least(kind: str, size: int, s: Floats) -> Floats:
    """Least eigenvalues (...,) of elements (..., dimension)."""
    if kind == "s":
        return np.asarray(np.linalg.eigvalsh(matrices(s, size))[..., 0])
    return bounds(kind, size, s)[0]


def extreme(kind: str, size: int, s: Floats) -> tuple[Floats, Floats]:
    """Least eigenvalues (c,) of elements (c, dimension), and an extreme point (c, dimension) of the base for each: <q, s>."""
    if kind == "l":
        return s[:, 0], np.ones_like(s)
    if kind == "q":
        u, q = s[:, 1:], np.ones_like(s)
        radius = length(u)
        q[:, 1:] = -u / np.where(radius > 0, radius, 1.0)[:, None]
        q[radius == 0, 1] = -1.0
        return s[:, 0] - radius, q
    value, vectors = np.linalg.eigh(matrices(s, size))
    v = vectors[:, :, 0]
    return value[:, 0], elements(v[:, :, None] * v[:, None, :])


def gibbs(kind: str, size: int, s: Floats, low: float, mu: float) -> tuple[Floats, Floats]:
    """Sums (c,) of exp((low - eigenvalue) / mu), and elements (c, dimension) with these eigenvalues and those vectors."""
    if kind == "l":
        weight = np.exp((low - s) / mu)
        return weight[:, 0], weight
    if kind == "q":
        t, u = s[:, 0], s[:, 1:]
        radius = length(u)
        below, above = np.exp((low - t + radius) / mu), np.exp((low - t - radius) / mu)
        weight = np.empty_like(s)
        weight[:, 0] = below + above
        weight[:, 1:] = ((above - below) / np.where(radius > 0, radius, 1.0))[:, None] * u
        return weight[:, 0].copy(), weight
    value, vectors = np.linalg.eigh(matrices(s, size))
    each = np.exp((low - value) / mu)
    return each.sum(axis=1), elements((vectors * each[:, None, :]) @ np.swapaxes(vectors, 1, 2))
