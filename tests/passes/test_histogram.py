"""The histogram counts scores as its definition says, whatever the cut and the order of merging."""

from collections.abc import Callable
from functools import reduce

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dfeas.passes.block import Block
from dfeas.passes.survey import EDGES, LEAST, Histogram
from tests.passes.making import answer, blocks_of


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 6), st.booleans(), st.data())
def test_any_cut_and_any_order_of_merging_give_the_counts_of_numpy(
    seed: int, n: int, m: int, intercept: bool, data: st.DataObject
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m)) * 10.0 ** rng.integers(-5, 6, (n, 1))
    X = X.astype(data.draw(st.sampled_from([np.float32, np.float64])))
    labels = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    y = rng.standard_normal(m + intercept) * 10.0 ** rng.integers(-9, 10)
    cuts = sorted(data.draw(st.sets(st.integers(1, n), max_size=5)))
    question = Histogram(y)
    blocks = data.draw(st.permutations(blocks_of(X, labels, cuts, intercept)))
    found = answer(question, blocks)
    wide = np.hstack([X, np.ones((n, 1))]).astype(np.float64) if intercept else X.astype(np.float64)
    scores = labels * (wide @ y) / np.linalg.norm(wide, axis=1) / np.linalg.norm(y)
    # scores that two ways of rounding may put on either side of an edge are random, and as good as never drawn; |score| = 1
    # is drawn with one feature, and belongs to the last bin, or to the first
    plain = [np.histogram(np.clip(scores[labels == sign], -1, 1), EDGES)[0] for sign in (-1, 1)]
    assert np.array_equal(found.counts, plain)
    assert found.counts.sum() == n


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.data())
def test_scores_at_the_edges_are_counted_alike_in_any_cut(seed: int, n: int, data: st.DataObject) -> None:
    rng = np.random.default_rng(seed)
    edge = EDGES[rng.integers(0, len(EDGES), n)]
    rest = np.sqrt((1 - edge**2) / 4)
    X = np.stack([edge, rest, rest, rest, rest], axis=1)  # unit points whose score is an edge up to rounding, for the second y
    X[rng.random(n) < 0.2] = [0, 1, -1, 1, -1]  # and some with the score 0
    labels = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    question = Histogram(np.array([1.0, 0.3, -0.3, 0.3, -0.3]) if data.draw(st.booleans()) else np.eye(5)[0])
    whole = question.scan(blocks_of(X, labels, [], False)[0])
    cuts = sorted(data.draw(st.sets(st.integers(1, n), max_size=20)))
    parts = [question.scan(block) for block in blocks_of(X, labels, cuts, False)]
    assert np.array_equal(reduce(question.merge, parts), whole)
    assert whole.sum() == n


def test_what_is_zero_or_next_to_it_is_in_the_bin_around_zero(block: Callable[..., Block]) -> None:
    X = np.array([[LEAST / 2, 1.0], [0.0, -3.0], [0.0, 0.0], [2 * LEAST, 1.0], [1.0, 0.0]])
    counts = Histogram(np.array([5.0, 0.0])).scan(block(X, np.array([1, -1, 1, -1, -1])))
    zero = len(EDGES) // 2 - 1
    assert EDGES[zero] == -LEAST
    assert EDGES[zero + 1] == LEAST
    assert counts[:, zero].tolist() == [1, 2]
    assert counts[0, 0] == 1  # labelled -1 on the positive side, at distance 1
    assert counts[0, zero - 1 - 20 : zero].sum() == 1
    assert counts.sum() == 5
