"""The Gram pass: its definition, of dense and sparse points, for one question and for classes; both engines, and its cost."""

import tracemalloc
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.engine import scan
from dfeas.engine.local import LocalEngine
from dfeas.engine.scan import runs
from dfeas.engine.tile_cache import TileCache
from dfeas.errors import CorruptDataError, UsageError
from dfeas.kernels.gram import GramProduct
from dfeas.kernels.kernel import NormalisedKernel, kernel_of
from dfeas.kernels.working_set import KernelSelect
from tests.bits import digest
from tests.decimals import kernel_value
from tests.kernels.making import LABELS, NAMES, dense, in_blocks, points, rings, six_points, texts

KERNELS = {
    "rbf": {"gamma": 0.2},
    "exponential": {"gamma": 0.2},
    "polynomial": {"gamma": 0.3, "degree": 3, "coef0": 0.5},
    "linear": {},
    "cosine": {},
}


Small = partial(GramProduct, tile_rows=16)


@pytest.fixture
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several runs of some 40 rows, each of several tiles of ``Small``."""
    monkeypatch.setattr(scan, "LEAST_ROWS", 40)
    monkeypatch.setattr(scan, "MOST_RUNS", 10**6)


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize(("name", "block_rows"), [*zip(KERNELS, (7, 25, 300, 7, 25), strict=True)])
def test_the_answer_is_the_product_with_the_gram_matrix(name: str, block_rows: int) -> None:
    X, labels = points(230, 5)
    kernel = kernel_of(name, **KERNELS[name])[0]
    G = dense(kernel, X, labels)
    rng = np.random.default_rng(1)
    engine = LocalEngine(in_blocks(X, labels, block_rows), 1)
    full = rng.standard_normal((230, 3))
    few = np.zeros((230, 2))
    few[[3, 77, 229], 0], few[77, 1] = 1.0, -2.0
    half = full * (np.arange(230) < 100)[:, None]
    near = 1e-6 if name == "exponential" else 1e-11  # the square root of a difference
    for V in (full, few, half, full * 1e200, full * [1, 1e-150, 0], np.zeros((230, 1))):
        scale = np.abs(V).sum(axis=0)
        assert (np.abs(engine.run(Small(kernel, V)) - G @ V) <= near * scale).all()
        unsigned = labels[:, None] * (G @ (labels[:, None] * V))
        assert (np.abs(engine.run(Small(kernel, V, signed=False)) - unsigned) <= near * scale).all()


@pytest.mark.usefixtures("short_runs")
def test_an_intercept_is_a_feature_and_a_function_a_kernel() -> None:
    X, labels = points(100, 3)
    V = np.random.default_rng(1).standard_normal((100, 2))
    wide = np.column_stack([X, np.ones(100)])
    kernel = kernel_of("linear")[0]
    engine = LocalEngine(in_blocks(X, labels, 30, intercept=True), 1)
    assert np.allclose(engine.run(Small(kernel, V)), dense(kernel, wide, labels) @ V)
    function = kernel_of(lambda a, b: (a @ b.T + 1) ** 2)[0]
    engine = LocalEngine(in_blocks(X, labels, 30), 1)
    assert np.allclose(engine.run(Small(function, V)), dense(kernel_of("polynomial", 1.0, 2, 1.0)[0], X, labels) @ V)


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize("name", KERNELS)
def test_single_precision_where_it_is_safe(name: str) -> None:
    X, labels = points(200, 5, dtype="float32")
    X[100:150] *= 1000  # gamma |x|^2 is far too large there
    kernel = kernel_of(name, **KERNELS[name])[0]
    G = dense(kernel, X.astype(np.float64), labels)
    V = np.random.default_rng(1).standard_normal((200, 2)) * 1e60
    found = LocalEngine(in_blocks(X, labels, 25), 1).run(Small(kernel, V))
    assert (np.abs(found - G @ V) <= 2e-6 * np.abs(V).sum(axis=0)).all()


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize(("name", "dtype"), [*zip(KERNELS, [np.float32, np.float64] * 3, strict=False)])
def test_products_are_those_of_arrays(monkeypatch: pytest.MonkeyPatch, name: str, dtype: type) -> None:
    monkeypatch.setattr("dfeas.linalg.csr.DENSE_WORK", 0 if dtype is np.float64 else 10**9)
    X, labels = texts(150)
    kernel = kernel_of(name, **KERNELS[name])[0]
    monkeypatch.setattr("dfeas.data.storage.layout.SPARSE_BLOCK_BYTES", 2000)
    dataset = open_source(Source(DataSpec(scipy.sparse.csr_array(X.astype(dtype)), labels, intercept=False)))
    assert dataset.blocks > 3
    engine, rng = LocalEngine(dataset, 1), np.random.default_rng(1)
    G = dense(kernel, X.astype(np.float64), labels)
    for V in (rng.standard_normal((150, 2)), np.eye(150, 1)):
        off = np.abs(engine.run(GramProduct(kernel, V, tile_rows=16)) - G @ V) / np.abs(V).sum()
        assert off.max() < (1e-6 if dtype is np.float32 or name == "exponential" else 1e-11)
    engine.close()


@pytest.mark.parametrize("name", ["rbf", "exponential"])
def test_tiles_of_different_runs_are_seen_from_one_place(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "LEAST_ROWS", 2)
    kernel, X = kernel_of(name, 1e3)[0], six_points(1e7)
    exact = np.array([[float(kernel_value(kernel, x, z)) for z in X] for x in X]) * np.outer(LABELS, LABELS)
    engine = LocalEngine(in_blocks(X, LABELS, 2), 1)
    for V in (np.eye(6), np.eye(6)[:, :1]):  # of all points, and of few
        assert np.abs(engine.run(GramProduct(kernel, V)) - exact @ V).max() < 1e-11
    engine.close()


@given(st.integers(1, 300_000), st.integers(1, 5000), st.integers(1, 300_000))
@settings(max_examples=200)
def test_runs_cover_the_rows_and_keep_to_blocks(n: int, m: int, block_rows: int) -> None:
    block_rows = min(n, block_rows)
    found = runs(n, m, block_rows)
    assert [found[0].start, found[-1].stop] == [0, n]
    assert all(a.stop == b.start for a, b in pairwise(found))
    for run in found:
        whole = run.start % block_rows == 0 and (run.stop % block_rows == 0 or run.stop == n)
        assert whole or run.start // block_rows == (run.stop - 1) // block_rows
        assert len(run) <= 2 * max(block_rows if len(run) > block_rows else 0, scan.LEAST_ROWS, n // scan.MOST_RUNS)


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Values of kernels in each tile that is computed."""
    sizes: list[int] = []
    tile = NormalisedKernel.tile

    def counted(self: NormalisedKernel, left: Any, right: Any) -> Any:
        found = tile(self, left, right)
        sizes.append(found.size)
        return found

    monkeypatch.setattr(NormalisedKernel, "tile", counted)
    return sizes


