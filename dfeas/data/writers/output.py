"""The place of a new dataset: its folder with the lock of its writer, or its prefix in a store; after an error nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dfeas.data.storage.files import FULL
from dfeas.data.storage.layout import MARKER
from dfeas.data.storage.lock import claim, discard, release
from dfeas.data.storage.places import Place, place
from dfeas.errors import CorruptDataError


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
