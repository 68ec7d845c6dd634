"""Every reader of points keeps the laws of the protocol."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import h5py
import numpy as np
import pytest
import scipy.sparse as sp
import zarr
from zarr.codecs import BytesCodec, Crc32cCodec, ShardingCodec

import dfeas
from dfeas.data.dataset import Dataset
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source, Transform
from dfeas.data.storage.chunks import ChunkReader
from dfeas.data.storage.object_path import ObjectPath
from dfeas.data.storage.readers import Files
from dfeas.data.views import transform_features
from dfeas.records import replace
from tests.conformance.readers import ReaderTests, Rows
from tests.data.making import flip, opened

Damage = Callable[[Path], Any]


def dense(n: int = 700, m: int = 7, dtype: Any = np.float32) -> np.ndarray:
    X = np.random.default_rng(0).standard_normal((n, m)).astype(dtype)
    X[::9, 0] = -0.0
    return X


def sparse(n: int = 300, m: int = 50) -> sp.csr_array:
    """With empty rows, and a feature that no point has."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((n, m)) < 0.08, rng.standard_normal((n, m)), 0).astype(np.float32)
    X[:, 7] = 0
    X[::50] = 0
    return sp.csr_array(X)


def stored(folder: Path | str, X: Rows, scratch: Path, shard: int | None = None, rows: int = 64) -> str:
    """The place of a dataset of X in chunks of so many rows, made at the first call, with shards of so many bytes."""
    where = f"{folder}/data"
    if not (scratch / "made").exists():
        dfeas.ingest(X, where, y=np.resize([0, 1, 1], X.shape[0]), block_rows=rows, shard=shard)
        (scratch / "made").touch()
    return where


def local(folder: Path, name: str) -> Any:
    return folder / "data" / name


def url(folder: Path) -> str:
    return f"s3://bucket/{folder.name}"


def remote(folder: Path, name: str) -> Any:
    return ObjectPath.of(f"{url(folder)}/data/{name}")


def flipped(name: str, byte: int = 40, at: Callable[[Path, str], Any] = local) -> Damage:
    """A bit of a file is another one."""
    return lambda folder: flip(at(folder, name), byte)


def gone(name: str, at: Callable[[Path, str], Any] = local) -> Damage:
    return lambda folder: at(folder, name).unlink()


def filled(name: str, content: Callable[[bytes], bytes]) -> Damage:
    def damage(folder: Path) -> None:
        file = folder / "data" / name
        file.write_bytes(content(file.read_bytes()))

    return damage


def a_folder(name: str) -> Damage:
    def damage(folder: Path) -> None:
        gone(name)(folder)
        (folder / "data" / name).mkdir()

    return damage


def swapped(folder: Path) -> None:
    one, other = folder / "data" / "X" / "c.0.0", folder / "data" / "X" / "c.1.0"
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)


def cut(name: str) -> Damage:
    return filled(name, lambda content: content[:-5])


def past_cache(read: tuple[Dataset, Rows], folder: Path) -> tuple[Dataset, Rows]:
    """A dataset that is read past the page cache."""
    dataset, written = read
    assert isinstance(dataset.points, ChunkReader)
    past = replace(dataset.points, folder=Files(folder / "data" / "X", past_cache=True))
    return replace(dataset, points=past), written


class TestChunksThatArePlainFiles(ReaderTests):
    damages: ClassVar[Mapping[str, Damage]] = {
        "a bit": flipped("X/c.3.0"),
        "a bit of the last": flipped("X/c.10.0"),
        "too short": cut("X/c.3.0"),
        "gone": gone("X/c.3.0"),
        "empty": filled("X/c.3.0", lambda content: b""),
        "too long": filled("X/c.3.0", lambda content: content + b"x"),
        "a folder": a_folder("X/c.3.0"),
        "two that changed places": swapped,
        "of the labels": flipped("label/c.0", 2 * 68 + 5),
        "of the index of the norms": flipped("norm/c.0", -5),
    }

    def opened(self, folder: Path) -> tuple[Dataset, Rows]:
        return opened(stored(folder, dense(), folder)), dense()


