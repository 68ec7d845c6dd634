"""The verbs that begin a run, or go on with one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from dfeas.analysis.hard_margin import HARD_MARGIN, HardMargin, widest
from dfeas.analysis.separation import Separation, separated
from dfeas.engine.client import takes_client
from dfeas.problem import Goal, Kernel, Limits, Objective, Output, Problem, Resources, View, takes
from dfeas.run.result_sets import OneVsRest, Race, SoftMarginClasses
from dfeas.run.results import Result
from dfeas.run.resume import go_on
from dfeas.run.soft_margin.result import SoftMarginResult
from dfeas.run.soft_margin.soft_margin import minimise
from dfeas.run.solve import decide
from dfeas.verify.separation import SEPARATED

A = TypeVar("A")

PATH = "path.svg"
"""In the folder of a soft margin with several C, where matplotlib is installed."""


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
    X : path of a dfeas dataset or of a zarr array, or an array (n, m) of NumPy, zarr, HDF5 or Dask; row j is point j. Or cones:
        what ``dfeas.from_scs`` returns, or a dataset that ``dfeas.ingest_scs`` wrote, without labels. Or a ``dfeas.Problem``.
    labels : (n,) array of two values, or the path of one; None when the dataset has them, or when all are +1.
    method : a name of ``dfeas.METHODS``, or ``auto``: the working set where it fits the memory, otherwise mirror prox. With a
        kernel a name of ``dfeas.KERNEL_METHODS``.
    """
    return decide(problem, (method,), goal, limits, resources, output)


@takes(View, Kernel, Goal, Limits, Resources, Output, without=("one_vs_rest", "point"))
@takes_client
def race(
    problem: Problem,
    *,
    methods: Sequence[str],
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
    methods : at least two names of ``dfeas.METHODS``, or with a kernel of ``dfeas.KERNEL_METHODS``, each once.
    to_the_end : go on until each has a verdict of its own or reaches a limit; otherwise the first verdict ends all.
    """
    answer: Race = decide(problem, tuple(methods), goal, limits, resources, output, race=True, to_the_end=to_the_end)
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
