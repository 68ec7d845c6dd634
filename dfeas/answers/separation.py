"""What ``dfeas.separation`` and ``dfeas.in_hull`` return, whose evidence may be in whole numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dfeas.answers.base import PLACES, Conclusion
from dfeas.answers.files import SEPARATION
from dfeas.answers.result import Result, cost_row
from dfeas.answers.words import Proof, Stop
from dfeas.data.storage import files
from dfeas.display import Displayed, Part, Row, parse_integers


@dataclass(frozen=True, repr=False, kw_only=True)
class Separation(Conclusion):
    """Which of the three, with evidence.

    Attributes
    ----------
    kind : str, optional
        "complete", "quasi-complete" or "overlap"; None: not decided.
    proof : Proof
        Rigorous only for complete, whose separator ``result`` has; none: not decided.
    on : int
        Points on the hyperplane of y, when it is quasi-complete: no other has fewer.
    rank : int, optional
        Rank of the points that conflict; of all points if they overlap.
    stopped : Stop
        ``verdict`` where it is decided, otherwise what ended the solve, or the search that followed it.
    message : str
        What was found, in words.
    y : list of int, optional
        (d,) with y'a_j >= 0 for all j, exactly; with an intercept it comes last.
    support : array of int64, optional
        Points that conflict.
    weights : list of int, optional
        (s,) positive; with them the sum of the signed points of the support is exactly zero.
    flat : list of list
        A basis of the vectors (d,) orthogonal to all points that overlap: features that depend on each other.
    result : Result
        Result of the solve that came first; of a small table in ``check_separation`` what is decided at once, made when it is
        asked for, as of the table that was given.

    Examples
    --------
    >>> import dfeas
    >>> answer = dfeas.separation([[1.0], [2.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> answer.kind, answer.on, answer.y
    ('quasi-complete', 2, [1, -2])
    """

    FILE: ClassVar = SEPARATION
    FORMAT: ClassVar = files.SEPARATION
    BESIDE: ClassVar = "separation"
    SHAPE: ClassVar = {"proof": str}
    READ: ClassVar = {
        "proof": Proof,
        "stopped": Stop,
        "y": parse_integers,
        "weights": parse_integers,
        "flat": lambda vectors: [*map(parse_integers, vectors)],
        "support": PLACES,
    }
    DERIVED: ClassVar = ("fingerprint",)

    kind: str | None = None
    proof: Proof = Proof.NONE
    on: int = 0
    rank: int | None = None
    stopped: Stop = Stop.VERDICT
    message: str
    y: list[int] | None = None
    support: NDArray[np.int64] | None = None
    weights: list[int] | None = None
    flat: list[list[int]] = field(default_factory=list)
    result: Result

    def _put_off(self, make: Callable[[], Result]) -> Separation:
        """This answer, whose result is made when it is asked for."""
        del self.__dict__["result"]
        self.__dict__["_make"] = make
        return self

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            make = self.__dict__.get("_make")
            if name != "result" or make is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            return self.__dict__.setdefault(name, make())

    def __getstate__(self) -> dict[str, Any]:
        """What a copy and a pickle have."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def _parts(self) -> Iterator[Part]:
        yield Row("separation", f"{self.kind or 'not decided'} (proof: {self.proof})")
        yield Row("", self.message)
        yield from self.result._parts()

    @property
    def is_decided(self) -> bool:
        return self.kind is not None

    @property
    def fingerprint(self) -> str:
        """Hash of the data, that of the solve."""
        return self.result.fingerprint


@dataclass(frozen=True, repr=False, kw_only=True)
class Hull(Displayed):
    """Whether a point is in a hull, with evidence.

    Attributes
    ----------
    inside : bool, optional
        None: not decided.
    proof : str
        "exact", "rigorous" or "none".
    support : array (s,) of int64, optional
        Points whose combination it is, if it is inside or nearly so.
    weights : array (s,) of float64, optional
        Weights of the convex combination, up to rounding.
    distance : float, optional
        Between the point and the combination, as float64 computes it.
    coef : array (m,) of float64, optional
        Normal of a hyperplane through the point that has all points on its positive side; or its rounding, if
        ``result.evidence`` has it as integers.
    result : Result
        Result about the points as seen from this point: bracket, proof, cost.
    exactly : Separation, optional
        Separation of the points (x_j, 1) and -(p, 1), if float64 could not decide; then there is no coef.

    Examples
    --------
    >>> import dfeas
    >>> answer = dfeas.in_hull([0.25, 0.25], [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> answer.support.tolist(), answer.weights.round(6).tolist()
    ([0, 1, 2], [0.5, 0.25, 0.25])
    """

    inside: bool | None
    proof: str
    support: NDArray[np.int64] | None = None
    weights: NDArray[np.float64] | None = None
    distance: float | None = None
    coef: NDArray[np.float64] | None = None
    result: Result
    exactly: Separation | None = None

    def _parts(self) -> Iterator[Part]:
        where = {True: "inside the hull", False: "outside the hull", None: "not decided"}[self.inside]
        yield Row(None, f"the point is {where} (proof: {self.proof})")
        if self.support is not None:
            exactly = "; weights that make it exactly exist on the same points" if self.inside and self.distance else ""
            yield Row("", f"{len(self.support)} points make it, up to {self.distance:.3g}{exactly}")
        elif self.inside is False:
            where = "" if self.result.certificate is None else ": y in certificate.npz"
            yield Row("", f"a hyperplane through it has all points on its positive side{where}")
        else:
            yield Row("", self.result.message)
        yield (run := self.result).margin_row
        yield cost_row(run.passes, run.method, run.reads, run.bytes_read, run.seconds)

    @property
    def is_decided(self) -> bool:
        return self.inside is not None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; the vectors are in the certificate."""
        size = None if self.support is None else len(self.support)
        own = {"inside": self.inside, "points": size, "distance": self.distance}
        return {**own, **self.result.to_json(), "proof": self.proof}
