"""``dfeas.solve``: open, survey, run, check, write."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dfeas.certificate import Certificate, load
from dfeas.driver import Outcome, run
from dfeas.engine import Engine, LocalEngine
from dfeas.engine.local import processors
from dfeas.errors import BadInputError, CheckFailedError, UsageError
from dfeas.memory import parse_bytes, threads_that_fit
from dfeas.methods import METHODS, Facts
from dfeas.passes import Survey
from dfeas.result import CERTIFICATE, RESULT, TRACE, Result, load_result, versions
from dfeas.store import Dataset, Source, from_arrays, open_source
from dfeas.store.layout import fingerprint
from dfeas.store.writing import claim, refuse_unusable, release
from dfeas.termination import EPS_INFEASIBLE, FEASIBLE, INFEASIBLE, STOPPED, Goal, Limits
from dfeas.trace import Sink, Terminal, TraceFile
from dfeas.verify import Check, check

if TYPE_CHECKING:
    from distributed import Client

DEFAULT_MEMORY = "2GB"


def solve(
    X: Any,
    labels: Any = None,
    *,
    method: str = "auto",
    eps: float = 1e-3,
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
    method : a name of ``dfeas.METHODS``, or ``auto``.
    eps : a run may end with ``eps-infeasible``: no unit vector has a margin above eps on the unit points.
    intercept : add a feature equal to 1: any hyperplane, not only those through the origin.
    positive : the class that counts as +1, against all others.
    max_passes, time_limit : when to give up, in reads of the data and in seconds.
    memory : budget in bytes, per process, for blocks and answers.
    out : folder for result.json, certificate.npz and trace.jsonl.
    client : a Dask client, whose workers see the data under the same path; without one, threads of this process.
    progress : show a line of progress on stderr.

    Raises
    ------
    UsageError, BadInputError, CorruptDataError : see ``dfeas.errors``; their text is one line that says what to do.
    """
    began = time.monotonic()
    _check_options(method, eps, max_passes, time_limit)
    budget = parse_bytes(memory)
    source, dataset = _open(X, labels, positive, intercept)
    with ExitStack() as stack:
        engine, checking = _engines(stack, source, dataset, budget, client)
        folder = None if out is None else stack.enter_context(_run_folder(Path(out)))
        sinks: list[Sink] = []
        if folder is not None:
            sinks.append(TraceFile(folder / TRACE))
        if progress:
            sinks.append(Terminal(sys.stderr, eps))
        for sink in sinks:
            stack.callback(sink.close)
        result = _solve(began, engine, checking, source, dataset, method, Goal(eps), max_passes, time_limit, budget, sinks)
        if folder is not None:
            if result.evidence is not None:
                result = replace(result, certificate=str(folder / CERTIFICATE))
            result.save(folder)
        return result


def _check_options(method: str, eps: float, max_passes: int | None, time_limit: float | None) -> None:
    if method != "auto" and method not in METHODS:
        raise UsageError(f"unknown method {method}; expected auto, {', '.join(METHODS)}")
    if not 0 < eps < 1:
        raise UsageError(f"eps {eps}: expected a number between 0 and 1")
    if max_passes is not None and max_passes < 1:
        raise UsageError(f"max_passes {max_passes}: expected at least 1")
    if time_limit is not None and not time_limit > 0:
        raise UsageError(f"time_limit {time_limit}: expected a positive number of seconds")


def _open(X: Any, labels: Any, positive: str | None, intercept: bool) -> tuple[Source | None, Dataset]:
    if not isinstance(X, str | Path):
        return None, from_arrays(X, labels, positive=positive, intercept=intercept)
    if labels is not None and not isinstance(labels, str | Path):
        raise UsageError("labels of data given by path are given by path, too")
    source = Source(str(Path(X).absolute()), None if labels is None else str(Path(labels).absolute()), positive, intercept)
    return source, open_source(source)


@dataclass(frozen=True)
class _Checking:
    """The checker's own way to the data."""

    engine: Engine
    dataset: Dataset

    def __call__(self, certificate: Certificate) -> Check:
        return check(self.engine, self.dataset, certificate)


def _engines(
    stack: ExitStack, source: Source | None, dataset: Dataset, budget: int, client: Client | None
) -> tuple[Engine, _Checking]:
    """The engine of the passes, and the checker's, which reads through zarr."""
    plain = None if source is None else replace(source, direct=False)
    other = dataset if plain is None else open_source(plain)
    engine: Engine
    second: Engine
    if client is None:
        engine = LocalEngine(dataset, threads_that_fit(dataset, budget, processors()))
        second = LocalEngine(other, threads_that_fit(other, budget, processors()))
    else:
        if source is None or plain is None:
            raise UsageError("a cluster reads the data by path: ingest the arrays first, or leave the client out")
        from dfeas.engine.cluster import DaskEngine

        threads_that_fit(other, budget, 1)
        engine, second = DaskEngine(client, source, dataset), DaskEngine(client, plain, other)
    stack.callback(engine.close)
    stack.callback(second.close)
    return engine, _Checking(second, other)


@contextmanager
def _run_folder(path: Path) -> Iterator[Path]:
    lock = claim(path, RESULT)
    yield path.absolute()
    release(path, lock)


