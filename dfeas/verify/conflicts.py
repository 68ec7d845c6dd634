"""Proves many conflicts of few points, as ``dfeas.suspects`` finds them, and measures none of their hulls.

Let the signed points of a conflict be columns of C (d, d + 1), w > 0 weights that nearly balance them, M all of C but its
heaviest column, R about the inverse of M, and alpha >= |I - R M| below 1, in maximum norms. Then M is regular, and w on the
heaviest column and w - M^-1 C w on the others balance them exactly. They are positive where w is above the last term, which is
within |R| |C w| / (1 - alpha) of zero (Rump, Verification methods, Acta Numerica 2010, section 10). That is asked of many
conflicts at once. What it leaves open, and conflicts of fewer points, are left to ``dfeas.verify.balance``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dfeas.errors import CheckFailedError
from dfeas.exact.arithmetic import NORMS, UP_SUMS, Floats, Indices, Wide, gamma
from dfeas.verify.blocks import Block, Data, code_of, point_of, signs_of
from dfeas.verify.certificate import Answer, Certificate, Check, attempt
from dfeas.verify.points import SUPPORT_ENTRIES, Points, stack_points
from dfeas.verify.view import transform_of

ENTRIES = 1 << 18
"""Of points of conflicts that are looked at at once, about: the copies that this takes stay in cache."""
LOST = 2.0**-900
"""More than underflow can take from what is bounded here."""


class Members(Struct):
    """Points that are in a conflict, of some consecutive blocks."""

    checksums: bytes  # of points and labels of each chunk
    points: list[Any]  # (r, m) each, as stored
    label: list[NDArray[Any]]  # (r,) each, as stored

    def add(self, other: Members) -> None:
        self.checksums = self.checksums + other.checksums
        self.points = self.points + other.points
        self.label = self.label + other.label


class Conflicts(Points, frozen=True):
    """Checks weights of few points as they are stored: whether these conflict, and no more."""

    def require(self, certificate: Certificate, data: Data) -> None:
        super().require(certificate, data)
        sound = certificate.kind == "gordan" and certificate.support.shape == certificate.weights.shape
        if not sound or transform_of(data.view, data.m) is not None or point_of(data) is not None:
            raise CheckFailedError("it is no conflict of points as they are stored")

    def look(self, data: Data, certificates: Sequence[Certificate]) -> Callable[[Block], Any]:
        members = _members_of(certificates)

        def take(block: Block) -> Members:
            low, high = np.searchsorted(members, [block.start, block.start + len(block.label)])
            rows = members[low:high] - block.start
            return Members(block.checksums, [block.points[rows]], [block.label[rows]])

        return take

    def conclude(self, part: Any, certificates: Sequence[Certificate], data: Data, read: Callable[..., Any]) -> list[Answer]:
        said = [f"{each.many} points conflict: a positive combination of them is exactly zero" for each in certificates]
        none = CheckFailedError("no positive combination of its points is proved to be zero")
        proved = _prove_all(data, certificates, part)
        return [
            Check("infeasible", "exact", -1.0, 0.0, data.n, 0, text) if sure else none
            for text, sure in zip(said, proved, strict=True)
        ]


def _members_of(certificates: Sequence[Certificate]) -> Indices:
    return np.unique(np.concatenate([each.support for each in certificates]))


def _prove_all(data: Data, certificates: Sequence[Certificate], part: Members) -> NDArray[np.bool_]:
    """Of which certificates (c,) the points conflict."""
    dense = isinstance(part.points[0], np.ndarray)
    if dense:
        points: Any = np.concatenate(part.points)
    else:
        import scipy

        points = scipy.sparse.vstack(part.points, format="csr")
    members, label, d = _members_of(certificates), np.concatenate(part.label), data.m + int(data.intercept)
    rows = [np.searchsorted(members, each.support[each.weights > 0]) for each in certificates]
    weights = [each.weights[each.weights > 0] for each in certificates]
    sign = [signs_of(label[some], code_of(data, each)) for some, each in zip(rows, certificates, strict=True)]
    proved = np.zeros(len(rows), np.bool_)
    simplices = [place for place, some in enumerate(rows) if dense and len(some) == d + 1]
    size = max(1, ENTRIES // (d * d))
    for first in range(0, len(simplices), size):
        here = simplices[first : first + size]
        some = np.ones((len(here), d + 1, d))
        some[:, :, : data.m] = points[np.stack([rows[place] for place in here])]
        some *= np.stack([sign[place] for place in here])[:, :, None]
        proved[here] = _are_balanced(some, np.stack([weights[place] for place in here]))
    for place in np.flatnonzero(~proved).tolist():
        alone = attempt(_is_balanced, data, points[rows[place]], sign[place], weights[place])
        proved[place] = not isinstance(alone, CheckFailedError) and alone
    return proved


def _are_balanced(points: Floats, weights: Floats) -> NDArray[np.bool_]:
    """Which conflicts of signed points (g, d + 1, d), by positive weights (g, d + 1) of unit vectors, are proved at once."""
    g, s, d = points.shape
    with np.errstate(all="ignore"):
        # points, and then features, of one size: by powers of two, exactly where no entry underflows
        even = points * _powers(points, 2)
        exact = ((np.abs(even) >= 2.0**-900) | (points == 0)).all(axis=(1, 2))
        w = weights / np.sqrt(np.einsum("gsd,gsd->gs", even, even))
        even *= _powers(even, 1)
        w /= w.max(axis=1, keepdims=True)
        kept = np.arange(d) + (np.arange(d) >= w.argmax(axis=1)[:, None])
        matrix = np.take_along_axis(even, kept[:, :, None], axis=1)  # M'
        try:
            inverse = np.linalg.inv(matrix)
        except np.linalg.LinAlgError:  # one of them is singular
            halves = (slice(g // 2), slice(g // 2, g))
            return np.zeros(1, np.bool_) if g == 1 else np.concatenate([_are_balanced(points[h], weights[h]) for h in halves])
        size, slack = np.abs(inverse), (1 + 4 * gamma(s + 16)) * UP_SUMS  # the slack covers roundings of these bounds
        product = matrix @ inverse
        product[:, np.arange(d), np.arange(d)] -= 1
        rounding = gamma(d) * (np.abs(matrix).sum(axis=1)[:, None] @ size)[:, 0]
        alpha = (np.abs(product).sum(axis=1) + rounding).max(axis=1) * slack + LOST
        off = np.abs(w[:, None] @ even) + gamma(s) * (w[:, None] @ np.abs(even)) + LOST
        error = (off @ size).max(axis=(1, 2)) * slack / (1 - alpha) + LOST
        least = np.take_along_axis(w, kept, axis=1).min(axis=1)
        return np.asarray(exact & (alpha < 0.5) & (least > error * UP_SUMS))


def _powers(points: Floats, axis: int) -> Floats:
    """Powers of two that bring the largest entries along an axis to about 1."""
    return np.asarray(np.ldexp(1.0, -np.frexp(np.abs(points).max(axis=axis, keepdims=True))[1]))


def _is_balanced(data: Data, points: Any, sign: NDArray[np.int8], weights: Floats) -> bool:
    """Whether one conflict of points (s, m) as they are stored is proved. Raises CheckFailedError where one is not finite."""
    from dfeas.verify.balance import balance  # which loads FLINT

    chosen = Wide.of(points, data.intercept, f"{data.where}: a point of a conflict")
    norm = chosen.norm()
    if not sign.all():
        return False
    if not chosen.nonzero().all():
        return True
    if norm.min() < NORMS[0] or norm.max() > NORMS[1] or chosen.size * chosen.terms > SUPPORT_ENTRIES:
        return False
    signed = stack_points([chosen.scale_rows(sign.astype(np.float64))], SUPPORT_ENTRIES)
    return signed is not None and balance(signed, weights / norm) is not None
