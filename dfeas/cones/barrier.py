"""The solver in memory: the widest y for some whole cones, by steps of a primal-dual interior-point method.

    maximise t - |y|^2 / 2   such that   s = A*y - t e  is in K
    minimise |Ax|^2 / 2      such that   <e, x> = 1, x  is in K

For a best margin R that is t = R^2 and |y| = R: y shrinks with R, so that rounding does, too, and a sphere |y| = 1 that y would
have to follow in short steps is none of the constraints. Both are kept, with y = Ax, from a first point on (x even, t as far
below as |y|, so that it is as near to the path as the data is small); then |y|^2 - t = <x, s>, and each iterate has both ends
of the bracket of these cones, the least eigenvalue of A*y over |y|, which is t / |y| at least, and |Ax| = |y|.

A step is Newton's in the scaling of Nesterov and Todd, by a predictor and a corrector (Mehrotra 1992; see ``scaling``), to the
boundary nearly: as in Vandenberghe, The CVXOPT linear and quadratic cone program solvers (2010).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # loads its parts when they are used
from numpy.typing import NDArray

from dfeas.cones.algebra import Group, groups_of
from dfeas.cones.curvature import part_of
from dfeas.cones.parts import ConePart, DensePart
from dfeas.cones.scaling import NesterovTodd, inside, scaling
from dfeas.linalg import csr
from dfeas.linalg.blas import beat
from dfeas.linalg.points import Floats, Indices, Tile, stack_points, take_rows

SHORTEST = 1e-8
"""Share of a step below which float64 tells nothing."""
STEPS = 100
"""At most."""
SETTLED = 1e-9
"""|Ax| below which the cones have no separator, as far as float64 tells; for a smaller eps a smaller one is tried."""


@dataclass(frozen=True, slots=True)
class ScaledCones:
    """Rows of whole cones in memory, scaled: X / norm."""

    index: Indices  # (r,) of the stored rows, ascending
    label: NDArray[np.int32]  # (r,) codes
    rows: Tile  # (r, m), sparse where they are stored so

    def merge(self, other: ScaledCones) -> ScaledCones:
        index = np.concatenate([self.index, other.index])
        order = np.argsort(index, kind="stable")
        rows = take_rows(stack_points([self.rows, other.rows]), order)
        return ScaledCones(index[order], np.concatenate([self.label, other.label])[order], rows)

    def cones(self) -> Indices:
        """The cone (r,) that each row is of, counted from 0."""
        return np.asarray(np.cumsum(self.label > 0) - 1)

    def take(self, cones: NDArray[np.bool_]) -> ScaledCones:
        rows = cones[self.cones()]
        return ScaledCones(self.index[rows], self.label[rows], self.rows[rows])

    def without(self, other: ScaledCones) -> ScaledCones:
        """The cones that the other does not have."""
        first = self.index[self.label > 0]
        return self.take(~np.isin(first, other.index))


Elements = list[Floats]
"""Of the cones of each part (c, d)."""


@dataclass(frozen=True, slots=True)
class BestPair:
    """The best y and the best x so far."""

    y: Floats  # (m,) unit
    low: float  # least eigenvalue of A*y
    upper: float  # |Ax|
    x: Elements  # in K, of trace 1


def widest(kept: ScaledCones, share: float, settled: float = SETTLED) -> tuple[BestPair, Floats]:
    """A unit y whose least eigenvalue on the cones is at least ``share`` of the best one, or |Ax| at most ``settled``. The best
    of the iterates, where float64 does not reach that. Beside it its x (r,) as the cones lie.
    """
    parts = [_part(kept, group) for group in groups_of(kept.label)]
    rank = sum(part.group.rank * len(part.group.starts) for part in parts)
    x = [part.first() / rank for part in parts]
    y = _pull_back(parts, x)[:-1]
    # the first t is below -|y|: the eigenvalues of A*y are within |y|
    z = np.append(y, -2.0 * max(float(np.linalg.norm(y)), np.finfo(np.float64).tiny))
    best: BestPair | None = None
    for number in range(STEPS):
        beat(f"{len(kept.index)} rows, step {number + 1}")
        image = _pull_back(parts, x)  # (Ax, -<e, x>)
        best = _better(best, parts, z, x, image)
        if (best.low > 0 and best.low >= share * best.upper) or best.upper <= settled:
            break
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # at the boundary, where there is no step on
            step = _step(parts, z, x, image, rank)
        if step is None:
            break
        z, x = step
    assert best is not None, "the first point is inside"
    places = np.zeros(len(kept.index))
    for part, each in zip(parts, best.x, strict=True):
        places[part.group.rows()] = each
    return best, places


def _part(kept: ScaledCones, group: Group) -> ConePart:
    rows = kept.rows
    if isinstance(rows, np.ndarray):
        return DensePart.of(group, np.asarray(rows[group.rows()], np.float64))
    return part_of(group, csr.take_rows(rows, group.rows().reshape(-1)))


def _step(parts: list[ConePart], z: Floats, x: Elements, image: Floats, rank: int) -> tuple[Floats, Elements] | None:
    """z and x one step on; None where rounding lets there be none."""
    s = [part.element(z) for part in parts]
    mu = sum(float((a * b).sum()) for a, b in zip(x, s, strict=True)) / rank
    # <x, s> below this share of |y|^2 is rounding
    if not mu * rank > 1e-14 * float(z[:-1] @ z[:-1]) or not all(map(inside, (part.group for part in parts), s)):
        return None
    lack = image - np.append(z[:-1], -1.0)  # Ax - y and 1 - <e, x>: rounding
    scalings = [scaling(part.group, *pair) for part, *pair in zip(parts, s, x, strict=True)]
    system = NewtonSystem.of(parts, scalings)
    inverse, wanted = [each.inverse() for each in scalings], [-each for each in x]
    dz, dx = system.direction(lack, wanted)
    if not np.isfinite(dz).all():
        return None
    left = (1 - _reach(parts, s, x, dz, dx)) ** 3
    for place, part in enumerate(parts):
        wanted[place] -= scalings[place].cross_term(part.element(dz), dx[place])
        wanted[place] += max(left, 1e-3) * mu * inverse[place]  # a step aims at this share of <x, s>, at least
    dz, dx = system.direction(lack, wanted)
    size = _reach(parts, s, x, dz, dx) if np.isfinite(dz).all() else 0.0
    return (z + size * dz, [a + size * b for a, b in zip(x, dx, strict=True)]) if size > SHORTEST else None


@dataclass(frozen=True)
class NewtonSystem:
    """The system of a step: (Q + D'F''D) dz = .., where Q is 1 for entries of y and 0 for t."""

    parts: list[ConePart]
    scalings: list[NesterovTodd]
    scale: Floats  # (m + 1,) that makes the diagonal 1
    matrix: Floats  # (m + 1, m + 1) scaled, or its factor
    factorised: bool

    @classmethod
    def of(cls, parts: list[ConePart], scalings: list[NesterovTodd]) -> NewtonSystem:
        matrix = sum(part.curvature(each) for part, each in zip(parts, scalings, strict=True))
        assert isinstance(matrix, np.ndarray), "there is a part"
        matrix[np.diag_indices(len(matrix) - 1)] += 1.0
        scale = 1 / np.sqrt(np.diag(matrix))
        matrix *= scale[:, None] * scale
        factor, failed = scipy.linalg.lapack.dpotrf(matrix.T, lower=1, clean=0)
        return cls(parts, scalings, scale, matrix if failed else factor, not failed)

    def direction(self, lack: Floats, wanted: Elements) -> tuple[Floats, Elements]:
        """dz and dx = wanted - F''D dz, for which Q dz - D'dx is ``lack``."""
        right = self.scale * (lack + _pull_back(self.parts, wanted))
        if self.factorised:
            solved = scipy.linalg.lapack.dpotrs(self.matrix, right, lower=1)[0]
        else:
            try:
                solved = np.linalg.solve(self.matrix, right)
            except np.linalg.LinAlgError:
                solved = np.full_like(right, np.nan)
        dz = np.asarray(self.scale * solved)
        images = [each.apply_hessian(part.element(dz)) for part, each in zip(self.parts, self.scalings, strict=True)]
        return dz, [a - b for a, b in zip(wanted, images, strict=True)]


def _pull_back(parts: list[ConePart], x: Elements) -> Floats:
    """D'x (m + 1,), over all parts."""
    return np.asarray(sum(part.pull_back(each) for part, each in zip(parts, x, strict=True)))


def _reach(parts: list[ConePart], s: Elements, x: Elements, dz: Floats, dx: Elements) -> float:
    """The share of a step that stays inside, all of it or nearly as far as the boundary; 0 where that is too near."""
    steps = [(part.group, (a, part.element(dz)), (b, c)) for part, a, b, c in zip(parts, s, x, dx, strict=True)]

    def stays(size: float) -> bool:
        return all(inside(group, a + size * b) for group, *both in steps for a, b in both)

    if stays(1.0):
        return 1.0
    within, beyond = 0.5, 1.0
    while within > SHORTEST and not stays(within):
        within, beyond = within / 2, within
    if within <= SHORTEST:
        return 0.0
    for _ in range(4):  # halvings of the interval in which the boundary is
        middle = (within + beyond) / 2
        within, beyond = (middle, beyond) if stays(middle) else (within, middle)
    return 0.98 * within  # share of the way to the boundary that a step goes


def _better(best: BestPair | None, parts: list[ConePart], z: Floats, x: Elements, image: Floats) -> BestPair:
    y, trace = z[:-1], -float(image[-1])
    size = float(np.linalg.norm(y))
    upper = float(np.linalg.norm(image[:-1])) / trace
    start = y / size if size > 0 else np.eye(len(y))[0]
    low = float(z[-1]) / size if size > 0 else -1.0
    if low > 0:  # it is a bound
        low = max(low, min(part.low(start) for part in parts))
    nearer = [each / trace for each in x] if best is None or upper < best.upper else best.x
    if best is None:
        return BestPair(start, max(-1.0, low), upper, nearer)
    wider = low > best.low
    return BestPair(start if wider else best.y, max(low, best.low), min(upper, best.upper), nearer)
