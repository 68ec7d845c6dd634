"""Cones from files, programmes of SCS and SDPA sparse files (.dat-s), as a dataset or appended to one.

The file has matrices F_0 .. F_m of diagonal and semidefinite blocks, and a cost, which is left out. The question is whether
some x has  x_1 F_1 + .. + x_m F_m - F_0  positive definite. It is asked of y = (x, t) with - t F_0 and t > 0, an entry of the
orthant, last of them; where F_0 is zero, of x alone. A diagonal block is entries of the orthant.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dfeas.data.dataset import Dataset
from dfeas.data.storage.files import DAMAGE
from dfeas.data.storage.layout import Header
from dfeas.data.storage.places import local, require_apart
from dfeas.data.storage.zarr_arrays import read_header
from dfeas.data.writers.append import exact, growing, open_to_append, stage, tail_of
from dfeas.data.writers.cones import Placing, Product, Rows, ingest_product, read_product, writer_of
from dfeas.data.writers.dataset import Progress, fill
from dfeas.data.writers.sparse import Before, SparseWriter
from dfeas.errors import BadInputError, CorruptDataError, DfeasError
from dfeas.linalg.csr import tidied
from dfeas.linalg.points import Points, dense, in_type, is_dense, row_slice, stacked

_BETWEEN = re.compile(r"[\s,(){}]+")


def read_sdpa(path: Path) -> tuple[Any, dict[str, Any]]:
    """Rows (N, m) as a sparse matrix and the cones, for ``ingest_scs``; .gz is read, too.

    Raises BadInputError with the line for what is no such file, is not symmetric, or does not fit its block.
    """
    if not path.is_file():
        raise BadInputError(f"{path}: no such file")
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="ascii") as file:
            lines = [(number, line) for number, line in enumerate(file, 1) if not line.lstrip().startswith(('"', "*"))]
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise BadInputError(f"{path}: cannot be read as text: {error}") from None
    lines = [(number, line) for number, line in lines if line.strip()]
    if len(lines) < 4:
        raise BadInputError(f"{path}: too short; expected SDPA's sparse format: m, blocks, sizes, cost, entries")
    m, blocks = (_first(path, *lines[i]) for i in (0, 1))
    sizes = [_whole(path, lines[2][0], word) for word in _words(lines[2][1])[:blocks]]
    if len(sizes) != blocks or 0 in sizes or m < 1:
        text = f"expected the sizes of {blocks} blocks, none of them 0, and m of at least 1"
        raise BadInputError(f"{path}: line {lines[2][0]}: {text}")
    return _rows(path, lines[_after_cost(path, lines, m) :], m, sizes)


def _words(line: str) -> list[str]:
    return [word for word in _BETWEEN.split(line) if word]


def _whole(path: Path, number: int, word: str) -> int:
    try:
        return int(word)
    except ValueError:
        raise BadInputError(f"{path}: line {number}: {word!r} is no whole number") from None


def _first(path: Path, number: int, line: str) -> int:
    """The number that begins a line; a comment may follow it."""
    match = re.match(r"\s*\+?(\d+)", line)
    if match is None:
        raise BadInputError(f"{path}: line {number}: expected a whole number, got {line.strip()[:40]!r}")
    return int(match[1])


def _after_cost(path: Path, lines: list[tuple[int, str]], m: int) -> int:
    """The place of the first entry: the cost may take several lines."""
    at, numbers = 3, 0
    while numbers < m:
        if at == len(lines):
            raise BadInputError(f"{path}: ends before the {m} numbers of the cost")
        numbers += len(_words(lines[at][1]))
        at += 1
    return at


def _rows(path: Path, lines: list[tuple[int, str]], m: int, sizes: list[int]) -> tuple[Any, dict[str, Any]]:
    """The matrices as columns; entries of the orthant come first."""
    linear = sum(-size for size in sizes if size < 0)
    places, at, diagonal = [], linear + 1, 0
    for size in sizes:
        places.append(diagonal if size < 0 else at)
        diagonal, at = (diagonal - size, at) if size < 0 else (diagonal, at + size * (size + 1) // 2)
    entries: dict[tuple[int, int], tuple[tuple[int, int], float]] = {}
    for number, line in lines:
        words = _words(line)
        if len(words) != 5:
            raise BadInputError(f"{path}: line {number}: expected matrix, block, row, column, value; got {line.strip()[:60]!r}")
        matrix, block, i, j = (_whole(path, number, word) for word in words[:4])
        try:
            value = float(words[4])
        except ValueError:
            raise BadInputError(f"{path}: line {number}: {words[4]!r} is no number") from None
        if not (0 <= matrix <= m and 1 <= block <= len(sizes) and min(i, j) >= 1 and max(i, j) <= abs(sizes[block - 1])):
            where = f"matrix {matrix}, block {block}, entry ({i}, {j})"
            raise BadInputError(f"{path}: line {number}: {where} is outside of what was declared")
        if sizes[block - 1] < 0 and i != j:
            raise BadInputError(f"{path}: line {number}: entry ({i}, {j}) off the diagonal of the diagonal block {block}")
        low, high = sorted((i - 1, j - 1))
        size, first = sizes[block - 1], places[block - 1]
        row = first + low if size < 0 else first + low * size - low * (low - 1) // 2 + high - low
        known = entries.setdefault((row, matrix), ((i, j), value))
        if known != ((i, j), value):
            what = "given twice" if known[0] == (i, j) else "not symmetric: the entry across the diagonal differs"
            if known[0] == (i, j) or known[1] != value:
                raise BadInputError(f"{path}: line {number}: entry ({i}, {j}) of block {block} in matrix {matrix} is {what}")
    return _matrix(entries, m, at, linear, sizes)


def _matrix(
    entries: dict[tuple[int, int], tuple[tuple[int, int], float]], m: int, n: int, linear: int, sizes: list[int]
) -> tuple[Any, dict[str, Any]]:
    place = np.array(list(entries), np.int64).reshape(-1, 2)
    value = np.array([v if i == j else v * np.sqrt(2.0) for (i, j), v in entries.values()], np.float64)
    homogeneous = not ((place[:, 1] == 0) & (value != 0)).any()
    column: NDArray[np.int64] = place[:, 1] - 1
    column[place[:, 1] == 0], value[place[:, 1] == 0] = m, -value[place[:, 1] == 0]
    row, column = np.append(place[:, 0], linear), np.append(column, m)
    X = scipy.sparse.csr_array((np.append(value, 1.0), (row, column)), shape=(n, m + 1))
    cone: dict[str, Any] = {"l": linear + 1, "s": [size for size in sizes if size > 0]}
    if homogeneous:  # without t, and its row
        kept = np.flatnonzero(np.arange(n) != linear)
        return X[kept][:, :m], {**cone, "l": linear}
    return X, cone


SDPA = (".dat-s", ".dat-s.gz")
"""How names of SDPA's files end."""


