"""Ingest on workers: the bytes of one process, from every source that can be split; and what a killed one leaves."""

import json
import pickle
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr

import dfeas
from dfeas.errors import BadInputError, CorruptDataError, UsageError
from dfeas.store import Source, open_source
from dfeas.store.ingest import ingest

N, M = 1000, 4


def spread(work: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """As workers do: what travels is pickled, and pieces end in another order."""
    for item in reversed(list(items)):
        yield pickle.loads(pickle.dumps(work(pickle.loads(pickle.dumps(item)))))


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[Path, dict[str, Any]]]:
    """The same points as .npy, zarr, HDF5 and a folder of Parquet files with row groups of many sizes; small pieces."""
    monkeypatch.setattr("dfeas.store.whole.PIECE_BYTES", 3000)
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
    beside = {"labels": str(tmp_path / "y.npy")}
    return {
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
        for rows in (None, 64):
            outs = [tmp_path / f"{index}-{rows}-{kind}" for kind in ("here", "spread")]
            told: list[list[Any]] = [[], []]
            done: list[int] = []
            ingest(src, outs[0], block_rows=rows, note=told[0].append, **options)
            more = {"block_rows": rows, "note": told[1].append, "progress": lambda n, _, done=done: done.append(n)}
            ingest(src, outs[1], spread=spread, **more, **options)
            assert content(outs[0]) == content(outs[1]), name
            assert told[0] == told[1]
            assert done[-1] == N
            assert len(done) < 20


def test_on_a_cluster(sources: dict[str, tuple[Path, dict[str, Any]]], client: Any, tmp_path: Path) -> None:
    src, options = sources["parquet"]
    here = dfeas.ingest(src, tmp_path / "here", block_rows=64, **options)
    assert dfeas.ingest(src, tmp_path / "spread", block_rows=64, client=client, **options) == here
    assert content(tmp_path / "spread") == content(tmp_path / "here")
    X = np.load(tmp_path / "X.npy")
    X[700, 2] = np.inf
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(BadInputError, match=r"out: 1 or more entries are not finite \(point 700 feature 2: inf"):
        dfeas.ingest(tmp_path / "X.npy", tmp_path / "out", labels=str(tmp_path / "y.npy"), block_rows=64, client=client)
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
        patch.setattr("dfeas.store.writing._discard", lambda path: (path / "dfeas.lock").touch())  # nobody clears up
        with pytest.raises(_Killed):
            ingest(src, tmp_path / "out", block_rows=64, spread=killed, **options)
    with pytest.raises(CorruptDataError, match="incomplete dataset, its ingest was interrupted"):
        open_source(Source(str(tmp_path / "out")))
    other = ingest(np.load(src)[::-1], tmp_path / "out", labels=np.load(tmp_path / "y.npy"), block_rows=64)
    with pytest.raises(FileNotFoundError):
        late[0].write()
    found = open_source(Source(str(tmp_path / "out")))
    assert found.header == other
    assert not list((tmp_path / "out").glob("part-*"))


def test_what_cannot_be_split_is_said(sources: dict[str, tuple[Path, dict[str, Any]]], tmp_path: Path) -> None:
    src, options = sources["npy"]
    X = np.load(src)
    np.savez(tmp_path / "X.npz", X=X, y=np.load(tmp_path / "y.npy"))
    (tmp_path / "X.csv").write_text("a,b\n1,2\n3,4\n")
    refused: list[tuple[Any, dict[str, Any]]] = [
        (tmp_path / "X.npz", {}),
        (tmp_path / "X.csv", {"label_column": "a"}),
        (X, options),
        (src, {**options, "sparse": True}),
        (pa.table({"a": [1.0, 2.0], "b": [1, 2]}), {"label_column": "b"}),
    ]
    for given, more in refused:
        with pytest.raises(UsageError, match="read in order by one process"):
            ingest(given, tmp_path / "out", spread=spread, **more)
    with pytest.raises(UsageError, match="workers write to a folder that all of them see"):
        ingest(src, "s3://bucket/out", spread=spread, **options)
    for labels in (np.arange(N - 1) % 2, np.arange(N + 1) % 2):
        np.save(tmp_path / "short.npy", labels)
        with pytest.raises(BadInputError, match=f"{len(labels)} labels for {N} points; give one a point"):
            ingest(tmp_path / "bare.parquet", tmp_path / "out", labels=str(tmp_path / "short.npy"), spread=spread)
    tables, by = sources["parquet"]
    victim = tables / "c.parquet"
    whole = victim.read_bytes()
    victim.write_bytes(whole[:3000] + bytes(2000) + whole[5000:])
    with pytest.raises(CorruptDataError, match=r"c.parquet: damaged from point"):
        ingest(tables, tmp_path / "out", spread=spread, **by)
    assert not (tmp_path / "out").exists()
