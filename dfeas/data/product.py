"""A product of cones in order, and where its rows lie in blocks that no cone reaches out of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.data.storage.layout import (
    CODE,
    MOST_ORDER,
    PADDING,
    ConeTable,
    code,
    default_block_rows,
    kind_of,
    rows_of,
    sparse_block_rows,
)
from dfeas.data.storage.sparse_readers import index_size
from dfeas.errors import BadInputError

LEAST_WIDTH = 32
"""Blocks are no longer than those of so many features: a scan has elements and matrices of all rows beside the points."""

Run = tuple[str, int, int]
"""Kind, size, and how many cones of it follow each other."""


@dataclass(frozen=True)
class Product:
    """Cones in the order of SCS: all of ``l``, then of ``q``, then of ``s``."""

    runs: tuple[Run, ...]

    @classmethod
    def from_scs(cls, cones: Mapping[str, Any]) -> Product:
        """From ``{'l': 3, 'q': [5, 5], 's': [6]}``. A second-order cone of one row, or a matrix of order 1, is one of ``l``.

        Raises BadInputError for other kinds, and for sizes that are no positive whole numbers.
        """
        if not isinstance(cones, Mapping):
            raise BadInputError(
                f"cones: expected a dictionary such as {{'l': 3, 'q': [5], 's': [6]}}, got {type(cones).__name__}"
            )
        other = [str(kind) for kind in cones if kind not in ("l", "q", "s")]
        if other:
            raise BadInputError(f"cones: kind {other[0]!r} is not known; expected 'l', 'q' and 's', as SCS has them")
        runs: list[Run] = []
        linear = whole(cones.get("l", 0), "l", 0)
        if linear:
            runs.append(("l", 1, linear))
        for kind in ("q", "s"):
            sizes = cones.get(kind, ())
            if not isinstance(sizes, Sequence | np.ndarray) or isinstance(sizes, str | bytes):
                sizes = (sizes,)
            for size in sizes:
                number = whole(size, kind, 1)
                each: Run = ("l", 1, 1) if number == 1 else (kind, number, 1)
                if each[:2] == (runs[-1][:2] if runs else None):
                    runs[-1] = (*each[:2], runs[-1][2] + 1)
                else:
                    runs.append(each)
        if not runs:
            raise BadInputError("cones: no cones; expected a dictionary such as {'l': 3, 'q': [5, 5], 's': [6]}")
        return cls(tuple(runs))

    @classmethod
    def from_text(cls, text: str) -> Product:
        """From ``l:30,q:5x1000,s:6x200``: kind, size, and how many. Raises BadInputError for other text."""
        cones: dict[str, Any] = {}
        for part in text.split(","):
            kind, colon, rest = part.strip().partition(":")
            size, _, many = rest.partition("x")
            if not (colon and size.isdecimal() and (many or "1").isdecimal()):
                raise BadInputError(f"cones {text}: expected kinds, sizes and counts such as l:30,q:5x1000,s:6x200")
            if kind == "l":
                cones["l"] = cones.get("l", 0) + int(size) * int(many or 1)
            else:
                cones.setdefault(kind, []).extend([int(size)] * int(many or 1))
        return cls.from_scs(cones)

    @classmethod
    def from_codes(cls, codes: NDArray[Any]) -> Product:
        """From the codes (c,) of the cones, in order."""
        firsts = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
        return cls(tuple((*kind_of(int(codes[first])), stop - first) for first, stop in pairwise(firsts)))

    @property
    def table(self) -> ConeTable:
        """How many there are of each."""
        counts: dict[tuple[str, int], int] = {}
        for kind, size, many in self.runs:
            counts[kind, size] = counts.get((kind, size), 0) + many
        return ConeTable(tuple((kind, size, many) for (kind, size), many in counts.items()))

    def block_rows(self, m: int, itemsize: int, entries: float | None = None) -> int:
        """Rows of a block, of so many ``entries`` each where they are sparse: about the usual, and whole cones of the size that
        most rows are of.
        """
        table = self.table
        kind, size, _ = max(table.counts, key=lambda entry: rows_of(*entry[:2]) * entry[2])
        width, of_most = LEAST_WIDTH if entries is not None else max(m, LEAST_WIDTH), rows_of(kind, size)
        usual = default_block_rows(width, itemsize, table.rows)
        if entries is not None:
            usual = min(usual, sparse_block_rows(entries, itemsize + index_size(m), table.rows))
        return table.rows if usual == table.rows else max(table.largest, usual // of_most * of_most)


def whole(value: Any, kind: str, least: int) -> int:
    """A size or a number of cones. Raises BadInputError for others than whole numbers from ``least`` on."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        empty = " (an empty cone)" if isinstance(value, int | np.integer) and value == 0 else ""
        raise BadInputError(f"cones: {value!r}{empty} in {kind!r}; expected whole numbers of at least {max(1, least)}")
    if kind == "s" and value > MOST_ORDER:
        raise BadInputError(f"cones: a semidefinite cone of order {value}; at most {MOST_ORDER} is supported")
    return int(value)


@dataclass(frozen=True)
class Placing:
    """Where the rows of a product lie in blocks of ``block_rows``."""

    product: Product
    block_rows: int

    @cached_property
    def starts(self) -> list[NDArray[np.int64]]:
        """First rows (many,) of the cones of each run."""
        runs, at, block = [], 0, self.block_rows
        for kind, size, many in self.product.runs:
            rows = rows_of(kind, size)
            here = min(many, (-at % block) // rows)
            starts = at + rows * np.arange(many, dtype=np.int64)
            if many > here:
                base = at if at % block == 0 else at + -at % block
                turn, place = np.divmod(np.arange(many - here, dtype=np.int64), block // rows)
                starts[here:] = base + turn * block + place * rows
            runs.append(starts)
            at = int(starts[-1]) + rows
        return runs

    @property
    def n(self) -> int:
        kind, size, _ = self.product.runs[-1]
        return int(self.starts[-1][-1]) + rows_of(kind, size)

    @cached_property
    def label(self) -> NDArray[np.int32]:
        """Codes (n,) of all rows."""
        label = np.full(self.n, PADDING, CODE)
        for (kind, size, _), starts in zip(self.product.runs, self.starts, strict=True):
            rows = rows_of(kind, size)
            label[(starts[:, None] + np.arange(rows)).reshape(-1)] = 0
            label[starts] = code(kind, size)
        return label

    @cached_property
    def source(self) -> NDArray[np.int64]:
        """Rows (n,) of the product that are stored there; -1 for padding."""
        some = self.label != PADDING
        source = np.full(self.n, -1, np.int64)
        source[some] = np.arange(some.sum())
        return source
