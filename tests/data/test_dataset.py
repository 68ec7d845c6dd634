"""Datasets on disk: what is written is what is read, by every reader, and damage is seen."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy
import zarr
import zarr.codecs
import zarr.storage

from dfeas import ingest, solve
from dfeas.data.dataset import Dataset
from dfeas.data.generate.points import Instance, generate
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.chunks import ChunkReader
from dfeas.data.storage.readers import Cost
from dfeas.data.storage.stored_array import StoredArray, group_node, parse_arrays, put_node
from dfeas.data.writers.dataset import DatasetWriter, output_place
from dfeas.errors import BadInputError, CorruptDataError, UsageError
from dfeas.linalg.points import dense
from dfeas.passes.block import Block


def read_all(dataset: Dataset) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points, labels, norms of all blocks, copied."""
    parts = [(b.points.copy(), b.label.copy(), b.norm.copy()) for b in dataset.read_blocks(range(0, dataset.blocks), Cost())]
    return tuple(np.concatenate(p) for p in zip(*parts, strict=True))


def chunk(path: Path, name: str, index: int) -> Path:
    """The file of a chunk."""
    return next(p for p in (path / name).glob(f"c.{index}*"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_was_generated_is_read(dataset: Callable[..., Any], arrays: Callable[..., Any], dtype: str) -> None:
    path, header = dataset("planted", 7, 1000, dtype=dtype, block_rows=64)
    X, labels = arrays("planted", 7, 1000, dtype=dtype, block_rows=64)
    opened = open_source(Source(DataSpec(path)))
    assert isinstance(opened.points, ChunkReader)
    points, label, norm = read_all(opened)
    assert points.tobytes() == X.tobytes()
    assert label.tolist() == labels.tolist()
    assert np.allclose(norm, np.linalg.norm(X.astype(float), axis=1), rtol=1e-14)
    assert header.positive == int((labels > 0).sum())


def test_zarr_itself_reads_what_we_wrote(dataset: Callable[..., Any], arrays: Callable[..., Any]) -> None:
    path, _ = dataset("gaussian", 5, 300, block_rows=64)
    group = zarr.open_group(path, mode="r")
    X, labels = arrays("gaussian", 5, 300, block_rows=64)
    assert np.array_equal(group["X"][:], X)
    assert np.array_equal(group["label"][:], labels)


@pytest.mark.parametrize("shard", [0, 3])
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float16", "float64"])
@pytest.mark.parametrize("shape", [(10,), (10, 2)])
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


@pytest.mark.parametrize("shard", [0, 3])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(10,), (10, 2)])
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


@pytest.mark.parametrize("shard", ["", "1MB"])
@pytest.mark.parametrize("fill", ["NaN", 0])
@pytest.mark.parametrize(("name", "dtype"), [("X", "int32"), ("X", "uint32"), ("norm", "int64"), ("norm", "uint64")])
def test_numbers_are_not_read_as_those_of_another_type(name: str, dtype: str, fill: Any, shard: str, tmp_path: Path) -> None:
    """Their bytes, and so all checksums, are what they were."""
    path = tmp_path / "data"
    generate(Instance("halfspace", 5, 300, block_rows=64), path, **({"shard": shard} if shard else {}))
    root = json.loads((path / "zarr.json").read_text())
    root["consolidated_metadata"]["metadata"][name] |= {"data_type": dtype, "fill_value": fill}
    (path / "zarr.json").write_text(json.dumps(root))
    with pytest.raises(CorruptDataError, match=f"{name} has type {dtype}, expected float|metadata cannot be read"):
        open_source(Source(DataSpec(path)))


@pytest.mark.parametrize("command", ["info data", "verify run", "plan data", "solve data --out other"])
def test_zarr_is_not_loaded_for_a_dataset(command: str, tmp_path: Path) -> None:
    generate(Instance("halfspace", 5, 300, block_rows=64), tmp_path / "data")
    solve(tmp_path / "data", out=tmp_path / "run")
    look = "import sys, dfeas.__main__\ntry: dfeas.__main__.main()\nfinally: print('zarr' in sys.modules)"
    words = [sys.executable, "-c", look, *command.split()]
    done = subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
