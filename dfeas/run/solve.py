"""``dfeas.solve``: open, survey, run, check, write."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dfeas.data.storage.places import local
from dfeas.engine.memory import DEFAULT_MEMORY
from dfeas.errors import UsageError
from dfeas.geometry.cones.choice import CONE_METHODS, choose_cone_method, require_plain
from dfeas.geometry.kernel.kernel import Function, Kernel
from dfeas.methods.protocol import Sparse
from dfeas.problem import choose, facts_of, known, request
from dfeas.run.checkpoint.job import EVERY, Checkpoint, Job, keeping, where
from dfeas.run.cost.kernel import project_kernel
from dfeas.run.cost.projection import PROBED_SHARE, Projection, probe, probed, project, within_memory
from dfeas.run.driver import never
from dfeas.run.exact_verdict import exact_outcome
from dfeas.run.execute import lanes_abreast, ran
from dfeas.run.kernel_choice import AskedKernel, asked_kernel, choose_kernel_method, kernelled
from dfeas.run.progress import RunOptions, report_cost, report_start, run_options, run_sinks
from dfeas.run.recovery import CONFLICTING, conflicts
from dfeas.run.results import Result, versions
from dfeas.run.session import Setting, open_data, require_free, run_folder, set_up
from dfeas.run.task import Outcome
from dfeas.run.termination import FEASIBLE, RESUMABLE, UNDECIDED, ProgressRecord, Proof, Record, Stop, Verdict, ending
from dfeas.run.transform import asked_transform, with_transform
from dfeas.verify.evidence import Check
from dfeas.verify.separation import SEPARATED

if TYPE_CHECKING:
    from distributed import Client


def solve(
    X: Any,
    labels: Any = None,
    *,
    method: str = "auto",
    eps: float = 1e-3,
    margin_tolerance: float | None = None,
    intercept: bool = False,
    positive: str | None = None,
    one_vs_rest: bool = False,
    also: Sequence[str | Path] = (),
    mask: Any = None,
    scale: str | None = None,
    center: bool = False,
    normalize: bool = True,
    point: Sequence[float] | None = None,
    kernel: str | Function | None = None,
    gamma: float | None = None,
    degree: int | None = None,
    coef0: float | None = None,
    max_passes: int | None = None,
    time_limit: float | None = None,
    memory: str | int = DEFAULT_MEMORY,
    out: str | Path | None = None,
    cache_dir: str | Path | None = None,
    scratch: str | Path | None = None,
    checkpoint_every: float = EVERY,
    client: Client | None = None,
    progress: bool = False,
    callback: Callable[[ProgressRecord], object] | None = None,
    stop: Callable[[], bool] = never,
    then: str = "",
) -> Result | Any:  # a OneVsRest when that is asked
    """Decide whether a hyperplane through the origin separates labelled points, with checked evidence.

    Parameters
    ----------
    X : path of a dfeas dataset or of a zarr array, or an array (n, m) of NumPy, zarr, HDF5 or Dask; row j is point j. Or cones:
        what ``dfeas.from_scs`` returns, or a dataset that ``dfeas.ingest_scs`` wrote, without labels.
    labels : (n,) array of two values, or the path of one; None when the dataset has them, or when all are +1.
    method : a name of ``dfeas.METHODS``, or ``auto``: the working set where it fits the memory, otherwise mirror prox. With a
        kernel a name of ``dfeas.KERNEL_METHODS``.
    eps : a run may end with ``eps-infeasible``: no unit vector has a margin above eps on the unit points.
    margin_tolerance : go on past the first separator until margin_lower >= (1 - margin_tolerance) margin_upper: the hyperplane
        of maximum margin (hard-margin SVM) up to this share.
    intercept : add a feature equal to 1: any hyperplane, not only those through the origin.
    positive : the class that counts as +1, against all others.
    one_vs_rest : solve each class against the rest, on the same reads; limits of passes hold for each. Memory is shared, and
        ``out`` gets a run folder for each class. Returns a ``OneVsRest``. Not with ``positive`` or ``point``.
    also : paths of datasets whose points follow those of X: all of them as one.
    mask : (n,) booleans, or the path of a .npy file of them: only these points count.
    scale : multiply each feature by one over its standard deviation, ``std``, or over its greatest magnitude, ``maxabs``, after
        centring. Nothing is written. It changes margins and the work, not which points can be separated.
    center : subtract the mean of each feature. With an intercept that changes nothing but margins and the work; without one the
        hyperplane goes through the mean of the points. Not for sparse points.
    normalize : columns are points over their own length; False: over the length of the longest point, so that margins are
        distances of the points from the hyperplane, as a share of that length.
    point : (m,) ask about the points x_j - point, without labels: see ``dfeas.in_hull``, which says what the answer means.
    kernel : ask about the points in the space of a kernel: a name of ``dfeas.KERNELS``, or a function of two blocks of points,
        (b, m) and (c, m), that returns (b, c), symmetric and positive definite. It is normalised, K(x, x) = 1.
    gamma, degree, coef0 : of the kernel. Without a gamma it is one over the median (squared) distance of a sample; a polynomial
        has a degree of 3 and a coef0 of 1.
    max_passes, time_limit : when to give up, in reads of the data and in seconds.
    memory : budget in bytes, per process, for blocks, answers and columns in memory.
    out : folder for result.json, certificate.npz and trace.jsonl, and for checkpoints, from which ``dfeas.resume`` goes on.
    cache_dir : folder of each machine that keeps what was read of object stores, for later runs, too; nothing is ever removed.
    scratch : folder of each machine for what methods with a kernel compute again and again and memory does not hold; removed at
        the end. Workers use the temporary-directory of Dask's configuration, where there is one and no other folder is given.
    checkpoint_every : seconds between checkpoints, at least; they never take more than a twentieth of the time.
    client : a Dask client, whose workers see the data under the same path; without one, threads of this process.
    progress : show a line of progress on stderr.
    callback : called with the record of each read, of each class; when it returns True or raises StopIteration, the run ends as
        ``interrupted``, unless that read decided it.
    stop : asked between reads; when it returns True the run ends as ``interrupted``, with a checkpoint.
    then : what the result is for, as ``dfeas.hard_margin`` and ``dfeas.separation`` say it: ``dfeas.resume`` goes on to that.

    Raises
    ------
    UsageError, BadInputError, CorruptDataError : see ``dfeas.errors``; their text is one line that says what to do.
    """
    if kernel is None:
        known(method, ("auto", *CONE_METHODS))
    function = asked_kernel(kernel, gamma, degree, coef0, scratch)
    seen_as = asked_transform(scale, center, normalize)
    if seen_as and (kernel is not None or point is not None):
        raise UsageError("scale, center and normalize are for the points themselves: leave them out with a kernel or a point")
    if seen_as and out is not None:  # its numbers take reads
        require_free(local(out, "--out"))
    if one_vs_rest:
        from dfeas.run.one_vs_rest import one_vs_rest as solve_classes

        if (positive, point) != (None, None):
            raise UsageError("one_vs_rest asks about every class: leave out positive and point")
        every = request(eps, margin_tolerance, max_passes, time_limit, memory)
        how = run_options(checkpoint_every, progress, stop, callback)
        opened = open_data(X, labels, None, intercept, None, True, also, mask, cache_dir)
        opened = with_transform(opened, seen_as, every.memory, client, progress)
        space = None if kernel is None else AskedKernel(kernel, gamma, degree, coef0)
        return solve_classes(opened, every, how, method=method, out=out, client=client, kernel=space, scratch=scratch)
    asked = request(eps, margin_tolerance, max_passes, time_limit, memory)
    data = open_data(X, labels, positive, intercept, point, also=also, mask=mask, cache_dir=cache_dir, cones=True)
    require_plain(data[1], kernel=kernel, transform=seen_as)
    data = with_transform(data, seen_as, asked.memory, client, progress)
    with ExitStack() as stack:
        setting = set_up(stack, data, asked.memory, client, out, function, scratch)
        text = ""
        if setting.dataset.cones is not None:
            name, why = choose_cone_method(method, setting.dataset, asked.memory)
        elif kernel is None:
            facts = facts_of(setting.dataset, asked.memory)
            name, why = choose(known(method, ("auto",)), facts)
            asked, said = within_memory(asked, (name,), facts)
            why += said
        else:
            facts = facts_of(setting.dataset, asked.memory)
            name, why = choose_kernel_method(method, facts, setting.threads * max(1, setting.workers))
            found = kernelled(setting.engine, setting.dataset, AskedKernel(kernel, gamma, degree, coef0))
            text, why = found.kernel.to_text(), f"{why}; {found.why}"
        folder = None if out is None else stack.enter_context(run_folder(local(out, "--out")))
        seen = None if point is None else tuple(float(v) for v in point)
        job = Job(
            asked,
            (name,),
            (why,),
            race=False,
            to_the_end=False,
            positive=positive,
            intercept=intercept,
            point=seen,
            kernel=text,
            then=then,
            **where(setting),
        )
        return solved(setting, job, folder, run_options(checkpoint_every, progress, stop, callback))


def solved(setting: Setting, job: Job, folder: Path | None, how: RunOptions, earlier: Checkpoint | None = None) -> Result:
    """Carry out the job of a solve, from its beginning or from a checkpoint."""
    (name,), (why,) = job.methods, job.whys
    with ExitStack() as stack:
        sinks = run_sinks(stack, setting, job, folder, how, earlier)
        keeper = stack.enter_context(keeping(setting, job, {name: sinks}, folder, how.checkpoint_every, earlier))
        report_start(sinks, setting.dataset, name, why, earlier)
        report_cost(sinks, projected(setting, job))
        found = ran(setting, job, {name: sinks}, keeper, earlier, how.stop)
        outcome = found.outcomes[name]
        if not (job.kernel or setting.dataset.cones or setting.dataset.transform or job.then == SEPARATED):
            outcome = exact_outcome(setting, job.asked, outcome, how.stop)
        result = result_of(setting, job, outcome, why, found.survey_reads + outcome.reads)
        result = result if folder is None else result.save(folder)
        keeper.finished = result.stopped not in RESUMABLE and not job.then
        return result


def projected(setting: Setting, job: Job) -> Projection:
    """What the run will take. The speed is measured on large data, whose first pass is long."""
    dataset, asked = setting.dataset, job.asked
    sizes = {"workers": setting.workers, "threads": setting.threads}
    count = lanes_abreast(dataset, job) if job.classes else 1
    if job.kernel:
        kernel = Kernel.from_text(job.kernel, setting.checking.function)
        sizes["classes"] = count
        return project_kernel(dataset, kernel, job.methods, asked.memory, **sizes)
    methods = tuple(name.replace("-euclidean", "") for name in job.methods)  # it takes what mirror prox takes
    side_by_side = methods * count
    found = project(dataset, side_by_side, asked.memory, asked.eps, **sizes, max_passes=asked.max_passes)
    blocks = probed(dataset, setting.engine.parallel)
    if dataset.header is None or len(blocks) > PROBED_SHARE * dataset.blocks:
        return found
    return replace(found, seconds=probe(setting.engine, dataset, blocks))


def result_of(setting: Setting, job: Job, outcome: Outcome, why: str, reads: float) -> Result:
    """What is returned of an outcome; ``reads`` in all."""
    dataset, record, proved = setting.dataset, outcome.record, outcome.check
    asked = job.asked
    lower, upper = bracket(record, proved)
    named = []
    if (
        proved is not None
        and proved.verdict != FEASIBLE
        and proved.margin_upper <= CONFLICTING
        and dataset.cones is None
        and outcome.certificate is not None
    ):
        named = conflicts(dataset, outcome.certificate, outcome.evidence)
    return Result(
        verdict=UNDECIDED if proved is None else Verdict(proved.verdict),
        stopped=Stop(outcome.decision.stopped),
        proof=Proof.NONE if proved is None else Proof(proved.proof),
        method=record.method,
        why=why,
        m=dataset.m,
        n=dataset.n,
        intercept=dataset.intercept,
        margin_lower=lower,
        margin_upper=upper,
        eps=asked.eps,
        margin_tolerance=asked.margin_tolerance,
        passes=record.passes,
        reads=reads,
        iterations=record.iterations,
        bytes_read=round(reads * dataset.stored_bytes),
        seconds=time.monotonic() - asked.began if outcome.ended is None else outcome.ended,
        certificate=None,
        fingerprint=dataset.fingerprint,
        versions=versions(),
        data=setting.place,
        conflicts=named,
        detail=ending(outcome.decision, record) if proved is None else proved.message,
        kernel=json.loads(job.kernel) if job.kernel else None,
        evidence=outcome.certificate,
        weighed=_weighed(outcome) if proved is not None and proved.verdict == FEASIBLE else None,
    )


def bracket(record: Record, proved: Check | None) -> tuple[float, float]:
    """Both ends as they are reported. What is not proved is as good as the arithmetic of the method: it may be on the wrong
    side of what is proved by rounding, and tells nothing where it is not finite.
    """
    lower = record.margin_lower if math.isfinite(record.margin_lower) else -1.0
    upper = record.margin_upper if math.isfinite(record.margin_upper) else 1.0
    if proved is None:
        return min(lower, upper), max(lower, upper)
    if proved.verdict == FEASIBLE:
        return proved.margin_lower, max(proved.margin_lower, min(upper, proved.margin_upper))
    return max(proved.margin_lower, min(lower, proved.margin_upper)), proved.margin_upper


def _weighed(outcome: Outcome) -> Sparse | None:
    """Weights of points with |Ax| = margin_upper, if the method has few of them."""
    build = outcome.evidence.gordan
    found = None if build is None else build()
    return found if isinstance(found, Sparse) else None
