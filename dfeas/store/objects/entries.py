"""Entries of sparse points in an object store: a request for each piece of a chunk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import obstore
from numpy.typing import NDArray

from dfeas.errors import CorruptDataError
from dfeas.store.objects.bucket import said
from dfeas.store.objects.tags import Tags, tag_of
from dfeas.store.reading import Buffers
from dfeas.store.sparse import pieces

if TYPE_CHECKING:
    from obstore import GetOptions


@dataclass(frozen=True)
class EntryObjects:
    """One array of entries in plain chunks, as ``EntryFiles`` reads them from files."""

    name: str
    tags: Tags  # of the folder of the chunks
    key: Callable[[int], str]  # chunk -> name in the folder
    dtype: np.dtype[Any]
    chunk: int
    trailer: int

    def read(self, first: int, stop: int, buffers: Buffers) -> NDArray[Any]:
        """Entries first .. stop-1. Raises CorruptDataError when a chunk is missing or has another size."""
        size = self.dtype.itemsize
        buffer = buffers.take(self.name, (stop - first) * size)
        done = 0
        for index, within, count in pieces(self.chunk, first, stop):
            content = self._content(self.key(index), within * size, (within + count) * size)
            buffer[done : done + content.size] = content
            done += content.size
        return buffer.view(self.dtype)

    def _content(self, name: str, first: int, stop: int) -> NDArray[np.uint8]:
        folder = self.tags.folder
        where, expected = f"{folder}/{name}", self.chunk * self.dtype.itemsize + self.trailer
        asked: GetOptions = {"range": (first, stop)}
        try:
            with said(where):
                found = obstore.get(folder.bucket.store, f"{folder.key}/{name}", options=asked)
                size = found.meta["size"]
                content = np.frombuffer(memoryview(found.bytes()), np.uint8) if size == expected else None
        except FileNotFoundError:
            raise CorruptDataError(f"{where}: a chunk of {self.name} is missing; restore or ingest again") from None
        if content is None or content.size != stop - first:
            raise CorruptDataError(
                f"{where}: a chunk of {self.name} has {size} bytes, expected {expected}; restore or ingest again"
            )
        self.tags.correct(name, tag_of(found.meta))
        return content

    def advise(self, first: int, stop: int) -> None:
        """Nothing to do: see Ahead."""

    def stamps(self, first: int, stop: int) -> tuple[int, ...]:
        """The ETags of the chunks with these entries, as numbers."""
        return tuple(self.tags(self.key(index)) for index, _, _ in pieces(self.chunk, first, stop))
