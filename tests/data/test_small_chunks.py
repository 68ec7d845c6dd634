"""Small chunks are read and scanned some together, and each keeps a checksum of its own: nothing that is stored or said of them
changes with it.
"""

from pathlib import Path

import crc32c
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import dfeas
from dfeas.data.storage.chunks import ChunkReader
from dfeas.data.storage.layout import (
    LEAST_BLOCKS,
    SPARSE_BLOCK_BYTES,
    chunks_together,
    default_block_rows,
    every,
    scanned_rows,
    sparse_block_rows,
    sparse_together,
)
from dfeas.data.storage.readers import PAGE_BYTES, Buffers, Cost
from dfeas.data.writers.chunks import seal_index
from dfeas.engine.local import LocalEngine
from dfeas.errors import CorruptDataError
from dfeas.passes.softmin import Softmin
from dfeas.passes.survey import Survey
from dfeas.records import replace
from dfeas.verify import blocks
from dfeas.verify.certificate import Certificate
from dfeas.verify.core import check
from tests.data.making import opened

ROWS, N, M = 3, 400, 5
PER = 7
"""Chunks of a shard."""


def points(n: int = N) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    label = np.resize([-1, 1, 1], n)
    return (rng.uniform(-1, 1, (n, M)) + 3 * label[:, None]).astype(np.float32), label


