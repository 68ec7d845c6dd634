"""What is said of a source of points: the options of an ingest, checked where they are made, and once the source is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from dfeas.data.frames import no_column
from dfeas.errors import BadInputError, UsageError, none_of
from dfeas.settings import parse_bytes, require_types

FORMATS = ("csv", "tsv", "parquet", "svmlight")
MOST_ASCII = 127
DTYPES = ("float32", "float64")
TEXT = ("csv", "tsv")


@dataclass(frozen=True, kw_only=True)
class IngestOptions:
    """See ``dfeas.ingest``; ``kinds`` are those of sources that an option is for, where that is not all."""

    points: str = "X"
    labels: Any = None
    label_column: str | None = None
    positive: str | None = None
    format: str | None = None
    header: bool | None = field(default=None, metadata={"off": "no-header", "kinds": TEXT})
    sep: str | None = field(default=None, metadata={"kinds": TEXT})
    decimal: str = field(default=".", metadata={"kinds": TEXT})
    features: int | None = field(default=None, metadata={"kinds": ("svmlight",)})
    dtype: str | None = field(default=None, metadata={"kinds": (*TEXT, "parquet", "frame", "svmlight")})
    zero_based: bool = field(default=False, metadata={"kinds": ("svmlight",)})
    sparse: bool | None = field(default=None, metadata={"off": "dense", "kinds": ("svmlight", "arrays")})
    block_rows: int | None = None
    shard: str | int | None = None

    def __post_init__(self) -> None:
        require_types(self, {each.name for each in fields(self)} - {"labels", "label_column", "positive", "dtype"})
        if self.format not in (None, *FORMATS):
            raise UsageError(f"--format {none_of(self.format, FORMATS)}")
        if self.dtype is not None and getattr(self.dtype, "__name__", str(self.dtype)) not in DTYPES:
            raise UsageError(f"dtype {self.dtype}: expected {' or '.join(DTYPES)}")
        if self.decimal not in (".", ","):
            raise UsageError(f"--decimal {none_of(self.decimal, ('.', ','))}")
        if self.sep is not None and (len(self.sep) != 1 or ord(self.sep) > MOST_ASCII or self.sep in '"\r\n'):
            raise UsageError(f"--sep {self.sep!r}: expected one character between cells, such as ';'")
        if self.features is not None and self.features < 1:
            raise UsageError(f"--features {self.features}: expected at least 1")
        if self.block_rows is not None and self.block_rows < 1:
            raise UsageError(f"block_rows {self.block_rows}: expected at least 1")
        if self.shard is not None:
            parse_bytes(self.shard, "--shard")
        if self.labels is not None and self.label_column is not None:
            raise UsageError("--labels and --label-column: give one of them")

    def label_place(self, columns: Sequence[str], where: str) -> int | None:
        """Index of the label column, which is given by name, or else by index; None where labels are no column.

        Raises UsageError where nobody said which it is, and BadInputError when there is no such column.
        """
        name = self.label_column
        if self.labels is not None:
            return None
        if name is None:
            shown = ", ".join(columns[:8]) + (", ..." if len(columns) > 8 else "")
            raise UsageError(f"{where}: say which column holds the labels with --label-column NAME; the columns are {shown}")
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
        for each in fields(self):
            value, kinds = getattr(self, each.name), each.metadata.get("kinds", ())
            if kind == "cones" and each.name not in ("points", "shard") and value != each.default:
                raise UsageError(f"--{each.name.replace('_', '-')} is for points, not for cones; leave it out")
            if kinds and kind not in kinds and value != each.default:
                name = each.metadata["off"] if value is False else each.name.replace("_", "-")
                raise UsageError(f"--{name} is for {' and '.join(kinds)}; this is {kind}")
        if kind == "svmlight" and self.labels is not None:
            raise UsageError(f"--labels {self.labels}: {kind} has its labels beside the points; leave it out")
        if kind == "svmlight" and self.label_column is not None:
            raise UsageError("--label-column: the labels of svmlight are its first column always; leave it out")
