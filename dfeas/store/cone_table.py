"""What the rows of a dataset of cones are: a code for each row, and the counts of the header.

The first row of a cone has the code ``4 size + kind``, its other rows 0. A cone lies in one block; rows of zeros, whose code is
``PADDING``, fill a block up. Kinds and sizes are those of SCS: an entry of the orthant (``l``), a second-order cone of so many
rows (``q``), the lower triangle of a semidefinite matrix of that order (``s``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

KINDS = ("", "l", "q", "s")
"""By their number in a code."""

PADDING = -1
CODE = np.dtype(np.int32)
MOST_ORDER = 2000
"""Largest order of a semidefinite cone."""


def rows_of(kind: str, size: int) -> int:
    """Rows of a cone."""
    return size * (size + 1) // 2 if kind == "s" else size


def rank_of(kind: str, size: int) -> int:
    """Eigenvalues of an element."""
    return {"l": 1, "q": 2, "s": size}[kind]


def code(kind: str, size: int) -> int:
    """Of the first row."""
    return 4 * size + KINDS.index(kind)


def kind_of(code: int) -> tuple[str, int]:
    """Kind and size from the code of a first row. Raises ValueError when it is none."""
    kind, size = code % 4, code // 4
    if code <= 0 or kind == 0 or size < 1:
        raise ValueError(f"{code} is no code of a cone")
    return KINDS[kind], size


@dataclass(frozen=True, slots=True)
class ConeTable:
    """How many cones of each kind and size a dataset has."""

    counts: tuple[tuple[str, int, int], ...]  # (kind, size, how many)

    @property
    def rank(self) -> int:
        """Eigenvalues of all cones together."""
        return sum(rank_of(kind, size) * many for kind, size, many in self.counts)

    @property
    def rows(self) -> int:
        """Rows of all cones, without padding."""
        return sum(rows_of(kind, size) * many for kind, size, many in self.counts)

    @property
    def largest(self) -> int:
        """Rows of the largest cone."""
        return max(rows_of(kind, size) for kind, size, _ in self.counts)

    @property
    def many(self) -> int:
        """Number of cones."""
        return sum(many for _, _, many in self.counts)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"counts": [list(entry) for entry in self.counts], "rank": self.rank}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> ConeTable:
        """From ``to_json``. Raises TypeError, KeyError or ValueError when that is not what it is."""
        table = cls(tuple((str(kind), int(size), int(many)) for kind, size, many in values["counts"]))
        if not table.counts or any(kind not in KINDS[1:] or min(size, many) < 1 for kind, size, many in table.counts):
            raise ValueError("no table of cones")
        return table

    def __str__(self) -> str:
        return ", ".join(f"{many} of {kind}" if kind == "l" else f"{many} of {kind} {size}" for kind, size, many in self.counts)


def codes_of(label: NDArray[Any]) -> NDArray[np.int64]:
    """First rows (c,) of all cones in the codes of some rows, ascending."""
    return np.flatnonzero(label > 0)
