"""``dfeas.solve``: open, survey, run, check, write."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dfeas.certificate import Certificate
from dfeas.conflicts import conflicts
from dfeas.driver import run
from dfeas.lane import Outcome, without_a_pass
from dfeas.memory import DEFAULT_MEMORY
from dfeas.methods import METHODS
from dfeas.request import Request, choose, facts_of, known, request
from dfeas.result import CERTIFICATE, TRACE, Result, versions
from dfeas.setting import Setting, open_data, run_folder, set_up, survey
from dfeas.store import Dataset
from dfeas.termination import FEASIBLE, UNDECIDED, Goal, Limits, ending
from dfeas.trace import Sink, Terminal, TraceFile

if TYPE_CHECKING:
    from distributed import Client

CONFLICTING = 1e-10
"""|Ax| up to this, as the checker bounds it, is rounding: points that carry x conflict. A larger one accuses nobody."""


def solve(
    X: Any,
    labels: Any = None,
    *,
    method: str = "auto",
    eps: float = 1e-3,
    margin_tolerance: float | None = None,
    intercept: bool = False,
    positive: str | None = None,
    max_passes: int | None = None,
    time_limit: float | None = None,
    memory: str | int = DEFAULT_MEMORY,
    out: str | Path | None = None,
    client: Client | None = None,
    progress: bool = False,
) -> Result:
    """Decide whether a hyperplane through the origin separates labelled points, with checked evidence.

    Parameters
    ----------
    X : path of a dfeas dataset or of a zarr array, or an array (n, m) of NumPy, zarr, HDF5 or Dask; row j is point j.
    labels : (n,) array of two values, or the path of one; None when the dataset has them, or when all are +1.
    method : a name of ``dfeas.METHODS``, or ``auto``: the working set where it fits the memory, otherwise mirror prox.
    eps : a run may end with ``eps-infeasible``: no unit vector has a margin above eps on the unit points.
    margin_tolerance : go on past the first separator until margin_lower >= (1 - margin_tolerance) margin_upper: the hyperplane
        of maximum margin (hard-margin SVM) up to this share.
    intercept : add a feature equal to 1: any hyperplane, not only those through the origin.
    positive : the class that counts as +1, against all others.
    max_passes, time_limit : when to give up, in reads of the data and in seconds.
    memory : budget in bytes, per process, for blocks, answers and columns in memory.
    out : folder for result.json, certificate.npz and trace.jsonl.
    client : a Dask client, whose workers see the data under the same path; without one, threads of this process.
    progress : show a line of progress on stderr.

    Raises
    ------
    UsageError, BadInputError, CorruptDataError : see ``dfeas.errors``; their text is one line that says what to do.
    """
    known(method, ("auto",))
    asked = request(eps, margin_tolerance, max_passes, time_limit, memory)
    data = open_data(X, labels, positive, intercept)
    with ExitStack() as stack:
        setting = set_up(stack, data, asked.memory, client, out)
        folder = None if out is None else stack.enter_context(run_folder(Path(out)))
        stack.callback(setting.scratch.remove)
        sinks: list[Sink] = []
        if folder is not None:
            sinks.append(TraceFile(folder / TRACE))
        if progress and sys.stderr is not None:
            sinks.append(Terminal(sys.stderr, eps))
        for sink in sinks:
            stack.callback(sink.close)
        return saved(_solve(setting, method, asked, sinks), folder)


def saved(result: Result, folder: Path | None) -> Result:
    """The result, written to the folder of its run."""
    if folder is None:
        return result
    if result.evidence is not None:
        result = replace(result, certificate=str(folder / CERTIFICATE))
    result.save(folder)
    return result


def _solve(setting: Setting, method: str, asked: Request, sinks: list[Sink]) -> Result:
    dataset, engine, checking = setting.dataset, setting.engine, setting.checking
    name, why = choose(method, facts_of(dataset, asked.memory))
    announce(sinks, dataset, name, why)
    found = survey(setting)
    if found.zero is not None and not dataset.intercept:
        outcome = zero_point(setting, name, found.zero)
    else:
        made = METHODS[name]()
        outcome = run(
            engine,
            made,
            made.init(facts_of(dataset, asked.memory, asked.margin_tolerance, found.radius)),
            Goal(asked.eps, asked.margin_tolerance),
            Limits(asked.max_passes, asked.seconds_left),
            fingerprint=dataset.fingerprint,
            verify=checking,
            sinks=sinks,
        )
    return result_of(setting, asked, outcome, why, found.reads + outcome.reads)


def announce(sinks: Sequence[Sink], dataset: Dataset, method: str, why: str) -> None:
    """Say what begins."""
    features = f"{dataset.m} features{' and an intercept' if dataset.intercept else ''}"
    for sink in sinks:
        text = f"{dataset.where}: {dataset.n} points, {features}, {method}"
        sink.note("start", text, n=dataset.n, m=dataset.m, method=method)
        sink.note("method", f"{method}: {why}", method=method, why=why)


def zero_point(setting: Setting, method: str, zero: int) -> Outcome:
    """A zero point is a Gordan certificate by itself."""
    certificate = Certificate("gordan", setting.dataset.fingerprint, support=np.array([zero]), weights=np.ones(1))
    return without_a_pass(method, certificate, setting.checking(certificate))


def result_of(setting: Setting, asked: Request, outcome: Outcome, why: str, reads: float) -> Result:
    """What is returned of an outcome; ``reads`` in all."""
    dataset, source, record, proved = setting.dataset, setting.source, outcome.record, outcome.check
    lower, upper = record.margin_lower, record.margin_upper
    if proved is not None:
        lower = proved.margin_lower if proved.verdict == FEASIBLE else lower
        upper = upper if proved.verdict == FEASIBLE else proved.margin_upper
    named = []
    if (
        proved is not None
        and proved.verdict != FEASIBLE
        and proved.margin_upper <= CONFLICTING
        and outcome.certificate is not None
    ):
        named = conflicts(dataset, outcome.certificate, outcome.evidence)
    place = None
    if source is not None:
        place = {name: getattr(source, name) for name in ("path", "labels", "positive", "intercept")}
    return Result(
        verdict=UNDECIDED if proved is None else proved.verdict,
        stopped=outcome.decision.stopped,
        proof="none" if proved is None else proved.proof,
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
        bytes_read=round(reads * dataset.bytes),
        seconds=(outcome.ended or time.monotonic()) - asked.began,
        certificate=None,
        fingerprint=dataset.fingerprint,
        versions=versions(),
        data=place,
        conflicts=named,
        detail=ending(outcome.decision, record) if proved is None else proved.message,
        evidence=outcome.certificate,
    )
