"""Readers of what lies in an object store, each of which reads ahead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from os import cpu_count
from typing import Any, TypeVar

import numpy as np

from dfeas.store.objects.ahead import Ahead
from dfeas.store.objects.bucket import said
from dfeas.store.objects.entries import EntryObjects
from dfeas.store.objects.kept import KeptBlocks
from dfeas.store.objects.path import ObjectPath
from dfeas.store.objects.reader import ObjectReader
from dfeas.store.objects.tags import Tags
from dfeas.store.reading import AnyArray, Reader, SliceReader

T = TypeVar("T")

HELD = 16 * (4 + (cpu_count() or 1))
"""Blocks that are held at most: twice what all threads of a process ask for."""


def object_reader(
    name: str,
    folder: ObjectPath,
    key: Callable[[int], str],
    n: int,
    block_rows: int,
    row: tuple[int, ...],
    dtype: np.dtype[Any],
    trailer: int,
    cache_dir: str,
) -> Ahead[AnyArray]:
    """Of chunks that are plain objects."""
    kept = KeptBlocks.at(cache_dir) if cache_dir else None
    return Ahead(ObjectReader(name, Tags(folder), key, n, block_rows, row, dtype, trailer, kept), HELD)


def object_entries(
    name: str, folder: ObjectPath, key: Callable[[int], str], dtype: np.dtype[Any], chunk: int, trailer: int
) -> EntryObjects:
    """Of one array of a sparse matrix."""
    return EntryObjects(name, Tags(folder), key, dtype, chunk, trailer)


def ahead(reader: Reader[T]) -> Ahead[T]:
    """The same blocks, fetched before they are wanted."""
    return Ahead(reader, HELD)


def distant_reader(reader: SliceReader, folder: ObjectPath, names: Callable[[int], Sequence[str]]) -> Ahead[AnyArray]:
    """Of an array that zarr reads."""
    return Ahead(replace(reader, array=_Said(reader.array, folder), files=names, look=Tags(folder)), HELD)


class _Said:
    """An array whose errors are those of dfeas."""

    def __init__(self, array: Any, where: ObjectPath) -> None:
        self._array, self._where = array, where

    def __getitem__(self, rows: slice) -> Any:
        with said(self._where):
            return self._array[rows]
