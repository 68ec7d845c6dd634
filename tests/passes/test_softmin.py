"""The laws of softmin, on drawn data, partitions and merge orders."""

import math
from collections.abc import Callable
from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from msgspec.structs import astuple

from dfeas.engine.scan import Tree
from dfeas.linalg.points import norms
from dfeas.passes import softmin
from dfeas.passes.block import Block
from dfeas.passes.softmin import Softmin, SoftminAnswer
from dfeas.passes.survey import Histogram

ENTRIES = st.floats(-8, 8, width=32).map(lambda v: round(v, 2))


@st.composite
def problems(draw: st.DrawFn, most: int = 24) -> tuple[np.ndarray, np.ndarray, bool, Softmin]:
    """Points without zero points, labels, intercept or not, and k questions."""
    n, m, k = draw(st.integers(1, most)), draw(st.integers(1, 5)), draw(st.integers(1, 4))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    X = draw(hnp.arrays(dtype, (n, m), elements=ENTRIES))
    X[~X.any(axis=1), 0] = 1
    labels = draw(hnp.arrays(np.float64, n, elements=st.sampled_from([-1.0, 1.0])))
    intercept = draw(st.booleans())
    Y = draw(hnp.arrays(np.float64, (m + intercept, k), elements=st.floats(-3, 3).map(lambda v: round(v, 3))))
    mu = draw(hnp.arrays(np.float64, k, elements=st.sampled_from([0.0, 0.01, 0.3, 1.0, 50.0])))
    return X, labels, intercept, Softmin(Y, mu)


def whole(X: np.ndarray, labels: np.ndarray, intercept: bool, start: int = 0) -> Block:
    return Block.of(start, np.ascontiguousarray(X), labels, norms(X), intercept)


def columns(X: np.ndarray, labels: np.ndarray, intercept: bool) -> np.ndarray:
    """A (m, n), computed plainly."""
    wide = np.hstack([X.astype(np.float64), np.ones((len(X), 1))]) if intercept else X.astype(np.float64)
    return (wide * labels[:, None] / np.linalg.norm(wide, axis=1)[:, None]).T


def tolerance(question: Softmin, dtype: type) -> np.ndarray:
    """Relative error of the weights for products in the precision that the scan may choose."""
    lengths = np.linalg.norm(question.Y, axis=0)
    base = 1e-6 if dtype == np.float32 else 1e-10
    return base + 40 * (2.0**-24 if dtype == np.float32 else 2.0**-53) * lengths / np.where(question.mu > 0, question.mu, 1)


@given(problems())
def test_it_answers_what_its_definition_says(problem: tuple[np.ndarray, np.ndarray, bool, Softmin]) -> None:
    X, labels, intercept, question = problem
    answer = question.finish(question.scan(whole(X, labels, intercept)))
    A = columns(X, labels, intercept)
    scores = A.T @ question.Y
    error = tolerance(question, X.dtype.type)
    for i, mu in enumerate(question.mu):
        assert answer.low[i] == pytest.approx(scores[:, i].min(), abs=1e-13)
        assert scores[answer.arg[i], i] == pytest.approx(scores[:, i].min(), abs=1e-13)
        if mu == 0:
            assert np.allclose(answer.mean[:, i], A[:, answer.arg[i]], atol=1e-12)
            continue
        exponents = -scores[:, i] / mu
        lse = exponents.max() + math.log(np.exp(exponents - exponents.max()).sum())
        assert answer.lse[i] == pytest.approx(lse, abs=error[i] * (1 + abs(lse)))
        assert np.allclose(answer.mean[:, i], A @ np.exp(exponents - lse), atol=4 * error[i])


