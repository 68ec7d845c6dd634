"""Object stores, by a server that speaks S3: the same bits as from disk, many requests at once, faults, changes, a cache."""

import io
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import obstore
import pytest
import zarr

import dfeas
from dfeas import ingest
from dfeas.data.cache import Kept
from dfeas.data.generate.points import Instance, SparseInstance, generate
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage import locks, object_path, object_store
from dfeas.data.storage.object_path import ObjectPath
from dfeas.data.storage.object_readers import KeptBlocks
from dfeas.data.storage.places import zarr_store
from dfeas.data.storage.readers import Buffers, Cost
from dfeas.data.storage.sparse_readers import pieces
from dfeas.data.writers.dataset import DatasetWriter, output_place
from dfeas.engine.distributed import DaskEngine
from dfeas.engine.local import LocalEngine
from dfeas.errors import BadInputError, CorruptDataError, StorageAwayError, UsageError
from tests.bits import iterates
from tests.data.making import flip, opened, read_bytes, source
from tests.data.s3 import SECRET, Door, lead
from tests.typed import dfeas as typed

URL = "s3://bucket"
METHODS = ("mirror-prox-one-pass",)


@pytest.fixture
def data(door: Door, request: pytest.FixtureRequest) -> str:
    """A dataset of 7 blocks, beside those of other tests."""
    where = f"{URL}/{request.node.name}/data".translate(str.maketrans("[]", "__"))
    generate(Instance("planted", 5, 700, 0.1, block_rows=100), where)
    door.reset()
    return where


def test_the_same_bits_as_from_disk_on_threads_and_workers(
    data: str, dataset: Callable[..., Any], door: Door, server: Any, client: Any
) -> None:
    path, header = dataset("planted", 5, 700, margin=0.1, block_rows=100)
    there = opened(data)
    assert there.header == header
    assert read_bytes(there)[0] == read_bytes(opened(path))[0]
    found = {"disk": iterates(LocalEngine(opened(path), 2), METHODS)}
    found["objects"] = iterates(LocalEngine(opened(data), 3), METHODS)
    lead(client, server[1])
    door.reset()
    engine = DaskEngine(client, Source(DataSpec(data), cache_bytes=10_000), opened(data))
    found["workers"] = iterates(engine, METHODS)
    engine.close()
    assert len(set(found.values())) == 1, found
    assert door.count("GET", "/X/c.") > 7


@pytest.mark.usefixtures("small")
def test_sparse_points_in_shards_are_read_by_ranges(door: Door, tmp_path: Path) -> None:
    X, y = SparseInstance("one-flip", 30, 700, 0.1, 0.001).block(0)
    for where in (f"{URL}/sparse-shards/data", str(tmp_path / "sparse")):
        ingest(X, where, y=y, block_rows=100, shard=10**8)
    door.reset()
    there, here = (opened(where) for where in (f"{URL}/sparse-shards/data", str(tmp_path / "sparse")))
    for first, second in zip(*(each.read_blocks(range(7), Cost()) for each in (there, here)), strict=True):
        assert (first.points != second.points).nnz == 0
    assert there.entries is not None
    chunks = sum(len(list(pieces(100, *span))) for span in pairwise(there.entries.offsets.tolist()))
    assert door.count("GET", "/X/data/c.0") == 1 + chunks == door.count("GET", "/X/indices/c.0")
    assert dfeas.solve(f"{URL}/sparse-shards/data").verdict == "infeasible"
    path = ObjectPath.of(f"{URL}/sparse-shards/data/X/indices/c.0")
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(CorruptDataError, match="index of the shard is damaged"):
        opened(f"{URL}/sparse-shards/data").read(3, Buffers(), Cost())


def test_many_requests_are_under_way_while_blocks_are_read(data: str, door: Door) -> None:
    held = opened(data)
    door.reset()
    door.delay = 0.03
    read_bytes(held)
    assert door.count("GET", "/X/c.") == 7  # each once
    assert door.count("GET", "/label/c.") == door.count("GET", "/norm/c.") == 1
    assert 6 <= door.most_busy <= 32
    door.reset()
    read_bytes(held)
    assert door.count("GET", "/X/c.") == 7
    assert door.count("GET", "/label/c.") == 0  # labels and norms are kept


