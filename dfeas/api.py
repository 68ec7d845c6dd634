"""The verbs that write a dataset, begin a run, or go on with one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from dfeas.data.collections import is_collection
from dfeas.data.partitions import computed_by
from dfeas.data.source import Choice, ChosenTable, DataSpec
from dfeas.data.storage.files import MARKER
from dfeas.data.storage.layout import Header
from dfeas.data.storage.places import absolute, local, place, require_apart
from dfeas.data.storage.sparse_readers import has_sparse_chunks
from dfeas.engine.protocol import open_client
from dfeas.errors import UsageError
from dfeas.problem import Goal, Kernel, KernelName, Loss, Method, Objective, Problem, SoftMethod, Transforms
from dfeas.records import replace
from dfeas.run.resources import choose_client
from dfeas.run.solve import decide, go_on, minimise, run_terms
from dfeas.run.spec import HARD_MARGIN, SEPARATED, WIDEST
from dfeas.settings import require_type

if TYPE_CHECKING:
    from dfeas.answers.hard_margin import HardMargin
    from dfeas.answers.result import Result
    from dfeas.answers.separation import Hull, Separation
    from dfeas.answers.several import OneVsRest, Race
    from dfeas.answers.soft_margin import SoftMarginClasses, SoftMarginResult
    from dfeas.data.generate.points import Generated
    from dfeas.data.ingest.ingest import Note
    from dfeas.data.writers.dataset import Progress
    from dfeas.engine.protocol import Workers
    from dfeas.methods.protocol import AnyMethod

A = TypeVar("A")

PATH = "path.svg"
"""In the folder of a soft margin with several C, where matplotlib is installed."""


def ingest(
    X: Any,
    out: str | Path,
    *,
    points: str = "X",
    y: Any = None,
    label_column: str | None = None,
    columns: str | Sequence[str] | None = None,
    without: str | Sequence[str] = (),
    id: str | None = None,
    positive: str | None = None,
    format: Literal["csv", "tsv", "parquet", "svmlight"] | None = None,
    header: bool | None = None,
    sep: str | None = None,
    decimal: Literal[".", ","] = ".",
    features: int | None = None,
    dtype: Literal["float32", "float64"] | None = None,
    zero_based: bool = False,
    sparse: bool | None = None,
    block_rows: int | None = None,
    shard: str | int | None = None,
    client: Workers | None = None,
    force: bool = False,
    progress: bool | Progress | None = None,
    note: Note | None = None,
) -> Header:
    """Write the dataset OUT from a file, a folder, an array or a data frame.

    Names of features are kept where the source has them: columns of frames and tables, the index of var of .h5ad, an attribute
    ``feature_names`` or ``features`` or a dimension scale in HDF5, an array ``feature_names`` in .npz. If it fails, nothing is
    left of OUT.

    Parameters
    ----------
    X : array (n, m), data frame, path, or cones
        An array of NumPy, SciPy, zarr, HDF5 or Dask; a frame that speaks Arrow (pyarrow, pandas 2.2, polars) or of Dask; what
        ``dfeas.from_cone_rows`` returns; or the path of .npy, .npz, HDF5, .h5ad or zarr; of CSV or TSV (also .gz), of Parquet
        or a folder of it; of svmlight (also .gz, .bz2); of an SDPA sparse file (.dat-s), which makes a dataset of cones. Sparse
        matrices are CSR and CSC: ``X`` of .h5ad and of HDF5 in the same layout, and .npz files that SciPy wrote.
    out : path
        The dataset, which must not exist; see ``force``.
    points : str
        Name of the array of points in .npz and HDF5.
    y : array (n,), path, or str, optional
        Labels, or the name of an array in X (default ``y`` in .npz and HDF5). Two values become signs, more become codes.
    label_column : str, optional
        Column of a table, by name or index: all others are features, and with ``y`` all are; or a column of obs in .h5ad.
    columns : str or sequence of str, optional
        Features of a table by name or pattern, as of ``dfeas.table``; None: all columns.
    without : str or sequence of str
        Columns of a table that are no features.
    id : str, optional
        The column of a table that names its rows: it is kept beside the labels, and no feature. An index of pandas is kept,
        too, unless it only counts rows.
    positive : str, optional
        The class that counts as +1, against all others.
    format : {"csv", "tsv", "parquet", "svmlight"}, optional
        Needed if the name of the file does not tell it.
    header : bool, optional
        Whether CSV has names in its first line; None looks.
    sep : str, optional
        Separator of cells in text; None is a comma in CSV, and a tab in TSV.
    decimal : {".", ","}
        Decimal sign of numbers in text.
    features : int, optional
        Number of features in svmlight; None takes as many as its largest index.
    dtype : {"float32", "float64"}, optional
        Type to which tables and svmlight are rounded.
    zero_based : bool
        Indices of svmlight begin with 0, not with 1.
    sparse : bool, optional
        How svmlight and arrays are stored; None stores them sparse if X is sparse and less than a quarter of its entries are
        not zero.
    block_rows : int, optional
        Points in a block; None chooses by their size.
    shard : str or int, optional
        Bytes of a file of several blocks, such as ``1GB``; 0 makes a file of each block. None does so up to 10 GB of points,
        and takes 1 GB for more, but not for Dask arrays and frames: a worker holds all points of a file that it writes.
    client : dask.distributed Client or cluster, str, or bool, optional
        As in ``dfeas.solve``: workers share .npy, zarr, HDF5 and Parquet, and must see X and OUT under the same paths; text,
        archives and what is in memory are read by this process, in order. The bytes are the same.
        They write the partitions that they have of Dask arrays and frames; labels come to this process.
    force : bool
        Replace a dataset that is at OUT, once the new one is written; nothing else is replaced.
    progress : bool, or callable, optional
        Show a line on stderr, as the commands do; or call this with the points done, and the number of all, if known.
        None: the setting ``DFEAS_PROGRESS``, by default nothing.
    note : callable, optional
        Called with a line about what was cast or dropped.

    Returns
    -------
    Header
        What was written: points, features, classes, type, fingerprint.

    Raises
    ------
    BadInputError, CorruptDataError
        X cannot be used, or not be read.
    UsageError
        OUT exists, or an option does not apply.
    ClusterLostError
        The cluster went away.

    Examples
    --------
    >>> import dfeas
    >>> import numpy as np
    >>> X = np.array([[1.0, 2.0], [2.0, 1.0], [-1.0, -1.0]])
    >>> dfeas.ingest(X, "mail.data", y=["ham", "ham", "spam"])
    <Header points 3 of 2 features, float64, 48 B>
    >>> print(dfeas.solve("mail.data").verdict)
    feasible
    """
    from dfeas.data.ingest.options import IngestOptions
    from dfeas.data.storage.locks import require_free
    from dfeas.data.storage.outputs import DATASET, replace_output

    choice, ids = Choice.of(columns, without, id), None
    if isinstance(X, ChosenTable):
        if choice:
            raise UsageError("the table says itself which columns are features: leave out columns, without and id")
        label = X.label if label_column is None else label_column
        X, y, choice, ids = X.take(y if label_column is None else label_column)
        label_column, y = (label, None) if label is not None else (None, y)
    elif choice and not isinstance(X, str | Path):
        from dfeas.data.table import table  # with readers of all formats

        X, _, choice, ids = table(X, label_column, columns=columns, without=without, id=id).take(None)
    require_apart(out, X)
    given = IngestOptions(
        choice=choice,
        ids=ids,
        points=points,
        labels=y,
        label_column=label_column,
        positive=positive,
        format=format,
        header=header,
        sep=sep,
        decimal=decimal,
        features=features,
        dtype=dtype,
        zero_based=zero_based,
        sparse=sparse,
        block_rows=block_rows,
        shard=shard,
    )
    from dfeas.data.ingest.ingest import folder_of, why_alone
    from dfeas.data.ingest.ingest import ingest as ingest_here
    from dfeas.run.progress.terminal import who_is_told

    require_type("force", force, "bool")
    told = who_is_told(progress)
    with open_client(choose_client(client, X)) as workers, replace_output(place(out), DATASET, force):
        alone = "" if workers is None or is_collection(X) else why_alone(X, given)
        if alone and note is not None:
            note(alone)
        if workers is None or alone or has_sparse_chunks(X):  # entries follow those before them, so that one process writes
            with computed_by(workers):
                return ingest_here(X, out, given, progress=told, note=note)
        from dfeas.engine.crew import places_of
        from dfeas.engine.task_pool import PartitionPool, TaskPool

        if is_collection(X):
            from dfeas.data.ingest.ingest import CollectionSource

            require_free(folder_of(out), MARKER)
            from dfeas.engine.collection import compute_on

            source = CollectionSource(X, given, compute_on(workers, X, y))
            beside = replace(given, labels=source.labels, label_column=None)
            return ingest_here(source, out, beside, progress=told, note=note, pool=PartitionPool(workers, source.X))
        X = absolute(X) if isinstance(X, str | Path) else X  # workers may have another folder than this process
        places = *places_of(DataSpec(X)), str(folder_of(out).parent)
        return ingest_here(X, out, given, progress=told, note=note, pool=TaskPool(workers, places))


def generate(
    instance: Generated,
    out: str | Path,
    *,
    shard: str | int | None = None,
    force: bool = False,
    progress: bool | Progress | None = None,
) -> Header:
    """Write an instance as a dataset; memory does not depend on the number of its points.

    Parameters
    ----------
    instance : Instance
        Kind, size and seed of the points.
    out : path
        The dataset.
    shard, force, progress : optional
        As in ``dfeas.ingest``.

    Returns
    -------
    Header
        What was written.

    Raises
    ------
    UsageError
        OUT exists, or ``shard`` is no size.

    Examples
    --------
    >>> import dfeas
    >>> dfeas.generate(dfeas.Instance("planted", 3, 100, margin=0.1), "data")
    <Header points 100 of 3 features, float32, 1.17 kiB>
    >>> print(dfeas.solve("data").verdict)
    feasible
    """
    from dfeas.data.generate.points import generate as write_instance
    from dfeas.data.storage.outputs import DATASET, replace_output
    from dfeas.run.progress.terminal import who_is_told

    require_type("force", force, "bool")
    with replace_output(place(out), DATASET, force):
        return write_instance(instance, out, who_is_told(progress), shard)


def solve(
    X: Any,
    y: Any = None,
    *,
    method: Method | AnyMethod = "auto",
    positive: str | None = None,
    intercept: bool | None = None,
    mask: Any = None,
    transform: Transforms = (),
    kernel: KernelName | Callable[..., Any] | Kernel | None = None,
    eps: float | None = None,
    margin_tolerance: float | None = None,
    start: str | Path | Result | None = None,
    max_passes: int | None = None,
    time_limit: float | None = None,
    memory: str | int | None = None,
    client: Workers | None = None,
    out: str | Path | None = None,
    force: bool = False,
    callback: Callable[[Any], object] | None = None,
) -> Result:
    """Decide whether a hyperplane separates labelled points, with checked evidence.

    Parameters
    ----------
    X : array (n, m), data frame, path, paths, or cones
        Row j is point j of an array of NumPy, SciPy, zarr, HDF5 or Dask; or the path of a dfeas dataset, a zarr array or a
        small file of points; or a list of several paths, whose points follow each other as those of one. With a client an array
        or frame of Dask is solved where it lies, in its partitions, as they are persisted or computed anew in each pass. Or
        cones: what ``dfeas.from_scs`` and ``dfeas.from_cone_rows`` return, a dataset of cones, or an SDPA sparse file, without
        labels.
    y : array (n,) of two values, path, or str, optional
        Labels; for a frame also the name of a column. None if the dataset has them, and for cones. ``"all-positive"`` asks
        about points without labels: A'y > 0 for all of them as they are.
    method : str, or a method of your own
        A name of ``dfeas.METHODS``, or ``auto``: the working set if it fits in memory, otherwise mirror prox. Not all of them
        work with a kernel or on cones, and others work only there; the message about an unknown name lists those that do. Or an
        object with the functions of ``dfeas.methods.protocol.Method``, on points, with a kernel or without.
    positive : str, optional
        The class that counts as +1, against all others.
    intercept : bool, optional
        Ask about any hyperplane, by a feature equal to 1; False: only about those through the origin. By default points with
        labels have an intercept; without labels, with a kernel and on cones there is none.
    mask : array (n,) of bool, or path, optional
        Only the true points count; the path is that of a .npy file. For cones an entry for each cone, in their order, or one
        for each of their rows.
    transform : {"std", "maxabs", "center", "lengths"}, or several, optional
        ``"center"`` subtracts the mean of each feature; not for sparse points. ``"std"`` or ``"maxabs"`` multiplies it then by
        one over its standard deviation, or over its greatest magnitude. Points are divided by their own length, with
        ``"lengths"`` by the length of the longest point, so that margins are distances of the points from the hyperplane, as
        a share of that length. Nothing is written. This changes margins and the work, not which points can be separated,
        except for centring without an intercept, where the hyperplane goes through the mean of the points. With a kernel it is
        the kernel of the transformed points; ``"lengths"`` has no meaning there.
    kernel : str, callable, or Kernel, optional
        Ask about the points in the space of a kernel: a name of ``dfeas.KERNELS``, a function of two blocks of points, or a
        ``dfeas.Kernel``, which has parameters, too.
    eps : float, optional
        The run may end with ``eps-infeasible``: no unit vector has a margin above eps on the unit points. By default ``auto``
        and working sets do not end so; another method that you name does so at 0.001.
    margin_tolerance : float, optional
        Continue past the first separator until margin_lower >= (1 - margin_tolerance) margin_upper: the hyperplane of maximum
        margin (hard-margin SVM) up to this share.
    start : path, or Result, optional
        A finished run of ``dfeas.solve`` or ``dfeas.soft_margin`` on similar data: its hyperplane is tried first, or the
        points of its conflict. There may be other points, more points or another order, with the same features. It changes
        the reads, not what is proved. For working sets on points; with a kernel a run with one, whose expansion is tried.
    max_passes : int, optional
        Stop after so many passes over the data.
    time_limit : float, optional
        Stop so many seconds after the call has begun, waiting for a scheduler and for workers included; a read ends first if
        that takes less than two more. Where nothing could be opened by then, UndecidedError names what was waited for.
    memory : int or str, optional
        Budget in bytes, per process, for blocks, answers and columns in memory; text such as ``"2GB"`` or ``"512MiB"``. None:
        the setting.
    client : dask.distributed Client or cluster, str, or bool, optional
        The address of a scheduler, or True for the current client; workers see the data under its path, or compute the
        partitions of a Dask array or frame, for which the current client need not be named. False, and None for all other
        data: threads of this process; within a task of Dask one.
    out : path, optional
        Folder, or URL in an object store, for result.json, certificate.npz and trace.jsonl, and for checkpoints, from which
        ``dfeas.resume`` continues.
    force : bool
        Replace what a run of dfeas left in ``out`` before, once the new one is finished; nothing else is replaced.
    callback : callable, optional
        Called with the record of each read, for each class; when it returns True or raises StopIteration, the run ends as
        ``interrupted``, with a checkpoint, unless that read decided it.

    Returns
    -------
    Result
        Verdict, bracket of the margin, evidence and cost.

    Raises
    ------
    UsageError
        Options do not fit together, or an output cannot be written.
    BadInputError
        Points or labels that do not pose the problem: shapes, types, entries that are not finite.
    CorruptDataError
        Stored data that is missing, damaged, or not what it was.
    KeyboardInterrupt, ClusterLostError
        Raised when the run has been saved.

    Notes
    -----
    Feasible: some y has l_j x_j'y > 0 for all points. Infeasible: some weights c >= 0, not all zero, have sum_j c_j l_j x_j = 0
    [1]_. Exactly one of the two holds, and a verdict is given when a checker that shares no code with the search has proved it.
    With an intercept x_j has one feature more, equal to 1.

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
    problem = Problem.of(X, y, positive=positive, intercept=intercept, mask=mask, transform=transform, kernel=kernel)
    goal = Goal(eps=eps, margin_tolerance=margin_tolerance)
    with run_terms(max_passes, time_limit, memory, choose_client(client, X), out, callback, force) as terms:
        result: Result = decide(problem, method, goal, *terms, start=start)
    return result


