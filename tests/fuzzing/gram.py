"""Kernels in 80 digits, and exactly where they are polynomials: what is true in the kernel's space."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np

import dfeas
from tests.decimals import kernel_value
from tests.exact import conflict
from tests.fuzzing.oracle import BITS

DIGITS = Context(prec=80, Emin=-(10**15), Emax=10**15, traps=[])
TINY = Decimal("1e-70")
ROUNDS = 400

Row = list[Fraction]
Matrix = list[list[Decimal]]

MOST = 600
"""Points times degree of a polynomial up to which integers say what is separable: beyond they take minutes."""


def arguments(options: dict[str, Any]) -> dict[str, Any]:
    """Options of a solve, with a kernel and its parameters as one of them."""
    parts = {name: options[name] for name in ("kernel", "gamma", "degree", "coef0") if name in options}
    kept = {name: value for name, value in options.items() if name not in parts}
    return {**kept, "kernel": dfeas.Kernel(**parts)} if parts else kept


def exactly(X: np.ndarray) -> list[Row]:
    return [[Fraction(v) for v in row] for row in X.tolist()]


def dot(x: Row, z: Row) -> Fraction:
    return sum((a * b for a, b in zip(x, z, strict=True)), Fraction(0))


def separable(X: np.ndarray, labels: np.ndarray, kernel: dict[str, Any]) -> bool | None:
    """Whether some function of the kernel's space separates the points.

    Of distances: different points are independent, so only equal ones with other labels cannot be told apart. Of products the
    Gram matrix is rational: x >= 0 with x'Kx = 0 has Kx = 0, which the simplex method decides. Not normalised, which changes
    nothing but a zero point's column, and that stays zero. None when that takes too long.
    """
    if len(X) * int(kernel.get("degree") or 1) > MOST:
        return None
    rows = exactly(X)
    if kernel["kernel"] in ("rbf", "exponential"):
        first: dict[tuple[Fraction, ...], int] = {}
        return all(first.setdefault(tuple(row), int(sign)) == int(sign) for row, sign in zip(rows, labels, strict=True))
    signs = [int(v) for v in labels]
    values = [[plain(x, z, kernel) for z in rows] for x in rows]
    if any(values[j][j] == 0 for j in range(len(rows))):
        return False
    points = []
    for sign, row in zip(signs, values, strict=True):
        entries = [sign * other * v for other, v in zip(signs, row, strict=True)]
        common = math.lcm(*(v.denominator for v in entries))
        whole = [int(v * common) for v in entries]
        points.append([v // (math.gcd(*whole) or 1) for v in whole])
    bits = max(abs(v) for point in points for v in point).bit_length()
    return conflict(points)[0] is None if bits * len(points) ** 3 / 100 < BITS else None


def plain(x: Row, z: Row, kernel: dict[str, Any]) -> Fraction:
    """A kernel of products before it is normalised."""
    if kernel["kernel"] != "polynomial":
        return dot(x, z)
    return (Fraction(kernel["gamma"]) * dot(x, z) + Fraction(kernel["coef0"])) ** int(kernel["degree"])


def values(X: np.ndarray, labels: np.ndarray, kernel: dict[str, Any]) -> Matrix:
    """l_i l_j K(x_i, x_j) / sqrt(K_ii K_jj) in 80 digits; call it in the context ``DIGITS``."""
    asked, signs = SimpleNamespace(**{**kernel, "name": kernel["kernel"]}), [int(v) for v in labels]
    found = [[Decimal(0)] * len(X) for _ in X]
    for i, x in enumerate(X):
        for j, z in enumerate(X[: i + 1]):
            found[i][j] = found[j][i] = signs[i] * signs[j] * kernel_value(asked, x, z)
    return found


def margin(G: Matrix) -> tuple[Decimal, Decimal]:
    """Both ends of the best margin of a signed Gram matrix (n, n): the shortest point of the hull (Wolfe 1976), in 80 digits.

    They hold whatever the steps were: the least score of a direction, and the length of a point.
    """
    n = len(G)
    chosen, weights = [0], [Decimal(1)]
    for _ in range(ROUNDS):
        products = [sum((w * G[i][j] for w, j in zip(weights, chosen, strict=True)), Decimal(0)) for i in range(n)]
        square = sum((w * products[j] for w, j in zip(weights, chosen, strict=True)), Decimal(0))
        worst = min(range(n), key=lambda i: products[i])
        if worst in chosen or products[worst] >= square - TINY:
            break
        chosen, weights = [*chosen, worst], [*weights, Decimal(0)]
        while len(chosen) > 1:
            affine = _affine([[G[i][j] for j in chosen] for i in chosen])
            if affine is None:  # dependent: the last one adds nothing
                chosen, weights = chosen[:-1], weights[:-1]
                break
            if min(affine) > TINY:
                weights = affine
                break
            step = min((w / (w - a) for w, a in zip(weights, affine, strict=True) if a <= TINY and w > a), default=Decimal(0))
            weights = [w + step * (a - w) for w, a in zip(weights, affine, strict=True)]
            least = min(range(len(weights)), key=lambda i: weights[i])
            chosen, weights = chosen[:least] + chosen[least + 1 :], weights[:least] + weights[least + 1 :]
            total = sum(weights)
            weights = [max(w, Decimal(0)) / total for w in weights]
    products = [sum((w * G[i][j] for w, j in zip(weights, chosen, strict=True)), Decimal(0)) for i in range(n)]
    square = sum((w * products[j] for w, j in zip(weights, chosen, strict=True)), Decimal(0))
    if square <= TINY:
        return Decimal(0), max(square, TINY).sqrt()
    return max(Decimal(0), min(products) / square.sqrt()), square.sqrt()


def _affine(held: Matrix) -> list[Decimal] | None:
    """Weights of sum 1 of the shortest point of the plane through some points; None where they are dependent."""
    k = len(held)
    table = [[*row, Decimal(1)] for row in held]
    for column in range(k):
        pivot = max(range(column, k), key=lambda i: abs(table[i][column]))
        if abs(table[pivot][column]) < TINY:
            return None
        table[column], table[pivot] = table[pivot], table[column]
        for i in range(k):
            if i != column and table[i][column]:
                factor = table[i][column] / table[column][column]
                table[i] = [a - factor * b for a, b in zip(table[i], table[column], strict=True)]
    found = [table[i][k] / table[i][i] for i in range(k)]
    total = sum(found)
    return [v / total for v in found] if total > 0 else None


def bracket(X: np.ndarray, labels: np.ndarray, kernel: dict[str, Any]) -> tuple[float, float]:
    """Both ends of the best margin, rounded to float64."""
    with localcontext(DIGITS):
        low, high = margin(values(X, labels, kernel))
        return float(low), float(high)


def least_score(G: Matrix, support: Sequence[int], weights: Sequence[float]) -> float:
    """The margin of a sum of signed unit points under a signed Gram matrix; below zero or zero when it separates nothing."""
    amounts = [Decimal(v) for v in weights]
    scores = [sum((w * row[j] for w, j in zip(amounts, support, strict=True)), Decimal(0)) for row in G]
    square = sum((w * scores[j] for w, j in zip(amounts, support, strict=True)), Decimal(0))
    return float(min(scores) / square.sqrt()) if square > 0 else 0.0
