"""What is replaced where that is asked for: what dfeas itself wrote, and that only once the new one is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from msgspec import Struct

from dfeas.data.storage.files import LOCK, MARKER
from dfeas.data.storage.places import Place
from dfeas.errors import UsageError, spell


class OutputKind(Struct, frozen=True):
    """What dfeas writes to a path."""

    owns: Callable[[Path], bool]  # whether something is one, and nothing else
    last: tuple[str, ...] = ()  # files of which a folder that is finished has one; none: it is there whole or not at all
    open: str = ""  # what a folder has besides that can be gone on with


OF_DATASET = {MARKER, LOCK, "X", "label", "norm", "checksum", "offset", "code", "id"}
"""Names in the folder of a dataset."""
OF_SCORES = {"zarr.json", "id", "score", "class"}
"""Names in a folder of scores."""
BEGINS = {".npy": (b"\x93NUMPY",), ".parquet": (b"PAR1",), ".csv": (b"score,class\n", b"id,score,class\n")}
"""How files with scores begin, by the end of their names."""


def _is_dataset(path: Path) -> bool:
    """A dataset that was finished."""
    from dfeas.data.storage.stored_array import looks_like_dataset

    if path.is_symlink() or not (path / MARKER).is_file() or not looks_like_dataset(path):
        return False
    return all(each.name in OF_DATASET for each in path.iterdir())


def _has_scores(path: Path) -> bool:
    """Whether it is a file with scores, which are a vector or a table of two columns, or a .zarr folder of them."""
    if path.is_symlink():
        return False
    if path.suffix == ".zarr" and (path / "zarr.json").is_file():
        return all(each.name in OF_SCORES for each in path.iterdir())
    if not path.is_file() or not any(begins_with(path, text) for text in BEGINS.get(path.suffix, ())):
        return False
    if path.suffix == ".csv":
        return True
    try:
        if path.suffix == ".npy":
            return len(np.load(path, mmap_mode="r", allow_pickle=False).shape) == 1
        from pyarrow.parquet import read_schema

        return {*read_schema(path).names} <= OF_SCORES
    except (ImportError, OSError, ValueError, EOFError):
        return False


def begins_with(path: Path, text: bytes) -> bool:
    """Whether a file begins so; a short one was cut off."""
    with path.open("rb") as file:
        return text.startswith(file.read(len(text)))


DATASET = OutputKind(_is_dataset, (MARKER,))
SCORES = OutputKind(_has_scores)


@contextmanager
def replace_output(path: Place | None, kind: OutputKind, force: bool) -> Iterator[None]:
    """With ``force`` what is at the path makes room, and is removed when something new is there; otherwise it comes back.
    Raises UsageError for what is no output of the kind, is in an object store, or is being written, and without ``force`` for a
    finished output.
    """
    if not isinstance(path, Path):
        if force and path is not None:
            text = f"{spell('force', True)} is for folders of this machine; choose another output or remove it"
            raise UsageError(f"{path}: {text}")
        yield
        return
    if not force and _is_finished(path, kind) and not (kind.open and (path / kind.open).exists()):
        way = f"say {spell('force', True)} to replace it, or " if kind.owns(path) else ""
        raise UsageError(f"{path}: exists already; {way}choose another output")
    if not force or not (path.exists() or path.is_symlink()):
        yield
        return
    empty = path.is_dir() and not path.is_symlink() and not any(path.iterdir())
    if not empty and not kind.owns(path):
        text = f"it holds what is no output of this kind, which {spell('force', True)} leaves alone; choose another output"
        raise UsageError(f"{path}: {text}")
    import secrets

    from dfeas.data.storage.locks import being_written, busy_error

    if being_written(path):
        raise busy_error(path)
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.old")
    path.rename(aside)
    try:
        yield
    finally:
        old = aside
        if not _is_finished(path, kind):
            if path.exists():  # what was begun a moment ago
                old = aside.with_suffix(".part")
                path.rename(old)
            aside.rename(path)
        if old.is_dir():
            import shutil

            shutil.rmtree(old)
        else:
            old.unlink(missing_ok=True)


def _is_finished(path: Path, kind: OutputKind) -> bool:
    return path.is_file() or any((path / name).exists() for name in kind.last) or (not kind.last and path.exists())