def test_no_pass_waits_for_the_event_loop_of_zarr(kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*_: Any, **__: Any) -> Any:
        raise AssertionError("zarr was asked")

    X = np.where(np.arange(200).reshape(20, 10) % 7 == 0, 1.5, 0.0)
    ingest(kind(X), tmp_path / "data", y=np.arange(20) % 2)
    monkeypatch.setattr("zarr.core.sync._get_loop", asked)
    data = open_source(Source(DataSpec(tmp_path / "data")))
    (block,) = data.read_blocks(range(data.blocks), Cost())
    np.testing.assert_array_equal(dense(block.points), X)


@pytest.mark.parametrize("name", ["offset", "checksum"])
@pytest.mark.parametrize("at", [0, -1])
def test_a_list_is_compared_with_its_own_checksum(name: str, at: int, tmp_path: Path) -> None:
    ingest(scipy.sparse.eye_array(20, format="csr"), tmp_path / "data", y=np.arange(20) % 2)
    (file,) = (tmp_path / "data" / name).glob("c.*")
    content = bytearray(file.read_bytes())
    content[at] ^= 1
    file.write_bytes(content)
    with pytest.raises(CorruptDataError, match=r"list of .* cannot be read"):
        open_source(Source(DataSpec(tmp_path / "data")))


def test_a_users_array_is_read_as_it_is(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, labels = rng.standard_normal((500, 6)).astype(np.float32), np.where(rng.random(500) < 0.5, 7, 3)
    for name, options in {
        "default": {"chunks": (64, 6)},
        "plain": {"chunks": (500, 6), "compressors": None},
        "split": {"chunks": (64, 4)},
        "f64": {"chunks": (100, 6), "compressors": None, "dtype": "float64"},
        "big": {"chunks": (100, 6), "compressors": None, "dtype": ">f4"},
    }.items():
        array = zarr.create_array(tmp_path / name, shape=X.shape, **{"dtype": "float32", **options})
        array[:] = X
        given = zarr.create_array(tmp_path / f"{name}-labels", shape=(500,), dtype="int64", chunks=(90,))
        given[:] = labels
        opened = open_source(Source(DataSpec(tmp_path / name, str(tmp_path / f"{name}-labels"))))
        points, label, norm = read_all(opened)
        assert np.array_equal(points, X), name
        assert points.dtype == opened.dtype == np.dtype("float64" if name == "f64" else "float32")
        assert np.array_equal(label, np.where(labels == 7, 1, -1))
        assert np.allclose(norm, np.linalg.norm(X.astype(float), axis=1), rtol=1e-14)
        assert opened.classes == ("3", "7")


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.bool_, np.int32, np.int64, np.float16, ">f8"])
def test_numbers_of_other_types_are_cast_exactly(dtype: Any) -> None:
    X = np.array([[1, 0], [0, 1], [1, 1]]).astype(dtype)
    assert np.array_equal(read_all(open_source(Source(DataSpec(X, [0, 1, 1]))))[0], X.astype(float))


def test_integers_without_an_exact_float_are_refused() -> None:
    with pytest.raises(BadInputError, match=r"2\*\*53"):
        read_all(open_source(Source(DataSpec(np.array([[2**53 + 2], [1]]), [0, 1]))))


@pytest.mark.parametrize("X", [np.ones((2, 2), complex), np.array([["a"]]), np.array([[None]])])
def test_entries_that_are_no_real_numbers_are_refused(X: np.ndarray) -> None:
    with pytest.raises(BadInputError, match=r"cannot be used|missing"):
        open_source(Source(DataSpec(X, np.arange(len(X)))))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (3,), (2, 2, 2)])
def test_a_shape_without_points_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(BadInputError, match=r"points|features"):
        open_source(Source(DataSpec(np.ones(shape), np.ones(shape[0]))))


def test_a_checksum_is_verified_on_first_touch_for_every_array(dataset: Callable[..., Any]) -> None:
    path, _ = dataset("gaussian", 5, 300, block_rows=64)
    for name, size in (("X", 0), ("label", 64 + 4), ("norm", 64 * 8 + 4)):  # bytes of a chunk in a shard
        for index in range(5):
            file = chunk(path, name, 0 if size else index)
            intact = file.read_bytes()
            for position in (index * size, index * size + 30):
                file.write_bytes(intact[:position] + bytes([intact[position] ^ 4]) + intact[position + 1 :])
                with pytest.raises(CorruptDataError, match=f"chunk {index}"):
                    read_all(open_source(Source(DataSpec(path))))
            file.write_bytes(intact)
    read_all(open_source(Source(DataSpec(path))))


