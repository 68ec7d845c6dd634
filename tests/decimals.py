"""Kernels and widest margins in 100 digits, for a few points; nothing of dfeas but the names of parameters."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

DIGITS = Context(prec=100, Emin=-(10**9), Emax=10**9)
TOLERANCE = Decimal(10) ** -15
"""Scores that are less than 1 by no more are 1: it changes a margin by no more than that share."""
NOTHING = Decimal(10) ** -80
"""A pivot that is none."""


def kernel_value(kernel: Any, x: np.ndarray, z: np.ndarray) -> Decimal:
    """Normalised; 0 where K(x, x) is. Without a kernel the cosine."""
    with localcontext(DIGITS):
        a, b = [Fraction(v) for v in x.tolist()], [Fraction(v) for v in z.tolist()]
        name = kernel.name if kernel else "linear"
        if name in ("rbf", "exponential"):
            distance = _decimal(sum(((p - q) ** 2 for p, q in zip(a, b, strict=True)), Fraction(0)))
            exponent = Decimal(kernel.gamma) * (distance.sqrt() if name == "exponential" else distance)
            return (-exponent).exp() if exponent < 10**6 else Decimal(0)
        scale, shift, degree = Fraction(1), Fraction(0), 1
        if name == "polynomial":
            scale, shift, degree = Fraction(kernel.gamma), Fraction(kernel.coef0), kernel.degree
        xz, xx, zz = (
            _decimal(scale * sum((p * q for p, q in zip(u, v, strict=True)), Fraction(0)) + shift)
            for u, v in ((a, b), (a, a), (b, b))
        )
        return (xz / (xx * zz).sqrt()) ** degree if xx * zz else Decimal(0)


def widest_margin(kernel: Any, X: np.ndarray, labels: np.ndarray) -> tuple[Decimal, np.ndarray]:
    """Of a kernel's unit vectors, 0 where nothing separates, and the weights (n,) of the point of the hull nearest to 0."""
    n = len(X)
    with localcontext(DIGITS):
        G = [[kernel_value(kernel, X[i], X[j]) * int(labels[i] * labels[j]) for j in range(n)] for i in range(n)]
        for size in range(1, n + 1):
            for some in combinations(range(n), size):
                alpha = _solved([[G[i][j] for j in some] + [Decimal(1)] for i in some])
                if alpha is None or min(alpha) <= 0:
                    continue
                if all(sum(G[j][i] * a for i, a in zip(some, alpha, strict=True)) >= 1 - TOLERANCE for j in range(n)):
                    weights = np.zeros(n)
                    weights[list(some)] = [float(a / sum(alpha)) for a in alpha]
                    return 1 / sum(alpha, Decimal(0)).sqrt(), weights
    return Decimal(0), np.full(n, 1 / n)


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _solved(rows: list[list[Decimal]]) -> list[Decimal] | None:
    """The solution of a system with its right side in the last column; None for a singular one."""
    n = len(rows)
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(rows[i][k]))
        if abs(rows[pivot][k]) < NOTHING:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [v / rows[k][k] for v in rows[k]]
        for i in range(n):
            if i != k and rows[i][k]:
                factor = rows[i][k]
                rows[i] = [v - factor * p for v, p in zip(rows[i], rows[k], strict=True)]
    return [row[-1] for row in rows]