def one_vs_rest(
    X: Any,
    y: Any = None,
    *,
    method: Method | AnyMethod = "auto",
    intercept: bool | None = None,
    mask: Any = None,
    transform: Transforms = (),
    kernel: KernelName | Callable[..., Any] | Kernel | None = None,
    eps: float | None = None,
    margin_tolerance: float | None = None,
    max_passes: int | None = None,
    time_limit: float | None = None,
    memory: str | int | None = None,
    client: Workers | None = None,
    out: str | Path | None = None,
    force: bool = False,
    callback: Callable[[Any], object] | None = None,
) -> OneVsRest:
    """Decide for each class whether a hyperplane separates it from the rest, all on the same reads.

    Parameters
    ----------
    X, y : array (n, m), data frame, or path
        As in ``dfeas.solve``, with labels of any number of values.
    method : str
        As in ``dfeas.solve``; not every method can share reads.
    intercept, mask, transform, kernel, eps, margin_tolerance : optional
        As in ``dfeas.solve``.
    max_passes, time_limit, memory, client, out, force, callback : optional
        As in ``dfeas.solve``; limits of passes hold for each class, memory is
        shared, and ``out`` gets a run folder for each class.

    Returns
    -------
    OneVsRest
        A result for each class, and the reads of all together.

    Raises
    ------
    UsageError, BadInputError, CorruptDataError
        As in ``dfeas.solve``.

    Examples
    --------
    >>> import dfeas
    >>> X = [[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]
    >>> every = dfeas.one_vs_rest(X, ["a", "b", "c"])
    >>> {name: result.verdict.value for name, result in every.results.items()}
    {'a': 'feasible', 'b': 'feasible', 'c': 'feasible'}
    """
    problem = Problem.of(X, y, one_vs_rest=True, intercept=intercept, mask=mask, transform=transform, kernel=kernel)
    goal = Goal(eps=eps, margin_tolerance=margin_tolerance)
    with run_terms(max_passes, time_limit, memory, choose_client(client, X), out, callback, force) as terms:
        answer: OneVsRest = decide(problem, method, goal, *terms)
        return answer


