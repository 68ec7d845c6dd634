"""Ids: names of rows, whole numbers or text, of a column of a table, of the index of a frame, or as a dataset keeps them.

A dataset keeps them as text, in chunks of ``ROWS``, which zarr reads as an array of strings: a number of ids, and of each its
length and its UTF-8, all numbers uint32, and a crc32c behind. An id that is missing is empty text. Ids name rows and find none:
the same may come twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from fastcrc.crc32 import iscsi as crc32c

from dfeas.data.storage.files import put, read_whole
from dfeas.data.storage.numbers import is_missing
from dfeas.data.storage.patience import once_more
from dfeas.data.storage.places import Place
from dfeas.data.storage.stored_array import CRC, put_node
from dfeas.errors import BadInputError, CorruptDataError

ROWS = 1 << 16
"""Of a chunk, and of a column that are read at a time."""
FOLDER = "id"
INDEX = "index"
"""What an index without a name is called, and names of rows in a first column without one, as R and pandas write them."""
UNNAMED = re.compile(r"__index_level_\d+__|__null_dask_index__")
"""Columns that pandas and Dask write for an index without a name."""
LONGEST = 1000
"""Characters of an id that is kept."""
WHOLE = re.compile(r"0|-?[1-9][0-9]{0,37}")
"""Numbers that are written as Python writes them: 007 is none."""

Part = tuple[int, Callable[[Sequence[int]], Sequence[Any]]]
"""So many rows that follow on each other, and what gives the ids of some of them, by their places from 0 on."""


@dataclass(frozen=True, eq=False)
class Ids:
    """Of all rows, in parts that are read when they are asked for."""

    name: str  # of the column or index
    parts: Callable[[], Iterable[Part]]
    written: bool = False  # in text, where whole numbers are text, too

    def take(self, rows: Sequence[int]) -> dict[int, int | str | None]:
        """The ids of some rows; None where one is missing. Text that is written is looked through as a whole."""
        wanted, first, found, whole = np.unique(np.asarray(rows, np.int64)), 0, dict[int, Any](), self.written
        for size, give in self.parts() if len(wanted) else ():
            here = wanted[slice(*np.searchsorted(wanted, (first, first + size)))]
            if len(here):
                found |= zip(here.tolist(), map(plain, give((here - first).tolist())), strict=True)
            first += size
            whole = whole and all(each is None or self.is_whole(each) for each in map(plain, give(range(size))))
            if not whole and first > wanted[-1]:
                break
        return {row: None if each is None else int(each) for row, each in found.items()} if whole else found

    def every(self) -> Iterator[int | str | None]:
        """One after the other; those in text as they are written."""
        for size, give in self.parts():
            yield from map(plain, give(range(size)))

    def columns(self) -> Callable[[int], list[int | str | None]]:
        """What gives the next ids, so many at a time, all as integers of 64 bits, or all as text. Looks through all before."""
        whole = all(each is None or (self.is_whole(each) and -(2**63) <= int(each) < 2**63) for each in self.every())
        ids, kind = self.every(), int if whole else str
        return lambda count: [None if each is None else kind(each) for each in islice(ids, count)]

    def is_whole(self, each: int | str) -> bool:
        """Whether an id is a whole number, maybe in text."""
        return type(each) is int or (self.written and bool(WHOLE.fullmatch(str(each))))


def plain(value: Any) -> int | str | None:
    """A value as an id: a whole number, also as pandas has those with gaps, in float64, and as databases do; else the text that
    Python shows. None where it is missing, or empty text.
    """
    if is_missing(value):
        return None
    value = value.item() if isinstance(value, np.generic) else value
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    if type(value) is int or whole or (isinstance(value, Decimal) and value.is_finite() and value == value.to_integral_value()):
        return int(value)
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    return text.encode(errors="replace").decode() or None


def part_of(column: Any) -> Part:
    """Ids of an array of Arrow."""
    return len(column), lambda rows: column.take(np.asarray(rows, np.int64)).to_pylist()


def call_index(name: object) -> str:
    """A column or index, which may have no name."""
    return INDEX if name is None or UNNAMED.fullmatch(str(name)) else str(name)


def join_ids(all_ids: Sequence[Ids | None], sizes: Sequence[int]) -> Ids:
    """Ids of several datasets of so many rows, of which those without are named by their numbers."""
    name = next((each.name for each in all_ids if each is not None), INDEX)
    starts = np.cumsum([0, *sizes]).tolist()

    def parts() -> Iterator[Part]:
        for ids, size, first in zip(all_ids, sizes, starts, strict=False):
            yield from [(size, partial(_numbers, first))] if ids is None else ids.parts()

    return Ids(name, parts)


def _numbers(first: int, rows: Sequence[int]) -> list[int]:
    return [first + row for row in rows]


def write_ids(folder: Place, ids: Ids, n: int, go_on: Callable[[], object]) -> tuple[dict[str, Any], dict[str, str]]:
    """Write the ids of n rows into a dataset; what ``zarr.json`` says of the array, and the header of the ids. ``go_on`` is
    called between chunks. Raises BadInputError where there is not one for each row, or for a long one.
    """
    rows, whole, done, coming = min(ROWS, n), True, 0, ids.every()
    put_node(folder / FOLDER, node := _node(n, rows))
    for index, chunk in enumerate(iter(lambda: [*islice(coming, rows)], [])):
        go_on()
        whole = whole and all(each is None or ids.is_whole(each) for each in chunk)
        texts = ["" if each is None else str(each) for each in chunk]
        if long := next((text for text in texts if len(text) > LONGEST), ""):
            what = f"an id of {len(long)} characters in {ids.name}, {long[:20]!r}..: at most {LONGEST} are kept"
            raise BadInputError(f"{what}; name another column, or none")
        put(folder / FOLDER / f"c.{index}", _encode(texts, rows))
        done += len(chunk)
    if done != n:
        raise BadInputError(f"{done} ids in {ids.name} for {n} points: the source changed while it was read; ingest it again")
    return node, {"name": ids.name, "type": "integer" if whole else "text"}


def read_ids(folder: Place, about: dict[str, str], n: int) -> Ids:
    """Those that a dataset of n points keeps."""
    rows, read = min(ROWS, n), int if about["type"] == "integer" else str

    def give(file: Place, places: Sequence[int]) -> list[Any]:
        held = once_more(lambda: _decode(file, rows), not isinstance(file, Path))
        return [read(held[place]) if held[place] else None for place in places]

    def parts() -> Iterator[Part]:
        for index, first in enumerate(range(0, n, rows)):
            yield min(rows, n - first), partial(give, folder / FOLDER / f"c.{index}")

    return Ids(about["name"], parts)


def _node(n: int, rows: int) -> dict[str, Any]:
    return {
        "shape": [n],
        "data_type": "string",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [rows]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
        "fill_value": "",
        "codecs": [{"name": "vlen-utf8", "configuration": {}}, {"name": "crc32c"}],
        "attributes": {},
        "zarr_format": 3,
        "node_type": "array",
        "storage_transformers": [],
    }


def _encode(texts: Sequence[str], rows: int) -> bytes:
    """A chunk, with empty text behind a short one."""
    cells = [text.encode() for text in texts] + [b""] * (rows - len(texts))
    body = b"".join([_uint(rows), *(part for cell in cells for part in (_uint(len(cell)), cell))])
    return body + _uint(crc32c(body))


def _uint(value: int) -> bytes:
    return value.to_bytes(4, "little")


def _decode(file: Place, rows: int) -> list[str]:
    """Raises CorruptDataError for a chunk that is missing or damaged."""
    try:
        content = read_whole(file)
    except FileNotFoundError:
        raise CorruptDataError(f"{file}: the chunk of ids is missing; restore it or ingest again") from None
    body, at, texts = content[:-CRC], 4, list[str]()
    if len(content) < CRC or crc32c(body) != int.from_bytes(content[-CRC:], "little"):
        raise CorruptDataError(f"{file}: the chunk of ids is damaged; restore it or ingest again")
    for _ in range(rows):
        size = int.from_bytes(body[at : at + 4], "little")
        texts.append(body[at + 4 : at + 4 + size].decode())
        at += 4 + size
    return texts