def test_lasting_faults_are_said(data: str, door: Door) -> None:
    for part, kind, error, words in (
        ("/X/c.4", "refuse", StorageAwayError, r"/X[^:]*: the object store does not answer at .*\(503 .*waited for .* s"),
        ("/X/c.4", "deny", UsageError, r"access was refused \(AccessDenied\); check the credentials"),
        ("", "refuse", StorageAwayError, "the object store does not answer.*again when it is back"),
    ):
        door.fault = lambda method, path, part=part, kind=kind: kind if part in path else ""
        for spec in (DataSpec(data), DataSpec(f"{data}/X", f"{data}/label")):  # its own chunks, and as an array of zarr
            with pytest.raises(error, match=words) as caught:
                read_bytes(open_source(Source(spec)))
            assert "\n" not in str(caught.value)
            assert len(str(caught.value)) < 300


def test_a_kept_block_stays_what_it_was_and_nobody_looks_at_its_object(data: str, door: Door) -> None:
    held = opened(data)
    held.kept = Kept(1 << 20)
    whole = read_bytes(held)[0]
    flip(ObjectPath.of(f"{data}/X/c.3.0"), 40)
    ObjectPath.of(f"{data}/X/c.5.0").unlink()
    door.reset()
    assert read_bytes(held)[0] == whole
    assert not door.requests
    for index, words in ((3, "chunk 3 of X is damaged"), (5, "chunk 5 of X is missing")):
        with pytest.raises(CorruptDataError, match=words):
            held.without_cache().read(index, Buffers(), Cost())


def test_a_missing_chunk_of_a_users_array_is_not_zero(data: str) -> None:
    ObjectPath.of(f"{data}/X/c.5.0").unlink()
    held = opened(f"{data}/X")
    with pytest.raises(CorruptDataError, match=r"X/c\.5\.0: the chunk is missing"):
        read_bytes(held)


def test_a_cache_on_disk_is_used_by_later_runs_and_never_believed(data: str, door: Door, tmp_path: Path) -> None:
    source = Source(DataSpec(data), cache_dir=str(tmp_path / "kept"))
    whole = read_bytes(open_source(source))[0]
    door.reset()
    assert read_bytes(open_source(source))[0] == whole
    assert door.count("GET", "/c.") == door.count("GET", "checksum/c.")
    kept = sorted(path for path in (tmp_path / "kept").rglob("*") if path.is_file())
    assert len(kept) == 7 + 2
    for place, path in enumerate(kept):  # damaged, cut off, empty, gone
        content = path.read_bytes()
        path.write_bytes((content[:-9] + bytes([content[-9] ^ 1]) + content[-8:], content[:-3], b"", content)[place % 4])
    kept[3].unlink()
    door.reset()
    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(lambda _: read_bytes(open_source(source))[0], range(3))) == {whole}
    assert door.count("GET", "/c.") > 0
    door.reset()
    assert read_bytes(open_source(source))[0] == whole
    assert door.count("GET", "/X/c.") == 0
    flip(ObjectPath.of(f"{data}/X/c.3.0"), 40)
    assert read_bytes(open_source(source))[0] == whole  # what is kept is known by its checksums
    generate(Instance("planted", 5, 700, 0.2, block_rows=100), f"{data}-other")
    for each in list(ObjectPath.of(f"{data}-other").rglob("*")):
        ObjectPath.of(str(each).replace("data-other", "data")).write_bytes(each.read_bytes())
    assert read_bytes(open_source(source))[0] == read_bytes(opened(f"{data}-other"))[0] != whole


SHARD = 3 * (100 * 5 * 4 + 4)
"""Bytes of three blocks: seven of them make three shards."""


def sharded(door: Door, name: str) -> str:
    """The dataset of ``data`` in shards."""
    generate(Instance("planted", 5, 700, 0.1, block_rows=100), f"{URL}/{name}/data", shard=SHARD)
    door.reset()
    return f"{URL}/{name}/data"


