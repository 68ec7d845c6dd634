"""The dataset on disk: a zarr v3 group with a header, and for cones a code for each row.

The first row of a cone has the code ``4 size + kind``, its other rows 0. A cone lies in one block; rows of zeros, whose code is
``PADDING``, fill a block up. Kinds and sizes are those of SCS: an entry of the orthant (``l``), a second-order cone of so many
rows (``q``), the lower triangle of a semidefinite matrix of that order (``s``).

OUT/zarr.json          written last: attributes, which are the header below and a seal, and what the zarr.json of all
                               arrays say; of format 2 where it has names of features, 3 of cones whose rows are sparse,
                               4 where it has ids, otherwise 1
OUT/X                  (n, m)  one chunk a block, uncompressed, crc32c, many in a shard or none; sparse: a group, see
                               ``writers.sparse``
OUT/label              (n,)    int8, -1 or +1; of more than two classes int16, their positions in ``classes``; of cones int32,
                               their codes
OUT/norm               (n,)    float64, Euclidean norms of the stored points; of the rows of a cone its norm
OUT/id                 (n,)    text, see ``data.ids``; only where points have names
OUT/checksum           (blocks, 3) uint32: crc32c of the entries of each block of X, label and norm; of sparse rows of indptr as
                               int64 from 0 on, indices and data, be they points or rows of cones
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dfeas.data.storage import files
from dfeas.data.storage.features import are_names, shorten
from dfeas.data.storage.files import COUNT, Number, conform
from dfeas.display import Displayed, Part, Row
from dfeas.errors import CorruptDataError, format_bytes

KINDS = ("", "l", "q", "s")
"""By their number in a code."""
PADDING = -1
CODE = np.dtype(np.int32)
MOST_ORDER = 2000
"""Largest order of a semidefinite cone."""


def rows_of(kind: str, size: int) -> int:
    """How many rows a cone has."""
    return size * (size + 1) // 2 if kind == "s" else size


def rank_of(kind: str, size: int) -> int:
    """How many eigenvalues an element has."""
    return {"l": 1, "q": 2, "s": size}[kind]


def code(kind: str, size: int) -> int:
    """The code of the first row of a cone."""
    return 4 * size + KINDS.index(kind)


def kind_of(code: int) -> tuple[str, int]:
    """Kind and size from the code of a first row. Raises ValueError when it is none."""
    kind, size = code % 4, code // 4
    if code <= 0 or kind == 0 or size < 1:
        raise ValueError(f"{code} is no code of a cone")
    return KINDS[kind], size


class ConeTable(Struct, frozen=True):
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
        return max(rows_of(kind, size) for kind, size, _ in self.counts)

    @property
    def many(self) -> int:
        return sum(many for _, _, many in self.counts)

    def to_json(self) -> dict[str, Any]:
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


MOST_CLASSES = 20
"""Classes that are printed with their points, and names of features."""


def stored_bytes(header: Mapping[str, Any]) -> int:
    """Of the points of a dataset, from the JSON of its header."""
    n, m, itemsize = header["n"], header["m"], np.dtype(header["dtype"]).itemsize
    entries = header.get("entries")
    return int(n * m * itemsize if entries is None else entries * (itemsize + (4 if m < 2**31 else 8)) + 8 * n)


def describe_header(header: Mapping[str, Any]) -> Iterator[Row]:
    """What is printed of a dataset: of the JSON of its header, or of what is known of an array."""
    cones, entries, dtype = header.get("cones"), header.get("entries"), header["dtype"]
    what = "rows" if cones else "points"
    worked = "float32" if dtype in DTYPES and dtype != "float64" else "float64"
    work = "" if worked == dtype else f" (worked on as {worked})"
    yield Row(what, f"{header['n']} of {header['m']} features, {dtype}{work}, {format_bytes(stored_bytes(header))}")
    if header.get("features"):
        yield Row("names", _few(list(map(shorten, header["features"][: MOST_CLASSES + 1]))))
    if header.get("ids"):
        yield Row("ids", f"{shorten(header['ids']['name'])} ({header['ids']['type']})")
    yield Row("blocks", f"{-(-header['n'] // header['block_rows'])} of {header['block_rows']} {what}")
    if cones:
        yield Row("cones", f"{ConeTable.from_json(cones)}; rank {cones['rank']}")
    if entries is not None:
        share = entries / header["n"] / header["m"]
        yield Row("entries", f"{entries}, {share:.3g} of all; at most {header.get('block_entries')} in a block")
    yield from _classes(header)
    if "norm_min" in header:
        zero = "" if cones else f", {header['zero']} zero points"
        yield Row("norms", f"{header['norm_min']:.6g} .. {header['norm_max']:.6g}{zero}")
    if header.get("generator"):
        yield Row("generated", ", ".join(f"{name} {value}" for name, value in header["generator"].items()))
    if header.get("notes"):
        yield Row("ingested", "; ".join(header["notes"]))
    yield Row("fingerprint", header["fingerprint"] or "computed when it is solved")


def _classes(header: Mapping[str, Any]) -> Iterator[Row]:
    names = header["classes"]
    if len(names) > 2:
        counts = header.get("counts") or [None] * len(names)
        said = [name if count is None else f"{name} ({count})" for name, count in zip(names, counts, strict=True)]
        yield Row("classes", f"{len(names)}: {_few(said)}")
    elif names:
        positive = header.get("positive")
        counted = "" if positive is None else f" ({header['n'] - positive} and {positive})"
        yield Row("classes", f"{names[0]} is -1, {names[1]} is +1{counted}")


def _few(said: Sequence[str]) -> str:
    return ", ".join(said[:MOST_CLASSES]) + (", ..." if len(said) > MOST_CLASSES else "")


DTYPES = ("int8", "uint8", "int16", "uint16", "float16", "float32", "float64")
"""Types that entries are stored in."""
BLOCK_BYTES = 4 << 20
"""Default size of a block: large enough that opening a file costs little, small enough that the buffers of all threads stay
in cache between reading and scanning, also when others use the cache (8 MiB blocks were 20 % slower then)."""
SPARSE_BLOCK_BYTES = 8 << 20
"""The same for sparse points, whose products are fast beside what SciPy does once for each."""


def default_block_rows(m: int, itemsize: int, n: int) -> int:
    """Rows of a block of about ``BLOCK_BYTES``, fewer of very short rows."""
    # a point of a few bytes counts as so many: its label, norm and scores take more than it does
    return max(1, min(n, BLOCK_BYTES // max(m * itemsize, 16)))


WIDE_ROWS, WIDE_BYTES = 128, 16 << 20
"""Wide points are scanned so many at a time, of so many bytes at most: sums over a few take longer to merge than to make."""


def scanned_rows(m: int, itemsize: int, n: int) -> int:
    """Rows that are read and scanned at once, at most: those of a block, or more of wide points."""
    return max(default_block_rows(m, itemsize, n), min(WIDE_ROWS, n, WIDE_BYTES // (m * itemsize)))


SPARSE_BELOW = 0.25
"""Share of entries that are not zero below which sparse points are stored sparse: they are then read and multiplied faster."""


def index_size(features: int) -> int:
    """Bytes of the index of a feature."""
    return 4 if features < 2**31 else 8


def sparse_block_rows(entries: float, entry_bytes: int, n: int) -> int:
    """Rows of a block of about ``SPARSE_BLOCK_BYTES``, for so many entries a row."""
    return max(1, min(n, int(SPARSE_BLOCK_BYTES // (entries * entry_bytes + 8))))


LEAST_BLOCKS = 32
"""Blocks that small chunks are not put together below: threads and workers share them out, and samples are drawn from some."""


def chunks_together(chunk_rows: int, usual: int, n: int) -> int:
    """How many chunks of so many rows are read and scanned as one block of at most ``usual`` rows, or of one chunk: a power of
    two. It depends on what is stored only, as bits do.
    """
    most = min(usual // chunk_rows, -(-n // chunk_rows) // LEAST_BLOCKS)
    return 1 << max(0, most.bit_length() - 1)


def every(offsets: NDArray[np.int64], together: int) -> NDArray[np.int64]:
    """Where the entries of blocks of so many chunks begin (blocks + 1,), from where those of chunks do (chunks + 1,)."""
    return np.append(offsets[:-1:together], offsets[-1])


def sparse_together(chunk_rows: int, usual: int, offsets: NDArray[np.int64], entry_bytes: int) -> int:
    """The same of sparse rows, whose entries begin at ``offsets`` (chunks + 1,): no block of several chunks is large."""
    together = chunks_together(chunk_rows, usual, chunk_rows * (len(offsets) - 1))
    while together > 1 and int(np.diff(every(offsets, together)).max()) * entry_bytes > SPARSE_BLOCK_BYTES:
        together //= 2
    return together


_MANY = Number(1, whole=True)
_SHAPE = {
    "format": _MANY,
    "n": _MANY,
    "m": _MANY,
    "dtype": str,
    "block_rows": _MANY,
    "classes": [str],
    "positive": COUNT,
    "zero": COUNT,
    "first_zero": [COUNT],
    "norm_min": int | float,
    "norm_max": int | float,
    "fingerprint": str,
    "generator": dict | None,
    "entries?": COUNT,
    "block_entries?": COUNT,
    "counts?": [COUNT],
    "cones?": {"counts": [list]},
    "features?": list,
    "ids?": {"name": str, "type": str},
}


class Header(Displayed, Struct, frozen=True):
    """Attributes of a finished dataset."""

    format: int  # on disk
    n: int  # points, or rows of cones
    m: int  # features
    dtype: str  # of the entries, one of DTYPES
    block_rows: int  # points of a block
    classes: tuple[str, ...]  # (negative, positive) as the source calls them, or more in order; empty without labels
    positive: int  # points with label +1; 0 of more than two classes
    zero: int  # zero points
    first_zero: tuple[int, ...]  # of them
    norm_min: float  # of a point, or of a cone
    norm_max: float
    fingerprint: str
    generator: dict[str, Any] | None  # kind, seed, margin of a generated dataset
    entries: int | None = None  # stored ones of a sparse dataset
    block_entries: int | None = None  # and of its largest block
    counts: tuple[int, ...] = ()  # points of each class, where there are more than two
    cones: ConeTable | None = None  # whose rows the points are
    features: tuple[str, ...] = ()  # names of the m features, each once; empty where the source had none
    ids: dict[str, str] | None = None  # what the names of the points are called, and whether they are integers or text

    def _parts(self) -> Iterator[Part]:
        return describe_header(self.to_json())

    def to_json(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        values["cones"] = None if self.cones is None else self.cones.to_json()
        return {name: value for name, value in values.items() if f"{name}?" not in _SHAPE or value not in (None, ())}

    @classmethod
    def from_json(cls, values: dict[str, Any], where: str) -> Header:
        """Parse attributes; raises CorruptDataError when they are not a header, NewerFormatError for one to come."""
        if isinstance(values, dict):
            files.require_readable(where, values.get(files.KEY), files.DATASET)
        try:
            conform(values, _SHAPE)
            lists = {name: values[name] for name in ("classes", "first_zero")}
            lists |= {name: values.get(name, ()) for name in ("counts", "features")}
            plain = {**values, **{name: tuple(entries) for name, entries in lists.items()}}
            plain["cones"] = ConeTable.from_json(values["cones"]) if "cones" in values else None
            header = cls(**plain)
            sane = 0 < header.block_rows <= header.n and header.m > 0 and header.dtype in DTYPES
            sane = sane and len(header.counts) == (len(header.classes) if len(header.classes) > 2 else 0)
            sane = sane and are_names(header.features) and len(set(header.features)) == len(header.features) in (0, header.m)
        except (KeyError, TypeError, ValueError):
            sane = False
        if not sane:
            raise CorruptDataError(f"{where}: the dataset's attributes are damaged; ingest it again")
        return header


def fingerprint(n: int, m: int, dtype: str, block_rows: int, checksums: NDArray[np.uint32], classes: Sequence[str]) -> str:
    """sha256 over the shape, the names of the classes in the order of their labels, and the checksums (chunks, 2) of points and
    labels, in order; the same in all formats.
    """
    # with names in order: json.dumps makes a new encoder wherever it is asked to sort them
    head = {"block_rows": block_rows, "classes": list(classes), "dtype": dtype, "format": 1, "m": m, "n": n}
    digest = hashlib.sha256(json.dumps(head).encode())
    digest.update(np.ascontiguousarray(checksums[:, :2], "<u4").tobytes())
    return digest.hexdigest()


def seen_fingerprint(fingerprint: str, view: str) -> str:
    """Of data as it is seen: sha256 over the fingerprint of what is stored, and what is said of the view; itself for none."""
    return hashlib.sha256(f"{fingerprint} {view}".encode()).hexdigest() if view else fingerprint
