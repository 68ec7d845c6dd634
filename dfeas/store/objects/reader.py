"""Chunks that are plain objects: one request a block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import obstore
from numpy.typing import NDArray

from dfeas.errors import CorruptDataError
from dfeas.store.objects.bucket import said
from dfeas.store.objects.kept import KeptBlocks
from dfeas.store.objects.tags import Tags, tag_of
from dfeas.store.reading import AnyArray, Buffers


@dataclass(frozen=True)
class ObjectReader:
    """Chunks as ``DirectReader`` reads them, from an object store, with a cache on this machine or without one."""

    name: str
    tags: Tags  # of the folder of the chunks
    key: Callable[[int], str]  # block index -> name of its chunk in the folder
    n: int
    block_rows: int
    row: tuple[int, ...]  # shape of a row
    dtype: np.dtype[Any]
    trailer: int  # bytes of checksum after the entries
    kept: KeptBlocks | None = None

    overlaps = False
    distant = True

    def read(self, index: int, buffers: Buffers) -> AnyArray:
        """Read a chunk; raises CorruptDataError when it is missing or has another size."""
        whole = self.block_rows * self.dtype.itemsize * int(np.prod(self.row, dtype=np.int64))
        rows = min(self.block_rows, self.n - index * self.block_rows)
        content: AnyArray = self._content(index, buffers)
        if content.size != whole + self.trailer:
            raise CorruptDataError(
                f"{self._where(index)}: chunk {index} of {self.name} has {content.size} bytes, expected "
                f"{whole + self.trailer}; restore or ingest again"
            )
        found = content[: rows * (whole // self.block_rows)].view(self.dtype).reshape(rows, *self.row)
        return found if found.flags.aligned else found.copy()

    def _content(self, index: int, buffers: Buffers) -> NDArray[np.uint8]:
        """All bytes of a chunk, from this machine where they are kept."""
        name = self.key(index)
        where = self._where(index)
        if self.kept is not None:
            held = self.kept.read(where, self.tags(name), lambda size: buffers.take(f"{self.name} kept", size))
            if held is not None:
                return held
        try:
            with said(where):
                found = obstore.get(self.tags.folder.bucket.store, f"{self.tags.folder.key}/{name}")
                content = np.frombuffer(memoryview(found.bytes()), np.uint8)
        except FileNotFoundError:
            raise CorruptDataError(f"{where}: chunk {index} of {self.name} is missing; restore or ingest again") from None
        tag = tag_of(found.meta)
        self.tags.correct(name, tag)
        if self.kept is not None:
            self.kept.write(where, tag, content)
        return content

    def _where(self, index: int) -> str:
        return f"{self.tags.folder}/{self.key(index)}"

    def advise(self, index: int) -> None:
        """Nothing to do: see Ahead."""

    def stamp(self, index: int) -> int:
        """The ETag, as a number."""
        return self.tags(self.key(index))
