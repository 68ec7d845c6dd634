"""What ``dfeas.in_hull`` returns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.answers.result import Result, cost_row
from dfeas.answers.separation import Separation
from dfeas.display import Displayed, Part, Row


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
        ``result.evidence`` has it in whole numbers.
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
