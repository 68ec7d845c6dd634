"""``dfeas.solve``: open, survey, run, check, write."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dfeas.blas import processors
from dfeas.certificate import Certificate
from dfeas.conflicts import conflicts
from dfeas.driver import Outcome, run, without_a_pass
from dfeas.engine import Engine, LocalEngine
from dfeas.errors import UsageError
from dfeas.memory import DEFAULT_MEMORY, parse_bytes, threads_that_fit
from dfeas.methods import METHODS, Facts, working_set_size
from dfeas.passes import Survey
from dfeas.result import CERTIFICATE, RESULT, TRACE, Result, versions
from dfeas.store import Dataset, Source, from_arrays, open_source
from dfeas.store.layout import fingerprint
from dfeas.store.writing import claim, refuse_unusable, release
from dfeas.termination import FEASIBLE, UNDECIDED, Goal, Limits, ending
from dfeas.trace import Sink, Terminal, TraceFile
from dfeas.verify import Check, check

if TYPE_CHECKING:
    from distributed import Client

LEAST_EPS = 1e-12
"""The checker's own rounding bound must stay below eps."""

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
    began = time.monotonic()
    _check_options(method, eps, margin_tolerance, max_passes, time_limit)
    request = _Request(method, eps, margin_tolerance, max_passes, time_limit, parse_bytes(memory), began)
    source, dataset = open_data(X, labels, positive, intercept)
    with ExitStack() as stack:
        setting = _set_up(stack, source, dataset, request.memory, client)
        folder = None if out is None else stack.enter_context(_run_folder(Path(out)))
        sinks: list[Sink] = []
        if folder is not None:
            sinks.append(TraceFile(folder / TRACE))
        if progress and sys.stderr is not None:
            sinks.append(Terminal(sys.stderr, eps))
        for sink in sinks:
            stack.callback(sink.close)
        result = _solve(setting, request, sinks)
        if folder is not None:
            if result.evidence is not None:
                result = replace(result, certificate=str(folder / CERTIFICATE))
            result.save(folder)
        return result


@dataclass(frozen=True)
class _Request:
    """What was asked for."""

    method: str
    eps: float
    margin_tolerance: float | None
    max_passes: int | None
    time_limit: float | None  # seconds
    memory: int  # bytes
    began: float  # monotonic seconds


@dataclass(frozen=True)
class _Checking:
    """The checker's own way to the data."""

    engine: Engine
    dataset: Dataset

    def __call__(self, certificate: Certificate) -> Check:
        return check(self.engine, self.dataset, certificate)


@dataclass(frozen=True)
class _Setting:
    """The data, and who reads it."""

    source: Source | None  # None for arrays in memory
    dataset: Dataset
    engine: Engine
    checking: _Checking


def _check_options(
    method: str, eps: float, margin_tolerance: float | None, max_passes: int | None, time_limit: float | None
) -> None:
    if not isinstance(method, str) or (method != "auto" and method not in METHODS):
        raise UsageError(f"unknown method {method}; expected auto, {', '.join(METHODS)}")
    numbers = {"eps": eps, "margin_tolerance": margin_tolerance, "max_passes": max_passes, "time_limit": time_limit}
    for name, value in numbers.items():
        if value is not None and not isinstance(value, int | float | np.number):
            raise UsageError(f"{name} {value!r}: expected a number")
    if not LEAST_EPS <= eps < 1:
        raise UsageError(f"eps {eps}: expected a number from {LEAST_EPS:g}, which float64 can prove, to below 1")
    if margin_tolerance is not None and not 1e-6 <= margin_tolerance < 1:
        raise UsageError(f"margin_tolerance {margin_tolerance}: expected a number from 1e-6 to below 1")
    if max_passes is not None and max_passes < 1:
        raise UsageError(f"max_passes {max_passes}: expected at least 1")
    if time_limit is not None and not time_limit > 0:
        raise UsageError(f"time_limit {time_limit}: expected a positive number of seconds")


def open_data(X: Any, labels: Any, positive: str | None, intercept: bool) -> tuple[Source | None, Dataset]:
    """Data by path or in memory, without reading points; the source is None for arrays."""
    if not isinstance(X, str | Path):
        return None, from_arrays(X, labels, positive=positive, intercept=intercept)
    if labels is not None and not isinstance(labels, str | Path):
        raise UsageError("labels of data given by path are given by path, too")
    source = Source(str(Path(X).absolute()), None if labels is None else str(Path(labels).absolute()), positive, intercept)
    return source, open_source(source)


