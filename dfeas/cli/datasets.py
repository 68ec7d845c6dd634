"""Commands that write datasets."""

from __future__ import annotations

import sys
from typing import Any

import click

from dfeas import leaves
from dfeas.analysis.info import Info
from dfeas.api import generate as write_instance
from dfeas.api import ingest as write_dataset
from dfeas.cli.cluster import CLUSTER, WHERE, Cluster
from dfeas.cli.command import DATA, JSON, Command, Count, Name, is_typed, option, put
from dfeas.cli.options import CHOSEN, FORCE, QUIET, Told, asks, options_of
from dfeas.data.generate.points import CONE_KINDS, KINDS, Generated, Instance, SparseInstance
from dfeas.data.ingest.ingest import folder_of, why_alone
from dfeas.data.ingest.options import FORMATS, IngestOptions
from dfeas.data.source import Choice
from dfeas.data.storage.files import MARKER
from dfeas.data.storage.layout import DTYPES
from dfeas.data.storage.locks import require_free
from dfeas.data.storage.outputs import DATASET, replace_output
from dfeas.data.storage.places import place
from dfeas.records import replace
from dfeas.run.progress.terminal import IngestProgress

CONES = option("Format", "--cones", metavar="SPEC", help="The rows of the array X are cones: l:30,q:5x1000,s:6x200.")
TOLD: Told = {
    "points": ("Data", "The array of points in .npz and HDF5.", {"show_default": True, "metavar": "NAME"}),
    "y": (
        "Data",
        "A label file (.npy, zarr), or the name of the array in SRC.  [default: y]",
        {"metavar": "FILE|NAME", "names": ("--labels",)},
    ),
    "label_column": ("Data", "Of labels, in tables and .h5ad; in tables also an index, -1 is the last.", {"metavar": "NAME"}),
    "positive": ("Data", "This class against all others.", {"metavar": "CLASS"}),
    "format": ("Format", "Format of SRC.  [default: by its name]", {"type": Name(FORMATS), "metavar": "NAME"}),
    "header": ("Format", "Whether the first line of CSV holds names.  [default: detected]", {}),
    "sep": ("Format", "Separator of cells in text.  [default: , in CSV, tab in TSV]", {"metavar": "CHAR"}),
    "decimal": ("Format", "Decimal sign of numbers in text.", {"metavar": "CHAR"}),
    "features": ("Format", "Number of features in svmlight.  [default: detected]", {"metavar": "M"}),
    "dtype": ("Format", "Round tables and svmlight to this type.", {"type": Name(DTYPES), "metavar": "TYPE"}),
    "zero_based": ("Format", "Indices of svmlight begin with 0, not 1.", {}),
    "sparse": (
        "Format",
        "Storage of svmlight and arrays.  [default: by their share of zeros]",
        {"names": ("--sparse/--dense",)},
    ),
    "shard": (
        "Format",
        "Size of files that group blocks; 0: a file per block.  [default: 1GB above 10GB]",
        {"metavar": "SIZE"},
    ),
}
"""Arguments of ``dfeas.ingest`` that are options of commands."""


