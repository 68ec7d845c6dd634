"""Which points conflict and which a hyperplane has strictly beyond it, exactly, and the verdict that follows.

A working set holds some points in integers. Their partition (``dfeas.run.exact.partition``) gives weights of a conflict, which
is one of all points, and a hyperplane; one read says, exactly, which points are not as it says; the worst of them are taken in,
until there are none. Points are never dropped, so it ends; the read that finds nothing is the proof.

Where most features are levels of one effect (``dfeas.run.exact.levels``), the same is done in the dimensions of the others
only: a working set of pairs of points within levels, its partition, and a look at all points, which tells the worst pair of
each level that is not so.

The solvers in memory find conflicts in float64. Features of scales that are many orders of magnitude apart, or far from the
origin, hide from them which points these are; this search finds out, and the checker proves it from a certificate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from dfeas.answers.words import EPS_INFEASIBLE, FEASIBLE, Stop
from dfeas.data.dataset import Dataset
from dfeas.errors import AwayError, CheckFailedError, DfeasError
from dfeas.exact.dyadic import Integers, Matrix, common, integer_signs, split_integers
from dfeas.exact.integers import independent, orthogonal, primitive, product, shorten_vectors, solve, unscale_vectors
from dfeas.linalg.points import Floats
from dfeas.methods.protocol import Sparse
from dfeas.records import replace
from dfeas.run.exact.guesses import EvenPoints, Reduction, order, parts, whole
from dfeas.run.exact.levels import Gaps, Levels, Pairs, even_places, flat, lift_direction, outside
from dfeas.run.exact.partition import FacePartition, extend_weights, partition, shorten
from dfeas.run.recovery import Checking
from dfeas.run.resources import RunOptions
from dfeas.run.session import Session
from dfeas.run.solver_thread import Abandoned, end_long_reads, run_solver, run_solver_here
from dfeas.run.spec import RunSpec
from dfeas.run.task import Outcome
from dfeas.run.termination import NEARLY_ZERO, Decision
from dfeas.verify.certificate import Certificate, Check
from dfeas.verify.separation import COMPLETE, OVERLAP, QUASI, Claim, Wanted, dimension_of, look, prove, rows

FIRST = 6
"""Points of the first working set for each dimension."""
TAKEN = 4
"""Points for each dimension that a read takes in."""
LEAST = 64
"""Points that are worth a read."""
HELD = 20_000_000
"""Entries of the first working set, which is dense, and in integers."""
STOPPED = "it was asked to stop, or time was up, between exact steps"
LIMITED = "the limit of passes was reached"


def find_ending(why: str, stop: bool) -> Stop:
    """What ended a search that says why it decided nothing, where somebody asks to ``stop`` or not."""
    if why == STOPPED:
        return Stop.INTERRUPTED if stop else Stop.TIME_LIMIT
    return Stop.PASS_LIMIT if why == LIMITED else Stop.STALLED


Indices = NDArray[np.int64]


class Face(Struct, frozen=True):
    """What is proved of all points."""

    kind: str
    y: Integers | None  # (d,) y'a_j >= 0 for all points, > 0 for as many as any y has beyond its hyperplane
    on: int  # points on its hyperplane, which conflict
    support: Indices  # (s,) points that conflict, ascending
    weights: Integers  # (s,) positive, with a zero sum
    rank: int  # of the support; of all points where they overlap
    flat: Integers  # (d, k) a basis of what is orthogonal to all points, where they overlap: features that depend on each other
    reads: int
    met: Indices = field(default_factory=lambda: np.zeros(0, np.int64))  # the points of the last working set, where it was one


def search(checking: Checking, start: Indices, stop: Callable[[], bool], most_reads: float) -> Face | str:
    """The kind of all points, with evidence, or why not; from ``start``, points thought to conflict, until ``stop``."""
    data = checking.dataset
    n, d = data.n, dimension_of(data)
    if min(n, FIRST * d) * d > HELD:
        return f"points of {d} features are more than the exact search holds"
    extra = np.arange(n, n + int(d != data.dimension))
    if not len(start):
        start = even_places(n, max(LEAST, FIRST * d))
    chosen, reads = np.union1d(start, extra), 0
    pool: tuple[Indices, Matrix] | None = None
    while True:
        some = rows(data, chosen)
        points, exponent = common(some if isinstance(some, np.ndarray) else some.toarray())
        # a partition of so few entries takes little more than to begin a thread
        run = run_solver_here if points.size <= 1 << 14 else run_solver
        try:
            split = run(partial(partition, points), stop)
        except Abandoned:
            return STOPPED
        wanted = _expect_sides(points, exponent, split)
        if split.y is None and wanted.across is None:
            return _face(OVERLAP, chosen, points, split, wanted, 0, reads)
        if reads >= most_reads:
            return LIMITED
        if wanted.strict and wanted.y is not None and len(chosen) < n:
            if pool is None:
                near = even_places(n, max(LEAST, (1 << 18) // d))
                pool, reads = (near, rows(data, near)), reads + 1  # they stay in memory while a hyperplane is looked for
            wrong = pool[0][integer_signs(pool[1], wanted.y)[0] <= 0]
            if len(wrong):  # of which some are taken, from all over: the worst are neighbours
                chosen = np.union1d(chosen, wrong[even_places(len(wrong), max(LEAST, TAKEN * d, len(chosen)))])
                continue
            if reads >= most_reads:
                return LIMITED
        try:
            with end_long_reads(stop):
                sides = look(checking.engine, data, data.fingerprint, wanted, take=max(LEAST, TAKEN * d))
        except Abandoned:
            return STOPPED
        reads += 1
        if not sides.missed:
            kind = COMPLETE if wanted.strict else OVERLAP if split.y is None else QUASI
            return _face(kind, chosen, points, split, wanted, sides.on, reads)
        missed = np.array([point for _, point in sides.missed])
        missed = np.append(missed, even_places(n, max(LEAST, FIRST * d))) if reads == 1 else missed
        before, chosen = len(chosen), np.union1d(chosen, missed)
        if len(chosen) == before:
            raise DfeasError("the exact search took in no new point: please report this")


def decide_table(checking: Checking, stop: Callable[[], bool], most_reads: float) -> Face | str:
    """The same of a few points, proved: a guess from all of them says how all lie beyond a hyperplane, or which conflict."""
    data = checking.dataset
    if stop():
        return STOPPED
    some = rows(data, np.arange(data.n))
    points = some if isinstance(some, np.ndarray) else some.toarray()
    guess = Reduction.of(points)
    if guess is None:
        return _search_and_prove(checking, np.empty(0, np.int64), stop, most_reads)
    if most_reads >= 1:
        try:
            face = run_solver_here(partial(_settle_guess, points, guess), stop)
        except Abandoned:
            return STOPPED
        if face is not None and is_proved(checking, face):
            return face
    return _search_and_prove(checking, guess.support, stop, most_reads)


def _settle_guess(points: Floats, guess: Reduction) -> Face | None:
    """What a guess says in integers; None where it is another thing then, or says that all points conflict."""
    y = None if guess.y is None else settle_direction(points, guess.conflict, guess.y)
    if y is None:
        return None
    sign = integer_signs(points, y)[0]
    none, flat = np.zeros(0, np.int64), np.zeros((len(y), 0), object)
    if sign.min() > 0:
        return Face(COMPLETE, y, 0, none, none.astype(object), 0, flat, 1)
    split = partition(common(points[guess.conflict])[0]) if sign.min() == 0 and len(guess.conflict) else None
    if split is None or split.y is not None:
        return None
    kept = split.weights > 0
    support, rank = guess.conflict[kept], len(independent(common(points[guess.conflict[kept]])[0]))
    return Face(QUASI, y, int((sign == 0).sum()), support, split.weights[kept], rank, flat, 1)


def settle_direction(points: Floats, conflict: Indices, y: Floats) -> Integers | None:
    """Integers in proportion to y (d,), or to the nearest that is orthogonal to a conflict of points (s, d); None for zero."""
    most = float(np.abs(y).max())
    if not 0 < most < math.inf:
        return None
    found = whole(y, np.zeros(len(y), np.int64))
    if len(conflict):
        some, exponent = common(points[conflict])
        across = orthogonal(some)
        if not across.shape[1]:
            return None
        across = unscale_vectors(across, exponent)
        share = np.asarray(np.linalg.lstsq(floats(across), y / most, rcond=None)[0], np.float64)
        found = across @ whole(share, np.zeros(len(share), np.int64))
    return np.array(primitive(found.tolist()), object) if found.any() else None


def _search_and_prove(checking: Checking, start: Indices, stop: Callable[[], bool], most_reads: float) -> Face | str:
    face = search(checking, start, stop, most_reads)
    refused = _refute(checking, face) if isinstance(face, Face) else None
    if refused is not None:
        raise DfeasError(f"{checking.dataset.where}: what was found is not proved: {refused}: please report this")
    return face


def is_proved(checking: Checking, face: Face) -> bool:
    """Whether the checker proves what was guessed."""
    return _refute(checking, face) is None


def _refute(checking: Checking, face: Face) -> CheckFailedError | None:
    mark = checking.dataset.fingerprint
    claim = Claim(face.kind, "exact", mark, face.on, face.rank, face.y, face.support, face.weights, face.flat)
    try:
        prove(checking.engine, checking.dataset, claim)
    except CheckFailedError as error:
        return error
    return None


def _expect_sides(points: Integers, exponent: NDArray[np.int64], split: FacePartition) -> Wanted:
    """Where all points should be if they are as these: on the hyperplane and in what the conflict spans, or beyond it."""
    y = None if split.y is None else unscale_vectors(split.y[:, None], exponent)[:, 0]
    if not split.weights.any():
        return Wanted(y, strict=True)
    support = points[np.flatnonzero(split.weights)]
    across = orthogonal(support)
    return Wanted(y, unscale_vectors(across, exponent) if across.shape[1] else None)


def _face(kind: str, chosen: Indices, points: Integers, split: FacePartition, wanted: Wanted, on: int, reads: int) -> Face:
    place, d = np.flatnonzero(split.weights), points.shape[1]
    none = np.zeros((d, 0), object)
    flat = none if wanted.across is None else wanted.across
    rank, on = 0 if wanted.strict else d - flat.shape[1], on if kind == QUASI else 0
    flat = flat if kind == OVERLAP else none
    return Face(kind, wanted.y, on, chosen[place], split.weights[place], rank, flat, reads, chosen)


Conflict = tuple[Indices, Integers]
"""Points, ascending, and positive weights of them with a zero sum."""
MOST_BESIDE = 200
"""Features beside the levels that this is for: more are decided sooner by one sparse linear programme."""


def decide_levels(levels: Levels) -> tuple[Face, Conflict]:
    """What is proved of all points, and a conflict of few of them."""
    pairs = levels.spread(max(LEAST, FIRST * len(levels.columns)))
    reads, strict = 0, True
    while True:
        points = levels.integers(pairs)
        split = partition(points, separable=strict)
        support = points[np.flatnonzero(split.weights)]
        across = orthogonal(support)
        strict = not split.weights.any()
        gaps, reads = Gaps.of(levels, split.y), reads + 1
        more = _find_missed(levels, gaps, across, strict)
        if not len(more):
            face = _lift_face(levels, pairs, points, split, gaps, across, reads)
            return face, _of_points(levels, pairs, split.weights)
        before, pairs = len(pairs), np.unique(np.vstack([pairs, more]), axis=0)
        if len(pairs) == before:
            raise DfeasError("the exact search took in no new pair: please report this")


def _find_missed(levels: Levels, gaps: Gaps, across: Integers, strict: bool) -> Pairs:
    """Pairs that are not as they should be: the worst, or some of those on the hyperplane that should not be there."""
    take = max(LEAST, TAKEN * len(levels.columns))
    wrong = np.flatnonzero(gaps.sign < 0)
    missed: Pairs
    if len(wrong):
        missed = gaps.least[wrong[np.argsort(gaps.share[wrong], kind="stable")[:take]]]
    elif strict:
        missed = gaps.least[gaps.sign == 0]
    else:
        missed = outside(levels, gaps, across)
    return missed[even_places(len(missed), take)]


def _lift_face(
    levels: Levels, pairs: Pairs, points: Integers, split: FacePartition, gaps: Gaps, across: Integers, reads: int
) -> Face:
    on = int((gaps.on < len(levels.row)).sum())
    if split.y is None and not levels.one_sided.any():
        basis = shorten_vectors(flat(levels, across))
        pairs, weights = _on_all_levels(levels, pairs, points, split.weights)
        return Face(OVERLAP, None, 0, *_of_points(levels, pairs, weights), levels.d - basis.shape[1], basis, reads)
    (y,) = shorten_vectors(lift_direction(levels, split.y)[:, None]).T
    kept = split.weights > 0
    level = np.unique(levels.level[levels.side[pairs[kept, 0]]])
    rank = int((level >= 0).sum()) + len(levels.columns) - across.shape[1] if kept.any() else 0
    none = np.zeros((levels.d, 0), object)
    return Face(QUASI if on else COMPLETE, y, on, *_of_points(levels, pairs, split.weights), rank, none, reads)


def _on_all_levels(levels: Levels, pairs: Pairs, points: Integers, weights: Integers) -> tuple[Pairs, Integers]:
    """Pairs of a conflict and positive weights, with one of each level: their sum is in what the others span."""
    support = np.flatnonzero(weights)
    there = np.isin(levels.joint[:, 0], levels.side[pairs[support]]) | (levels.level[levels.joint[:, 0]] < 0)
    more = levels.first[levels.joint[~there]]
    total = levels.sum(more)
    times = 1
    if total.any():
        basis = support[independent(points[support])]
        last = np.append(np.zeros(len(points), object), 1)
        every = extend_weights(np.vstack([points, total]), np.append(weights, 0), last, basis)
        weights, times = every[:-1], int(every[-1])
    return np.vstack([pairs, more]), np.append(weights, np.full(len(more), times, object))


def _of_points(levels: Levels, pairs: Pairs, weights: Integers) -> Conflict:
    """Points of the data, ascending, and their weights, from weights of pairs."""
    total = np.zeros(len(levels.row) + 1, object)
    for side in pairs.T:
        np.add.at(total, side, weights)
    kept = np.flatnonzero(total[:-1])
    order = np.argsort(levels.row[kept])
    return levels.row[kept][order], total[kept][order]


def exact_outcome(session: Session, job: RunSpec, outcome: Outcome, how: RunOptions) -> Outcome:
    """The outcome of a run about points as they are stored; exact where it was proved up to rounding and can be exactly. Where
    the search is ended it can go on later.
    """
    dataset = session.checking.dataset
    # of more features the exact search is not worth its time here; ``separation`` asks it whatever the width
    if dataset.dimension > 300:
        return outcome
    try:
        if how.interruptions:  # of the class before
            raise Abandoned
        until = job.asked.limits.until(how.stop)
        with end_long_reads(until):
            better = _search_further(session.checking, job, outcome, until)
    except (KeyboardInterrupt, AwayError) as error:
        how.interruptions.append(error)
        better = Stop.INTERRUPTED
    except Abandoned:
        better = Stop.INTERRUPTED if how.interruptions or how.stop() else Stop.TIME_LIMIT
    if isinstance(better, Stop):
        better = outcome if outcome.check is not None else replace(outcome, decision=Decision(better))
    return replace(better, ended=None)  # the search took time, too


def _search_further(checking: Checking, job: RunSpec, outcome: Outcome, stop: Callable[[], bool]) -> Outcome | Stop:
    """A better outcome, or the limit that was reached. Raises Abandoned when ``stop`` says so."""
    dataset, request = checking.dataset, job.asked
    near = Certificate("gordan", dataset.fingerprint, support=_conflict_of(outcome), kernel=job.kernel, view=dataset.view)
    if outcome.certificate is not None and outcome.certificate.kind == near.kind:
        near = outcome.certificate
    left = math.inf if request.max_passes is None else request.max_passes - outcome.record.passes
    face = search(checking, near.support, stop, left)
    if isinstance(face, str):
        if face == STOPPED:
            raise Abandoned
        return Stop.PASS_LIMIT if face == LIMITED else outcome
    if face.kind == COMPLETE and job.kernel:
        better = run_solver(partial(_expand_separator, dataset, face, near), stop)
    else:
        better = certificate_of(dataset, face, near)
    with end_long_reads(stop):
        checked = checking([better])
    (proved,) = checked.answers
    reads = outcome.reads + face.reads + checked.reads
    if not isinstance(proved, Check) or proved.verdict == EPS_INFEASIBLE:
        return replace(outcome, reads=reads)
    tolerance = request.margin_tolerance
    enough = 0.0 if tolerance is None else (1 - tolerance) * outcome.record.margin_upper
    wide = proved.verdict != FEASIBLE or proved.margin_lower >= enough
    decision = Decision("verdict" if wide else "stalled", proved.verdict)
    return replace(outcome, decision=decision, certificate=better, check=proved, reads=reads)


def _conflict_of(outcome: Outcome) -> Indices:
    """Points whose weights bring |Ax| so near to zero that float64 tells no difference, where there are any."""
    gordan = None if outcome.evidence.gordan is None else outcome.evidence.gordan()
    if isinstance(gordan, Sparse) and outcome.record.margin_upper <= NEARLY_ZERO:
        return gordan.index
    return np.empty(0, np.int64)


def certificate_of(dataset: Dataset, face: Face, near: Certificate) -> Certificate:
    """What was found in integers: a separator as it is, or rounded where it is beyond float64; weights in float64."""
    if face.kind == COMPLETE:
        assert face.y is not None, "it separates"
        y = face.y[: dataset.dimension]  # without what a point that is seen from another one has besides
        near = replace(near, kind="separator", support=near.support[:0], weights=near.weights[:0])
        try:
            return replace(near, y=split_integers(y)[0], integers=tuple(map(int, y)))
        except OverflowError:
            return replace(near, y=floats(y), integers=())
    stored = face.support < dataset.n
    support, weights = face.support[stored], floats(face.weights[stored])
    points = rows(dataset, support)
    weights *= np.sqrt(np.asarray((points * points).sum(axis=1))).ravel()
    kept = weights > 0
    return replace(near, support=support[kept], weights=weights[kept] / weights.sum())


def _expand_separator(dataset: Dataset, face: Face, near: Certificate) -> Certificate:
    """What was found, with a kernel whose space is that of the points, as a sum of these: of a basis of those that were met,
    with the products that the separator has with these, and so few digits that each point keeps half of its score.
    """
    assert face.y is not None, "it separates"
    some = rows(dataset, face.met)
    digits, exponent = common(some if isinstance(some, np.ndarray) else some.toarray())
    points = digits << (exponent - exponent.min()).astype(object)
    ranked = order(EvenPoints.of(digits).points, np.ones(len(points)))
    basis = np.sort(ranked[independent(digits[ranked])])
    inner = product(points, points[basis].T)
    weights, _ = solve(inner[basis], product(points[basis], face.y[:, None]))
    numbers = np.array(primitive(shorten(inner, weights[:, 0]).tolist()), object)
    used = numbers != 0
    basis, numbers = basis[used], numbers[used]
    amounts = floats(numbers) * np.sqrt(np.asarray((some[basis] * some[basis]).sum(axis=1))).ravel()
    amounts /= np.abs(amounts).max()
    return replace(near, kind="separator", support=face.met[basis], weights=amounts, integers=tuple(numbers.tolist()))


def floats(values: Integers) -> Floats:
    """Integers in proportion, the largest about 1."""
    mantissa, exponent = parts(values)
    return np.asarray(np.ldexp(mantissa, np.maximum(exponent - exponent.max(), -2000)))
