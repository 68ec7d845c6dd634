"""Datasets on disk: what is written is what is read, by every reader, and damage is seen."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy
import zarr
import zarr.codecs
import zarr.storage

from dfeas import ingest, solve
from dfeas.data.generate.points import Instance, generate
from dfeas.data.storage.readers import Cost
from dfeas.data.storage.stored_array import StoredArray, group_node, parse_arrays, put_node
from dfeas.data.writers.dataset import DatasetWriter, output_place
from dfeas.errors import BadInputError, CorruptDataError, UsageError
from dfeas.linalg.points import dense
from dfeas.passes.block import Block
from tests.data.making import opened

STORED = [
    ((10,), "int8", 3),
    ((10, 2), "uint16", 3),
    ((10,), "int64", 0),
    ((10, 2), "float16", 0),
    ((10, 2), "float32", 3),
    ((10,), "float64", 3),
]


@pytest.mark.parametrize(("shape", "dtype", "shard"), STORED)
def test_metadata_are_those_that_zarr_writes(shape: tuple[int, ...], dtype: str, shard: int, tmp_path: Path) -> None:
    fill = np.nan if dtype.startswith("f") else 0
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    below = {"x/a": StoredArray(shape, 4, np.dtype(dtype), shard, fill).metadata(), "x": group_node({})}
    for name, node in below.items():
        put_node(ours / name, node)
    put_node(ours, group_node({"dfeas": {"n": 10, "names": ["a"]}}, below))
    group = zarr.create_group(zarr.storage.LocalStore(theirs), zarr_format=3)
    group.attrs["dfeas"] = {"n": 10, "names": ["a"]}
    group.create_array(
        "x/a",
        shape=shape,
        chunks=(4, *shape[1:]),
        shards=(4 * shard, *shape[1:]) if shard else None,
        dtype=dtype,
        fill_value=fill,
        compressors=zarr.codecs.Crc32cCodec(),
        chunk_key_encoding={"name": "default", "separator": "."},
    )
    with pytest.warns(zarr.errors.ZarrUserWarning, match="not part in the Zarr format 3"):
        zarr.consolidate_metadata(zarr.storage.LocalStore(theirs))
    for name in ("x/zarr.json", "x/a/zarr.json"):
        assert (ours / name).read_bytes() == (theirs / name).read_bytes()
    node, expected = (json.loads((folder / "zarr.json").read_bytes()) for folder in (ours, theirs))
    del expected["consolidated_metadata"]["metadata"]["x"]["consolidated_metadata"]  # of what is below it, again
    assert node == expected
    assert zarr.open_group(ours, mode="r")["x/a"].metadata == zarr.open_array(theirs / "x/a", mode="r").metadata


@pytest.mark.parametrize(("shape", "dtype", "shard"), [*STORED, ((10,), "bool", 0)])
def test_an_array_that_dfeas_wrote_is_told_without_zarr_as_zarr_tells_it(
    shape: tuple[int, ...], dtype: str, shard: int, tmp_path: Path
) -> None:
    written = StoredArray(shape, 4, np.dtype(dtype), shard)
    put_node(tmp_path / "X/a", written.metadata())
    node = json.loads((tmp_path / "X/a/zarr.json").read_text())
    theirs = zarr.open_array(tmp_path / "X/a", mode="r")
    ours = parse_arrays(group_node({}, {"X/a": node}), ["X/a"], tmp_path)["X/a"]
    assert ours == written
    assert (ours.shape, ours.dtype, (ours.rows, *shape[1:])) == (theirs.shape, theirs.dtype, theirs.chunks)
    assert ((ours.shard * ours.rows, *shape[1:]) if shard else None) == theirs.shards
    assert (ours.chunks, ours.chunk_bytes) == (theirs.nchunks, 4 * np.prod(shape[1:], dtype=int) * ours.dtype.itemsize + 4)
    for number in range(3):
        assert ours.file(number) == theirs.metadata.encode_chunk_key((number, *(0,) * (len(shape) - 1)))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("data_type", "complex128"),
        ("data_type", "object"),
        ("data_type", {"name": "numpy.datetime64", "configuration": {"unit": "s", "scale_factor": 1}}),
        ("codecs", []),
        ("codecs", [{"name": "bytes", "configuration": {"endian": "big"}}, {"name": "crc32c"}]),
        ("codecs", [{"name": "bytes", "configuration": {"endian": "little"}}]),
        ("codecs", [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "zstd"}]),
        ("codecs", [{"name": "sharding_indexed", "configuration": {}}]),
        ("chunk_grid", {"name": "regular", "configuration": {"chunk_shape": [4, 1]}}),
        ("chunk_grid", {"name": "regular", "configuration": {"chunk_shape": [0, 2]}}),
        ("chunk_grid", {"name": "regular", "configuration": {"chunk_shape": []}}),
        ("chunk_key_encoding", {"name": "v2", "configuration": {"separator": "."}}),
        ("storage_transformers", [{"name": "other"}]),
        ("dimension_names", ["row", "feature"]),
        ("dimension_names", None),
        ("fill_value", 1.0),
        ("fill_value", None),
        ("storage_transformers", None),
        ("shape", [10]),
    ],
)
def test_an_array_that_is_described_otherwise_is_refused(name: str, value: Any, tmp_path: Path) -> None:
    node = StoredArray((10, 2), 4, np.dtype(np.float64)).metadata()
    assert parse_arrays(group_node({}, {"X": node}), ["X"], tmp_path)["X"].shape == (10, 2)
    with pytest.raises(CorruptDataError, match=r": its zarr metadata cannot be read: X .*; ingest it again"):
        parse_arrays(group_node({}, {"X": {**node, name: value}}), ["X"], tmp_path)


@pytest.mark.parametrize(
    ("name", "dtype", "fill", "shard"),
    [("X", "int32", "NaN", ""), ("X", "uint32", 0, "1MB"), ("norm", "int64", 0, ""), ("norm", "uint64", "NaN", "1MB")],
)
def test_numbers_are_not_read_as_those_of_another_type(name: str, dtype: str, fill: Any, shard: str, tmp_path: Path) -> None:
    """Their bytes, and so all checksums, are what they were."""
    path = tmp_path / "data"
    generate(Instance("halfspace", 5, 300, block_rows=64), path, **({"shard": shard} if shard else {}))
    root = json.loads((path / "zarr.json").read_text())
    root["consolidated_metadata"]["metadata"][name] |= {"data_type": dtype, "fill_value": fill}
    (path / "zarr.json").write_text(json.dumps(root))
    with pytest.raises(CorruptDataError, match=f"{name} has type {dtype}, expected float|metadata cannot be read"):
        opened(path)


def test_zarr_is_not_loaded_for_a_dataset(tmp_path: Path) -> None:
    generate(Instance("halfspace", 5, 300, block_rows=64), tmp_path / "data")
    solve(tmp_path / "data", out=tmp_path / "run")
    look = """
