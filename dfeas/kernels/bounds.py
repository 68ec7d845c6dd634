"""Kernel values in float64 with bounds of their errors, for the checker.

The model: with u = 2**-53, sums of k products have relative errors of at most gamma_k = k u / (1 - k u) of the sum of absolute
values, in any order; square roots are rounded correctly; ``exp`` and ``pow`` have relative errors of at most 4 u, which the
libraries in use promise and no theorem does. Distances are sums of squares of differences, without cancellation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them

from dfeas.errors import CheckFailedError
from dfeas.kernels.kernel import Floats, Kernel

U = 2.0**-53
UP = 1 + 2.0**-45
ELEMENTARY = 4 * U
"""Relative error of exp and pow."""
SIZES = (1e-130, 1e130)
"""Lengths of points for which squares neither underflow nor overflow to any effect."""
TINY = 2.0**-1000
"""More than underflow takes from a value."""


def bounded(kernel: Kernel, points: Floats, others: Floats) -> tuple[Floats, Floats]:
    """Normalised kernel (b, s) of points (b, m) and others (s, m), and how far each value is off at most.

    For a function of Python nothing bounds its own errors; zeros are returned for them. Raises CheckFailedError for points
    whose squares are lost.
    """
    m = points.shape[1]
    if kernel.name in ("rbf", "exponential", "laplacian"):
        return _of_distance(kernel, points, others, m)
    if kernel.name == "callable":
        value = kernel.tile(points, others)
        return np.asarray(value, np.float64), np.zeros(value.shape)
    return _of_product(kernel, points, others, m)


def _of_distance(kernel: Kernel, points: Floats, others: Floats, m: int) -> tuple[Floats, Floats]:
    metric: Any = "cityblock" if kernel.name == "laplacian" else "sqeuclidean"
    exponent = scipy.spatial.distance.cdist(points, others, metric)
    if kernel.name == "exponential":
        np.sqrt(exponent, out=exponent)
    exponent *= kernel.gamma
    value = np.asarray(np.exp(-exponent))
    with np.errstate(over="ignore", invalid="ignore"):
        error = value * (np.expm1(exponent * gamma_(m + 6)) + ELEMENTARY + 2 * U) * UP + TINY
    error[value == 0] = TINY  # an exponent above 700 is one, rounding or not
    return value, error


def _of_product(kernel: Kernel, points: Floats, others: Floats, m: int) -> tuple[Floats, Floats]:
    polynomial = kernel.name == "polynomial"
    scale, shift = (kernel.gamma, kernel.coef0) if polynomial else (1.0, 0.0)
    sizes = [np.sqrt(scale * np.einsum("ij,ij->i", some, some) + shift) for some in (points, others)]
    for some, size in zip((points, others), sizes, strict=True):
        if ((size < SIZES[0]) & (some.any(axis=1) | (shift > 0)) | ~(size < SIZES[1])).any():
            raise CheckFailedError(f"a point has a length in the kernel's space outside {SIZES[0]:g} .. {SIZES[1]:g}")
    length = np.outer(*sizes)
    with np.errstate(invalid="ignore", divide="ignore"):
        cosine = np.where(length > 0, (scale * (points @ others.T) + shift) / length, 0.0)
    error = 3 * gamma_(m + 10) * UP  # of a product of lengths at most ``length``, of both lengths, and of the quotient
    if not polynomial:
        return cosine, np.full(cosine.shape, error)
    degree = kernel.degree
    value = cosine**degree
    return value, np.full(cosine.shape, degree * error * (1 + error) ** (degree + 1) + ELEMENTARY * (1 + error) ** degree) * UP


def gamma_(terms: int) -> float:
    """Bound of the relative error of so many roundings."""
    return terms * U / (1 - terms * U)
