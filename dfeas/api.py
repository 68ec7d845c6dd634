"""The verbs that write a dataset, begin a run, or go on with one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from dfeas.analysis.hard_margin import HARD_MARGIN, HardMargin, widest
from dfeas.analysis.separation import Separation, separated
from dfeas.data.collections import is_collection
from dfeas.data.ingest.options import IngestKeywords, IngestOptions, spells_out
from dfeas.data.storage.layout import MARKER, Header
from dfeas.data.storage.places import require_apart
from dfeas.data.storage.scratch import require_free
from dfeas.data.writers.dataset import Progress
from dfeas.engine.client import joined, takes_client
from dfeas.problem import Goal, Kernel, Limits, Objective, Output, Problem, Resources, View, takes
from dfeas.run.results import Result
from dfeas.run.soft_margin.result import SoftMarginClasses, SoftMarginResult
from dfeas.run.solve import decide, go_on, minimise
from dfeas.run.verdict import OneVsRest, Race
from dfeas.verify.separation import SEPARATED

if TYPE_CHECKING:
    from distributed import Client
    from distributed.deploy import Cluster

    from dfeas.data.ingest.ingest import Note

A = TypeVar("A")

PATH = "path.svg"
"""In the folder of a soft margin with several C, where matplotlib is installed."""


@spells_out(IngestKeywords)
def ingest(
    src: Any,
    out: str | Path,
    *,
    client: Client | Cluster | str | bool | None = None,
    progress: Progress | None = None,
    note: Note | None = None,
    **options: Unpack[IngestKeywords],
) -> Header:
    """Write the dataset OUT from a file, a folder, an array or a data frame, and return its header.

    Names of features are kept where the source has them: columns of frames and tables, the index of var of .h5ad, an attribute
    ``feature_names`` or ``features`` or a dimension scale in HDF5, an array ``feature_names`` in .npz.

    Raises BadInputError or CorruptDataError for what cannot be used, UsageError when OUT exists or an option does not apply,
    and ClusterLostError when the cluster goes away; nothing is left of OUT then.

    Parameters
    ----------
    src : an array (n, m) of NumPy, SciPy, zarr, HDF5 or Dask; a frame that speaks Arrow (pyarrow, pandas 2.2, polars) or of
        Dask; or the path of .npy, .npz, HDF5, .h5ad or zarr; of CSV or TSV (also .gz), of Parquet or a folder of it; of
        svmlight (also .gz, .bz2). Sparse matrices are CSR and CSC: ``X`` of .h5ad and of HDF5 in the same layout, and .npz
        files that SciPy wrote.
    out : the dataset, which must not exist.
    client : that of ``dfeas.solve``: workers read and write .npy, zarr, HDF5, Parquet, and CSV, TSV and svmlight that are not
        compressed; they see SRC and OUT under the same paths. The bytes are the same. Of Dask arrays and frames they write the
        partitions that they have; labels come to this process.
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
    from dfeas.data.ingest.ingest import folder_of
    from dfeas.data.ingest.ingest import ingest as ingest_here

    with joined(client) as workers:
        if workers is None:
            return ingest_here(src, out, given, progress=progress, note=note)
        from dfeas.engine.task_pool import PartitionPool, TaskPool

        if is_collection(src):
            from dfeas.data.ingest.collection import CollectionSource

            require_free(folder_of(out), MARKER)
            with workers.as_current():
                source = CollectionSource(src, given)
            beside = replace(given, labels=source.labels, label_column=None)
            return ingest_here(source, out, beside, progress=progress, note=note, pool=PartitionPool(workers, source.X))
        return ingest_here(src, out, given, progress=progress, note=note, pool=TaskPool(workers))


@takes(View, Kernel, Goal, Limits, Resources, Output)
@takes_client
def solve(
    problem: Problem,
    *,
    method: str = "auto",
    goal: Goal,
    limits: Limits,
    resources: Resources,
    output: Output,
) -> Result | Any:  # a OneVsRest when that is asked
    """Decide whether a hyperplane through the origin separates labelled points, with checked evidence.

    Raises UsageError, BadInputError or CorruptDataError, see ``dfeas.errors``: one line that says what to do.

    Parameters
    ----------
    X : path of a dfeas dataset or of a zarr array, or an array (n, m) of NumPy, zarr, HDF5 or Dask; row j is point j. Or the
        path of a file that ``dfeas.ingest`` takes, up to a quarter of ``memory``. Or cones: what ``dfeas.from_scs`` returns, or
        a dataset that ``dfeas.ingest_scs`` wrote, without labels. Or a ``dfeas.Problem``.
    labels, y : (n,) array of two values, or the path of one; of a frame or a file also the name of a column. None when the
        dataset has them, and for cones. ``"all-positive"`` asks about points without labels: A'y > 0 for all as they are.
    method : a name of ``dfeas.METHODS``, or ``auto``: the working set where it fits the memory, otherwise mirror prox. With a
        kernel a name of ``dfeas.KERNEL_METHODS``.
    """
    return decide(problem, (method,), goal, limits, resources, output)


