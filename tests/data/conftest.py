from collections.abc import Iterator

import pytest

from dfeas.data.ingest import array_files, tables, text
from dfeas.data.storage import object_path, object_store
from dfeas.data.writers import chunks
from dfeas.data.writers.sparse import SparseWriter
from tests.data.s3 import Door, serving


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[Door, dict[str, str]]]:
    """A server that speaks S3, and the environment that leads to it."""
    with serving() as found:
        yield found


@pytest.fixture
def door(server: tuple[Door, dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> Iterator[Door]:
    """Its door, where nothing goes wrong yet; nobody waits there for long."""
    monkeypatch.setattr(object_store, "RETRIES", 1)
    monkeypatch.setenv("DFEAS_STORAGE_PATIENCE", "0.5")
    object_store.store_of.cache_clear()
    server[0].reset()
    yield server[0]
    server[0].reset()
    object_store.store_of.cache_clear()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is cut into pieces has several of them in some hundred points."""
    for owner, name, size in (
        (text.TextFile, "run_bytes", 2000),
        (tables, "BATCH_BYTES", 2000),
        (array_files, "SLAB_BYTES", 1000),
        (SparseWriter, "chunk_entries", 100),
        (chunks, "PIECE_BYTES", 400),
        (object_path, "PART_BYTES", 2000),
    ):
        monkeypatch.setattr(owner, name, size)
