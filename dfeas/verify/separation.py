"""How data can be separated: the three kinds, and the file of a run that says which.

What the file says is taken for no more than a claim: products with its y are looked at for every point, its weights are summed
in integers, and ranks are computed anew. Nothing of the search that wrote it is used.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.data.dataset import Dataset
from dfeas.data.open import open_source
from dfeas.data.source import for_checker, source_of
from dfeas.data.storage import formats
from dfeas.data.storage.files import COUNT, Number, read_json
from dfeas.engine.local import LocalEngine
from dfeas.engine.memory import threads_that_fit
from dfeas.errors import CheckFailedError, CorruptDataError, NewerFormatError
from dfeas.linalg.blas import processors
from dfeas.problem import DEFAULT_MEMORY, parse_bytes
from dfeas.run.results import load_result
from dfeas.run.termination import FEASIBLE
from dfeas.verify.core import Maps
from dfeas.verify.evidence import Check
from dfeas.verify.exact.dyadic import Integers, common
from dfeas.verify.exact.entries import Entries, exponents
from dfeas.verify.exact.entries import rank as rank_of
from dfeas.verify.exact.linear import independent
from dfeas.verify.exact.products import Matrix
from dfeas.verify.halfspace import Wanted, dimension_of, look, require_closed, rows

COMPLETE, QUASI, OVERLAP = "complete", "quasi-complete", "overlap"
SEPARATION = "separation.json"
SEPARATED = "separation"
"""What a solve is for, as its checkpoints say."""

_SHAPE = {
    "kind": str,
    "proof": str,
    "fingerprint": str,
    "on": COUNT,
    "rank": Number(0, whole=True, none=True),
    "y": list | None,
    "support": list | None,
    "weights?": list | None,
    "flat?": [list],
}
"""What the file says; integers are looked at as they are read."""


@dataclass(frozen=True)
class Kind:
    """What was proved."""

    kind: str  # "complete" | "quasi-complete" | "overlap"
    proof: str  # "exact" | "rigorous"


@dataclass(frozen=True)
class Claim:
    """What the file says."""

    kind: str
    proof: str
    fingerprint: str
    on: int
    rank: int | None
    y: Integers | None  # (d,)
    support: NDArray[np.int64]
    weights: Integers  # of the support
    flat: Integers  # (d, k)


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
        dataset = open_source(for_checker(source_of(values["data"])))
        with closing(LocalEngine(dataset, threads_that_fit(dataset, parse_bytes(memory), processors()))) as engine:
            proof = prove(engine, dataset, claim, proved)
        if claim.proof != proof:
            raise CheckFailedError(f"it says that {claim.kind} is proved {claim.proof}; the proof is {proof}")
    except CheckFailedError as error:
        raise CheckFailedError(f"{where}: {error}") from None
    return Kind(claim.kind, proof)


def _claim(where: Path) -> Claim:
    try:
        values = {"weights": None, "flat": [], **read_json(where, _SHAPE, newest=formats.SEPARATION)}
        if values["support"] is not None and values["weights"] is None:
            raise CheckFailedError(f"{where}: it has no weights of its support, as the first versions wrote it: solve again")
        y = None if values["y"] is None else _integers(values["y"])
        support = np.array([] if values["support"] is None else values["support"], np.int64)
        weights = _integers([] if values["weights"] is None else values["weights"])
        flat = [_integers(vector) for vector in values["flat"]]
        columns = np.array(flat, object).T if flat else np.zeros((0, 0), object)
        kind, proof, fingerprint = (str(values[name]) for name in ("kind", "proof", "fingerprint"))
        rank = None if values["rank"] is None else int(values["rank"])
        return Claim(kind, proof, fingerprint, int(values["on"]), rank, y, support, weights, columns)
    except NewerFormatError:
        raise
    except (CorruptDataError, ValueError, TypeError, OverflowError) as error:
        raise CheckFailedError(f"{where}: not readable: {error}") from None


def _integers(values: Any) -> Integers:
    """Integers of any length; long ones are strings of hexadecimal digits."""
    return np.array([int(v, 16) if isinstance(v, str) else int(v) for v in values], object)


def prove(engine: Maps, dataset: Dataset, claim: Claim, proved: Check | None = None) -> str:
    """The level of proof. Raises CheckFailedError when the claim does not follow from the data.

    Without a y, complete is what was ``proved`` of a separator.
    """
    if claim.kind not in (COMPLETE, QUASI, OVERLAP):
        raise CheckFailedError(f"it says {claim.kind!r}")
    if claim.kind == COMPLETE and claim.y is None:
        if proved is None or proved.verdict != FEASIBLE:
            said = "nothing" if proved is None else proved.verdict
            raise CheckFailedError(f"it says {claim.kind}, {said} is proved")
        return proved.proof
    if claim.kind == OVERLAP:
        _require_all_on(engine, dataset, claim, _require_conflict(dataset, claim))
        return "exact"
    if claim.kind == QUASI:
        _require_conflict(dataset, claim)
    y = claim.y
    if y is None or y.shape != (dimension_of(dataset),) or not y.any():
        raise CheckFailedError(f"y is missing or zero, or has not {dimension_of(dataset)} entries")
    sides = look(engine, dataset, claim.fingerprint, Wanted(y))
    require_closed(sides)
    if sides.on != claim.on or not sides.beyond:
        raise CheckFailedError(f"{sides.on} points are on the hyperplane and {sides.beyond} beyond it, it says {claim.on}")
    if claim.kind == COMPLETE and sides.on:
        raise CheckFailedError(f"it says {claim.kind}, {sides.on} points are on the hyperplane")
    return "exact"


def _require_conflict(dataset: Dataset, claim: Claim) -> int:
    """The rank of the points that conflict, whose blocks ``verify_run`` has compared with the fingerprint.

    Raises CheckFailedError when the weights are not positive with a sum of exactly zero.
    """
    support = claim.support
    last = dataset.n + int(dimension_of(dataset) != dataset.dimension)
    ascending = support.ndim == 1 and len(support) > 0 and bool((np.diff(support) > 0).all())
    if not ascending or support[0] < 0 or support[-1] >= last:
        raise CheckFailedError(f"the support is not an ascending list of points below {last}")
    if claim.weights.shape != support.shape or not (claim.weights > 0).all():
        raise CheckFailedError("the weights are not positive, or not one for each point of the support")
    zero, rank = _summed(rows(dataset, support), claim.weights)
    if not zero:
        raise CheckFailedError("the weights do not sum the points of the support to zero")
    if claim.rank != rank:
        raise CheckFailedError(f"the points of the support have rank {rank}, it says {claim.rank}")
    return rank


def _summed(points: Matrix, weights: Integers) -> tuple[bool, int]:
    """Whether the weighted sum of points is exactly zero, and their rank."""
    if isinstance(points, np.ndarray):
        whole = common(points)[0]
        return not (weights @ whole).any(), len(independent(whole))
    return not Entries.of(points, exponents(points)).sum(weights).any(), rank_of(points)


def _require_all_on(engine: Maps, dataset: Dataset, claim: Claim, rank: int) -> None:
    """Raise CheckFailedError when a point is not in the space of this rank that the support spans."""
    d = dimension_of(dataset)
    if rank == d:
        return
    if claim.flat.shape != (d, d - rank) or len(independent(claim.flat.T)) != d - rank:
        raise CheckFailedError(f"the support spans {rank} of {d} dimensions, and no basis says that all points stay in them")
    sides = look(engine, dataset, claim.fingerprint, Wanted(across=claim.flat))
    if sides.outside:
        raise CheckFailedError(f"point {sides.missed[0][1]} is not in the space that the points span which it names")
