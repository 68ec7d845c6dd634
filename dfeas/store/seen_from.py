"""Points seen from another point: differences, formed when a block is read. Nothing is written anew."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dfeas.errors import CorruptDataError
from dfeas.passes.survey import checksum
from dfeas.store.reading import AnyArray, Buffers, RowReader


@dataclass(frozen=True)
class SeenFrom:
    """A reader of x_j - p, in float64: each entry is the exact difference with a relative error of at most 2**-53."""

    inner: RowReader
    point: NDArray[np.float64]  # (m,)
    expected: NDArray[np.uint32] | None  # checksums of the stored blocks, where there are any
    where: str
    _verified: dict[int, int | None] = field(default_factory=dict)  # stamps of blocks

    @property
    def overlaps(self) -> bool:
        """As it is stored."""
        return self.inner.overlaps

    def stored(self, index: int, buffers: Buffers) -> AnyArray:
        """Rows as they are stored; raises CorruptDataError when they are not what was ingested."""
        rows = self.inner.read(index, buffers)
        stamp = self.inner.stamp(index)
        if self.expected is not None and (index not in self._verified or self._verified[index] != stamp):
            if checksum(rows) != self.expected[index]:
                raise CorruptDataError(f"{self.where}: chunk {index} of X is damaged; restore or ingest again")
            self._verified[index] = stamp
        return rows

    def read(self, index: int, buffers: Buffers) -> AnyArray:
        """Differences of a block."""
        rows = self.stored(index, buffers)
        wide = buffers.take("seen", rows.size * 8).view(np.float64).reshape(rows.shape)
        np.subtract(rows, self.point, out=wide, dtype=np.float64)
        return wide

    def advise(self, index: int) -> None:
        """As it is stored."""
        self.inner.advise(index)

    def stamp(self, index: int) -> int | None:
        """As it is stored."""
        return self.inner.stamp(index)
