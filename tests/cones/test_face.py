"""Conflicts on the boundary of cones: an exact no where all z with X'z = 0 are on it, beside oracles in fractions."""

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import flint
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import block_diag

import dfeas
from dfeas.cones.checker.face import is_conflict_on_face
from dfeas.cones.checker.rows import DenseConeRows
from dfeas.data.storage.patience import give_up_when
from dfeas.exact.algebraic import Field
from dfeas.exact.dyadic import undo_factor
from dfeas.exact.integers import nullspace


def basis_of(k: int) -> np.ndarray:
    """Symmetric matrices (k (k + 1) / 2, k, k) with entries 0 and 1."""
    i, j = np.tril_indices(k)
    basis = np.zeros((len(i), k, k))
    basis[np.arange(len(i)), i, j] = basis[np.arange(len(i)), j, i] = 1
    return basis


def lyapunov(A: np.ndarray, discrete: bool) -> tuple[np.ndarray, dict[str, Any]]:
    """P > 0, and A'P + PA < 0 or P - A'PA > 0."""
    P = basis_of(len(A))
    L = P - A.T @ P @ A if discrete else -(A.T @ P + P @ A)
    return np.vstack([dfeas.svec(P).T, dfeas.svec(L).T]), {"s": [len(A)] * 2}


def is_stable(A: np.ndarray, discrete: bool) -> bool:
    """In fractions: Lyapunov's equation with the right side I has one solution, and it is positive definite."""
    k, (i, j) = len(A), np.tril_indices(len(A))
    F = flint.fmpq_mat(k, k, [flint.fmpq(*float(v).as_integer_ratio()) for v in A.ravel()])
    basis = [flint.fmpq_mat(k, k, each.ravel().astype(int).tolist()) for each in basis_of(k)]
    images = [(E - F.transpose() * E * F if discrete else -1 * (F.transpose() * E + E * F)).tolist() for E in basis]
    equations = flint.fmpq_mat([[each[a][b] for each in images] for a, b in zip(i.tolist(), j.tolist(), strict=True)])
    try:
        x = equations.solve(flint.fmpq_mat([[int(each)] for each in i == j])).entries()
    except ZeroDivisionError:
        return False
    P = sum((value * E for value, E in zip(x[1:], basis[1:], strict=True)), x[0] * basis[0])
    return all(flint.fmpq_mat([row[:n] for row in P.tolist()[:n]]).det() > 0 for n in range(1, k + 1))


def similar(rng: np.random.Generator, D: np.ndarray) -> np.ndarray:
    """T D T^-1 for a T of integers with determinant 1."""
    T = np.eye(len(D))
    for _ in range(3):
        i, j = rng.choice(len(D), 2, replace=False)
        T[i] += rng.integers(-1, 2) * T[j]
    return np.asarray(T @ D @ np.round(np.linalg.inv(T)))


def draw_matrix(rng: np.random.Generator, kind: str) -> np.ndarray:
    """Of integers: any, or with eigenvalues on the imaginary axis, whose multiplicities may differ from their eigenspaces."""
    k, w = int(rng.integers(2, 5)), -float(rng.integers(1, 4))
    if kind == "any":
        return rng.integers(-3, 4, (k, k)).astype(float)
    stable = [-float(rng.integers(1, 4)) for _ in range(k - 2)]
    marginal = {
        "singular": block_diag([w], [0.0], *stable),
        "imaginary": block_diag([[0, 1], [w, 0]], *stable),
        "two pairs": block_diag([[0, 1], [-2, 0]], [[0, 1], [-3, 0]]),
        "Jordan": block_diag([[0, 1], [0, 0]], *stable),
        "Jordan of a pair": np.array([[0.0, 1, 1, 0], [-1, 0, 0, 1], [0, 0, 0, 1], [0, 0, -1, 0]]),
    }
    return similar(rng, marginal[kind])


KINDS = ["any", "singular", "imaginary", "two pairs", "Jordan", "Jordan of a pair"]


