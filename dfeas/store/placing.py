"""Putting a file in its place whole or not at all, also when the power fails."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of storage that has no room left."""


@contextmanager
def placed(path: Path) -> Iterator[BinaryIO]:
    """A file to write; afterwards fsync, rename, fsync the folder: readers see the old file or the new one, never a part."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with naming(path), part.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync(path.parent)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """An error of the system that does not say where says that it is here: a full disk is noticed without a name."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise


def sync(folder: Path) -> None:
    """What was renamed in a folder stays so, also when the power fails."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
