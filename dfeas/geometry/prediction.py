"""What scored points are found to be, and how that compares with their labels; of cones, where A*y lies in each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dfeas.display import Displayed, Grid, Part, Row
from dfeas.linalg.points import Floats

MOST_CLASSES = 20
"""Classes whose confusion is printed."""


@dataclass(frozen=True, repr=False)
class Prediction(Displayed):
    """Scores and classes of points, and how they compare with labels, where there are any.

    Attributes
    ----------
    score : array (n,)
        y'x_j, of unit length in a kernel's space: of a run of two classes above 0 for the second; of each class against the
        rest that of the predicted class, with |y| = 1 unless it is of a soft margin.
    predicted : array (n,) of int16
        Positions in ``classes``.
    classes : tuple of str
        Of the run; negative and positive where there are two.
    labels : tuple of str
        Classes of the data; empty without labels.
    accuracy : float, optional
        Share of points whose class is that of their label.
    confusion : list of list, optional
        Points of each label of the data, a row, by the class that was predicted.

    Examples
    --------
    >>> import dfeas
    >>> X, labels = [[1.0, 2.0], [2.0, 1.0], [-1.0, -1.0]], [1, 1, -1]
    >>> answer = dfeas.predict(dfeas.solve(X, labels), [[3.0, 3.0], [-2.0, 0.5]])
    >>> answer.classes, (answer.score > 0).tolist(), answer.predicted.tolist()
    (('-1', '1'), [True, False], [1, 0])
    """

    HIDDEN: ClassVar = ("score", "predicted")
    DERIVED: ClassVar = ("points", "counts")

    score: Floats
    predicted: NDArray[np.int16]
    classes: tuple[str, ...]
    labels: tuple[str, ...]
    accuracy: float | None
    confusion: list[list[int]] | None

    @property
    def points(self) -> int:
        return len(self.score)

    @property
    def counts(self) -> dict[str, int]:
        """Points by the class that was predicted."""
        return dict(zip(self.classes, np.bincount(self.predicted, minlength=len(self.classes)).tolist(), strict=True))

    def _parts(self) -> Iterator[Part]:
        yield Row("predicted", ", ".join(f"{count} are {name}" for name, count in self.counts.items()))
        if self.accuracy is None or self.confusion is None:
            return
        yield Row("accuracy", f"{self.accuracy:.6g}")
        if len(self.classes) <= MOST_CLASSES:
            rows = [[name, *map(str, counts)] for name, counts in zip(self.labels, self.confusion, strict=True)]
            yield Grid(["label \\ predicted", *self.classes], rows)


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
