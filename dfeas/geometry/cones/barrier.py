"""The solver in memory: the widest y for some whole cones, by a path of Newton steps.

    maximise t - |y|^2 / 2   such that   A*y - t e is in K

with the barriers -log det of the cones (Nesterov and Nemirovskii 1994; Boyd and Vandenberghe 2004, chapter 11). For a best
margin R that is t = R^2 and |y| = R: y shrinks with R, so that rounding does, too, and a sphere |y| = 1 that y would have to
follow in short steps is none of the constraints. The inverses of the elements A*y - t e, moved by the Newton step, are an
element x of K where that step is short (a decrement below 1), and y is near Ax / <e, x>: near the path every iterate has both
ends of the bracket of these cones, the least eigenvalue of A*y over |y|, and |Ax| / <e, x>, whose squares are about
rank / tau apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # loads its parts when they are used
from numpy.typing import NDArray

from dfeas.data.cones import Group, groups_of
from dfeas.geometry.cones.curvature import part_of
from dfeas.geometry.cones.parts import DensePart, Part
from dfeas.linalg import csr
from dfeas.linalg.points import Floats, Indices, Tile, picked, stacked

GROWTH = 8.0
"""Of tau."""
CENTRED = 0.1
"""Newton decrement, squared and halved, that is near enough to the path."""
SHORT = 0.8
"""Decrement, squared, below which x is moved by the Newton step."""
FARTHEST = 1e24
"""Tau beyond which float64 tells nothing."""
STEPS = 400
"""Newton steps at most."""
WIDE = 300
"""Entries of a step above which its matrix is factorised by Cholesky, in half of the time."""
SETTLED = 1e-9
"""|Ax| below which the cones have no separator, as far as float64 tells."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Rows of whole cones in memory, scaled: X / norm."""

    index: Indices  # (r,) of the stored rows, ascending
    label: NDArray[np.int32]  # (r,) codes
    rows: Tile  # (r, m), sparse where they are stored so

    def joined(self, other: Kept) -> Kept:
        """Both, in the order of the rows."""
        index = np.concatenate([self.index, other.index])
        order = np.argsort(index, kind="stable")
        rows = picked(stacked([self.rows, other.rows]), order)
        return Kept(index[order], np.concatenate([self.label, other.label])[order], rows)

    def cones(self) -> Indices:
        """The cone (r,) that each row is of, counted from 0."""
        return np.asarray(np.cumsum(self.label > 0) - 1)

    def take(self, cones: NDArray[np.bool_]) -> Kept:
        """Some of the cones (c,)."""
        rows = cones[self.cones()]
        return Kept(self.index[rows], self.label[rows], self.rows[rows])

    def without(self, other: Kept) -> Kept:
        """The cones that the other does not have."""
        first = self.index[self.label > 0]
        return self.take(~np.isin(first, other.index))


@dataclass(frozen=True, slots=True)
class Widest:
    """What was found for some cones."""

    y: Floats  # (m,) unit
    low: float  # least eigenvalue of A*y
    upper: float  # |Ax|
    x: Floats  # (r,) in K, of trace 1


def widest(kept: Kept, share: float) -> Widest:
    """A unit y whose least eigenvalue on the cones is at least ``share`` of the best one, or |Ax| at rounding level.

    The best of the iterates, where float64 does not reach that.
    """
    parts = [_part(kept, group) for group in groups_of(kept.label)]
    rank = sum(part.group.rank * len(part.group.starts) for part in parts)
    m = kept.rows.shape[1]
    z, tau = np.append(np.zeros(m), -1.0), float(rank + 1)
    best: Widest | None = None
    for _ in range(STEPS):
        gradient, curvature, x, s = _local(parts, z, tau, kept)
        step = _newton(gradient, curvature)
        decrement = -float(gradient @ step)
        if not np.isfinite(decrement) or tau > FARTHEST:
            break
        if decrement < SHORT:
            for part, element in zip(parts, s, strict=True):
                x[part.group.rows()] -= part.turned(element, part.element(step))
        best = _better(best, parts, z, x, kept)
        if (best.low > 0 and best.low >= share * best.upper) or best.upper <= SETTLED:
            break
        if decrement <= 2 * CENTRED:
            tau *= GROWTH
            continue
        moved = _searched(parts, z, step, tau, decrement)
        if moved is None:
            tau *= GROWTH
            continue
        z = moved
    assert best is not None, "the first step begins inside"
    return best


def _part(kept: Kept, group: Group) -> Part:
    rows = kept.rows
    if isinstance(rows, np.ndarray):
        return DensePart.of(group, np.asarray(rows[group.rows()], np.float64))
    return part_of(group, csr.picked(rows, group.rows().reshape(-1)))


def _local(parts: list[Part], z: Floats, tau: float, kept: Kept) -> tuple[Floats, Floats, Floats, list[Floats]]:
    """Gradient, Hessian, the inverses (r,) of all elements, and these."""
    m = len(z) - 1
    gradient = np.append(tau * z[:m], -tau)
    curvature = np.diag(np.append(np.full(m, tau), 0.0))
    x, elements = np.zeros(len(kept.index)), []
    for part in parts:
        s = part.element(z)
        inverse = part.inverse(s)
        gradient -= part.pulled(inverse)
        curvature += part.curvature(s)
        x[part.group.rows()] = inverse
        elements.append(s)
    return gradient, curvature, x, elements


def _newton(gradient: Floats, curvature: Floats) -> Floats:
    scale = 1 / np.sqrt(np.diag(curvature))
    scaled = curvature * scale[:, None] * scale
    if len(scaled) > WIDE:
        factor, failed = scipy.linalg.lapack.dpotrf(scaled, lower=1, overwrite_a=1)
        if not failed:
            return np.asarray(-scale * scipy.linalg.lapack.dpotrs(factor, scale * gradient, lower=1)[0])
        scaled = curvature * scale[:, None] * scale
    try:
        return np.asarray(-scale * np.linalg.solve(scaled, scale * gradient))
    except np.linalg.LinAlgError:
        return np.full_like(gradient, np.nan)


def _objective(parts: list[Part], z: Floats, tau: float) -> float:
    return tau * (float(z[:-1] @ z[:-1]) / 2 - float(z[-1])) + sum(part.value(part.element(z)) for part in parts)


def _searched(parts: list[Part], z: Floats, step: Floats, tau: float, decrement: float) -> Floats | None:
    """The first of halved steps that stays inside and descends; None where rounding lets none do so."""
    before, size = _objective(parts, z, tau), 1.0
    while size > 1e-10:
        if _objective(parts, z + size * step, tau) <= before - 0.1 * size * decrement:
            return z + size * step
        size /= 2
    return None


def _better(best: Widest | None, parts: list[Part], z: Floats, x: Floats, kept: Kept) -> Widest:
    """The best y and the best x so far."""
    y = z[:-1]
    size = float(np.linalg.norm(y))
    low = -1.0
    if size > 0:
        low = min(part.low(y / size, float(z[-1]) / size) for part in parts)
    trace = sum(part.trace(x[part.group.rows()]) for part in parts)
    upper = float(np.linalg.norm(kept.rows.T @ (x / trace)))
    if best is None:
        start = y / size if size > 0 else np.eye(len(y))[0]
        return Widest(start, low, upper, x / trace)
    wider, nearer = low > best.low, upper < best.upper
    return Widest(
        y / size if wider else best.y,
        max(low, best.low),
        min(upper, best.upper),
        x / trace if nearer else best.x,
    )
