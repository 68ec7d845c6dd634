"""What is asked of a Dask array or frame on its cluster beyond one verdict has the bits of the same arrays in memory."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix, random_array

import dfeas
from dfeas.data.source import DataSpec
from dfeas.engine.collection import open_collection
from dfeas.errors import BadInputError

ALIKE = ("verdict", "proof", "margin_lower", "margin_upper", "passes", "fingerprint")


@pytest.fixture(scope="module")
def given(arrays: Callable[..., Any], client: Any) -> tuple[Any, ...]:
    """Points and labels that no hyperplane separates, in memory and persisted in chunks, and three classes."""
    X, labels = arrays("one-flip", 12, 9000, margin=0.05)
    three = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.2, 0.2])]
    there = client.persist([da.from_array(each, chunks=2000) for each in (X, labels, three)])
    return X, labels, three, there


@pytest.mark.parametrize(
    "options",
    [
        {"transform": ["std", "center"]},
        {"transform": "lengths", "intercept": True},
        {"transform": ["maxabs", "lengths"]},
    ],
)
def test_transforms(given: tuple[Any, ...], client: Any, options: dict[str, Any]) -> None:
    X, labels, _, (points, signs, _) = given
    here, there = dfeas.solve(X, labels, **options), dfeas.solve(points, signs, client=client, **options)
    assert there.proof == "rigorous" or there.proof == "exact"
    assert [getattr(there, name) for name in ALIKE] == [getattr(here, name) for name in ALIKE]
    assert here.reads <= there.reads <= here.reads + 1, "labels of a conflict come to the driver by a read of their own"


@pytest.mark.parametrize(
    "options",
    [
        {"C": [0.1, 1.0], "folds": 3, "intercept": True},
        {"loss": "squared_hinge", "class_weight": "balanced"},
        {"method": "sgd", "max_passes": 10, "intercept_scaling": 1},
        {"weights": np.arange(9000.0) % 3 + 1},
    ],
)
def test_soft_margins(given: tuple[Any, ...], client: Any, options: dict[str, Any]) -> None:
    X, labels, _, (points, signs, _) = given
    here, there = dfeas.soft_margin(X, labels, **options), dfeas.soft_margin(points, signs, client=client, **options)
    assert np.array_equal(here.y, there.y)
    same = ("objective", "lower", "C", "passes", "fingerprint", "sides")
    assert [getattr(there, name) for name in same] == [getattr(here, name) for name in same]


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


@pytest.mark.parametrize("there", [False, True], ids=["threads", "cluster"])
@pytest.mark.parametrize(("rows", "columns", "kind"), [((9000, 1, 20_000), 200, csr_array), ((20_000,), 64, csr_matrix)])
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
    with pytest.raises(BadInputError, match=r"sparse chunks, declared dense; give map_blocks meta="):
        dfeas.solve(undeclared, y, client=False)


def test_dual_variables(given: tuple[Any, ...], client: Any, tmp_path: Path) -> None:
    X, labels, _, (points, signs, _) = given
    dfeas.soft_margin(X, labels, dual=tmp_path / "here.npy")
    dfeas.soft_margin(points, signs, dual=tmp_path / "there.npy", client=client)
    assert np.array_equal(np.load(tmp_path / "here.npy"), np.load(tmp_path / "there.npy"))


def test_each_class_against_the_rest(given: tuple[Any, ...], client: Any) -> None:
    X, _, three, (points, _, names) = given
    for verb in (dfeas.one_vs_rest, dfeas.soft_margin_classes):
        here: Any = verb(X, three, intercept=True, max_passes=9)
        there: Any = verb(points, names, intercept=True, max_passes=9, client=client)
        assert list(there.results) == list(here.results) == ["high", "low", "middle"]
        for name, result in there.results.items():
            assert result.sides == here.results[name].sides
            assert result.fingerprint == here.results[name].fingerprint
            assert digest_of(result) == digest_of(here.results[name])
    dataset = open_collection(client, DataSpec(points, names, one_vs_rest=True))
    assert [dataset.count(code) for code in dataset.codes] == [int((three == name).sum()) for name in dataset.classes]


def digest_of(result: Any) -> tuple[Any, ...]:
    coef = None if result.coef is None else (result.coef.tobytes(), result.bias)
    return coef, getattr(result, "verdict", None), getattr(result, "objective", None), result.passes


def test_races(given: tuple[Any, ...], client: Any) -> None:
    X, labels, _, (points, signs, _) = given
    options: dict[str, Any] = {"methods": ["mirror-prox-one-pass", "online-perceptron"], "max_passes": 12}
    here, there = dfeas.race(X, labels, **options), dfeas.race(points, signs, client=client, **options)
    assert {name: digest_of(result) for name, result in there.results.items()} == {
        name: digest_of(result) for name, result in here.results.items()
    }


def test_a_run_goes_on(given: tuple[Any, ...], client: Any, tmp_path: Path) -> None:
    _, _, _, (points, signs, _) = given
    options: dict[str, Any] = {"method": "mirror-prox-one-pass", "eps": 0.01, "client": client}
    whole = dfeas.solve(points, signs, **options)
    cut = dfeas.solve(points, signs, out=tmp_path / "run", max_passes=3, **options)
    assert cut.passes == 3 < whole.passes
    on = dfeas.resume(tmp_path / "run", points, signs, max_passes=1000, client=client)
    assert [getattr(on, name) for name in ("verdict", "margin_lower", "margin_upper", "passes", "fingerprint")] == [
        getattr(whole, name) for name in ("verdict", "margin_lower", "margin_upper", "passes", "fingerprint")
    ]


def test_separation_and_the_widest_margin(given: tuple[Any, ...], client: Any) -> None:
    X, labels, _, (points, signs, _) = given
    here, there = dfeas.separation(X, labels), dfeas.separation(points, signs, client=client)
    assert (there.kind, there.proof) == (here.kind, here.proof)
    assert there.kind == "overlap"
    wide = da.where(points[:, :1] > 0, points + 1, points - 1)
    sign = da.where(points[:, 0] > 0, 1, -1)
    found = dfeas.hard_margin(wide, sign, client=client)
    assert found.margin == dfeas.hard_margin(wide.compute(), sign.compute()).margin