@takes(View, Kernel, Goal, Limits, Resources, Output, without=("one_vs_rest", "point"))
@takes_client
def race(
    problem: Problem,
    *,
    methods: str | Sequence[str],
    to_the_end: bool = False,
    goal: Goal,
    limits: Limits,
    resources: Resources,
    output: Output,
) -> Race:
    """Run several methods side by side: their questions ride on the same reads of the data.

    Arguments and errors are those of ``dfeas.solve``; passes are limited for each method, memory is for all of them together,
    and ``out`` gets a run folder for each method, and race.json. Samples of working sets are of the same blocks, and share a
    read. Points in order and n-vectors are read on reads of their own. With a kernel all products with the Gram matrix are one.

    Parameters
    ----------
    methods : at least two names of ``dfeas.METHODS``, or with a kernel of ``dfeas.KERNEL_METHODS``, each once; a list of them,
        or text with commas between them.
    to_the_end : go on until each has a verdict of its own or reaches a limit; otherwise the first verdict ends all.
    """
    answer: Race = decide(problem, methods, goal, limits, resources, output, race=True, to_the_end=to_the_end)
    return answer


@takes(View, Objective, Limits, Resources, Output, without=("scale", "center", "normalize", "point", "scratch"))
@takes_client
def soft_margin(
    problem: Problem,
    *,
    method: str = "auto",
    objective: Objective,
    limits: Limits,
    resources: Resources,
    output: Output,
) -> Any:  # a SoftMarginResult, or SoftMarginClasses where each class is set against the rest
    """Minimise |w|^2/2 + C sum_j c_j loss(1 - l_j x_j'w) over labelled points as they are stored, up to a relative gap.

    Arguments and errors are those of ``dfeas.solve``. An intercept is a feature equal to 1; its weight is in |w| like the
    others, as LIBLINEAR has it.

    Parameters
    ----------
    method : ``auto``, or ``sgd``: stochastic steps for the hinge loss and one C, to compare with.
    """
    answer: SoftMarginResult | SoftMarginClasses = minimise(problem, objective, method, limits, resources, output)
    return _with_path(answer, output.out)


@takes(Limits, Resources, Output, without=("memory", "out"))
@takes_client
def resume(
    run: str | Path,
    X: Any = None,
    labels: Any = None,
    *,
    mask: Any = None,
    kernel: Any = None,
    limits: Limits,
    resources: Resources,
    output: Output,
) -> Result | Race | OneVsRest | SoftMarginResult | HardMargin | Separation:
    """Go on with a run from its last checkpoint; the result has the same bits as if it had never been interrupted.

    Raises BadInputError when there is nothing to resume, UsageError when another process is working on the run or the data is
    not known, CorruptDataError when no checkpoint can be read or the data is not what it was.

    Parameters
    ----------
    run : folder of a run of ``dfeas.solve``, ``dfeas.race``, ``dfeas.soft_margin``, ``dfeas.hard_margin`` or
        ``dfeas.separation``; it may have been moved.
    X, labels, mask : the data, if it was in memory or has been moved; it must be the same data.
    kernel : the function of Python that was the kernel, if one was.
    max_passes, time_limit : new limits, counted from the beginning of the run; None keeps those it had.
    client : as for ``dfeas.solve``, or None for threads of this process, whatever it was before.
    """
    path = Path(run)
    given = Problem(X, labels, View(mask=mask), Kernel(kernel=kernel))
    output = replace(output, out=path)
    resumed = go_on(path, given, limits, resources, output)
    answer, job = resumed.answer, resumed.job
    if job.then == HARD_MARGIN:
        assert job.asked.margin_tolerance is not None, "it was asked for"
        return widest(answer, job.asked.margin_tolerance, resumed.problem, resumed.resources, path)
    if job.then == SEPARATED:
        return separated(answer, resumed.problem, resumed.limits, resumed.resources, output)
    whole: Result | Race | OneVsRest | SoftMarginResult = _with_path(answer, path)
    return whole


def _with_path(answer: A, out: str | Path | None) -> A:
    """The answer; beside that of a soft margin with several C a figure of their path is drawn."""
    if out is None or not isinstance(answer, SoftMarginResult) or len({fit.C for fit in answer.fits}) < 2:
        return answer
    if find_spec("matplotlib") is not None:
        from dfeas.report.evidence import draw_path

        draw_path(answer.to_json(), Path(out) / PATH)
    return answer
