"""What is said of a source of points, the options of an ingest, and which format and files it has.

Options are checked where they are made, and once the source is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from dfeas.data.dataset import Dataset
from dfeas.data.frames import is_lazy
from dfeas.data.source import ALL, Choice
from dfeas.data.storage.features import no_column
from dfeas.data.storage.numbers import require_array
from dfeas.data.storage.places import Place, place
from dfeas.errors import BadInputError, UsageError, absent, brief, none_of, spell
from dfeas.settings import parse_bytes, require_types

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
SDPA = (".dat-s", ".dat-s.gz")
PARQUET = (".parquet", ".pq")
HIDDEN = ("_", ".")
"""With which names of files and folders begin that are no data: leftovers, checkpoints, logs."""
DTYPES = ("float32", "float64")
TEXT = ("csv", "tsv")
TABLES = (*TEXT, "parquet")


@dataclass(frozen=True, kw_only=True)
class IngestOptions:
    """See ``dfeas.ingest``; ``kinds`` are those of sources that an option is for, where that is not all."""

    points: str = "X"
    labels: Any = None
    label_column: str | None = None
    positive: str | None = None
    format: str | None = None
    header: bool | None = field(default=None, metadata={"kinds": TEXT})
    sep: str | None = field(default=None, metadata={"kinds": TEXT})
    decimal: str = field(default=".", metadata={"kinds": TEXT})
    features: int | None = field(default=None, metadata={"kinds": ("svmlight",)})
    dtype: str | None = field(default=None, metadata={"kinds": (*TEXT, "parquet", "frame", "svmlight")})
    zero_based: bool = field(default=False, metadata={"kinds": ("svmlight",)})
    sparse: bool | None = field(default=None, metadata={"kinds": ("svmlight", "arrays")})
    choice: Choice = ALL
    ids: Any = None
    block_rows: int | None = None
    shard: str | int | None = None

    def __post_init__(self) -> None:
        require_types(
            self, {each.name for each in fields(self)} - {"labels", "label_column", "positive", "dtype", "choice", "ids"}
        )
        if self.format not in (None, *FORMATS):
            raise UsageError(f"{spell('format')} {none_of(self.format, FORMATS)}")
        if self.dtype is not None and getattr(self.dtype, "__name__", brief(self.dtype, say=str)) not in DTYPES:
            raise UsageError(f"dtype {brief(self.dtype, say=str)}: expected {' or '.join(DTYPES)}")
        if self.decimal not in (".", ","):
            raise UsageError(f"{spell('decimal')} {none_of(self.decimal, ('.', ','))}")
        if self.sep is not None and (len(self.sep) != 1 or not self.sep.isascii() or self.sep in '"\r\n'):
            raise UsageError(f"{spell('sep', self.sep)}: expected one character between cells, such as ';'")
        if self.features is not None and self.features < 1:
            raise UsageError(f"{spell('features', self.features)}: expected at least 1")
        if self.block_rows is not None and self.block_rows < 1:
            raise UsageError(f"{spell('block_rows', self.block_rows)}: expected at least 1")
        if self.shard is not None:
            parse_bytes(self.shard, "shard")
        if self.labels is not None and self.label_column is not None:
            raise UsageError(f"{spell('labels')} and {spell('label_column')}: give one of them")

    def label_place(self, columns: Sequence[str], where: str) -> int | None:
        """Index of the label column, which is given by name, or else by index; None where labels are no column. Raises
        UsageError where nobody said which it is, and BadInputError when there is no such column.
        """
        name = self.label_column
        if self.labels is not None:
            return None
        if name is None:
            shown = ", ".join(columns[:8]) + (", ..." if len(columns) > 8 else "")
            raise UsageError(
                f"{where}: say which column holds the labels with {spell('label_column', 'NAME')}; the columns are {shown}"
            )
        if columns.count(name) > 1:
            raise BadInputError(f"{where}: {columns.count(name)} columns are called {name}; give its index")
        if name in columns:
            return columns.index(name)
        try:
            return range(len(columns))[int(name)]
        except (ValueError, IndexError):
            raise no_column(name, columns, where) from None

    def require_for(self, kind: str) -> None:
        """Raise UsageError for an option that says nothing about this kind of source."""
        if self.choice and kind not in (*TEXT, "parquet", "frame"):
            raise UsageError(f"{spell('columns')} and {spell('without')} are for tables; this is {kind}")
        for each in fields(self):
            value, kinds = getattr(self, each.name), each.metadata.get("kinds", ())
            if kind == "cones" and each.name not in ("points", "shard") and value != each.default:
                raise UsageError(f"{spell(each.name)} is for points, not for cones; leave it out")
            if kinds and kind not in kinds and value != each.default:
                name = spell(each.name, value if value is False else None)
                raise UsageError(f"{name} is for {' and '.join(kinds)}; this is {kind}")
        if kind == "svmlight" and self.labels is not None:
            raise UsageError(f"{spell('labels')} {self.labels}: {kind} has its labels beside the points; leave it out")
        if kind == "svmlight" and self.label_column is not None:
            raise UsageError(f"{spell('label_column')}: the labels of svmlight are its first column always; leave it out")


def format_of(src: Any, named: str | None = None) -> str:
    """One of ``FORMATS``, ``frame`` for a data frame, ``cones`` for them and an SDPA file, ``arrays`` for what has an array of
    points. Raises UsageError for what is no source, BadInputError when there is nothing at the path.
    """
    if isinstance(src, Dataset):
        return "cones"
    if not isinstance(src, str | Path):
        require_array(src, "X")
        if is_array(src):  # that of xarray speaks Arrow, too
            return "arrays"
        if hasattr(src, "__arrow_c_stream__") or is_lazy(src):
            return "frame"
        raise UsageError(f"a source of type {type(src).__name__}: give a path, an array, or a data frame that speaks Arrow")
    path = place(src)
    if matching(path):
        return "parquet"
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


def is_file(path: Place) -> bool:
    """Whether it is points in a file, which an ingest reads from its beginning, or a folder or pattern of Parquet; no array of
    chunks.
    """
    return format_of(str(path)) == "parquet" if path.is_dir() else path.is_file() or bool(matching(path))


def split_pattern(path: Place) -> tuple[Path, str] | None:
    """The folder and the pattern of a path such as ``parts/2020-*.parquet``; None of a path that is there, or of no pattern."""
    parts = path.parts if isinstance(path, Path) and not path.exists() else ()
    first = next((place for place, part in enumerate(parts) if set(part) & set("*?[")), None)
    return None if first is None else (Path(*parts[:first]), "/".join(parts[first:]))


def matching(path: Place) -> list[Path]:
    """Parquet files on disk whose paths match a pattern, in their order; none for a path that is no pattern."""
    found = split_pattern(path)
    files = [] if found is None else found[0].glob(found[1])
    return sorted(each for each in files if each.suffix in PARQUET and each.is_file())


def parquet_files(path: Place) -> Sequence[Place]:
    """A file, those that match a pattern, or those below a folder that are not hidden, in the order of their paths. Raises
    BadInputError for a folder whose folders come and go, and for a Delta table, whose log says which files it has.
    """
    if not path.is_dir():
        return matching(path) or [path]
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
    return str(file)[len(str(folder)) :].strip("/").split("/")
