"""Picked points by a bit each are those by their numbers."""

import numpy as np
import pytest

from dfeas.data.storage import scratch
from dfeas.data.storage.scratch import Picks


@pytest.mark.parametrize("share", [0.003, 0.3, 1.0])
@pytest.mark.parametrize("run", [8, 64, 1 << 16])
def test_they_are_the_numbers_of_a_mask(monkeypatch: pytest.MonkeyPatch, run: int, share: float) -> None:
    monkeypatch.setattr(scratch, "RUN", run)
    rng = np.random.default_rng(run)
    mask = rng.random(1003) < share
    mask[[0, 700]] = True
    found, numbers = Picks.of(mask), np.flatnonzero(mask)
    assert len(found) == len(numbers)
    assert [found[i] for i in range(len(numbers))] == numbers.tolist()
    for first, stop in ((0, len(numbers)), (0, 0), (1, 2), (len(numbers) // 2, len(numbers) + 5)):
        assert np.array_equal(found[first:stop], numbers[first:stop])
    places = rng.integers(0, len(numbers), 50)
    assert np.array_equal(found[places], numbers[places])
    assert np.array_equal(found[places[:0]], numbers[:0])


def test_they_take_little_more_than_a_bit_each() -> None:
    mask = np.ones(1 << 20, np.bool_)
    assert Picks.of(mask).nbytes < mask.nbytes / 7