def ingest_cones(
    src: str | Path, out: str | Path, cones: str | None = None, name: str = "X", progress: Progress | None = None
) -> Header:
    """Write a dataset of cones from an SDPA sparse file, or from an array (N, m) and its ``cones``, as l:30,q:5x1000,s:6x200.

    ``name`` is that of the array in ``.npz``; a ``.npz`` of SciPy holds a sparse matrix. Raises BadInputError for other files.
    """
    require_apart(out, src)
    return ingest_product(*product_of(src, cones, name), out, progress)


def product_of(src: str | Path, cones: str | None, name: str) -> tuple[Any, Product]:
    """Rows (N, m) and cones of a file; see ``ingest_cones``."""
    path = local(src, "SRC")
    if path.name.endswith(SDPA):
        if cones is not None:
            raise BadInputError(f"{path}: an SDPA file says what its cones are; leave out --cones")
        rows, table = read_sdpa(path)
        return rows, Product.from_scs(table)
    if cones is None:
        raise BadInputError(f"{path}: expected an SDPA sparse file (.dat-s), or an array with its cones")
    return _array(path, name), Product.from_text(cones)


def _array(path: Path, name: str) -> Any:
    if not path.is_file():
        raise BadInputError(f"{path}: no such file")
    if path.suffix not in (".npy", ".npz"):
        raise BadInputError(f"{path}: cones are read from .npy, .npz and SDPA sparse files (.dat-s)")
    try:
        if path.suffix == ".npy":
            with path.open("rb") as file:
                read_header(file, path.stat().st_size, str(path))
            return np.load(path, mmap_mode="r", allow_pickle=False)
        with np.load(path, allow_pickle=False) as held:
            sparse = "indptr" in held
            if not sparse and name not in held:
                raise BadInputError(f"{path}: no array {name!r}; it has {', '.join(held)}; name one with --points")
            for member in held.zip.namelist() if sparse else [f"{name}.npy"]:
                with held.zip.open(member) as stream:
                    read_header(stream, held.zip.getinfo(member).file_size, f"{path}:{member}")
            return scipy.sparse.load_npz(path) if sparse else held[name]
    except DfeasError:
        raise
    except DAMAGE as error:
        raise CorruptDataError(f"{path}: not readable: {error}") from None


def append_cones(
    data: str | Path, src: str | Path, cones: str | None = None, name: str = "X", progress: Progress | None = None
) -> Header:
    """Append the cones of a file to a dataset of cones, and return its new header; the arguments are those of ``ingest_cones``.

    Raises BadInputError for cones that do not fit, UsageError when another process writes there; the dataset stays what it was.
    """
    with open_to_append(data, "cones") as old:
        X, product = product_of(src, cones, name)
        if old.cones is None:
            raise BadInputError(f"{old.where}: a dataset of points; cones are appended to cones")
        with growing(Path(old.where)) as part:
            return _stage_cones(part, old, X, product, progress)


def _stage_cones(part: Path, old: Dataset, X: Any, product: Product, progress: Progress | None) -> Header:
    """Write append.part/stage, and return the header of the dataset that it makes."""
    new = read_product(X, product)
    m, sparse = new.m, old.entries is not None
    if m != old.m:
        raise BadInputError(f"new cones of {m} features, {old.where} has {old.m}")
    if product.table.largest > old.block_rows:
        raise BadInputError(
            f"a new cone of {product.table.largest} rows does not lie in a block of {old.where}, which has {old.block_rows}; "
            "ingest all cones again"
        )
    points, label = tail = tail_of(old)
    placing = Placing(product, old.block_rows, len(label))

    def fitting(first: int, stop: int) -> Points:
        some = new.read(first, stop)
        alike = dense(some) if not sparse else tidied(scipy.sparse.csr_array(some)) if is_dense(some) else some
        if not np.isfinite(alike if is_dense(alike) else alike.data).all():
            return in_type(alike, old.dtype.type)  # the writer refuses them
        return exact(alike, old.dtype, first)

    rows = Rows(fitting, m, old.dtype, 0.0 if sparse else None)

    def block(index: int) -> tuple[Points, NDArray[Any]]:
        entries, codes = rows.block(placing, index)
        if index == 0:
            own = slice(len(label), len(codes))
            entries, codes = stacked([points, row_slice(entries, own)]), np.concatenate([label, codes[own]])
        return entries, codes

    out = writer_of(part / "out", placing, rows)
    if isinstance(out, SparseWriter):
        out.follow(Before.of(old, old.n // old.block_rows))
    fill(out, block, progress)
    return stage(old, out, tail)
