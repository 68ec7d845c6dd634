"""Ingest in this process, or on the workers of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from dfeas.data.ingest.ingest import Note
from dfeas.data.ingest.ingest import ingest as ingest_here
from dfeas.data.ingest.options import IngestKeywords, IngestOptions, spells_out
from dfeas.data.storage.layout import Header
from dfeas.data.storage.places import require_apart
from dfeas.data.writers.dataset import Progress

if TYPE_CHECKING:
    from distributed import Client


@spells_out(IngestKeywords)
def ingest(
    src: Any,
    out: str | Path,
    *,
    client: Client | None = None,
    progress: Progress | None = None,
    note: Note | None = None,
    **options: Unpack[IngestKeywords],
) -> Header:
    """Write the dataset OUT from a file, a folder, an array or a data frame, and return its header.

    Raises BadInputError or CorruptDataError for what cannot be used, UsageError when OUT exists or an option does not apply,
    and ClusterLostError when the cluster goes away; nothing is left of OUT then.

    Parameters
    ----------
    src : an array (n, m) of NumPy, SciPy, zarr, HDF5 or Dask; a frame that speaks Arrow (pyarrow, pandas 2.2, polars) or of
        Dask; or the path of .npy, .npz, HDF5, .h5ad or zarr; of CSV or TSV (also .gz), of Parquet or a folder of it; of
        svmlight (also .gz, .bz2). Sparse matrices are CSR and CSC: ``X`` of .h5ad and of HDF5 in the same layout, and .npz
        files that SciPy wrote.
    out : the dataset, which must not exist.
    client : a Dask client: its workers read and write .npy, zarr, HDF5, Parquet, and CSV, TSV and svmlight that are not
        compressed; they see SRC and OUT under the same paths. The bytes are the same.
    progress : called with the points done, and those in all, as far as is known.
    note : told what was cast or dropped.
    points : name of the array of points in .npz and HDF5.
    labels : an array (n,), the path of one, or the name of an array in SRC (default ``y`` in .npz and HDF5). Of two values they
        become signs, of more codes.
    label_column : of a table, a name or an index: all others are features, and with ``labels`` all are; of .h5ad a column of
        obs.
    positive : the class that counts as +1, against all others.
    format : ``csv``, ``tsv``, ``parquet`` or ``svmlight``, for names that do not tell.
    header : whether CSV has names in its first line; None looks.
    features : of svmlight; None takes as many as its indices say.
    dtype : ``float32`` or ``float64``, to which tables and svmlight are rounded.
    zero_based : indices of svmlight begin with 0, not with 1.
    sparse : how svmlight and arrays are stored; None stores them sparse when SRC is, and less than a quarter of the entries are
        not zero.
    block_rows : points of a block; None takes as many as suit their size.
    """
    require_apart(out, src)
    given = IngestOptions(**options)
    if client is None:
        return ingest_here(src, out, given, progress=progress, note=note)
    from dfeas.engine.task_pool import TaskPool

    return ingest_here(src, out, given, progress=progress, note=note, pool=TaskPool(client))