@pytest.mark.usefixtures("short_runs")
def test_tiles_are_computed_once_and_only_where_they_count(computed: list[int]) -> None:
    X, labels = points(320, 4)
    kernel = kernel_of("rbf", 0.2)[0]
    engine = LocalEngine(in_blocks(X, labels, 40), 1)

    def count(V: np.ndarray) -> int:
        computed.clear()
        engine.run(Small(kernel, V))
        return sum(computed)

    V = np.random.default_rng(0).standard_normal((320, 1))
    assert count(V) == (320**2 + 8 * (14**2 + 2 * 13**2)) / 2  # the upper half, and all of the tiles on the diagonal
    assert count(V * (np.arange(320) == 7)[:, None]) == 320
    assert count(np.where(np.arange(320) == 7, 1, np.where(np.arange(320) < 40, 1e-40, 0))[:, None]) == 320
    assert count(V * np.isin(np.arange(320), [7, 8, 300])[:, None]) == 3 * 320
    assert engine.cost.points <= 3 * 320
    half = count(V * (np.arange(320) < 160)[:, None])
    assert half < 0.8 * 320**2 / 2  # of pairs that touch nothing, none


def test_products_of_classes_share_their_tiles(computed: list[int]) -> None:
    X, labels = rings(120)
    kernel = kernel_of("polynomial", 0.7)[0]
    engine, rng = LocalEngine(in_blocks(X, labels, 50, one_vs_rest=True), 1), np.random.default_rng(1)
    asked = [GramProduct(kernel, rng.standard_normal((120, 2)), signed=code < 2).of_class(code) for code in range(3)]
    engine.run(asked[0])
    alone, computed[:] = sum(computed), []
    answers = engine.run(asked[0].batch(asked))
    engine.close()
    assert sum(computed) == alone
    for code, (question, answer) in enumerate(zip(asked, answers, strict=True)):
        G = dense(kernel, X.astype(float), np.where(labels == NAMES[code], 1, -1) if code < 2 else np.ones(120))
        assert np.allclose(answer, G @ question.V, atol=1e-4)


