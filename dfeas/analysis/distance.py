"""Distances in hulls, for what a solve is followed by: between those of two classes, and from the origin to the nearest facet.

The widest hyperplane with a free bias, the hard-margin support vector machine of the textbooks, has

    rho  =  max over |w| = 1 and b of  min_j l_j (x_j'w + b)  =  min |u - v| / 2  over u and v in the hulls of both classes

(Chevaleyre's notes, 4.1; Bennett and Bredensteiner 2000). b is not in |w|, and lengths of points are as they are: moving all
points moves the hyperplane with them. It is the soft margin of the hinge with a large C. The multipliers of min |w|^2 / 2 with
l_j (x_j'w + b) >= 1 sum to 1 / rho^2, half of it for each class, so that a C of 1 / (2 rho^2) has the same minimum, P = 1 / (2
rho^2); and of any separator the distance r <= rho from its nearest point gives C = 1 / r^2.

Guarantee: let f(w, b) be that soft margin, its relative gap at most g < 1/2, xi the sum of its losses. As P + C xi / 2 <= f <=
P / (1 - g), it is xi <= g / (1 - g); and |w|^2 / 2 <= P / (1 - g). The distance of w is at least (1 - xi) / |w|. Multipliers of
value V >= (1 - g) f have two points of the hulls with |u - v| / 2 <= 1 / sqrt(2 V). So the former is at least 1 - 2 g times the
latter, which is not below rho. Both are proved by the checker, which knows nothing of f.

How infeasible points are: a direction in which their hull is thin, and points whose hull has a ball about the origin.
Reference: own, for the infeasible margin -r of Ramdas and Pena 2014 (5.2), where r is the distance of the nearest facet:

    S <- 16 d points at random, and the 4 d lowest scores of the direction that scored the conflict, or of an axis: one read
    Y <- that direction, those of and against the mean of S, the axes along which S is thinnest
    repeat Y <- from each of Y, the normal of a facet of the hull of S from which no ray along a normal leads to a nearer one
           one read: the margin of each -y, an upper bound of r; of the best of them the 4 d points farthest beyond join S
    until nothing is beyond the nearest facet, or five reads are done with that of the checker

Points along the axes that are in the ball of the conflict belong to S from the start, so that the origin is in its hull.
The facet that the ray along b meets is a'y <= 1 of the dual of min sum(x) with sum_j x_j a_j = b, x >= 0. Which facet is
nearest is hard to say: the upper bound is that of a local minimum. What S shows of the lower one is for the checker to prove.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any

import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them

from dfeas.answers.result import Result
from dfeas.answers.soft_margin import SoftMarginResult
from dfeas.answers.words import Proof, Stop
from dfeas.data.source import Transform
from dfeas.errors import UsageError
from dfeas.linalg.points import Floats
from dfeas.linalg.separation.sparse_columns import column_matrix
from dfeas.methods.protocol import Sparse
from dfeas.passes.block import Columns
from dfeas.passes.protocol import together
from dfeas.passes.select import Sample, Select, sample
from dfeas.problem import Goal, Problem
from dfeas.records import replace
from dfeas.run.execute import execute
from dfeas.run.resources import Limits, Output, Resources, RunOptions
from dfeas.run.session import Session, open_session, survey
from dfeas.run.spec import Request, RunSpec, SoftMarginOptions, require_memory
from dfeas.verify.certificate import BALL, Certificate, Check
from dfeas.verify.core import Hulls, Reach, reach

RANGE = 1e-150, 1e150
"""Of distances whose squares float64 holds."""
WIDEST = 50
"""Features up to which linear programs are solved, two for each of them: 50 take 6 to 19 seconds, 100 would take minutes."""
DRAWN = 16
"""Points at random for each feature."""
TAKEN = 4
"""Points beyond a facet for each feature."""
LOOKED = 8
"""Facets at most that a read looks at. With one a read, six reads led to balls of half the radius."""
JOINED = 3
"""Facets of a read whose points join: of all of them the linear programs of the checker would take three times as long."""
NEAR = 1e-6
"""Share of the radius within which a facet of some points is one of all."""


Widest = tuple[Result, Reach | None, Hulls | None]
"""The result with the widest hyperplane as its separator, and what is proved of it: nothing where it was interrupted."""


def find_widest(result: Result, seen: Problem, limits: Limits, resources: Resources, output: Output) -> Widest:
    """From a separator of points as they are ``seen``; where a limit, or rounding, comes first, as far as that was."""
    y, m = result.separator, result.m
    assert y is not None, "a separator of points has a direction"
    with open_session(seen, resources) as session:
        surveyed = survey(session)
        least, length = float(session.engine.run(Select(y, np.inf, 1, 1, raw=True)).score[0]), _length(y, m)
        known = least / length if length else np.inf  # only one class has a separator that is a bias alone
        about, mean, share = _move_origin(session)
    result = replace(result, stopped=Stop.STALLED, reads=result.reads + surveyed.reads + 1 + share)
    left = None if limits.max_passes is None else int(limits.max_passes - result.passes)
    fit: SoftMarginResult | str = ""
    if left is not None and left < 1:
        result = replace(result, stopped=Stop.PASS_LIMIT)
    elif not 0 < surveyed.positive < result.n:
        fit = ": the points that count are of one class, so that a hyperplane may be as far from them as one likes"
    elif RANGE[0] < known < RANGE[1]:
        moved = replace(seen, spec=replace(seen.spec, transform=about))
        fit = _minimise(moved, result, known**-2, replace(limits, max_passes=left), resources, output)
    if not isinstance(fit, str):
        w = np.append(fit.y[:m], fit.y[m] - mean @ fit.y[:m])
        passes, reads = result.passes + fit.passes, result.reads + fit.reads
        result = replace(
            result, detail="", stopped=fit.stopped, passes=passes, reads=reads, iterations=result.iterations + fit.iterations
        )
        if fit.stopped == Stop.INTERRUPTED:
            return result, None, None
        return _prove(result, w, fit.weighed, known, seen, resources, limits)
    return _prove(replace(result, detail=fit), None, None, known, seen, resources, limits)


def _prove(
    result: Result, w: Floats | None, weighed: Sparse | None, known: float, seen: Problem, resources: Resources, limits: Limits
) -> Widest:
    """The result of a hyperplane (m+1,) that was found, where it is proved and no nearer than what is ``known`` so far."""
    before, tolerance, m = result.evidence, result.margin_tolerance, result.m
    assert before is not None
    assert tolerance is not None
    planes = [before]
    if w is not None and w[:m].any() and np.isfinite(w).all():
        planes.insert(0, replace(before, y=w / np.abs(w).max(), integers=()))
    hulls = None if weighed is None else (weighed.index, weighed.weight)
    with open_session(seen, resources) as session:
        reads = result.reads + survey(session).reads
        checked, data = session.checking(planes), session.checking.dataset
        reads += checked.reads
        for plane, check in zip(planes, checked.answers, strict=True):
            if isinstance(check, Check):
                reached, proved, reads = reach(session.checking.engine, data, plane, hulls), check, reads + 1
                if reached.low >= (1 - tolerance) * known * _length(plane.y, m):
                    break
        size = session.dataset.stored_bytes
    apart = reached.apart
    near = apart is not None and reached.low >= (1 - tolerance) * apart.half * _length(plane.y, m)
    stopped = Stop.STALLED if result.stopped == Stop.VERDICT and not near else Stop.VERDICT if near else result.stopped
    why = "" if near else f"; {stopped.sentence}, before the largest distance was known as closely as asked{result.detail}"
    lower = proved.margin_lower
    result = replace(result, stopped=stopped, proof=Proof(proved.proof), detail=proved.message + why, evidence=plane)
    result = replace(result, margin_lower=lower, margin_upper=max(lower, result.margin_upper))
    result = replace(result, reads=reads, bytes_read=round(reads * size), seconds=limits.seconds)
    return result, reached, (None if apart is None or hulls is None else (hulls[0], apart.weights))


def _length(y: Floats, m: int) -> float:
    return float(np.linalg.norm(y[:m]))


def _move_origin(session: Session) -> tuple[Transform | None, Floats, float]:
    """A view with the origin among the points, unless they are sparse, where it is now, and the share of a read it took."""
    dataset, m = session.dataset, session.dataset.m
    seen = dataset.transform or Transform()
    if dataset.entries is not None:
        return dataset.transform, np.zeros(m), 0.0
    # seen from their mean, numbers far from zero cancel before they are multiplied
    asked = sample(dataset.dimension, 1000, dataset.n, dataset.blocks, 1, 0, unit=False)
    mean = session.engine.run(asked).points[:, :m].mean(axis=0, dtype=np.float64)
    factor = np.asarray(seen.factor) if seen.factor else np.ones(m)
    shift = (np.asarray(seen.shift) if seen.shift else 0.0) + mean / factor
    about = Transform(seen.scale, center=True, points=dataset.n, shift=tuple(shift.tolist()), factor=seen.factor)
    return about, mean, len(asked.blocks) / dataset.blocks


def _minimise(
    moved: Problem, result: Result, C: float, limits: Limits, resources: Resources, output: Output
) -> SoftMarginResult | str:
    """The soft margin; or what memory has no room for."""
    assert result.margin_tolerance is not None
    squares = np.append(np.ones(result.m), 0.0)
    # a half of the tolerance would do, but for rounding
    options = SoftMarginOptions((C,), "hinge", 0, (1.0, 1.0), None, squares, 0, 0.45 * result.margin_tolerance)
    with ExitStack() as stack:
        try:
            session = stack.enter_context(open_session(moved, resources, progress=output.shows_progress))
            require_memory(session.dataset, options, resources.memory_bytes)
        except UsageError as error:
            return f": {error}"
        request, why = Request.begun(Goal(), limits, resources), "a hard margin is one of a large C"
        spec = session.source.spec.without_memory()
        job = RunSpec(request, ("hinge",), (why,), race=False, to_the_end=True, data=spec, soft=options)
        fit: SoftMarginResult = execute(session, job, RunOptions.of(resources.checkpoint_every, output))
        return fit


def measure_ball(result: Result, seen: Problem, limits: Limits, resources: Resources) -> tuple[Result, Certificate | None]:
    """The result with nearer ends, and points that show the upper one; None where it stays as it is."""
    if result.evidence is None:
        return result, None
    with open_session(seen, resources) as session:
        more, run, data = float(survey(session).reads), session.engine.run, session.dataset
        d = data.dimension
        # 50 features take at most 19 seconds, search and check, which do not look at the time
        if d > WIDEST or time.monotonic() + 20.0 * (d / WIDEST) ** 3 >= limits.ends:
            return result, None
        best = result.evidence.y if result.evidence.y.any() else np.eye(d)[0]
        best = best / np.linalg.norm(best)
        left = np.inf if limits.max_passes is None else limits.max_passes - result.passes
        if left < 1:
            return result, None
        drawn = Sample(d, -(-DRAWN * d // data.blocks), 0)
        some, lowest = run(together([drawn, Select(best, np.inf, TAKEN * d, TAKEN * d)]))
        some = some.take(np.sort(np.random.default_rng(0).permutation(len(some))[: DRAWN * d]))  # blocks may be many
        some, lower, passes = _merge([some, lowest.columns]), lowest.low, 1
        # points along the axes stand for a ball that is proved, or for one where none is
        known = max(-result.margin_upper, 1e-9) * np.vstack([np.eye(d), -np.eye(d)])
        facets = _thin(_rows(some), best)
        while passes + 1 <= min(4 - more, left):
            nearest, facets = _nearest(np.vstack([_rows(some), known]), facets)
            looks = [Select(y, np.inf, TAKEN * d, TAKEN * d) for y in facets]
            found, passes = run(together(looks)) if len(looks) > 1 else (run(looks[0]),), passes + 1
            order = sorted(range(len(found)), key=lambda i: -found[i].low)
            if found[order[0]].low >= lower:
                best, lower = facets[order[0]], found[order[0]].low
            some = _merge([some, *(found[i].columns for i in order[:JOINED])])
            if lower >= (1 + NEAR) * nearest:
                break
        ball = replace(result.evidence, kind=BALL, y=best, support=some.index, weights=np.full(len(some), 1 / len(some)))
        checked = session.checking([ball])
    reads = result.reads + more + passes + checked.reads
    result = replace(result, passes=result.passes + passes, reads=reads, bytes_read=round(reads * data.stored_bytes))
    result = replace(result, seconds=limits.seconds)
    proved = checked.answers[0]
    shown = isinstance(proved, Check) and proved.margin_upper <= result.margin_upper
    upper = proved.margin_upper if isinstance(proved, Check) and shown else result.margin_upper
    result = replace(result, margin_lower=min(max(lower, result.margin_lower), upper), margin_upper=upper)
    return result, ball if shown else None


def _merge(pieces: list[Columns]) -> Columns:
    some = Columns.concatenate(pieces)
    return some.take(np.unique(some.index, return_index=True)[1])


def _rows(some: Columns) -> Floats:
    return column_matrix(some.points, some.scale).gather(np.arange(len(some)))


def _thin(rows: Floats, y: Floats) -> list[Floats]:
    """Directions in which the hull of points (s, d) may be thin, of length 1; y is one of them."""
    mean, axes = rows.mean(axis=0), np.linalg.eigh(rows.T @ rows)[1].T
    both = [y, mean, -mean, *(sign * axis for axis in axes for sign in (1.0, -1.0))]
    return [each / np.linalg.norm(each) for each in both if each.any()][:LOOKED]


def _nearest(rows: Floats, starts: list[Floats]) -> tuple[float, list[Floats]]:
    """The greatest margin (below 0) of points (s, d) that was found from some directions, and normals of different facets."""
    ends: list[tuple[float, Floats]] = []
    for start in starts:
        margin, y = _descend(rows, start)
        if all(y @ other < 1 - NEAR for _, other in ends):
            ends.append((margin, y))
    return max(margin for margin, _ in ends), [y for _, y in ends]


def _descend(rows: Floats, y: Floats) -> tuple[float, Floats]:
    """A margin (below 0) of points (s, d) with the origin in their hull, and its direction, from one along y."""
    lower = -np.inf
    while True:
        found: Any = scipy.optimize.linprog(np.ones(len(rows)), A_eq=rows.T, b_eq=-y, bounds=(0, None), method="highs")
        normal = None if found.x is None else found.eqlin.marginals
        if normal is None or not normal.any() or -1 / np.linalg.norm(normal) <= (1 - NEAR) * lower:
            return lower, y
        lower, y = -1 / float(np.linalg.norm(normal)), -normal / np.linalg.norm(normal)
