"""What is recorded of an average of softmaxes: few of them, whose sum is that of all."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dfeas.methods.mixture import Average, Softmax, most_softmaxes


@given(st.integers(1, 9), st.integers(1, 200), st.integers(0, 999))
@settings(max_examples=10)
def test_the_best_sum_and_the_last_one_stay_though_few_softmaxes_do(m: int, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((count, m))
    if seed % 3 == 0:
        means[: count // 2] = means[0]  # repeated columns
    weights, better = rng.random(count) + 1e-3, rng.random(count) < rng.choice([0.05, 0.5, 1.0])
    better[0] = True
    average = Average()
    for i in range(count):
        softmax = Softmax(rng.standard_normal(m), 1.0, 0.0, weights[i], means[i])
        average = average.plus(softmax, weights[: i + 1] @ means[: i + 1], bool(better[i]))
        assert len(average.softmaxes) < most_softmaxes(m)
        assert all(each.weight > 0 and each.mean.base is None for each in average.softmaxes)
        last = int(np.flatnonzero(better[: i + 1])[-1]) + 1
        for kept, made in ((average.best, last), (len(average.softmaxes), i + 1)):
            some = average.softmaxes[:kept]
            assert sum(each.weight for each in some) == pytest.approx(weights[:made].sum())
            assert np.allclose(sum(each.weight * each.mean for each in some), weights[:made] @ means[:made], atol=1e-9)
    mixture = average.mixture()
    assert len(mixture.share) <= m + 1
    assert mixture.share.sum() == pytest.approx(1, abs=1e-12)
    assert np.allclose(mixture.mean @ mixture.share, weights[:last] @ means[:last] / weights[:last].sum(), atol=1e-9)
