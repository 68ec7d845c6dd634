"""Cones with sparse rows: the same answers as from arrays, on disk and in memory, and what is proved of large ones."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import dfeas
from dfeas.cones import algebra as norms_module
from dfeas.cones import curvature
from dfeas.cones.algebra import Group, cone_norms, elements
from dfeas.cones.checker import rows as cone_rows
from dfeas.cones.parts import DensePart
from dfeas.cones.product import Placing, Product
from dfeas.cones.scaling import scaling
from dfeas.cones.singular import largest_singular, parts
from dfeas.cones.space import ConeEngine
from dfeas.cones.working_set import SelectCones
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage import files
from dfeas.data.storage.layout import rows_of
from dfeas.engine.local import LocalEngine
from dfeas.linalg import csr
from dfeas.passes.softmin import Softmin
from tests.cones import test_conformance
from tests.cones.making import sparse_problem
from tests.cones.plain import cones_of, matrix, norm, problem, spectrum, unit

MANY: dict[str, Any] = {"l": 6, "q": [2, 5, 5, 3] * 3, "s": [2, 4, 4, 3] * 3}


class TestSparseConeMethods(test_conformance.TestConeMethods):
    """Methods keep the laws of the protocol on sparse rows, too: one keeps rows, one weighs all, one names some."""

    names = ("working-set", "smooth-perceptron", "perceptron")

    def rows(self, family: str) -> Any:
        X = problem(np.random.default_rng(1), self.cone, 4, self.families[family])
        wide = np.zeros((len(X), 20))
        wide[:, :4] = X
        return wide, sp.csr_array(wide)


def test_norms_are_the_largest_singular_values_whatever_way_they_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = sparse_problem(rng, MANY, 30, None)
    label = Placing(Product.from_scs(MANY), len(X.toarray())).label
    expected = np.ones(len(label))
    for kind, _, rows in cones_of(MANY):
        expected[rows] = norm(kind, X.toarray()[rows])
    for at_once in (norms_module.AT_ONCE, 500, 1):
        monkeypatch.setattr(norms_module, "AT_ONCE", at_once)
        np.testing.assert_allclose(cone_norms(X, label), expected, rtol=1e-12)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.003, 0.01, 0.05, 0.3]), st.sampled_from([1, 3, 50]))
def test_norms_are_those_of_parts_that_share_no_feature(seed: int, share: float, rounds: int) -> None:
    rng = np.random.default_rng(seed)
    X = sparse_problem(rng, MANY, 30, None, share)
    label = Placing(Product.from_scs(MANY), X.shape[0]).label
    ours, array = cone_norms(X, label), X.toarray()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cone_rows, "ROUNDS", rounds)
        for kind, size, rows in cones_of(MANY):
            exact = norm(kind, array[rows])
            np.testing.assert_allclose(ours[rows], exact, rtol=1e-12)
            low, high = cone_rows.SparseConeRows(kind, size, np.zeros(1, np.int64), X[rows]).norms(np.zeros(1, np.int64))
            assert low[0] <= exact * (1 + 1e-13)
            assert exact * (1 - 1e-13) <= high[0] <= low[0] * (1 + 1e-5)


def test_parts_are_the_finest_whatever_the_order_of_features() -> None:
    chain = sp.csr_array(
        (np.ones(2000), (np.arange(2000) // 2, np.random.default_rng(0).permutation(1001)[(np.arange(2000) + 1) // 2]))
    )
    apart = sp.csr_array(sp.vstack([chain, sp.csr_array((3, 1001)), sp.eye_array(1001, format="csr")[:997]]))
    found = {rows.shape[0] // len(owner): owner.tolist() for owner, rows in parts(apart, 1000)}
    assert found == {1000: [0], 1: [1] * 997}


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([(1, 7), (40, 3), (3, 40), (60, 60)]), st.floats(0.02, 1.0))
def test_lanczos_finds_the_largest_singular_value(seed: int, shape: tuple[int, int], share: float) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape) * (rng.random(shape) < share)
    assert largest_singular(sp.csr_array(X)) == pytest.approx(np.linalg.norm(X, 2), rel=1e-11, abs=1e-300)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([(1, 7), (40, 6), (6, 40), (50, 50)]), st.floats(0.02, 0.5), st.booleans())
def test_the_checker_bounds_singular_values_of_large_sparse_rows(
    seed: int, shape: tuple[int, int], share: float, positive: bool
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape) * (rng.random(shape) < share) * 10.0 ** rng.integers(-9, 9)
    X = np.abs(X) if positive else X
    low, high = cone_rows.sigma_of_large(sp.csr_array(X))
    exact = float(np.linalg.norm(X, 2))
    assert low <= exact * (1 + 1e-14)
    assert high >= exact * (1 - 1e-14)
    assert high <= low * (1 + 1e-5) or exact == 0


def test_bounds_of_sparse_rows_hold_those_of_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    y = rng.standard_normal(12)
    for kind, size, small in (("l", 1, 1 << 18), ("q", 6, 1 << 18), ("s", 5, 1 << 18), ("q", 6, 1), ("s", 5, 1)):
        monkeypatch.setattr(cone_rows, "SMALL", small)
        d, count = rows_of(kind, size), 7
        X = sp.csr_array(rng.standard_normal((count * d, 12)) * (rng.random((count * d, 12)) < 0.3))
        X.data[:d] *= 1e90
        stored = cone_rows.SparseConeRows(kind, size, np.arange(0, count * d, d), X)
        dense = cone_rows.DenseConeRows(kind, size, stored.row, X.toarray().reshape(count, d, 12))
        exact = np.array([norm(kind, rows) for rows in dense.rows])
        low, high = stored.norms(np.arange(count))
        assert (low <= exact * (1 + 1e-13)).all()
        assert (high >= exact * (1 - 1e-13)).all()
        assert (high <= low * (1 + 1e-5)).all()
        np.testing.assert_array_equal(stored.most(), dense.most())
        assert (stored.frobenius() >= np.sqrt((dense.rows**2).sum(axis=(1, 2))) * (1 - 1e-14)).all()
        s, off = stored.scores(y)
        assert (np.abs(s - dense.scores(y)[0]) <= off + dense.scores(y)[1]).all()
        factor = rng.standard_normal((count, d))
        for ours, theirs in zip(stored.sums(factor), dense.sums(factor), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("few", [None, 0, 3, 1000])
@pytest.mark.parametrize(("kind", "size", "count"), [("q", 5, 20), ("q", 700, 2), ("s", 30, 2)])
def test_the_hessian_is_that_of_arrays(
    kind: str, size: int, count: int, few: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if few == 3:  # none of the kinds is asked with all of these numbers
        kind, size, count = ("l", 1, 50) if size == 5 else ("s", 4, 20)
    rng, d, m = np.random.default_rng(size), rows_of(kind, size), 200
    monkeypatch.setattr(curvature, "PAIRED", 0.0 if few is None else 1e12)
    monkeypatch.setattr(curvature, "MOST_PAIRED", 1 << 30)
    if few is not None:
        monkeypatch.setattr(curvature, "_divide_columns", lambda F, k: (min(few, F.shape[1]), 0.0))
        monkeypatch.setattr(curvature, "SCATTERED", 1e9)  # small cones have all features then
    X = sp.csr_array(rng.standard_normal((count * d, m)) * (rng.random((count * d, m)) < 0.02))
    group, e = Group(kind, size, np.arange(0, count * d, d)), np.tile(unit(kind, size), count)
    whole = csr.with_columns(X, -e[:, None])
    whole.eliminate_zeros()
    part, plain = curvature.SparsePart(group, whole), DensePart.of(group, X.toarray().reshape(count, d, m))
    z = np.append(rng.standard_normal(m) * 0.01, -9.0)
    s = part.element(z)
    np.testing.assert_allclose(s, plain.element(z), atol=1e-13)
    np.testing.assert_allclose(part.pull_back(s), plain.pull_back(s), atol=1e-10)
    between = scaling(group, s, plain.element(np.append(rng.standard_normal(m) * 0.01, -7.0)))
    assert ((part._pairs is not None) == (few is None)) or kind != "s"
    ours, theirs = part.curvature(between), plain.curvature(between)
    np.testing.assert_allclose(ours, theirs, atol=1e-11 * np.abs(theirs).max())
    image = np.stack([part.pull_back(between.apply_hessian(plain.D[:, :, j])) for j in range(0, m + 1, 40)])
    np.testing.assert_allclose(ours[::40], image, atol=1e-10 * np.abs(theirs).max())
    assert part.low(z[:-1]) == pytest.approx(plain.low(z[:-1]))


@pytest.mark.parametrize("margin", [0.3, None])
def test_the_answers_are_those_of_arrays(margin: float | None, tmp_path: Path) -> None:
    X = sparse_problem(np.random.default_rng(1), MANY, 30, margin)
    in_memory, dense = dfeas.from_cone_rows(X, MANY), dfeas.from_cone_rows(X.toarray(), MANY)
    header = dfeas.ingest(dfeas.from_cone_rows(X, MANY), tmp_path / "data")
    assert (header.format, header.entries) == (files.SPARSE_CONES, X.nnz)
    on_disk = open_source(Source(DataSpec(tmp_path / "data"), cones=True))
    Y, mu = np.random.default_rng(2).standard_normal((30, 3)), np.array([0.0, 0.1, 1.0])
    plain, *others = (ConeEngine(LocalEngine(each, 1)).run(Softmin(Y, mu)) for each in (dense, in_memory, on_disk))
    for other in others:
        np.testing.assert_array_equal(other.arg, plain.arg)
        for name in ("low", "lse", "mean"):
            np.testing.assert_allclose(getattr(other, name), getattr(plain, name), rtol=1e-9, atol=1e-11)
    kept = [ConeEngine(LocalEngine(each, 1)).run(SelectCones(Y[:, 0], np.inf, 40, 40)) for each in (dense, in_memory)]
    np.testing.assert_array_equal(kept[0].cones.index, kept[1].cones.index)
    np.testing.assert_allclose(kept[0].cones.rows, kept[1].cones.rows.toarray(), atol=1e-15)
    ours, theirs = (dfeas.solve(each, eps=1e-7) for each in (tmp_path / "data", dense))
    assert ours.verdict == theirs.verdict == ("feasible" if margin else "infeasible")
    if margin:
        least = min(
            float(spectrum(kind, size, X.toarray()[rows] @ ours.separator)[0].min()) / norm(kind, X.toarray()[rows])
            for kind, size, rows in cones_of(MANY)
        ) / np.linalg.norm(ours.separator)  # fmt: skip
        assert ours.margin_lower == pytest.approx(least, rel=1e-6)
        assert ours.margin_lower <= least * (1 + 1e-12)
        found, plain = (dfeas.predict(ours, each).least for each in (tmp_path / "data", dense))
        np.testing.assert_allclose(found, plain, rtol=1e-9, atol=1e-12)


def test_what_is_stored_sparse_is_a_matter_of_density(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for share, entries in ((0.1, True), (0.6, False)):
        X = sparse_problem(rng, MANY, 30, 0.3, share)
        assert (dfeas.from_cone_rows(X, MANY).entries is not None) == entries
        assert dfeas.from_cone_rows(X.toarray(), MANY).entries is None
    header = dfeas.ingest(dfeas.from_cone_rows(X, MANY), tmp_path / "data")
    assert (header.format, header.entries) == (files.PLAIN, None)


def maximum_cut(rng: np.random.Generator, k: int, edges: int) -> tuple[sp.csr_array, dict[str, Any]]:
    """diag(y) - t L > 0, t > 0, of a graph with a Laplacian L: y is above it where it is large."""
    L = np.zeros((k, k))
    for i, j in rng.integers(0, k, (edges, 2)):
        if i != j:
            L[[i, j], [j, i]] -= 1
            L[[i, j], [i, j]] += 1
    columns = [elements(np.diag(each)) for each in np.eye(k)] if k < 50 else None
    place = np.cumsum(np.append(0, np.arange(k, 1, -1)))
    diagonal = sp.csr_array((np.ones(k), (place, np.arange(k))), shape=(rows_of("s", k), k))
    if columns is not None:
        np.testing.assert_array_equal(diagonal.toarray(), np.array(columns).T)
    X = sp.hstack([diagonal, sp.csr_array(-elements(L)[:, None])])
    return sp.csr_array(sp.vstack([sp.csr_array(([1.0], ([0], [k])), shape=(1, k + 1)), X])), {"l": 1, "s": [k]}


def test_a_matrix_of_some_hundreds_of_rows_is_decided() -> None:
    rng = np.random.default_rng(7)
    small, cone = maximum_cut(rng, 20, 40)
    dense, ours = dfeas.solve(dfeas.from_cone_rows(small.toarray(), cone)), dfeas.solve(dfeas.from_cone_rows(small, cone))
    assert dense.verdict == ours.verdict == "feasible"
    assert ours.margin_lower == pytest.approx(dense.margin_lower, rel=0.5)
    X, cone = maximum_cut(rng, 300, 600)
    result = dfeas.solve(dfeas.from_cone_rows(X, cone), memory="500MB")
    assert (result.verdict, result.proof) == ("feasible", "rigorous")
    y = result.separator / np.linalg.norm(result.separator)
    s, gram = X[1:] @ y, (X[1:].T @ X[1:]).toarray()
    least = np.linalg.eigvalsh(matrix(s, 300))[0] / np.sqrt(np.linalg.eigvalsh(gram)[-1])
    assert 0 < result.margin_lower <= min(least, y[-1]) * (1 + 1e-9)
