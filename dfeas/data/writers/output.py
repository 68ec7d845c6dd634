"""The place of a new dataset: its folder with the lock of its writer, or its prefix in a store; after an error nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dfeas.data.storage.files import FULL
from dfeas.data.storage.layout import MARKER
from dfeas.data.storage.lock import claim, discard, release
from dfeas.data.storage.places import Place, place
from dfeas.data.writers.dataset import DatasetWriter
from dfeas.errors import CorruptDataError


@contextmanager
def output(where: str | Place) -> Iterator[Callable[..., DatasetWriter]]:
    """``output_place`` for a writer: the body gets DatasetWriter without its first argument."""
    with output_place(where) as path:
        yield partial(DatasetWriter, path)


@contextmanager
def output_place(where: str | Place) -> Iterator[Place]:
    """Make the dataset's folder, hold its lock, and remove everything again when the body raises.

    A folder that an interrupted ingest left is started afresh. Raises UsageError when the path exists already or another
    process writes there.
    """
    path = place(where)
    if not isinstance(path, Path):
        from dfeas.data.storage.remote.lock import claimed

        with claimed(path, MARKER):
            yield path
        return
    lock = claim(path, MARKER)
    try:
        yield path
    except BaseException as error:
        discard(path)
        os.close(lock)
        if isinstance(error, OSError) and error.errno in FULL:
            raise CorruptDataError(f"{path}: the disk is full, nothing was kept; free space and run again") from None
        raise
    release(path, lock)


@contextmanager
def writer(
    path: str | Place, n: int, m: int, dtype: np.dtype[Any], block_rows: int, label: np.dtype[Any] | type = np.int8
) -> Iterator[DatasetWriter]:
    """``output`` for a dataset whose size and type of labels are known."""
    with output(path) as make:
        yield make(n, m, dtype, block_rows, label=label)
