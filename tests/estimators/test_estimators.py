"""Estimators: scikit-learn's whole check, agreement with its LinearSVC, Dask in and out, pipelines, pickles, silence."""

import pickle
import re
import warnings
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import h5py
import numpy as np
import pandas as pd
import pytest
import zarr
from scipy.sparse import csr_array, csr_matrix
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.multiclass import check_classification_targets

import dfeas
from dfeas.estimators.classifier import labels_of, points_of
from dfeas.estimators.linear_svc import LinearSVC, LinearSVCCV
from dfeas.estimators.separator import KernelSeparator, Separator
from tests.engine.test_client import bars

EXPECTED = {
    "LinearSVCCV": {
        f"check_sample_weight_equivalence_on_{kind}_data": "folds are drawn by the index of a point: copies fall into several"
        for kind in ("dense", "sparse")
    }
}
"""Checks that cannot be passed, and why."""
CALIBRATED = {"check_classifiers_train": "the class is that of the largest score, as of SVC, not of the largest probability"}
"""More of them with probabilities."""


@pytest.mark.parametrize(
    "estimator",
    [
        LinearSVC(),
        LinearSVC(probability=True, folds=2),
        LinearSVCCV((0.1, 1.0), folds=2, probability=True),
        Separator(),
        KernelSeparator(),
    ],
    ids=str,
)
def test_scikit_learns_whole_check(estimator: Any) -> None:
    calibrated = getattr(estimator, "probability", False)
    expected = EXPECTED["LinearSVCCV"] if calibrated else EXPECTED.get(type(estimator).__name__, {})
    expected = {**expected, **(CALIBRATED if calibrated else {})}
    found = check_estimator(estimator, expected_failed_checks=expected, on_fail=None, on_skip=None)
    failed = {entry["check_name"]: entry["exception"] for entry in found if entry["status"] == "failed"}
    assert not failed
    assert {entry["check_name"] for entry in found if entry["status"] == "xfail"} == set(expected)
    assert len(found) > 50


@pytest.mark.parametrize("classes", [2, 3])
def test_linear_svc_is_that_of_scikit_learn(classes: int) -> None:
    X, y = load_iris(return_X_y=True)
    X, y = X[y < classes] + np.random.default_rng(0).standard_normal((int((y < classes).sum()), 4)), y[y < classes]
    ours = LinearSVC(C=0.3, tol=1e-11, intercept_scaling=1).fit(X, y)
    theirs = svm.LinearSVC(C=0.3, dual=False, tol=1e-11, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-5, atol=1e-6)
    assert (ours.predict(X) == theirs.predict(X)).all()
    hinge = LinearSVC(C=0.3, loss="hinge", tol=1e-9, intercept_scaling=1).fit(X, y)
    peer = svm.LinearSVC(C=0.3, loss="hinge", tol=1e-6, max_iter=1_000_000).fit(X, y)
    np.testing.assert_allclose(hinge.coef_, peer.coef_, atol=2e-3)
    free = LinearSVC(C=0.3, loss="hinge", tol=1e-9).fit(X[y < 2], y[y < 2])
    machine = svm.SVC(C=0.3, kernel="linear", tol=1e-9).fit(X[y < 2], y[y < 2])
    np.testing.assert_allclose(free.coef_, machine.coef_, atol=1e-4)
    np.testing.assert_allclose(free.intercept_, machine.intercept_, atol=1e-3)


