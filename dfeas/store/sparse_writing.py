"""Writing a sparse dataset: as a dense one, but for X, which is a group in the AnnData layout.

OUT/X              attributes encoding-type csr_matrix, encoding-version, shape
OUT/X/data         (entries,)  chunks of ``CHUNK_ENTRIES``, uncompressed, crc32c
OUT/X/indices      (entries,)  int32, or int64 for 2**31 features or more; ascending in each row
OUT/X/indptr       (n + 1,)    int64, a chunk for each block
OUT/offset         (blocks + 1,) int64: where the entries of each block begin
"""

from __future__ import annotations

import shutil
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import crc32c
import numpy as np
from numpy.typing import NDArray

from dfeas.errors import BadInputError
from dfeas.store.sparse import CHUNK_ENTRIES
from dfeas.store.writing import DatasetWriter

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ENCODING = {"encoding-type": "csr_matrix", "encoding-version": "0.1.0"}


class _Appended:
    """An array that is written chunk by chunk from its first entry on, with running checksums."""

    def __init__(self, folder: Path, dtype: np.dtype[Any]) -> None:
        folder.mkdir(parents=True)
        self.folder, self.dtype, self.count = folder, dtype, 0
        self._crc = 0

    def append(self, values: NDArray[Any]) -> None:
        """More entries."""
        values = np.ascontiguousarray(values, self.dtype.newbyteorder("<"))
        while len(values):
            index, within = divmod(self.count, CHUNK_ENTRIES)
            some, values = values[: CHUNK_ENTRIES - within], values[CHUNK_ENTRIES - within :]
            self._crc = crc32c.crc32c(some.view(np.uint8), self._crc)
            with (self.folder / f"c.{index}").open("ab") as file:
                file.write(some.data)
                self.count += len(some)
                if self.count % CHUNK_ENTRIES == 0:
                    self._end(file)

    def _end(self, file: Any) -> None:
        file.write(self._crc.to_bytes(4, "little"))
        self._crc = 0

    def finish(self) -> int:
        """End the last chunk, which is filled up unless it is the only one; returns entries of a chunk."""
        index, within = divmod(self.count, CHUNK_ENTRIES)
        if within:
            if index:
                self.append(np.zeros(CHUNK_ENTRIES - within, self.dtype))
            else:
                with (self.folder / "c.0").open("ab") as file:
                    self._end(file)
        return CHUNK_ENTRIES if index else max(1, within)


class SparseWriter(DatasetWriter):
    """Takes blocks (b, m) as CSR matrices with ascending indices; those that come early wait for the others."""

    path: Path

    def _create_points(self) -> None:
        """Chunks wait apart; the arrays of X are made around them at the end, when their lengths are known."""
        index = np.dtype(np.int32 if self.m < 2**31 else np.int64)
        part = self.path / "part"
        self._data, self._indices = _Appended(part / "data", self.dtype), _Appended(part / "indices", index)
        (part / "indptr").mkdir()
        self._offsets = [0]
        self._waiting: dict[int, csr_array] = {}
        self._lock = Lock()

    def _resize_points(self) -> None:
        """Nothing to do: as above."""

    def _check(self, index: int, points: Any) -> None:
        """Raise BadInputError for indices that do not ascend in a row, or are out of range."""
        indices, starts = points.indices, points.indptr
        rising = np.diff(indices.astype(np.int64)) > 0
        rising[starts[1:-1][(starts[1:-1] > 0) & (starts[1:-1] < len(indices))] - 1] = True
        if not rising.all() or (len(indices) and (indices.min() < 0 or indices.max() >= self.m)):
            raise BadInputError(f"{self.path}: indices of block {index} do not ascend within 0 .. {self.m - 1}")

    def _store_points(self, index: int, points: Any, crc: int) -> None:
        """Append all blocks whose turn has come."""
        with self._lock:
            self._waiting[index] = points
            while len(self._offsets) - 1 in self._waiting:
                self._append(len(self._offsets) - 1, self._waiting.pop(len(self._offsets) - 1))

    def _append(self, index: int, points: csr_array) -> None:
        first = self._offsets[-1]
        self._data.append(points.data)
        self._indices.append(points.indices)
        self._offsets.append(first + len(points.indices))
        self._put_indptr(index, points.indptr[:-1].astype(np.int64) + first)

    def _put_indptr(self, index: int, values: NDArray[np.int64]) -> None:
        """A chunk of indptr; the last one has the end, too, and is filled up."""
        filled = np.zeros(self.block_rows, "<i8")
        filled[: len(values)] = values
        with (self.path / "part" / "indptr" / f"c.{index}").open("wb") as file:
            file.write(filled.data)
            file.write(crc32c.crc32c(filled.view(np.uint8)).to_bytes(4, "little"))

    def _finish_points(self) -> dict[str, Any]:
        """Make the arrays around the chunks; what the header says of them."""
        last, within = divmod(self.n, self.block_rows)
        ends = np.asarray(self._offsets[-1:], np.int64)
        if within:
            held = np.fromfile(self.path / "part" / "indptr" / f"c.{last}", "<i8", within)
            ends = np.append(held, ends)
        self._put_indptr(last, ends)
        group = self._group.create_group("X", attributes={**ENCODING, "shape": [self.n, self.m]})
        for name, appended in (("data", self._data), ("indices", self._indices)):
            count = self._offsets[-1]
            chunk = appended.finish()
            self._create(name, (count,), (chunk,), appended.dtype, 0, group)
        self._create("indptr", (self.n + 1,), (self.block_rows,), np.dtype(np.int64), 0, group)
        for folder in (self.path / "part").iterdir():
            for file in folder.iterdir():
                file.rename(self.path / "X" / folder.name / file.name)
        shutil.rmtree(self.path / "part")
        offsets = self._create("offset", (len(self._offsets),), (len(self._offsets),), np.dtype(np.int64), 0)
        offsets[:] = np.asarray(self._offsets)
        most = int(np.diff(self._offsets).max())
        return {"entries": self._offsets[-1], "block_entries": most}