@given(problems(), st.data())
def test_any_partition_and_merge_order_equals_one_block(
    problem: tuple[np.ndarray, np.ndarray, bool, Softmin], data: st.DataObject
) -> None:
    X, labels, intercept, question = problem
    one = question.finish(question.scan(whole(X, labels, intercept)))
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(X) - 1)), max_size=5)) | {0, len(X)})
    parts = [question.scan(whole(X[a:b], labels[a:b], intercept, a)) for a, b in pairwise(cuts) if a < b]
    parts.insert(data.draw(st.integers(0, len(parts))), question.empty())
    parts = data.draw(st.permutations(parts))
    while len(parts) > 1:
        i = data.draw(st.integers(0, len(parts) - 2))
        parts[i : i + 2] = [question.merge(parts[i], parts[i + 1])]
    many = question.finish(parts[0])
    assert many.low.tolist() == one.low.tolist()
    assert many.arg.tolist() == one.arg.tolist()
    soft, error = question.mu > 0, tolerance(question, X.dtype.type)
    assert (np.abs(many.lse[soft] - one.lse[soft]) <= error[soft] * (1 + np.abs(one.lse[soft]))).all()
    assert (np.abs(many.mean - one.mean) <= 4 * error).all()


@given(problems(), st.integers(1, 9))
def test_partials_that_are_used_up_give_the_same_bits_as_those_that_stay(
    problem: tuple[np.ndarray, np.ndarray, bool, Softmin], size: int
) -> None:
    X, labels, intercept, question = problem
    blocks = [whole(X[i : i + size], labels[i : i + size], intercept, i) for i in range(0, len(X), size)]

    def answer(alone: bool) -> SoftminAnswer:
        tree = Tree(question, alone=alone)
        for index, block in enumerate(blocks):  # memory of one that was used up is that of a later one
            tree.push(0, index, question.scan(block))
        return tree.finish()

    stay, gone = answer(False), answer(True)
    for one, other in zip(astuple(stay), astuple(gone), strict=True):
        assert one.tobytes() == other.tobytes()
    kept = [question.scan(block) for block in blocks]
    before = [partial.moment.copy() for partial in kept]
    for first, second in pairwise(kept):
        question.merge(first, second)
    assert all((a.moment == b).all() for a, b in zip(kept, before, strict=True))


def test_the_signs_of_zeros_do_not_depend_on_the_cut() -> None:
    """Neither of an entry of ``mean``, where a zero is of a point with label -1, nor of ``low``, reached as 0 and -0."""
    X, labels = np.array([[1, 0, 1], [1, 1, 1], [1, 0, 0]], np.float32), np.array([-1.0, 1.0, -1.0])
    question = Softmin(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), np.zeros(2))
    blocks = [whole(X[i : i + 1], labels[i : i + 1], False, i) for i in range(3)]
    one = question.finish(question.scan(whole(X, labels, False)))
    for many in (reduce(question.merge, map(question.scan, blocks)), question.scan_run(blocks)):
        assert [each.tobytes() for each in astuple(question.finish(many))] == [each.tobytes() for each in astuple(one)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8])
@pytest.mark.parametrize(
    ("size", "mu"), [(0.0, 1e-300), (1e-50, 1e-50), (1e-200, 1e-200), (1e40, 1e39), (1e40, 0.0), (1.0, 1e-60)]
)
def test_questions_of_any_size(dtype: type, size: float, mu: float) -> None:
    rng = np.random.default_rng(3)
    X, labels = rng.integers(-9, 10, (50, 4)).astype(dtype), np.where(np.arange(50) % 3, 1.0, -1.0)
    X[:, 0] = 1
    y = rng.standard_normal(4)
    question = Softmin((size * y)[:, None], np.array([mu]))
    answer, A = question.finish(question.scan(whole(X, labels, False))), columns(X, labels, False)
    scores = A.T @ y
    assert answer.low[0] == pytest.approx(size * scores.min(), rel=1e-12)
    exponents = -scores * (size / mu) if mu else np.where(scores > scores.min(), -np.inf, 0.0)
    weights = np.exp(exponents - exponents.max())
    assert np.allclose(answer.mean[:, 0], A @ weights / weights.sum(), atol=1e-5)