def test_the_exact_check_ends_with_the_limit_of_time() -> None:
    X, cones = lyapunov(similar(np.random.default_rng(3), block_diag([[0, 1], [-2, 0]], [[0, 1], [-3, 0]])), discrete=False)
    result = dfeas.solve(dfeas.from_cone_rows(X, cones))
    assert (result.verdict, result.proof) == ("infeasible", "exact")
    with give_up_when(lambda: False):
        assert dfeas.verify_certificate(dfeas.from_cone_rows(X, cones), result.evidence).proof == "exact"
    with give_up_when(lambda: True):
        assert dfeas.verify_certificate(dfeas.from_cone_rows(X, cones), result.evidence).proof == "rigorous"
    late = dfeas.solve(dfeas.from_cone_rows(X, cones), time_limit=1e-9)
    assert (late.verdict, late.stopped) == ("undecided", "time_limit")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_whether_integers_are_stable_is_decided(kind: str, seed: int) -> None:
    """Saddles, too, whose eigenvectors are of degree 2 to 6 over the rationals."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    A, discrete = draw_matrix(rng, kind), kind == "any" and bool(rng.integers(2))
    A = A / 2 if discrete else A
    X, cones = lyapunov(A, discrete)
    result = dfeas.solve(dfeas.from_cone_rows(X if rng.integers(2) else sp.csr_array(X), cones))
    if is_stable(A, discrete):
        assert (result.verdict, result.proof) == ("feasible", "rigorous")
    else:
        assert (result.verdict, result.proof, result.margin_upper) == ("infeasible", "exact", 0.0)
        assert "X'z = 0" in result.message


def test_numbers_are_read_back_from_what_svec_wrote() -> None:
    """Those of few bits exactly; others as numbers with the same rounded product, where there is one."""
    rng, root = np.random.default_rng(0), np.sqrt(2.0)
    whole = rng.integers(-(2**40), 2**40, 200) * 2.0 ** rng.integers(-300, 300, 200)
    np.testing.assert_array_equal(undo_factor(np.append(whole, 0.0) * root, root), np.append(whole, 0.0))
    given = rng.standard_normal(200)
    read = undo_factor(given * root, root)
    assert read is not None
    np.testing.assert_array_equal(read * root, given * root)
    missed = [v for v in root + np.spacing(root) * np.arange(20) if undo_factor(np.array([v]), root) is None]
    near = np.array([1 + k * np.spacing(1.0) for k in range(40)]) * root
    assert missed
    assert not np.isin(missed, near).any()


SADDLE = np.array([[1.0, 2, 0], [3, 3, 1], [0, 0, -2]])
"""With the eigenvalue 2 + sqrt 7."""


def test_a_file_a_dataset_and_a_run_say_so_as_well(tmp_path: Path) -> None:
    X, cones = lyapunov(SADDLE, False)
    dfeas.ingest(dfeas.from_cone_rows(X, cones), tmp_path / "data")
    P = basis_of(3)
    L = -(SADDLE.T @ P + P @ SADDLE)
    lines = [
        f"{q + 1} {block + 1} {i + 1} {j + 1} {each[q, i, j]}"
        for q in range(6)
        for block, each in enumerate((P, L))
        for i, j in zip(*np.triu_indices(3), strict=True)
        if each[q, i, j]
    ]
    (tmp_path / "lmi.dat-s").write_text("\n".join(["6", "2", "3 3", "0 0 0 0 0 0", *lines]))
    for data in (tmp_path / "data", tmp_path / "lmi.dat-s"):
        result = dfeas.solve(data, out=tmp_path / f"run-{data.name}")
        assert (result.verdict, result.proof) == ("infeasible", "exact")
        assert "X'z = 0 of X as svec rounds it" in result.message
        assert dfeas.verify_run(tmp_path / f"run-{data.name}").proof == "exact"


@pytest.mark.parametrize("seed", range(6))
def test_problems_of_cvxpy_with_equalities_are_decided(seed: int) -> None:
    """P with a given trace, or above I; the equality is solved before, and sums of integers stay exact."""
    cp = pytest.importorskip("cvxpy")
    A = draw_matrix(np.random.default_rng(seed), KINDS[seed]) if seed else SADDLE
    P = cp.Variable(A.shape, symmetric=True)
    for more in ([P >> 0, cp.trace(P) == 3], [P >> np.eye(len(A))]):
        problem = cp.Problem(cp.Minimize(0), [*more, A.T @ P + P @ A << 0])
        result = dfeas.solve(dfeas.from_cvxpy(problem))
        assert (result.verdict, result.proof) == ("infeasible", "exact")
        result.unpack(problem)


@pytest.mark.parametrize("kind", KINDS)
def test_a_matrix_that_is_barely_stable_is_never_refused(kind: str) -> None:
    """A z for A is tried on A - 2**-40 I, which is stable where A is marginal, and then has no z."""
    tried = 0
    for seed in range(4):
        A = draw_matrix(np.random.default_rng([seed, 77]), kind)
        near = A - 2.0**-40 * np.eye(len(A))
        (X, cones), (Y, _) = lyapunov(A, False), lyapunov(near, False)
        evidence = dfeas.solve(dfeas.from_cone_rows(X, cones)).evidence
        if evidence.kind == "gordan":
            x = np.zeros(len(X))
            x[evidence.support] = evidence.weights
            there, beside = ([(DenseConeRows("s", len(A), np.arange(2), each.reshape(2, -1, X.shape[1])), x.reshape(2, -1))]
                             for each in (X, Y))  # fmt: skip
            assert is_conflict_on_face(there)
            assert not (is_stable(near, False) and is_conflict_on_face(beside))
            tried += is_stable(near, False)
    assert tried or kind == "any"


@pytest.mark.parametrize("numbers", ["decimals", "floats"])
def test_rounded_sums_are_never_decided_wrongly(numbers: str) -> None:
    """A'P + PA of other numbers is rounded, and there may be no z or no y left: both answers stay true, or there is none."""
    rng, decided = np.random.default_rng(5), 0
    for _ in range(20):
        k = int(rng.integers(2, 4))
        A = np.round(rng.normal(size=(k, k)), 2 if numbers == "decimals" else 20)
        verdict = dfeas.solve(dfeas.from_cone_rows(*lyapunov(A, False))).verdict
        assert verdict in (("feasible",) if is_stable(A, False) else ("infeasible", "undecided"))
        decided += verdict == "feasible"
    assert decided


