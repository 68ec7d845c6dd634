"""Gram, online, raw selections and passes over n-vectors: their definitions, on drawn partitions."""

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfeas.data.storage.scratch import Scratch
from dfeas.errors import CorruptDataError
from dfeas.methods.mistakes import Amounts
from dfeas.passes.select import Select
from dfeas.passes.steps import Online
from dfeas.passes.survey import Gram
from dfeas.passes.vectors import Combine, Excess, Positive, Shift
from tests.passes.making import blocks_of, merged


def drawn(seed: int, n: int, dtype: Any = np.float64) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points of very different lengths, labels, and signed unit columns (4, n)."""
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, 4)) * 10.0 ** rng.uniform(-2, 2, (n, 1))).astype(dtype)
    labels = np.where(rng.random(n) < 0.5, -1, 1)
    wide = X.astype(np.float64) * labels[:, None]
    return X, labels, (wide / np.linalg.norm(wide, axis=1)[:, None]).T


partition = given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(1, 20), st.data())


@partition
def test_gram_is_a_times_its_transpose(seed: int, n: int, size: int, data: st.DataObject) -> None:
    X, labels, A = drawn(seed, n)
    order = data.draw(st.permutations(blocks_of(X, labels, size)))
    found = merged(Gram(), [Gram().scan(block) for block in order])
    assert np.allclose(found.square, A @ A.T, atol=1e-12)
    assert np.allclose(found.total, A.sum(axis=1), atol=1e-12)


@partition
def test_a_raw_selection_goes_by_the_points_as_stored(seed: int, n: int, size: int, data: st.DataObject) -> None:
    X, labels, A = drawn(seed, n, data.draw(st.sampled_from([np.float32, np.float64])))
    y = np.random.default_rng(seed).standard_normal(4)
    raw = (X.astype(np.float64) @ y) * labels
    threshold, cap = float(np.quantile(raw, 0.6)) + 1e-9, data.draw(st.integers(1, 70))
    select = Select(y, threshold, cap, cap, raw=True)
    found = merged(select, [select.scan(block) for block in data.draw(st.permutations(blocks_of(X, labels, size)))])
    wanted = np.flatnonzero(raw <= threshold)
    wanted = np.sort(wanted[np.argsort(raw[wanted], kind="stable")][:cap])
    assert found.columns.index.tolist() == wanted.tolist()
    assert np.allclose(found.score, raw[wanted], rtol=1e-10, atol=1e-12)
    # the bracket is that of unit columns
    assert found.low == pytest.approx((A.T @ y).min(), abs=1e-12)
    assert found.violated == (A.T @ y <= 0).sum()


def test_raw_lengths_have_the_intercept() -> None:
    X, labels, _ = drawn(3, 30)
    y = np.array([1.0, -1.0, 0.5, 0.25, 3.0])
    select = Select(y, 100.0, 99, 99, raw=True)
    found = merged(select, [select.scan(block) for block in blocks_of(X, labels, 7, intercept=True)])
    raw = (X @ y[:4] + y[4]) * labels
    assert np.allclose(found.score, raw[raw <= 100.0])


@partition
def test_online_is_a_loop_whatever_the_blocks(seed: int, n: int, size: int, data: st.DataObject) -> None:
    X, labels, _ = drawn(seed, n, data.draw(st.sampled_from([np.float32, np.float64])))
    intercept = data.draw(st.booleans())
    fold = pickle.loads(pickle.dumps(Online(np.zeros(4 + intercept))))
    carry = fold.start()
    for block in blocks_of(X, labels, size, intercept):
        before = pickle.dumps(carry)
        following = fold.step(carry, block)
        assert pickle.dumps(carry) == before
        carry = following
    wide = np.hstack([X.astype(np.float64), np.ones((n, 1))]) if intercept else X.astype(np.float64)
    columns = wide * (labels / np.linalg.norm(wide, axis=1))[:, None]
    y, corrected = np.zeros(4 + intercept), []
    for j, column in enumerate(columns):
        if column @ y <= 0:
            y += column
            corrected.append(j)
    answer = fold.finish(carry)
    assert answer.corrected.tolist() == corrected
    assert np.allclose(answer.y, y)
    again = Online(answer.y * 0 + np.linalg.lstsq(columns, np.ones(n), rcond=None)[0])
    carry = again.start()
    for block in blocks_of(X, labels, size, intercept):
        carry = again.step(carry, block)
    if (columns @ again.y > 1e-9).all():
        assert again.finish(carry).low == pytest.approx((columns @ again.y).min(), rel=1e-9)


@partition
def test_passes_over_vectors_are_a_projection_in_three_questions(seed: int, n: int, size: int, data: st.DataObject) -> None:
    X, labels, A = drawn(seed, n)
    rng = np.random.default_rng(seed)
    y, mu = rng.standard_normal(4), float(10.0 ** rng.uniform(-2, 1))
    q = rng.dirichlet(np.ones(n)) if data.draw(st.booleans()) else None
    blocks = blocks_of(X, labels, size)
    rows = [range(block.start, block.start + block.size) for block in blocks]
    shift = Shift(y, mu, 1 / n)
    scanned = [shift.scan(r, b, () if q is None else (q[r.start : r.stop],)) for r, b in zip(rows, blocks, strict=True)]
    v = np.concatenate([written[0] for _, written in scanned])
    expected = (np.full(n, 1 / n) if q is None else q) - A.T @ y / mu
    assert np.allclose(v, expected, rtol=1e-12, atol=1e-12)
    answer = merged(shift, [partial for partial, _ in scanned])
    assert (answer.greatest, answer.total) == pytest.approx((v.max(), v.sum()), rel=1e-9, abs=1e-9)
    assert answer.low == pytest.approx((A.T @ y).min(), abs=1e-12)

    tau = np.sort(rng.choice(v, min(n, 5), replace=False))
    excess = Excess(tau)
    above = merged(excess, [excess.scan(r, None, (v[r.start : r.stop],))[0] for r in rows])
    assert above.count.tolist() == [(v > t).sum() for t in tau]
    assert np.allclose(above.total, [v[v > t].sum() for t in tau], rtol=1e-9, atol=1e-9)

    level, share, old = float(tau[0]) - 0.5, data.draw(st.sampled_from([1.0, 0.3])), rng.dirichlet(np.ones(n))
    total = float(np.maximum(v - level, 0).sum())
    combine = Combine(4, level, total, share)
    pieces = [combine.scan(r, b, (v[r.start : r.stop], old[r.start : r.stop])) for r, b in zip(rows, blocks, strict=True)]
    p = np.maximum(v - level, 0) / total
    assert np.allclose(merged(combine, [partial for partial, _ in pieces]).Ap, A @ p, atol=1e-9)
    average = np.concatenate([written[0] for _, written in pieces])
    assert np.allclose(average, p if share == 1 else (1 - share) * old + share * p)

    found = merged(Positive(0.01), [Positive(0.01).scan(r, None, (average[r.start : r.stop],))[0] for r in rows])
    assert found.index().tolist() == np.flatnonzero(average > 0.01).tolist()
    assert (found.weight() == average[average > 0.01]).all()


def test_scratch_keeps_what_it_is_told_to(tmp_path: Any) -> None:
    scratch = Scratch(tmp_path / "scratch")
    scratch.remove()
    for first in (4, 0):
        scratch.write("a", first, np.arange(first, first + 4.0))
    scratch.write("b", 0, np.ones(3))
    assert scratch.read("a", range(2, 7)).tolist() == [2, 3, 4, 5, 6]
    with pytest.raises(CorruptDataError, match=r"entries 6 \.\. 9 are missing"):
        scratch.read("a", range(6, 10))
    scratch.keep(("a",))
    assert scratch.has("a")
    with pytest.raises(CorruptDataError, match="choose out on storage that they share"):
        scratch.read("b", range(3))
    scratch.remove()
    assert not (tmp_path / "scratch").exists()


@given(st.lists(st.sets(st.integers(0, 20), min_size=1), max_size=12))
def test_a_tally_is_a_sum(changes: list[set[int]]) -> None:
    tally, plain = Amounts.none(), np.zeros(21)
    for step, points in enumerate(changes):
        index = np.array(sorted(points))
        tally = tally.plus(index, np.full(len(index), step + 0.5))
        plain[index] += step + 0.5
    assert tally.index.tolist() == np.flatnonzero(plain).tolist()
    assert tally.amount.tolist() == plain[plain > 0].tolist()
    if len(tally.index):
        assert tally.times(2.0).sparse().weight.sum() == pytest.approx(1)