@given(problems(), st.integers(1, 9), st.integers(1, 60), st.booleans())
def test_a_run_of_blocks_gives_the_same_bits_as_each_alone(
    problem: tuple[np.ndarray, np.ndarray, bool, Softmin], size: int, numbers: int, mixed: bool
) -> None:
    X, labels, intercept, question = problem
    if mixed:
        X[-1] *= np.finfo(X.dtype).tiny  # its block is worked on in float64, and its point may be zero
    blocks = [whole(X[i : i + size], labels[i : i + size], intercept, i) for i in range(0, len(X), size)]
    tree = Tree(question, alone=True)
    for index, block in enumerate(blocks):
        tree.push(0, index, question.scan(block))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(softmin, "MOMENTS", numbers)  # of several at once, of some, or of one
        run = question.finish(question.scan_run(blocks))
    for one, other in zip(astuple(tree.finish()), astuple(run), strict=True):
        assert one.tobytes() == other.tobytes()


@given(problems())
def test_bounds_between_low_lse_and_mean(problem: tuple[np.ndarray, np.ndarray, bool, Softmin]) -> None:
    X, labels, intercept, question = problem
    answer = question.finish(question.scan(whole(X, labels, intercept)))
    for i, mu in enumerate(question.mu):
        slack = 1e-6 * (1 + np.linalg.norm(question.Y[:, i])) + mu * 1e-6
        assert np.linalg.norm(answer.mean[:, i]) <= 1 + 1e-6
        if mu > 0:
            smooth, spread = -mu * answer.lse[i], mu * math.log(len(X))
            assert answer.low[i] - spread - slack <= smooth <= answer.low[i] + slack
            inner = float(question.Y[:, i] @ answer.mean[:, i])
            assert smooth - slack <= inner <= smooth + spread + slack


@given(problems(), st.sampled_from([0.25, 3.0, 1024.0]))
def test_scaling_y_and_mu_scales_low_and_leaves_the_rest(
    problem: tuple[np.ndarray, np.ndarray, bool, Softmin], c: float
) -> None:
    X, labels, intercept, question = problem
    block = whole(X, labels, intercept)
    one = question.finish(question.scan(block))
    scaled = Softmin(c * question.Y, c * question.mu)
    two = scaled.finish(scaled.scan(block))
    soft, error = question.mu > 0, tolerance(question, X.dtype.type)
    assert np.allclose(two.low, c * one.low, rtol=1e-12, atol=1e-12 * c)
    assert (np.abs(two.lse[soft] - one.lse[soft]) <= error[soft] * (1 + np.abs(one.lse[soft]))).all()
    assert (np.abs(two.mean - one.mean)[:, soft] <= 4 * error[soft]).all()


@given(problems())
def test_k_questions_at_once_equal_k_single_ones(problem: tuple[np.ndarray, np.ndarray, bool, Softmin]) -> None:
    X, labels, intercept, question = problem
    block = whole(X, labels, intercept)
    together = question.finish(question.scan(block))
    error = tolerance(question, X.dtype.type)
    for i in range(len(question.mu)):
        single = Softmin(question.Y[:, [i]], question.mu[[i]])
        alone = single.finish(single.scan(block))
        assert alone.low[0] == together.low[i]
        assert alone.arg[0] == together.arg[i]
        assert np.allclose(alone.mean[:, 0], together.mean[:, i], atol=4 * error[i])


def test_the_mean_is_the_gradient_of_minus_mu_lse(block: Callable[..., Block]) -> None:
    rng = np.random.default_rng(5)
    X, labels = rng.standard_normal((40, 6)), np.where(rng.random(40) < 0.5, -1.0, 1.0)
    y, mu, step = rng.standard_normal(6), 0.3, 1e-5

    def smooth(z: np.ndarray) -> float:
        question = Softmin(z[:, None], np.array([mu]))
        return float(-mu * question.finish(question.scan(block(X, labels))).lse[0])

    question = Softmin(y[:, None], np.array([mu]))
    mean = question.finish(question.scan(block(X, labels))).mean[:, 0]
    for i in range(6):
        e = step * np.eye(6)[i]
        assert mean[i] == pytest.approx((smooth(y + e) - smooth(y - e)) / (2 * step), abs=1e-8)


