"""Probabilities of soft margins: Platt's estimate from scores that folds leave out, wherever the points are."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression

import dfeas
from dfeas.answers.prediction.scores import probabilities, sigmoid
from dfeas.errors import UsageError
from dfeas.passes.slacks import SCORE_BINS, SCORE_RANGE, fold_of
from dfeas.run.soft_margin.calibration import fit_sigmoid

C, FOLDS = 0.1, 4


@pytest.fixture(scope="module")
def noisy() -> tuple[Any, Any]:
    """Points whose labels are drawn with known probabilities."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 4))
    return X, rng.random(3000) < sigmoid(2 * X @ [1, -1, 0.5, 0] + 0.5)


def platt(score: Any, y: Any, weight: Any) -> tuple[float, float]:
    """Slope and offset as scikit-learn finds them: each point counts for both classes, by its target."""
    positive, negative = weight[y].sum(), weight[~y].sum()
    target = np.where(y, (positive + 1) / (positive + 2), 1 / (negative + 2))
    both = np.concatenate([weight * target, weight * (1 - target)])
    labels = np.repeat([1, 0], len(y))
    fit = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(np.tile(score, 2)[:, None], labels, both)
    return float(fit.coef_[0, 0]), float(fit.intercept_[0])


@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_platts_estimate_from_the_scores_that_folds_leave_out(noisy: tuple[Any, Any], weighted: bool) -> None:
    X, y = noisy
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y)) if weighted else np.ones(len(y))
    options = {"weights": weight} if weighted else {}
    found = dfeas.soft_margin(X, y, C=[C, 10 * C], folds=FOLDS, probability=True, random_state=3, **options)
    plain = dfeas.soft_margin(X, y, C=[C, 10 * C], folds=FOLDS, random_state=3, **options)
    assert (found.reads, plain.calibration) == (plain.reads + 1, None)
    assert np.array_equal(found.y, plain.y)
    fold, score = fold_of(np.arange(len(y)), FOLDS, 3), np.empty(len(y))
    for place, fit in enumerate(found.fits):
        if fit.C == found.C and fit.fold is not None:
            out = fold == fit.fold
            score[out] = X[out] @ found.path[place, :-1] + found.path[place, -1]
    assert found.calibration is not None
    width = 2 * SCORE_RANGE / SCORE_BINS
    np.testing.assert_allclose(found.calibration, platt(score, y, weight), rtol=width, atol=width)
    p = found.predict_proba(X)
    a, b = found.calibration
    np.testing.assert_allclose(p[:, 1], 1 / (1 + np.exp(-(a * found.decision_function(X) + b))), rtol=1e-12)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert np.abs(p[:, 1] - sigmoid(2 * X @ [1, -1, 0.5, 0] + 0.5)).mean() < 0.05


@given(st.lists(st.tuples(st.floats(-50, 50), st.floats(0.1, 10), st.booleans()), min_size=2, max_size=30))
def test_a_sigmoid_is_where_its_gradient_is_zero(drawn: list[tuple[float, float, bool]]) -> None:
    score, weight, label = (np.array(each) for each in zip(*drawn, strict=True))
    target = np.where(label, 0.9, 0.1)
    a, b = fit_sigmoid(score, weight, target, 0.0)
    pull = weight * (sigmoid(a * score + b) - target)
    assert abs(pull.sum()) <= 1e-4 * weight.sum()
    assert abs(pull @ score) <= 1e-3 * weight @ np.maximum(1, np.abs(score))


def test_each_class_has_its_own_and_they_add_up(noisy: tuple[Any, Any], tmp_path: Path) -> None:
    X, _ = noisy
    y = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + 0.3 * X[:, 3], [-0.5, 0.7])]
    found = dfeas.soft_margin_classes(X, y, C=C, folds=3, probability=True, out=tmp_path / "run")
    p = found.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (np.array(found.classes)[p.argmax(axis=1)] == y).mean() > 0.8
    for place, (name, result) in enumerate(found.results.items()):
        alone = dfeas.soft_margin(X, np.where(y == name, 1, -1), C=C, folds=3, probability=True)
        np.testing.assert_allclose(result.calibration, alone.calibration, rtol=1e-6)
        assert result.calibration[0] > 0
        assert np.corrcoef(p[:, place], y == name)[0, 1] > 0.3
    assert np.array_equal(dfeas.load(tmp_path / "run").predict_proba(X), p)
    beyond = probabilities(np.full((1, 3), -1e6), [(1.0, 0.0)] * 3)
    np.testing.assert_allclose(beyond, 1 / 3)


def test_they_are_the_same_wherever_the_points_are(noisy: tuple[Any, Any], client: Any, tmp_path: Path) -> None:
    X, y = noisy
    here = dfeas.soft_margin(X, y, C=C, folds=FOLDS, probability=True, out=tmp_path / "run")
    there = dfeas.soft_margin(da.from_array(X, chunks=(700, 4)), y, C=C, folds=FOLDS, probability=True, client=client)
    assert there.calibration == here.calibration
    assert dfeas.load(tmp_path / "run").calibration == here.calibration
    np.testing.assert_allclose(
        dfeas.soft_margin(csr_array(X), y, C=C, folds=FOLDS, probability=True).calibration, here.calibration
    )
    lazy = here.predict_proba(da.from_array(X, chunks=(700, 4)))
    assert np.array_equal(lazy.compute(), here.predict_proba(X))


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda X, y: dfeas.soft_margin(X, y, probability=True), r"probability=True: .* folds=5"),
        (lambda X, y: dfeas.soft_margin(X, y, folds=2).predict_proba(X), r"soft_margin\(X, y, folds=5, probability=True\)"),
        (lambda X, y: dfeas.solve(X, X[:, 0] > 0).predict_proba(X), r"soft_margin\(X, y, folds=5, probability=True\)"),
    ],
)
def test_who_did_not_ask_is_told_how(noisy: tuple[Any, Any], ask: Callable[..., Any], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        ask(*noisy)
