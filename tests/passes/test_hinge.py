"""Hinge and squared hinge: the definitions, any partition and merge order, and the model that is nowhere above the loss."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dfeas.passes.hinge import Hinge, HingeAnswer, SquaredHinge
from dfeas.passes.slacks import SampleCosts, fold_of
from tests.passes.making import answer, blocks_of


def problem(seed: int, n: int, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, SampleCosts]:
    """Points, labels, two directions, and the costs of two problems, the second without a fold."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m)).astype(rng.choice([np.float32, np.float64]))
    X[rng.random(n) < 0.1] = 0
    y = rng.choice([-1, 1], n)
    weight = rng.integers(0, 3, n).astype(float)
    return X, y, rng.standard_normal((m, 2)), SampleCosts(np.array([0.5, 2.0]), np.array([-1, 1]), 0.7, 1.3, weight, 3, 5)


def costs(counted: SampleCosts, y: np.ndarray) -> np.ndarray:
    """(n, 2) by their definition."""
    base = np.where(y > 0, counted.positive, counted.negative) * counted.weight
    out = fold_of(np.arange(len(y)), counted.folds, counted.seed)[:, None] == counted.left_out
    return base[:, None] * counted.C * ~out


@settings(max_examples=25)
@given(st.integers(0, 99), st.lists(st.integers(0, 60), max_size=4), st.booleans(), st.sampled_from([0, 7, 60]))
def test_a_model_of_kept_points_is_nowhere_above_the_loss_and_equal_where_it_was_made(
    seed: int, cuts: list[int], back: bool, cap: int
) -> None:
    n, m = 60, 4
    X, y, Y, counted = problem(seed, n, m)
    blocks = blocks_of(X, y, cuts)[:: -1 if back else 1]
    found: HingeAnswer = answer(Hinge(Y, counted, 2, cap, cap), blocks)
    assert len(found.columns) <= cap
    c, b = costs(counted, y), X.astype(float) * y[:, None]
    rng = np.random.default_rng(seed)
    kept = found.columns.points * found.columns.scale[:, None]
    for i in range(2):
        W = np.column_stack([Y[:, i], *(Y[:, i] + size * rng.standard_normal(m) for size in (0.1, 1.0, 100.0))])
        loss = c[:, i] @ np.maximum(0, 1 - b @ W)
        model = found.total[i] - found.rest[i] @ W + c[found.columns.index, i] @ np.maximum(0, 1 - kept @ W)
        assert found.loss[i] == pytest.approx(loss[0], rel=1e-12, abs=1e-12)
        assert model[0] == pytest.approx(loss[0], rel=1e-12, abs=1e-10)
        assert (model <= loss + 1e-9 * (1 + loss)).all()
        score = b @ Y[:, i]
        assert found.support[i] == int(((score <= 1) & (c[:, i] > 0)).sum())
        weight = np.where(y > 0, counted.positive, counted.negative) * counted.weight
        tested = np.ones(n, bool) if i == 0 else fold_of(np.arange(n), 3, 5) == 1
        assert found.tested[i] == pytest.approx(weight[tested].sum())
        assert found.wrong[i] == pytest.approx(weight[tested & (score <= 0)].sum())


@settings(max_examples=15)
@given(st.integers(0, 99), st.lists(st.integers(0, 50), max_size=4), st.booleans())
def test_squared_hinge_is_its_definition(seed: int, cuts: list[int], back: bool) -> None:
    n, m = 50, 4
    X, y, Y, counted = problem(seed, n, m)
    blocks = blocks_of(X, y, cuts)[:: -1 if back else 1]
    along = np.random.default_rng(seed).standard_normal((m, 2))
    found = answer(SquaredHinge(Y, counted, 2, matrix=True), blocks)
    product = answer(SquaredHinge(Y, counted, 2, along=along), blocks)
    c, b = costs(counted, y), X.astype(float) * y[:, None]
    for i in range(2):
        short = np.maximum(0, 1 - b @ Y[:, i])
        active = b[short > 0] * np.sqrt(c[short > 0, i])[:, None]
        assert found.loss[i] == pytest.approx(c[:, i] @ short**2)
        for place, here in enumerate((y < 0, y > 0)):
            assert found.total[i, place] == pytest.approx(c[here, i] @ short[here])
            assert found.square[i, place] == pytest.approx(c[here, i] @ short[here] ** 2)
            np.testing.assert_allclose(found.pull[i, place], (c[here, i] * short[here]) @ b[here], atol=1e-9)
        np.testing.assert_allclose(found.curvature[i], active.T @ active, atol=1e-9)
        np.testing.assert_allclose(product.curvature[i], active.T @ active @ along[:, i], atol=1e-9)


def test_the_nearest_points_are_kept() -> None:
    X, y, Y, _ = problem(3, 200, 4)
    counted = SampleCosts(np.ones(1), np.array([-1]))
    found = answer(Hinge(Y[:, :1], counted, 1, 20, 20), blocks_of(X, y, []))
    length = np.linalg.norm(X.astype(float), axis=1)
    with np.errstate(divide="ignore"):
        distance = np.where(length > 0, np.abs(1 - y * (X.astype(float) @ Y[:, 0])) / length, np.inf)
    assert set(found.columns.index) == set(np.argsort(distance)[:20])


def test_folds_are_even_and_hardly_alike() -> None:
    fold = fold_of(np.arange(60_000), 5, 1)
    counts = np.bincount(fold, minlength=5)
    assert counts.min() > 11_600
    assert counts.max() < 12_400
    assert abs(float((fold[1:] == fold[:-1]).mean()) - 0.2) < 0.01
    assert (fold_of(np.arange(60_000), 5, 2) != fold).mean() == pytest.approx(0.8, abs=0.01)
