"""``dfeas verify``: a certificate, or a whole run, against the stored data."""

from __future__ import annotations

from pathlib import Path

from dfeas.blas import processors
from dfeas.certificate import load
from dfeas.engine import LocalEngine
from dfeas.errors import BadInputError, CheckFailedError
from dfeas.memory import DEFAULT_MEMORY, parse_bytes, threads_that_fit
from dfeas.result import CERTIFICATE, load_result
from dfeas.store import Source, open_source
from dfeas.termination import EPS_INFEASIBLE, FEASIBLE, INFEASIBLE
from dfeas.verify import Check, check


def verify_run(run: str | Path, memory: str | int = DEFAULT_MEMORY) -> Check:
    """Check the certificate of a finished run against its data, and the verdict against both.

    Raises CheckFailedError when the certificate does not prove the verdict.
    """
    run_folder = Path(run)
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