def test_the_limits_of_mu(block: Callable[..., Block]) -> None:
    rng = np.random.default_rng(6)
    X, labels, y = rng.standard_normal((50, 4)), np.ones(50), rng.standard_normal((4, 1))
    A = columns(X, labels, False)
    small, large = (Softmin(y, np.array([mu])) for mu in (1e-6, 1e9))
    found = small.finish(small.scan(block(X, labels)))
    assert np.allclose(found.mean[:, 0], A[:, found.arg[0]], atol=1e-12)
    assert np.allclose(large.finish(large.scan(block(X, labels))).mean[:, 0], A.mean(axis=1), atol=1e-8)


@pytest.mark.parametrize(("m", "dtype"), [(3, np.float32), (64, np.float64), (300, np.float32)])
def test_low_and_arg_do_not_depend_on_the_cut_at_the_size_of_real_blocks(m: int, dtype: type) -> None:
    rng = np.random.default_rng(m)
    X = rng.standard_normal((6000, m)).astype(dtype)
    X[4000:5000] = X[1000:2000]  # exact ties
    labels, Y = np.ones(6000), rng.standard_normal((m, 3))
    question = Softmin(Y, np.array([0.0, 0.1, 1e-5]))
    one = question.finish(question.scan(whole(X, labels, False)))
    for size in (7, 1000, 2999):
        parts = [question.scan(whole(X[a : a + size], labels[a : a + size], False, a)) for a in range(0, 6000, size)]
        many = question.finish(reduce(question.merge, parts[::-1]))
        assert many.low.tolist() == one.low.tolist()
        assert many.arg.tolist() == one.arg.tolist()


def test_float32_products_are_left_where_they_would_lose_the_weights() -> None:
    rng = np.random.default_rng(8)
    X = rng.standard_normal((2000, 20)).astype(np.float32)
    labels, y = np.ones(2000), rng.standard_normal((20, 1))
    A = columns(X, labels, False)
    for mu in (1e-3, 1e-5, 1e-7):
        question = Softmin(y, np.array([mu]))
        exponents = -(A.T @ y)[:, 0] / mu
        weights = np.exp(exponents - exponents.max())
        answer = question.finish(question.scan(whole(X, labels, False)))
        assert np.abs(answer.mean[:, 0] - A @ weights / weights.sum()).max() < 4e-3


def test_huge_float32_entries_are_scored_in_float64() -> None:
    X = np.array([[3e37, 1e37], [1e-38, 2e-38]], np.float32)
    question = Softmin(np.array([[400.0], [400.0]]), np.array([1.0]))
    answer = question.finish(question.scan(whole(X, np.ones(2), False)))
    assert answer.low[0] == pytest.approx(400 * min(4 / math.sqrt(10), 3 / math.sqrt(5)), rel=1e-6)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: Softmin(np.zeros(3), np.zeros(1)), "Y"),
        (lambda: Softmin(np.zeros((3, 1)), np.zeros(2)), "Y"),
        (lambda: Softmin(np.full((3, 1), np.nan), np.ones(1)), "Y"),
        (lambda: Softmin(np.ones((3, 1)), -np.ones(1)), "Y"),
        (
            lambda: Softmin(np.ones((2, 1)), np.ones(1)).finish(Softmin(np.ones((2, 1)), np.ones(1)).empty()),
            "at least one point",
        ),
        *(
            (lambda y=y: Histogram(np.array(y)), "finite and not zero")
            for y in ([0.0] * 3, [1, np.nan], [np.inf], [[1.0] * 2] * 2)
        ),
    ],
)
def test_a_malformed_question_is_refused(ask: Callable[[], object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ask()
