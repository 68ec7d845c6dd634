"""What is said of a source of points: the options of an ingest, checked where they are made, and once the source is known.

The keyword arguments of ``dfeas.ingest``, and the options of its command, are the fields of a class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from inspect import Parameter, getdoc, signature
from typing import Any, ClassVar, TypedDict, TypeVar

from dfeas.errors import UsageError, none_of
from dfeas.settings import entries, parse_bytes, require_types, with_parameters

F = TypeVar("F", bound=Callable[..., Any])

FORMATS = ("csv", "tsv", "parquet", "svmlight")
DTYPES = ("float32", "float64")
TEXT = ("csv", "tsv")
_LOOK = {"help": "Whether the first line of CSV holds names.  [default: look]", "off": "no-header", "kinds": TEXT}
_STORED = {
    "help": "How svmlight and arrays are stored.  [default: as suits their zeros]",
    "off": "dense",
    "kinds": ("svmlight", "arrays"),
}


SHARD = {"help": "Blocks in files of so many bytes, 0: a file each.  [default: 1GB above 10GB]", "metavar": "SIZE"}


class IngestKeywords(TypedDict, total=False):
    """How a source is read, and stored."""

    points: str
    labels: Any
    label_column: str | None
    format: str | None
    header: bool | None
    features: int | None
    dtype: str | None
    zero_based: bool
    positive: str | None
    sparse: bool | None
    block_rows: int | None
    shard: str | int | None


@dataclass(frozen=True, kw_only=True)
class IngestOptions:
    """See ``dfeas.ingest``; ``kinds`` are those of sources that an option is for, where that is not all.

    Parameters
    ----------
    points : str
        Name of the array of points in .npz and HDF5.
    labels : array (n,), path, or str, optional
        Or the name of an array in SRC (default ``y`` in .npz and HDF5). Of two values they become signs, of more codes.
    label_column : str or int, optional
        Of a table, by name or index: all others are features, and with ``labels`` all are; of .h5ad a column of obs.
    positive : str, optional
        The class that counts as +1, against all others.
    format : {"csv", "tsv", "parquet", "svmlight"}, optional
        For names that do not tell.
    header : bool, optional
        Whether CSV has names in its first line; None looks.
    features : int, optional
        Of svmlight; None takes as many as its indices say.
    dtype : {"float32", "float64"}, optional
        To which tables and svmlight are rounded.
    zero_based : bool
        Indices of svmlight begin with 0, not with 1.
    sparse : bool, optional
        How svmlight and arrays are stored; None stores them sparse when SRC is, and less than a quarter of the entries are not
        zero.
    block_rows : int, optional
        Points of a block; None takes as many as suit their size.
    shard : str or int, optional
        Bytes of a file of several blocks, such as ``1GB``; 0 makes a file of each block. None does so up to 10 GB of points,
        and takes 1 GB for more, but not of Dask arrays and frames: a worker has all points of a file that it writes.

    Raises
    ------
    UsageError
        What makes no sense, whatever the source.
    """

    HEADING: ClassVar[str] = "Format"

    points: str = field(
        default="X",
        metadata={"heading": "Data", "help": "The array of points in .npz and HDF5.", "shown": True, "metavar": "NAME"},
    )
    labels: str | Any = field(
        default=None,
        metadata={
            "heading": "Data",
            "help": "A label file (.npy, zarr), or the name of the array in SRC.  [default: y]",
            "metavar": "FILE|NAME",
        },
    )
    label_column: str | None = field(
        default=None,
        metadata={
            "heading": "Data",
            "help": "In tables and .h5ad; an index works in tables, -1 is the last.",
            "metavar": "NAME",
        },
    )
    positive: str | None = field(
        default=None, metadata={"heading": "Data", "help": "This class against all others.", "metavar": "CLASS"}
    )
    format: str | None = field(
        default=None, metadata={"help": "When the name of SRC does not tell.", "choices": FORMATS, "metavar": "NAME"}
    )
    header: bool | None = field(default=None, metadata=_LOOK)
    features: int | None = field(
        default=None, metadata={"help": "Features of svmlight.  [default: look]", "metavar": "M", "kinds": ("svmlight",)}
    )
    dtype: str | None = field(
        default=None,
        metadata={
            "help": "Round tables and svmlight to it.",
            "choices": DTYPES,
            "metavar": "TYPE",
            "kinds": (*TEXT, "parquet", "frame", "svmlight"),
        },
    )
    zero_based: bool = field(
        default=False, metadata={"help": "Indices of svmlight begin with 0, not 1.", "kinds": ("svmlight",)}
    )
    sparse: bool | None = field(default=None, metadata=_STORED)
    block_rows: int | None = field(default=None, metadata={"help": ""})
    shard: str | int | None = field(default=None, metadata=SHARD)

    def __post_init__(self) -> None:
        require_types(self, {"header", "features", "zero_based", "sparse", "block_rows"})
        if self.format not in (None, *FORMATS):
            raise UsageError(f"--format {none_of(self.format, FORMATS)}")
        if self.dtype is not None and getattr(self.dtype, "__name__", str(self.dtype)) not in DTYPES:
            raise UsageError(f"dtype {self.dtype}: expected {' or '.join(DTYPES)}")
        if self.features is not None and self.features < 1:
            raise UsageError(f"--features {self.features}: expected at least 1")
        if self.block_rows is not None and self.block_rows < 1:
            raise UsageError(f"block_rows {self.block_rows}: expected at least 1")
        if self.shard is not None:
            parse_bytes(self.shard, "--shard")
        if self.labels is not None and self.label_column is not None:
            raise UsageError("--labels and --label-column: give one of them")

    @property
    def labelled(self) -> bool:
        """Whether a table has a column of labels."""
        return self.labels is None

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


def spells_out(keywords: type) -> Callable[[F], F]:
    """A function whose ``**options`` are these keywords shows each of them in its signature."""

    def decorate(function: F) -> F:
        shown = signature(function)
        own = [each for each in shown.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        more = [
            Parameter(each.name, Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type)
            for each in fields(IngestOptions)
            if each.name in keywords.__annotations__
        ]
        vars(function)["__signature__"] = shown.replace(parameters=[*own, *more])
        added = entries(IngestOptions, keywords.__annotations__)
        function.__doc__ = with_parameters(getdoc(function) or "", (), added)
        return function

    return decorate
