"""Files of an append as they will lie in the dataset, so that it is finished by moving them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zarr
import zarr.storage
from numpy.typing import NDArray

from dfeas.store.layout import ATTRIBUTE, MARKER, Header, seal
from dfeas.store.placing import sync
from dfeas.store.sparse_writing import create_offsets
from dfeas.store.writing import create_checksums


@dataclass(frozen=True)
class Stage:
    """Chunks that were written as those of a dataset of their own, behind ``kept`` blocks of another one."""

    path: Path  # the dataset that grows
    out: Path  # the new chunks
    folder: Path  # where they will lie
    header: Header  # of all points
    kept: int
    offsets: NDArray[np.int64] | None = None  # (blocks + 1,) of sparse entries, of all points

    def lay_out(self, checksums: NDArray[np.uint32]) -> None:
        """Move chunks to their new numbers; write metadata with the new sizes, and the marker."""
        self.folder.mkdir()
        n, sparse = self.header.n, self.offsets is not None
        for name in ("label", "norm", *(() if sparse else ("X",))):
            self._renumbered(name, n, -(-n // self.header.block_rows))
        group = zarr.create_group(zarr.storage.LocalStore(self.folder), zarr_format=3)
        group.attrs[ATTRIBUTE] = self.header.to_json()
        if self.offsets is not None:
            self._entries()
            self._renumbered("X/indptr", n + 1, n // self.header.block_rows + 1)
            create_offsets(group, self.offsets)
        create_checksums(group, checksums)
        (self.folder / MARKER).write_text(f"{seal(self.header)}\n")
        for file in self.folder.rglob("*"):
            sync(file)

    def _renumbered(self, name: str, size: int, chunks: int) -> None:
        """An array with a chunk for each block, up to number ``chunks``."""
        (self.folder / name).mkdir(parents=True)
        self._changed(f"{name}/zarr.json", lambda meta: meta["shape"].__setitem__(0, size))
        array = zarr.open_array(zarr.storage.LocalStore(self.path / name, read_only=True), mode="r")
        for index in range(self.kept, chunks):
            rest = (0,) * (array.ndim - 1)
            was, now = (array.metadata.encode_chunk_key((i, *rest)) for i in (index - self.kept, index))
            (self.out / name / was).rename(self.folder / name / now)

    def _entries(self) -> None:
        """Arrays of entries have their numbers already, and their sizes."""
        (self.folder / "X").mkdir()
        self._changed("X/zarr.json", lambda meta: meta["attributes"].__setitem__("shape", [self.header.n, self.header.m]))
        for name in ("data", "indices"):
            (self.out / "X" / name).rename(self.folder / "X" / name)

    def _changed(self, name: str, change: Callable[[dict[str, Any]], None]) -> None:
        """Metadata of the new chunks with other sizes."""
        meta = json.loads((self.out / name).read_text())
        change(meta)
        (self.folder / name).write_text(json.dumps(meta, indent=2))