def test_a_shard_takes_a_request_for_its_index_and_one_for_each_block(data: str, door: Door, tmp_path: Path) -> None:
    where = sharded(door, "shards")
    dataset = opened(where)
    door.reset()
    assert read_bytes(dataset)[0] == read_bytes(opened(data))[0]
    assert door.count("GET", "/shards/data/X/c.") == 7 + 3
    for _ in range(2):
        door.reset()
        read_bytes(dataset)
        assert door.count("GET", "/shards/data/X/c.") == 7
    source = Source(DataSpec(where), cache_dir=str(tmp_path / "kept"))
    whole = read_bytes(open_source(source))[0]
    door.reset()
    assert read_bytes(open_source(source))[0] == whole
    assert door.count("GET", "/X/c.") == 3


def test_a_shard_is_uploaded_in_parts_and_is_no_object_before(door: Door, tmp_path: Path) -> None:
    X, label = np.random.default_rng(0).standard_normal((25_000, 100)).astype(np.float32), np.resize([-1, 1], 25_000)
    with output_place(f"{URL}/parts/data") as path:
        writer = DatasetWriter(path, 25_000, 100, np.dtype(np.float32), 1000, shard=25)
        for index in range(24):
            writer.write(index, X[index * 1000 : (index + 1) * 1000], label[:1000].astype(np.int8))
        assert not [each for each in ObjectPath.of(f"{URL}/parts/data/X").objects() if "/c." in each["path"]]
        writer.write(24, X[24_000:], label[:1000].astype(np.int8))
        header = writer.finish(("-1", "1"))
    assert door.count("PUT", "/parts/data/X/c.") == 2  # 10 MB in parts of 8 MiB
    assert header.fingerprint == ingest(X, tmp_path / "here", y=label, block_rows=1000).fingerprint
    assert np.array_equal(zarr.open_array(zarr_store(ObjectPath.of(f"{URL}/parts/data/X"), read_only=True), mode="r")[:], X)
    X[24_500, 3] = np.nan
    with pytest.raises(BadInputError, match="not finite"):
        ingest(X, f"{URL}/parts/cut", y=label, block_rows=1000, shard="1GB")
    assert not list(ObjectPath.of(f"{URL}/parts/cut").objects())


def test_a_full_disk_keeps_nothing_and_is_no_error(
    data: str, door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KeptBlocks, "free_share", 2.0)
    source = Source(DataSpec(data), cache_dir=str(tmp_path / "kept"))
    assert read_bytes(open_source(source))[0] == read_bytes(opened(data))[0]
    assert not any((tmp_path / "kept").rglob("*"))
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=r"cache_dir .*file: cannot be written"):
        open_source(Source(DataSpec(data), cache_dir=str(tmp_path / "file")))


def test_a_users_arrays_are_read_as_they_are(door: Door) -> None:
    rng = np.random.default_rng(0)
    X, labels = rng.standard_normal((500, 6)).astype(np.float32), np.arange(500) % 2
    for name, options in {"packed": {"chunks": (64, 6)}, "plain": {"chunks": (100, 6), "compressors": None}}.items():
        array = zarr.create_array(
            zarr_store(ObjectPath.of(f"{URL}/foreign/{name}"), read_only=False), shape=X.shape, dtype="f4", **options
        )
        array[:] = X
        given = io.BytesIO()
        np.save(given, labels)
        ObjectPath.of(f"{URL}/foreign/{name}.npy").write_bytes(given.getvalue())
        source = Source(DataSpec(f"{URL}/foreign/{name}", f"{URL}/foreign/{name}.npy"))
        held = open_source(source)
        assert read_bytes(held)[0] == read_bytes(opened(X, labels))[0] or held.block_rows != 500
        assert held.points.distant
        assert dfeas.solve(source.spec.where, source.spec.labels).verdict == dfeas.solve(X, labels).verdict
        array[77] = 0.5
        with pytest.raises(CorruptDataError, match="has changed during the run"):
            read_bytes(held)


