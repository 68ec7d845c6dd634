"""Putting a file in its place whole or not at all, also when the power fails."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def placed(path: Path) -> Iterator[BinaryIO]:
    """A file to write; afterwards fsync, rename, fsync the folder: readers see the old file or the new one, never a part."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync(path.parent)


def sync(folder: Path) -> None:
    """What was renamed in a folder stays so, also when the power fails."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
