"""A product of cones in order, where its rows lie in blocks that no cone reaches out of, and programmes as such rows.

A conic programme in the form of SCS, A x + s = b with s in a product of cones, as rows of cones that have no right side.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import scipy  # loads its parts when they are used
from numpy.typing import NDArray

from dfeas.data.storage.layout import (
    CODE,
    MOST_ORDER,
    PADDING,
    ConeTable,
    Header,
    code,
    default_block_rows,
    index_size,
    kind_of,
    rows_of,
    sparse_block_rows,
)
from dfeas.data.storage.sparse_readers import Entries
from dfeas.errors import BadInputError
from dfeas.linalg.points import Floats

EQUALITIES = ("z", "f")
"""Kinds of the zero cone, the second one of older versions."""
MOST_PRODUCTS = 1 << 22
"""Products that equalities may take, in fractions or integers: half a minute, or ten seconds."""
GRAM = 1000
"""Sparse rows, or features, of a cone whose products with each other the checker may store as an array."""
EXISTS, OPEN = {"feasible": "some", "infeasible": "no"}, "it is not decided whether some"
"""What a verdict says of an x; of others it is open."""
Run = tuple[str, int, int]
"""Kind, size, and how many cones of it follow each other."""
Row = dict[int, Fraction]
"""Entries that are not zero, by their columns."""


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
        firsts = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
        return cls(tuple((*kind_of(int(codes[first])), stop - first) for first, stop in pairwise(firsts)))

    @property
    def table(self) -> ConeTable:
        counts: dict[tuple[str, int], int] = {}
        for kind, size, many in self.runs:
            counts[kind, size] = counts.get((kind, size), 0) + many
        return ConeTable(tuple((kind, size, many) for (kind, size), many in counts.items()))

    def block_rows(self, m: int, itemsize: int, entries: float | None = None) -> int:
        """Rows of a block, of so many ``entries`` each where sparse: about the usual, in whole cones of the commonest size."""
        table = self.table
        kind, size, _ = max(table.counts, key=lambda entry: rows_of(*entry[:2]) * entry[2])
        # blocks are no longer than those of 32 features: a scan has elements and matrices of all rows beside the points
        least_width = 32
        width, of_most = least_width if entries is not None else max(m, least_width), rows_of(kind, size)
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


@dataclass(frozen=True)
class Program:
    """How the points of rows of cones are those of the programme that they were made of.

    The question is whether some x has s in the interior. It is asked of y = (x, t) with t > 0 and b t - A x inside: then x / t
    is such an x, and of such an x (x, 1) is such a y, so that neither answer says less or more. The row of t is behind all
    others.
    """

    rows: Any  # (N + 1, m + 1) of b t - A x and t, equalities first
    equal: int = 0
    basis: tuple[Row, ...] = ()  # of (x, t), with which they are basis y; none without equalities: they are y

    def x(self, y: Floats) -> Floats:
        """(m,) of a separator (k,), each entry rounded to float64 once."""
        if not self.equal:
            return np.asarray(y[:-1] / y[-1])
        *x, t = (sum(v * Fraction(float(y[j])) for j, v in row.items()) for row in self.basis)
        return np.array([float(v / t) for v in x])

    def dual(self, scaled: Floats) -> Floats:
        """z (N,) with A'z = 0 and b'z <= 0, nearly, of weights (N - equal + 1,) of the rows of cones and of t."""
        z = np.append(np.zeros(self.equal), scaled)
        if self.equal:
            first, others = scipy.sparse.csr_array(self.rows[: self.equal]), scipy.sparse.csr_array(self.rows[self.equal :])
            z[: self.equal] = np.linalg.lstsq(first.T.toarray(), -(others.T @ scaled), rcond=None)[0]
        return z[:-1]

    @property
    def contradicts(self) -> bool:
        """Whether the equalities alone have no solution."""
        return bool(self.equal) and not self.basis[-1]

    def explain(self, verdict: str, message: str, dual: Floats | None) -> str:
        """What a verdict, its proof about y, and its z (N,) say of x."""
        if self.contradicts:
            return "no x solves the equalities, of numbers as float64 holds them"
        boundary = ", whether one has it on their boundary is not said" if verdict == "infeasible" else ""
        said = f"{EXISTS.get(verdict, OPEN)} x has b - A x in the interior of the cones{boundary}"
        return f"{said}; of {'basis y' if self.equal else 'y'} = (x, t) and rows X y = b t - A x: {message}"


def _entries(rows: Any) -> list[Row]:
    held = scipy.sparse.csr_array(rows)
    pairs = list(zip(held.indices.tolist(), map(Fraction, held.data.tolist()), strict=True))
    return [_sum(pairs[first:stop]) for first, stop in zip(held.indptr[:-1], held.indptr[1:], strict=True)]


def _sum(pairs: Iterable[tuple[int, Fraction]]) -> Row:
    total: Row = {}
    for column, value in pairs:
        total[column] = total.get(column, Fraction(0)) + value
    return {column: value for column, value in total.items() if value}


def solutions(rows: Any) -> tuple[tuple[Row, ...], int]:
    """A basis, d rows of k, of the y with rows (p, d) times y zero, and k, which is at least 1: without entries where 0 is the
    only y. Entries are whole numbers over a power of two, below 2. A variable that was solved for is a sum of others, and t
    is one only where the rows make it zero. Raises BadInputError where that takes too long.

    This is Gauss's elimination in fractions of the equalities (the zero cone): (x, t) = basis y, with an entry of y for each
    variable that is left, and the rows are asked about y. Of these rows each entry is rounded once, which the checker allows
    for: what it proves holds of all rows that are so near.
    """
    solved: dict[int, Row] = {}
    work = 0
    for equation in _entries(rows):
        row = _put(solved, equation)
        if not row:
            continue
        pivot = min(row)
        known = {pivot: {c: -v / row[pivot] for c, v in row.items() if c != pivot}}
        changed = {j: _put(known, other) for j, other in solved.items() if pivot in other} | known
        solved |= changed
        work += len(row) + sum(map(len, changed.values()))
        # a denominator has at most 4096 bits
        if work > MOST_PRODUCTS or any(v.denominator.bit_length() > 1 << 12 for v in known[pivot].values()):
            raise _refuse_equalities("take too long to be solved in fractions")
    left = [column for column in range(rows.shape[1]) if column not in solved]
    basis: list[Row] = [{} for _ in range(rows.shape[1])]
    for place, column in enumerate(left):
        of_column = {j: row[column] for j, row in solved.items() if column in row} | {column: Fraction(1)}
        scale = math.lcm(*(v.denominator for v in of_column.values()))
        size = max(int(abs(v * scale)) for v in of_column.values())
        for j, v in of_column.items():
            basis[j][place] = v * scale / (1 << (size.bit_length() - 1))
    return tuple(basis), max(1, len(left))


def _put(solved: dict[int, Row], row: Row) -> Row:
    """A row with others in the place of the variables that were solved for."""
    return _sum((c, v * w) for j, v in row.items() for c, w in solved.get(j, {j: Fraction(1)}).items())


def times(rows: Any, basis: Sequence[Row], k: int) -> tuple[Any, bool]:
    """Rows (r, d) times a basis of k columns, sparse where rows are, and whether entries were rounded, each of them once."""
    held = scipy.sparse.csr_array(rows)
    if sum(len(basis[j]) for j in held.indices.tolist()) > MOST_PRODUCTS:
        raise _refuse_equalities("are too many to be put into so many rows")
    power = max((v.denominator for row in basis for v in row.values()), default=1)
    across = [{c: int(v * power) for c, v in row.items()} for row in basis]
    ratios = [value.as_integer_ratio() for value in held.data.tolist()]
    one = max((under for _, under in ratios), default=1)  # a power of two, as all of them
    digits, indices = [over * (one // under) for over, under in ratios], held.indices.tolist()
    data: list[float] = []
    columns: list[int] = []
    ends, rounded = [0], False
    for first, stop in pairwise(held.indptr.tolist()):
        total: dict[int, int] = {}
        for j, digit in zip(indices[first:stop], digits[first:stop], strict=True):
            for c, w in across[j].items():
                total[c] = total.get(c, 0) + digit * w
        some = {c: v / (one * power) for c, v in total.items() if v}
        if min(map(abs, some.values()), default=1.0) < 1e-290:  # smaller entries may lose digits
            raise _refuse_equalities("have solutions whose entries are too far apart for float64")
        rounded |= any(Fraction(v, one * power) != Fraction(some[c]) for c, v in total.items() if v)
        columns += some
        data += some.values()
        ends.append(len(data))
    found = scipy.sparse.csr_array((data, columns, ends), shape=(rows.shape[0], k), dtype=np.float64)
    return (found if hasattr(rows, "tocsr") else found.toarray()), rounded


def _refuse_equalities(why: str) -> BadInputError:
    text = "solve them for some variables, put these into the other rows, and leave 'z' out"
    return BadInputError(f"cones: the equalities of 'z' {why}; {text}")


@dataclass(frozen=True)
class RowsOfCones:
    """What the core asks about rows of cones, see ``data.rows``."""

    table: ConeTable

    kind: ClassVar = "cones"
    word: ClassVar = "rows of cones"
    take_labels: ClassVar = False
    scored_apart: ClassVar = False

    def rank(self, n: int) -> int:
        """Eigenvalues of all cones."""
        return self.table.rank

    def label_type(self, classes: Sequence[str]) -> np.dtype[Any]:
        """That of codes."""
        return CODE

    def block_rows(self, header: Header, entry_bytes: int) -> int:
        """Those of whole cones."""
        entries = None if header.entries is None else header.entries / self.table.rows
        return Product(self.table.counts).block_rows(header.m, np.dtype(header.dtype).itemsize, entries)

    def temporary_bytes(self, block_rows: int, m: int, entries: Entries | None) -> int:
        """Scores, matrices and their powers in a scan; in the checker copies of a cone's rows."""
        largest = self.table.largest
        if entries is not None:
            side = min(largest, m, GRAM)
            return 240 * block_rows + 6 * entries.block_bytes + 48 * side * side
        return max(240 * block_rows + 16 * largest * m, 48 * largest * m)
