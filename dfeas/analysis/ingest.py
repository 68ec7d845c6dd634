"""Ingest in this process, or on the workers of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dfeas.data.ingest.ingest import ingest as ingest_here
from dfeas.data.storage.layout import Header
from dfeas.data.storage.places import require_apart
from dfeas.engine.client import joined

if TYPE_CHECKING:
    from distributed import Client
    from distributed.deploy import Cluster


def ingest(src: Any, out: str | Path, *, client: Client | Cluster | str | bool | None = None, **options: Any) -> Header:
    """Write the dataset OUT from a file, a folder, an array or a data frame, and return its header.

    ``options`` are those of ``dfeas.data.ingest``. With ``client``, which is that of ``dfeas.solve``, the workers of a cluster
    read and write, of .npy, zarr, HDF5, Parquet, and CSV, TSV and svmlight that are not compressed; they see SRC and OUT under
    the same paths. The bytes are the same.

    Raises what that one does, UsageError for another source, and ClusterLostError when the cluster goes away; OUT is gone then.
    """
    require_apart(out, src)
    with joined(client) as found:
        if found is None:
            return ingest_here(src, out, **options)
        from dfeas.engine.task_pool import TaskPool

        return ingest_here(src, out, pool=TaskPool(found), **options)
