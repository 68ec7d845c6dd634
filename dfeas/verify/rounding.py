"""Units, least numbers and bounds of floating-point arithmetic, as the checker uses them."""

from __future__ import annotations

U, U32 = 2.0**-53, 2.0**-24
TINY, TINY32 = 2.0**-1074, 2.0**-149
UP = 1 + 2.0**-48
"""Enough to cover the handful of roundings in a bound itself."""
UP_SUMS = 1 + 2.0**-45
"""The same for bounds that are made of sums of bounds."""
UP_LOOSE = 1 + 2.0**-20
"""The same where a bound need not be sharp."""
ELEMENTARY = 4 * U
"""Relative error of exp and pow, which the libraries in use promise and no theorem does."""
NORMS = (1e-140, 1e140)
"""Norms of points for which squares neither underflow nor overflow to any effect."""


def gamma(terms: int) -> float:
    """Bound of the relative error of ``terms`` roundings."""
    return terms * U / (1 - terms * U)
