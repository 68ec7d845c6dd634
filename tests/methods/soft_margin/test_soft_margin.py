"""Soft margins: both ends at every read against LIBLINEAR, equivalences, same bits on both engines, edges, bad input."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import zarr
from click.testing import CliRunner
from sklearn.svm import SVC, LinearSVC

import dfeas
from dfeas.cli.main import commands
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.engine.local import LocalEngine
from dfeas.methods.protocol import Facts
from dfeas.methods.soft_margin.band import Band, SignedRows, Width, minimise_alike
from dfeas.methods.soft_margin.hinge import HingeMargin
from dfeas.methods.soft_margin.problem import SoftMargin, make_costs
from dfeas.methods.soft_margin.sgd import StochasticMargin
from dfeas.methods.soft_margin.squared_hinge import ClassBound, SquaredHingeMargin
from dfeas.passes.slacks import fold_of
from dfeas.run.checkpoint.folder import is_finished
from dfeas.run.soft_margin.fit import SoftMarginTarget
from tests.methods.making import objective, overlapping, worth

EIGHT = Width(np.ones(8), 1.0)


@pytest.fixture(scope="module")
def small() -> tuple[np.ndarray, np.ndarray, float]:
    """Points, labels, and the minimum for the hinge and C = 1 up to 1e-9: a band of all points says so of itself."""
    X, y = overlapping(2000, 8)
    found = Band(SignedRows(X * y[:, None]), np.ones(2000), np.zeros(8), EIGHT).minimise(np.zeros(8), None, 1e-9 * 600)
    assert found.value - found.lower <= 1e-9 * found.value
    peer = LinearSVC(loss="hinge", C=1, fit_intercept=False, tol=1e-5, max_iter=100_000).fit(X, y)
    assert found.value <= objective(peer.coef_[0], X, y) <= (1 + 1e-4) * found.value
    return X, y, found.value


def run(method: SoftMargin, X: np.ndarray, y: np.ndarray, passes: int, gap: float = 0.0, blocks: int = 0) -> list[Any]:
    """Evidence after each read."""
    if blocks:
        rows = -(-len(X) // blocks)
        array = zarr.create_array(store={}, shape=X.shape, chunks=(rows, X.shape[1]), dtype=X.dtype)
        array[:] = X
        X = array
    dataset = open_source(Source(DataSpec(X, y, intercept=False)))
    engine = LocalEngine(dataset, 2)
    state, found = method.init(Facts(dataset.m, dataset.n, blocks=dataset.blocks)), []
    while len(found) < passes and not (found and found[-1].best.gap.max() <= gap):
        state = method.tell(state, engine.run(method.ask(state)))
        found.append(method.evidence(state))
    engine.close()
    return found


@pytest.mark.parametrize("left_out", ["a fifth", "a class"])
def test_bands_that_are_almost_alike_and_hardly_so_have_both_ends(small: tuple[Any, ...], left_out: str) -> None:
    X, y, minimum = small
    rows, fifth = SignedRows(X * y[:, None]), np.arange(2000) % 5
    first = Band(rows, np.ones(2000), np.zeros(8), EIGHT).minimise(np.zeros(8), None, 1e-6 * minimum)
    costs = [np.where(fifth == f, 0.0, 1.0) if left_out == "a fifth" else np.where(y == 1, 0.1 * f, 1.0) for f in range(3)]
    bands = [Band(rows, cost, np.full(8, 0.5), EIGHT) for cost in costs]
    for band, found in zip(bands, minimise_alike(bands, first, np.full(3, 1e-5 * minimum)), strict=True):
        exact = band.minimise(np.zeros(8), None, 1e-9 * minimum)
        assert found.value == pytest.approx(band.value(found.w, rows.scores(found.w)))
        assert found.value - found.lower <= 1e-5 * minimum
        assert found.lower <= exact.value
        made = band.linear + rows.combine(found.multiplier)
        assert ((found.multiplier >= 0) & (found.multiplier <= band.cost)).all()
        assert found.lower == pytest.approx(found.multiplier.sum() - made @ made / 2)


@pytest.mark.parametrize("cap", [40, 200, 2000])
def test_both_ends_hold_at_every_read_however_few_points_are_kept(small: tuple[Any, ...], cap: int) -> None:
    X, y, minimum = small
    found = run(HingeMargin(make_costs([1.0]), np.ones(8), 1e-4, cap=cap), X, y, 40, 1e-4, blocks=5)
    assert found[-1].best.gap[0] <= 1e-4
    assert len(found) <= {40: 40, 200: 14, 2000: 3}[cap]
    for one in found:
        assert one.kept <= cap
        assert one.best.lower[0] <= minimum * (1 + 1e-9)
        assert one.best.objective[0] >= minimum * (1 - 1e-9)


def test_the_stochastic_steps_have_both_ends_too(small: tuple[Any, ...]) -> None:
    X, y, minimum = small
    found = run(StochasticMargin(make_costs([1.0]), np.ones(8)), X, y, 30)
    for one in found:
        assert one.best.lower[0] <= minimum * (1 + 1e-9)
        assert one.best.objective[0] >= minimum * (1 - 1e-9)
    assert found[-1].best.objective[0] < 1.05 * minimum


@pytest.mark.parametrize(("intercept", "sparse", "alpha"), [(False, False, 0.05), (True, False, 0.3), (True, True, 0.02)])
def test_steps_of_one_length_are_those_of_the_notes_and_have_their_bounds(intercept: bool, sparse: bool, alpha: float) -> None:
    """The loop as it is printed, with n C for its C, and weights of the classes."""
    X, y = overlapping(400, 5, 3)
    C, n, Z = 0.7, 400, np.hstack([X, np.ones((400, 1))]) if intercept else X
    share = np.where(y > 0, 1.0, 0.5)
    given = scipy.sparse.csr_array(X) if sparse else zarr.create_array(store={}, data=X, chunks=(150, 5))
    dataset = open_source(Source(DataSpec(given, y, intercept=intercept)))
    engine, made = LocalEngine(dataset, 2), StochasticMargin(make_costs([C], classes=(0.5, 1.0)), np.ones(Z.shape[1]))
    method = made.with_options(f"sgd:alpha={alpha}")
    state = method.init(Facts(dataset.dimension, n, blocks=dataset.blocks))
    best = dfeas.soft_margin(
        X, y, C=C, class_weight=(0.5, 1), tol=1e-9, **({"intercept_scaling": 1} if intercept else {"intercept": False})
    )
    u, minimum, w, multiplier = best.y, best.objective, np.zeros(Z.shape[1]), np.zeros(n)
    regret, squares = 0.0, 0.0
    for _ in range(12):
        state, mean = method.tell(state, engine.run(method.ask(state))), np.zeros_like(w)
        for t in range(n):
            score, pull = y[t] * (w @ Z[t]), share[t] * y[t] * Z[t]
            slope = w / (n * C) - (pull if score < 1 else 0)
            regret += (w @ w - u @ u) / (2 * n * C) + share[t] * (max(0, 1 - score) - max(0, 1 - y[t] * (u @ Z[t])))
            squares += slope @ slope
            w = w + alpha * pull - alpha / (n * C) * w if score < 1 else w - alpha / (n * C) * w
            multiplier *= 1 - alpha / (n * C)
            multiplier[t] += alpha * share[t] * (score < 1)
            mean += w / n
        np.testing.assert_allclose(alpha * state.carry.pull, w, rtol=0, atol=1e-12 * np.linalg.norm(w))
        np.testing.assert_allclose(state.carry.mean / n, mean, rtol=0, atol=1e-12 * np.linalg.norm(w))
        assert regret <= u @ u / (2 * alpha) + alpha / 2 * squares  # Zinkevich's
        before, state = state.best.lower[0], method.tell(state, engine.run(method.ask(state)))
        lower, values = state.best.lower[0], [objective(v, Z, y, C * share) for v in (w, mean)]
        assert state.best.objective[0] <= min(values) * (1 + 1e-12)
        assert lower <= minimum <= state.best.objective[0] * (1 + 1e-9)
        if lower > before:  # it is worth what some share of the multipliers is, all of them in the box
            in_box = multiplier * float((C * share / np.maximum(multiplier, 1e-300)).min())
            total = in_box @ (Z * y[:, None])
            part = min(1.0, in_box.sum() / (total @ total))
            assert lower <= worth(in_box * part, C * share, Z * y[:, None], False) * (1 + 1e-9)
    engine.close()
    assert lower > 0.5 * minimum


def test_steps_of_one_length_are_asked_for_by_name_and_go_on_bit_for_bit(tmp_path: Path) -> None:
    X, y = overlapping(500, 4)
    asked: dict[str, Any] = {"intercept": False, "method": "sgd:alpha=0.01"}
    whole = dfeas.soft_margin(X, y, max_passes=12, **asked)
    dfeas.soft_margin(X, y, max_passes=5, out=tmp_path / "run", **asked)
    again = dfeas.resume(tmp_path / "run", X, y, max_passes=12)
    assert again.method == whole.method == "sgd:alpha=0.01"
    assert (again.objective, again.lower) == (whole.objective, whole.lower)
    assert whole.objective < dfeas.soft_margin(X, y, max_passes=12, **asked | {"method": "sgd"}).objective


@pytest.mark.parametrize("direct", [4000, 3])
def test_the_squared_hinge_agrees_with_liblinear(direct: int) -> None:
    X, y = overlapping(1500, 12)
    found = run(SquaredHingeMargin(make_costs([0.5]), np.ones(12), 1e-13, direct=direct), X, y, 60, 1e-13, blocks=3)
    best = found[-1].best
    peer = LinearSVC(C=0.5, dual=False, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(X, y)
    assert best.objective[0] == pytest.approx(objective(peer.coef_[0], X, y, 0.5, 2), rel=1e-10)
    np.testing.assert_allclose(best.Y[:, 0], peer.coef_[0], rtol=1e-6, atol=1e-8)
    for one in found:
        assert one.best.lower[0] <= best.objective[0] * (1 + 1e-12)


@pytest.mark.parametrize(("square", "seed"), [(0.0, 0), (0.0, 1), (0.01, 2), (1.0, 3)])
def test_factors_of_the_classes_make_the_largest_bound_of_such_dual_variables(square: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    b = np.where(rng.random(60) < 0.4, -1, 1)[:, None] * np.column_stack([rng.standard_normal((60, 3)) + 2, np.ones(60)])
    cost, short, squares = rng.random(60), np.maximum(0, 1 - b @ (rng.standard_normal(4) / 9)), np.array([1, 1, 1, square])
    classes = [b[:, -1] < 0, b[:, -1] > 0]
    sums = [[cost[some] @ short[some] ** power for some in classes] for power in (1, 2)]
    pull = np.array([(cost[some] * short[some]) @ b[some] for some in classes])
    found = ClassBound.largest(squares, *map(np.array, sums), pull)

    def value(factors: np.ndarray) -> float:
        alpha = 2 * cost * short * np.where(classes[0], *factors)
        total = alpha @ b
        assert square > 0 or abs(total[-1]) <= 1e-12 * alpha.sum()
        kept = squares > 0
        return float(alpha.sum() - (alpha**2 / (4 * cost)).sum() - (total[kept] ** 2 / squares[kept]).sum() / 2)

    best = np.array(found.factors)
    assert found.value == pytest.approx(value(best))
    for factor in (0.9, 1.1):
        assert value(factor * best) < found.value
    for change in rng.standard_normal((20, 2)) if square else ():
        assert value(np.maximum(0, best + change)) <= found.value + 1e-12


@pytest.mark.parametrize(("offset", "C"), [(1e6, 1e4), (1e7, 100.0)])
def test_moving_all_points_changes_nothing_else(offset: float, C: float) -> None:
    X, y = overlapping(300, 4)
    X = np.round(X, 2)
    plain = dfeas.soft_margin(X, y, C=C, loss="squared_hinge", tol=1e-9)
    moved = dfeas.soft_margin(X + offset, y, C=C, loss="squared_hinge")
    assert plain.stopped == moved.stopped == "verdict"
    assert moved.lower <= plain.objective * (1 + 1e-6)
    assert moved.objective == pytest.approx(plain.objective, rel=1e-6)
    np.testing.assert_allclose(moved.coef, plain.coef, rtol=1e-3)


@pytest.mark.parametrize("scaling", [0.5, 30.0])
def test_a_bias_with_a_price_is_that_of_liblinear(scaling: float) -> None:
    X, y = overlapping(500, 5)
    X = X + 0.5
    found = dfeas.soft_margin(X, y, loss="squared_hinge", intercept_scaling=scaling, tol=1e-12)
    peer = LinearSVC(C=1, dual=False, intercept_scaling=scaling, tol=1e-12, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(found.y, np.append(peer.coef_[0], peer.intercept_), rtol=1e-6)
    price = found.bias**2 / (2 * scaling**2)
    assert found.objective == pytest.approx(price + objective(found.coef, X, y, 1.0, 2, found.bias), rel=1e-12)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("seed", range(4))
def test_a_free_bias_is_that_of_libsvm_however_far_the_points_are_from_the_origin(loss: str, seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    X, y = overlapping(int(rng.integers(20, 300)), int(rng.integers(1, 9)), seed)
    X = X * 10.0 ** rng.integers(-1, 2) + rng.choice([0, 3, 300]) * rng.standard_normal(X.shape[1])
    C, power = 10.0 ** rng.integers(-2, 3), 1 + (loss != "hinge")
    found = dfeas.soft_margin(X, y, C=C, loss=loss, tol=1e-6, dual=tmp_path / "alpha.npy")
    alpha = np.load(tmp_path / "alpha.npy")
    assert found.success
    assert found.objective == pytest.approx(objective(found.coef, X, y, C, power, found.bias), rel=1e-9)
    assert abs(alpha @ y) <= 1e-10 * alpha.sum()
    assert worth(alpha, np.full(len(y), C), X * y[:, None], loss != "hinge") == pytest.approx(found.lower, rel=1e-6)
    if loss == "hinge":
        peer = SVC(C=C, kernel="linear", tol=1e-7, max_iter=2_000_000).fit(X, y)
        least = objective(peer.coef_[0], X, y, C, 1, peer.intercept_[0])
        assert found.lower <= least * (1 + 1e-9)
        assert found.objective <= least * (1 + 1e-5)


@pytest.mark.parametrize(
    ("loss", "intercept", "scale"),
    [
        ("hinge", "free", None),
        ("squared_hinge", "priced", None),
        ("hinge", "none", "std"),
    ],
)
def test_points_that_are_centred_and_scaled_are_those_of_the_array(
    loss: str, intercept: str, scale: str | None, tmp_path: Path
) -> None:
    X, y = overlapping(400, 4)
    X = X * [0.1, 1, 5, 1] + [30, 1000, -20, 0]
    Z = (X - X.mean(axis=0)) / (1 if scale is None else X.std(axis=0))
    more: dict[str, Any] = {"loss": loss, "C": [0.1, 1.0], "folds": 2, "tol": 1e-8, "class_weight": (2.0, 0.5)}
    more |= {"priced": {"intercept_scaling": 2.0}, "none": {"intercept": False}, "free": {}}[intercept]
    dfeas.ingest(X, tmp_path / "data", y=y, block_rows=64)
    there = {"transform": ["center", *filter(None, [scale])], "dual": tmp_path / "alpha.npy", "out": tmp_path / "run"}
    found, expected = dfeas.soft_margin(tmp_path / "data", **more, **there), dfeas.soft_margin(Z, y, **more)
    assert found.C == expected.C
    ends = [[(fit.objective, fit.error) for fit in each.fits] for each in (found, expected)]
    np.testing.assert_allclose(*ends, rtol=1e-6)
    np.testing.assert_allclose(found.path, expected.path, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(X @ found.coef + found.bias, Z @ found.y[:4] + found.y[4:].sum(), atol=1e-9)
    np.testing.assert_allclose(found.decision_function(X), X @ found.coef + found.bias, atol=1e-9)
    cost = found.C * np.where(y > 0, 0.5, 2.0)
    signed = np.hstack([Z, np.full((400, 1), 2.0)]) if intercept == "priced" else Z
    alpha = np.load(tmp_path / "alpha.npy")
    assert worth(alpha, cost, signed * y[:, None], loss != "hinge") == pytest.approx(found.lower, rel=1e-6)
    if (intercept, scale) == ("free", None):  # as if it had not been centred
        stored = dfeas.soft_margin(X, y, **{**more, "C": found.C, "folds": 0})
        np.testing.assert_allclose([found.objective, found.lower], stored.objective, rtol=1e-7)
        assert objective(found.coef, X, y, cost, 1 + (loss != "hinge"), found.bias) == pytest.approx(stored.objective, rel=1e-7)
    again = dfeas.load(tmp_path / "run")
    assert (again.coef.tolist(), again.bias) == (found.coef.tolist(), found.bias)
    assert dfeas.predict(tmp_path / "run", tmp_path / "data").predicted.tolist() == ((found.predict(X) == 1) + 0).tolist()


def test_sparse_points_are_scaled_but_not_centred() -> None:
    X, y = overlapping(200, 4)
    X[np.random.default_rng(0).random(X.shape) < 0.6] = 0
    ends = [dfeas.soft_margin(Z, y, transform="std", tol=1e-9).objective for Z in (X, scipy.sparse.csr_array(X))]
    assert ends[0] == pytest.approx(ends[1], rel=1e-8)
    with pytest.raises(dfeas.UsageError, match="would fill up"):
        dfeas.soft_margin(scipy.sparse.csr_array(X), y, transform="center")


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_all_folds_and_values_share_the_reads_and_are_what_they_are_alone(loss: str) -> None:
    X, y = overlapping(600, 5)
    found = dfeas.soft_margin(X, y, intercept=False, C=[0.1, 1.0], folds=3, loss=loss, tol=1e-9)
    alone = dfeas.soft_margin(X, y, intercept=False, C=1.0, loss=loss, tol=1e-9)
    assert found.success
    assert found.reads <= alone.reads + 3
    assert [(fit.C, fit.fold) for fit in found.fits] == [(C, f) for C in (0.1, 1.0) for f in (None, 0, 1, 2)]
    fold = fold_of(np.arange(600), 3, 0)
    for i, fit in enumerate(found.fits):
        counts = np.ones(600) if fit.fold is None else (fold != fit.fold).astype(float)
        same = dfeas.soft_margin(X, y, intercept=False, C=fit.C, weights=counts, loss=loss, tol=1e-9)
        assert same.objective == pytest.approx(fit.objective, rel=1e-8)
        out = np.ones(600, bool) if fit.fold is None else fold == fit.fold
        assert fit.error == pytest.approx(float((y * (X @ found.path[i]) <= 0)[out].mean()))
    errors = [np.mean([fit.error for fit in found.fits if fit.C == C and fit.fold is not None]) for C in (0.1, 1.0)]
    assert [entry.error for entry in found.validation] == pytest.approx(errors)
    assert (0.1 if errors[0] <= errors[1] else 1.0) == found.C


def test_weights_are_copies_of_points_and_classes_are_weights() -> None:
    X, y = overlapping(300, 4)
    weights = np.random.default_rng(1).integers(0, 4, 300)
    copies = np.repeat(np.arange(300), weights)
    one = dfeas.soft_margin(X, y, weights=weights, tol=1e-8)
    other = dfeas.soft_margin(X[copies], y[copies], tol=1e-8)
    assert one.objective == pytest.approx(other.objective, rel=1e-7)
    classes = dfeas.soft_margin(X, y, class_weight=(3.0, 0.5), tol=1e-8)
    points = dfeas.soft_margin(X, y, weights=np.where(y > 0, 0.5, 3.0), tol=1e-8)
    assert classes.objective == pytest.approx(points.objective, rel=1e-7)
    positive = (y > 0).sum()
    both = (300 / (2 * (300 - positive)), 300 / (2 * positive))
    assert dfeas.soft_margin(X, y, class_weight="balanced").objective == dfeas.soft_margin(X, y, class_weight=both).objective


@pytest.mark.parametrize("classes", ["abc"])
def test_balanced_weights_are_of_the_class_that_is_asked_about(classes: str, tmp_path: Path) -> None:
    X, _ = overlapping(300, 4)
    labels = np.array(list(classes))[np.arange(300) % 7 % len(classes)]
    dfeas.ingest(X, tmp_path / "data", y=labels)
    for name in classes:
        positive = (labels == name).sum()
        both = (300 / (2 * (300 - positive)), 300 / (2 * positive))
        expected = dfeas.soft_margin(X, np.where(labels == name, 1, -1), class_weight=both).objective
        for data, given in ((X, labels), (tmp_path / "data", None)):
            found = dfeas.soft_margin(data, given, positive=name, class_weight="balanced")
            assert found.objective == pytest.approx(expected, rel=1e-3)


def edges() -> dict[str, tuple[np.ndarray, Any]]:
    rng = np.random.default_rng(0)
    X, y = overlapping(60, 4)
    zero = X * np.array([1, 0, 1, 1])
    zero[5] = 0
    return {
        "one class": (X, "all-positive"),
        "copies": (np.repeat(X[:6], 10, axis=0), np.repeat([1, -1, 1, 1, -1, -1], 10)),
        "opposite": (np.vstack([X, X]), np.r_[y, -y]),
        "zeros": (zero, y),
        "all zero": (np.zeros((6, 2)), np.array([1, -1] * 3)),
        "wide": (rng.standard_normal((8, 30)), np.array([1, -1] * 4)),
        "large": (X * 1e8, y),
        "two": (X[:2], np.array([1, -1])),
    }


@pytest.mark.parametrize("name", edges())
def test_edges_end_with_a_gap(name: str) -> None:
    X, y = edges()[name]
    for C, loss in ((1e-6, "squared_hinge"), (1e5, "hinge"), (1e5, "squared_hinge")):
        found = dfeas.soft_margin(X, y, intercept=False, C=C, loss=loss, tol=1e-5)
        assert found.success, found.message
        labels = np.ones(len(X)) if name == "one class" else y
        value = objective(found.y, X, labels, C, 1 if loss == "hinge" else 2)
        assert found.objective == pytest.approx(value, rel=1e-9, abs=1e-30)
        assert found.lower <= found.objective <= found.lower + 1e-5 * found.objective


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"C": 0}, "C 0"),
        ({"C": []}, "C []"),
        ({"tol": 2}, "tol=2"),
        ({"folds": 1}, "folds=1"),
        ({"folds": 51}, "folds 51"),
        ({"loss": "log"}, "loss log"),
        ({"method": "sgd", "folds": 3}, "sgd"),
        ({"method": "sgd"}, "intercept_scaling=1"),
        *(({"method": name}, "expected sgd, or sgd:alpha=A, A above 0 and below") for name in ("sgd:alpha=0", "sgd:step=1")),
        ({"method": "auto:alpha=1"}, "expected auto or sgd"),
        ({"method": "sgd:alpha=50", "intercept": False}, "below n C = 50"),
        ({"intercept_scaling": 0.0}, "intercept_scaling"),
        ({"intercept_scaling": 2.0, "intercept": False}, "for points with an intercept"),
        ({"class_weight": (1, -1)}, "class weights"),
        ({"weights": np.ones(3)}, "expected 50 numbers"),
        ({"weights": np.r_[np.ones(49), -1]}, "point 49"),
        ({"weights": "missing.npy"}, "missing.npy"),
        ({"transform": ["center", "lengths"]}, "leave out lengths"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], said: str) -> None:
    with pytest.raises((dfeas.UsageError, dfeas.BadInputError), match=said.replace("[", r"\[")):
        dfeas.soft_margin(*overlapping(50, 3), **options)


@pytest.mark.parametrize(("loss", "intercept"), [("hinge", True), ("squared_hinge", False)])
def test_sparse_points_are_what_dense_ones_are(loss: str, intercept: bool) -> None:
    X, y = overlapping(700, 6)
    X[np.random.default_rng(0).random(X.shape) < 0.6] = 0
    more = {"loss": loss, "intercept": intercept, "C": [0.1, 1.0], "folds": 2, "tol": 1e-8}
    dense, sparse = dfeas.soft_margin(X, y, **more), dfeas.soft_margin(scipy.sparse.csr_array(X), y, **more)
    assert [fit.support for fit in sparse.fits] == [fit.support for fit in dense.fits]
    np.testing.assert_allclose([fit.objective for fit in sparse.fits], [fit.objective for fit in dense.fits], rtol=1e-7)
    if loss == "hinge":
        stochastic = {"method": "sgd", "max_passes": 4, "intercept_scaling": 1.0}
        steps = [dfeas.soft_margin(Z, y, **stochastic).objective for Z in (X, scipy.sparse.csr_array(X))]
        assert steps[0] == pytest.approx(steps[1], rel=1e-9)


def test_sparse_points_of_more_features_than_points() -> None:
    X = scipy.sparse.random(600, 1500, 0.01, "csr", random_state=0)
    y = np.where(X @ np.random.default_rng(0).standard_normal(1500) > 0, 1, -1)
    found = dfeas.soft_margin(X, y, intercept=False, C=[0.1, 1.0], tol=1e-4)
    peer = LinearSVC(loss="hinge", C=1, fit_intercept=False, tol=1e-7, max_iter=100_000).fit(X, y)
    assert found.success
    assert found.lower <= objective(peer.coef_[0], X.toarray(), y)
    assert found.objective <= (1 + 1e-4) * objective(peer.coef_[0], X.toarray(), y)


def test_a_budget_that_is_too_small_is_refused_with_what_is_needed() -> None:
    X = scipy.sparse.csr_array(([1.0, -1.0], ([0, 1], [7, 999_999])), shape=(2, 1_000_000))
    with pytest.raises(dfeas.UsageError, match=r"12 values of C and folds: at least [34]\.\d\dGiB"):
        dfeas.soft_margin(X, [1, -1], intercept=False, C=[0.01, 0.1, 1, 10], folds=2, memory="1GB")


def test_the_command(dataset: Callable[..., Any], tmp_path: Path) -> None:
    data, _ = dataset("gaussian", 5, 400)
    out, runner = tmp_path / "run", CliRunner()
    done = runner.invoke(commands, ["svm", str(data), "--C", "0.01,1", "--folds", "3", "--out", str(out), "--json"])
    assert done.exit_code == 0
    result = json.loads((out / "result.json").read_text())
    assert result.pop("format") == 1
    assert json.loads(done.stdout) == result
    assert result["gap"] <= 1e-3
    assert len(result["fits"]) == 8
    assert b"</svg>" in (out / "path.svg").read_bytes()
    passes = [json.loads(line) for line in (out / "trace.jsonl").read_text().splitlines()]
    assert all({"objective", "lower", "gap"} <= set(line) for line in passes if line["event"] == "pass")
    found = dfeas.predict(out, str(data))
    assert found.accuracy == pytest.approx(1 - result["error"])
    assert is_finished(out)
    refused = runner.invoke(commands, ["verify", str(out)])
    assert refused.exit_code == 4
    assert "soft margin" in refused.stderr
    assert runner.invoke(commands, ["report", str(out)]).exit_code == 0
    page = (out / "report.html").read_text()
    assert page.count("<figure>") == 3  # distances, gap, path
    assert f"Soft margin, C = {result['C']:g}: as near to the minimum as" in page
    assert f"{result['objective']:.9g}" in page
    assert "gap" in runner.invoke(commands, ["status", str(out)]).stdout
    dfeas.solve(str(data), out=tmp_path / "verdict")
    mixed = runner.invoke(commands, ["compare", str(out), str(tmp_path / "verdict")])
    assert (mixed.exit_code, "run is a soft margin, and others are not" in mixed.stderr) == (2, True)
    (out / "trace.jsonl").write_text('{"event": "pass", "passes": "x", "objective": 1, "lower": 0}\n')
    damaged = runner.invoke(commands, ["report", str(out)])
    assert (damaged.exit_code, "line 1 is damaged" in damaged.stderr) == (5, True)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_classes_share_their_reads_and_are_what_they_are_alone(
    loss: str, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, _ = overlapping(1200, 5, dtype="float32")
    label = np.array(["a", "b", "c"])[(X[:, :3] + np.random.default_rng(1).standard_normal((1200, 3))).argmax(axis=1)]
    np.savez(tmp_path / "a.npz", X=X, y=label)
    dfeas.ingest(tmp_path / "a.npz", tmp_path / "data", block_rows=200)
    more: dict[str, Any] = {"loss": loss, "C": [0.1, 1.0], "folds": 2, "tol": 1e-7, "intercept": True}
    more |= {"transform": "center"} if loss == "hinge" else {}
    found = dfeas.soft_margin_classes(tmp_path / "data", **more, out=tmp_path / "run")
    alone = {name: dfeas.soft_margin(tmp_path / "data", positive=name, **more) for name in "abc"}
    assert list(found.results) == ["a", "b", "c"]
    assert found.reads == max(result.reads for result in alone.values())
    for name, result in found.results.items():
        assert result.path.tobytes() == alone[name].path.tobytes()
        assert (result.fits, result.C, result.passes) == (alone[name].fits, alone[name].C, alone[name].passes)
        assert result.fingerprint == alone[name].fingerprint
    there = dfeas.soft_margin_classes(tmp_path / "data", client=client, **more)
    assert [r.path.tobytes() for r in there.results.values()] == [r.path.tobytes() for r in found.results.values()]
    monkeypatch.setattr(SoftMarginTarget, "abreast", 1)  # for want of memory
    waited = dfeas.soft_margin_classes(tmp_path / "data", **more)
    assert [r.path.tobytes() for r in waited.results.values()] == [r.path.tobytes() for r in found.results.values()]
    centred = 2 * 2 * (loss == "hinge")  # two reads that say how points are seen, which two of the three did not need
    assert waited.reads == pytest.approx(sum(result.reads for result in alone.values()) - centred)
    again = dfeas.load(tmp_path / "run")
    assert (again.classes, again.reads, again.coef.tolist()) == (found.classes, found.reads, found.coef.tolist())
    scored = [dfeas.predict(run, tmp_path / "data").predicted.tolist() for run in (tmp_path / "run", found, again)]
    assert scored[0] == scored[1] == scored[2]
    with pytest.raises(dfeas.BadInputError, match="soft margin, which has no verdict"):
        dfeas.verify_run(tmp_path / "run")
    with pytest.raises(dfeas.UsageError, match="two classes"):
        dfeas.soft_margin_classes(X, label, class_weight="balanced")
    with pytest.raises(dfeas.UsageError, match="no labels"):
        dfeas.soft_margin_classes(X)


def test_what_ends_before_it_knows_anything_says_so(dataset: Callable[..., Any], tmp_path: Path) -> None:
    path, _ = dataset("one-flip", 5, 300)
    result = dfeas.soft_margin(path, C=[0.1, 1.0], folds=3, max_passes=1, out=tmp_path / "run")
    assert "not known yet" in str(result)
    assert "chosen" not in str(result)
    assert "inf" not in str(result)
    dfeas.report(tmp_path / "run")
    with pytest.raises(dfeas.BadInputError, match="no direction"):
        dfeas.predict(tmp_path / "run", path)


def test_a_fold_without_points_is_not_an_error() -> None:
    X, y = overlapping(10, 3)
    found = dfeas.soft_margin(X, y, C=[1e-8, 1.0], folds=10)
    errors = [entry.error for entry in found.validation]
    assert np.isfinite(errors).all()
    tested = [fit.error for fit in found.fits if fit.fold is not None and fit.C == 1.0 and fit.error is not None]
    assert 0 < len(tested) <= 10
    assert errors[1] == pytest.approx(np.mean(tested))


def test_folds_of_weights_that_are_all_zero_have_nothing_wrong() -> None:
    X, y = overlapping(10, 3)
    found = dfeas.soft_margin(X, y, C=[0.1, 1.0], folds=5, weights=np.zeros(10))
    assert [(entry.error, entry.deviation) for entry in found.validation] == [(0.0, 0.0)] * 2


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_a_table_that_is_its_own_sample_is_proved_by_the_first_look(loss: str, C: float) -> None:
    rng = np.random.default_rng(5)
    X = rng.standard_normal((300, 6))
    y = np.where(X @ rng.standard_normal(6) + rng.standard_normal(300) > 0, 1, -1)
    found = dfeas.soft_margin(X, y, C=C, loss=loss, tol=1e-5)
    assert (found.success, found.passes) == (True, 2)  # the sample, and the look
    assert found.gap <= 1e-5
    several = dfeas.soft_margin(X, y, C=[C, 2 * C], loss=loss, tol=1e-5)
    assert (several.success, several.passes) == (True, 2)
    assert several.fits[0].objective == pytest.approx(found.objective, rel=2e-5)