def race(
    X: Any,
    y: Any = None,
    *,
    methods: str | Sequence[str | AnyMethod],
    first: bool = False,
    positive: str | None = None,
    intercept: bool | None = None,
    mask: Any = None,
    transform: Transforms = (),
    kernel: KernelName | Callable[..., Any] | Kernel | None = None,
    eps: float | None = None,
    margin_tolerance: float | None = None,
    max_passes: int | None = None,
    time_limit: float | None = None,
    memory: str | int | None = None,
    client: Workers | None = None,
    out: str | Path | None = None,
    force: bool = False,
    callback: Callable[[Any], object] | None = None,
) -> Race:
    """Run several methods side by side on the same reads of the data.

    Passes are limited for each method, memory is for all of them together, and ``out`` gets a run folder for each method, and
    race.json. Working sets sample the same blocks, and share that read. Methods that take points in order or n-vectors need
    reads of their own. With a kernel all methods share the products with the Gram matrix.

    Parameters
    ----------
    X, y : array (n, m), data frame, path, or cones
        As in ``dfeas.solve``.
    methods : sequence of str, or str
        Names of methods, as of ``dfeas.solve``, each once, in text with commas between them; or methods of your own, which are
        objects with the functions of ``dfeas.methods.protocol.Method``, on points.
    first : bool
        End all methods at the first verdict; otherwise each continues to its own verdict, or a limit.
    positive, intercept, mask, transform, kernel, eps, margin_tolerance : optional
        As in ``dfeas.solve``.
    max_passes, time_limit, memory, client, out, force, callback : optional
        As in ``dfeas.solve``.

    Returns
    -------
    Race
        A result for each method, the best first, and the reads of all together.

    Raises
    ------
    UsageError, BadInputError, CorruptDataError
        As in ``dfeas.solve``.

    Examples
    --------
    >>> import dfeas
    >>> X = [[1.0, 2.0], [2.0, 1.0], [-1.0, -1.0]]
    >>> race = dfeas.race(X, [1, 1, -1], methods=["perceptron", "working-set"])
    >>> {name: result.verdict.value for name, result in race.results.items()}
    {'working-set': 'feasible', 'perceptron': 'feasible'}
    """
    require_type("first", first, "bool")
    problem = Problem.of(X, y, positive=positive, intercept=intercept, mask=mask, transform=transform, kernel=kernel)
    goal = Goal(eps=eps, margin_tolerance=margin_tolerance)
    with run_terms(max_passes, time_limit, memory, choose_client(client, X), out, callback, force) as terms:
        answer: Race = decide(problem, methods, goal, *terms, race=True, first=first)
        return answer