def test_it_works_in_a_pipeline_a_grid_search_and_a_pickle(capfd: pytest.CaptureFixture[str]) -> None:
    X, y = make_blobs(120, centers=3, random_state=1)
    names = np.array(["a", "b", "c"])[y]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search = GridSearchCV(make_pipeline(StandardScaler(), LinearSVC()), {"linearsvc__C": [0.1, 1.0]}, cv=2).fit(X, names)
        copy = pickle.loads(pickle.dumps(search))
    assert (copy.predict(X) == search.predict(X)).all()
    assert search.score(X, names) > 0.9
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("estimator", "classes"), [(LinearSVC(), 2), (Separator(), 3), (KernelSeparator(gamma=1.0), 3)], ids=str
)
def test_dask_in_and_dask_out(estimator: Any, classes: int) -> None:
    X, labels = make_blobs(90, centers=classes, random_state=3)
    y = np.array(["x", "y", "z"], object)[labels]
    plain = estimator.fit(X, y)
    expected, scores = plain.predict(X), plain.decision_function(X)
    array = da.from_array(X, chunks=(25, 1))
    estimator.fit(array, da.from_array(y, chunks=30))
    assert isinstance(estimator.predict(array), da.Array)
    assert (estimator.predict(array).compute() == expected).all()
    found = estimator.decision_function(array)
    assert found.shape == scores.shape
    np.testing.assert_allclose(found.compute(), scores, rtol=1e-9, atol=1e-12)
    frame = dd.from_pandas(pd.DataFrame(X, columns=["u", "v"], index=np.arange(90) * 2), npartitions=3)
    estimator.fit(frame, dd.from_pandas(pd.Series(y, index=np.arange(90) * 2), npartitions=3))
    assert list(estimator.feature_names_in_) == ["u", "v"]
    predicted = estimator.predict(frame)
    assert isinstance(predicted, dd.Series)
    assert (predicted.compute() == expected).all()
    assert list(predicted.compute().index) == list(np.arange(90) * 2)
    assert estimator.score(frame, y) == (expected == y).mean()
    with pytest.raises(ValueError, match="1 features"):
        estimator.predict(array[:, :1])


@pytest.mark.parametrize(("kind", "classes"), [(LinearSVC, 2), (Separator, 3)])
def test_partitions_are_fitted_on_their_cluster(kind: Any, classes: int, client: Any) -> None:
    X, y = make_blobs(90, centers=classes, random_state=3)
    named = pd.DataFrame(X, columns=["u", "v"])
    frame = dd.from_pandas(named, npartitions=3)
    there = clone(kind(client=client))
    assert "dfeas-survey" in bars(client, lambda: there.fit(frame, dd.from_pandas(pd.Series(y), npartitions=3)))
    here = kind().fit(named, y)
    np.testing.assert_allclose(there.decision_function(named), here.decision_function(named), rtol=1e-3, atol=1e-6)
    kept = pickle.loads(pickle.dumps(there))
    assert (there.client, kept.client) == (client, None)
    assert (kept.predict(named) == there.predict(named)).all()
    assert kind(client=client).fit(named, y).score(named, y) == here.score(named, y)  # in memory, so that this process does it
    with pytest.raises(ValueError, match="client"):
        kind(client=5).fit(frame, y)


@pytest.mark.parametrize("estimator", [LinearSVC(loss="hinge", tol=1e-8), Separator(), KernelSeparator(gamma=1.0)], ids=str)
def test_sparse_points_are_what_dense_ones_are(estimator: Any) -> None:
    X, y = make_blobs(60, centers=3, n_features=4, random_state=3)
    X[np.random.default_rng(0).random(X.shape) < 0.5] = 0
    dense = estimator.fit(X, y).decision_function(X)
    sparse = estimator.fit(csr_array(X), y)
    np.testing.assert_allclose(sparse.decision_function(csr_array(X)), dense, rtol=1e-3, atol=1e-4)
    assert (sparse.predict(csr_array(X)) == sparse.predict(X)).all()


def test_warm_start_goes_on_and_a_limit_is_a_warning() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 5))
    y = X[:, 0] + 0.5 * rng.standard_normal(3000) > 0
    warm = LinearSVC(warm_start=True, tol=1e-8).fit(X, y)
    first = warm.results_[0].passes
    assert warm.fit(X, y).results_[0].passes < first
    with pytest.warns(ConvergenceWarning, match="limit of passes"):
        LinearSVC(loss="hinge", tol=1e-10, max_passes=1).fit(X, y)