def planted(rng: np.random.Generator, sizes: list[int], Z: list[list[np.ndarray]], m: int) -> tuple[np.ndarray, dict[str, Any]]:
    """Rows of m integer matrices in each cone, whose products with some integer Z, a list for each cone, add up to zero."""
    i, j = zip(*(np.tril_indices(k) for k in sizes), strict=True)
    across = [
        np.concatenate([((2 - (a == b)) * each[a, b]) for each, a, b in zip(some, i, j, strict=True)])
        for some in zip(*Z, strict=True)
    ]
    free = nullspace(np.array(across, int).astype(object))
    while True:
        entries = (free @ rng.integers(-2, 3, (free.shape[1], m)).astype(object)).astype(float)
        if np.linalg.matrix_rank(entries) == m:
            break
    F, at = [], 0
    for k, a, b in zip(sizes, i, j, strict=True):
        each = np.zeros((m, k, k))
        each[:, a, b] = each[:, b, a] = entries[at : at + len(a)].T
        F.append(dfeas.svec(each).T)
        at += len(a)
    return np.vstack(F), {"s": sizes}


@pytest.mark.parametrize("kind", ["rank 1", "rank 2", "rank 1 of sqrt 2"])
@pytest.mark.parametrize("seed", range(5))
def test_a_planted_z_of_low_rank_is_found(kind: str, seed: int) -> None:
    """vv' of v = a + b sqrt 2 and its conjugate have a rational sum; there are as many features as leave no other z."""
    rng, Z = np.random.default_rng(seed), []
    sizes = [int(rng.integers(2, 5)) for _ in range(2)]
    for k in sizes:
        V = rng.integers(-2, 3, (k, 2))
        V[0, 0] = 1
        a, b = V.T
        outer = {"rank 1": [np.outer(a, a)], "rank 2": [V @ V.T]}
        Z.append(outer.get(kind, [np.outer(a, a) + 2 * np.outer(b, b), np.outer(a, b) + np.outer(b, a)]))
    most = sum(k * (k + 1) // 2 for k in sizes) - len(Z[0])
    for m in (most, most - 1, 2):
        result = dfeas.solve(dfeas.from_cone_rows(*planted(rng, sizes, Z, m)))
        assert (result.verdict, result.proof) == ("infeasible", "exact")


def tangent(a: int, b: int, more: float) -> np.ndarray:
    """Of (y_1, y_2, t, h): a y_1 + b y_2 > (1 - more) t, t > |(a, b)| h and h > |(y_1, y_2)|."""
    rows = [[a, b, more - 1, 0], [0, 0, 1, 0], [0, 0, 0, a], [0, 0, 0, b], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]]
    return np.array(rows, float)


