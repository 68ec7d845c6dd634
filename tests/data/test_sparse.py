"""Sparse datasets: what is written is what is read, from every source, and what is damaged or no matrix is seen."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import scipy.sparse as sp
import zarr

import dfeas
from dfeas.data.generate.points import SparseInstance, generate
from dfeas.data.ingest.ingest import why_alone
from dfeas.data.ingest.options import IngestOptions
from dfeas.data.ingest.sparse_files import CscRows
from dfeas.data.storage.chunks import ChunkReader
from dfeas.data.storage.readers import Buffers, Cost, Files
from dfeas.data.storage.sparse_readers import CHUNK_ENTRIES, CsrChunks, EntryChunks
from dfeas.data.storage.stored_array import StoredArray
from dfeas.data.writers.dataset import output_place
from dfeas.data.writers.sparse import SparseWriter
from dfeas.errors import BadInputError, CorruptDataError, UsageError
from tests.data.making import opened, read_rows, write_csr


def matrix(n: int = 300, m: int = 50, seed: int = 0, dtype: Any = np.float32) -> sp.csr_array:
    """With empty rows, and features that no point has."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, m)) < 0.08, rng.standard_normal((n, m)), 0).astype(dtype)
    X[:, 7] = 0
    X[::50] = 0
    return sp.csr_array(X)


def labels_of(n: int) -> np.ndarray:
    return np.resize([0, 1, 1], n)


def same(first: sp.csr_array, second: sp.csr_array) -> bool:
    return first.shape == second.shape and (first != second).nnz == 0 and first.dtype == second.dtype


@pytest.fixture
def stored(tmp_path: Path) -> Callable[..., Path]:
    """A dataset of ``matrix()``."""

    def make(X: sp.csr_array | None = None, rows: int = 64) -> Path:
        X = matrix() if X is None else X
        sp.save_npz(tmp_path / "X.npz", X)
        np.save(tmp_path / "y.npy", labels_of(X.shape[0]))
        dfeas.ingest(tmp_path / "X.npz", tmp_path / "data", y=str(tmp_path / "y.npy"), block_rows=rows)
        return tmp_path / "data"

    return make


def test_what_is_written_is_what_is_read_here_and_by_zarr(stored: Callable[..., Path]) -> None:
    X = matrix()
    path = stored(X)
    held = opened(path)
    assert isinstance(held.points, CsrChunks)
    assert same(read_rows(held), X)
    group = zarr.open_group(path, mode="r")
    parts = (group["X/data"][:], group["X/indices"][:], group["X/indptr"][:])
    assert same(sp.csr_array(parts, shape=tuple(group["X"].attrs["shape"])), X)
    assert (group["X"].attrs["encoding-type"], parts[2].dtype) == ("csr_matrix", np.int64)
    norms = np.concatenate([b.norm.copy() for b in held.read_blocks(range(held.blocks), Cost())])
    assert np.allclose(norms, np.linalg.norm(X.toarray(), axis=1))
    assert held.header is not None
    assert (held.header.zero, held.header.entries) == ((np.diff(X.indptr) == 0).sum(), X.nnz)
    cost = Cost()
    list(held.read_blocks(range(held.blocks), cost))
    assert cost.bytes_read < 10 * X.nnz + 8 * X.shape[0] + 8 * held.blocks


