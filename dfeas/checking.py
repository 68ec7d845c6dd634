"""``dfeas verify``: a certificate, or a whole run, against the stored data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dfeas.blas import processors
from dfeas.certificate import load
from dfeas.engine import LocalEngine
from dfeas.errors import BadInputError, CheckFailedError
from dfeas.kernels.kernel import Function
from dfeas.memory import DEFAULT_MEMORY, parse_bytes, threads_that_fit
from dfeas.result import CERTIFICATE, RESULT, load_result
from dfeas.store import Source, for_checker, open_source, source_of
from dfeas.termination import EPS_INFEASIBLE, FEASIBLE, INFEASIBLE
from dfeas.verify import Check
from dfeas.verify_kernel import check_any

SAME = 1e-9
"""Relative difference of a bound between machines, whose sums run in other orders."""


def verify_run(run: str | Path, memory: str | int = DEFAULT_MEMORY, kernel: Function | None = None) -> Check:
    """Check the certificate of a finished run against its data, and the verdict against both.

    A ``kernel`` that is a function of Python is not kept in a file, and is needed again.

    Raises CheckFailedError when the certificate does not prove the verdict.
    """
    run_folder = Path(run)
    values = load_result(run_folder)
    data = values["data"]
    if not isinstance(data, dict):
        raise BadInputError(f"{run_folder}: the data was in memory; use dfeas verify DATA {run_folder / CERTIFICATE}")
    if values["verdict"] not in (FEASIBLE, INFEASIBLE, EPS_INFEASIBLE):
        raise CheckFailedError(f"{run_folder}: the run ended {values['verdict']} ({values.get('stopped')}), nothing to check")
    proved, facts = _checked(source_of(data), run_folder / CERTIFICATE, memory, kernel)
    claimed, eps = values["verdict"], float(values["eps"])
    if claimed == EPS_INFEASIBLE and proved.verdict == EPS_INFEASIBLE:
        if proved.margin_upper > eps:
            raise CheckFailedError(f"{run_folder}: |Ax| <= {proved.margin_upper:.6g} is proved, the run claims {eps:g}")
    elif claimed != proved.verdict and not (claimed == EPS_INFEASIBLE and proved.verdict == INFEASIBLE):
        raise CheckFailedError(f"{run_folder}: the certificate proves {proved.verdict}, the run claims {claimed}")
    _check_claims(run_folder / RESULT, values, proved, facts)
    return proved


def _check_claims(where: Path, values: dict[str, Any], proved: Check, facts: dict[str, Any]) -> None:
    """What else the run says of the data and of the proved end of its bracket."""
    for name, true in facts.items():
        if values.get(name) != true:
            raise CheckFailedError(f"{where}: {name} is {values.get(name)!r}, that of the data is {true!r}")
    name = "margin_lower" if proved.verdict == FEASIBLE else "margin_upper"
    end, known = values.get(name), getattr(proved, name)
    if not isinstance(end, int | float) or not abs(end - known) <= SAME * abs(known):
        raise CheckFailedError(f"{where}: {name} is {end!r}, {known!r} is proved")


def verify_certificate(
    path: str | Path,
    certificate: str | Path,
    *,
    labels: str | Path | None = None,
    positive: str | None = None,
    intercept: bool = False,
    memory: str | int = DEFAULT_MEMORY,
    kernel: Function | None = None,
) -> Check:
    """Check a certificate file against data by path, in one read. Raises CheckFailedError when it proves nothing.

    A ``kernel`` that is a function of Python is not kept in a file, and is needed again.
    """
    source = Source(str(path), None if labels is None else str(labels), positive, intercept)
    return _checked(source, Path(certificate), memory, kernel)[0]


def _checked(
    source: Source, certificate: Path, memory: str | int, kernel: Function | None = None
) -> tuple[Check, dict[str, Any]]:
    """What is proved, and what the data is."""
    evidence = load(certificate)
    dataset = open_source(for_checker(source))
    engine = LocalEngine(dataset, threads_that_fit(dataset, parse_bytes(memory), processors()))
    try:
        facts = {"m": dataset.m, "n": dataset.n, "fingerprint": evidence.fingerprint}
        return check_any(engine, dataset, evidence, kernel), facts
    finally:
        engine.close()