def test_a_chunk_that_is_missing_short_long_empty_or_a_folder_is_seen(dataset: Callable[..., Any]) -> None:
    path, _ = dataset("gaussian", 5, 300, block_rows=64)
    file = chunk(path, "X", 2)
    intact = file.read_bytes()
    opened = open_source(Source(DataSpec(path)))
    for content in (b"", intact[:-5], intact + b"x", None):
        file.unlink()
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(CorruptDataError, match=r"c\.2\.0: chunk 2 of X"):
            read_all(opened)
        with pytest.raises(CorruptDataError):
            read_all(open_source(Source(DataSpec(path))))
        file.write_bytes(intact)
    file.unlink()
    file.mkdir()
    with pytest.raises(CorruptDataError):
        read_all(open_source(Source(DataSpec(path))))


def test_two_chunks_that_were_swapped_are_seen(dataset: Callable[..., Any]) -> None:
    path, _ = dataset("gaussian", 5, 300, block_rows=64)
    one, two = chunk(path, "X", 0), chunk(path, "X", 1)
    a, b = one.read_bytes(), two.read_bytes()
    one.write_bytes(b)
    two.write_bytes(a)
    with pytest.raises(CorruptDataError, match="chunk 0 of X is damaged"):
        read_all(open_source(Source(DataSpec(path))))


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
        open_source(Source(DataSpec(path)))


