"""Cones computed plainly, one at a time, without dfeas: the oracle of the tests."""

from collections.abc import Iterator
from typing import Any

import numpy as np

Cone = tuple[str, int, slice]


def cones_of(cone: dict[str, Any]) -> Iterator[Cone]:
    """Kind, size and rows of each cone, in the order of SCS."""
    at = 0
    for _ in range(cone.get("l", 0)):
        yield "l", 1, slice(at, at + 1)
        at += 1
    for kind in ("q", "s"):
        for size in cone.get(kind, []):
            rows = size if kind == "q" else size * (size + 1) // 2
            yield kind, size, slice(at, at + rows)
            at += rows


def matrix(v: np.ndarray, k: int) -> np.ndarray:
    """The symmetric matrix of an element in the order and scaling of SCS."""
    S, at = np.zeros((k, k)), 0
    for j in range(k):
        for i in range(j, k):
            S[i, j] = S[j, i] = v[at] / (1 if i == j else np.sqrt(2))
            at += 1
    return S


def element(S: np.ndarray) -> np.ndarray:
    """And back."""
    k = len(S)
    return np.array([S[i, j] * (1 if i == j else np.sqrt(2)) for j in range(k) for i in range(j, k)])


def spectrum(kind: str, size: int, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues (r,) and extreme points (r, d) of an element."""
    if kind == "l":
        return s, np.ones((1, 1))
    if kind == "q":
        length = np.linalg.norm(s[1:])
        u = s[1:] / length if length else np.eye(len(s) - 1)[0]  # on the axis any direction is one
        return np.array([s[0] - length, s[0] + length]), np.array([[1, *-u], [1, *u]])
    value, vectors = np.linalg.eigh(matrix(s, size))
    return value, np.array([element(np.outer(v, v)) for v in vectors.T])


def norm(kind: str, X: np.ndarray) -> float:
    """The bound of |A q| over the extreme points."""
    if kind == "q":
        return float(np.linalg.norm(X[0]) + np.linalg.norm(X[1:], 2))
    return float(np.linalg.norm(X, 2))


def unit(kind: str, size: int) -> np.ndarray:
    """e."""
    return element(np.eye(size)) if kind == "s" else np.eye(size)[0]


def scaled(X: np.ndarray, cone: dict[str, Any]) -> np.ndarray:
    """Rows over the norms of their cones."""
    found = X.astype(np.float64)
    for kind, _, rows in cones_of(cone):
        found[rows] /= norm(kind, found[rows])
    return found


def all_columns(X: np.ndarray, cone: dict[str, Any], y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All eigenvalues (r,) of A*y and the columns A q (r, m) of their extreme points; X is scaled."""
    parts = [(spectrum(kind, size, X[rows] @ y), X[rows]) for kind, size, rows in cones_of(cone)]
    return np.concatenate([value for (value, _), _ in parts]), np.concatenate([q @ some for (_, q), some in parts])


def problem(rng: np.random.Generator, cone: dict[str, Any], m: int, margin: float | None) -> np.ndarray:
    """Rows (N, m) with a planted y in the interior, at a margin that grows with ``margin``; None: random ones."""
    e = np.concatenate([unit(kind, size) for kind, size, _ in cones_of(cone)])
    X = rng.standard_normal((len(e), m))
    if margin is None:
        return X
    y = rng.standard_normal(m)
    y /= np.linalg.norm(y)
    return X - np.outer(X @ y, y) + margin * np.outer(e, y)
