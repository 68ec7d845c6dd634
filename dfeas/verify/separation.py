"""How data can be separated: the three kinds, the file of a run that says which, and on which side of a hyperplane points are.

What the file says is taken for no more than a claim: products with its y are looked at for every point, its weights are summed
in integers, and ranks are computed anew. Nothing of the search that wrote it is used.

Hyperplanes and subspaces are given in integers, so that points can be on them exactly; every sign is decided exactly
(``dyadic``). Points seen from another one, p, are (x_j, 1) here, and -(p, 1) is one point more, the last: a conflict of
these is p as a convex combination of the x_j.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from dfeas.data.storage import files
from dfeas.data.storage.files import COUNT, Number, read_json
from dfeas.data.storage.places import Place
from dfeas.data.storage.readers import Buffers, Stop
from dfeas.display import parse_integer
from dfeas.errors import CheckFailedError, CorruptDataError, NewerFormatError
from dfeas.exact.arithmetic import PIECE_BYTES, Floats, Indices, Wide
from dfeas.exact.dyadic import Integers, Matrix, common, find_orthogonal, integer_signs
from dfeas.exact.echelon import Echelon, IntegerEntries, exponents
from dfeas.exact.echelon import rank as rank_of
from dfeas.exact.integers import independent, orthogonal, unscale_vectors
from dfeas.verify.blocks import Block, Data, blocks, compare, point_of, read, require_signs, require_support, signs_of
from dfeas.verify.certificate import Check
from dfeas.verify.tallies import Maps, Node, nodes_of, whole

COMPLETE, QUASI, OVERLAP = "complete", "quasi-complete", "overlap"
CLAIMED = {
    "kind": str | None,
    "proof": str,
    "fingerprint": str,
    "on": COUNT,
    "rank": Number(0, whole=True, none=True),
    "y": list | None,
    "support": list | None,
    "weights": list | None,
    "flat": [list],
}
"""What the file says, all of which is proved; integers are looked at as they are read."""


class Claim(Struct, frozen=True):
    """What ``separation.json`` says, which is to be proved."""

    kind: str  # empty: not decided
    proof: str
    fingerprint: str
    on: int
    rank: int | None
    y: Integers | None  # (d,)
    support: NDArray[np.int64]
    weights: Integers  # of the support
    flat: Integers  # (d, k)


class SideCounts(Struct):
    """On which side of a hyperplane the points of some blocks are."""

    take: int  # at most so many are missed
    on: int = 0  # points on the hyperplane
    beyond: int = 0  # points on the positive side
    wrong: int = 0  # points on the negative side
    outside: int = 0  # points on the hyperplane that should not be there, or only in the subspace
    missed: list[tuple[float, int]] = field(default_factory=list)  # scores and numbers of points, the lowest first
    checksums: bytes = b""

    def add(self, other: SideCounts) -> None:
        self.on, self.beyond = self.on + other.on, self.beyond + other.beyond
        self.wrong, self.outside = self.wrong + other.wrong, self.outside + other.outside
        self.missed = sorted(self.missed + other.missed)[: self.take]
        self.checksums += other.checksums


def dimension_of(data: Data) -> int:
    """Of the points as they are looked at here."""
    return data.m + int(data.intercept or point_of(data) is not None)


class Wanted(Struct, frozen=True):
    """Where all points should be: beside a hyperplane, in a subspace."""

    y: Integers | None = None  # (d,) on the positive side of its hyperplane, or on it
    across: Integers | None = None  # (d, k) those on the hyperplane, or all without one, in the subspace orthogonal to these
    without: NDArray[np.bool_] | None = None  # (d,) features that are zero there
    strict: bool = False  # none on the hyperplane


def look(engine: Maps, data: Data, fingerprint: str, wanted: Wanted, take: int = 1) -> SideCounts:
    """All points beside a hyperplane and a subspace; ``missed`` are at most ``take`` that are not where they should be. Raises
    CorruptDataError when the data has another fingerprint.
    """
    sides: SideCounts = whole(engine.map(look_at_range, wanted, take, data.positive))
    compare(data, sides.checksums, fingerprint, data.view)
    reference = _reference(data)
    if reference is not None:
        sides.add(_sides(reference, wanted, data.n, take))
    return sides


def look_at_range(
    data: Data, first: int, stop: int, wanted: Wanted, take: int, code: int | None, stopped: Stop | None = None
) -> list[Node[SideCounts]]:
    """Look at blocks first .. stop-1; the code is that of the class that is +1, None where labels are signs."""

    def look_at_block(block: Block) -> SideCounts:
        sides = SideCounts(take, checksums=block.checksums)
        for piece, points in _pieces(data, block, code):
            sides.add(_sides(points, wanted, block.start + piece, take))
        return sides

    return nodes_of((first + place, look_at_block(block)) for place, block in blocks(data, range(first, stop), stopped))


def rows(data: Data, index: Indices) -> Matrix:
    """Signed points (s, d) as they are looked at here, by ascending numbers, sparse where these are; reads their blocks."""
    parts, buffers = [], Buffers()
    number = index // data.block_rows
    for each in np.unique(number[index < data.n]).tolist():
        block = read(data, each, buffers)
        chosen = index[(number == each) & (index < data.n)] - block.start
        parts.append(_wide(data, block.plain[chosen], block.label[chosen], data.positive))
    reference = _reference(data)
    if reference is not None and data.n in index:
        parts.append(reference)
    if all(isinstance(some, np.ndarray) for some in parts):
        return np.vstack([np.zeros((0, dimension_of(data))), *parts])
    import scipy

    return scipy.sparse.vstack([scipy.sparse.csr_array(some) for some in parts], format="csr")


def _reference(data: Data) -> Floats | None:
    """The point that all others are seen from, as one of them (1, d)."""
    point = point_of(data)
    return None if point is None else -np.append(point, 1.0)[None, :]


def _pieces(data: Data, block: Block, code: int | None) -> Iterator[tuple[int, Matrix]]:
    """Where pieces of a block begin, and their points; a sparse block is one."""
    count = int(block.plain.shape[0])
    dense = isinstance(block.plain, np.ndarray)
    size = max(1, PIECE_BYTES // (8 * dimension_of(data)) if dense else count)
    for piece in range(0, count, size):
        yield piece, _wide(data, block.plain[piece : piece + size], block.label[piece : piece + size], code)


def _wide(data: Data, plain: Any, label: NDArray[Any], code: int | None) -> Matrix:
    """Points (r, d), as stored, with their signs and the feature of the intercept."""
    sign = signs_of(label, code)
    require_signs(bool(sign.all()), data.where)
    return Wide.of(plain, dimension_of(data) > data.m, f"{data.where}: a point").scale_rows(sign.astype(np.float64))


def _sides(points: Matrix, wanted: Wanted, start: int, take: int) -> SideCounts:
    """Of points (r, d) from number ``start`` on."""
    sign, score = np.zeros(points.shape[0], np.int8), np.zeros(points.shape[0])
    if wanted.y is not None:
        sign, score = integer_signs(points, wanted.y)
    on = np.flatnonzero(sign == 0)
    bad = sign < 0
    bad[on] = wanted.strict
    if wanted.across is not None and not wanted.strict:
        bad[on] = ~find_orthogonal(points[on], wanted.across)
    if wanted.without is not None:
        bad[on] |= np.asarray(abs(points[on]) @ wanted.without) > 0
    missed = np.flatnonzero(bad)
    missed = missed[np.argsort(score[missed], kind="stable")[:take]]
    worst = [(float(score[j]), start + int(j)) for j in missed]
    return SideCounts(take, len(on), int((sign > 0).sum()), int((sign < 0).sum()), int(bad[on].sum()), worst)


def load_claim(where: Place) -> Claim:
    """What the file says. Raises CheckFailedError when it cannot be read."""
    try:
        values = read_json(where, CLAIMED, newest=files.SEPARATION)
        if values["kind"] == "" or [] in (values["y"], values["support"], values["weights"], *values["flat"]):
            raise CheckFailedError(f"{where}: empty, where what is not there is null")
        y = None if values["y"] is None else _integers(values["y"])
        support = np.array([parse_integer(v) for v in values["support"] or []], np.int64)
        weights = _integers(values["weights"] or [])
        flat = [_integers(vector) for vector in values["flat"]]
        columns = np.array(flat, object).T if flat else np.zeros((0, 0), object)
        kind, proof, fingerprint = (values[name] or "" for name in ("kind", "proof", "fingerprint"))
        rank = None if values["rank"] is None else int(values["rank"])
        return Claim(kind, proof, fingerprint, int(values["on"]), rank, y, support, weights, columns)
    except NewerFormatError:
        raise
    except (CorruptDataError, ValueError, TypeError, OverflowError) as error:
        raise CheckFailedError(f"{where}: not readable: {error}") from None


def _integers(values: Any) -> Integers:
    """Integers of any length; long ones are strings of hexadecimal digits."""
    return np.array([parse_integer(v) for v in values], object)


def prove(engine: Maps, data: Data, claim: Claim, proved: Check | None = None) -> str:
    """The level of proof; complete without a y is what was ``proved`` of a separator. Raises CheckFailedError otherwise."""
    if claim.kind not in (COMPLETE, QUASI, OVERLAP):
        raise CheckFailedError(f"it says {claim.kind!r}")
    if claim.kind == COMPLETE and claim.y is None:
        if proved is None or proved.verdict != "feasible":
            said = "nothing" if proved is None else proved.verdict
            raise CheckFailedError(f"it says {claim.kind}, {said} is proved")
        return proved.proof
    if claim.kind == OVERLAP:
        _require_conflict(data, claim)
        _require_all_on(engine, data, claim)
        return "exact"
    points = _require_conflict(data, claim) if claim.kind == QUASI else None
    y = claim.y
    if y is None or y.shape != (dimension_of(data),) or not y.any():
        raise CheckFailedError(f"y is missing or zero, or has not {dimension_of(data)} entries")
    others = points is not None and claim.on > len(claim.support)  # points on the hyperplane beside those of the support
    sides = look(engine, data, claim.fingerprint, _beside(y, points) if others else Wanted(y))
    if sides.wrong:
        raise CheckFailedError(f"point {sides.missed[0][1]} is on the negative side of the hyperplane")
    if sides.on != claim.on or not sides.beyond:
        raise CheckFailedError(f"{sides.on} points are on the hyperplane and {sides.beyond} beyond it, it says {claim.on}")
    if claim.kind == COMPLETE and sides.on:
        raise CheckFailedError(f"it says {claim.kind}, {sides.on} points are on the hyperplane")
    if sides.outside:
        text = "is on the hyperplane and not in what the points of the support span: another one may have it beyond"
        raise CheckFailedError(f"point {sides.missed[0][1]} {text}")
    return "exact"


def _beside(y: Integers, points: Matrix) -> Wanted:
    """All points beside a hyperplane, and those on it in what points (s, d) span: no hyperplane has points beyond it that have
    positive weights with a zero sum, so that none has more beyond it than this one (Goldman and Tucker 1956).
    """
    if isinstance(points, np.ndarray):
        used = np.asarray(points.any(axis=0))
        digits, exponent = common(points[:, used])
        basis = unscale_vectors(orthogonal(digits), exponent)
        across: Integers = np.zeros((len(used), basis.shape[1]), np.object_)
        across[used] = basis
    else:
        used = np.bincount(points.indices, minlength=points.shape[1]) > 0
        least = exponents(points)
        across = unscale_vectors(Echelon.of(IntegerEntries.of(points, least)).nullspace(np.flatnonzero(used)), least)
    return Wanted(y, across if across.shape[1] else None, None if used.all() else ~used)


def require_idle(claim: Claim, d: int) -> None:
    """Raise CheckFailedError when it says more than its kind needs."""
    needs = {COMPLETE: (), QUASI: ("support", "on"), OVERLAP: ("support", "flat")}[claim.kind]
    weighs, flat = bool(len(claim.support) or len(claim.weights) or claim.rank is not None), claim.flat.size > 0
    more = (claim.kind == OVERLAP and claim.y is not None) or (weighs and "support" not in needs)
    if more or (flat and ("flat" not in needs or claim.rank == d)) or (claim.on > 0 and "on" not in needs):
        raise CheckFailedError(f"it says more than {claim.kind} needs: y, support, weights, rank, flat or on")


def _require_conflict(data: Data, claim: Claim) -> Matrix:
    """The points (s, d) that conflict, whose blocks ``verify_run`` has compared with the fingerprint. Raises
    CheckFailedError when the weights are not positive with a sum of exactly zero.
    """
    support = claim.support
    require_support(support, data.n + int(point_of(data) is not None))
    if claim.weights.shape != support.shape or not (claim.weights > 0).all():
        raise CheckFailedError("the weights are not positive, or not one for each point of the support")
    points = rows(data, support)
    if isinstance(points, np.ndarray):
        integers = common(points)[0]
        total, rank = claim.weights @ integers, len(independent(integers))
    else:
        points.eliminate_zeros()
        total, rank = IntegerEntries.of(points, exponents(points)).sum(claim.weights), rank_of(points)
    if total.any():
        raise CheckFailedError("the weights do not sum the points of the support to zero")
    if claim.rank != rank:
        raise CheckFailedError(f"the points of the support have rank {rank}, it says {claim.rank}")
    return points


def _require_all_on(engine: Maps, data: Data, claim: Claim) -> None:
    """Raise CheckFailedError when a point is not in the space of the claimed rank that the support spans."""
    d, rank = dimension_of(data), claim.rank or 0
    if rank == d:
        return
    if claim.flat.shape != (d, d - rank) or len(independent(claim.flat.T)) != d - rank:
        raise CheckFailedError(f"the support spans {rank} of {d} dimensions, and no basis says that all points stay in them")
    sides = look(engine, data, claim.fingerprint, Wanted(across=claim.flat))
    if sides.outside:
        raise CheckFailedError(f"point {sides.missed[0][1]} is not in the space that the points span which it names")
