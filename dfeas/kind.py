"""``dfeas verify`` of ``separation.json``: complete, quasi-complete or overlap, proved again from the stored data."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.blas import processors
from dfeas.certificate import load
from dfeas.closed import check_closed
from dfeas.engine import LocalEngine
from dfeas.errors import CheckFailedError, CorruptDataError
from dfeas.memory import DEFAULT_MEMORY, parse_bytes, threads_that_fit
from dfeas.passes.nonzero import Nonzero
from dfeas.result import CERTIFICATE, load_result
from dfeas.separation import COMPLETE, OVERLAP, QUASI, SEPARATION, complement, positive, spans_and_balances
from dfeas.solving import CONFLICTING
from dfeas.store import Dataset, Source, View, for_checker, open_source, source_of
from dfeas.store.json_file import read_json
from dfeas.store.rows import signed_rows
from dfeas.termination import FEASIBLE
from dfeas.verify import Check

_SHAPE = {"kind": str, "proof": str, "fingerprint": str, "on": int, "y": list | None, "support": list | None}


@dataclass(frozen=True)
class Kind:
    """What was proved."""

    kind: str  # "complete" | "quasi-complete" | "overlap"
    proof: str  # "exact" | "rigorous" | "floating_point" | "none": nothing that could be looked at is in the file


@dataclass(frozen=True)
class _Claim:
    """What the file says."""

    kind: str
    proof: str
    fingerprint: str
    on: int
    y: NDArray[Any] | None  # integers
    support: NDArray[np.int64] | None


def verify_separation(run: str | Path, proved: Check, memory: str | int = DEFAULT_MEMORY) -> Kind | None:
    """Check what ``separation.json`` of a run says, beyond what ``verify_run`` ``proved``; None when there is none.

    Raises CheckFailedError when it does not follow from the data, or is not proved as it says.
    """
    where = Path(run) / SEPARATION
    if not where.exists():
        return None
    claim, values = _claim(where), load_result(Path(run))
    try:
        if claim.fingerprint != values["fingerprint"]:
            raise CheckFailedError("it is about other data than the run")
        if claim.kind not in (COMPLETE, QUASI, OVERLAP) or (claim.kind == COMPLETE) != (proved.verdict == FEASIBLE):
            raise CheckFailedError(f"it says {claim.kind}, {proved.verdict} is proved")
        dataset = open_source(for_checker(source_of(values["data"])))
        if claim.kind == COMPLETE:
            proof = proved.proof
        elif claim.kind == QUASI:
            proof = _quasi(dataset, claim, proved, memory)
        else:
            proof = _overlap(dataset, source_of(values["data"]), claim, Path(run), memory)
        if claim.proof != ("floating_point" if proof == "none" else proof):
            raise CheckFailedError(f"it says that {claim.kind} is proved {claim.proof}; the proof is {proof}")
    except CheckFailedError as error:
        raise CheckFailedError(f"{where}: {error}") from None
    return Kind(claim.kind, proof)


def _claim(where: Path) -> _Claim:
    try:
        values = read_json(where, _SHAPE)
        y = None if values["y"] is None else np.array([int(v) for v in values["y"]], object)
        support = None if values["support"] is None else np.array(values["support"], np.int64)
        kind, proof, fingerprint = (str(values[name]) for name in ("kind", "proof", "fingerprint"))
        return _Claim(kind, proof, fingerprint, int(values["on"]), y, support)
    except (CorruptDataError, ValueError, TypeError, OverflowError) as error:
        raise CheckFailedError(f"{where}: not readable: {error}") from None


def _quasi(dataset: Dataset, claim: _Claim, proved: Check, memory: str | int) -> str:
    """The level of proof: every point is looked at."""
    if claim.y is None:
        return "none"
    if claim.y.shape != (dataset.dimension,) or not claim.y.any():
        raise CheckFailedError(f"y is zero, or has not {dataset.dimension} entries")
    with closing(LocalEngine(dataset, threads_that_fit(dataset, parse_bytes(memory), processors()))) as engine:
        sides = check_closed(engine, dataset, claim.y, claim.fingerprint)
    if sides.on != claim.on or not sides.beyond:
        raise CheckFailedError(f"{sides.on} points are on the hyperplane and {sides.beyond} beyond it, it says {claim.on}")
    return "exact" if proved.proof == "exact" else "floating_point"


def _overlap(dataset: Dataset, source: Source, claim: _Claim, run: Path, memory: str | int) -> str:
    """The level of proof: of the points that conflict, whose blocks ``verify_run`` has compared with the fingerprint.

    Where they do not span the space every point is looked at, whether it lies in what they span.
    """
    support = claim.support
    if support is None:
        raise CheckFailedError("it names no points that conflict")
    ascending = support.ndim == 1 and len(support) > 0 and bool((np.diff(support) > 0).all())
    if not ascending or support[0] < 0 or support[-1] >= dataset.n:
        raise CheckFailedError(f"the support is not an ascending list of points below {dataset.n}")
    points = signed_rows(dataset, support)
    points = points[points.any(axis=1)]
    if len(points) and spans_and_balances(points, load(run / CERTIFICATE).weights):
        return "exact"
    if len(points) and positive(points)[1] > CONFLICTING:
        raise CheckFailedError("no positive weights on the points that it names make their sum zero, as far as float64 tells")
    across = complement(points)
    if across.shape[1]:
        seen = open_source(replace(for_checker(source), view=View.of(across)))
        with closing(LocalEngine(seen, threads_that_fit(seen, parse_bytes(memory), processors()))) as engine:
            beyond = engine.run(Nonzero()).index
        if beyond >= 0:
            raise CheckFailedError(f"point {beyond} is not in the space that the points span which it names")
    return "floating_point"