def soft_margin(
    X: Any,
    y: Any = None,
    *,
    method: SoftMethod = "auto",
    positive: str | None = None,
    intercept: bool | None = None,
    mask: Any = None,
    transform: Transforms = (),
    C: float | Sequence[float] = 1.0,
    loss: Loss = "hinge",
    tol: float = 1e-3,
    folds: int = 0,
    class_weight: Literal["balanced"] | Sequence[float] | None = None,
    weights: Any = None,
    intercept_scaling: float | None = None,
    random_state: int = 0,
    dual: str | Path | None = None,
    start: Any = None,
    probability: bool = False,
    max_passes: int | None = None,
    time_limit: float | None = None,
    memory: str | int | None = None,
    client: Workers | None = None,
    out: str | Path | None = None,
    force: bool = False,
    callback: Callable[[Any], object] | None = None,
) -> SoftMarginResult:
    """Minimise |w|^2/2 + C sum_j c_j loss(1 - l_j (x_j'w + b)) over labelled points as they are stored, up to a relative gap.

    The bias b is free, as in LIBSVM and the textbooks. If points are centred or scaled, these are the x_j: the result is in
    their units, except ``coef`` and ``bias``, which are in those of X.

    Parameters
    ----------
    X, y : array (n, m), data frame, or path
        As in ``dfeas.solve``.
    method : str
        ``auto``, or ``sgd``: stochastic steps for the hinge loss and one C, for comparison, which grow shorter; those of
        ``sgd:alpha=0.01`` have one length.
    positive, intercept, mask : optional
        As in ``dfeas.solve``.
    transform : {"std", "maxabs", "center"}, or several, optional
        As in ``dfeas.solve``. With a free bias centring alone changes no hyperplane, only how far numbers cancel; a bias that
        is penalised is that of the centred points, and without an intercept the hyperplane goes through their mean.
    C : float, or sequence of float
        Regularisation parameter, the weight of losses, above 0; several are fitted on the same reads. With folds the one with
        the least error on the points that were left out is chosen, of equal ones the smallest; without folds the greatest.
    loss : {"hinge", "squared_hinge"}
        max(0, z), or its square; as LIBLINEAR, without a factor of one half.
    tol : float
        The fit ends when (objective - lower bound of the minimum) / objective is at most this.
    folds : int
        Number of folds of cross-validation, at least 2; each point is in one, by its index and ``random_state``. 0: none.
    class_weight : "balanced", or two floats, optional
        Weights of the classes -1 and +1; ``balanced`` is n / (2 n_class).
    weights : array (n,), or path, optional
        Weights of the points that count, >= 0; the path is that of a .npy file.
    intercept_scaling : float s, optional
        The bias adds b^2/(2 s^2) to what is minimised; with 1 that is what LIBLINEAR minimises.
    random_state : int
        Seed that draws the folds.
    dual : path, optional
        A .npy file for the dual variables alpha (n,) of the chosen C, those that prove ``lower``, written in one more read
        without keeping them: 0 <= alpha_j <= c_j for the hinge, 0 <= alpha_j for its square; w is the sum of alpha_j l_j x_j
        up to ``dual.residual``; with a free bias ``dual.value`` subtracts what a sum of alpha_j l_j other than 0 may be
        worth. At a limit they are those of the bound so far. Not for ``sgd``.
    start : path, SoftMarginResult, or array (m,) or (m+1,), optional
        A finished run of ``dfeas.soft_margin`` on similar data, or a hyperplane as in ``y`` of a result, to begin from.
    probability : bool
        With folds: calibrate the scores of the points that each leaves out, in one read more, for ``predict_proba`` (Platt
        1999; Lin, Lin and Weng 2007). They are estimates: nothing about them is proved.
    max_passes, time_limit, memory, client, out, force, callback : optional
        As in ``dfeas.solve``.

    Returns
    -------
    SoftMarginResult
        The hyperplane of the chosen C, with both ends of the minimum.

    Raises
    ------
    UsageError, BadInputError, CorruptDataError
        As in ``dfeas.solve``.

    Examples
    --------
    >>> import dfeas
    >>> X = [[1.0, 2.0], [2.0, 1.0], [-1.0, -1.0]]
    >>> fit = dfeas.soft_margin(X, [1, 1, -1], C=10, tol=1e-6)
    >>> print(f"{fit.lower:.3f} <= {fit.objective:.3f}, {fit.error:.0%} on the wrong side")
    0.160 <= 0.160, 0% on the wrong side
    >>> fit.predict([[3.0, 3.0]])
    array([1])
    """
    from dfeas.data.storage.outputs import SCORES, replace_output

    problem = Problem.of(X, y, positive=positive, intercept=intercept, mask=mask, transform=transform)
    objective = Objective(C, loss, tol, folds, class_weight, weights, intercept_scaling, random_state, dual, start, probability)
    terms_of = run_terms(max_passes, time_limit, memory, choose_client(client, X), out, callback, force)
    with terms_of as terms, replace_output(_npy_file(dual), SCORES, force):
        answer: SoftMarginResult = minimise(problem, objective, method, *terms)
    return _with_path(answer, out)


