"""``dfeas.separation``: complete, quasi-complete, or overlap, as statisticians ask before they fit a logistic regression.

* complete: y'a_j > 0 for all signed points a_j. The likelihood has no maximum.
* quasi-complete: y'a_j >= 0 for all j, and not all of them zero, but no y makes all positive. There is no maximum either.
* overlap: neither; there is one (Albert and Anderson, Biometrika 1984).

Found by facial reduction. A conflict, x > 0 on some points with sum x_j a_j = 0, forces y'a_j = 0 on them, for any y with
A'y >= 0. So y is orthogonal to the space L that they span: the question is asked again about all points that are not in L, as
they are seen across it. A separator of these is the y of a quasi-complete separation; another conflict makes L larger; and when
L is all there is, the points overlap.

Evidence: y is made exactly orthogonal to L in integers, and every score is proved to be zero or above, in one more read.
Overlap is proved by weights x > 0 on points that span the space, as the checker proves them (Stiemke's theorem).
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them
from numpy.typing import NDArray

from dfeas.closed import check_closed
from dfeas.coned import require_points
from dfeas.driver import never
from dfeas.errors import CheckFailedError, UsageError
from dfeas.keeping import EVERY, Job, answered, where
from dfeas.passes import Partial
from dfeas.passes.nonzero import FirstPoint, Nonzero
from dfeas.proof.balance import balance
from dfeas.proof.dyadic import Integers
from dfeas.proof.orthogonal import orthogonal
from dfeas.request import Request, choose, facts_of, request
from dfeas.result import Result
from dfeas.setting import Setting, open_data, set_up
from dfeas.showing import How
from dfeas.solving import CONFLICTING, solve, solved
from dfeas.store import Dataset, Source, View, open_source, seen_across
from dfeas.store.across import WITHIN
from dfeas.store.placing import placed
from dfeas.store.rows import signed_rows
from dfeas.termination import FEASIBLE, UNDECIDED
from dfeas.transforming import asked_transform

if TYPE_CHECKING:
    from distributed import Client

COMPLETE, QUASI, OVERLAP = "complete", "quasi-complete", "overlap"
SEPARATION = "separation.json"
SEPARATED = "separation"
"""What a solve is for, as its checkpoints say."""
EPS = 1e-9
SHARE = 64
"""The first point outside a subspace is looked for in this share of the blocks first, and then in ever more."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Separation:
    """Which of the three, with evidence."""

    kind: str | None  # "complete" | "quasi-complete" | "overlap"; None: not decided
    proof: str  # "exact" | "rigorous" (of complete) | "floating_point" | "none"
    on: int  # points on the hyperplane of y, when it is quasi-complete
    rank: int | None  # of the points that conflict
    y: list[int] | None  # (d,) with y'a_j >= 0 for all j, exactly; with an intercept it comes last
    support: NDArray[np.int64] | None  # points that conflict: there is x > 0 on them with a zero sum
    message: str
    result: Result  # of the solve that came first

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values. y is in integers of any length."""
        names = ("kind", "proof", "on", "rank", "y", "message")
        support = None if self.support is None else self.support.tolist()
        return {**{name: getattr(self, name) for name in names}, "support": support, "fingerprint": self.result.fingerprint}


def separation(X: Any, labels: Any = None, *, out: str | Path | None = None, **options: Any) -> Separation:
    """Say whether labelled points are completely separated, quasi-completely separated, or overlap.

    Arguments and errors are those of ``dfeas.solve``; ``eps`` is 1e-9, whatever is given. With ``out`` the folder gets
    ``separation.json``, too.
    """
    if options.get("kernel") is not None:
        raise UsageError("separation asks about the points as they are: leave out the kernel")
    if options.get("also") or options.get("mask") is not None or options.get("one_vs_rest"):
        raise UsageError("separation asks about two classes of one dataset: leave out also, mask and one_vs_rest")
    if asked_transform(options.get("scale"), bool(options.get("center")), bool(options.get("normalize", True))):
        raise UsageError("separation asks about the points as they are stored: leave out scale, center and normalize")
    require_points(X, "separation")
    result = solve(X, labels, out=out, then=SEPARATED, **{**options, "eps": EPS})
    return separated(result, X, labels, options, out)


def separated(result: Result, X: Any, labels: Any, options: dict[str, Any], out: str | Path | None) -> Separation:
    """What follows from the solve, also from one that went on; written to its folder."""
    found = _classified(result, X, labels, options)
    if out is not None and found.kind is not None:
        with placed(Path(out) / SEPARATION) as file:
            file.write((json.dumps(found.to_json(), indent=2) + "\n").encode())
    cut_off = found.kind is None and options.get("stop", never)()
    answered(out, "interrupted" if cut_off else result.stopped)
    return found


def _classified(result: Result, X: Any, labels: Any, options: dict[str, Any]) -> Separation:
    if result.verdict == FEASIBLE:
        text = "a hyperplane separates all points: the likelihood has no maximum"
        return Separation(COMPLETE, result.proof, 0, None, None, None, text, result)
    if result.support is None or result.weights is None or result.verdict == UNDECIDED or result.margin_upper > CONFLICTING:
        text = "not decided: no conflict was found whose sum is zero"
        return Separation(None, "none", 0, None, None, result.support, text, result)
    data = open_data(X, labels, options.get("positive"), bool(options.get("intercept")), cache_dir=options.get("cache_dir"))
    asked = request(EPS, None, options.get("max_passes"), options.get("time_limit"), options.get("memory", "2GB"))
    client = options.get("client")
    with ExitStack() as stack:
        setting = set_up(stack, data, asked.memory, client, None)
        setting.dataset.fingerprint = setting.checking.dataset.fingerprint = result.fingerprint
        how = How(EVERY, bool(options.get("progress")), options.get("stop", never))
        face = _Face(setting, data, asked, client, how, result)
        return face.reduced()


@dataclass
class _Face:
    """The points that any y with A'y >= 0 has on its hyperplane, as far as they are known."""

    setting: Setting
    data: tuple[Source | None, Dataset]
    asked: Request
    client: Client | None
    how: How
    result: Result

    def reduced(self) -> Separation:
        assert self.result.support is not None
        support, before = self.result.support, -1
        while True:
            points = signed_rows(self.setting.dataset, support)
            points = points[points.any(axis=1)]
            across = complement(points)
            rank = points.shape[1] - across.shape[1]
            if not across.shape[1]:
                return self._overlaps(support, points)
            if rank == before:
                text = f"not decided: a conflict beyond the {rank} dimensions of another one was lost in rounding"
                return self._said(None, "none", 0, rank, None, support, text)
            before = rank
            others = self._looked(across)
            if others.row is None:
                text = f"the points overlap in the {rank} dimensions that they span: the likelihood has maxima, on a flat"
                return self._said(OVERLAP, "floating_point", 0, rank, None, support, text)
            found = self._asked(across, others)
            if found.verdict == FEASIBLE and found.y is not None:
                return self._quasi(support, points, rank, across @ found.y)
            if found.support is None or found.verdict == UNDECIDED or found.margin_upper > CONFLICTING:
                text = f"not decided: the question across the {rank} dimensions of a conflict ended {found.verdict}"
                return self._said(None, "none", 0, rank, None, support, text)
            # what was replaced by the reference point is it
            seen = signed_rows(self._viewed(View.of(across))[1], found.support)
            support = np.union1d(support, np.where(seen.any(axis=1), found.support, others.index))

    def _viewed(self, view: View) -> tuple[Source | None, Dataset]:
        source, dataset = self.data
        if source is None:
            return None, seen_across(dataset, view)
        source = replace(source, view=view)
        return source, open_source(source)

    def _looked(self, across: Floats) -> FirstPoint:
        """The first point that is not in the span, if there is one."""
        with ExitStack() as stack:
            setting = set_up(stack, self._viewed(View.of(across)), self.asked.memory, self.client, None)
            blocks = range(setting.dataset.blocks)
            found, looked, some = FirstPoint(), 0, max(1, len(blocks) // SHARE)
            while looked < len(blocks) and found.row is None:
                found = setting.engine.run(Partial(Nonzero(), tuple(blocks[looked : looked + some])))
                looked, some = looked + some, 2 * some
            return found

    def _asked(self, across: Floats, others: FirstPoint) -> Result:
        """The question about the others, as they are seen across the span."""
        with ExitStack() as stack:
            view = View.of(across, others.row)
            setting = set_up(stack, self._viewed(view), self.asked.memory, self.client, None)
            name, why = choose("auto", facts_of(setting.dataset, self.asked.memory))
            job = Job(self.asked, (name,), (why,), False, False, positive=None, intercept=False, **where(setting))
            return solved(setting, job, None, self.how)

    def _quasi(self, support: NDArray[np.int64], points: Floats, rank: int, y: Floats) -> Separation:
        exact = orthogonal(points, y)
        text = f"a hyperplane has {{}} points on it and all others on their side, and {len(support)} points conflict on it"
        if exact is None:
            return self._said(QUASI, "floating_point", 0, rank, None, support, text.format("some"))
        checking = self.setting.checking
        try:
            sides = check_closed(checking.engine, checking.dataset, exact, self.result.fingerprint)
        except CheckFailedError as error:
            return self._said(None, "none", 0, rank, None, support, f"not decided: {error}")
        if not sides.beyond:
            return self._said(None, "none", sides.on, rank, None, support, "not decided: the hyperplane has all points on it")
        # y is proved; that there is none with all points beyond it, by weights that make zero exactly
        proof = "exact" if self.result.proof == "exact" else "floating_point"
        return self._said(QUASI, proof, sides.on, rank, exact, support, text.format(sides.on))

    def _overlaps(self, support: NDArray[np.int64], points: Floats) -> Separation:
        exact = spans_and_balances(points, self.result.weights)
        text = f"{len(support)} points that span the space have positive weights with a zero sum: the likelihood has a maximum"
        return self._said(OVERLAP, "exact" if exact else "floating_point", 0, points.shape[1], None, support, text)

    def _said(
        self, kind: str | None, proof: str, on: int, rank: int, y: Integers | None, support: NDArray[np.int64], text: str
    ) -> Separation:
        exact = None if y is None else [int(v) for v in y]
        return Separation(kind, proof, on, rank, exact, support, text, self.result)


def spans_and_balances(points: Floats, weights: Floats | None) -> bool:
    """Whether it is proved that points (s, d) span the space and have weights x > 0 with a zero sum.

    ``weights`` (s,) are such ones of their unit vectors, as near as is known; of another length they are none.
    """
    lengths = np.linalg.norm(points, axis=1)
    if weights is None or len(weights) != len(points):
        weights = positive(points)[0]
    found = balance(points, weights / lengths)
    return found is not None and found.spans


def positive(points: Floats) -> tuple[Floats, float]:
    """Weights (s,) of 1 and above on the unit vectors of points (s, d) whose sum is as short as can be, and its length as a
    share of the weights.
    """
    columns = (points / np.linalg.norm(points, axis=1)[:, None]).T
    more, length = scipy.optimize.nnls(columns, -columns.sum(axis=1), maxiter=30 * columns.shape[1])
    weights = 1 + more
    return weights, float(length / weights.sum())


def complement(points: Floats) -> Floats:
    """An orthonormal basis (d, k) of what is orthogonal to points (s, d)."""
    if not len(points):
        return np.eye(points.shape[1])
    lengths = np.linalg.norm(points, axis=1)
    _, singular, right = np.linalg.svd(points / lengths[:, None], full_matrices=True)
    rank = int((singular > WITHIN * singular[0]).sum())
    return np.ascontiguousarray(right[rank:].T)
