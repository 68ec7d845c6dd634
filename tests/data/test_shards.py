"""Shards: the same bits and fingerprint as a file for each block, read by anyone; what a shard lost is never zeros."""

import json
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import crc32c
import h5py
import numpy as np
import pytest
import zarr
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from zarr.codecs import BytesCodec, Crc32cCodec, ShardingCodec, TransposeCodec

import dfeas
from dfeas.cli.main import commands
from dfeas.cones.space import ConeEngine
from dfeas.data.ingest.ingest import ingest as ingest_here
from dfeas.data.ingest.options import IngestOptions
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.chunks import ChunkReader, IndexForm, read_index
from dfeas.data.storage.files import MARKER
from dfeas.data.storage.readers import PAGE_BYTES, Buffers, Cost, Files, stamp_of
from dfeas.data.writers.chunks import SIDE_CHUNKS
from dfeas.data.writers.dataset import DatasetWriter
from dfeas.engine.local import LocalEngine
from dfeas.errors import BadInputError, CorruptDataError, UsageError
from dfeas.passes.softmin import Softmin
from tests.data.making import content, flip, opened, read_rows, spread, write_csr

ROWS, PER = 64, 3


def points(n: int = 1000, m: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    label = np.resize([0, 1, 1], n)
    X = (rng.uniform(-1, 1, (n, m)) + 3 * (2 * label - 1)[:, None]).astype(np.float32)
    return X, label


def shard_of(m: int = 5, per: int = PER) -> int:
    """Bytes of so many blocks of X."""
    return per * (ROWS * m * 4 + 4)


def shards(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file() and file.name != "zarr.json")


def rewritten(file: Path, change: Callable[[list[tuple[int, int]]], None], chunks: int = PER) -> None:
    """A shard with another index, whose checksum is right."""
    whole = file.read_bytes()
    body = whole[: -16 * chunks - 4]
    index = list(struct.iter_unpack("<QQ", whole[-16 * chunks - 4 : -4]))
    change(index)
    table = b"".join(struct.pack("<QQ", *entry) for entry in index)
    file.write_bytes(body + table + int(crc32c.crc32c(table)).to_bytes(4, "little"))


@given(
    n=st.integers(4, 300),
    m=st.integers(1, 6),
    rows=st.integers(1, 80),
    shard=st.integers(1, 4000),
    classes=st.integers(2, 3),
    coded=st.booleans(),
)
@settings(max_examples=15, deadline=None)
def test_shards_change_neither_bits_nor_fingerprint(
    tmp_path_factory: pytest.TempPathFactory, n: int, m: int, rows: int, shard: int, classes: int, coded: bool
) -> None:
    folder = tmp_path_factory.mktemp("shards")
    X, label = np.random.default_rng(n).standard_normal((n, m)), np.arange(n) % classes
    np.savez(folder / "a.npz", X=X, y=label)
    source: Any = folder / "a.npz" if coded else X
    given: dict[str, Any] = {} if coded else {"y": label}
    plain = dfeas.ingest(source, folder / "plain", block_rows=rows, **given)
    assert dfeas.ingest(source, folder / "shards", block_rows=rows, shard=shard, **given) == plain
    one, other = (opened(folder / name) for name in ("plain", "shards"))
    assert isinstance(other.points, ChunkReader)
    assert other.fingerprint == one.fingerprint
    assert read_rows(one).tobytes() == read_rows(other).tobytes() == X.tobytes()
    for name in ("X", "label", "norm"):
        stored = [zarr.open_array(folder / which / name, mode="r")[:] for which in ("plain", "shards")]
        assert stored[0].tobytes() == stored[1].tobytes()
    shutil.rmtree(folder)


def test_a_shard_is_what_zarr_writes_and_reads(tmp_path: Path) -> None:
    X, label = points()
    dfeas.ingest(X, tmp_path / "data", y=label, block_rows=ROWS, shard=shard_of())
    array = zarr.open_array(tmp_path / "data" / "X", mode="r")
    assert (array.chunks, array.shards) == ((ROWS, 5), (PER * ROWS, 5))
    assert np.array_equal(array[:], X)
    assert len(shards(tmp_path / "data" / "X")) == -(-1000 // (PER * ROWS))
    codec = ShardingCodec(chunk_shape=(ROWS, 5), codecs=[BytesCodec(), Crc32cCodec()])
    theirs = zarr.create(
        shape=X.shape, chunks=(PER * ROWS, 5), dtype="f4", codecs=[codec], store=tmp_path / "x", fill_value=np.nan
    )
    theirs[:] = X
    for ours, other in zip(shards(tmp_path / "data" / "X")[:-1], shards(tmp_path / "x")[:-1], strict=True):
        assert ours.read_bytes() == other.read_bytes()


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch, small: None) -> dict[str, Any]:
    """Options of sparse data in small chunks, two blocks of labels and three chunks of entries in a file."""
    for module in ("writers.sparse", "ingest.ingest", "generate.points"):
        monkeypatch.setattr(f"dfeas.data.{module}.SPARSE_BLOCK_BYTES", 1500)
    return {"block_rows": 70, "shard": 2 * 1504, "sparse": True}


def words(n: int = 1000, m: int = 30, seed: int = 0) -> tuple[csr_array, np.ndarray]:
    """Sparse points, the blocks in the middle without an entry, in double precision, which does not fit pages of indices."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, m)) < 0.05, rng.standard_normal((n, m)), 0)
    X[n // 3 : n // 2] = 0
    return csr_array(X), np.resize([0, 1, 1], n)


@pytest.mark.parametrize("n", [2, 70, 139, 1000])
def test_sparse_points_in_shards_are_those_of_plain_chunks(tmp_path: Path, narrow: dict[str, Any], n: int) -> None:
    X, label = words(n)
    plain = dfeas.ingest(X, tmp_path / "plain", y=label, **{**narrow, "shard": 0})
    assert dfeas.ingest(X, tmp_path / "shards", y=label, **narrow) == plain
    one, other = (opened(tmp_path / name) for name in ("plain", "shards"))
    assert np.array_equal(read_rows(other).toarray(), X.toarray())
    assert np.array_equal(read_rows(one).toarray(), X.toarray())
    for name in ("X/data", "X/indices", "X/indptr", "label", "norm", "offset"):
        stored = [zarr.open_array(tmp_path / which / name, mode="r") for which in ("plain", "shards")]
        assert stored[0][:].tobytes() == stored[1][:].tobytes()
        assert (stored[1].shards is None) == (name == "offset")
    if n == 1000:
        assert zarr.open_array(tmp_path / "shards" / "X/data", mode="r").shards == (300,)
        assert len(shards(tmp_path / "shards" / "X/data")) == -(-X.nnz // 300) > 3
        assert len(shards(tmp_path / "shards" / "X/indptr")) == -(-15 // 2)


@pytest.mark.parametrize("n", [139, 140, 1000])
def test_several_processes_write_sparse_shards(tmp_path: Path, narrow: dict[str, Any], n: int) -> None:
    X, label = words(n)
    with h5py.File(tmp_path / "a.h5ad", "w") as file:
        write_csr(file, X)
    np.save(tmp_path / "y.npy", label)
    options = IngestOptions(labels=str(tmp_path / "y.npy"), **narrow)
    header = ingest_here(tmp_path / "a.h5ad", tmp_path / "many", options, pool=spread)
    assert ingest_here(tmp_path / "a.h5ad", tmp_path / "one", options) == header
    assert content(tmp_path / "one") == content(tmp_path / "many")
    assert np.array_equal(read_rows(opened(tmp_path / "many")).toarray(), X.toarray())


def test_a_shard_is_never_in_memory(tmp_path: Path) -> None:
    code = (
        "import sys, dfeas\n"
        "dfeas.generate(dfeas.Instance('gaussian', 200, 800_000, dtype='int8'), sys.argv[1] + '/large', shard=sys.argv[2])\n"
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))\n"
    )
    peaks = []
    for shard in ("0", "1GB"):
        (tmp_path / shard).mkdir()
        run = [sys.executable, "-c", code, str(tmp_path / shard), shard]
        peaks.append(int(subprocess.run(run, check=True, capture_output=True, text=True).stdout))
    assert len(shards(tmp_path / "1GB" / "large" / "X")) == 1
    assert peaks[1] - peaks[0] < 60_000  # kB; the shard has 160 MB


def test_an_ingest_that_is_cut_off_leaves_nothing_that_looks_whole(tmp_path: Path) -> None:
    """What lies there until the index of a shard is written has no name that anybody reads."""
    X, label = points()
    writer = DatasetWriter(tmp_path / "data", 1000, 5, np.dtype(np.float32), ROWS, shard=PER)
    for index in (1, 0, 4):
        here = slice(index * ROWS, (index + 1) * ROWS)
        writer.write(index, X[here], (2 * label[here] - 1).astype(np.int8))
    assert not list((tmp_path / "data" / "X").glob("c.*"))
    writer.write(2, X[2 * ROWS : 3 * ROWS], (2 * label[2 * ROWS : 3 * ROWS] - 1).astype(np.int8))
    assert [file.name for file in (tmp_path / "data" / "X").glob("c.*")] == ["c.0.0"]
    with pytest.raises(CorruptDataError, match="12 blocks were never written"):
        writer.finish(("0", "1"))
    assert not (tmp_path / "data" / MARKER).exists()
    assert not list((tmp_path / "data").rglob("zarr.json"))
    with pytest.raises(BadInputError, match="neither a dfeas dataset nor a zarr array"):
        opened(tmp_path / "data" / "X")


Index = list[tuple[int, int]]
"""Where each chunk of a shard begins, and its bytes."""
WRONG: dict[str, tuple[Callable[[Index], None], str]] = {
    "absent": (lambda index: index.__setitem__(1, (2**64 - 1, 2**64 - 1)), "1 of the 3 chunks of the shard are absent"),
    "outside": (lambda index: index.__setitem__(1, (10**12, index[1][1])), "chunk number 1 of the shard at 1000000000000"),
    "into the index": (lambda index: index.__setitem__(2, (index[2][0] + 1, index[2][1])), "outside of its"),
    "an offset that overflows": (lambda index: index.__setitem__(2, (2**64 - 8, index[2][1])), "outside of its"),
    "a length that overflows": (lambda index: index.__setitem__(0, (0, 2**64 - 8)), "outside of its"),
    "of another size": (lambda index: index.__setitem__(0, (index[0][0], index[0][1] - 4)), "of another size"),
    "empty": (lambda index: index.__setitem__(0, (0, 0)), "of another size"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:overflow encountered")  # of zarr, which adds the offset and the length
@pytest.mark.parametrize("name", WRONG)
def test_an_index_that_cannot_be_is_one_clear_line(tmp_path: Path, name: str) -> None:
    change, words = WRONG[name]
    X, label = points()
    dfeas.ingest(X, tmp_path / "data", y=label, block_rows=ROWS, shard=shard_of())
    rewritten(tmp_path / "data" / "X" / "c.1.0", change)
    dataset = opened(tmp_path / "data")
    assert np.array_equal(dataset.points.read(0, Buffers()), X[:ROWS])
    with pytest.raises(CorruptDataError, match=words) as error:
        read_rows(dataset)
    assert "\n" not in str(error.value)
    assert "c.1.0" in str(error.value)


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize(
    ("compressors", "wrong"),
    [(None, "absent"), ("auto", "outside"), (None, "an offset that overflows"), ("auto", "empty")],
)
def test_a_users_shard_that_lost_a_chunk_is_never_zeros(tmp_path: Path, compressors: Any, wrong: str) -> None:
    X, label = points(6000, 200)
    options: dict[str, Any] = {"chunks": (1000, 200), "shards": (3000, 200), "compressors": compressors}
    array = zarr.create_array(tmp_path / "x", data=X.astype(np.float64), **options)
    np.save(tmp_path / "y.npy", label)
    source = Source(DataSpec(tmp_path / "x", str(tmp_path / "y.npy")))
    dataset = open_source(source)
    assert np.array_equal(read_rows(dataset), X)
    assert np.array_equal(read_rows(opened(array, label)), X)
    rewritten(tmp_path / "x" / "c" / "1" / "0", WRONG[wrong][0])
    with pytest.raises(CorruptDataError, match=r"absent|outside|another size|changed|cannot be read"):
        read_rows(dataset)  # held before
    opening: tuple[Callable[[], Any], ...] = (
        lambda: open_source(source),
        lambda: opened(array, label),
        lambda: dfeas.ingest(tmp_path / "x", tmp_path / "out", y=label),
    )
    for held in opening:
        with pytest.raises(CorruptDataError, match=r"c/1/0: .*(absent|outside|another size)"):
            held()


def test_a_chunk_that_a_user_left_out_is_not_read_as_fill_values(tmp_path: Path) -> None:
    array = zarr.create_array(tmp_path / "x", shape=(40, 2), dtype="f4", chunks=(10, 2), shards=(20, 2), fill_value=7)
    array[:] = np.arange(80).reshape(40, 2)
    array[30:] = 7
    for held in (
        lambda: opened(tmp_path / "x"),
        lambda: opened(array, np.arange(40) % 2),
    ):
        with pytest.raises(CorruptDataError, match="1 of the 2 chunks of the shard are absent, the first is number 1"):
            held()
    memory = zarr.create_array({}, data=np.ones((40, 2), "f4"), chunks=(10, 2), shards=(20, 2))
    with pytest.raises(BadInputError, match="give its path"):
        opened(memory, np.arange(40) % 2)


def test_large_chunks_begin_with_a_page_and_are_read_past_the_page_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = 23_456
    X, label = points(n, 20)
    dfeas.ingest(X, tmp_path / "data", y=label, block_rows=5000, shard="1MB")
    folder = tmp_path / "data" / "X"
    for shard, chunks in enumerate([2] * (n // 10_000) + [1] * (n > 20_000)):
        wanted = np.arange(2) < chunks
        offsets = np.array(read_index(Files(folder), f"c.{shard}.0", IndexForm(2), wanted, "chunks").offsets[:chunks])
        assert (offsets % PAGE_BYTES == 0).all()
    assert np.array_equal(zarr.open_array(folder, mode="r")[:], X)
    monkeypatch.setattr("dfeas.data.storage.chunks.available_bytes", lambda: 1000)
    monkeypatch.setattr("dfeas.data.storage.chunks.CACHED", 0)
    dataset = opened(tmp_path / "data")
    assert isinstance(dataset.points, ChunkReader)
    assert not dataset.points.overlaps
    assert np.array_equal(read_rows(dataset), X)
    (folder / "c.1.0").write_bytes((folder / "c.1.0").read_bytes()[:-5000])
    with pytest.raises(CorruptDataError, match="index of the shard is damaged"):
        read_rows(opened(tmp_path / "data"))


def test_a_shard_is_looked_at_once_a_way_and_what_changes_on_the_way_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, label = points()
    dfeas.ingest(X, tmp_path / "data", y=label, block_rows=ROWS, shard=shard_of())
    looks: list[str] = []

    def counted(path: str) -> int:
        looks.append(path)
        return stamp_of(path)

    monkeypatch.setattr("dfeas.data.storage.readers.stamp_of", counted)
    dataset = opened(tmp_path / "data")
    for _ in range(2):
        looks.clear()
        read_rows(dataset)
        assert len(looks) == len(set(looks)) == 3 * len(shards(tmp_path / "data" / "X"))
    file, coming = shards(tmp_path / "data" / "X")[0], dataset.read_blocks(range(dataset.blocks), Cost())
    next(coming)
    whole = bytearray(file.read_bytes())
    whole[(ROWS * 5 * 4 + 4) + 7] ^= 1  # of the block that comes next
    (tmp_path / "other").write_bytes(whole)
    (tmp_path / "other").replace(file)
    with pytest.raises(CorruptDataError, match="chunk 1 of X is damaged"):
        next(coming)


@pytest.mark.filterwarnings("ignore:Combining a `sharding_indexed` codec")
def test_ways_of_storing_that_are_not_known_are_named(tmp_path: Path) -> None:
    def made(name: str, codecs: Any, chunks: tuple[int, int] = (20, 4)) -> str:
        array = zarr.create(shape=(40, 4), chunks=chunks, dtype="f4", codecs=codecs, store=tmp_path / name, fill_value=0)
        array[:] = 1 + np.arange(160).reshape(40, 4)
        return str(tmp_path / name)

    plain = ShardingCodec(chunk_shape=(10, 4), codecs=[BytesCodec()])
    nested = ShardingCodec(chunk_shape=(20, 4), codecs=[plain])
    for name, codecs, chunks, words in (
        ("nested", [nested], (40, 4), "shards in each other"),
        ("around", [TransposeCodec(order=(0, 1)), plain], (20, 4), "transpose"),
    ):
        with pytest.raises(BadInputError, match=words):
            opened(made(name, codecs, chunks))
    where = made("unknown", [plain])
    meta = json.loads((tmp_path / "unknown" / "zarr.json").read_text())
    meta["codecs"][0]["configuration"]["index_codecs"] = [{"name": "bytes", "configuration": {"endian": "big"}}]
    (tmp_path / "unknown" / "zarr.json").write_text(json.dumps(meta))
    with pytest.raises(BadInputError, match="an index of"):
        opened(where)
    meta["codecs"][0]["configuration"]["codecs"] = [{"name": "bytes"}, {"name": "lzma-of-tomorrow"}]
    (tmp_path / "unknown" / "zarr.json").write_text(json.dumps(meta))
    with pytest.raises(CorruptDataError, match="zarr metadata cannot be read"):
        opened(where)


@pytest.mark.parametrize(
    ("chunk", "shard"), [([0, 4], [20, 4]), ([3, 4], [20, 4]), ([-10, 4], [20, 4]), ([1, 1], [10**9, 4]), ([1, 4], [2**62, 4])]
)
def test_sizes_that_cannot_be_are_one_line(tmp_path: Path, chunk: list[int], shard: list[int]) -> None:
    zarr.create_array(tmp_path / "x", data=np.ones((40, 4), "f4"), chunks=(10, 4), shards=(20, 4))
    meta = json.loads((tmp_path / "x" / "zarr.json").read_text())
    meta["codecs"][0]["configuration"]["chunk_shape"] = chunk
    meta["chunk_grid"]["configuration"]["chunk_shape"] = shard
    (tmp_path / "x" / "zarr.json").write_text(json.dumps(meta))
    with pytest.raises((BadInputError, CorruptDataError)) as error:
        opened(tmp_path / "x")
    assert "\n" not in str(error.value)


def test_much_data_is_stored_in_shards_unless_you_say_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, label = points()
    np.savez(tmp_path / "a.npz", X=X, y=label)
    stored: dict[str, Any] = {"block_rows": ROWS}
    for above, expected in ((X.nbytes, True), (10 * X.nbytes, False)):
        monkeypatch.setattr("dfeas.data.writers.chunks.SHARDED_ABOVE", above - 1)
        out = tmp_path / f"{above}"
        out.mkdir()
        dfeas.ingest(X, out / "array", y=label, **stored)
        dfeas.ingest(tmp_path / "a.npz", out / "npz", **stored)
        dfeas.generate(dfeas.Instance("halfspace", 5, 1000, block_rows=ROWS), out / "made")
        for each in out.iterdir():
            assert (zarr.open_array(each / "X", mode="r").shards is not None) == expected, each
    monkeypatch.setattr("dfeas.data.writers.chunks.SHARDED_ABOVE", 0)
    dfeas.ingest(X, tmp_path / "none", y=label, shard=0, **stored)
    assert zarr.open_array(tmp_path / "none" / "X", mode="r").shards is None
    sparse = dfeas.ingest(np.eye(20), tmp_path / "sparse", y=np.arange(20) % 2, sparse=True)
    assert sparse.entries == 20


def test_shards_of_no_size_are_refused_in_a_line(tmp_path: Path) -> None:
    run = CliRunner().invoke
    out = str(tmp_path / "out")
    with pytest.raises(UsageError, match="shard='many': expected a size"):
        dfeas.ingest(np.eye(4), out, y=[0, 1, 1, 0], shard="many")
    assert not Path(out).exists()
    done = run(commands, ["generate", "halfspace", out, "--features", "5", "--points", "1000", "--shard", "4kB", "-q"])
    assert done.exit_code == 0, done.output
    assert zarr.open_array(f"{out}/X", mode="r").shards == (1000, 5)


CONES: dict[str, Any] = {"l": 7, "q": [5] * 60, "s": [3] * 40}


def cone_rows(sparse: bool) -> Any:
    """Of cones that have the sum of the features inside."""
    rng, m = np.random.default_rng(0), 40
    X = np.where(rng.random((7 + 300 + 240, m)) < 0.05, rng.uniform(-0.1, 0.1, (547, m)), 0.0)
    X[:7, 0] = X[7:307:5, 0] = 2.0
    X[307::6, 0] = X[310::6, 0] = X[312::6, 0] = 2.0
    return csr_array(X) if sparse else X


@pytest.fixture(params=[False, True], ids=["dense", "sparse"])
def cones(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[bool, int]:
    """Whether rows are sparse, and bytes of a shard of three blocks; DATA are theirs, in shards."""
    monkeypatch.setattr("dfeas.cones.product.default_block_rows", lambda *_: 24)
    shard = 3 * ((8 << 20) + 4) if request.param else 3 * (20 * 40 * 8 + 4)
    dfeas.ingest(dfeas.from_cone_rows(cone_rows(request.param), CONES), tmp_path / "data", shard=shard)
    return request.param, shard


def test_cones_in_shards_are_those_of_plain_chunks(tmp_path: Path, cones: tuple[bool, int]) -> None:
    X, m = cone_rows(cones[0]), 40
    header = dfeas.ingest(dfeas.from_cone_rows(X, CONES), tmp_path / "plain")
    plain, sharded = (open_source(Source(DataSpec(tmp_path / name), cones=True)) for name in ("plain", "data"))
    assert plain.blocks > 20
    assert sharded.header == header
    for name in ("label", "norm", "X/indptr" if cones[0] else "X"):
        arrays = [zarr.open_array(tmp_path / data / name, mode="r") for data in ("data", "plain")]
        assert arrays[0].shards[0] == 3 * plain.block_rows
        assert (arrays[1].shards or (0,))[0] == (0 if name == "X" else (8 if cones[0] else SIDE_CHUNKS) * plain.block_rows)
        assert np.array_equal(arrays[0][:], arrays[1][:])
    question, answers = Softmin(np.eye(m)[:, :2] + 0.1, np.full(2, 0.3)), set()
    for dataset in (plain, sharded):
        answer = ConeEngine(LocalEngine(dataset, 2)).run(question)
        answers.add(b"".join(np.asarray(part).tobytes() for part in (answer.low, answer.lse, answer.mean)))
    assert len(answers) == 1
    found = [dfeas.solve(tmp_path / name, out=tmp_path / f"run-{name}") for name in ("plain", "data")]
    assert found[0].verdict == found[1].verdict == "feasible"
    assert found[0].margin_lower == found[1].margin_lower
    assert dfeas.verify_run(tmp_path / "run-data").verdict == "feasible"


def test_commands_write_cones_in_shards(tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", cone_rows(False))
    words = ["--cones", "l:7,q:5x60,s:3x40", "--shard", "1MB", "-q"]
    for command in (["ingest", f"{tmp_path}/X.npy"], ["generate", "cones", "--features", "40"]):
        out = tmp_path / command[0]
        done = CliRunner().invoke(commands, [*command, str(out), *words])
        assert done.exit_code == 0, done.output
        assert all(zarr.open_array(out / name, mode="r").shards for name in ("X", "label", "norm"))
        assert dfeas.solve(out).verdict == "feasible"


def test_damaged_shards_of_cones_are_told_in_a_line(tmp_path: Path, cones: tuple[bool, int]) -> None:
    file = tmp_path / "data" / "X" / ("data/c.0" if cones[0] else "c.1.0")
    intact = file.read_bytes()
    for damage in (lambda: flip(file, -3), lambda: flip(file, 8), file.unlink):
        damage()
        with pytest.raises(CorruptDataError, match=r"missing|damaged") as raised:
            dfeas.solve(tmp_path / "data")
        assert "\n" not in str(raised.value)
        file.write_bytes(intact)