@pytest.fixture(params=["files", "shards"])
def data(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    X, label = points()
    shard = PER * (ROWS * M * 4 + 4) if request.param == "shards" else 0
    dfeas.ingest(X, tmp_path / "data", y=label, block_rows=ROWS, shard=shard)
    return tmp_path / "data"


@given(st.integers(1, 10**6), st.integers(1, 10**7), st.integers(1, 10**9))
def test_a_block_is_no_larger_than_usual_and_there_are_some(chunk_rows: int, usual: int, n: int) -> None:
    together = chunks_together(chunk_rows, usual, n)
    assert together & (together - 1) == 0
    assert together == 1 or (together * chunk_rows <= usual and -(-n // (together * chunk_rows)) >= LEAST_BLOCKS)
    twice = 2 * together
    assert twice * chunk_rows > usual or -(-n // chunk_rows) < twice * LEAST_BLOCKS


def test_a_survey_has_the_checksum_of_each_chunk(data: Path) -> None:
    X, label = points()
    dataset = opened(data)
    assert dataset.together > 1
    found = LocalEngine(dataset, 2).run(Survey()).checksums
    signs = label.astype(np.int8)
    for chunk, sums in enumerate(found.tolist()):
        rows = slice(chunk * ROWS, (chunk + 1) * ROWS)
        assert sums == [crc32c.crc32c(X[rows].tobytes()), crc32c.crc32c(signs[rows].tobytes())]
    assert len(found) == -(-N // ROWS) == len(dataset.expected)  # type: ignore[arg-type]


def test_the_fingerprint_is_that_of_the_chunks(data: Path, tmp_path: Path) -> None:
    dataset = opened(data)
    np.save(tmp_path / "label.npy", points()[1])
    again = opened(data, labels=str(tmp_path / "label.npy"))
    assert again.fingerprint == dataset.fingerprint
    assert dfeas.info(data).blocks == -(-N // ROWS)


def test_files_and_shards_and_any_number_of_threads_give_the_same_bits(tmp_path: Path) -> None:
    X, label = points()
    answers = set()
    for name, shard in (("files", 0), ("shards", PER * (ROWS * M * 4 + 4))):
        dfeas.ingest(X, tmp_path / name, y=label, block_rows=ROWS, shard=shard)
        for threads in (1, 3):
            engine = LocalEngine(opened(tmp_path / name, intercept=False), threads)
            answer = engine.run(Softmin(np.eye(M)[:, :2] + 0.1, np.full(2, 0.3)))
            answers.add(b"".join(part.tobytes() for part in (answer.low, answer.arg, answer.lse, answer.mean)))
    assert len(answers) == 1


def test_a_shard_whose_chunks_came_in_another_order_is_read_right(tmp_path: Path) -> None:
    X, label = points()
    dfeas.ingest(X, tmp_path / "data", y=label, block_rows=ROWS, shard=PER * (ROWS * M * 4 + 4))
    dataset = opened(tmp_path / "data")
    reader = dataset.points
    assert isinstance(reader, ChunkReader)
    size = reader.array.chunk_bytes
    for file in sorted((tmp_path / "data" / "X").glob("c.*"))[:4]:
        chunks = [file.read_bytes()[place * size : (place + 1) * size] for place in range(PER)]
        order = np.random.default_rng(0).permutation(PER)
        table = np.empty((PER, 2), np.uint64)
        table[order] = np.stack([np.arange(PER) * size, np.full(PER, size)], axis=1)
        file.write_bytes(b"".join(chunks[place] for place in order) + seal_index(table))
    again = opened(tmp_path / "data")
    read = [block.points.copy() for block in again.read_blocks(range(again.blocks), Cost())]
    assert (np.concatenate(read) == X).all()


@pytest.mark.parametrize("n", [128 * 4 * 33 + 5, 128 * (4 * 33 + 2) + 5])
def test_chunks_of_whole_pages_come_past_the_page_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    """The last block has one short chunk, or some of those of a block."""
    X = np.random.default_rng(0).standard_normal((n, 8)).astype(np.float32)
    dfeas.ingest(X, tmp_path / "data", y=np.resize([0, 1], n), block_rows=128)  # of 4096 bytes
    dataset, asked = opened(tmp_path / "data"), []
    assert dataset.together == 4
    monkeypatch.setattr(dataset, "points", replace(dataset.points, folder=replace(dataset.points.folder, past_cache=True)))

    def read(path: str, pages: np.ndarray, offset: int = 0) -> int:
        """As the kernel does where it can: from a page on into whole pages."""
        assert pages.ctypes.data % PAGE_BYTES == pages.size % PAGE_BYTES == offset % PAGE_BYTES == 0
        content = Path(path).read_bytes()[offset : offset + pages.size]
        pages[: len(content)] = np.frombuffer(content, np.uint8)
        asked.append((Path(path).name, len(content)))
        return len(content)

    for count in (0, -(-n // 128)):  # as this machine can, then with a kernel that can
        whole = [dataset.points.read(index, Buffers()) for index in range(dataset.blocks)]
        assert np.array_equal(np.concatenate(whole), X)
        assert asked == [(f"c.{chunk}.0", 4096) for chunk in range(count)]
        monkeypatch.setattr("dfeas.data.storage.readers.past_page_cache", read)


def sparse_points(n: int = N) -> tuple[sp.csr_array, np.ndarray]:
    """Separable, some without entries, and many entries in the first."""
    rng = np.random.default_rng(0)
    counts = np.where(np.arange(n) < 20, 40, rng.integers(0, 4, n))
    columns = np.concatenate([np.sort(rng.choice(50, count, replace=False)) for count in counts]).astype(np.int32)
    data = (np.repeat(np.resize([-1, 1, 1], n), counts) * rng.uniform(1, 2, len(columns))).astype(np.float32)
    return sp.csr_array((data, columns, np.append(0, np.cumsum(counts))), shape=(n, 50)), np.resize([-1, 1, 1], n)


def crc_of(points: sp.csr_array) -> int:
    """As the format says it: where rows begin as int64 from 0 on, indices, data."""
    return crc32c.crc32c(points.indptr.astype("<i8").tobytes() + points.indices.astype("<i4").tobytes() + points.data.tobytes())


@pytest.fixture(params=["files", "shards"])
def sparse_data(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    X, label = sparse_points()
    shard = 1000 if request.param == "shards" else 0
    dfeas.ingest(X, tmp_path / "data", y=label, block_rows=ROWS, shard=shard)
    return tmp_path / "data"


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=200), st.integers(1, 50))
def test_a_block_of_sparse_chunks_is_never_large(entries: list[int], rows: int) -> None:
    offsets, n = np.append(0, np.cumsum(entries, dtype=np.int64)), rows * len(entries)
    together = sparse_together(rows, sparse_block_rows(int(offsets[-1]) / n, 8, n), offsets, 8)
    assert together & (together - 1) == 0
    of_blocks = np.diff(every(offsets, together))
    assert of_blocks.tolist() == [sum(entries[first : first + together]) for first in range(0, len(entries), together)]
    assert together == 1 or (8 * of_blocks.max() <= SPARSE_BLOCK_BYTES and len(of_blocks) >= LEAST_BLOCKS)


def test_sparse_chunks_keep_their_checksums(sparse_data: Path) -> None:
    X, label = sparse_points()
    dataset, signs = opened(sparse_data), label.astype(np.int8)
    assert dataset.together > 1
    found = LocalEngine(dataset, 2).run(Survey()).checksums
    chunks = [slice(first, first + ROWS) for first in range(0, N, ROWS)]
    assert found.tolist() == [[crc_of(X[rows]), crc32c.crc32c(signs[rows].tobytes())] for rows in chunks]
    stored = [blocks.read(dataset, index, Buffers()) for index in range(dataset.blocks)]
    assert np.array_equal(np.frombuffer(b"".join(block.checksums for block in stored), "<u4").reshape(-1, 2), found)


@pytest.mark.parametrize(("name", "what"), [("X/indices/c.0", "X"), ("label/c.5", "label")])
def test_damage_of_sparse_points_is_told_by_the_chunk_also_by_the_checker(tmp_path: Path, name: str, what: str) -> None:
    X, label = sparse_points()
    header = dfeas.ingest(X, tmp_path / "data", y=label, block_rows=ROWS)
    certificate = Certificate("separator", header.fingerprint, y=np.full(50, 50**-0.5))
    file, chunk = tmp_path / "data" / name, 44
    content = bytearray(file.read_bytes())
    content[4 * int(X.indptr[chunk * ROWS + 1]) if what == "X" else 4 * (ROWS + 4)] ^= 3
    file.write_bytes(content)
    dataset = opened(tmp_path / "data", intercept=False)
    for look in (
        lambda: LocalEngine(dataset, 2).run(Survey()),
        lambda: check(LocalEngine(opened(tmp_path / "data", intercept=False), 2), dataset, certificate),
    ):
        with pytest.raises(CorruptDataError, match=rf"chunk {chunk} of {what} is damaged"):
            look()


@pytest.mark.parametrize(("m", "rows"), [(1, 1 << 18), (1000, 1048), (20_000, 128), (100_000, 41), (1 << 20, 4), (10**8, 1)])
def test_more_rows_of_wide_points_are_scanned_at_once_than_are_stored_together(m: int, rows: int) -> None:
    assert scanned_rows(m, 4, 10**6) == rows >= default_block_rows(m, 4, 10**6)
    assert scanned_rows(m, 4, 3) == min(3, rows)