@pytest.mark.parametrize(("a", "b"), [(3, 4), (1, 1), (1, 2), (2, 7)])
def test_second_order_cones_that_touch_conflict(a: int, b: int) -> None:
    """At a point whose norm is rational or not; beyond it there is a y."""
    cones = {"l": 1, "q": [3, 3]}
    result = dfeas.solve(dfeas.from_cone_rows(tangent(a, b, 0.0), cones))
    assert (result.verdict, result.proof) == ("infeasible", "exact")
    assert "svec" not in result.message
    assert dfeas.solve(dfeas.from_cone_rows(tangent(a, b, 2.0**-8), cones)).verdict == "feasible"


@pytest.mark.parametrize("seed", range(6))
def test_a_field_has_the_numbers_that_it_was_made_of(seed: int) -> None:
    """Of roots of drawn polynomials: products of matrices [[a, 1], [1, b]] are definite where a b > 1 and a > 0."""
    rng, bits = np.random.default_rng(seed), 800
    degree = int(rng.integers(1, 6))
    c = [-int(rng.integers(1, 9)), *map(int, rng.integers(0, 5, degree - 1)), 1]  # one root above 0
    low, high = 0, 16 << bits
    while high - low > 1:
        middle = (low + high) // 2
        value = sum(each * Fraction(middle, 1 << bits) ** t for t, each in enumerate(c))
        low, high = (low, middle) if value > 0 else (middle, high)
    theta, half = low, low // 2
    found = Field.of([theta, half + (3 << bits), 5 << bits], bits)
    assert found is not None
    field, digits, common = found
    np.testing.assert_allclose(field.floats(digits, common), [theta / (1 << bits), half / (1 << bits) + 3, 5], rtol=1e-12)
    one = np.array([common, *[0] * (field.degree - 1)], object)
    for number, times in ((digits[0], 1), (digits[1], 1), (-digits[1], 1), (digits[2], 0)):
        M = np.array([[number, times * one], [times * one, number]], object)
        value = float(field.floats(number, common))
        assert field.are_definite([M]) == (value > times)


def test_a_field_is_that_of_the_root_that_it_names() -> None:
    """theta of theta^2 = 2 has either sign, and none where no root is near."""
    root, theta = math.isqrt(2 << 1600), np.array([[[0, 1]]], object)
    for near, definite in ((root, True), (-root, False), (root + (1 << 790), False)):
        assert Field([-2, 0, 1], near, 800).are_definite([theta]) == definite


@pytest.mark.parametrize("order", [8, 14])
def test_simple_fractions_are_seen_where_newton_has_too_many_unknowns(order: int) -> None:
    """The eigenvector of the eigenvalue 0, or two of imaginary ones, are in float64 what they are."""
    for marginal in ([[0.0]], [[0.0, 1], [-2, 0]]):
        rng = np.random.default_rng(order)
        A = similar(rng, block_diag(marginal, *(-float(each) for each in rng.integers(1, 4, order - len(marginal)))))
        result = dfeas.solve(dfeas.from_cone_rows(*lyapunov(A, False)))
        assert (result.verdict, result.proof) == ("infeasible", "exact")
