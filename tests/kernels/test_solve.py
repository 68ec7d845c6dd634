"""Solving with a kernel: verdicts against explicit features, evidence, files, sparse points and classes."""

from fractions import Fraction
from itertools import combinations_with_replacement
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy
import scipy.sparse

import dfeas
from dfeas.engine.local import LocalEngine
from dfeas.errors import CheckFailedError
from dfeas.geometry.prediction import Prediction
from dfeas.kernels.checker.bounds import Kernel
from dfeas.kernels.checker.core import KernelSums, balances
from dfeas.kernels.kernel import opposite
from dfeas.kernels.space import KERNEL_METHODS
from dfeas.records import replace
from dfeas.verify.certificate import load
from dfeas.verify.core import check
from tests.exact import conflicts
from tests.fuzzing.oracle import whole
from tests.kernels.making import KERNEL, NAMES, instance, ring, rings, texts
from tests.run.test_resume import after, run_until
from tests.verify.test_verify import marked


@pytest.mark.parametrize("seed", range(40))
def test_verdicts_are_those_of_explicit_features(seed: int) -> None:
    X, labels, conflict = instance(seed)
    result = dfeas.solve(X, labels, kernel=KERNEL)
    assert (result.verdict, result.proof) == (("infeasible", "exact") if conflict else ("feasible", "rigorous"))