def test_selections_of_classes_are_those_of_each_alone() -> None:
    X, labels = rings(300)
    rng, kernel = np.random.default_rng(2), kernel_of("rbf", 0.3)[0]
    engine = LocalEngine(in_blocks(X, labels, 80, one_vs_rest=True), 2)
    asked = []
    for code in range(3):
        index = np.sort(rng.choice(100, 20 + code, replace=False))  # many are in two of them
        asked.append(KernelSelect(kernel, index, X[index], rng.standard_normal(len(index)), 0.1, 40, 20).of_class(code))
    for question, mine in zip(asked, engine.run(asked[0].batch(asked)), strict=True):
        alone = engine.run(question)
        assert (mine.violated, mine.arg) == (alone.violated, alone.arg)
        assert mine.low == pytest.approx(alone.low, abs=1e-12)
        assert np.array_equal(mine.columns.index, alone.columns.index)
        assert np.array_equal(mine.columns.scale, alone.columns.scale)
    engine.close()


def test_a_product_needs_a_small_part_of_the_memory_of_the_matrix() -> None:
    X, labels = points(6_000, 20, dtype="float32")
    engine = LocalEngine(open_source(Source(DataSpec(X, labels, intercept=False))), 1)
    question = GramProduct(kernel_of("rbf", 0.05)[0], np.ones((6_000, 1)))
    tracemalloc.start()
    engine.run(question)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6_000**2 * 4 / 20


@pytest.mark.usefixtures("short_runs")
def test_one_block_keeps_all_threads_busy() -> None:
    X, labels = points(320, 4)
    V = np.ones((320, 1))
    engine = LocalEngine(open_source(Source(DataSpec(X, labels, intercept=False))), 3)
    found = engine.run(Small(kernel_of("rbf", 0.2)[0], V))
    assert engine.cost.points == 3 * 320  # each thread read the block once
    assert np.allclose(found, dense(kernel_of("rbf", 0.2)[0], X, labels) @ V)


