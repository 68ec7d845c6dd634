"""Which format a source has, and the stream that reads it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dfeas.data.arrays import is_lazy
from dfeas.data.ingest.array_files import is_array
from dfeas.data.ingest.streams import Stream
from dfeas.data.storage.places import Place, place
from dfeas.errors import BadInputError, UsageError

if TYPE_CHECKING:
    from dfeas.data.ingest.index import Tally
    from dfeas.data.ingest.tables import Parquet

FORMATS = ("csv", "tsv", "parquet", "svmlight")
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
_DELIMITERS = {"csv": ",", "tsv": "\t"}


def format_of(src: Any, named: str | None = None) -> str:
    """One of FORMATS, ``frame`` for a data frame, ``arrays`` for all that has an array of points.

    Raises UsageError for a format that does not exist, BadInputError when there is nothing at the path.
    """
    if not isinstance(src, str | Path):
        if hasattr(src, "__arrow_c_stream__") or is_lazy(src):
            return "frame"
        if is_array(src):
            return "arrays"
        raise UsageError(f"a source of type {type(src).__name__}: give a path, an array, or a data frame that speaks Arrow")
    path = place(src)
    if named is not None and named not in FORMATS:
        raise UsageError(f"format {named}: expected one of {', '.join(FORMATS)}")
    if not path.exists():
        raise BadInputError(f"{path}: no such file or folder")
    if path.is_dir():
        zarr = any((path / name).exists() for name in ("zarr.json", ".zarray", ".zgroup"))
        tables = named == "parquet" or (not zarr and _holds(path, "*.parquet"))
        return "parquet" if tables else "arrays"
    if not path.is_file():
        raise BadInputError(f"{path}: a pipe or a device, and data is read more than once; write it to a file first")
    name = path.with_suffix("") if path.suffix in (".gz", ".bz2") else path
    return named or _SUFFIXES.get(name.suffix, "arrays")


def _holds(folder: Place, pattern: str) -> bool:
    """Whether there is such a file in a folder. Raises BadInputError for one whose folders come and go."""
    try:
        return any(folder.rglob(pattern))
    except OSError as error:
        raise BadInputError(
            f"{folder}: expected a dataset, a zarr array or a folder of .parquet; it cannot be looked through, "
            f"{error.filename}: {error.strerror}"
        ) from None


def open_stream(
    src: Any,
    kind: str,
    label_column: str | None,
    header: bool | None,
    features: int | None,
    zero_based: bool,
    sparse: bool | None,
    labelled: bool,
    looked: Tally | None = None,
) -> Stream:
    """The stream of a format. Raises UsageError when what it needs is not installed.

    ``labelled`` says whether a table has a column of labels, ``looked`` what is known of svmlight already.
    """
    if kind == "svmlight":
        from dfeas.data.ingest.svmlight import Svmlight

        return Svmlight(place(src), features, zero_based, sparse, looked)
    try:
        from dfeas.data.ingest.delimited import Delimited
        from dfeas.data.ingest.tables import Frame, LazyFrame, Parquet
    except ImportError:
        raise UsageError(f'{kind} is read by pyarrow, which is not installed: pip install "dfeas[formats]"') from None
    if kind == "frame":
        return (LazyFrame if is_lazy(src) else Frame)(src, label_column, labelled)
    if kind == "parquet":
        return Parquet(place(src), label_column, labelled)
    return Delimited(place(src), _DELIMITERS[kind], label_column, header, labelled)


def open_parquet(src: Any, label_column: str | None, labelled: bool) -> Parquet:
    """Parquet files at a place. Raises UsageError when pyarrow is not installed."""
    found = open_stream(src, "parquet", label_column, None, None, False, None, labelled)
    from dfeas.data.ingest.tables import Parquet

    assert isinstance(found, Parquet), "the stream of Parquet"
    return found
