"""Cones from files as a dataset: programmes of SCS, and SDPA's sparse format.

A file of SDPA (.dat-s) has matrices F_0 .. F_m of diagonal and semidefinite blocks, and a cost, which is left out.

The question is whether some x has  x_1 F_1 + .. + x_m F_m - F_0  positive definite. It is asked of y = (x, t) with - t F_0 and
t > 0, an entry of the orthant, last of them; where F_0 is zero, of x alone. A diagonal block is entries of the orthant, and so
are rows of a block that have no entry off the diagonal in any matrix. Where the matrices of a block fall into the same diagonal
blocks, after a permutation, each of these is a cone of its own.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dfeas.cones.product import Product
from dfeas.cones.singular import label_components
from dfeas.cones.writer import cones_in_memory, ingest_dataset, ingest_product
from dfeas.data.dataset import Dataset
from dfeas.data.ingest.options import SDPA
from dfeas.data.ingest.text import parse_table, values_of
from dfeas.data.storage.files import damage_becomes
from dfeas.data.storage.layout import MOST_ORDER, Header, rows_of
from dfeas.data.storage.places import local, require_apart
from dfeas.data.storage.zarr_arrays import read_header
from dfeas.data.writers.dataset import Progress
from dfeas.errors import BadInputError, spell
from dfeas.records import replace

_BETWEEN = re.compile(r"[\s,(){}]+")
_SEPARATORS = bytes.maketrans(b"\t\r,(){}", b"       ")
_PLACES = ("matrix", "block", "i", "j")
_COMMENTS = ('"', "*")
_WHOLE = re.compile(r"[+-]?[0-9]{1,300}")
_HEADING = re.compile(r"\s*\+?([0-9]{1,300})(?![0-9])")

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class MatrixEntries:
    """Of the matrices: their number (e,), block (e,), places in it (e,) with i <= j, all from 0 on, and values (e,)."""

    matrix: Numbers
    block: Numbers
    i: Numbers
    j: Numbers
    value: NDArray[np.float64]

    def take(self, some: Numbers) -> MatrixEntries:
        return MatrixEntries(self.matrix[some], self.block[some], self.i[some], self.j[some], self.value[some])


@dataclass(frozen=True)
class Layout:
    """Where the entries of a file are in the rows of a product of cones; entries of the orthant come first."""

    m: int
    sizes: list[int]  # of blocks; diagonal ones are negative

    @property
    def linear(self) -> int:
        return sum(-size for size in self.sizes if size < 0)

    @cached_property
    def _firsts(self) -> tuple[Numbers, int]:
        """First row of each block, and the number of all rows, that of t with them."""
        places, at, diagonal = [], self.linear + 1, 0
        for size in self.sizes:
            places.append(diagonal if size < 0 else at)
            diagonal, at = (diagonal - size, at) if size < 0 else (diagonal, at + size * (size + 1) // 2)
        return np.array(places, np.int64), at

    @property
    def total(self) -> int:
        return self._firsts[1]

    def rows(self, entries: MatrixEntries) -> Numbers:
        size, first = np.array(self.sizes, np.int64)[entries.block], self._firsts[0][entries.block]
        low, high = entries.i, entries.j
        return np.where(size < 0, first + low, first + low * size - low * (low - 1) // 2 + high - low)

    def product(self, entries: MatrixEntries) -> tuple[Any, dict[str, Any]]:
        """Rows (N, m) as a sparse matrix and the cones, for ``from_cone_rows``, of entries that are each given once."""
        linear, n, m = self.linear, self.total, self.m
        of_first = entries.matrix == 0
        value = np.where(entries.i == entries.j, entries.value, entries.value * np.sqrt(2.0))
        homogeneous = not (of_first & (value != 0)).any()
        column = np.append(np.where(of_first, m, entries.matrix - 1), m)
        row, value = np.append(self.rows(entries), linear), np.append(np.where(of_first, -value, value), 1.0)
        X = scipy.sparse.csr_array((value, (row, column)), shape=(n, m + 1))
        cone: dict[str, Any] = {"l": linear + 1, "s": [size for size in self.sizes if size > 0]}
        if homogeneous:  # without t, and its row
            kept = np.flatnonzero(np.arange(n) != linear)
            return X[kept][:, :m], {**cone, "l": linear}
        return X, cone


def ingest_cones(
    src: str | Path | Dataset,
    out: str | Path,
    cones: str | None = None,
    name: str = "X",
    progress: Progress | None = None,
    shard: str | int | None = None,
) -> Header:
    """Write a dataset of cones in memory, of an SDPA sparse file, or of an array (N, m) and ``cones``, as l:30,q:5x10,s:6x20.
    ``name`` is that of the array in ``.npz``; a ``.npz`` of SciPy holds a sparse matrix. ``shard`` is in bytes, as of points.
    Raises BadInputError for other files.
    """
    if isinstance(src, Dataset):
        return ingest_dataset(src, out, progress, shard)
    require_apart(out, src)
    path = local(src, "SRC")
    if path.name.endswith(SDPA):
        if cones is not None:
            raise BadInputError(f"{path}: an SDPA file says what its cones are; leave out {spell('cones')}")
        rows, table = read_sdpa(path)
        return ingest_product(rows, Product.from_scs(table), out, progress, shard)
    if cones is None:
        raise BadInputError(f"{path}: expected an SDPA sparse file (.dat-s), or an array with its cones")
    return ingest_product(_array(path, name), Product.from_text(cones), out, progress, shard)


def open_sdpa(path: Path) -> Dataset:
    """The cones of an SDPA sparse file in memory; what several processes read is compared."""
    rows, table = read_sdpa(path)
    held = cones_in_memory(rows, Product.from_scs(table), str(path))
    points: Any = held.points
    return replace(held, points=replace(points, files=lambda index: ()))


def _array(path: Path, name: str) -> Any:
    if not path.is_file():
        raise BadInputError(f"{path}: no such file")
    if path.suffix not in (".npy", ".npz"):
        raise BadInputError(f"{path}: cones are read from .npy, .npz and SDPA sparse files (.dat-s)")
    with damage_becomes(path, "not readable"):
        if path.suffix == ".npy":
            with path.open("rb") as file:
                read_header(file, path.stat().st_size, str(path))
            return np.load(path, mmap_mode="r", allow_pickle=False)
        with np.load(path, allow_pickle=False) as held:
            sparse = "indptr" in held
            if not sparse and name not in held:
                raise BadInputError(f"{path}: no array {name!r}; it has {', '.join(held)}; name one with {spell('points')}")
            for member in held.zip.namelist() if sparse else [f"{name}.npy"]:
                with held.zip.open(member) as stream:
                    read_header(stream, held.zip.getinfo(member).file_size, f"{path}:{member}")
            return scipy.sparse.load_npz(path) if sparse else held[name]


def read_sdpa(path: Path) -> tuple[Any, dict[str, Any]]:
    """Rows (N, m) as a sparse matrix and the cones, for ``from_cone_rows``; .gz is read, too. Raises BadInputError with the
    line for what is no such file, is not symmetric, or does not fit its block.
    """
    if not path.is_file():
        raise BadInputError(f"{path}: no such file")
    opened: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rb") as file:
            text: bytes = file.read()
        layout, number, at = _head(path, text)
        entries = _at_once(text[at:], layout) or _by_lines(path, text[at:].decode("ascii"), number, layout)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise BadInputError(f"{path}: cannot be read as text: {error}") from None
    layout, entries = apart(layout, entries)
    if max(layout.sizes) > MOST_ORDER:
        raise BadInputError(f"{path}: a matrix of order {max(layout.sizes)}; at most {MOST_ORDER} is supported")
    return layout.product(entries)


def apart(layout: Layout, entries: MatrixEntries) -> tuple[Layout, MatrixEntries]:
    """The same with the diagonal blocks that the matrices of a block have alike, after a permutation, as blocks of their own.
    Rows of a block that have an entry off the diagonal in common, in any matrix, are connected. Those that are alone make a
    diagonal block behind the others. Zeros are left out.
    """
    if not entries.value.all():
        entries = entries.take(np.flatnonzero(entries.value))
    sizes = np.array(layout.sizes, np.int64)
    nodes = np.maximum(sizes, 1)  # a diagonal block stays as it is, and is one
    end = np.cumsum(nodes)
    first, whole = end - nodes, sizes[entries.block] < 0
    i, j = (first[entries.block] + np.where(whole, 0, each) for each in (entries.i, entries.j))
    off = i != j
    least = label_components(i[off], j[off], int(end[-1]))
    alone = np.bincount(least, minlength=len(least))[least] == 1
    mark = np.where(alone, 2 * np.repeat(end, nodes) - 1, 2 * least)
    marks, inverse, counts = np.unique(mark, return_inverse=True, return_counts=True)
    block = inverse.reshape(-1)
    own = np.where(marks % 2, -counts, counts)
    own[block[first[sizes < 0]]] = sizes[sizes < 0]
    if np.array_equal(own, sizes):
        return layout, entries
    place = np.empty(len(mark), np.int64)
    place[np.argsort(mark, kind="stable")] = np.arange(len(mark)) - np.repeat(np.cumsum(counts) - counts, counts)
    low, high = (np.where(whole, old, place[new]) for old, new in ((entries.i, i), (entries.j, j)))
    return Layout(layout.m, own.tolist()), MatrixEntries(entries.matrix, block[i], low, high, entries.value)


def _head(path: Path, text: bytes) -> tuple[Layout, int, int]:
    """What comes before the entries, and the number and the byte of the line where these begin."""
    lines = _lines(text)

    def take_line(otherwise: str) -> tuple[int, str, int]:
        found = next(lines, None)
        if found is None:
            raise BadInputError(f"{path}: {otherwise}")
        return found

    short = "too short; expected SDPA's sparse format: m, blocks, sizes, cost, entries"
    m, blocks = (_first(path, *take_line(short)[:2]) for _ in range(2))
    sizes = _sizes(path, *take_line(short)[:2], m, blocks)
    number = end = numbers = 0
    while numbers < m:  # the cost may take several lines
        number, line, end = take_line(f"ends before the {m} numbers of the cost")
        begun, numbers = numbers, numbers + len(_words(line))
        if begun and numbers > m:
            words = f"the cost has {begun} numbers before this line and {numbers} with it, expected {m}"
            raise BadInputError(f"{path}: line {number}: {words}")
    return Layout(m, sizes), number + 1, end


def _lines(text: bytes) -> Iterator[tuple[int, str, int]]:
    """The number of each line that is neither empty nor a comment, what it holds, and the byte behind it."""
    number = end = 0
    while end < len(text):
        begin, end, number = end, text.find(b"\n", end) + 1 or len(text), number + 1
        line = text[begin:end].decode("ascii")
        if line.strip() and not line.lstrip().startswith(_COMMENTS):
            yield number, line, end


def _sizes(path: Path, number: int, line: str, m: int, blocks: int) -> list[int]:
    sizes = [_whole(path, number, word) for word in _words(line)[:blocks]]
    if len(sizes) != blocks or not sizes or 0 in sizes or m < 1:
        words = f"expected the sizes of {max(1, blocks)} blocks, none of them 0, and m of at least 1"
        raise BadInputError(f"{path}: line {number}: {words}")
    rows = sum(-size if size < 0 else rows_of("s", size) for size in sizes)
    most_rows = 1 << 27  # rows of all blocks, each of which has its place in memory: 1 GiB of row ends
    if rows > most_rows:
        raise BadInputError(f"{path}: line {number}: blocks of {rows:.6g} rows together; at most {most_rows} are read")
    return sizes


def _words(line: str) -> list[str]:
    return [word for word in _BETWEEN.split(line) if word]


def _whole(path: Path, number: int, word: str) -> int:
    if not _WHOLE.fullmatch(word):
        raise BadInputError(f"{path}: line {number}: {word[:40]!r} is no whole number")
    return int(word)


def _first(path: Path, number: int, line: str) -> int:
    match = _HEADING.match(line)
    if match is None:
        raise BadInputError(f"{path}: line {number}: expected a whole number, got {line.strip()[:40]!r}")
    return int(match[1])


def _at_once(text: bytes, layout: Layout) -> MatrixEntries | None:
    """By columns of numbers; None at any doubt. What the format of entries is says ``_by_lines``: this never accepts what that
    refuses, nor reads another value.
    """
    if not text:
        return None
    # where single spaces are between the words, as in most files, there is nothing to replace
    types = dict.fromkeys(_PLACES, "int32") | {"value": "float64"}
    at_once = 1 << 20  # bytes of text: more are no longer in cache when they are converted
    table = None if b"\r" in text else parse_table(text, types, " ", block=at_once)
    if table is None:
        plain = text.translate(_SEPARATORS)
        for double, single in ((b"  ", b" "), (b" \n", b"\n"), (b"\n ", b"\n")):
            while double in plain:
                plain = plain.replace(double, single)
        table = parse_table(plain.lstrip(b" "), types, " ", block=at_once)
    return None if table is None or not len(table) else _entries(table, layout)


def _entries(table: Any, layout: Layout) -> MatrixEntries | None:
    matrix, block, i, j = (values_of(table.column(name).combine_chunks()).astype(np.int64) for name in _PLACES)
    low, high, block = np.minimum(i, j) - 1, np.maximum(i, j) - 1, block - 1
    if min(each.min() for each in (matrix, block, low)) < 0 or matrix.max() > layout.m or block.max() >= len(layout.sizes):
        return None
    size = np.array(layout.sizes)[block]
    if (high >= np.abs(size)).any() or ((size < 0) & (low != high)).any():
        return None
    entries = MatrixEntries(matrix, block, low, high, values_of(table.column("value").combine_chunks()))
    key = matrix * layout.total + layout.rows(entries)
    if not (key[1:] > key[:-1]).all():  # as most files have them
        key = np.sort(key)
    return entries if (key[1:] > key[:-1]).all() else None


def _by_lines(path: Path, text: str, first: int, layout: Layout) -> MatrixEntries:
    found: dict[tuple[int, int, int, int], tuple[tuple[int, int], float]] = {}
    sizes = layout.sizes
    for number, line in enumerate(text.split("\n"), first):
        if not line.strip() or line.lstrip().startswith(_COMMENTS):
            continue
        words = _words(line)
        if len(words) != 5:
            raise BadInputError(f"{path}: line {number}: expected matrix, block, row, column, value; got {line.strip()[:60]!r}")
        matrix, block, i, j = (_whole(path, number, word) for word in words[:4])
        try:
            value = float(words[4].replace("_", "x"))  # Python's numbers may have them, the format's have not
        except ValueError:
            raise BadInputError(f"{path}: line {number}: {words[4]!r} is no number") from None
        if not (0 <= matrix <= layout.m and 1 <= block <= len(sizes) and min(i, j) >= 1 and max(i, j) <= abs(sizes[block - 1])):
            where = f"matrix {matrix}, block {block}, entry ({i}, {j})"
            raise BadInputError(f"{path}: line {number}: {where} is outside of what was declared")
        if sizes[block - 1] < 0 and i != j:
            raise BadInputError(f"{path}: line {number}: entry ({i}, {j}) off the diagonal of the diagonal block {block}")
        low, high = sorted((i - 1, j - 1))
        known = found.setdefault((matrix, block - 1, low, high), ((i, j), value))
        if known != ((i, j), value):
            what = "given twice" if known[0] == (i, j) else "not symmetric: the entry across the diagonal differs"
            if known[0] == (i, j) or known[1] != value:
                raise BadInputError(f"{path}: line {number}: entry ({i}, {j}) of block {block} in matrix {matrix} is {what}")
    matrices, blocks, lows, highs = np.array(list(found), np.int64).reshape(-1, 4).T
    return MatrixEntries(matrices, blocks, lows, highs, np.array([value for _, value in found.values()], np.float64))