@pytest.mark.usefixtures("short_runs")
def test_reads_are_counted_as_they_are() -> None:
    X, labels = points(300, 4, dtype="float32")
    kernel = kernel_of("rbf", 0.2)[0]
    V = np.ones((300, 1))
    engine = LocalEngine(in_blocks(X, labels, 20), 1)  # 7 runs of 2 blocks, and one of 1
    engine.run(Small(kernel, V))
    # the left run stays while the right ones go by; the last one stays, too
    assert engine.cost.points == sum(300 - 40 * i for i in range(7))
    assert engine.cost.bytes_read == engine.cost.points * 16
    assert engine.cost.scan_seconds > 0
    X, labels = points(480, 4)
    engine = LocalEngine(in_blocks(X, labels, 160), 1)  # 3 blocks of 4 runs, of which two are held
    engine.run(Small(kernel, np.ones((480, 1))))
    assert engine.cost.points == 4 * 160


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize("block_rows", [7, 20, 160, 480])
def test_a_product_reads_what_is_projected(block_rows: int) -> None:
    dataset = in_blocks(*points(480, 4), block_rows)
    engine = LocalEngine(dataset, 1)
    engine.run(GramProduct(kernel_of("rbf", 0.5)[0], np.ones((480, 1))))
    engine.close()
    assert engine.cost.points <= 480 * scan.reads(dataset) <= 1.5 * engine.cost.points


@pytest.mark.usefixtures("short_runs")
def test_tiles_that_are_kept_change_no_bit_and_are_not_computed_again(computed: list[int], tmp_path: Path) -> None:
    X, labels = points(200, 4, dtype="float32")
    kernel = kernel_of("rbf", 0.2)[0]
    rng = np.random.default_rng(1)
    full = [Small(kernel, rng.standard_normal((200, k)), signed) for k, signed in ((1, True), (3, False), (2, True))]
    few = Small(kernel, np.eye(200, 2))
    expected = [digest(LocalEngine(in_blocks(X, labels, 30), 2).run(question)) for question in (*full, few)]
    size = 4  # of an entry
    whole = size * 200 * (200 + 16) // 2
    for budget, scratch in ((0, None), (10, None), (20_000, None), (whole, None), (20_000, tmp_path)):
        engine = LocalEngine(in_blocks(X, labels, 30), 2)
        engine.tile_cache = TileCache(budget, scratch)
        assert [digest(engine.run(question)) for question in (*full, few)] == expected
        assert engine.tile_cache.bytes <= budget
        computed.clear()
        engine.run(full[0])
        all_kept = budget == whole or scratch is not None
        left_out = 0 if all_kept else 200 * 201 // 2 - engine.tile_cache.bytes // size
        assert (sum(computed) == 0) == all_kept
        assert sum(computed) >= left_out
        assert engine.cost.points >= 200  # blocks are looked at, and would be found to have changed
        computed.clear()
        engine.run(few)
        assert sum(computed) == 400
        engine.close()
    assert not list(tmp_path.iterdir())


def full(path: Path, mode: str = "r") -> Any:
    raise OSError(28, "No space left on device")


def test_tiles_on_the_disk_come_and_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    X, labels = points(60, 3)
    question = GramProduct(kernel_of("rbf", 0.2)[0], np.ones((60, 1)))
    killed = tmp_path / "dfeas-tiles-of-a-killed-run"
    killed.mkdir()
    (killed / "lock").touch()
    (tmp_path / "dfeas-tiles-of-mine").mkdir()  # no lock: not ours
    engines = [LocalEngine(in_blocks(X, labels, 60), 1) for _ in range(3)]
    for engine in engines:
        engine.keep_pairs(0, tmp_path)
    assert len(list(tmp_path.iterdir())) == 4
    expected = digest(engines[0].run(question))
    for file in tmp_path.glob("dfeas-tiles-*/0-0"):
        file.unlink()
    with pytest.raises(CorruptDataError, match="gone from the scratch folder"):
        engines[0].run(question)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: type("Usage", (), {"total": 1000, "free": 40}))
    assert digest(engines[1].run(question)) == digest(engines[1].run(question)) == expected
    monkeypatch.undo()
    monkeypatch.setattr("pathlib.Path.open", full)
    assert digest(engines[2].run(question)) == expected
    monkeypatch.undo()
    for engine in engines:
        engine.close()
    assert [path.name for path in tmp_path.iterdir()] == ["dfeas-tiles-of-mine"]
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="no scratch folder can be made there"):
        TileCache(0, tmp_path / "file")
