"""``dfeas.separation``: complete, quasi-complete, or overlap, as statisticians ask before they fit a logistic regression.

* complete: y'a_j > 0 for all signed points a_j. The likelihood has no maximum.
* quasi-complete: y'a_j >= 0 for all j, and not all of them zero, but no y makes all positive. There is no maximum either.
* overlap: neither; there is one (Albert and Anderson, Biometrika 1984). Where features depend on each other it is not unique.

A kind is said only when it is proved. Where ``dfeas.solve`` proves a separator, points are separated completely. Otherwise
``dfeas.exact_search`` decides in integers, by facial reduction, with evidence that ``dfeas verify`` proves again:

* complete: y in integers with all points strictly beyond its hyperplane.
* quasi-complete: such a y with points on its hyperplane and beyond it, and integer weights x > 0 on points, sum x_j a_j = 0,
  which show that no y has all points beyond (Gordan).
* overlap: integer weights x > 0 with a zero sum on points that span what all points span (Stiemke). Where that is not the whole
  space, a basis of what is orthogonal to all points shows it: how features depend on each other.
"""

from __future__ import annotations

import math
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dfeas.analysis.presolve import presolved
from dfeas.data.storage import formats
from dfeas.engine.memory import DEFAULT_MEMORY, parse_bytes
from dfeas.errors import UsageError
from dfeas.geometry.cones.choice import require_points
from dfeas.run.checkpoint.job import answered
from dfeas.run.driver import never
from dfeas.run.exact_search import Face, search
from dfeas.run.results import Result, Saved
from dfeas.run.session import open_data, set_up
from dfeas.run.solve import solve
from dfeas.run.termination import FEASIBLE, RESUMABLE, Proof
from dfeas.run.transform import asked_transform
from dfeas.verify.exact.dyadic import Integers
from dfeas.verify.separation import COMPLETE, QUASI, SEPARATED, SEPARATION

if TYPE_CHECKING:
    from collections.abc import Callable

EPS = 1e-9
LEAST = 1e-3
"""Seconds that a solve is given at least."""


@dataclass(frozen=True)
class Separation(Saved):
    """Which of the three, with evidence."""

    FILE: ClassVar = SEPARATION
    FORMAT: ClassVar = formats.SEPARATION
    HIDDEN: ClassVar = ("result",)
    DERIVED: ClassVar = ("fingerprint",)

    kind: str | None  # "complete" | "quasi-complete" | "overlap"; None: not decided
    proof: Proof  # rigorous only of complete, whose separator ``result`` has; none: not decided
    on: int  # points on the hyperplane of y, when it is quasi-complete: no other has fewer
    rank: int | None  # of the points that conflict; of all points when they overlap
    message: str
    y: list[int] | None  # (d,) with y'a_j >= 0 for all j, exactly; with an intercept it comes last
    support: NDArray[np.int64] | None  # points that conflict
    weights: list[int] | None  # (s,) positive, with an exactly zero sum of the signed points of the support
    flat: list[list[int]]  # vectors (d,) orthogonal to all points that overlap, a basis: features that depend on each other
    result: Result  # of the solve that came first

    @property
    def fingerprint(self) -> str:
        """Of the data."""
        return self.result.fingerprint


def separation(X: Any, labels: Any = None, *, out: str | Path | None = None, **options: Any) -> Separation:
    """Say whether labelled points are completely separated, quasi-completely separated, or overlap.

    Arguments and errors are those of ``dfeas.solve``; ``eps`` is 1e-9, whatever is given. With ``out`` the folder gets
    ``separation.json``, too. Limits of time and passes hold for everything together.
    """
    if options.get("kernel") is not None:
        raise UsageError("separation asks about the points as they are: leave out the kernel")
    if options.get("also") or options.get("mask") is not None or options.get("one_vs_rest"):
        raise UsageError("separation asks about two classes of one dataset: leave out also, mask and one_vs_rest")
    if asked_transform(options.get("scale"), bool(options.get("center")), bool(options.get("normalize", True))):
        raise UsageError("separation asks about the points as they are stored: leave out scale, center and normalize")
    require_points(X, "separation")
    began = time.monotonic()
    early = presolved(X, labels, EPS, out, options)
    if early is not None:
        found = said(*early)
        if out is not None:
            found.save(Path(out))
        return found
    result = solve(X, labels, out=out, then=SEPARATED, **{**options, "eps": EPS, **_left(options, began)})
    return separated(result, X, labels, options, out, began)


