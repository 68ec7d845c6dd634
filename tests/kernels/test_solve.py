"""Solving with a kernel: verdicts against explicit features, evidence, files, the command line."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import dfeas
from dfeas.engine.local import LocalEngine
from dfeas.errors import BadInputError, CheckFailedError, UsageError
from dfeas.kernels.checker.bounds import Kernel
from dfeas.kernels.checker.core import KernelSums, balances
from dfeas.kernels.space import KERNEL_METHODS
from dfeas.verify.certificate import load
from dfeas.verify.core import check
from tests.exact import conflicts
from tests.fuzzing.oracle import whole
from tests.kernels.quadratic import KERNEL, instance
from tests.verify.test_verify import marked


def ring(n: int, seed: int, m: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Points inside and outside a sphere, a little apart."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m))
    size = np.linalg.norm(X, axis=1)
    labels = np.where(size > np.sqrt(m), 1, -1)
    return X * (1 + 0.05 * labels)[:, None], labels


@pytest.mark.parametrize("seed", range(120))
def test_verdicts_are_those_of_explicit_features(seed: int) -> None:
    X, labels, conflict = instance(seed)
    result = dfeas.solve(X, labels, kernel=KERNEL)
    assert (result.verdict, result.proof) == (("infeasible", "exact") if conflict else ("feasible", "rigorous"))


@pytest.mark.parametrize("seed", range(12))
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


@pytest.mark.parametrize("kernel", ["linear", "cosine"])
@pytest.mark.parametrize("seed", range(6))
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
    sums = KernelSums(Kernel("polynomial", 1.0, 200, 1.0), np.arange(490), X, rng.choice([-1.0, 1.0], (490, 1)), (None,))
    assert not balances(sums)


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
    assert tight.weights is not None
    assert tight.support is not None
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
    with pytest.raises(BadInputError, match="returned shape"):
        dfeas.solve(X, labels, kernel=lambda a, b: np.ones(3))


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (
            lambda a, b: np.exp(((a[:, None] - b[None]) ** 2).sum(2)),
            "not positive definite: its least eigenvalue on 300 points is -",
        ),
        (lambda a, b: 1.0 + 0.1 * np.outer(a[:, 0] > 0, b[:, 0] > -9), "not symmetric: K(x, z) ="),
        (lambda a, b: -(a @ b.T), "not positive: K(x, x) = -"),
    ],
)
def test_functions_that_are_no_kernels_are_said(kernel: Callable[..., np.ndarray], words: str) -> None:
    X, labels = ring(300, 2)
    with pytest.raises(BadInputError, match=re.escape(words)):
        dfeas.solve(X, labels, kernel=kernel)


def test_an_interrupted_run_goes_on_to_the_same_bits(room: Path, tmp_path: Path) -> None:
    whole = dfeas.solve(room / "ring", kernel="polynomial")
    dfeas.solve(room / "ring", kernel="polynomial", max_passes=1, out=tmp_path / "run")
    with pytest.raises(UsageError, match="kernel is for the Python function"):
        dfeas.resume(tmp_path / "run", kernel="rbf")
    found = dfeas.resume(tmp_path / "run", max_passes=100)
    assert isinstance(found, dfeas.Result)
    assert (found.margin_lower, found.kernel) == (whole.margin_lower, whole.kernel)


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kernels")
    X, labels = ring(5000, 5, 3)
    np.savez(folder / "ring.npz", X=X.astype(np.float32), y=labels)
    dfeas.ingest(folder / "ring.npz", folder / "ring")
    return folder


def test_a_run_is_kept_verified_and_the_same_on_a_cluster(room: Path, client: Any) -> None:
    here = dfeas.solve(room / "ring", kernel="rbf", out=room / "here")
    there = dfeas.solve(room / "ring", kernel="rbf", out=room / "there", client=client)
    assert (here.verdict, here.why) == ("feasible", there.why)
    assert "gamma one over the median of the distances squared of 1000 points" in here.why
    for found, other in ((here.support, there.support), (here.weights, there.weights)):
        assert found is not None
        assert other is not None
        assert np.array_equal(found, other)
    proved = dfeas.verify_run(room / "here")
    assert (proved.verdict, proved.proof) == ("feasible", "rigorous")
    assert json.loads((room / "here" / "result.json").read_text())["kernel"]["name"] == "rbf"
    assert here.reads <= 12


@pytest.mark.parametrize(
    "change",
    [
        lambda kept: {"weights": -kept["weights"]},
        lambda kept: {"weights": np.where(np.arange(len(kept["weights"])) == 0, 5.0, kept["weights"])},
        lambda kept: {"support": kept["support"][::-1].copy()},
        lambda kept: {"kernel": np.array('{"name": "linear", "gamma": 0, "degree": 0, "coef0": 0}')},
        lambda kept: {"kind": np.array("gordan")},
        lambda kept: {"fingerprint": np.array("0" * 64)},
        lambda kept: {"y": np.ones(3)},
    ],
)
def test_a_certificate_that_was_changed_is_refused(room: Path, tmp_path: Path, change: Callable[..., Any]) -> None:
    if not (room / "kept").exists():
        dfeas.solve(room / "ring", kernel="rbf", out=room / "kept")
    with np.load(room / "kept" / "certificate.npz") as arrays:
        kept = dict(arrays)
    np.savez(tmp_path / "c.npz", **{**kept, **change(kept)})
    with pytest.raises((CheckFailedError, dfeas.errors.CorruptDataError)):
        dfeas.verify_certificate(room / "ring", tmp_path / "c.npz")


def test_options_that_do_not_fit_are_refused() -> None:
    X, labels = ring(50, 0)
    for options, words in [
        ({"kernel": "rbf", "intercept": True}, "takes no intercept"),
        ({"kernel": "rbf", "method": "winnow"}, "does not work with a kernel"),
        ({"kernel": dfeas.Kernel("rbf", degree=2)}, "has no degree"),
    ]:
        with pytest.raises(UsageError, match=words):
            dfeas.solve(X, labels, **options)


def test_exact_conflicts_are_told_from_near_ones() -> None:
    X = np.array([[1.0, 0], [1.0, 2.0**-40], [0, 1]])
    result = dfeas.solve(X, np.array([1, -1, 1]), kernel=dfeas.Kernel("rbf", gamma=1.0), eps=1e-6)
    assert result.verdict in ("feasible", "eps-infeasible")
    assert Fraction(result.margin_upper) > 0


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "float16"])
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
