"""What ``dfeas.separation`` returns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dfeas.answers.base import Saved
from dfeas.answers.files import SEPARATION
from dfeas.answers.result import Result
from dfeas.answers.words import Proof, Stop
from dfeas.data.storage import files
from dfeas.display import Part, Row


@dataclass(frozen=True, repr=False, kw_only=True)
class Separation(Saved):
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
        Result of the solve that came first.

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
    HIDDEN: ClassVar = ("result",)
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
