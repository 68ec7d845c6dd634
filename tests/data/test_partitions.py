"""Ingest on workers: the bytes of one process, from every source that can be split; and what a killed one leaves."""

import gzip
import json
import os
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import zarr
from click.testing import CliRunner

import dfeas
from dfeas.cli.main import commands
from dfeas.data.ingest.ingest import ingest as ingest_here
from dfeas.data.ingest.options import IngestOptions
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.layout import Header
from dfeas.data.writers import chunks
from dfeas.data.writers.sparse import SparseWriter
from dfeas.errors import BadInputError, CorruptDataError, UsageError

N, M = 1000, 4


def spread(work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """As workers do: what travels is pickled, and pieces end in another order."""
    for item in reversed(list(items)):
        yield pickle.loads(pickle.dumps(work(pickle.loads(pickle.dumps(item)))))


def ingest(src: Any, out: Any, pool: Any = None, note: Any = None, progress: Any = None, **options: Any) -> Header:
    """By a pool of processes, or in this one."""
    return ingest_here(
        src,
        out,
        IngestOptions(**{"labels" if name == "y" else name: value for name, value in options.items()}),
        pool=pool,
        note=note,
        progress=progress,
    )


def in_turn(work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """One piece after the other."""
    return map(work, items)


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[Path, dict[str, Any]]]:
    """The same points in all formats that can be shared; small pieces of everything."""
    monkeypatch.setattr(chunks, "PIECE_BYTES", 3000)
    monkeypatch.setattr(SparseWriter, "chunk_entries", 70)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((N, M)), np.array(["b", "c", "a"])[rng.integers(0, 3, N)]
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    zarr.create_array(tmp_path / "X.zarr", data=X, chunks=(77, 3))
    with h5py.File(tmp_path / "X.h5", "w") as file:
        file["X"], file["y"] = X, y.astype("S1")
    (tmp_path / "tables").mkdir()
    pq.write_table(pa.table([*X.T], names=list("pqrs")), tmp_path / "bare.parquet", row_group_size=150)
    table = pa.table([*X.T, y], names=["p", "q", "r", "s", "kind"])
    for name, first, stop, rows in (("a", 0, 300, 7), ("b", 300, 300, 5), ("c", 300, 920, 400), ("d", 920, N, 1)):
        pq.write_table(table.slice(first, stop - first), tmp_path / "tables" / f"{name}.parquet", row_group_size=rows)
    few = np.where(rng.random((N, M)) < 0.2, X, 0)
    few[128:192] = few[-40:] = 0  # blocks without an entry
    csr = sp.csr_array(few)
    with h5py.File(tmp_path / "X.h5ad", "w") as file:
        group, parts = file.create_group("X"), {name: getattr(csr, name) for name in ("data", "indices", "indptr")}
        group.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": csr.shape})
        for name, part in parts.items():
            group[name] = part
        file.create_group("obs")["kind"] = y.astype("S1")
    beside = {"y": str(tmp_path / "y.npy")}
    return {
        "h5ad": (tmp_path / "X.h5ad", {"label_column": "kind"}),
        "h5ad, dense": (tmp_path / "X.h5ad", {"label_column": "kind", "sparse": False, "positive": "a"}),
        "npy, sparse": (tmp_path / "X.npy", {**beside, "sparse": True}),
        "npy": (tmp_path / "X.npy", beside),
        "zarr": (tmp_path / "X.zarr", beside),
        "hdf5": (tmp_path / "X.h5", {}),
        "parquet": (tmp_path / "tables", {"label_column": "kind"}),
        "one class": (tmp_path / "tables", {"label_column": "kind", "positive": "c", "dtype": "float32"}),
        "labels beside": (tmp_path / "bare.parquet", {**beside, "positive": "a"}),
    }


def content(path: Path) -> dict[str, Any]:
    """Every file of a dataset; metadata as values."""
    files = {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}
    return {name: json.loads(text) if name.endswith(".json") else text for name, text in files.items()}


def test_the_same_bytes_as_one_process(sources: dict[str, tuple[Path, dict[str, Any]]], tmp_path: Path) -> None:
    for index, (name, (src, options)) in enumerate(sources.items()):
        for rows in (64,) if "," in name else (None, 64):
            outs = [tmp_path / f"{index}-{rows}-{kind}" for kind in ("here", "spread")]
            told: list[list[Any]] = [[], []]
            done: list[int] = []
            ingest(src, outs[0], block_rows=rows, note=told[0].append, **options)
            more = {"block_rows": rows, "note": told[1].append, "progress": lambda n, _, done=done: done.append(n)}
            ingest(src, outs[1], pool=spread, **more, **options)
            assert content(outs[0]) == content(outs[1]), name
            assert told[0] == told[1]
            assert done[-1] == N
            assert len(done) <= 20


def test_on_a_cluster(sources: dict[str, tuple[Path, dict[str, Any]]], client: Any, tmp_path: Path) -> None:
    for name in ("parquet", "h5ad"):
        src, options = sources[name]
        here, there = tmp_path / f"{name}-here", tmp_path / f"{name}-spread"
        header = dfeas.ingest(src, here, block_rows=64, **options)
        assert dfeas.ingest(src, there, block_rows=64, client=client, **options) == header
        assert content(there) == content(here)
    X = np.load(tmp_path / "X.npy")
    X[700, 2] = np.inf
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(BadInputError, match=r"out: 1 or more entries are not finite \(point 700 feature 2: inf"):
        dfeas.ingest(tmp_path / "X.npy", tmp_path / "out", y=str(tmp_path / "y.npy"), block_rows=64, client=client)
    assert not (tmp_path / "out").exists()


class _Killed(BaseException):
    """Ends a process, as far as this test goes."""


def test_what_a_killed_one_left_is_no_part_of_the_next(
    sources: dict[str, tuple[Path, dict[str, Any]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    src, options = sources["npy"]
    late: list[Any] = []

    def killed(work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        first, second, *_ = [pickle.loads(pickle.dumps(item)) for item in items]
        late.append(second)
        yield work(first)
        raise _Killed

    with monkeypatch.context() as patch:
        patch.setattr("dfeas.data.writers.dataset.discard", lambda path, lock: os.close(lock))  # nobody clears up
        with pytest.raises(_Killed):
            ingest(src, tmp_path / "out", block_rows=64, pool=killed, **options)
    with pytest.raises(CorruptDataError, match="incomplete dataset, its ingest was interrupted"):
        open_source(Source(DataSpec(tmp_path / "out")))
    other = ingest(np.load(src)[::-1], tmp_path / "out", labels=np.load(tmp_path / "y.npy"), block_rows=64)
    with pytest.raises(FileNotFoundError):
        late[0].write()
    found = open_source(Source(DataSpec(tmp_path / "out")))
    assert found.header == other
    assert not list((tmp_path / "out").glob("part-*"))


def test_what_cannot_be_shared_is_read_here_and_that_is_said(
    sources: dict[str, tuple[Path, dict[str, Any]]], client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, beside = np.load(tmp_path / "X.npy"), sources["npy"][1]
    np.savez(tmp_path / "X.npz", X=X, y=np.load(tmp_path / "y.npy"))
    (tmp_path / "X.csv").write_text("a,b\n1,2\n3,4\n")
    (tmp_path / "X.svm.gz").write_bytes(gzip.compress(b"0 1:2\n1 1:3\n"))
    alone: list[tuple[Any, dict[str, Any], str]] = [
        (tmp_path / "X.npz", {}, "X.npz: an archive"),
        (tmp_path / "X.csv", {"label_column": "a"}, "X.csv: text"),
        (tmp_path / "X.svm.gz", {}, "X.svm.gz: text"),
        (X, beside, "the array: in the memory of this process"),
        (pa.table({"a": [1.0, 2.0], "b": [1, 2]}), {"label_column": "b"}, "the data frame: in the memory"),
    ]
    for index, (given_, more, words) in enumerate(alone):
        notes: list[str] = []
        here, there = tmp_path / f"{index}-here", tmp_path / f"{index}-there"
        dfeas.ingest(given_, here, **more)
        dfeas.ingest(given_, there, client=client, note=notes.append, **more)
        assert content(here) == content(there)
        assert f"{words}" in notes[0]
        assert notes[0].endswith("so this process read it in order; workers share .npy, zarr, HDF5 and Parquet")
    monkeypatch.setitem(sys.modules, "dfeas.engine.clusters", None)  # no worker is started for it
    text = ["ingest", str(tmp_path / "X.csv"), "--label-column", "a", "--local", "2", "--json"]
    done = CliRunner().invoke(commands, [*text[:2], str(tmp_path / "out"), *text[2:]])
    assert done.exit_code == 0, done.stderr
    assert any("X.csv: text, so this process read it" in note for note in json.loads(done.stdout)["notes"])
    done = CliRunner().invoke(commands, [*text[:2], str(tmp_path / "X.npz"), *text[2:]])
    assert (done.exit_code, "X.npz: exists already; choose" in done.stdout + done.stderr) == (2, True), done.stderr


def test_what_workers_cannot_read_or_write_is_refused(sources: dict[str, tuple[Path, dict[str, Any]]], tmp_path: Path) -> None:
    src, options = sources["npy"]
    with pytest.raises(UsageError, match="workers write to a folder that all of them see"):
        ingest(src, "s3://bucket/out", pool=spread, **options)
    for labels in (np.arange(N - 1) % 2, np.arange(N + 1) % 2):
        np.save(tmp_path / "short.npy", labels)
        with pytest.raises(BadInputError, match=f"{len(labels)} labels for {N} points; give one a point"):
            ingest(tmp_path / "bare.parquet", tmp_path / "out", labels=str(tmp_path / "short.npy"), pool=spread)
    tables, by = sources["parquet"]
    victim = tables / "c.parquet"
    whole = victim.read_bytes()
    victim.write_bytes(whole[:3000] + bytes(2000) + whole[5000:])
    with pytest.raises(CorruptDataError, match=r"c.parquet: damaged from point"):
        ingest(tables, tmp_path / "out", pool=spread, **by)
    assert not (tmp_path / "out").exists()