@pytest.mark.usefixtures("small")
def test_blocks_reach_over_chunks_of_entries(tmp_path: Path) -> None:
    X = matrix(64 * 4)  # whole blocks: the end of indptr has a chunk of its own
    with output_place(tmp_path / "data"):
        target = SparseWriter(tmp_path / "data", X.shape[0], X.shape[1], np.dtype(np.float32), 64)
        for index in (2, 0, 3, 1):  # in any order
            target.write(index, X[64 * index : 64 * (index + 1)], np.resize(np.array([1, -1], np.int8), 64))
        target.finish(("0", "1"))
    held = opened(tmp_path / "data")
    assert len(list((tmp_path / "data" / "X" / "data").glob("c.*"))) == -(-X.nnz // 100) > 4
    assert same(read_rows(held), X)
    assert np.array_equal(zarr.open_array(tmp_path / "data" / "X" / "data", mode="r")[:], X.data)


def test_every_source_gives_the_same_dataset(tmp_path: Path, stored: Callable[..., Path]) -> None:
    X, labels = matrix(dtype=np.float64), labels_of(300)
    wanted = opened(stored(X)).fingerprint
    with h5py.File(tmp_path / "X.h5ad", "w") as file:
        untidy = X.copy()
        for array in (untidy.indices, untidy.data):  # indices of a row may come in any order
            array[X.indptr[1] : X.indptr[2]] = array[X.indptr[1] : X.indptr[2]][::-1]
        write_csr(file, untidy)
        file.create_group("obs")["kind"] = labels
    found = dfeas.ingest(tmp_path / "X.h5ad", tmp_path / "h5ad", label_column="kind", block_rows=64)
    assert found.fingerprint == wanted
    lines = []
    for label, row in zip(labels, (X[[i]] for i in range(300)), strict=True):
        words = [f"{j + 1}:{v!r}" for j, v in zip(row.indices.tolist(), row.data.tolist(), strict=True)]
        lines.append(" ".join([str(label), *words, *([] if 49 in row.indices else ["50:0"])]))  # stored zeros are dropped
    text = "\n".join(lines)
    (tmp_path / "X.svm").write_text(text)
    assert dfeas.ingest(tmp_path / "X.svm", tmp_path / "svm", block_rows=64).fingerprint == wanted
    given = dfeas.ingest(tmp_path / "X.svm", tmp_path / "given", block_rows=64, features=50)
    assert given.fingerprint == wanted
    np.savez(tmp_path / "dense.npz", X=X.toarray(), y=labels)
    assert dfeas.ingest(tmp_path / "dense.npz", tmp_path / "sparse", block_rows=64, sparse=True).fingerprint == wanted
    dense = dfeas.ingest(tmp_path / "X.npz", tmp_path / "dense", y=str(tmp_path / "y.npy"), sparse=False)
    assert (dense.entries, opened(tmp_path / "dense").bytes) == (None, X.shape[0] * X.shape[1] * 8)


def test_columns_are_turned_into_rows_in_bounded_memory(
    tmp_path: Path, stored: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    X = matrix()
    wanted = opened(stored(X)).fingerprint
    monkeypatch.setattr(CscRows, "read_entries", 37)
    sp.save_npz(tmp_path / "csc.npz", X.tocsc())
    with h5py.File(tmp_path / "csc.h5ad", "w") as file:
        write_csr(file, X.tocsc(), "csc_matrix")
    for index, (name, most, reads) in enumerate((("csc.npz", 600, 4), ("csc.h5ad", 1, 6), ("csc.h5ad", 10**6, 2))):
        monkeypatch.setattr(CscRows, "gathered_entries", most)
        notes: list[str] = []
        options: dict[str, Any] = {"y": str(tmp_path / "y.npy"), "block_rows": 64}
        found = dfeas.ingest(tmp_path / name, tmp_path / f"{index}", note=notes.append, **options)
        assert found.fingerprint == wanted
        assert notes == [f"CSC, entries by columns: read {reads} times; CSR would be read once"]
    assert "csc.h5ad: CSC, so this process read it in order" in why_alone(tmp_path / "csc.h5ad", IngestOptions())


def test_what_is_no_csr_matrix_is_refused(tmp_path: Path) -> None:
    X = matrix()
    np.save(tmp_path / "y.npy", labels_of(300))

    def ingest(**parts: Any) -> None:
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        whole = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape, "format": b"csr", **parts}
        np.savez(tmp_path / "X.npz", **whole)
        dfeas.ingest(tmp_path / "X.npz", tmp_path / "out", y=str(tmp_path / "y.npy"))

    nan, wild, low = X.data.copy(), X.indices.copy(), X.indices.copy()
    nan[5], wild[9], low[9] = np.nan, 50, -1
    point, other = (int(np.searchsorted(X.indptr, at, side="right")) - 1 for at in (5, 9))
    with pytest.raises(BadInputError, match=rf"point {point} feature {X.indices[5]}: nan"):
        ingest(data=nan)
    for indices in (wild, low):
        with pytest.raises(BadInputError, match=rf"point {other} has an entry in feature {indices[9]}, expected 0 .. 49"):
            ingest(indices=indices)
    with pytest.raises(CorruptDataError, match="do not fit"):
        ingest(indptr=X.indptr[::-1])
    with pytest.raises(CorruptDataError, match="do not fit"):
        ingest(data=X.data[:-1])
    with pytest.raises(BadInputError, match="kind coo; CSR and CSC are read"):
        ingest(format=b"coo")
    with pytest.raises(CorruptDataError, match="not a CSC matrix of shape 300 x 50"):
        ingest(format=b"csc")
    by_column = X.tocsc()
    far = by_column.indices.copy()
    far[9] = 300
    feature = int(np.searchsorted(by_column.indptr, 9, side="right")) - 1
    with pytest.raises(BadInputError, match=rf"feature {feature} has an entry in point 300, expected 0 .. 299"):
        ingest(format=b"csc", data=by_column.data, indices=far, indptr=by_column.indptr)
    assert not (tmp_path / "out").exists()


def test_indices_of_a_row_that_changed_places_are_damage_to_the_checker_too(stored: Callable[..., Path]) -> None:
    path = stored()  # with zero points: nothing but the checker reads it
    first = int(matrix().indptr[1])
    group = zarr.open_group(path, mode="r+")
    group["X/indices"][first : first + 2] = group["X/indices"][first : first + 2][::-1]
    for options in ({}, {"intercept": True}):
        with pytest.raises(CorruptDataError, match=r"chunk 0 of X is damaged .*; restore or ingest again"):
            dfeas.solve(path, **options)


def test_entries_beyond_two_to_the_31_are_found(tmp_path: Path) -> None:
    """Only the chunks that a block needs exist: 4.3e9 entries are not stored."""
    first = 2**32 + 12_345
    folders = {"data": np.dtype(np.float32), "indices": np.dtype(np.int32)}
    indices = np.arange(30, dtype=np.int32).reshape(3, 10).ravel() * 1_000_000_000 % 2_000_000_000
    indices = np.sort(indices.reshape(3, 10), axis=1).ravel()
    held = {"data": np.arange(30, dtype=np.float32) + 1, "indices": indices.astype(np.int32)}
    chunk, within = divmod(first, CHUNK_ENTRIES)
    for name, dtype in folders.items():
        (tmp_path / name).mkdir()
        filled = np.zeros(CHUNK_ENTRIES, dtype)
        filled[within : within + 30] = held[name]
        (tmp_path / name / f"c.{chunk}").write_bytes(filled.tobytes() + b"....")
    (tmp_path / "indptr").mkdir()
    starts = first + np.arange(3, dtype=np.int64) * 10
    (tmp_path / "indptr" / "c.1").write_bytes(starts.tobytes() + b"....")

    def chunks(name: str, n: int, rows: int, dtype: Any) -> ChunkReader:
        return ChunkReader(name, Files(tmp_path / name), StoredArray((n,), rows, np.dtype(dtype)))

    files = [EntryChunks(chunks(name, first + 30, CHUNK_ENTRIES, dtype)) for name, dtype in folders.items()]
    indptr = chunks("indptr", 7, 3, np.int64)
    reader = CsrChunks("logical", 6, 2_000_000_001, 3, np.array([0, first, first + 30]), files[0], files[1], indptr)
    block = reader.read(1, Buffers())
    assert block.shape == (3, 2_000_000_001)
    assert np.array_equal(block.indptr, [0, 10, 20, 30])
    assert np.array_equal(block.data, held["data"])
    assert np.array_equal(block.indices, held["indices"])


def test_matrices_in_memory_are_not_changed_and_mean_what_scipy_means() -> None:
    X = matrix(dtype=np.float64)
    untidy = sp.csr_array((np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape)  # each twice
    before = untidy.data.copy(), untidy.indices.copy()
    for form in (untidy, X.tocsc(), X.tocoo(), sp.csr_matrix(X)):
        assert (read_rows(opened(form, labels_of(300))) != X).nnz == 0
    assert np.array_equal(untidy.data, before[0])
    assert np.array_equal(untidy.indices, before[1])
    broken = X.copy()
    broken.indices[3] = 99
    with pytest.raises(BadInputError, match="not a CSR matrix"):
        opened(broken, labels_of(300))
    for bad in (X * 1j, sp.csr_array((0, 5))):
        with pytest.raises(BadInputError):
            opened(bad, [])


@pytest.mark.parametrize("kind", ["halfspace", "planted", "gaussian", "one-flip"])
def test_generated_texts_have_the_answer_that_they_promise(tmp_path: Path, kind: str) -> None:
    texts = SparseInstance(kind, 100, 1200, 0.06, margin=0.005, block_rows=200)
    header = generate(texts, tmp_path / "data")
    assert header.entries == pytest.approx(0.06 * 100 * 1200, rel=0.05)
    assert header.norm_min == pytest.approx(1, abs=1e-6)
    again, label = texts.block(2)
    block = opened(tmp_path / "data").read(2, Buffers(), Cost())
    assert same(again, block.points)
    assert np.array_equal(label, block.label)
    found = dfeas.solve(tmp_path / "data")
    feasible = kind in ("halfspace", "planted")
    assert (found.verdict, found.proof) == (("feasible", "rigorous") if feasible else ("infeasible", "exact"))
    if kind == "planted":
        assert found.margin_upper >= 0.005
    if kind == "one-flip":
        assert set(found.support) == {
            texts.wrong_point,
            texts.wrong_point - 1 if texts.wrong_point % 200 else texts.wrong_point + 1,
        }


def test_a_margin_that_no_text_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="hardly a point"):
        generate(SparseInstance("planted", 100, 50, 0.05, margin=0.9), tmp_path / "data")
    assert not (tmp_path / "data").exists()
    for density in (0.0, 1.0, 0.001):
        with pytest.raises(UsageError, match="density"):
            SparseInstance("planted", 100, 50, density)
