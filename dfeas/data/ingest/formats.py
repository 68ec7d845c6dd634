"""Which format a source has, and which files of a folder are its data."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dfeas.data.frames import is_lazy
from dfeas.data.storage.numbers import require_array
from dfeas.data.storage.places import Place, place
from dfeas.errors import BadInputError, UsageError, absent

_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".svmlight": "svmlight",
    ".svm": "svmlight",
    ".libsvm": "svmlight",
}
SDPA = (".dat-s", ".dat-s.gz")
PARQUET = (".parquet", ".pq")
HIDDEN = ("_", ".")
"""With which names of files and folders begin that are no data: leftovers, checkpoints, logs."""


def format_of(src: Any, named: str | None = None) -> str:
    """One of ``FORMATS``, ``frame`` for a data frame, ``cones`` for an SDPA file, ``arrays`` for what has an array of points.

    Raises UsageError for what is no source, BadInputError when there is nothing at the path.
    """
    if not isinstance(src, str | Path):
        require_array(src, "X")
        if is_array(src):  # that of xarray speaks Arrow, too
            return "arrays"
        if hasattr(src, "__arrow_c_stream__") or is_lazy(src):
            return "frame"
        raise UsageError(f"a source of type {type(src).__name__}: give a path, an array, or a data frame that speaks Arrow")
    path = place(src)
    if not path.exists():
        raise BadInputError(absent(path))
    if path.is_dir():
        zarr = any((path / name).exists() for name in ("zarr.json", ".zarray", ".zgroup"))
        tables = named == "parquet" or (not zarr and bool(parquet_files(path)))
        return "parquet" if tables else "arrays"
    if not path.is_file():
        raise BadInputError(f"{path}: a pipe or a device, and data is read more than once; write it to a file first")
    if path.name.endswith(SDPA):
        return "cones"
    name = path.with_suffix("") if path.suffix in (".gz", ".bz2") else path
    return named or _SUFFIXES.get(name.suffix, "arrays")


def parquet_files(path: Place) -> Sequence[Place]:
    """A file, or those below a folder that are not hidden, in the order of their paths.

    Raises BadInputError for a folder whose folders come and go, and for a Delta table, whose log says which files it has.
    """
    if not path.is_dir():
        return [path]
    if (path / "_delta_log").exists():
        raise BadInputError(f"{path}: a Delta table, some of whose files may be of former versions; write its rows as Parquet")
    try:
        found = [each for each in path.rglob("*") if each.suffix in PARQUET and each.is_file()]
    except OSError as error:
        raise BadInputError(
            f"{path}: expected a dataset, a zarr array or a folder of .parquet; it cannot be looked through, "
            f"{error.filename}: {error.strerror}"
        ) from None
    return sorted(each for each in found if not any(name.startswith(HIDDEN) for name in names_below(path, each)))


def is_array(source: Any) -> bool:
    """Whether a source is an array of Python, not a path or a data frame."""
    return hasattr(source, "shape") and hasattr(source, "dtype")  # frames have a type for each column


def names_below(folder: Place, file: Place) -> list[str]:
    """Names of folders between a folder and a file, and that of the file."""
    return [name for name in re.split(r"[\\/]", str(file)[len(str(folder)) :]) if name]