@click.command(
    cls=Command,
    examples=(
        "dfeas generate planted spam.data --features 20 --points 30000 --margin 0.05",
        "dfeas generate one-flip flip.data --features 50 --points 100000 --seed 7",
    ),
)
@click.argument("kind", type=Name([*KINDS, *CONE_KINDS]), metavar="KIND")
@click.argument("out", type=DATA)
@option("Data", "--features", required=True, type=int, metavar="M", help="Number of features.")
@option("Data", "--points", type=Count(), metavar="N", help="Number of points, such as 2e9.")
@option("Data", "--cones", metavar="SPEC", help="Kinds, sizes and counts of cones: l:30,q:5x1000,s:6x200.")
@option("Data", "--margin", default=0.01, show_default=True, metavar="R", help="Best margin of planted and one-flip.")
@option("Data", "--seed", default=0, show_default=True, metavar="S", help="The same seed gives the same data.")
@option("Format", "--dtype", default="float32", show_default=True, type=Name(DTYPES), metavar="TYPE", help="Type of entries.")
@option("Data", "--density", type=float, metavar="D", help="Generate sparse points with this fraction of nonzeros, as of text.")
@asks(options_of(write_dataset, "shard", told=TOLD), FORCE, QUIET, JSON)
def generate(
    kind: str, out: str, cones: str | None, density: float | None, as_json: bool, quiet: bool, force: bool, **options: Any
) -> None:
    """Write a generated dataset with a known answer.

    \b
    KIND
    halfspace         random points on both sides of a random hyperplane:
                      feasible, thin margin
    planted           all points at margin >= R from a planted hyperplane,
                      pairs exactly at R: feasible, best margin R
    gaussian          standard normal points, random labels: infeasible when
                      there are many more points than features
    one-flip          planted, with one label wrong: infeasible
    cones             --cones with a planted y inside all of them, pairs exactly
                      at margin R: feasible, best margin R
    cones-infeasible  the same, with a cone against the planted y: infeasible
    cones-boundary    best margin R, hard to find: near the boundary, and no
                      average of columns points there
    cones-scattered   the same, and a conflict of more than m cones that are
                      spread over the data: infeasible

    --density generates sparse points that resemble text; planted ones have a margin of R or more. Integers and float16, for
    halfspace and gaussian, are rounded normal numbers; integers cover their whole range.
    """
    points, shard = options.pop("points"), options.pop("shard")
    options["m"], options["n"] = options.pop("features"), points
    if (kind in CONE_KINDS) != (cones is not None) or (kind in CONE_KINDS) == (points is not None):
        raise click.UsageError("give --cones for kinds of cones, and --points for all others")
    if cones is not None:
        if density is not None:
            raise click.UsageError("--density is for points")
        options.pop("n")
        instance: Generated = leaves.cone_instance(kind, cones=cones, **options)
    elif density is None:
        instance = Instance(kind, **options)
    else:
        instance = SparseInstance(kind, density=density, **options)
    header = write_instance(instance, out, shard=shard, force=force, progress=not quiet)
    put(Info(out, header.to_json()), as_json)


@click.command(
    cls=Command,
    examples=(
        "dfeas ingest mail.csv mail.data --label-column spam",
        "dfeas ingest digits.npz seven.data --points images --labels digit --positive 7",
    ),
)
@click.argument("src", type=DATA)
@click.argument("out", type=DATA)
@asks(options_of(write_dataset, told=TOLD), CHOSEN, CONES, CLUSTER, FORCE, QUIET, JSON)
def ingest(
    src: str, out: str, cones: str | None, as_json: bool, quiet: bool, force: bool, cluster: Cluster, **options: Any
) -> None:
    """Convert a file of points to a dataset.

    The dataset OUT is written from the file or folder SRC.

    \b
    arrays    .npy, .npz, HDF5, .h5ad, zarr (n, m); labels beside them
    tables    .csv and .tsv (also .gz), .parquet or a folder of it;
              needs pyarrow, "pip install pyarrow"
    svmlight  .svmlight, .svm, .libsvm (also .gz, .bz2)
    sparse    CSR and CSC in .npz of SciPy, .h5ad and HDF5
    cones     .npy, .npz with --cones, in the order of SCS;
              SDPA sparse files (.dat-s, .dat-s.gz)

    Workers of a cluster read .npy, zarr, HDF5 and Parquet in parallel, and must see SRC and OUT under the same paths. Text,
    archives and columns of sparse matrices are read by this process, in order.
    """
    notes: list[str] = []
    chosen: dict[str, Any] = {name: options.pop(name) or None for name in ("columns", "without", "id")}
    if any(chosen.values()) and cones is not None:
        raise click.UsageError("--columns and --without are for tables, not for cones")
    asked = {name: value for name, value in options.items() if name != "y"}
    given = IngestOptions(labels=options["y"], choice=Choice.of(**chosen), **asked)
    if cones is not None:
        replace(given, shard=None).require_for("cones")
        if any(map(is_typed, WHERE)):
            raise click.UsageError("a cluster is for points, not for cones")
        with replace_output(place(out), DATASET, force):
            told = None if quiet else IngestProgress(sys.stderr)
            header = leaves.ingest_cones(src, out, cones, options["points"], told, given.shard)
        put(Info(out, header.to_json()), as_json)
        return
    alone = "" if cluster == Cluster() else why_alone(src, given)
    if alone:
        notes, cluster = [alone], Cluster()
    elif cluster != Cluster() and not force:
        require_free(folder_of(out), MARKER)  # before workers start
    with cluster.client() as client:
        header = write_dataset(src, out, client=client, force=force, progress=not quiet, note=notes.append, **options, **chosen)
    put(Info(out, {**header.to_json(), "notes": notes}), as_json)