def test_damaged_metadata_is_one_error(dataset: Callable[..., Any]) -> None:
    path, _ = dataset("gaussian", 5, 300, block_rows=64)
    for file in ("zarr.json", "checksum/c.0.0"):
        intact = (path / file).read_bytes()
        (path / file).write_bytes(intact[: len(intact) // 2])
        with pytest.raises(CorruptDataError):
            open_source(Source(DataSpec(path)))
        (path / file).write_bytes(intact)
    open_source(Source(DataSpec(path)))


def test_another_header_is_not_the_one_that_was_sealed(dataset: Callable[..., Any]) -> None:
    path, _ = dataset("gaussian", 5, 300, block_rows=64)
    intact = (path / "zarr.json").read_text()
    header = json.loads(intact)["attributes"]["dfeas"]
    for name, value in (("norm_max", 2 * header["norm_max"]), ("zero", 1), ("classes", ["0", "1"]), ("positive", 7)):
        values = json.loads(intact)
        values["attributes"]["dfeas"][name] = value
        (path / "zarr.json").write_text(json.dumps(values))
        with pytest.raises(CorruptDataError, match=r"not those that its ingest sealed|does not match the list"):
            open_source(Source(DataSpec(path)))


@pytest.mark.parametrize("options", [{}, {"compressors": None}, {"chunks": (30, 4), "order": "F"}])
def test_an_array_of_zarr_format_2_is_read_as_it_is(options: dict[str, Any], tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((100, 6))
    zarr.create_array(tmp_path / "x", data=X, zarr_format=2, **{"chunks": (25, 6), **options})
    assert np.array_equal(read_all(open_source(Source(DataSpec(tmp_path / "x"))))[0], X)
    next(file for file in (tmp_path / "x").iterdir() if file.name[0] != ".").unlink()
    with pytest.raises(CorruptDataError, match="chunks are missing"):
        open_source(Source(DataSpec(tmp_path / "x")))


def test_a_missing_chunk_of_a_users_array_is_not_zero(tmp_path: Path) -> None:
    array = zarr.create_array(tmp_path / "x", shape=(40, 2), chunks=(10, 2), dtype="f4", compressors=None)
    array[:] = 1
    chunk_file = next(p for p in (tmp_path / "x").rglob("*") if p.is_file() and p.name != "zarr.json")
    chunk_file.unlink()
    with pytest.raises(CorruptDataError, match="1 of 4 chunks are missing"):
        open_source(Source(DataSpec(tmp_path / "x")))


@pytest.mark.parametrize("decoy", ["c.01.0", "c.4.0", "c.1.0.part", "c.1.1", "c.+1.0", "c..0", "C.1.0", "c.1.0"])
def test_what_is_named_like_a_chunk_is_none(tmp_path: Path, decoy: str) -> None:
    named = {"name": "default", "separator": "."}
    array = zarr.create_array(tmp_path / "x", shape=(40, 2), chunks=(10, 2), dtype="f4", chunk_key_encoding=named)
    array[:] = 1
    assert open_source(Source(DataSpec(tmp_path / "x"))).n == 40
    (tmp_path / "x" / "c.1.0").unlink()
    if decoy == "c.1.0":
        (tmp_path / "x" / decoy).mkdir()
    else:
        (tmp_path / "x" / decoy).write_bytes(b"1")
    with pytest.raises(CorruptDataError, match="1 of 4 chunks are missing"):
        open_source(Source(DataSpec(tmp_path / "x")))


def test_a_range_of_blocks_counts_its_bytes(dataset: Callable[..., Any]) -> None:
    path, _ = dataset("gaussian", 5, 300, block_rows=64)
    for past_cache in (True, False):
        cost, seen = Cost(), []
        opened = open_source(Source(DataSpec(path)))
        opened.points = replace(opened.points, folder=replace(opened.points.folder, past_cache=past_cache))
        seen = [block.start for block in opened.read_blocks(range(1, 4), cost)]
        assert seen == [64, 128, 192]
        assert cost.bytes_read == 3 * 64 * 5 * 4


def test_blocks_in_memory_are_views() -> None:
    X = np.ones((100, 3))
    block: Block = next(open_source(Source(DataSpec(X, np.arange(100) % 2))).read_blocks(range(0, 1), Cost()))
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


def test_a_dataset_without_all_blocks_is_never_complete(tmp_path: Path) -> None:
    def half() -> None:
        with output_place(tmp_path / "a") as path:
            target = DatasetWriter(path, 10, 2, np.dtype("f4"), 5)
            target.write(0, np.ones((5, 2), np.float32), np.ones(5, np.int8))
            target.finish(())

    with pytest.raises(CorruptDataError, match="1 blocks were never written"):
        half()
    assert not (tmp_path / "a").exists()


def test_the_fingerprint_depends_on_points_and_labels_and_not_on_the_way_in(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 3)), np.arange(50) % 2
    marks = []
    for i, (points, labels) in enumerate([(X, y), (X, y), (X + 1e-9, y), (X, 1 - y)]):
        np.savez(tmp_path / f"{i}.npz", X=points, y=labels)
        marks.append(ingest(tmp_path / f"{i}.npz", tmp_path / str(i)).fingerprint)
    assert marks[0] == marks[1]
    assert len(set(marks)) == 3


@pytest.mark.parametrize("value", [2**53 + 1, -(2**53) - 1])
def test_an_integer_that_rounds_to_the_limit_is_refused(value: int) -> None:
    with pytest.raises(BadInputError, match=r"2\*\*53"):
        read_all(open_source(Source(DataSpec(np.array([[value, 1], [2**53, 1]]), [0, 1]))))


def test_a_zarr_array_that_lost_a_chunk_is_refused_from_python_too(tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "x", data=np.ones((40, 2), "f4"), chunks=(10, 2), compressors=None)
    next(p for p in (tmp_path / "x").rglob("*") if p.is_file() and p.name != "zarr.json").unlink()
    with pytest.raises(CorruptDataError, match="chunks are missing"):
        open_source(Source(DataSpec(zarr.open_array(tmp_path / "x", mode="r"), np.arange(40) % 2)))


def test_masked_and_ragged_arrays_are_refused_and_unknown_chunks_are_counted() -> None:
    import dask.array as da

    with pytest.raises(BadInputError, match="masked"):
        open_source(Source(DataSpec(np.ma.masked_equal(np.eye(3), 0), [0, 1, 1])))
    with pytest.raises(BadInputError, match="different lengths"):
        open_source(Source(DataSpec([[1.0, 2.0], [1.0]], [0, 1])))
    unknown = da.from_array(np.eye(4), chunks=2)
    assert open_source(Source(DataSpec(unknown[unknown[:, 0] >= 0], [0, 1, 1, 0]))).n == 4
    with pytest.raises(BadInputError, match="expected 1 labels"):
        open_source(Source(DataSpec(unknown[unknown[:, 0] > 0], [0, 1, 1, 0])))
    with pytest.raises(BadInputError, match="is missing"):
        open_source(Source(DataSpec(np.eye(2), np.array([None, 1], object))))


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


def test_a_block_is_never_larger_than_the_dataset(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", X=np.eye(4), y=[0, 1, 1, 0])
    assert ingest(tmp_path / "a.npz", tmp_path / "out", block_rows=100).block_rows == 4
    open_source(Source(DataSpec(tmp_path / "out")))
    with pytest.raises(UsageError, match="block_rows"):
        ingest(tmp_path / "a.npz", tmp_path / "out2", block_rows=-1)
