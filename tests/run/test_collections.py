"""What is asked of a Dask array or frame on its cluster beyond one verdict has the bits of the same arrays in memory."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from scipy.sparse import coo_array, csc_matrix, csr_array, csr_matrix, random_array

import dfeas
from dfeas.errors import BadInputError

ALIKE = ("verdict", "proof", "margin_lower", "margin_upper", "passes", "fingerprint")


@pytest.fixture(scope="module")
def given(arrays: Callable[..., Any], client: Any) -> tuple[Any, ...]:
    """Points and labels that no hyperplane separates, in memory and persisted in chunks, and three classes."""
    X, labels = arrays("one-flip", 12, 9000, margin=0.05)
    three = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.2, 0.2])]
    there = client.persist([da.from_array(each, chunks=2000) for each in (X, labels, three)])
    return X, labels, three, there


FIT = {"C": [0.1, 1.0], "folds": 3, "intercept": True}
ASKED: dict[str, tuple[Callable[..., Any], bool, dict[str, Any]]] = {
    "scaled and centred": (dfeas.solve, False, {"transform": ["std", "center"]}),
    "lengths": (dfeas.solve, False, {"transform": "lengths", "intercept": True}),
    "scaled by maxima": (dfeas.solve, False, {"transform": ["maxabs", "lengths"]}),
    "a path": (dfeas.soft_margin, False, FIT),
    "squares": (dfeas.soft_margin, False, {"loss": "squared_hinge", "class_weight": "balanced"}),
    "order": (dfeas.soft_margin, False, {"method": "sgd", "max_passes": 10, "intercept_scaling": 1}),
    "weights": (dfeas.soft_margin, False, {"weights": np.arange(9000.0) % 3 + 1}),
    "race": (dfeas.race, False, {"methods": ["mirror-prox-one-pass", "online-perceptron"], "max_passes": 12}),
    "classes": (dfeas.one_vs_rest, True, {"intercept": True, "max_passes": 9}),
    "soft classes": (dfeas.soft_margin_classes, True, {"intercept": True, "max_passes": 9}),
}


@pytest.mark.parametrize("case", ASKED)
def test_answers_are_those_of_the_arrays_in_memory(given: tuple[Any, ...], client: Any, case: str) -> None:
    X, labels, three, (points, signs, names) = given
    verb, several, options = ASKED[case]
    here = verb(X, three if several else labels, **options)
    there = verb(points, names if several else signs, client=client, **options)
    alike = [getattr(each, "results", {"": each}) for each in (here, there)]
    assert list(alike[0]) == list(alike[1])
    for name, result in alike[1].items():
        assert said(result) == said(alike[0][name])
        more = result.reads - alike[0][name].reads
        assert 0 <= more <= 1 or verb is not dfeas.solve, "labels of a conflict take a read of their own"


def said(result: Any) -> tuple[Any, ...]:
    names = ("verdict", "proof", "margin_lower", "margin_upper", "objective", "lower", "C", "passes", "fingerprint", "sides")
    coef = None if result.coef is None else (result.coef.tobytes(), result.bias)
    return coef, *(getattr(result, name, None) for name in names)


@pytest.fixture(scope="module")
def entries() -> tuple[Any, ...]:
    """Sparse points in several blocks, labels that a hyperplane separates, and some that none does."""
    rng = np.random.default_rng(0)
    X = random_array((40_000, 200), density=0.05, format="csr", rng=rng, data_sampler=rng.standard_normal)
    scores = np.asarray(X @ rng.standard_normal(200))
    kept = np.abs(scores) > 0.05
    X, scores = X[kept], scores[kept]
    return X, scores > 0, scores + rng.standard_normal(len(scores)) > 0


def in_chunks(X: Any, rows: Sequence[int], columns: int, kind: Any) -> Any:
    """A Dask array of sparse blocks."""
    blocks = X.tocsr()
    edges = np.cumsum([0, *rows, X.shape[0] - sum(rows)])

    def of(i: int, first: int) -> Any:
        return kind(blocks[edges[i] : edges[i + 1], first : first + columns])

    def lazy(i: int, first: int) -> Any:
        shape = edges[i + 1] - edges[i], min(columns, X.shape[1] - first)
        return da.from_delayed(dask.delayed(of, pure=False)(i, first), shape, X.dtype, meta=kind((0, 0), dtype=X.dtype))

    parts = [[lazy(i, first) for first in range(0, X.shape[1], columns)] for i in range(len(edges) - 1)]
    return da.concatenate([da.concatenate(row, axis=1) for row in parts])


@pytest.mark.parametrize(
    ("there", "rows", "columns", "kind"),
    [(False, (9000, 1, 20_000), 200, csr_array), (True, (20_000,), 64, csr_matrix)],
    ids=["threads", "cluster"],
)
def test_sparse_chunks_are_what_the_matrix_is(
    entries: tuple[Any, ...], client: Any, there: bool, rows: Sequence[int], columns: int, kind: Any, tmp_path: Path
) -> None:
    X, apart, mixed = entries
    lazy, options = in_chunks(X, rows, columns, kind), {"client": client if there else False}
    here, found = dfeas.solve(X, apart), dfeas.solve(lazy, apart, **options)
    assert here.proof == "rigorous"
    assert [getattr(found, name) for name in ALIKE] == [getattr(here, name) for name in ALIKE]
    assert found.reads == here.reads + 1, "entries are counted in a read of their own"
    assert np.array_equal(found.separator, here.separator)
    soft, lazily = dfeas.soft_margin(X, mixed, C=0.1), dfeas.soft_margin(lazy, da.from_array(mixed), C=0.1, **options)
    assert (lazily.objective, lazily.fingerprint) == (soft.objective, soft.fingerprint)
    assert np.array_equal(lazily.y, soft.y)
    assert np.array_equal(here.predict(lazy).compute(), here.predict(X))
    for name, points in (("here", X), ("there", lazy)):
        dfeas.ingest(points, tmp_path / name, y=mixed, **({} if points is X else options))
    assert dfeas.info(tmp_path / "here").fingerprint == dfeas.info(tmp_path / "there").fingerprint


def test_sparse_chunks_are_looked_at_when_they_come(client: Any) -> None:
    y = np.arange(6) % 2
    twice = csr_array((np.ones(4), [1, 1, 0, 2], [0, 2, 3, 4, 4, 4, 4]), shape=(6, 3))  # with an entry that comes twice
    here = dfeas.solve(twice.copy(), y)
    dense = da.from_array(np.ones((6, 3)), chunks=3).map_blocks(lambda block: block, meta=csr_array((0, 0)))
    undeclared = da.from_array(np.ones((6, 3)), chunks=3).map_blocks(csr_array, dtype=float, meta=np.empty((0, 0)))
    wide = in_chunks(csr_array(np.full((6, 3), 1 + 1e-12)), [3], 3, csr_array).map_blocks(
        lambda block: block, dtype=np.float32, meta=csr_array((0, 0), dtype=np.float32)
    )
    for options in ({"client": False}, {"client": client}):
        assert dfeas.solve(in_chunks(twice, [2], 2, csr_array), y, **options).fingerprint == here.fingerprint
        assert dfeas.solve(dense, y, **options).verdict == "infeasible"
        with pytest.raises(BadInputError, match=r"1\.000000000001 came as float64, and float32 has no such number"):
            dfeas.solve(wide, y, **options)
        assert dfeas.solve(undeclared, y, **options).verdict == "infeasible"


@pytest.mark.parametrize("kind", [csr_array, csc_matrix, coo_array])
@pytest.mark.parametrize("chunks", [(3, 3), (2, 1)])
def test_sparse_chunks_that_are_declared_dense_are_dense(kind: Any, chunks: tuple[int, int], client: Any) -> None:
    X = np.random.default_rng(1).integers(-2, 3, (40, 3)).astype(float)
    y = X @ [1, 2, -3] > 0.5
    points = da.from_array(X, chunks=chunks)
    given = points.map_blocks(kind, meta=np.empty((0, 0)))
    for options in ({"client": False}, {"client": client}):
        for verb in (dfeas.solve, dfeas.soft_margin):
            assert verb(given, y, **options).fingerprint == verb(points, y, **options).fingerprint
    assert np.array_equal(dfeas.solve(X, y).predict(given).compute(), y)