@pytest.mark.parametrize(("kind", "raises"), [(LinearSVC, False), (Separator, True), (KernelSeparator, False)])
def test_a_callback_sees_each_read_and_may_end_the_fit(kind: Any, raises: bool) -> None:
    X, y = make_blobs(150, centers=3, cluster_std=6, random_state=0)
    options = {"loss": "hinge", "tol": 1e-9} if kind is LinearSVC else {"method": "mirror-prox-fixed"}
    seen: list[Any] = []
    whole = kind(**options, callback=seen.append, max_passes=12).fit(X, y)
    assert len(seen) > 3
    assert [record.passes for record in seen] == sorted(record.passes for record in seen)

    def ends(record: Any) -> bool:
        if raises:
            raise StopIteration
        return True

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        cut = kind(**options, callback=ends).fit(X, y)
    assert "interrupted" in {found.stopped for found in cut.results_} <= {"interrupted", "verdict"}
    assert max(found.passes for found in cut.results_) < max(found.passes for found in whole.results_)


@pytest.mark.parametrize(("loss", "weigh", "classes"), [("squared_hinge", True, 3), ("hinge", False, 2)])
def test_batches_are_fitted_as_all_their_points(loss: str, weigh: bool, classes: int) -> None:
    X, y = make_blobs(150, centers=classes, cluster_std=4, random_state=0)
    order, weight = np.argsort(y, kind="stable"), np.random.default_rng(0).uniform(0.5, 2, 150)  # so that a class comes late
    options = {"loss": loss, "tol": 1e-8, "class_weight": {0: 2.0}}
    grown = LinearSVC(**options)
    for rows in np.array_split(order, 4):
        grown.partial_fit(X[rows], y[rows], np.arange(classes), weight[rows] if weigh else None)
    whole = LinearSVC(**options).fit(X[order], y[order], weight[order] if weigh else None)
    np.testing.assert_allclose(grown.objective_, whole.objective_, rtol=1e-7)
    np.testing.assert_allclose(grown.coef_, whole.coef_, rtol=1e-3, atol=1e-4)
    before, objective = grown.results_, grown.objective_
    beyond = 50 * (X[y == 0].mean(0) - X.mean(0)) + X.mean(0)
    grown.partial_fit(beyond[None], [0])
    again = LinearSVC(**options).fit(
        np.vstack([X[order], beyond]), np.append(y[order], 0), np.append(weight[order], 1) if weigh else None
    )
    np.testing.assert_allclose(grown.objective_, again.objective_, rtol=1e-7)
    assert (grown.results_ is before) == bool((grown.objective_ == objective).all())
    with pytest.raises(ValueError, match="balanced"):
        LinearSVC(class_weight="balanced").partial_fit(X, y)


def test_a_batch_with_another_C_is_fitted_though_it_is_beyond_its_margin() -> None:
    X, y = np.array([[0.0], [1], [2], [3], [2.5], [90]]), np.array([0, 0, 1, 1, 0, 1])
    found = LinearSVC(C=10).partial_fit(X[:5], y[:5], classes=[0, 1]).set_params(C=0.01).partial_fit(X[5:], y[5:])
    assert found.coef_ == pytest.approx(LinearSVC(C=0.01).fit(X, y).coef_, rel=1e-2)


@pytest.mark.parametrize("kind", [LinearSVC, Separator])
def test_a_batch_that_was_not_fitted_is_not_kept(kind: Any) -> None:
    X, y = make_blobs(120, centers=2, cluster_std=9, random_state=0)

    def stop(record: Any) -> None:
        raise KeyboardInterrupt

    grown = kind().partial_fit(X[:60], y[:60], classes=[0, 1])
    with pytest.raises(KeyboardInterrupt):
        grown.set_params(callback=stop).partial_fit(X[60:], y[60:])
    for labels, error in ((y[60:-1], "inconsistent"), (y[60:] + 1, "not among")):
        with pytest.raises(ValueError, match=error):
            grown.partial_fit(X[60:], labels)
    grown.set_params(callback=None).partial_fit(X[60:], y[60:])
    assert grown.results_[0].n == 120