class TestChunksPastThePageCache(TestChunksThatArePlainFiles):
    def opened(self, folder: Path) -> tuple[Dataset, Rows]:
        return past_cache(super().opened(folder), folder)


SHARD = 3 * (64 * 7 * 4 + 4)
"""Bytes of three blocks: 11 of them make four shards."""


class TestShards(ReaderTests):
    damages: ClassVar[Mapping[str, Damage]] = {
        "a bit": flipped("X/c.1.0"),
        "a bit of the last": flipped("X/c.3.0"),
        "a bit of an index": flipped("X/c.1.0", -30),
        "a bit of its checksum": flipped("X/c.1.0", -1),
        "too short": cut("X/c.1.0"),
        "gone": gone("X/c.1.0"),
        "of the labels": flipped("label/c.0", 5),
        "of the index of the norms": flipped("norm/c.0", -5),
    }

    def opened(self, folder: Path) -> tuple[Dataset, Rows]:
        return opened(stored(folder, dense(), folder, SHARD)), dense()


class TestShardsPastThePageCache(TestShards):
    def opened(self, folder: Path) -> tuple[Dataset, Rows]:
        return past_cache(super().opened(folder), folder)


SMALL = 4
"""Points of a chunk: four of the 175 are a block."""


class TestSmallChunksTogether(ReaderTests):
    damages: ClassVar[Mapping[str, Damage]] = {"gone": gone("X/c.174.0"), "of the labels": flipped("label/c.1", 2)}
    shard = 0

    def opened(self, folder: Path) -> tuple[Dataset, Rows]:
        place = stored(folder, dense(), folder, self.shard, SMALL)
        dataset = opened(place)
        assert dataset.block_rows == 4 * SMALL
        return dataset, dense()


class TestSmallChunksInShards(TestSmallChunksTogether):
    """Seven in a shard, whose ends are within blocks."""

    damages: ClassVar[Mapping[str, Damage]] = {"a bit": flipped("X/c.1.0"), "a bit of an index": flipped("X/c.1.0", -30)}
    shard = 7 * (SMALL * 7 * 4 + 4)


