"""Ingest on workers: the bytes of one process, from every source that can be split; and what a killed one leaves."""

import gzip
import json
import os
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import dfeas
from dfeas.cli.main import commands
from dfeas.data.ingest.ingest import ingest as ingest_here
from dfeas.data.ingest.options import IngestOptions
from dfeas.data.storage.layout import Header
from dfeas.errors import BadInputError, CorruptDataError, UsageError
from tests.data.making import N, content, opened, source, spread


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


SHARED: dict[str, tuple[str, dict[str, Any]]] = {
    "h5ad": ("csr.h5ad", {"sparse": True}),
    "h5ad, dense": ("csr.h5ad", {"positive": "no"}),
    "npy, sparse": ("plain.npy", {"sparse": True}),
    "npy": ("plain.npy", {}),
    "zarr": ("zarr3", {}),
    "hdf5": ("attribute.h5", {}),
    "parquet": ("folder", {}),
    "one class": ("folder", {"positive": "yes", "dtype": "float32"}),
    "labels beside": ("plain.npy", {"positive": "1"}),
}
"""What workers share, and how it is read."""


@pytest.fixture
def sources(tmp_path: Path, small: None) -> dict[str, tuple[Path, dict[str, Any]]]:
    """In small pieces."""
    found = {}
    for place, (name, (format_, more)) in enumerate(SHARED.items()):
        (tmp_path / str(place)).mkdir()
        given, options, _ = source(format_, tmp_path / str(place))
        found[name] = given, {**options, **more}
    return found


def test_the_same_bytes_as_one_process(sources: dict[str, tuple[Path, dict[str, Any]]], tmp_path: Path) -> None:
    for index, (name, (src, options)) in enumerate(sources.items()):
        for rows in (16,) if "," in name else (None, 16):
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
        header = dfeas.ingest(src, here, block_rows=16, **options)
        assert dfeas.ingest(src, there, block_rows=16, client=client, **options) == header
        assert content(there) == content(here)
    src, options = sources["npy"]
    X = np.load(src)
    X[70, 2] = np.inf
    np.save(src, X)
    with pytest.raises(BadInputError, match=r"out: 1 or more entries are not finite \(point 70 feature 2: inf"):
        dfeas.ingest(src, tmp_path / "out", block_rows=16, client=client, **options)
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
            ingest(src, tmp_path / "out", block_rows=16, pool=killed, **options)
    with pytest.raises(CorruptDataError, match="incomplete dataset, its ingest was interrupted"):
        opened(tmp_path / "out")
    other = ingest(np.load(src)[::-1], tmp_path / "out", labels=np.load(options["y"]), block_rows=16)
    with pytest.raises(FileNotFoundError):
        late[0].write()
    found = opened(tmp_path / "out")
    assert found.header == other
    assert not list((tmp_path / "out").glob("part-*"))


def test_what_cannot_be_shared_is_read_here_and_that_is_said(
    sources: dict[str, tuple[Path, dict[str, Any]]], client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    src, beside = sources["npy"]
    X = np.load(src)
    np.savez(tmp_path / "X.npz", X=X, y=np.load(beside["y"]))
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
    bare = tmp_path / "bare.parquet"
    pq.write_table(pa.table([np.arange(1.0, N + 1)], names=["a"]), bare)
    for labels in (np.arange(N - 1) % 2, np.arange(N + 1) % 2):
        np.save(tmp_path / "short.npy", labels)
        with pytest.raises(BadInputError, match=f"{len(labels)} labels for {N} points; give one a point"):
            ingest(bare, tmp_path / "out", labels=str(tmp_path / "short.npy"), pool=spread)
    tables, by = sources["parquet"]
    victim = tables / "part-1.parquet"
    whole = victim.read_bytes()
    victim.write_bytes(whole[:100] + bytes(1000) + whole[1100:])
    with pytest.raises(CorruptDataError, match=r"part-1.parquet: damaged from point"):
        ingest(tables, tmp_path / "out", pool=spread, **by)
    assert not (tmp_path / "out").exists()
