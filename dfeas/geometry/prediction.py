"""What scored points are found to be, and how that compares with their labels; of cones, where A*y lies in each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.display import Displayed, Grid, Part, Row
from dfeas.linalg.points import Floats

MOST_CLASSES = 20
"""Classes whose confusion is printed."""


def _compare_labels(prediction: Prediction | ClassPrediction, names: Sequence[str]) -> Iterator[Part]:
    """How many points are of which class, and how that compares with their labels, whose classes have these names."""
    predicted = prediction.to_json()["predicted"]
    yield Row("predicted", ", ".join(f"{count} are {name}" for name, count in predicted.items()))
    if prediction.accuracy is None or prediction.confusion is None:
        return
    yield Row("accuracy", f"{prediction.accuracy:.6g}")
    if len(prediction.classes) <= MOST_CLASSES:
        rows = [[name, *map(str, counts)] for name, counts in zip(names, prediction.confusion, strict=True)]
        yield Grid(["label \\ predicted", *prediction.classes], rows)


@dataclass(frozen=True, repr=False)
class Prediction(Displayed):
    """Scores, and how they compare with labels, where there are any.

    Attributes
    ----------
    score : array (n,)
        y'x_j, of unit length in a kernel's space; above 0 is the positive class.
    classes : tuple of str
        Negative, positive, of the run's data.
    accuracy : float, optional
        Share of points whose class is that of their label.
    confusion : list of list, optional
        Points of each label, a row, by the class that was predicted.

    Examples
    --------
    >>> import dfeas
    >>> X, labels = [[1.0, 2.0], [2.0, 1.0], [-1.0, -1.0]], [1, 1, -1]
    >>> answer = dfeas.predict(dfeas.solve(X, labels), [[3.0, 3.0], [-2.0, 0.5]])
    >>> answer.classes, (answer.score > 0).tolist()
    (('-1', '1'), [True, False])
    """

    score: Floats
    classes: tuple[str, str]
    accuracy: float | None
    confusion: list[list[int]] | None

    def _parts(self) -> Iterator[Part]:
        return _compare_labels(self, self.classes)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values without the scores."""
        positive = int((self.score > 0).sum())
        return {
            "points": len(self.score),
            "predicted": dict(zip(self.classes, (len(self.score) - positive, positive), strict=True)),
            "accuracy": self.accuracy,
            "confusion": self.confusion,
        }


@dataclass(frozen=True, repr=False)
class ClassPrediction(Displayed):
    """Classes, and how they compare with labels, where there are any.

    Attributes
    ----------
    predicted : array (n,) of int16
        Positions in ``classes``.
    score : array (n,)
        y'x_j of that class, |y| = 1.
    classes : tuple of str
        Of the run.
    labels : tuple of str
        Of the data; empty without labels.
    accuracy : float, optional
        Share of points whose class is that of their label.
    confusion : list of list, optional
        Points of each label of the data, a row, by the class that was predicted.

    Examples
    --------
    >>> import dfeas
    >>> run = dfeas.one_vs_rest([[2.0, 0.0], [0.0, 2.0], [-1.0, -1.0]], ["a", "b", "c"])
    >>> answer = dfeas.predict(run, [[5.0, 0.5], [0.0, 3.0]])
    >>> [answer.classes[place] for place in answer.predicted]
    ['a', 'b']
    """

    predicted: NDArray[np.int16]
    score: Floats
    classes: tuple[str, ...]
    labels: tuple[str, ...]
    accuracy: float | None
    confusion: list[list[int]] | None

    def _parts(self) -> Iterator[Part]:
        return _compare_labels(self, self.labels)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values without those of points."""
        counts = np.bincount(self.predicted, minlength=len(self.classes)).tolist()
        return {
            "points": len(self.predicted),
            "classes": list(self.classes),
            "labels": list(self.labels),
            "predicted": dict(zip(self.classes, counts, strict=True)),
            "accuracy": self.accuracy,
            "confusion": self.confusion,
        }


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

    least: Floats
    critical: tuple[CriticalCone, ...]

    def _parts(self) -> Iterator[Part]:
        yield Row("cones", f"{len(self.least) - self.outside} of {len(self.least)} have A*y in their interior")
        yield Row("critical", ", ".join(map(str, self.critical)))

    @property
    def outside(self) -> int:
        """Cones that A*y is not in the interior of."""
        return int((self.least <= 0).sum())

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values without those of all cones."""
        return {
            "cones": len(self.least),
            "outside": self.outside,
            "margin": float(self.least.min()),
            "critical": [asdict(cone) for cone in self.critical],
        }
