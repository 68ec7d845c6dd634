"""How large one row, one chunk, one label of a source may be: what is needed of them at once lies in memory.

A file of some bytes can declare any size. What is read block by block needs no limit; each of these needs room for one piece, a
few copies of it, and as much for each thread, beside the 2 GB that a command takes by default.
"""

from __future__ import annotations

from math import prod

from dfeas.errors import BadInputError

ROW_BYTES = 64 << 20
"""Of a dense point as it is stored. A block holds one at least; it is read, cast, surveyed and written, by several threads."""

MOST_FEATURES = 100_000_000
"""Of sparse points. A vector of float64 for a product, and one more in a thread beside, are 0.8 GB each."""

MOST_COLUMNS = 1_000_000
"""Of text: a line becomes a list of cells, of about 100 bytes each, in each of the threads that parse."""

CHUNK_BYTES = 1 << 30
"""Of a chunk of zarr or HDF5, which is unpacked as a whole."""

LABEL_BYTES = 1 << 30
"""Of all labels, and of the row ends of sparse points: arrays (n,) that are read as a whole. One byte a point is a billion."""

LABEL_LENGTH = 1000
"""Characters of a class: its name is in every header and message."""


def require_width(m: int, itemsize: int, where: str, sparse: bool = False) -> None:
    """Raise BadInputError for points that are too wide to be read one by one."""
    if sparse and m > MOST_FEATURES:
        raise BadInputError(
            f"{where}: {m} features, at most {MOST_FEATURES} are taken of sparse points; number them without gaps"
        )
    if not sparse and m * itemsize > ROW_BYTES:
        raise BadInputError(
            f"{where}: a point of {m} features takes {_size(m * itemsize)}, at most {_size(ROW_BYTES)} are taken; "
            "store the points sparse, or fewer features"
        )


def require_columns(count: int, where: str) -> None:
    """Raise BadInputError for a line of text of too many cells."""
    if count > MOST_COLUMNS:
        raise BadInputError(
            f"{where}: {count} cells, at most {MOST_COLUMNS} are taken of text; save the points as .npy or svmlight"
        )


def require_chunks(chunks: tuple[int, ...], itemsize: int, where: str) -> None:
    """Raise BadInputError for chunks that are too large to be unpacked."""
    size = prod(chunks) * itemsize
    if size > CHUNK_BYTES:
        raise BadInputError(
            f"{where}: chunks of {_size(size)}, at most {_size(CHUNK_BYTES)} are taken; write it in smaller ones"
        )


def require_entries(count: int, itemsize: int, where: str) -> None:
    """Raise BadInputError for sparse rows that are read together and hold so many entries."""
    if count * (itemsize + 8) > CHUNK_BYTES:
        raise BadInputError(
            f"{where}: a few rows hold {count} entries, at most {CHUNK_BYTES // (itemsize + 8)} are taken at once"
        )


def require_column(size: int, where: str) -> None:
    """Raise BadInputError for an array (n,) of so many bytes that is read as a whole."""
    if size > LABEL_BYTES:
        raise BadInputError(
            f"{where}: {_size(size)} of labels or row ends, which are read as a whole, at most {_size(LABEL_BYTES)} are taken; "
            "store them in a narrower type, or ingest a part and append the rest"
        )


def require_short(length: int, where: str) -> None:
    """Raise BadInputError for a label of so many characters."""
    if length > LABEL_LENGTH:
        raise BadInputError(
            f"{where}: a label of {length} characters, at most {LABEL_LENGTH} are taken; is this the label array?"
        )


def _size(count: int) -> str:
    return f"{count / 1e9:.3g} GB" if count >= 10**9 else f"{count / 1e6:.3g} MB"