class TestSparseChunks(ReaderTests):
    damages: ClassVar[Mapping[str, Damage]] = {
        "an entry": flipped("X/data/c.0"),
        "an index": flipped("X/indices/c.0"),
        "an offset": flipped("X/indptr/c.0", (64 * 8 + 4) + 8),
        "an offset out of range": filled("X/indptr/c.0", lambda content: content[:8] + b"\xff\x7f\xff\x7f" + content[12:]),
        "an index out of range": filled("X/indices/c.0", lambda content: b"\xff\xff\xff\x7f" + content[4:]),
        "where blocks begin": flipped("offset/c.0", 8),
        "the last of them": flipped("offset/c.0", -1),
        "a checksum": flipped("checksum/c.0.0", 0),
        "of the labels": flipped("label/c.0", 8),
        "of the norms": flipped("norm/c.0", 8),
        "half of what it says": filled("zarr.json", lambda content: content[: len(content) // 2]),
        "too short": cut("X/data/c.0"),
        "gone": gone("X/indices/c.0"),
    }

    def opened(self, folder: Path) -> tuple[Dataset, Rows]:
        return opened(stored(folder, sparse(), folder)), sparse()


class TestSparseShards(ReaderTests):
    damages: ClassVar[Mapping[str, Damage]] = {
        "an entry": flipped("X/data/c.0"),
        "an index": flipped("X/indices/c.0"),
        "an offset": flipped("X/indptr/c.0", 8),
        "the index of the entries": flipped("X/data/c.0", -30),
        "the index of the indices": flipped("X/indices/c.0", -2),
        "the index of the offsets": flipped("X/indptr/c.0", -2),
        "too short": cut("X/data/c.0"),
        "gone": gone("X/indices/c.0"),
    }

    def opened(self, folder: Path) -> tuple[Dataset, Rows]:
        return opened(stored(folder, sparse(), folder, 10**8)), sparse()


class TestSmallSparseChunksTogether(ReaderTests):
    """Of the 75 two are a block."""

    damages: ClassVar[Mapping[str, Damage]] = {
        "an offset": flipped("X/indptr/c.1", 8),
        "a shard of offsets too short": cut("X/indptr/c.1"),
        "a shard of offsets gone": gone("X/indptr/c.4"),
    }
    shard = 0

    def opened(self, folder: Path) -> tuple[Dataset, Rows]:
        dataset = opened(stored(folder, sparse(), folder, self.shard, SMALL))
        assert dataset.block_rows == 2 * SMALL
        return dataset, sparse()


class TestArrayInMemory(ReaderTests):
    def opened(self, folder: Path) -> tuple[Dataset, Rows]:
        X = dense(6000, 200, np.float64)
        return opened(X), X


class TestMatrixInMemory(ReaderTests):
    least_blocks = 1

    def opened(self, folder: Path) -> tuple[Dataset, Rows]:
        return opened(sparse()), sparse()


class TestArrayOfZarr(ReaderTests):
    """Of a user: compressed, in chunks that cut rows, big-endian."""

    damages: ClassVar[Mapping[str, Damage]] = {
        "a chunk that cannot be decoded": lambda folder: (folder / "x" / "c" / "2" / "0").write_bytes(b"no chunk"),
        "gone": lambda folder: (folder / "x" / "c" / "2" / "0").unlink(),
    }

    def opened(self, folder: Path) -> tuple[Dataset, Rows]:
        X = dense(6000, 200, np.float64)
        if not (folder / "x").exists():
            zarr.create_array(folder / "x", shape=X.shape, chunks=(1000, 150), dtype=">f8")[:] = X
        return opened(folder / "x"), X


class TestUsersShards(ReaderTests):
    """The index at either end, with a checksum or none, chunks that have one or none."""

    damages: ClassVar[Mapping[str, Damage]] = {
        "a bit": lambda folder: flip(folder / "x" / "c" / "1" / "0", 1000),
        "too short": lambda folder: (folder / "x" / "c" / "1" / "0").write_bytes(b"no shard"),
        "gone": lambda folder: (folder / "x" / "c" / "1" / "0").unlink(),
    }
    index: tuple[Any, ...] = (BytesCodec(), Crc32cCodec())
    inner: tuple[Any, ...] = (BytesCodec(), Crc32cCodec())
    at: Any = "end"

    def opened(self, folder: Path) -> tuple[Dataset, Rows]:
        X = dense(5500, 100, np.float64)
        codec = ShardingCodec(chunk_shape=(1000, 100), codecs=self.inner, index_codecs=self.index, index_location=self.at)
        if not (folder / "x").exists():
            options: dict[str, Any] = {"dtype": "f8", "codecs": [codec], "fill_value": 0}
            zarr.create(shape=X.shape, chunks=(2000, 100), store=folder / "x", **options)[:] = X
        return opened(folder / "x"), X


class TestUsersShardsThatBeginWithTheirIndex(TestUsersShards):
    index, at = (BytesCodec(),), "start"


class TestUsersShardsWithoutChecksums(TestUsersShards):
    damages: ClassVar[Mapping[str, Damage]] = {}
    index, inner = (BytesCodec(),), (BytesCodec(),)


class TestUsersShardsThatCutRows(TestArrayOfZarr):
    test_threads_read_at_the_same_time = test_advice_changes_nothing = None  # as of chunks that cut rows

    def opened(self, folder: Path) -> tuple[Dataset, Rows]:
        X = dense(6000, 200, np.float64)
        if not (folder / "x").exists():
            options: dict[str, Any] = {"chunks": (1000, 50), "shards": (2000, 100), "compressors": None}
            zarr.create_array(folder / "x", data=X, **options)
        return opened(folder / "x"), X


class TestArrayOfHdf5(ReaderTests):
    def opened(self, folder: Path) -> tuple[Dataset, Rows]:
        X = dense(6000, 200, np.float64)
        with h5py.File(folder / "x.h5", "w") as file:
            file.create_dataset("X", data=X, chunks=(1000, 200))
        return opened(h5py.File(folder / "x.h5")["X"]), X


class TestSubsetOfTwoStores(ReaderTests):
    def opened(self, folder: Path) -> tuple[Dataset, Rows]:
        X, mask = dense(), np.random.default_rng(1).random(700) < 0.5
        for name, rows, size in (("a", slice(0, 450), 64), ("b", slice(450, 700), 50)):
            if not (folder / name).exists():
                dfeas.ingest(X[rows], folder / name, y=np.resize([0, 1], len(X[rows])), block_rows=size)
        np.save(folder / "mask.npy", mask)
        return opened(folder / "a", also=(str(folder / "b"),), mask=str(folder / "mask.npy")), X[mask]


class TestSparseSubset(ReaderTests):
    def opened(self, folder: Path) -> tuple[Dataset, Rows]:
        mask = np.random.default_rng(1).random(300) < 0.7
        np.save(folder / "mask.npy", mask)
        source = Source(DataSpec(stored(folder, sparse(), folder), mask=str(folder / "mask.npy")))
        return open_source(source), sparse()[np.flatnonzero(mask)]


class TestPointsSeenFromAPoint(ReaderTests):
    def opened(self, folder: Path) -> tuple[Dataset, Rows]:
        point = tuple(np.linspace(-1, 1, 7).tolist())
        dataset = opened(stored(folder, dense(), folder), point=point)
        return dataset, dense().astype(np.float64) - np.array(point)


class TestCentredAndScaledPoints(ReaderTests):
    def opened(self, folder: Path) -> tuple[Dataset, Rows]:
        shift, factor = tuple(np.linspace(-1, 1, 7).tolist()), tuple(np.linspace(0.5, 3, 7).tolist())
        seen_as = Transform("std", center=True, points=700, shift=shift, factor=factor)
        dataset = transform_features(opened(stored(folder, dense(), folder)), seen_as)
        return dataset, (dense().astype(np.float64) - np.array(shift)) * np.array(factor)


class TestScaledSparsePoints(ReaderTests):
    def opened(self, folder: Path) -> tuple[Dataset, Rows]:
        factor = tuple(np.linspace(0.5, 3, 50).tolist())
        dataset = transform_features(opened(stored(folder, sparse(), folder)), Transform("maxabs", points=300, factor=factor))
        X = sparse().astype(np.float64)
        return dataset, sp.csr_array((X.data * np.array(factor)[X.indices], X.indices, X.indptr), shape=X.shape)


@pytest.mark.usefixtures("server")
class TestObjects(ReaderTests):
    damages: ClassVar[Mapping[str, Damage]] = {"a bit": flipped("X/c.3.0", at=remote), "gone": gone("X/c.3.0", remote)}

    def opened(self, folder: Path) -> tuple[Dataset, Rows]:
        return opened(stored(url(folder), dense(), folder)), dense()


@pytest.mark.usefixtures("server")
class TestShardsThatAreObjects(ReaderTests):
    damages: ClassVar[Mapping[str, Damage]] = {
        "a bit": flipped("X/c.1.0", at=remote),
        "a bit of an index": flipped("X/c.1.0", -30, remote),
        "gone": gone("X/c.1.0", remote),
        "of the labels": flipped("label/c.0", 5, remote),
    }

    def opened(self, folder: Path) -> tuple[Dataset, Rows]:
        return opened(stored(url(folder), dense(), folder, SHARD)), dense()


class TestShardsKeptOnThisMachine(TestShardsThatAreObjects):
    test_any_range_of_blocks_is_read_once = test_advice_changes_nothing = None  # as of shards that are not kept

    def opened(self, folder: Path) -> tuple[Dataset, Rows]:
        dataset, written = super().opened(folder)
        source = replace(Source(DataSpec(dataset.where)), cache_dir=str(folder / "cache"))
        return open_source(source), written


@pytest.mark.usefixtures("server")
class TestSparseObjects(ReaderTests):
    damages: ClassVar[Mapping[str, Damage]] = {
        "an entry": flipped("X/data/c.0", at=remote),
        "gone": gone("X/indices/c.0", remote),
    }

    test_threads_read_at_the_same_time = test_advice_changes_nothing = None  # as of dense points

    def opened(self, folder: Path) -> tuple[Dataset, Rows]:
        return opened(stored(url(folder), sparse(), folder)), sparse()
