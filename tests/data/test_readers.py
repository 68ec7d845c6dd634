"""Every source of points: the same dataset from each, with the names that it has, and nothing where it ends too early."""

import os
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import dfeas
from dfeas.data.storage.readers import advise_chunk
from dfeas.errors import BadInputError, CorruptDataError
from dfeas.records import replace
from tests.data.making import FILES, NAMES, SOURCES, M, N, flip, opened, points_of, source, stored

NAMELESS = ("bare.csv", "plain.npy", "fortran.npy", "packed.npz", "csr.npz", "zarr2", "zarr3", "numpy", "chunks", "plain")
ROWS = (None, 7, N - 1, N, N + 1, 64)
"""Of a block, one for each source in turn."""


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", SOURCES)
def test_the_same_points_are_the_same_dataset(name: str, tmp_path: Path) -> None:
    given, options, frame = source(name, tmp_path)
    rows = ROWS[list(SOURCES).index(name) % len(ROWS)]
    shard = 1000 if list(SOURCES).index(name) % 2 else 0
    header = dfeas.ingest(given, tmp_path / "data", block_rows=rows, shard=shard, **options)
    labels = frame["class"].to_numpy()
    expected = dfeas.ingest(points_of(frame), tmp_path / "expected", y=labels, block_rows=rows)
    named = not (name in NAMELESS or ".svm" in name or ".libsvm" in name)
    expected = replace(expected, features=NAMES if named else (), format=2 if named else 1)
    assert header == (expected if header.ids is None else replace(expected, ids=header.ids, format=4))
    assert (header.ids is not None) == (name == "plain.parquet")  # which pandas wrote with an index
    assert header.block_rows <= N
    assert (header.n, header.m, header.positive, header.dtype) == (N, M, (labels == max(labels)).sum(), "float64")
    assert header.classes == (str(min(labels)), str(max(labels)))
    assert np.array_equal(stored(tmp_path / "data"), points_of(frame))
    assert opened(tmp_path / "data").features == header.features
    assert ("features" in header.to_json()) == named
    given_labels = options.get("label_column", options.get("y"))
    if not options.keys() - {"label_column", "y"} and ".h5ad" not in name and "zarr" not in name:  # whose blocks are others
        solved = dfeas.solve(given, given_labels, max_passes=1)
        assert solved.fingerprint == dfeas.solve(points_of(frame), labels, max_passes=1).fingerprint
        assert solved.features == (list(NAMES) if named else None)


PACKED = [name for name in FILES if name.endswith((".gz", ".bz2", ".parquet", ".h5", ".h5ad", ".npy", ".npz"))]


@pytest.mark.parametrize("name", PACKED)
def test_a_file_that_ends_too_early_is_damaged_and_leaves_nothing(name: str, tmp_path: Path) -> None:
    given, options, _ = source(name, tmp_path)
    whole = given.read_bytes()
    for share in (0.1, 0.6, 0.97):
        given.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises((CorruptDataError, BadInputError), match=r"truncated|damaged|not a readable|takes|ends (at|in)"):
            dfeas.ingest(given, tmp_path / "data", block_rows=64, **options)
        assert not (tmp_path / "data").exists()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", [name for name in PACKED if name.endswith((".gz", ".bz2", ".npz"))])
def test_a_bit_of_an_archive_is_damage_and_leaves_nothing(name: str, tmp_path: Path) -> None:
    given, options, _ = source(name, tmp_path)
    flip(given, given.stat().st_size // 2)
    with pytest.raises((CorruptDataError, BadInputError), match=r"damaged|not a readable|line \d"):
        dfeas.ingest(given, tmp_path / "data", block_rows=64, **options)
    assert not (tmp_path / "data").exists()


def test_the_kernel_is_asked_for_what_the_page_cache_has_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    posix_fadvise = os.posix_fadvise

    def record(descriptor: int, offset: int, length: int, advice: int) -> None:
        asked.append((offset, length))
        posix_fadvise(descriptor, offset, length, advice)

    path = tmp_path / "chunk"
    path.write_bytes(bytes(1 << 20))
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
        with monkeypatch.context() as patched:
            patched.setattr(os, "posix_fadvise", record)
            path.read_bytes()
            advise_chunk(str(path), 0, 0)
            if os.preadv(descriptor, [bytearray(1)], 0, os.RWF_NOWAIT) == 1:
                assert not asked
            posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            with suppress(BlockingIOError):
                if os.preadv(descriptor, [bytearray(1)], 0, os.RWF_NOWAIT) == 1:
                    pytest.skip("this storage keeps what it is told not to")
            advise_chunk(str(path), 0, 0)
            advise_chunk(str(path), 4096, 8192)
            assert asked[0] == (0, 0)
            advise_chunk(str(tmp_path / "missing"), 0, 0)
    finally:
        os.close(descriptor)