def soft_margin_classes(
    X: Any,
    y: Any = None,
    *,
    method: SoftMethod = "auto",
    intercept: bool | None = None,
    mask: Any = None,
    transform: Transforms = (),
    C: float | Sequence[float] = 1.0,
    loss: Loss = "hinge",
    tol: float = 1e-3,
    folds: int = 0,
    class_weight: Literal["balanced"] | Sequence[float] | None = None,
    weights: Any = None,
    intercept_scaling: float | None = None,
    random_state: int = 0,
    dual: str | Path | None = None,
    start: Any = None,
    probability: bool = False,
    max_passes: int | None = None,
    time_limit: float | None = None,
    memory: str | int | None = None,
    client: Workers | None = None,
    out: str | Path | None = None,
    force: bool = False,
    callback: Callable[[Any], object] | None = None,
) -> SoftMarginClasses:
    """Fit a soft margin of each class against the rest, all on the same reads.

    Parameters
    ----------
    X, y : array (n, m), data frame, or path
        As in ``dfeas.solve``, with labels of any number of values.
    method : str
        That of ``dfeas.soft_margin``.
    intercept, mask : optional
        As in ``dfeas.solve``.
    transform : optional
        As in ``dfeas.soft_margin``.
    C, loss, tol, folds, class_weight, weights, intercept_scaling, random_state, dual : optional
        As in ``dfeas.soft_margin``; ``balanced`` works for two classes only.
    start : path, SoftMarginClasses, or array (classes, m) or (classes, m+1), optional
        A finished run on similar data with the same classes, or hyperplanes to begin from.
    probability : bool
        As in ``dfeas.soft_margin``, for each class.
    max_passes, time_limit, memory, client, out, force, callback : optional
        As in ``dfeas.one_vs_rest``.

    Returns
    -------
    SoftMarginClasses
        A fit of each class, and the reads of all together.

    Raises
    ------
    UsageError, BadInputError, CorruptDataError
        As in ``dfeas.solve``.

    Examples
    --------
    >>> import dfeas
    >>> X = [[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]
    >>> dfeas.soft_margin_classes(X, ["a", "b", "c"], C=10).predict([[2.0, 0.0]])
    array(['a'], dtype='<U1')
    """
    from dfeas.data.storage.outputs import SCORES, replace_output

    problem = Problem.of(X, y, one_vs_rest=True, intercept=intercept, mask=mask, transform=transform)
    objective = Objective(C, loss, tol, folds, class_weight, weights, intercept_scaling, random_state, dual, start, probability)
    terms_of = run_terms(max_passes, time_limit, memory, choose_client(client, X), out, callback, force)
    with terms_of as terms, replace_output(_npy_file(dual), SCORES, force):
        answer: SoftMarginClasses = minimise(problem, objective, method, *terms)
        return answer


