"""How small the weighted sum of a Gordan certificate is, and whether it is exactly zero."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dfeas.errors import CheckFailedError
from dfeas.verify.certificate import Certificate
from dfeas.verify.evidence import Check, Found
from dfeas.verify.exact.balance import balance
from dfeas.verify.points import DensePoints
from dfeas.verify.points import joined as joined_points
from dfeas.verify.rounding import NORMS, UP, gamma
from dfeas.verify.stored import Stored

LOST = 2.0**-500
"""More than a quotient weight / norm that underflows takes from a sum: TINY times the largest norm."""
SUPPORT_ENTRIES = 10_000_000
"""Largest support, in entries of its points, that is kept for a proof that it balances exactly."""
LEVEL = 1e-12
"""A share of all weights that may be rounding of zero."""
NEARLY = 1e-6
"""|Ax| up to which such a proof is tried."""


def look_at_weights(found: Found, block: Stored, certificate: Certificate) -> None:
    """Add the weighted points of a block that are in the support."""
    low, high = np.searchsorted(certificate.support, [block.start, block.start + block.size])
    rows = certificate.support[low:high] - block.start
    weights = certificate.weights[low:high]
    rows, weights = rows[weights > 0], weights[weights > 0]
    dimension = block.points.shape[1] + block.intercept
    if found.total is None or found.spread is None:
        found.total, found.spread = np.zeros(dimension), np.zeros(dimension)
    size = block.piece(dimension)
    for piece in range(0, len(rows), size):
        _weigh(found, block, rows[piece : piece + size], weights[piece : piece + size], certificate)


def _weigh(
    found: Found, block: Stored, rows: NDArray[np.int64], weights: NDArray[np.float64], certificate: Certificate
) -> None:
    assert found.total is not None, "zeros to begin with"
    assert found.spread is not None, "zeros to begin with"
    chosen, signs = block.wide(rows), block.label[rows].astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        norm = chosen.norm()
    zero = ~block.nonzero(rows)
    if (~zero & ((norm < NORMS[0]) | (norm > NORMS[1]))).any():
        raise CheckFailedError(f"a point of the support has a norm outside {NORMS[0]:g} .. {NORMS[1]:g}; nothing can be proved")
    size = norm if block.length is None else np.full(len(rows), block.length)
    factor = np.divide(weights, size, out=np.zeros(len(rows)), where=~zero) * signs
    total, spread = chosen.sums(factor)
    found.total += total
    found.spread += spread
    found.terms += len(rows) + 1
    if zero.any():
        found.zero = True
    if not _may_be_exact(certificate, chosen.terms):
        return
    if block.origin is not None:  # (x_j, 1), and the same for p below
        chosen = DensePoints(np.hstack([block.origin[0][rows].astype(np.float64), np.ones((len(rows), 1))]))
        found.origin = -np.append(block.origin[1], 1.0)
    elif block.seen is not None:
        chosen = block.plain(rows)
        if block.seen.shift is not None and not block.intercept:  # the same; with an intercept the shift makes no difference
            chosen = DensePoints(np.hstack([block.points[rows].astype(np.float64), np.ones((len(rows), 1))]))
            found.origin = -np.append(block.seen.shift, 1.0)
    found.support.append((chosen.scaled(signs), np.abs(factor)))


def gordan(found: Found, certificate: Certificate) -> Check:
    """What the sum of all weighted points shows: that it is exactly zero, or how small it is at most."""
    assert found.total is not None, "every block adds to the sum"
    assert found.spread is not None, "every block adds to the sum"
    terms = found.terms + len(found.total) + 12  # sums, and difference, products, norm, quotient of each
    rounding = gamma(terms) / (1 - 2 * gamma(terms)) * found.spread * UP + terms * LOST
    residual = np.abs(found.total) + rounding
    size = float(np.linalg.norm(residual)) * (1 + gamma(len(residual) + 4)) * UP
    weight = float(certificate.weights.sum()) * (1 - gamma(len(certificate.weights) + 1))
    upper = size / weight * UP
    exact = _exactly(found, upper)
    if exact is not None:
        return Check("infeasible", "exact", -1.0, 0.0, found.points, 0, exact)
    text = f"no unit vector has a margin above {upper:.6g} (weights on {len(certificate.support)} of {found.points} points)"
    share = float(np.linalg.norm(rounding)) / weight * UP
    return Check("eps-infeasible", "rigorous", -1.0, min(1.0, upper), found.points, 0, text, share)


def _may_be_exact(certificate: Certificate, terms: int) -> bool:
    """Whether the support is so small that it is kept."""
    return len(certificate.support) * terms <= SUPPORT_ENTRIES


def _exactly(found: Found, upper: float) -> str | None:
    """Why no hyperplane separates the points of the support, if that can be proved."""
    if found.zero:
        return "a point is zero, so no hyperplane has it on its positive side"
    if upper > NEARLY or not found.support:
        return None
    points = joined_points([points for points, _ in found.support], SUPPORT_ENTRIES)
    if points is None:
        return None
    factors = np.concatenate([factors for _, factors in found.support])
    more = 0
    if found.origin is not None:
        signed = float(factors @ points[:, -1])  # weights of points less those of opposite ones
        more = int(abs(signed) > LEVEL * float(factors.sum()))
    if more and found.origin is not None:
        points, factors = np.vstack([points, np.copysign(1.0, signed) * found.origin]), np.append(factors, abs(signed))
    proved = balance(points, factors)
    if proved is None:
        return None
    count = proved.support - more
    near = f" (those given are off by {proved.off:.1g})" if proved.off else ""
    return f"{count} points conflict: some weights on them make their sum exactly zero{near}, no hyperplane separates them"
