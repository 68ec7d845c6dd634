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
from hypothesis import given, settings
from hypothesis import strategies as st

import dfeas
from dfeas.cli.main import commands
from dfeas.data.ingest.ingest import ingest as ingest_here
from dfeas.data.ingest.ingest import worth_starting
from dfeas.data.ingest.options import IngestOptions
from dfeas.data.ingest.text import TextFile
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.layout import Header
from dfeas.data.writers import chunks
from dfeas.data.writers.sparse import SparseWriter
from dfeas.errors import BadInputError, CorruptDataError, DfeasError, UsageError

N, M = 1000, 4
ENDS = ["\n", "\r\n", "\n\n", "\r", "\n"]
"""Of lines of CSV."""


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
    """The same points in all formats that can be split, as text with lines of all kinds; small pieces of everything."""
    monkeypatch.setattr(chunks, "PIECE_BYTES", 3000)
    monkeypatch.setattr(TextFile, "run_bytes", 2500)
    monkeypatch.setattr(TextFile, "range_bytes", 9000)
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
    rows = [[repr(v) for v in row] for row in X.tolist()]
    text = "".join(f'{",".join(row)},"{label}"{end}' for row, label, end in zip(rows, y, np.resize(ENDS, N), strict=True))
    (tmp_path / "X.csv").write_bytes(b"\xef\xbb\xbf\n\np,q,r,s,kind\r\n" + text.removesuffix("\n").encode())
    (tmp_path / "bare.tsv").write_text("\n".join("\t".join(row) for row in rows))
    few = np.where(rng.random((N, M)) < 0.2, X, 0)
    few[128:192] = few[-40:] = 0  # blocks without an entry
    code = np.searchsorted(["a", "b", "c"], y)
    words = [" ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row) if v or j == 3) for row in few.tolist()]
    notes = np.resize(["", " # 1:2", "\n# all of it", "\n", " \r", "\n \t"], N)
    (tmp_path / "X.svm").write_bytes("".join(f"{k} {w}{s}\n" for k, w, s in zip(code, words, notes, strict=True)).encode())
    csr = sp.csr_array(few)
    with h5py.File(tmp_path / "X.h5ad", "w") as file:
        group, parts = file.create_group("X"), {name: getattr(csr, name) for name in ("data", "indices", "indptr")}
        group.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": csr.shape})
        for name, part in parts.items():
            group[name] = part
        file.create_group("obs")["kind"] = y.astype("S1")
    beside = {"y": str(tmp_path / "y.npy")}
    return {
        "csv": (tmp_path / "X.csv", {"label_column": "kind"}),
        "tsv": (tmp_path / "bare.tsv", {**beside, "header": False, "dtype": "float32"}),
        "svmlight": (tmp_path / "X.svm", {"sparse": True}),
        "svmlight, rounded": (tmp_path / "X.svm", {"sparse": True, "dtype": "float32", "features": 4}),
        "svmlight, dense": (tmp_path / "X.svm", {"sparse": False, "features": 6, "positive": "2", "dtype": "float32"}),
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
    for name in ("parquet", "svmlight"):
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


def test_what_cannot_be_split_is_said(
    sources: dict[str, tuple[Path, dict[str, Any]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    src, options = sources["npy"]
    X = np.load(src)
    np.savez(tmp_path / "X.npz", X=X, y=np.load(tmp_path / "y.npy"))
    (tmp_path / "X.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n3,4\n"))
    (tmp_path / "X.svm.bz2").write_bytes(b"")
    refused: list[tuple[Any, dict[str, Any], str]] = [
        (tmp_path / "X.npz", {}, "X.npz: an archive"),
        (tmp_path / "X.csv.gz", {"label_column": "a"}, "X.csv.gz: compressed"),
        (tmp_path / "X.svm.bz2", {}, "X.svm.bz2: compressed"),
        (X, options, "the array: in the memory of this process"),
        (pa.table({"a": [1.0, 2.0], "b": [1, 2]}), {"label_column": "b"}, "the data frame: in the memory"),
    ]
    for given_, more, words in refused:
        with pytest.raises(UsageError, match=rf"{words}.*, so one process reads it in order; workers read .npy, zarr"):
            ingest(given_, tmp_path / "out", pool=spread, **more)
    monkeypatch.setitem(sys.modules, "dfeas.engine.clusters", None)  # it is refused before anything is started
    done = CliRunner().invoke(commands, ["ingest", str(tmp_path / "X.csv.gz"), str(tmp_path / "out"), "--local", "2"])
    assert (done.exit_code, "compressed, so one process reads it" in done.stderr) == (2, True), done.stderr
    done = CliRunner().invoke(commands, ["ingest", str(tmp_path / "X.csv"), str(tmp_path / "X.csv"), "--local", "2"])
    assert (done.exit_code, "X.csv: exists already; choose" in done.stderr) == (2, True), done.stderr
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


LINES = [
    "1,2,u\n",
    "3,-4e1,v\n",
    "5,6,u\r\n",
    "\n",
    '7,"8","v"\n',
    "9,1,u\r",
    '1,2,"u\nv"\n',
    "1,2\n",
    "1,nan,u\n",
    "1,,u\n",
    "1,2,\n",
]
SPARSE_LINES = [
    "0 1:2\n",
    "1 2:3 4:1\n",
    "0\n",
    "\n",
    "# 1:1\n",
    "1 3:0 # 9:9\r\n",
    "0 \r\n",
    "1 2:1 1:1\n",
    "1 1:x\n",
    "u 1:2\n",
]


@settings(max_examples=30)
@given(st.data())
def test_the_same_points_or_the_same_words_of_any_text(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("text")
    name, lines, options = data.draw(
        st.sampled_from([("a.csv", LINES, {"label_column": "2", "header": False}), ("a.svm", SPARSE_LINES, {})])
    )
    good = st.sampled_from(lines[:6])
    text = "".join(
        [
            *data.draw(st.lists(good, max_size=25)),
            *data.draw(st.lists(st.sampled_from(lines), max_size=3)),
            *data.draw(st.lists(good, max_size=9)),
        ]
    )
    (folder / name).write_text(text + data.draw(st.sampled_from(["", lines[0].strip()])), newline="")
    found = []
    with pytest.MonkeyPatch.context() as patch:
        for kind, name_, size in ((TextFile, "run_bytes", 25), (TextFile, "range_bytes", 60), (chunks, "PIECE_BYTES", 100)):
            patch.setattr(kind, name_, size)
        for kind, how in (("here", None), ("there", in_turn)):
            try:
                header = ingest(folder / name, folder / kind, block_rows=4, pool=how, **options)
                found.append((header, content(folder / kind)))
            except DfeasError as error:
                found.append((type(error), str(error)))
    assert found[0] == found[1]


def test_text_that_changes_while_it_is_read_is_refused(sources: dict[str, tuple[Path, dict[str, Any]]], tmp_path: Path) -> None:
    src, options = sources["csv"]
    whole = src.read_bytes()
    at = whole.index(b"\n", 5000) + 1
    line = whole[at : whole.index(b"\n", at)]
    for looks, now in ((2, whole + whole[at:]), (12, whole[:at] + line.replace(b",", b"\n", 1) + whole[at + len(line) :])):
        src.write_bytes(whole)
        left = [looks]

        def changing(
            work: Callable[[Any], Any], items: Iterable[Any], left: list[int] = left, now: bytes = now
        ) -> Iterator[Any]:
            for item in items:
                left[0] -= 1
                if left[0] == 0:
                    src.write_bytes(now)
                yield work(item)

        with pytest.raises((CorruptDataError, BadInputError), match=r"changed while it was read|cells, expected 5"):
            ingest(src, tmp_path / "out", pool=changing, block_rows=64, **options)
        assert not (tmp_path / "out").exists()


def test_workers_do_not_start_for_a_little_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text("a,b,y\n1,2,0\n-1,0.5,1\n")
    monkeypatch.setitem(sys.modules, "dfeas.engine.clusters", None)
    words = ["ingest", str(tmp_path / "a.csv"), str(tmp_path / "out"), "--label-column", "y", "--local", "2", "--json"]
    done = CliRunner().invoke(commands, words)
    assert done.exit_code == 0, done.stderr
    assert any("to start 2 workers takes longer" in note for note in json.loads(done.stdout)["notes"])


def test_workers_start_for_much_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dfeas.data.ingest.ingest.processors", lambda: 8)
    for name, size in (("a.csv", 3_000_000_000), ("a.svm", 1_000_000_000)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(size)
        assert [worth_starting(str(tmp_path / name), IngestOptions(), workers) for workers in (1, 8)] == [False, True]
    np.save(tmp_path / "a.npy", np.ones((2, 2)))
    assert worth_starting(str(tmp_path / "a.npy"), IngestOptions(), 2)
