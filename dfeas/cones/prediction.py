"""Where A*y lies in each cone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from dfeas.display import Displayed, Part, Row
from dfeas.linalg.points import Floats


@dataclass(frozen=True, slots=True)
class CriticalCone:
    """A cone whose least eigenvalue is among the lowest."""

    least: float
    row: int  # its first row, counted without padding: as in the X that was given
    kind: str
    size: int

    def __str__(self) -> str:
        name = self.kind if self.kind == "l" else f"{self.kind} {self.size}"
        return f"{name} at row {self.row} ({self.least:.6g})"


@dataclass(frozen=True, repr=False)
class ConePrediction(Displayed):
    """Where A*y lies in each cone.

    Attributes
    ----------
    least : array (cones,)
        In their order: least eigenvalue of X_c y / |y|, over the norm of the cone.
    critical : tuple of CriticalCone
        The lowest.

    Examples
    --------
    >>> import dfeas
    >>> import numpy as np
    >>> cones = dfeas.from_cone_rows(np.array([[1.0, 1.0], [0.0, 2.0]]), {"q": [2]})
    >>> dfeas.predict(dfeas.solve(cones), cones)
    <ConePrediction cones 1 of 1 have A*y in their interior>
    """

    HIDDEN: ClassVar = ("least",)
    DERIVED: ClassVar = ("cones", "outside", "margin")

    least: Floats
    critical: tuple[CriticalCone, ...]

    def columns(self, values: object) -> dict[str, NDArray[Any]]:
        """What a file has of the cones."""
        return {"score": self.least}

    def after(self, before: object) -> ConePrediction:
        """All cones are read at once."""
        return self

    @property
    def cones(self) -> int:
        return len(self.least)

    @property
    def outside(self) -> int:
        """Cones that A*y is not in the interior of."""
        return int((self.least <= 0).sum())

    @property
    def margin(self) -> float:
        return float(self.least.min())

    def _parts(self) -> Iterator[Part]:
        yield Row("cones", f"{self.cones - self.outside} of {self.cones} have A*y in their interior")
        yield Row("critical", ", ".join(map(str, self.critical)))