@pytest.mark.usefixtures("door", "small")
def test_every_format_is_ingested_from_and_to_an_object_store(tmp_path: Path) -> None:
    for name in ("plain.npy", "plain.npz", "attribute.h5", "plain.svm", "plain.parquet", "folder", "plain.csv", "zarr3"):
        (tmp_path / name).mkdir()
        given, options, _ = source(name, tmp_path / name)
        for path in (tmp_path / name).rglob("*"):
            if path.is_file():
                ObjectPath.of(f"{URL}/src/{path.relative_to(tmp_path)}").write_bytes(path.read_bytes())
        there = {**options, **({"y": f"{URL}/src/{name}/y.npy"} if "y" in options else {})}
        found = ingest(f"{URL}/src/{given.relative_to(tmp_path)}", f"{URL}/ingested/{name}", **there)
        assert found == ingest(given, tmp_path / f"{name}.data", **options), name
    assert dfeas.solve(f"{URL}/ingested/plain.csv", max_passes=1).fingerprint == found.fingerprint


@pytest.mark.parametrize("part", [64, 1000])
def test_a_file_reads_as_any_other(door: Door, part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_path, "PART_BYTES", part)
    rng = np.random.default_rng(part)
    content = rng.bytes(700)
    ObjectPath.of(f"{URL}/file").write_bytes(content)
    with io.BytesIO(content) as plain, ObjectPath.of(f"{URL}/file").open() as buffered:
        raw = buffered.raw
        for _ in range(30):
            where, whence = [
                (int(rng.integers(0, 720)), 0),
                (int(rng.integers(-9, 9)), 1),
                (-int(rng.integers(0, 99)), 2),
                (0, 1),
            ][int(rng.integers(0, 4))]
            if whence == 1 and plain.tell() + where < 0:
                continue
            assert raw.seek(where, whence) == plain.seek(where, whence)
            size = int(rng.integers(0, 90))
            found = b""
            while len(found) < size and (more := raw.read(size - len(found))):
                found += more
            assert found == plain.read(size)
            assert raw.tell() == plain.tell()


def test_an_object_that_changes_while_it_is_ingested_is_noticed(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_path, "PART_BYTES", 100)
    path = ObjectPath.of(f"{URL}/moving")
    path.write_bytes(bytes(2000))
    with path.open() as buffered:
        raw = buffered.raw
        assert raw.read(10) == bytes(10)
        path.write_bytes(b"1" * 2000)
        with pytest.raises(CorruptDataError, match=f"{URL}/moving: .*changed"):
            list(iter(lambda: raw.read(100), b""))


KILLED = """
import os, signal, sys, time
from dfeas.data.generate.points import Instance, SparseInstance, generate
from dfeas.data.writers.dataset import DatasetWriter
write = DatasetWriter.write
def dies(self, index, points, label):
    write(self, index, points, label)
    if index == 4:
        os.kill(os.getpid(), signal.SIGKILL)
DatasetWriter.write = dies
generate(Instance("planted", 5, 700, 0.1, block_rows=100), sys.argv[1])
"""


def test_what_a_writer_left_that_was_killed_is_removed(door: Door) -> None:
    where, instance = f"{URL}/writers/data", Instance("planted", 5, 700, 0.1, block_rows=100)
    assert subprocess.run([sys.executable, "-c", KILLED, where], check=False).returncode == -signal.SIGKILL
    ObjectPath.of(f"{where}/X/of-the-dead").write_bytes(b"")
    with pytest.raises(CorruptDataError, match="incomplete dataset"):
        opened(where)
    header = generate(instance, where)
    assert opened(where).header == header
    assert not any(found["path"].endswith(("of-the-dead", "dfeas.lock")) for found in ObjectPath.of(where).objects())
    with pytest.raises(UsageError, match="exists already"):
        generate(instance, where)
    with pytest.raises(UsageError, match="exists already"):
        generate(instance, f"{URL}/writers")


