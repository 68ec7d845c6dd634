"""Select, survey, recover, and riding together: definitions, on drawn partitions."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfeas.linalg.points import norms
from dfeas.passes.block import Block
from dfeas.passes.protocol import Together
from dfeas.passes.select import Select
from dfeas.passes.softmin import Softmin
from dfeas.passes.survey import Survey, checksum
from dfeas.passes.vectors import Recover, Shift
from tests.passes.making import answer, blocks_of


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(0, 12), st.integers(1, 9), st.data())
def test_select_keeps_the_lowest_scores_whatever_the_cut(seed: int, n: int, cap: int, size: int, data: st.DataObject) -> None:
    quota = data.draw(st.integers(1, 9))
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (n, 3)).astype(np.float64)  # many ties
    X[~X.any(axis=1)] = 1
    labels = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    y, threshold = rng.integers(-2, 3, 3).astype(float), 0.1
    blocks = blocks_of(X, labels, size)
    found = answer(Select(y, threshold, cap, quota), data.draw(st.permutations(blocks)))
    score = (X @ y) * (labels / np.sqrt((X * X).sum(axis=1)))
    wanted = sorted((s, j) for j, s in enumerate(score) if s <= threshold)
    assert found.violated == (score <= 0).sum()
    index = found.columns.index
    assert np.allclose(found.columns.unit(), X[index] * (labels / norms(X))[index, None])
    assert found.score.tolist() == [score[j] for j in index]
    if quota >= size:
        assert index.tolist() == sorted(j for _, j in wanted[:cap])
    else:  # of each block the lowest, of ties the first
        offered = [pair for a in range(0, n, size) for pair in [pair for pair in wanted if a <= pair[1] < a + size][:quota]]
        assert index.tolist() == sorted(j for _, j in sorted(offered)[:cap])
    assert (found.low, found.arg) == min((s, j) for j, s in enumerate(score))


@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(0, 12), st.booleans(), st.sampled_from(["f4", "f8", "i2"]))
def test_select_finds_in_a_run_of_blocks_what_it_finds_in_each(seed: int, size: int, cap: int, raw: bool, dtype: str) -> None:
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (40, 3)).astype(dtype)  # many ties
    X[~X.any(axis=1)] = 1
    if dtype == "f4":
        X[17] *= np.float32(1e-30)  # its block is worked on in float64
    blocks = blocks_of(X, np.where(rng.random(40) < 0.5, -1.0, 1.0), size)
    threshold = float(rng.choice([-np.inf, -1.0, 0.1, np.inf]))
    for y in (rng.integers(-2, 3, 3).astype(float), rng.standard_normal(3), np.zeros(3)):
        select = Select(y, threshold, cap, int(rng.integers(1, 9)), raw)
        run, each = select.finish(select.scan_run(blocks)), answer(select, blocks)
        assert pickle.dumps((run.violated, run.low, run.arg, run.score)) == pickle.dumps(
            (each.violated, each.low, each.arg, each.score)
        )
        assert [run.columns.index.tolist(), run.columns.unit().tolist()] == [
            each.columns.index.tolist(),
            each.columns.unit().tolist(),
        ]


@given(st.integers(0, 2**32 - 1), st.sampled_from([63, 64, 100]), st.sampled_from(["f4", "f8"]), st.booleans(), st.booleans())
def test_no_bit_depends_on_where_points_lie(seed: int, m: int, dtype: str, raw: bool, intercept: bool) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, m)).astype(dtype)
    X[::7] = X[0] * np.asarray(rng.uniform(0.5, 2, (43, 1)), dtype)  # scores that differ by rounding only
    apart = np.empty(X.nbytes + 4, np.uint8)[4:].view(dtype).reshape(X.shape)  # not where malloc begins
    apart[:] = X
    blocks = [Block.of(0, points, np.ones(300), norms(X), intercept) for points in (X, apart)]
    y = rng.standard_normal(m + intercept)
    for question in (Select(y, 0.5, 40, 20, raw), Select(y, np.inf, 40, 7, raw), Softmin(y[:, None], np.zeros(1))):
        answers = [question.finish(question.scan(block)) for block in blocks]
        assert pickle.dumps(answers[0]) == pickle.dumps(answers[1])
    question = Shift(y, 0.1, 1 / 300)
    written = [question.scan(range(300), block, ())[1][0] for block in blocks]
    assert written[0].tobytes() == written[1].tobytes()


@given(st.integers(1, 30), st.integers(1, 7), st.data())
def test_survey_counts_what_is_wrong_and_names_the_first(n: int, size: int, data: st.DataObject) -> None:
    X = np.ones((n, 3))
    bad = data.draw(st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, 2)), max_size=8))
    zero = data.draw(st.sets(st.integers(0, n - 1), max_size=7)) - {p for p, _ in bad}
    for p, f in bad:
        X[p, f] = data.draw(st.sampled_from([np.nan, np.inf, -np.inf]))
    X[sorted(zero)] = 0
    blocks = blocks_of(X, np.ones(n), size)
    found = answer(Survey(), data.draw(st.permutations(blocks)))
    assert (found.points, found.nonfinite, found.zero) == (n, len(bad), len(zero))
    assert [e[:2] for e in found.first_nonfinite] == sorted(bad)[:5]
    assert found.first_zero == tuple(sorted(zero)[:5])
    labels = [checksum(block.label) for block in blocks]
    assert found.checksums.tolist() == [[checksum(X[a : a + size]), labels[a // size]] for a in range(0, n, size)]


def test_survey_tells_a_zero_point_from_one_whose_squares_underflow() -> None:
    X = np.array([[0.0, 0.0], [1e-200, 0.0], [1e200, 0.0], [1.0, 1.0]])
    found = Survey().scan(blocks_of(X, np.ones(4), 4)[0])
    assert (found.first_zero, found.first_extreme) == ((0,), (1, 2))


def test_the_checksum_is_crc32c() -> None:
    assert checksum(np.frombuffer(b"123456789", np.int8)) == 0xE3069283


@given(st.integers(0, 1000), st.integers(1, 9))
def test_recover_gives_back_the_softmaxes_that_softmin_averaged(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    X, labels = rng.standard_normal((30, 4)), np.where(rng.random(30) < 0.5, -1.0, 1.0)
    blocks = blocks_of(X, labels, size)
    question = Softmin(rng.standard_normal((4, 3)), np.array([0.2, 1.0, 5.0]))
    asked = answer(question, blocks)
    share = np.array([0.5, 0.3, 0.2])
    found = answer(Recover(question.Y, question.mu, asked.lse, share, 0.0), blocks[::-1])
    assert found.index().tolist() == list(range(30))
    assert found.weight().sum() == pytest.approx(1, abs=1e-12)
    A = X.T * (labels / norms(X))
    assert np.allclose(A @ found.weight(), asked.mean @ share, atol=1e-12)


def test_recover_leaves_out_small_weights_only() -> None:
    X = np.array([[1.0], [-1.0]])
    block = blocks_of(X, np.ones(2), 2)[0]
    full = Recover(np.array([[5.0]]), np.ones(1), np.array([5.0]), np.ones(1), 0.0).scan(block)
    some = Recover(np.array([[5.0]]), np.ones(1), np.array([5.0]), np.ones(1), 1e-3).scan(block)
    assert full.index().tolist() == [0, 1]
    assert some.index().tolist() == [1]
    assert some.weight()[0] == full.weight()[1]


def test_passes_that_ride_together_answer_as_if_alone() -> None:
    rng = np.random.default_rng(1)
    X, labels = rng.standard_normal((50, 4)), np.ones(50)
    blocks = blocks_of(X, labels, 8)
    passes = (Softmin(rng.standard_normal((4, 2)), np.array([0.1, 0.0])), Select(rng.standard_normal(4), 0.0, 5, 5), Survey())
    for pass_, found in zip(passes, answer(Together(passes), blocks), strict=True):
        assert pickle.dumps(answer(pass_, blocks)) == pickle.dumps(found)


def test_select_sees_the_intercept() -> None:
    X, labels = np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([1.0, -1.0])
    select = Select(np.array([1.0, 0.0, -2.0]), 10.0, 5, 5)
    found = answer(select, blocks_of(X, labels, 2, intercept=True))
    assert np.allclose(found.columns.unit(), [[3 / 26**0.5, 4 / 26**0.5, 1 / 26**0.5], [0, 0, -1]])
    assert np.allclose(found.score, [1 / 26**0.5, 2.0])