def _set_up(stack: ExitStack, source: Source | None, dataset: Dataset, memory: int, client: Client | None) -> _Setting:
    """The engine of the passes, and the checker's, which reads through zarr."""
    plain = None if source is None else replace(source, direct=False)
    other = dataset if plain is None else open_source(plain)
    engine: Engine
    second: Engine
    if client is None:
        engine = LocalEngine(dataset, threads_that_fit(dataset, memory, processors()))
        second = LocalEngine(other, threads_that_fit(other, memory, processors()))
    else:
        if source is None or plain is None:
            raise UsageError("a cluster reads the data by path: ingest the arrays first, or leave the client out")
        from dfeas.engine.cluster import DaskEngine

        threads_that_fit(other, memory, 1)
        engine, second = DaskEngine(client, source, dataset), DaskEngine(client, plain, other)
    stack.callback(engine.close)
    stack.callback(second.close)
    return _Setting(source, dataset, engine, _Checking(second, other))


@contextmanager
def _run_folder(path: Path) -> Iterator[Path]:
    lock = claim(path, RESULT)
    try:
        yield path.absolute()
    except BaseException:
        os.close(lock)  # the lock file stays: the next run takes the folder over
        raise
    release(path, lock)


def _solve(setting: _Setting, request: _Request, sinks: list[Sink]) -> Result:
    dataset, engine, checking = setting.dataset, setting.engine, setting.checking
    facts = facts_of(dataset, request.memory, request.margin_tolerance)
    name, why = choose(request.method, facts)
    features = f"{dataset.m} features{' and an intercept' if dataset.intercept else ''}"
    for sink in sinks:
        sink.note("start", f"{dataset.where}: {dataset.n} points, {features}, {name}", n=dataset.n, m=dataset.m, method=name)
        sink.note("method", f"{name}: {why}", method=name, why=why)
    zero, reads = survey(engine, dataset, checking.dataset)
    if zero is not None and not dataset.intercept:
        certificate = Certificate("gordan", dataset.fingerprint, support=np.array([zero]), weights=np.ones(1))
        outcome = without_a_pass(name, certificate, checking(certificate))
    else:
        method = METHODS[name]()
        limit = request.time_limit
        left = None if limit is None else max(1e-9, limit - (time.monotonic() - request.began))
        outcome = run(
            engine,
            method,
            method.init(facts),
            Goal(request.eps, request.margin_tolerance),
            Limits(request.max_passes, left),
            fingerprint=dataset.fingerprint,
            verify=checking,
            sinks=sinks,
        )
    return _result(setting, request, outcome, why, reads + outcome.reads)


def facts_of(dataset: Dataset, memory: int, tolerance: float | None = None) -> Facts:
    """What a method may know: a quarter of the budget is for what it keeps, as much for answers, the rest for copies."""
    return Facts(dataset.dimension, dataset.n, memory // 4, dataset.blocks, dataset.dtype.itemsize, tolerance)


def choose(method: str, facts: Facts) -> tuple[str, str]:
    """The method, and why. Raises UsageError when it cannot work within the memory."""
    need = f"{working_set_size.least_memory(facts) * 4 / 1e6:.0f} MB of memory"
    if method == "auto":
        if working_set_size.fits(facts):
            return "working-set", "chosen for dense data: a few reads, where other methods need hundreds"
        return "mirror-prox", f"chosen because a working set would need {need}"
    if method.startswith("working-set") and not working_set_size.fits(facts):
        raise UsageError(f"{method} needs {need} for this data, or use mirror-prox, which keeps no columns")
    return method, "asked for"


def survey(engine: Engine, dataset: Dataset, other: Dataset) -> tuple[int | None, float]:
    """The first zero point, if any, and the reads that it took to know. A foreign array is read once for it.

    Raises BadInputError for non-finite entries and for norms that cannot be squared.
    """
    if dataset.header is not None:
        header = dataset.header
        return (header.first_zero[0] if header.zero else None), 0
    found = engine.run(Survey())
    refuse_unusable(found, dataset.where)
    checksums = np.array([c[1:] for c in found.checksums], np.uint32)
    mark = fingerprint(dataset.n, dataset.m, dataset.dtype.name, dataset.block_rows, checksums)
    dataset.fingerprint = other.fingerprint = mark
    return (found.first_zero[0] if found.zero else None), 1


def _result(setting: _Setting, request: _Request, outcome: Outcome, why: str, reads: float) -> Result:
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
        eps=request.eps,
        margin_tolerance=request.margin_tolerance,
        passes=record.passes,
        reads=reads,
        iterations=record.iterations,
        bytes_read=round(reads * dataset.bytes),
        seconds=time.monotonic() - request.began,
        certificate=None,
        fingerprint=dataset.fingerprint,
        versions=versions(),
        data=place,
        conflicts=named,
        detail=ending(outcome.decision, record) if proved is None else proved.message,
        evidence=outcome.certificate,
    )
