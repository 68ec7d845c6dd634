"""The scaling of Nesterov and Todd: between elements s and x of some cones the w whose Hessian of the barrier takes s to x.

With that Hessian a Newton step treats both alike (Nesterov and Todd, Self-scaled barriers and interior-point methods for convex
programming, 1997; Andersen, Roos and Terlaky, On implementing a primal-dual interior-point method for conic quadratic
optimization, 2003, for second-order cones; Todd, Toh and Tutuncu, On the Nesterov-Todd direction in semidefinite programming,
1998). Barriers are -log det: of a second-order cone (t, u) the determinant is t^2 - |u|^2.

A step of s by ds and of x by dx changes their product by a term of second order, too. ``cross_term`` is the element that a step
to come has to make up for (Mehrotra, On the implementation of a primal-dual interior point method, 1992).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dfeas.cones.algebra import Group, elements, length, matrices
from dfeas.linalg.points import Floats, Indices

Some = Indices | slice
"""Which of the cones."""


@dataclass(frozen=True)
class NesterovTodd(ABC):
    """Of elements s and x (c, d) in the interior of cones of one kind and size."""

    size: int
    s: Floats
    x: Floats

    @abstractmethod
    def inverse(self) -> Floats:
        """Minus the gradient of the barrier in s (c, d)."""

    @abstractmethod
    def apply_hessian(self, u: Floats) -> Floats:
        """The Hessian of the barrier in w, times elements u (c, d)."""

    @abstractmethod
    def cross_term(self, ds: Floats, dx: Floats) -> Floats:
        """What steps (c, d) of s and x add to their product, as a change (c, d) of x."""

    @abstractmethod
    def grams(self, D: Floats, some: Some) -> Floats:
        """D'F''D (c, v, v) of rows D (c, d, v) of some of the cones, F'' the Hessian of the barrier in w."""

    @abstractmethod
    def gram(self, D: Floats, some: Some) -> Floats:
        """The sum (v, v) of these."""


@dataclass(frozen=True)
class Linear(NesterovTodd):
    """Of entries of the orthant."""

    @cached_property
    def diagonal(self) -> Floats:
        """The Hessian (c,), which is diagonal."""
        return np.asarray((self.x / self.s)[:, 0])

    def inverse(self) -> Floats:
        return 1 / self.s

    def apply_hessian(self, u: Floats) -> Floats:
        return u * self.diagonal[:, None]

    def cross_term(self, ds: Floats, dx: Floats) -> Floats:
        return ds * dx / self.s

    def grams(self, D: Floats, some: Some) -> Floats:
        half = D[:, 0] * np.sqrt(self.diagonal[some])[:, None]
        return np.asarray(half[:, :, None] * half[:, None, :])

    def gram(self, D: Floats, some: Some) -> Floats:
        half = D[:, 0] * np.sqrt(self.diagonal[some])[:, None]
        return np.asarray(half.T @ half)


@dataclass(frozen=True)
class SecondOrder(NesterovTodd):
    """Of second-order cones of one size."""

    @cached_property
    def _unit(self) -> tuple[Floats, Floats]:
        """w (c, d) of determinant 1, and the determinant (c, 1) that it has."""
        roots = [np.sqrt(_determinant(each)) for each in (self.s, self.x)]
        w = self.s / roots[0] + _reflect(self.x) / roots[1]
        return w / np.sqrt(_determinant(w)), 2 * roots[0] / roots[1]

    @cached_property
    def diagonal(self) -> Floats:
        """The Hessian is a diagonal (c, d), ..."""
        _, size = self._unit
        diagonal = np.broadcast_to(2 / size, self.s.shape).copy()
        diagonal[:, 0] *= -1
        return diagonal

    @cached_property
    def direction(self) -> Floats:
        """... and vv' of a direction v (c, d)."""
        w, size = self._unit
        return np.asarray(_reflect(w) * (2 / np.sqrt(size)))

    def inverse(self) -> Floats:
        return np.asarray(_reflect(self.s) * (2 / _determinant(self.s)))

    def apply_hessian(self, u: Floats) -> Floats:
        return np.asarray(u * self.diagonal + self.direction * (self.direction * u).sum(axis=1, keepdims=True))

    def cross_term(self, ds: Floats, dx: Floats) -> Floats:
        # with T, whose square is the Hessian: Ts = l = x/T; the product of T ds and dx/T is that of l and what is added
        w, size = self._unit
        root = w.copy()
        root[:, 0] += 1
        root /= np.sqrt(2 * root[:, :1])  # its square is w
        scale = np.sqrt(2 / size)
        level, first = _apply_quadratic(_reflect(root), self.s) * scale, _apply_quadratic(_reflect(root), ds) * scale
        second = _apply_quadratic(root, dx) / scale
        inner = (first * second).sum(axis=1, keepdims=True)
        outer = first[:, :1] * second[:, 1:] + second[:, :1] * first[:, 1:]
        head = (level[:, :1] * inner - (level[:, 1:] * outer).sum(axis=1, keepdims=True)) / _determinant(level)
        added = np.concatenate([head, (outer - head * level[:, 1:]) / level[:, :1]], axis=1)
        return _apply_quadratic(_reflect(root), added) * scale

    def grams(self, D: Floats, some: Some) -> Floats:
        return np.asarray(np.swapaxes(D, 1, 2) @ self._rows(D, some))

    def gram(self, D: Floats, some: Some) -> Floats:
        rows, width = D.shape[0] * D.shape[1], D.shape[2]
        return np.asarray(D.reshape(rows, width).T @ self._rows(D, some).reshape(rows, width))

    def _rows(self, D: Floats, some: Some) -> Floats:
        v = self.direction[some]
        return np.asarray(D * self.diagonal[some][:, :, None] + v[:, :, None] * (v[:, None, :] @ D))