@pytest.mark.parametrize("seed", range(8))
def test_polynomials_of_points_in_float64_conflict_exactly(seed: int) -> None:
    rng = np.random.default_rng(seed)
    degree, coef0 = 2 + seed % 2, (0.0, 0.3)[seed // 2 % 2]
    X, labels = rng.standard_normal((25, 2)), rng.choice([-1, 1], 25)
    result = dfeas.solve(X, labels, kernel=dfeas.Kernel("polynomial", gamma=0.7, degree=degree, coef0=coef0))
    numbers = [[round(value * 2**63) for value in row] + [2**63] * (coef0 > 0) for row in X.tolist()]
    assert (np.array([row[:2] for row in numbers], object) / 2**63 == X).all()
    monomials = [[prod(some) for some in combinations_with_replacement(row, degree)] for row in numbers]
    conflicting = conflicts((np.array(monomials, object) * labels[:, None]).T)
    assert (result.verdict, result.proof) == (("infeasible", "exact") if conflicting else ("feasible", "rigorous"))


@pytest.mark.parametrize(("seed", "kernel"), [(0, "cosine"), (1, "linear"), (2, "linear"), (3, "cosine")])
def test_points_that_conflict_do_so_exactly_where_the_kernel_is_their_product(seed: int, kernel: str) -> None:
    rng = np.random.default_rng(seed)
    X, labels = rng.standard_normal((24, 3)) * 2.0 ** rng.integers(-60, 61, 3), rng.choice([-1, 1], 24)
    if seed % 2:
        X = np.vstack([X[:9], np.nextafter(X[:9], np.inf), X[18:]])
    result = dfeas.solve(X, labels, kernel=kernel)
    assert conflicts(np.array(whole(X, labels), object).T)
    assert (result.verdict, result.proof) == ("infeasible", "exact")


@pytest.mark.parametrize(("kernel", "dense", "seed"), [("linear", True, 0), ("cosine", True, 1), ("linear", False, 2)])
def test_points_are_separated_exactly_where_the_kernel_is_their_product(
    kernel: str, dense: bool, seed: int, tmp_path: Path
) -> None:
    """Half of them are an ulp from the others, with the other label: float64 has no expansion that separates them."""
    rng = np.random.default_rng(seed)
    X = np.vstack([some := rng.standard_normal((3, 6)) * 2.0 ** rng.integers(-60, 61, 6), np.nextafter(some, np.inf)])
    labels = np.repeat([1, -1], 3)
    points = X if dense else scipy.sparse.csr_array(X)
    result = dfeas.solve(points, labels, kernel=kernel, out=tmp_path / "run")
    assert not conflicts(np.array(whole(X, labels), object).T)
    assert (result.verdict, result.proof) == ("feasible", "exact")
    assert 0 < result.margin_lower < 1e-12
    assert result.predict(points).tolist() == labels.tolist()
    ours, data = load(tmp_path / "run" / "certificate.npz"), marked(points, labels)
    numbers, engine = ours.integers, LocalEngine(data)
    assert check(engine, data, ours).margin_lower == result.margin_lower
    other = (numbers[0] + max(1, abs(numbers[0]) >> 20), *numbers[1:])
    for change in (
        {"integers": ()},
        {"integers": other},
        {"integers": tuple(-v for v in numbers)},
        {"weights": -ours.weights},
        {"integers": tuple(numbers[:-1])},
        {"kernel": ours.kernel.replace(kernel, "rbf").replace("0.0", "1.0", 1)},
    ):
        with pytest.raises(CheckFailedError):
            check(engine, data, replace(ours, **change))


def test_classes_are_separated_exactly_where_the_kernel_is_their_product() -> None:
    X = np.array([[1.0, 1.0], [1.0, np.nextafter(1.0, 2.0)], [-1.0, 3.0], [2.0, 0.0]])
    answer = dfeas.one_vs_rest(X, ["a", "b", "c", "c"], kernel="linear")
    for name, result in answer.results.items():
        labels = np.where(np.array(["a", "b", "c", "c"]) == name, 1, -1)
        assert result.verdict == ("infeasible" if conflicts(np.array(whole(X, labels), object).T) else "feasible")


def test_monomials_of_too_many_digits_are_not_made() -> None:
    """490 points, 200 powers, entries 2^800 apart: each monomial would have a hundred thousand digits."""
    rng = np.random.default_rng(0)
    X = np.ldexp(1 + rng.random((490, 1)), rng.integers(350, 420, (490, 1)) * rng.choice([-1, 1], (490, 1)))
    sums = KernelSums(Kernel("polynomial", 1.0, 200, 1.0), np.arange(490), X, X, rng.choice([-1.0, 1.0], (490, 1)), (None,))
    assert not balances(sums, None)


@pytest.mark.parametrize("method", [name for name in KERNEL_METHODS if name != "snkpvn"])
def test_every_method_ends_with_checked_evidence(method: str, tmp_path: Path) -> None:
    X, labels = ring(150, 4)
    wide = dfeas.solve(X * 1.2, labels, kernel="exponential", method=method, eps=1e-2, max_passes=3000, out=tmp_path / "run")
    assert (wide.verdict, wide.proof, wide.method) == ("feasible", "rigorous", method)
    X, labels = np.vstack([X, X]), np.append(labels, -labels)
    none = dfeas.solve(X, labels, kernel="exponential", method=method, eps=0.05, max_passes=3000)
    assert none.verdict in ("infeasible", "eps-infeasible")


@pytest.mark.parametrize("kernel", dfeas.KERNELS)
def test_a_ring_is_separated_by_what_can(kernel: str) -> None:
    X, labels = ring(400, 0)
    result = dfeas.solve(X, labels, kernel=kernel)
    if kernel in ("linear", "cosine"):
        assert (result.verdict, result.proof) == ("infeasible", "exact")
        return
    assert (result.verdict, result.proof) == ("feasible", "rigorous")
    assert 0 < result.margin_lower <= result.margin_upper
    assert result.separator is None
    assert result.support is not None
    assert result.weights is not None
    assert result.kernel is not None
    assert result.kernel["name"] == kernel


def test_the_bracket_closes_around_the_widest_margin() -> None:
    X, labels = ring(200, 3)
    tight = dfeas.solve(X, labels, kernel=dfeas.Kernel("rbf", gamma=0.7), margin_tolerance=1e-3)
    squares = ((X[:, None] - X[None]) ** 2).sum(2)
    gram = np.exp(-0.7 * squares) * np.outer(labels, labels)
    assert tight.verdict == "feasible"
    assert tight.margin_lower >= (1 - 1e-3) * tight.margin_upper
    alpha = np.zeros(200)
    alpha[tight.support] = tight.weights
    margin = float((gram @ alpha).min() / np.sqrt(alpha @ gram @ alpha))
    assert margin == pytest.approx(tight.margin_lower, rel=1e-9)


def test_equal_points_with_opposite_labels_are_an_exact_conflict() -> None:
    X, labels = ring(3000, 1)
    X, labels = np.vstack([X, X[77]]), np.append(labels, -labels[77])
    result = dfeas.solve(X, labels, kernel="rbf", eps=1e-6)
    assert (result.verdict, result.proof, result.margin_upper) == ("infeasible", "exact", 0.0)
    assert {entry["point"] for entry in result.conflicts} == {77, 3000}


def test_a_function_of_python_is_believed_but_not_called_proved() -> None:
    X, labels = ring(300, 2)
    result = dfeas.solve(X, labels, kernel=lambda a, b: (a @ b.T + 1) ** 2)
    assert (result.verdict, result.proof) == ("feasible", "floating_point")


def test_exact_conflicts_are_told_from_near_ones() -> None:
    X = np.array([[1.0, 0], [1.0, 2.0**-40], [0, 1]])
    result = dfeas.solve(X, np.array([1, -1, 1]), kernel=dfeas.Kernel("rbf", gamma=1.0), eps=1e-6)
    assert result.verdict in ("feasible", "eps-infeasible")
    assert Fraction(result.margin_upper) > 0


@pytest.mark.parametrize("dtype", ["uint8", "float16"])
def test_small_numbers_of_any_type_are_the_same_points(dtype: str) -> None:
    X, labels = ring(300, 4, 3)
    Z = np.abs(X * 30).astype(dtype)
    for options in (
        {"kernel": "rbf"},
        {"kernel": "polynomial"},
        {"kernel": "exponential", "method": "mirror-prox", "max_passes": 5},
    ):
        ours, plain = (dfeas.solve(points, labels, **options) for points in (Z, Z.astype(np.float32)))
        assert (ours.verdict, ours.margin_lower, ours.margin_upper) == (plain.verdict, plain.margin_lower, plain.margin_upper)

    def function(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        assert a.dtype.kind == b.dtype.kind == "f"  # integers would overflow in it
        return (a @ b.T + 1) ** 2

    by_function = dfeas.solve(Z, labels, kernel=function)
    by_name = dfeas.solve(Z, labels, kernel=dfeas.Kernel("polynomial", gamma=1.0, degree=2))
    assert by_function.verdict == by_name.verdict


@pytest.mark.parametrize(
    ("kernel", "method"), [("rbf", "auto"), ("polynomial", "auto"), ("cosine", "auto"), ("rbf", "mirror-prox")]
)
def test_verdicts_are_those_of_arrays(kernel: str, method: str) -> None:
    X, labels = texts(400)
    options: dict[str, Any] = {"kernel": kernel, "method": method, "max_passes": 60}
    ours, theirs = (dfeas.solve(points, labels, **options) for points in (scipy.sparse.csr_array(X), X))
    assert (ours.verdict, ours.proof) == (theirs.verdict, theirs.proof)
    assert ours.margin_lower == pytest.approx(theirs.margin_lower, abs=1e-7)
    assert ours.margin_upper == pytest.approx(theirs.margin_upper, abs=1e-7)


def test_a_run_on_sparse_data(tmp_path: Path) -> None:
    X, labels = texts(500)
    scipy.sparse.save_npz(tmp_path / "a.npz", scipy.sparse.csr_matrix(X))
    np.save(tmp_path / "y.npy", labels)
    dfeas.ingest(tmp_path / "a.npz", tmp_path / "data", y=tmp_path / "y.npy", sparse=True, block_rows=64)
    whole = dfeas.solve(tmp_path / "data", kernel="rbf")
    assert "gamma one over the median of the distances squared of 500 points" in whole.why
    dfeas.solve(tmp_path / "data", kernel="rbf", out=tmp_path / "run", max_passes=1)
    found: Any = dfeas.resume(tmp_path / "run", max_passes=50)
    assert (found.verdict, found.margin_lower) == ("feasible", whole.margin_lower)
    assert dfeas.verify_run(tmp_path / "run").proof == "rigorous"
    scores = [dfeas.predict(tmp_path / "run", some).score for some in (tmp_path / "data", X.astype(np.float64))]
    assert np.allclose(*scores, atol=1e-12)
    assert ((scores[0] > 0) == (labels > 0)).all()
    with np.load(tmp_path / "run" / "certificate.npz") as arrays:
        kept = dict(arrays)
    np.savez(tmp_path / "c.npz", **{**kept, "weights": kept["weights"] * np.where(np.arange(len(kept["weights"])) % 2, 1, 3)})
    with pytest.raises(CheckFailedError, match="not a separator"):
        dfeas.verify_certificate(tmp_path / "data", tmp_path / "c.npz")


def test_equal_points_are_found_whatever_is_stored_of_them() -> None:
    X = scipy.sparse.csr_array(np.array([[0.0, 1, 2], [0, 1, 2], [3, 0, 0], [0, 0, 0]]))
    X.data[0] = 0.0  # stored, and nothing
    assert opposite(X, np.array([1, -1, 1, -1])) is None
    X.data[0] = 1.0
    assert opposite(X, np.array([-1, 1, 1, -1])) == (1, 0)
    assert opposite(np.array([[0.0], [-0.0]]), np.array([1, -1])) == (0, 1)
    result = dfeas.solve(scipy.sparse.vstack([X, X[[2]]], format="csr"), [1, 1, -1, -1, 1], kernel="rbf")
    assert (result.verdict, result.proof) == ("infeasible", "exact")


def test_a_function_is_given_the_blocks_as_they_are() -> None:
    X, labels = texts(120)
    seen = set()

    def cubic(a: Any, b: Any) -> Any:
        seen.add(type(a))
        product = a @ b.T
        return product.power(3) if scipy.sparse.issparse(product) else product**3

    ours, theirs = (dfeas.solve(points, labels, kernel=cubic) for points in (scipy.sparse.csr_array(X), X))
    assert seen == {scipy.sparse.csr_array, np.ndarray}
    assert (ours.verdict, ours.proof) == (theirs.verdict, theirs.proof)
    assert ours.margin_lower == pytest.approx(theirs.margin_lower, abs=1e-7)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Separable but for one point of a class that is there again with another one."""
    folder = tmp_path_factory.mktemp("classes")
    X, labels = rings(4000)
    far = np.flatnonzero(labels == "cat")[-1]
    X, labels = np.vstack([X, X[far]]), np.append(labels, "bee")
    np.savez(folder / "a.npz", X=X, y=labels)
    dfeas.ingest(folder / "a.npz", folder / "data", block_rows=500)
    return folder / "data"


def test_both_engines_and_a_second_start_give_the_same_bits(client: Any, data: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"kernel": "rbf", "method": "working-set", "max_passes": 12}
    here = dfeas.one_vs_rest(data, out=tmp_path / "here", **options)
    dfeas.one_vs_rest(data, out=tmp_path / "there", client=client, **options)
    run_until(after(1), dfeas.one_vs_rest, data, out=tmp_path / "again", **options)
    dfeas.resume(tmp_path / "again")
    for name in NAMES:
        bits = []
        for run in ("here", "there", "again"):
            kept = load(tmp_path / run / f"class-{name}" / "certificate.npz")
            bits.append((kept.support.tobytes(), kept.weights.tobytes(), kept.fingerprint))
        assert bits[0] == bits[1] == bits[2]
    found = {name: (result.verdict, result.proof) for name, result in here.results.items()}
    assert found == {"ant": ("feasible", "rigorous"), "bee": ("infeasible", "exact"), "cat": ("infeasible", "exact")}
    assert {entry["point"] for entry in here.results["bee"].conflicts} >= {4000}
    assert here.reads < max(result.reads for result in here.results.values()) + 4


def test_points_get_their_classes(tmp_path: Path) -> None:
    X, labels = rings(600)
    labels[17] = "one"  # a class of a single point, in the middle of another one
    np.savez(tmp_path / "a.npz", X=X, y=labels)
    dfeas.ingest(tmp_path / "a.npz", tmp_path / "data")
    found = dfeas.one_vs_rest(tmp_path / "data", kernel=dfeas.Kernel("rbf", gamma=5.0), out=tmp_path / "run", eps=1e-6)
    assert {result.verdict for result in found.results.values()} == {"feasible"}
    predicted = dfeas.predict(tmp_path / "run", tmp_path / "data", out=tmp_path / "p.npy")
    assert isinstance(predicted, Prediction)
    assert predicted.accuracy == 1.0
    assert (np.array(predicted.classes)[np.load(tmp_path / "p.npy")] == labels).all()


def test_one_product_a_round_answers_all_methods_of_a_race(tmp_path: Path) -> None:
    X, labels = ring(200, 0)
    names = [name for name in KERNEL_METHODS if name not in ("snkpvn", "working-set")]
    whole = dfeas.race(X, labels, methods=names, kernel="exponential", max_passes=9)
    reads = 0.0
    for name, result in whole.results.items():
        alone = dfeas.solve(X, labels, method=name, kernel="exponential", max_passes=9)
        assert (result.margin_lower, result.margin_upper) == pytest.approx((alone.margin_lower, alone.margin_upper), abs=1e-7)
        assert (result.verdict, result.passes, result.kernel) == (alone.verdict, alone.passes, alone.kernel)
        reads += alone.reads
    assert whole.reads < reads / 2, "each verdict is checked, and the products are shared"
    dfeas.race(X, labels, methods=names, kernel="exponential", max_passes=3, out=tmp_path / "race")
    again = dfeas.resume(tmp_path / "race", X, labels, max_passes=9)
    assert isinstance(again, dfeas.Race)
    assert again.reads == whole.reads + 1  # arrays are looked at again
    for name, result in whole.results.items():
        assert (again.results[name].margin_lower, again.results[name].margin_upper) == (
            result.margin_lower,
            result.margin_upper,
        )


def test_an_interrupted_run_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    X, labels = ring(5000, 5, 3)
    dfeas.ingest(X.astype(np.float32), tmp_path / "ring", y=labels)
    whole = dfeas.solve(tmp_path / "ring", kernel="polynomial")
    dfeas.solve(tmp_path / "ring", kernel="polynomial", max_passes=1, out=tmp_path / "run")
    found = dfeas.resume(tmp_path / "run", max_passes=100)
    assert isinstance(found, dfeas.Result)
    assert (found.margin_lower, found.kernel) == (whole.margin_lower, whole.kernel)
