"""Softmin over eigenvalues: against plain eigenvalues, its laws, and the orthant as the linear path."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dfeas.cones.algebra import cone_norms, groups_of
from dfeas.cones.product import Placing, Product
from dfeas.cones.softmin import ConeWeights, SpectralAnswer, SpectralRecover, SpectralSoftmin
from dfeas.cones.working_set import SelectCones
from dfeas.linalg.points import norms
from dfeas.methods.mixture import Mixture
from dfeas.methods.protocol import Bracket, Evidence
from dfeas.passes.block import Block
from dfeas.passes.softmin import Softmin
from dfeas.run.recovery import recover
from tests.cones.making import CONE
from tests.cones.plain import all_columns, cones_of, norm, problem, scaled, spectrum, unit


def blocks_of(X: np.ndarray, cone: dict[str, Any], block_rows: int) -> list[Block]:
    """Blocks of a store with so many rows in each."""
    placing = Placing(Product.from_scs(cone), block_rows)
    points = np.zeros((placing.n, X.shape[1]), X.dtype)
    points[placing.source >= 0] = X
    found = []
    for first in range(0, placing.n, block_rows):
        some, label = points[first : first + block_rows], placing.label[first : first + block_rows]
        found.append(Block.of(first, some, label, cone_norms(some, label)))
    return found


def answer(question: Any, blocks: list[Block], order: np.ndarray | None = None) -> Any:
    """Of some blocks, merged in an order."""
    partials = [question.scan(block) for block in blocks]
    total = question.empty() if hasattr(question, "empty") else None
    for i in range(len(blocks)) if order is None else order:
        total = partials[i] if total is None else question.merge(total, partials[i])
    return question.finish(total)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("mu", [0.0, 0.02, 0.5])
def test_the_answer_is_that_of_plain_eigenvalues(mu: float, dtype: Any) -> None:
    rng = np.random.default_rng(1)
    X = problem(rng, CONE, 4, None).astype(dtype)
    A, Y = scaled(X, CONE), rng.standard_normal((4, 2))
    found: SpectralAnswer = answer(SpectralSoftmin(Y, np.array([mu, 0.0])), blocks_of(X, CONE, 20))
    close = {"atol": 2e-5 if dtype is np.float32 else 1e-12}
    for i, (y, temperature) in enumerate(zip(Y.T, (mu, 0.0), strict=True)):
        value, columns = all_columns(A, CONE, y)
        assert found.low[i] == pytest.approx(value.min(), abs=1e-13)
        if temperature == 0:
            np.testing.assert_allclose(found.mean[:, i], columns[value.argmin()], atol=1e-10)
            continue
        weights = np.exp((value.min() - value) / mu)
        assert found.lse[i] == pytest.approx(np.log(weights.sum()) - value.min() / mu, rel=1e-4)
        np.testing.assert_allclose(found.mean[:, i], weights @ columns / weights.sum(), rtol=0, **close)


@given(st.integers(0, 10**6), st.sampled_from([1e-3, 0.1, 3.0]), st.permutations(range(6)))
@settings(max_examples=25)
def test_laws(seed: int, mu: float, order: list[int]) -> None:
    rng = np.random.default_rng(seed)
    X = problem(rng, CONE, 5, rng.choice([0.5, 0.0]))
    y = rng.standard_normal((5, 1)) * rng.choice([0, 1e-3, 1.0])
    soft, hard = SpectralSoftmin(y, np.array([mu])), SpectralSoftmin(y, np.zeros(1))
    whole, cut = blocks_of(X, CONE, 200), blocks_of(X, CONE, 12)
    shuffled = np.array([i for i in order if i < len(cut)] + list(range(6, len(cut))))
    one, many = answer(soft, whole), answer(soft, cut, shuffled)
    np.testing.assert_array_equal(one.low, many.low)  # the same bits in any partition
    np.testing.assert_allclose(one.mean, many.mean, atol=1e-12)
    np.testing.assert_allclose(one.lse, many.lse, rtol=1e-12)
    rank = Product.from_scs(CONE).table.rank
    assert rank == sum(len(spectrum(kind, size, unit(kind, size) + 1e-3)[0]) for kind, size, _ in cones_of(CONE))
    value, low = -mu * one.lse[0], one.low[0]
    slack = 1e-12 * (1 + abs(low))
    assert low - mu * np.log(rank) - slack <= value <= low + slack
    assert value - slack <= float(y[:, 0] @ one.mean[:, 0]) <= value + mu * np.log(rank) + slack
    assert np.linalg.norm(one.mean) <= 1 + 1e-12
    step = 1e-6 * rng.standard_normal((5, 1))  # mean is the gradient of -mu lse
    up = answer(SpectralSoftmin(y + step, np.array([mu])), whole)
    down = answer(SpectralSoftmin(y - step, np.array([mu])), whole)
    assert mu * (down.lse[0] - up.lse[0]) / 2 == pytest.approx(float(step[:, 0] @ one.mean[:, 0]), abs=1e-9 + 1e-12 / mu)
    if y.any():
        first, second = answer(hard, whole), answer(hard, cut, shuffled)
        np.testing.assert_array_equal(first.extreme[0], second.extreme[0])
        assert float(y[:, 0] @ first.mean[:, 0]) == pytest.approx(low, abs=1e-12)


def test_an_orthant_is_the_linear_path() -> None:
    rng = np.random.default_rng(2)
    X, Y = rng.standard_normal((300, 6)), rng.standard_normal((6, 3))
    label = np.ones(300)
    points = [Block.of(i, X[i : i + 100], label[:100], norms(X[i : i + 100])) for i in range(0, 300, 100)]
    mu = np.array([0.3, 0.0, 1e-3])
    linear = answer(Softmin(Y, mu), points)
    conic = answer(SpectralSoftmin(Y, mu), blocks_of(X, {"l": 300}, 100))
    np.testing.assert_array_equal(linear.low, conic.low)
    np.testing.assert_array_equal(linear.mean[:, 1], conic.mean[:, 1])
    assert (linear.arg == conic.arg).all()
    np.testing.assert_allclose(linear.mean, conic.mean, atol=1e-14)
    np.testing.assert_allclose(linear.lse[mu > 0], conic.lse[mu > 0], rtol=1e-14)


def test_norms_bound_columns_and_are_attained() -> None:
    rng = np.random.default_rng(3)
    X = problem(rng, CONE, 4, None)
    (block,) = blocks_of(X, CONE, len(X))
    for kind, size, rows in cones_of(CONE):
        assert block.norm[rows] == pytest.approx(norm(kind, X[rows]), rel=1e-12)
        for y in rng.standard_normal((50, 4)):
            _, q = spectrum(kind, size, X[rows] @ y)
            assert (np.linalg.norm(q @ X[rows], axis=1) <= block.norm[rows][0] * (1 + 1e-12)).all()
    assert sum(len(group.starts) for group in groups_of(block.label)) == sum(1 for _ in cones_of(CONE))


def test_recovered_x_is_the_one_whose_image_the_pass_answered() -> None:
    rng = np.random.default_rng(4)
    X = problem(rng, CONE, 4, None)
    blocks, Y, mu = blocks_of(X, CONE, 20), rng.standard_normal((4, 2)), np.array([0.4, 1.0])
    asked = answer(SpectralSoftmin(Y, mu), blocks)
    share = np.array([0.3, 0.7])
    found = answer(SpectralRecover(Y, mu, asked.lse, share, 0.0), blocks)
    A = np.concatenate([block.points / block.norm[:, None] for block in blocks])
    assert found.total() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(A[found.index()].T @ found.weight(), asked.mean @ share, atol=1e-12)
    x = found.weight()[np.argsort(found.index())]
    for kind, size, rows in cones_of(CONE):
        assert spectrum(kind, size, x[rows])[0].min() > -1e-14


@pytest.mark.parametrize("block_rows", [10, 200])
def test_selected_cones_are_whole_and_the_lowest(block_rows: int) -> None:
    rng = np.random.default_rng(5)
    X = problem(rng, CONE, 4, None)
    y, A = rng.standard_normal(4), scaled(X, CONE)
    low = np.array([spectrum(kind, size, A[rows] @ y)[0].min() for kind, size, rows in cones_of(CONE)])
    sizes = np.array([rows.stop - rows.start for _, _, rows in cones_of(CONE)])
    bar = float(np.sort(low)[4:6].mean())  # no eigenvalue, whose last bit is one of LAPACK
    found = answer(SelectCones(y, bar, 1000, 1000), blocks_of(X, CONE, block_rows))
    assert found.violated == (low[low <= bar] <= 0).sum()
    np.testing.assert_allclose(found.least, low[low <= bar], atol=1e-12)
    np.testing.assert_allclose(found.cones.rows, A[np.repeat(low <= bar, sizes)], atol=1e-12)
    order = np.argsort(low)
    few = answer(SelectCones(y, np.inf, int(sizes[order[:3]].sum()), 1000), blocks_of(X, CONE, block_rows))
    np.testing.assert_allclose(np.sort(few.least), low[order[:3]], atol=1e-12)


def test_elements_of_cones_become_points_of_the_base() -> None:
    """The trace divides them, not the sum of their entries, which may have any sign."""
    element = ConeWeights(((np.array([2, 3, 7]), np.array([2.0, 1.0, -1.5])),), 2.0)
    one = np.ones(1)
    evidence = Evidence(Bracket(), lambda: Mixture(one[:, None], one, one, one, one[:, None]), 1)
    certificate, reads = recover(lambda question: element, evidence, "eps-infeasible", 0.0, "mark")
    assert certificate.weights.tolist() == [1.0, 0.5, -0.75]
    assert (certificate.support.tolist(), reads) == ([2, 3, 7], 1)