@dataclass(frozen=True)
class Semidefinite(NesterovTodd):
    """Of semidefinite cones: with s = LL' and the decomposition L'xL = V l^2 V', w = GG' of G = L V l^-1/2."""

    @cached_property
    def _factors(self) -> tuple[Floats, Floats, Floats, Floats]:
        """l (c, k), G (c, k, k) and its inverse, and the inverse of L."""
        lower = np.linalg.cholesky(matrices(self.s, self.size))
        below = np.linalg.inv(lower)
        values, vectors = np.linalg.eigh(np.swapaxes(lower, 1, 2) @ matrices(self.x, self.size) @ lower)
        level = np.sqrt(np.maximum(values, np.finfo(np.float64).tiny))
        half = np.sqrt(level)
        return level, lower @ (vectors / half[:, None, :]), half[:, :, None] * (np.swapaxes(vectors, 1, 2) @ below), below

    @cached_property
    def squares(self) -> Floats:
        """The inverses (c, k, k) of w."""
        turn = self._factors[2]
        return np.asarray(np.swapaxes(turn, 1, 2) @ turn)

    def inverse(self) -> Floats:
        below = self._factors[3]
        return elements(np.swapaxes(below, 1, 2) @ below)

    def apply_hessian(self, u: Floats) -> Floats:
        return elements(np.asarray(self.squares @ matrices(u, self.size) @ self.squares))

    def cross_term(self, ds: Floats, dx: Floats) -> Floats:
        level, G, turn, _ = self._factors
        first = turn @ matrices(ds, self.size) @ np.swapaxes(turn, 1, 2)
        product = first @ (np.swapaxes(G, 1, 2) @ matrices(dx, self.size) @ G)
        product = product + np.swapaxes(product, 1, 2)
        product /= level[:, :, None] + level[:, None, :]
        return elements(np.swapaxes(turn, 1, 2) @ product @ turn)

    def grams(self, D: Floats, some: Some) -> Floats:
        half = self._halves(D, some).reshape(len(D), D.shape[2], -1)
        return np.asarray(half @ np.swapaxes(half, 1, 2))

    def gram(self, D: Floats, some: Some) -> Floats:
        half = np.swapaxes(self._halves(D, some), 0, 1).reshape(D.shape[2], -1)
        return np.asarray(half @ half.T)

    def _halves(self, D: Floats, some: Some) -> Floats:
        """The columns as matrices (c, v, k, k) between two of 1 / G."""
        turn = self._factors[2][some][:, None]
        return np.asarray(turn @ matrices(np.swapaxes(D, 1, 2), self.size) @ np.swapaxes(turn, 2, 3))


_KINDS: dict[str, type[NesterovTodd]] = {"l": Linear, "q": SecondOrder, "s": Semidefinite}


def scaling(group: Group, s: Floats, x: Floats) -> NesterovTodd:
    """Of elements s and x (c, d) of some cones."""
    return _KINDS[group.kind](group.size, s, x)


def inside(group: Group, s: Floats) -> bool:
    """Whether elements (c, d) are in the interior of their cones."""
    if group.kind == "l":
        return bool((s > 0).all())
    if group.kind == "q":
        return bool((s[:, 0] > length(s[:, 1:])).all())
    if not np.isfinite(s).all():
        return False
    try:
        np.linalg.cholesky(matrices(s, group.size))
    except np.linalg.LinAlgError:
        return False
    return True


def _reflect(s: Floats) -> Floats:
    """(t, -u) of elements (t, u) (c, d)."""
    mirrored = -s
    mirrored[:, 0] = s[:, 0]
    return mirrored


def _determinant(s: Floats) -> Floats:
    """t^2 - |u|^2 (c, 1), of elements inside."""
    radius = length(s[:, 1:])
    return np.asarray((s[:, 0] - radius) * (s[:, 0] + radius))[:, None]


def _apply_quadratic(v: Floats, u: Floats) -> Floats:
    """v (v u) of v of determinant 1, in the algebra of the cone: 2 vv'u - (u_0, -u_1)."""
    return np.asarray(2 * v * (v * u).sum(axis=1, keepdims=True) - _reflect(u))
