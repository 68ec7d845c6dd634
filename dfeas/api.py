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
from dfeas.keywords import takes
from dfeas.problem import Goal, Kernel, Objective, Problem, View
from dfeas.run.resources import Limits, Output, Resources
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
    """Write the dataset OUT from a file, a folder, an array or a data frame.

    Names of features are kept where the source has them: columns of frames and tables, the index of var of .h5ad, an attribute
    ``feature_names`` or ``features`` or a dimension scale in HDF5, an array ``feature_names`` in .npz. Nothing is left of OUT
    where it fails.

    Parameters
    ----------
    src : array (n, m), data frame, or path
        An array of NumPy, SciPy, zarr, HDF5 or Dask; a frame that speaks Arrow (pyarrow, pandas 2.2, polars) or of Dask; or the
        path of .npy, .npz, HDF5, .h5ad or zarr; of CSV or TSV (also .gz), of Parquet or a folder of it; of svmlight (also .gz,
        .bz2); of an SDPA sparse file (.dat-s), which makes a dataset of cones. Sparse matrices are CSR and CSC: ``X`` of .h5ad
        and of HDF5 in the same layout, and .npz files that SciPy wrote.
    out : path
        The dataset, which must not exist.
    client : dask.distributed Client or cluster, str, or bool, optional
        That of ``dfeas.solve``: workers read and write .npy, zarr, HDF5, Parquet, and CSV, TSV and svmlight that are not
        compressed; they see SRC and OUT under the same paths. The bytes are the same.
        Of Dask arrays and frames they write the partitions that they have; labels come to this process.
    progress : callable, optional
        Called with the points done, and those in all, as far as is known.
    note : callable, optional
        Told what was cast or dropped.

    Returns
    -------
    Header
        What was written: points, features, classes, type, fingerprint.

    Raises
    ------
    BadInputError, CorruptDataError
        What cannot be used, or read.
    UsageError
        OUT exists, or an option does not apply.
    ClusterLostError
        The cluster went away.

    Examples
    --------
    >>> import dfeas
    >>> import numpy as np
    >>> X = np.array([[1.0, 2.0], [2.0, 1.0], [-1.0, -1.0]])
    >>> dfeas.ingest(X, "mail.data", labels=["ham", "ham", "spam"])
    <Header 3 points of 2 features, float64>
    >>> print(dfeas.solve("mail.data").verdict)
    feasible
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
    """Decide whether a hyperplane separates labelled points, with checked evidence.

    Parameters
    ----------
    method : str
        A name of ``dfeas.METHODS``, or ``auto``: the working set where it fits the memory, otherwise mirror prox. With a kernel
        a name of ``dfeas.KERNEL_METHODS``, of cones one of ``dfeas.CONE_METHODS``.

    Returns
    -------
    Result
        Verdict, bracket of the margin, evidence and cost; with ``one_vs_rest`` a ``OneVsRest``.

    Raises
    ------
    UsageError
        What cannot be asked so: options, paths of outputs.
    BadInputError
        Points or labels that do not pose the problem: shapes, types, entries that are not finite.
    CorruptDataError
        Stored data that is missing, damaged, or not what it was.
    KeyboardInterrupt, ClusterLostError
        When the run has been saved, unless there is a ``stop``.

    Notes
    -----
    Feasible: some y has l_j x_j'y > 0 for all points. Infeasible: some x >= 0 that is not zero has sum_j x_j l_j x_j = 0 [1]_.
    Exactly one of them holds, and a verdict is said when a checker that shares no code with the search has proved it. With an
    intercept x_j has one feature more, equal to 1.

    References
    ----------
    .. [1] P. Gordan, Ueber die Auflösung linearer Gleichungen mit reellen Coefficienten, Mathematische Annalen 6 (1873).

    Examples
    --------
    >>> import dfeas
    >>> X = [[1.0, 2.0], [2.0, 1.0], [-1.0, -1.0]]
    >>> result = dfeas.solve(X, [1, 1, -1])
    >>> print(result.verdict, result.proof, result.message, sep="; ")
    feasible; rigorous; all 3 points are on the positive side; the margin is at least 0.79437
    >>> print(dfeas.solve([[1.0], [2.0]], ["a", "b"]).verdict)
    feasible
    >>> print(dfeas.solve([[1.0], [2.0]], ["a", "b"], intercept=False).verdict)
    infeasible
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

    Passes are limited for each method, memory is for all of them together, and ``out`` gets a run folder for each method, and
    race.json. Samples of working sets are of the same blocks, and share a read. Points in order and n-vectors are read on reads
    of their own. With a kernel all products with the Gram matrix are one.

    Parameters
    ----------
    methods : sequence of str, or str
        At least two names of ``dfeas.METHODS``, or with a kernel of ``dfeas.KERNEL_METHODS``, each once; in text with commas
        between them.
    to_the_end : bool
        Go on until each has a verdict of its own or reaches a limit; otherwise the first verdict ends all.

    Returns
    -------
    Race
        A result for each method, and the reads of all together.

    Raises
    ------
    UsageError, BadInputError, CorruptDataError
        As ``dfeas.solve``.

    Examples
    --------
    >>> import dfeas
    >>> X = [[1.0, 2.0], [2.0, 1.0], [-1.0, -1.0]]
    >>> race = dfeas.race(X, [1, 1, -1], methods=["perceptron", "working-set"], to_the_end=True)
    >>> {name: result.verdict.value for name, result in race.results.items()}
    {'perceptron': 'feasible', 'working-set': 'feasible'}
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

    An intercept is a feature equal to 1; its weight is in |w| like the others, as LIBLINEAR has it.

    Parameters
    ----------
    method : str
        ``auto``, or ``sgd``: stochastic steps for the hinge loss and one C, to compare with.

    Returns
    -------
    SoftMarginResult
        The hyperplane of the chosen C, with both ends of the minimum; with ``one_vs_rest`` a ``SoftMarginClasses``.

    Raises
    ------
    UsageError, BadInputError, CorruptDataError
        As ``dfeas.solve``.

    Examples
    --------
    >>> import dfeas
    >>> X = [[1.0, 2.0], [2.0, 1.0], [-1.0, -1.0]]
    >>> fit = dfeas.soft_margin(X, [1, 1, -1], C=10, gap=1e-6)
    >>> print(f"{fit.lower:.3f} <= {fit.objective:.3f}, {fit.error:.0%} on the wrong side")
    0.180 <= 0.180, 0% on the wrong side
    >>> fit.predict([[3.0, 3.0]])
    array([1])
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

    Parameters
    ----------
    run : path
        Folder of a run of ``dfeas.solve``, ``dfeas.race``, ``dfeas.soft_margin``, ``dfeas.hard_margin`` or
        ``dfeas.separation``; it may have been moved.
    X : array (n, m), data frame, or path, optional
        The data, if it was in memory or has been moved; it must be the same data.
    labels : array (n,), or path, optional
        Likewise.
    mask : array (n,) of bool, or path, optional
        Likewise.
    kernel : callable, optional
        The function of Python that was the kernel, if one was.

    Returns
    -------
    Result, Race, OneVsRest, SoftMarginResult, HardMargin or Separation
        What the call would have returned. Limits count from the beginning of the run; those that are not given are as they
        were.

    Raises
    ------
    BadInputError
        There is nothing to resume.
    UsageError
        Another process is working on the run, or the data is not known.
    CorruptDataError
        No checkpoint can be read, or the data is not what it was.

    Examples
    --------
    >>> import dfeas
    >>> X, labels = [[5.0, 1.0], [1.0, 5.0], [-1.0, 0.9]], [1, 1, -1]
    >>> early = dfeas.solve(X, labels, method="perceptron", max_passes=1, out="run")
    >>> print(early.verdict, early.stopped)
    undecided pass_limit
    >>> print(dfeas.resume("run", X, labels, max_passes=100).verdict)
    feasible
    """
    path = Path(run)
    given = Problem(X, labels, View(mask=mask), Kernel(kernel=kernel))
    output = replace(output, out=path)
    resumed = go_on(path, given, limits, resources, output)
    answer, job = resumed.answer, resumed.job
    if job.then == HARD_MARGIN:
        return widest(answer, resumed.problem, resumed.resources, path)
    if job.then == SEPARATED:
        return separated(answer, resumed.problem, resumed.limits, resumed.resources, output)
    whole: Result | Race | OneVsRest | SoftMarginResult = _with_path(answer, path)
    return whole


def _with_path(answer: A, out: str | Path | None) -> A:
    """The answer; beside that of a soft margin with several C a figure of their path is drawn."""
    if out is None or not isinstance(answer, SoftMarginResult) or len({fit.C for fit in answer.fits}) < 2:
        return answer
    if find_spec("matplotlib") is not None:
        from dfeas.report.figures import draw_path

        draw_path(answer.to_json(), Path(out) / PATH)
    return answer