def _solve(
    began: float,
    engine: Engine,
    checking: _Checking,
    source: Source | None,
    dataset: Dataset,
    name: str,
    goal: Goal,
    max_passes: int | None,
    time_limit: float | None,
    budget: int,
    sinks: list[Sink],
) -> Result:
    m, n = engine.shape
    chosen = next(iter(METHODS)) if name == "auto" else name
    for sink in sinks:
        features = f"{dataset.m} features{' and an intercept' if dataset.intercept else ''}"
        sink.note("start", f"{dataset.where}: {n} points, {features}, {chosen}", n=n, m=dataset.m, method=chosen)
    zero, reads = survey(engine, dataset, checking.dataset)
    if zero is not None and not dataset.intercept:
        mark = dataset.fingerprint
        certificate = Certificate("gordan", mark, support=np.array([zero]), weights=np.ones(1))
        proved = checking(certificate)
        outcome = None
        reads += 1
    else:
        method = METHODS[chosen]()
        left = None if time_limit is None else max(1e-9, time_limit - (time.monotonic() - began))
        outcome = run(
            engine,
            method,
            method.init(Facts(m, n, budget // 4)),
            goal,
            Limits(max_passes, left),
            fingerprint=dataset.fingerprint,
            verify=checking,
            sinks=sinks,
        )
        certificate, proved = outcome.certificate, outcome.check  # type: ignore[assignment]
        reads += outcome.reads
    return _result(began, outcome, certificate, proved, source, dataset, chosen, goal.eps, reads)


def survey(engine: Engine, dataset: Dataset, other: Dataset) -> tuple[int | None, int]:
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
    dataset.survey = found
    dataset.fingerprint = other.fingerprint = mark
    return (found.first_zero[0] if found.zero else None), 1


def _result(
    began: float,
    outcome: Outcome | None,
    certificate: Certificate | None,
    proved: Check | None,
    source: Source | None,
    dataset: Dataset,
    method: str,
    eps: float,
    reads: int,
) -> Result:
    lower, upper = (-1.0, 0.0) if outcome is None else (outcome.record.margin_lower, outcome.record.margin_upper)
    stopped = "verdict" if outcome is None else outcome.decision.stopped
    verdict = "undecided"
    if proved is not None:
        verdict = proved.verdict
        lower = proved.margin_lower if verdict == FEASIBLE else lower
        upper = proved.margin_upper if verdict != FEASIBLE else upper
    return Result(
        verdict=verdict,
        stopped=stopped,
        proof="none" if proved is None else proved.proof,
        method=method,
        m=dataset.m,
        n=dataset.n,
        intercept=dataset.intercept,
        margin_lower=lower,
        margin_upper=upper,
        eps=eps,
        passes=0 if outcome is None else outcome.record.passes,
        reads=reads,
        iterations=0 if outcome is None else outcome.record.iterations,
        bytes_read=reads * dataset.bytes,
        seconds=time.monotonic() - began,
        certificate=None,
        fingerprint=dataset.fingerprint,
        versions=versions(),
        data=None
        if source is None
        else {
            "path": source.path,
            "labels": source.labels,
            "positive": source.positive,
            "intercept": source.intercept,
        },
        detail=STOPPED[stopped] if proved is None else proved.message,
        evidence=certificate,
    )


def verify_run(run_folder: Path, memory: str | int = DEFAULT_MEMORY) -> Check:
    """Check the certificate of a finished run against its data, and the verdict against both.

    Raises CheckFailedError when the certificate does not prove the verdict.
    """
    values = load_result(run_folder)
    data = values["data"]
    if not isinstance(data, dict):
        raise BadInputError(f"{run_folder}: the data was in memory; use dfeas verify DATA {run_folder / CERTIFICATE}")
    if values["verdict"] not in (FEASIBLE, INFEASIBLE, EPS_INFEASIBLE):
        raise CheckFailedError(f"{run_folder}: the run ended {values['verdict']} ({values.get('stopped')}), nothing to check")
    proved = verify_certificate(
        data["path"],
        run_folder / CERTIFICATE,
        labels=data["labels"],
        positive=data["positive"],
        intercept=data["intercept"],
        memory=memory,
    )
    claimed, eps = values["verdict"], float(values["eps"])
    if claimed == EPS_INFEASIBLE and proved.verdict == EPS_INFEASIBLE:
        if proved.margin_upper > eps:
            raise CheckFailedError(f"{run_folder}: |Ax| <= {proved.margin_upper:.6g} is proved, the run claims {eps:g}")
    elif claimed != proved.verdict and not (claimed == EPS_INFEASIBLE and proved.verdict == INFEASIBLE):
        raise CheckFailedError(f"{run_folder}: the certificate proves {proved.verdict}, the run claims {claimed}")
    return proved


def verify_certificate(
    path: str | Path,
    certificate: str | Path,
    *,
    labels: str | Path | None = None,
    positive: str | None = None,
    intercept: bool = False,
    memory: str | int = DEFAULT_MEMORY,
) -> Check:
    """Check a certificate file against data by path, in one read. Raises CheckFailedError when it proves nothing."""
    evidence = load(Path(certificate))
    source = Source(str(path), None if labels is None else str(labels), positive, intercept, direct=False)
    dataset = open_source(source)
    engine = LocalEngine(dataset, threads_that_fit(dataset, parse_bytes(memory), processors()))
    try:
        return check(engine, dataset, evidence)
    finally:
        engine.close()