def resume(
    run: str | Path,
    X: Any = None,
    y: Any = None,
    *,
    mask: Any = None,
    kernel: Any = None,
    method: AnyMethod | Sequence[AnyMethod] | None = None,
    max_passes: int | None = None,
    time_limit: float | None = None,
    client: Workers | None = None,
    callback: Callable[[Any], object] | None = None,
) -> Result | Race | OneVsRest | SoftMarginResult | SoftMarginClasses | HardMargin | Separation | Hull:
    """Continue a run from its last checkpoint; the result is bitwise identical to that of an uninterrupted run.

    Parameters
    ----------
    run : path
        Folder of a run of ``dfeas.solve``, ``dfeas.race``, ``dfeas.soft_margin``, ``dfeas.hard_margin`` or
        ``dfeas.separation``; it may have been moved.
    X : array (n, m), data frame, or path, optional
        The data, if it was in memory or has been moved; it must be the same data.
    y : array (n,), or path, optional
        Likewise.
    mask : array (n,) of bool, or path, optional
        Likewise.
    kernel : callable, optional
        The Python function that was the kernel, if one was.
    method : object, or several, optional
        The methods of your own that the run had, if it had some.
    max_passes, time_limit, client, callback : optional
        As in ``dfeas.solve``.

    Returns
    -------
    Result, Race, OneVsRest, SoftMarginResult, SoftMarginClasses, HardMargin, Separation or Hull
        What the call would have returned. Limits count from the beginning of the run; those that are not given stay as they
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
    >>> X, y = [[5.0, 1.0], [1.0, 5.0], [-1.0, 0.9]], [1, 1, -1]
    >>> early = dfeas.solve(X, y, method="perceptron", max_passes=1, out="run")
    >>> print(early.verdict, early.stopped)
    undecided pass_limit
    >>> print(dfeas.resume("run", X, y, max_passes=100).verdict)
    feasible
    """
    path, given = place(run), Problem.of(X, y, mask=mask, kernel=kernel)
    terms_of = run_terms(max_passes, time_limit, None, choose_client(client, X), None, callback, again=True)
    with terms_of as (limits, resources, output):
        output = replace(output, out=run)
        answer, job, problem, limits, resources = go_on(path, given, limits, resources, output, method)
        if job.then in (HARD_MARGIN, WIDEST):
            from dfeas.analysis.hard_margin import conclude_margin

            return conclude_margin(answer, problem, limits, resources, output)
        if job.then == SEPARATED:
            from dfeas.analysis.separation import conclude_separation

            return conclude_separation(answer, problem, limits, resources, output)
        if job.data.point is not None:
            from dfeas.analysis.hull import conclude_hull

            return conclude_hull(answer, problem, limits, resources, output)
    whole: Result | Race | OneVsRest | SoftMarginResult | SoftMarginClasses = _with_path(answer, run)
    return whole


def _npy_file(dual: Any) -> Path | None:
    """The file of dual variables; None where there is none, or what will be refused."""
    return local(dual, "dual") if isinstance(dual, str | Path) and str(dual).endswith(".npy") else None


def _with_path(answer: A, out: str | Path | None) -> A:
    """The answer; beside that of a soft margin with several C a figure of their path is drawn."""
    from dfeas.answers.soft_margin import SoftMarginResult

    if out is None or not isinstance(answer, SoftMarginResult) or len({fit.C for fit in answer.fits}) < 2:
        return answer
    if find_spec("matplotlib") is not None:
        from dfeas.figures import draw_path

        draw_path(answer.to_json(), place(out) / PATH)
    return answer