def test_a_writer_that_was_silent_too_long_gives_way(door: Door, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(locks, "BEAT_SECONDS", 0.02)
    where = f"{URL}/silent/data"
    np.savez(tmp_path / "a.npz", X=np.random.default_rng(0).standard_normal((3000, 4)), y=np.arange(3000) % 2)
    taken = False

    def progress(done: int, n: int) -> None:
        nonlocal taken
        if not taken:
            taken = True
            ObjectPath.of(f"{where}/dfeas.lock").write_bytes(b"another")

    with pytest.raises(UsageError, match="another process took it over, this one was silent too long"):
        ingest(tmp_path / "a.npz", where, block_rows=100, progress=progress)
    assert ObjectPath.of(f"{where}/dfeas.lock").read_bytes() == b"another"


def test_nobody_takes_over_what_is_still_being_removed(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("BEAT_SECONDS", 0.02), ("LOOK_SECONDS", 0.1), ("DEAD_SECONDS", 20.0)):
        monkeypatch.setattr(locks, name, seconds)
    where = ObjectPath.of(f"{URL}/removed/data")
    for name in (locks.LOCK, "left"):
        (where / name).write_bytes(b"")
    unlink, asked = ObjectPath.unlink, []

    def claim_too(path: ObjectPath, missing_ok: bool = False) -> None:
        if path.name == "left" and not asked:
            asked.append(path)
            with pytest.raises(UsageError, match="another process is writing it"):
                locks.ObjectLock.claim(where, "zarr.json")
        unlink(path, missing_ok)

    monkeypatch.setattr(ObjectPath, "unlink", claim_too)
    with locks.ObjectLock.claim(where, "zarr.json"):
        assert [each.name for each in where.iterdir()] == [locks.LOCK]
    assert asked


def test_a_refused_source_leaves_nothing(door: Door, tmp_path: Path) -> None:
    X = np.ones((700, 4))
    X[550, 1] = np.nan
    np.savez(tmp_path / "a.npz", X=X, y=np.arange(700) % 2)
    with pytest.raises(BadInputError, match="point 550 feature 1"):
        ingest(tmp_path / "a.npz", f"{URL}/refused", block_rows=100)
    assert not ObjectPath.of(f"{URL}/refused").exists()
    door.fault = lambda method, path: "refuse" if method == "PUT" and "/X/c.3" in path else ""
    np.savez(tmp_path / "a.npz", X=np.ones((700, 4)), y=np.arange(700) % 2)
    with pytest.raises(StorageAwayError, match="does not answer"):
        ingest(tmp_path / "a.npz", f"{URL}/refused", block_rows=100)
    assert not ObjectPath.of(f"{URL}/refused").exists()


def command(*words: Any) -> tuple[int, str, str]:
    done = typed(*words)
    return done.returncode, done.stdout, done.stderr


def test_the_command_line_takes_urls(data: str, door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DFEAS_CACHE_DIR", "kept")

    written = ""
    for words in (
        ("generate", "one-flip", f"{data}-2", "--features", 5, "--points", 500, "--margin", 0.1),
        ("info", data),
        ("plan", data, "--method", "mirror-prox"),
        ("solve", data, "--out", "run"),
        ("verify", "run", "--follow"),
        ("predict", "run", data, "scores.npy"),
        ("svm", data, "--out", "svm", "--tol", 0.5),
        ("solve", data, "--hard-margin", "--out", "widest"),
        ("race", f"{data}-2", "--out", "race", "--methods", "mirror-prox,von-neumann", "--eps", 0.2),
        ("solve", data, "--out", "short", "--method", "perceptron", "--max-passes", 1, "--eps", 1e-6),
    ):
        code, out, err = command(*words)
        assert code == (3 if "short" in words else 0), (words, err)
        written += out + err
    assert "resume" in err
    assert command("resume", "short", "--max-passes", 500)[0] == 0
    for path in tmp_path.rglob("*.json*"):
        written += path.read_text()
    assert data in written
    assert SECRET not in written
    assert (
        sum(path.is_file() for path in (tmp_path / "kept").rglob("*")) == 7 + 2 + 1 + 2
    )  # seven blocks of one, one of the other


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["info", "s3://no-such-bucket/data"], 4, "s3://no-such-bucket: no such bucket"),
        (["info", f"{URL}/no-such-key"], 4, f"{URL}/no-such-key: no such file or folder"),
        (["info", URL], 2, "s3://bucket: a key is missing, give s3://bucket/KEY"),
        (["info", f"s3://key:{SECRET}@bucket/data"], 2, "without credentials in it"),
        (["info", "ftp://example.com/data"], 2, "expected s3://BUCKET/KEY, gs://BUCKET/KEY, az://CONTAINER/KEY or https"),
        (["info", f"{URL}/a/../b"], 2, "s3://bucket: a key without . and .. as parts"),
        (["ingest", f"{URL}/no-such.csv", "out"], 4, "no such file or folder"),
        (["ingest", "s3://no-such-bucket/a.csv", "out"], 4, "no such bucket"),
        (["generate", "planted", "s3://no-such-bucket/d", "--features", "2", "--points", "9"], 2, "no such bucket"),
        (["solve", "x", "--out", "run", "--mask", f"{URL}/mask.npy"], 2, "give a path of this machine"),
    ],
)
def test_places_that_do_not_serve_are_one_line(
    words: list[str], code: int, said: str, door: Door, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    found, out, err = command(*words)
    assert (found, out) == (code, ""), err
    assert said in err
    assert err.startswith("dfeas: error: ")
    assert err.count("\n") == 1
    assert SECRET not in err


def test_no_credentials_are_said_and_public_data_needs_none(
    data: str, door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    object_store.store_of.cache_clear()
    code, _, err = command("info", data)
    assert (code, err.count("\n")) == (2, 1)
    assert "s3://bucket: no AWS credentials were found; set them up as for the AWS command line" in err
    (tmp_path / "credentials").write_text(f"[default]\naws_access_key_id = key\naws_secret_access_key = {SECRET}\n")
    assert command("info", data)[0] == 0  # the chain has profiles, too
    (tmp_path / "credentials").unlink()
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    object_store.store_of.cache_clear()
    door.reset()
    code, _, err = command("info", data)
    assert door.requests
    assert not door.signed  # and the server, whose data is not public, says no
    assert code == 2
    assert "access was refused" in err


def test_other_providers_are_asked_in_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "")
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME")
    with pytest.raises(UsageError, match=r"az://box: .*Account must be specified; set it in the environment"):
        ObjectPath.of("az://box/a")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    for url in ("gs://bucket/a/b", "az://box/a/b"):
        assert str(ObjectPath.of(url)) == url
        assert isinstance(ObjectPath.of(url).store, obstore.store.GCSStore | obstore.store.AzureStore)


def test_an_object_of_no_bytes_is_said_to_be_short(door: Door, tmp_path: Path) -> None:
    data = f"{URL}/{tmp_path.name}"
    generate(Instance("planted", 5, 200, 0.2, block_rows=100), data)
    ObjectPath.of(f"{data}/X/c.1.0").write_bytes(b"")
    with pytest.raises(CorruptDataError, match=r"X/c\.1\.0: has fewer bytes than it should"):
        dfeas.solve(data)


def test_regressions_of_tables_in_a_store(door: Door, tmp_path: Path) -> None:
    """The command reads what the call reads of the same file here."""
    text = "age,ward,died\n" + "".join(f"{30 + i},{'abc'[i % 3]},{int(i > 20)}\n" for i in range(40))
    (tmp_path / "b.csv").write_text(text)
    ObjectPath.of(f"{URL}/tables/b.csv").write_bytes(text.encode())
    words = ["--label-column", "died", "--json"]
    places = tmp_path / "b.csv", f"{URL}/tables/b.csv"
    here, there = (typed("check-separation", where, *words) for where in places)
    assert (there.returncode, there.stdout) == (0, here.stdout), there.stderr
    assert json.loads(there.stdout)["kind"] == "complete"
    by_formula = typed("check-separation", places[1], "--formula", "died ~ age + C(ward)", "--json")
    assert json.loads(by_formula.stdout)["kind"] == "complete"