@pytest.mark.parametrize("estimator", [LinearSVC(), Separator(), KernelSeparator()], ids=str)
def test_nothing_of_dask_is_computed_by_a_prediction(estimator: Any) -> None:
    X, y = make_blobs(60, centers=2, random_state=3)
    frame = pd.DataFrame(X, columns=["u", "v"])
    fitted, array = estimator.fit(frame, y), da.from_array(X, chunks=(25, 1))
    with dask.config.set(scheduler=computes):
        lazy = [
            ask(given)
            for ask in (fitted.predict, fitted.decision_function)
            for given in (dd.from_pandas(frame, npartitions=2), array)
        ]
        unknown = fitted.predict(array[array[:, 0] > 0])
        with pytest.raises(ValueError, match="feature names"):
            fitted.predict(dd.from_pandas(frame[["v", "u"]], npartitions=2))
    expected = [ask(frame) for ask in (fitted.predict, fitted.decision_function)]
    for found, there in zip(lazy, np.repeat(expected, 2, axis=0), strict=True):
        np.testing.assert_allclose(np.asarray(found.compute()), there)
    assert (unknown.compute() == expected[0][X[:, 0] > 0]).all()


def computes(*args: Any, **options: Any) -> None:
    raise AssertionError("something was computed")


@pytest.mark.parametrize(
    ("kind", "name", "text"),
    [
        (LinearSVC, "max_iter", "max_passes limits the reads"),
        (LinearSVC, "penalty", r"\|w\|\^2/2"),
        (LinearSVC, "dual", "gap_ says"),
        (KernelSeparator, "n_jobs", "all processors"),
        (Separator, "C", "LinearSVC"),
        (LinearSVCCV, "cv", "folds"),
        (LinearSVC, "maxiter", "unexpected keyword argument 'maxiter'"),
    ],
)
def test_a_parameter_of_scikit_learn_that_is_not_here_names_what_is(kind: Any, name: str, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        kind(**{name: 1})


class Tensor:
    """What another library has of an array: the protocol, and nothing else."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class Differentiated(Tensor):
    """One that its library does not hand over."""

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int16])
def test_tensors_are_points_and_labels(kind: Any) -> None:
    X, y = make_blobs(60, centers=2, random_state=3)
    X = X.astype(kind)
    here = dfeas.solve(X, y)
    there = dfeas.solve(Tensor(X), Tensor(y))
    assert (there.verdict, there.fingerprint, there.classes) == (here.verdict, here.fingerprint, here.classes)
    assert (there.predict(Tensor(X)) == here.predict(X)).all()
    fitted = LinearSVC().fit(Tensor(X), Tensor(y), sample_weight=Tensor(np.ones(60)))
    assert fitted.score(Tensor(X), Tensor(y)) == 1.0
    assert np.allclose(dfeas.soft_margin(X, y, weights=Tensor(np.ones(60))).coef, dfeas.soft_margin(X, y).coef)


def test_a_tensor_that_is_not_handed_over_is_one_clear_line() -> None:
    X, y = make_blobs(60, centers=2, random_state=3)
    text = r"require gradient.*expected numbers in memory without gradients.*detach\(\)\.cpu"
    for points, labels in ((Differentiated(X), y), (X, Differentiated(y))):
        for ask in (dfeas.solve, LinearSVC().fit):
            with pytest.raises(ValueError, match=text):
                ask(points, labels)


@pytest.mark.parametrize(("kind", "classes"), [(LinearSVC, 2), (LinearSVCCV, 3)])
def test_probabilities_are_of_who_asked_for_folds(kind: Any, classes: int) -> None:
    X, y = make_blobs(150, centers=classes, cluster_std=2, random_state=0)
    fitted = kind(probability=True, folds=3).fit(X, y)
    found = fitted.predict_proba(X)
    assert found.shape == (150, classes)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_array_equal(fitted.predict_proba(da.from_array(X, chunks=70)).compute(), found)
    assert (found.argmax(axis=1) == y).mean() > 0.6
    others = kind().fit(X, y)
    assert not hasattr(others, "predict_proba")
    with pytest.raises(AttributeError) as caught:
        others.predict_proba(X)
    assert "probability=True, and fit again" in str(caught.value.__cause__)
    with pytest.raises(ValueError, match="fitted without"):
        others.set_params(probability=True).predict_proba(X)


def test_cross_validation_chooses_and_fits() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 30))
    y = X[:, 0] + rng.standard_normal(200) > 0
    found = LinearSVCCV((1e-4, 1e-2, 1.0), folds=4, tol=1e-6).fit(X, y)
    assert (1e-4, 1e-2, 1.0)[int(found.errors_.argmin())] == found.C_
    alone = LinearSVC(C=found.C_, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(found.coef_, alone.coef_, atol=1e-3)


def test_a_separator_says_what_is_separable_and_takes_more_points() -> None:
    X, y = load_iris(return_X_y=True)
    found = Separator(eps=1e-4).fit(X, y)
    assert found.verdicts_[0] == "feasible"
    assert not found.separable_
    assert found.results_[1].conflicts
    assert Separator().fit(X[y < 2], y[y < 2]).separable_
    growing = Separator()
    for rows in (slice(0, 30), slice(30, 60), slice(60, 100)):
        growing.partial_fit(X[rows], y[rows], classes=[0, 1])
    assert growing.separable_
    assert growing.score(csr_array(X[:100]), y[:100]) == 1
    before = growing.results_[0]
    assert growing.partial_fit(X[:3], y[:3]).results_[0] is before  # on the right side: not solved again
    assert not growing.partial_fit(csr_array(X[:1]), [1]).separable_
    with pytest.raises(ValueError, match="not among"):
        growing.partial_fit(X[:1], [7])


def test_classes_in_the_space_of_a_kernel_share_its_values_and_sparse_points_stay_so() -> None:
    X, y = load_digits(n_class=5, return_X_y=True)
    X, y = X[:200], y[:200]
    evaluated = 0

    def counted(a: Any, b: Any) -> Any:
        nonlocal evaluated
        evaluated += a.shape[0] * b.shape[0]
        return rbf_kernel(a, b, gamma=1e-3)

    found = KernelSeparator(counted).fit(X, y)
    together, evaluated = evaluated, 0
    assert (found.predict(X) == y).all()
    asked, evaluated = evaluated, 0
    assert asked < 2 * len(X) * len(np.unique(np.concatenate(found.support_)))  # and K(x, x) of each
    alone = [KernelSeparator(counted).fit(X, y == k) for k in range(5)]
    assert found.verdicts_ == [each.verdicts_[0] for each in alone]
    assert together < evaluated / 2
    sparse = KernelSeparator(gamma=1e-3).fit(csr_matrix(X), y)
    assert all(isinstance(points, csr_array) for points in sparse.support_vectors_)
    assert np.allclose(sparse.decision_function(csr_matrix(X)), KernelSeparator(gamma=1e-3).fit(X, y).decision_function(X))


POINTS, CLASSES = np.array([[1.0, 2], [2, 1], [-1, -1], [-2, -1], [3, 1], [-3, -2]]), np.array([1, 1, 0, 0, 1, 0])


def refused_points(path: Path) -> dict[str, Any]:
    """What ``dfeas.solve`` refuses, with what it says of it."""
    hole = zarr.create_array(path / "hole.zarr", shape=(6, 2), chunks=(2, 2), dtype="f8", fill_value=7.0)
    hole[:4] = POINTS[:4]
    packed = zarr.create_array(path / "packed.zarr", data=POINTS.astype("i4"))
    packed.attrs["scale_factor"] = 0.5
    file = h5py.File(path / "packed.h5", "w")
    file["X"] = POINTS
    file["X"].attrs["_FillValue"] = 3.0
    wide = np.array([[2**53 + 1, 0]] * 6)
    return {
        "chunks are missing": hole,
        "packed numbers (scale_factor": packed,
        "packed numbers (_FillValue": file["X"],
        "a masked array": np.ma.array(POINTS, mask=POINTS == 3),
        "an integer beyond 2**53": wide,
        "has no exact float64": wide.astype(object),
        "a value is missing": np.array([[pd.NA, 1.0]] * 6, object),
        "column 1 has 6 missing values": pd.DataFrame({"0": 1.0, "1": pd.array([None] * 6, dtype="Int64")}),
        "expected numbers, got str": POINTS.astype(str).astype(object),
        "entries of type datetime64": POINTS.astype("M8[s]"),
        "Complex data not supported": POINTS + 0j,
    }


@pytest.mark.parametrize("kind", [LinearSVC, Separator])
def test_points_pass_the_gate_of_solve_in_every_method(kind: Any, tmp_path: Path) -> None:
    fitted = kind().fit(POINTS, CLASSES)
    for text, X in refused_points(tmp_path).items():
        calls = [lambda X: kind().fit(X, CLASSES), lambda X: kind().partial_fit(X, CLASSES)]
        calls += [lambda X: fitted.score(X, CLASSES), fitted.predict, fitted.decision_function]
        for call in calls:
            with pytest.raises(ValueError, match=re.escape(text)) as error:
                call(X)
            assert "\n" not in str(error.value)


LABELS = [
    (np.ma.array(CLASSES, mask=CLASSES == 1), "y: a masked array"),
    (pd.array(["a", None] * 3, dtype="string"), "y: the label of point 1 is missing"),
    (np.array(["a", None] * 3, np.dtypes.StringDType(na_object=None)), "y: the label of point 1 is missing"),
    (CLASSES + 0j, "Complex data not supported"),
    (CLASSES.astype("M8[s]"), "labels of type datetime64"),
    (pd.Series(CLASSES, range(1, 7)), "have other rows"),
]
WEIGHTS = [
    (np.ma.array(np.ones(6), mask=CLASSES == 1), "sample_weight: a masked array"),
    (np.array([1.0, None] * 3), "sample_weight: a value is missing"),
    (pd.Series(np.ones(6), range(1, 7)), "X and sample_weight have other rows"),
    (np.ones(5), "sample_weight.shape"),
]


@pytest.mark.parametrize(
    ("given", "text"),
    [*(({"y": y}, text) for y, text in LABELS), *(({"y": CLASSES, "sample_weight": w}, text) for w, text in WEIGHTS)],
)
def test_labels_and_weights_pass_the_gate_of_solve_in_every_method(given: dict[str, Any], text: str) -> None:
    X = pd.DataFrame(POINTS)
    kind = LinearSVC if "sample_weight" in given else Separator
    for call in (kind().fit, kind().partial_fit, Separator().fit(X, CLASSES).score):
        with pytest.raises(ValueError, match=re.escape(text)) as error:
            call(X, **given)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.bool_, np.float64, str])
def test_classes_are_those_of_numpy_whatever_their_type(kind: type) -> None:
    X = np.arange(12.0)[:, None]
    labels = (np.arange(12) > 5).astype(kind)
    fitted, (classes, index) = LinearSVC().fit(X, labels), np.unique(labels, return_inverse=True)
    assert (fitted.classes_.dtype, fitted.classes_.tolist()) == (classes.dtype, classes.tolist())
    assert fitted.predict(X).tolist() == classes[index].tolist()


def test_what_is_not_plain_is_looked_at_by_scikit_learn() -> None:
    """Numbers whose sum overflows, those that are not finite, and labels of a regression."""
    large = np.array([[1e308], [1e308], [-1e307], [-1e308]])
    assert np.array_equal(points_of(LinearSVC(), large, reset=True), large)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        LinearSVC().fit([[0.0], [np.nan]], [0, 1])
    with pytest.raises(ValueError, match="Input X contains infinity"):
        LinearSVC().fit(np.array([[0.0], [np.inf]]), [0, 1])
    said = []  # older scikit-learns say nothing of these
    for look in (check_classification_targets, lambda labels: labels_of(labels, None)):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            look(np.arange(30))
        said.append([str(each.message) for each in heard])
    assert said[0] == said[1]