import sys, dfeas.__main__
for command in ("info data", "verify run", "plan data", "solve data --out other"):
    sys.argv[1:] = command.split()
    try:
        dfeas.__main__.main()
    except SystemExit as ended:
        assert not ended.code
sys.exit("zarr" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", look], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
def test_no_pass_waits_for_the_event_loop_of_zarr(kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*_: Any, **__: Any) -> Any:
        raise AssertionError("zarr was asked")

    X = np.where(np.arange(200).reshape(20, 10) % 7 == 0, 1.5, 0.0)
    ingest(kind(X), tmp_path / "data", y=np.arange(20) % 2)
    monkeypatch.setattr("zarr.core.sync._get_loop", asked)
    data = opened(tmp_path / "data")
    (block,) = data.read_blocks(range(data.blocks), Cost())
    np.testing.assert_array_equal(dense(block.points), X)


def test_labels_of_another_type_are_no_signs(dataset: Callable[..., Any], tmp_path: Path) -> None:
    with output_place(tmp_path / "a") as path:
        target = DatasetWriter(path, 5, 2, np.dtype("f4"), 5, label=np.int16)
        target.write(0, np.ones((5, 2), np.float32), np.array([0, 1, 0, 1, 2], np.int16))
        with pytest.raises(BadInputError, match="labels of 2 classes are of type int16, expected int8"):
            target.finish(("a", "b"))
        target.finish(("a", "b", "c"))
    path, _ = dataset("gaussian", 5, 300, block_rows=64)
    root = json.loads((path / "zarr.json").read_text())
    node = root["consolidated_metadata"]["metadata"]["label"]
    node["data_type"] = "int16"
    node["codecs"][0]["configuration"]["codecs"][0] = {"name": "bytes", "configuration": {"endian": "little"}}
    (path / "zarr.json").write_text(json.dumps(root))
    with pytest.raises(CorruptDataError, match="label has type int16, expected int8; ingest it again"):
        opened(path)


def test_another_header_is_not_the_one_that_was_sealed(dataset: Callable[..., Any]) -> None:
    path, _ = dataset("gaussian", 5, 300, block_rows=64)
    intact = (path / "zarr.json").read_text()
    header = json.loads(intact)["attributes"]["dfeas"]
    for name, value in (("norm_max", 2 * header["norm_max"]), ("zero", 1), ("classes", ["0", "1"]), ("positive", 7)):
        values = json.loads(intact)
        values["attributes"]["dfeas"][name] = value
        (path / "zarr.json").write_text(json.dumps(values))
        with pytest.raises(CorruptDataError, match=r"not those that its ingest sealed|does not match the list"):
            opened(path)


def test_a_missing_chunk_of_a_users_array_is_not_zero(tmp_path: Path) -> None:
    array = zarr.create_array(tmp_path / "x", shape=(40, 2), chunks=(10, 2), dtype="f4", compressors=None)
    array[:] = 1
    chunk_file = next(p for p in (tmp_path / "x").rglob("*") if p.is_file() and p.name != "zarr.json")
    chunk_file.unlink()
    for where in (tmp_path / "x", zarr.open_array(tmp_path / "x", mode="r")):
        with pytest.raises(CorruptDataError, match="chunks are missing"):
            opened(where, None if isinstance(where, Path) else np.arange(40) % 2)


@pytest.mark.parametrize("decoy", ["c.01.0", "c.4.0", "c.1.0.part", "c.1.1", "c.+1.0", "c..0", "C.1.0", "c.1.0"])
def test_what_is_named_like_a_chunk_is_none(tmp_path: Path, decoy: str) -> None:
    named = {"name": "default", "separator": "."}
    array = zarr.create_array(tmp_path / "x", shape=(40, 2), chunks=(10, 2), dtype="f4", chunk_key_encoding=named)
    array[:] = 1
    assert opened(tmp_path / "x").n == 40
    (tmp_path / "x" / "c.1.0").unlink()
    if decoy == "c.1.0":
        (tmp_path / "x" / decoy).mkdir()
    else:
        (tmp_path / "x" / decoy).write_bytes(b"1")
    with pytest.raises(CorruptDataError, match="1 of 4 chunks are missing"):
        opened(tmp_path / "x")


def test_blocks_in_memory_are_views() -> None:
    X = np.ones((100, 3))
    block: Block = next(opened(X, np.arange(100) % 2).read_blocks(range(0, 1), Cost()))
    assert np.shares_memory(block.points, X)


def test_a_writer_leaves_nothing_when_it_fails_and_nothing_twice(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), output_place(tmp_path / "a"):
        raise RuntimeError
    assert not (tmp_path / "a").exists()
    with (
        output_place(tmp_path / "b") as path,
        pytest.raises(UsageError, match="another process is writing"),
        output_place(tmp_path / "b"),
    ):
        pass
    assert path.name == "b"


def test_the_fingerprint_depends_on_points_and_labels_and_not_on_the_way_in(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 3)), np.arange(50) % 2
    marks = []
    for i, (points, labels) in enumerate([(X, y), (X, y), (X + 1e-9, y), (X, 1 - y)]):
        np.savez(tmp_path / f"{i}.npz", X=points, y=labels)
        marks.append(ingest(tmp_path / f"{i}.npz", tmp_path / str(i)).fingerprint)
    assert marks[0] == marks[1]
    assert len(set(marks)) == 3


def test_claiming_a_folder_that_was_finished_meanwhile_does_not_empty_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dfeas.data.storage import locks as claiming

    out, real = tmp_path / "out", os.open
    lock = claiming.claim(out, "marker")

    def finish_first(path: Any, flags: int, mode: int = 0o777) -> int:
        monkeypatch.setattr(claiming.os, "open", real)
        (out / "marker").write_text("done")  # between the look at the marker and the lock
        claiming.release(out, lock)
        return real(path, flags, mode)

    monkeypatch.setattr(claiming.os, "open", finish_first)
    with pytest.raises(UsageError, match="exists already"):
        claiming.claim(out, "marker")
    assert (out / "marker").read_text() == "done"
