"""Bounds of rounding errors where rounding is as bad as theory allows, against rational arithmetic.

NumPy's sums run in an order that nobody promises: where they happen to lose nothing a bound must still leave room for the worst
order.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfeas.exact.arithmetic import longest, shortest

U = Fraction(1, 2**53)


def exactly(values: np.ndarray) -> list[Fraction]:
    return [Fraction(v) for v in values.tolist()]


@pytest.mark.parametrize("d", [1, 2, 5, 5000])
def test_lengths_leave_room_for_the_worst_order(d: int) -> None:
    """Of ones: nothing is lost but in the root, where d / 2 units could be."""
    low, high, room = Fraction(float(shortest(np.ones(d)))), Fraction(float(longest(np.ones(d)))), (d - 1) * U
    assert low**2 <= d * (1 - room)
    assert high**2 >= d * (1 + room)
    assert (high - low) ** 2 <= d * ((4 * d + 200) * U) ** 2


@given(st.integers(0, 10**6), st.integers(1, 6), st.sampled_from([0, 3, 300]))
def test_lengths_are_between_their_bounds(seed: int, d: int, spread: int) -> None:
    rng = np.random.default_rng(seed)
    v = rng.standard_normal(d) * 10.0 ** rng.integers(-spread, spread + 1, d) * (rng.random(d) < 0.9)
    square = sum(v**2 for v in exactly(v))
    assert Fraction(float(shortest(v))) ** 2 <= square <= Fraction(float(longest(v))) ** 2