def separated(
    result: Result, X: Any, labels: Any, options: dict[str, Any], out: str | Path | None, began: float | None = None
) -> Separation:
    """What follows from the solve, also from one that went on; written to its folder."""
    found = _classified(result, X, labels, options, time.monotonic() if began is None else began)
    if out is not None and found.kind is not None:
        found.save(Path(out))
    cut_off = found.kind is None and options.get("stop", never)()
    answered(out, "interrupted" if cut_off else result.stopped)
    return found


def _classified(result: Result, X: Any, labels: Any, options: dict[str, Any], began: float) -> Separation:
    if result.verdict == FEASIBLE:
        text = "a hyperplane separates all points: the likelihood has no maximum"
        return Separation(COMPLETE, result.proof, 0, None, text, None, None, None, [], result)
    if result.stopped in RESUMABLE:
        return _undecided(result.message, result)
    data = open_data(X, labels, options.get("positive"), bool(options.get("intercept")), cache_dir=options.get("cache_dir"))
    with ExitStack() as stack:
        memory = parse_bytes(options.get("memory", DEFAULT_MEMORY))
        checking = set_up(stack, data, memory, options.get("client"), None).checking
        checking.dataset.fingerprint = result.fingerprint
        start = np.empty(0, np.int64) if result.support is None else result.support
        most = options.get("max_passes")
        left = math.inf if most is None else most - result.passes
        face = search(checking, start, _stop(options, began), left)
    return said(face, result)


def _left(options: dict[str, Any], began: float) -> dict[str, float]:
    """The limit of time that is left."""
    seconds = options.get("time_limit")
    return {} if seconds is None else {"time_limit": max(LEAST, seconds - (time.monotonic() - began))}


def _stop(options: dict[str, Any], began: float) -> Callable[[], bool]:
    """Whether somebody asks to stop, or time is up."""
    seconds, stop = options.get("time_limit"), options.get("stop", never)
    return lambda: stop() or (seconds is not None and time.monotonic() - began >= seconds)


def _undecided(why: str, result: Result) -> Separation:
    return Separation(None, Proof.NONE, 0, None, f"not decided: {why}", None, result.support, None, [], result)


def said(face: Face | str, result: Result) -> Separation:
    """What is proved, in words; or why nothing is."""
    if isinstance(face, str):
        return _undecided(face, result)
    if face.kind == COMPLETE:
        text = "a hyperplane separates all points: the likelihood has no maximum"
    elif face.kind == QUASI:
        count = len(face.support)
        text = f"a hyperplane has {face.on} points on it and all others on their side, and {count} points conflict on it"
    elif face.flat.shape[1]:
        text = (
            f"the points overlap in the {face.rank} dimensions that they span: the likelihood has a maximum, not a unique one, "
            f"as features depend on each other in {face.flat.shape[1]} ways"
        )
    else:
        count = len(face.support)
        text = f"{count} points that span the space have positive weights with a zero sum: the likelihood has a maximum"
    weighs = bool(len(face.support))
    return Separation(
        kind=face.kind,
        proof=Proof.EXACT,
        on=face.on,
        rank=face.rank if weighs else None,
        y=None if face.y is None else _integers(face.y),
        support=face.support if weighs else None,
        weights=_integers(face.weights) if weighs else None,
        flat=[_integers(vector) for vector in face.flat.T],
        message=text,
        result=result,
    )


def _integers(values: Integers) -> list[int]:
    return [int(v) for v in values]
