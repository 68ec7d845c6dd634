"""What scored points are found to be, and how that compares with their labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dfeas.display import Displayed, Grid, Part, Row
from dfeas.linalg.points import Floats
from dfeas.records import replace


@dataclass(frozen=True, repr=False)
class Prediction(Displayed):
    """Scores and classes of points, and how they compare with labels, where there are any.

    Attributes
    ----------
    score : array (n,), optional
        y'x_j, of unit length in a kernel's space: of a run of two classes above 0 for the second; of each class against the
        rest that of the predicted class, with |y| = 1 unless it is of a soft margin. None where a file has
        them.
    predicted : array (n,) of int16, optional
        Positions in ``classes``; None where a file has the scores.
    classes : tuple of str
        Of the run; negative and positive where there are two.
    labels : tuple of str
        Classes of the data; empty without labels.
    confusion : list of list, optional
        Points of each label of the data, a row, by the class that was predicted.
    counts : dict of int
        Points by the class that was predicted.
    ids : list, optional
        What the points are called, whole numbers or text, None where an id is missing; None for points without ids, and where a
        file has the scores.

    Examples
    --------
    >>> import dfeas
    >>> X, labels = [[1.0, 2.0], [2.0, 1.0], [-1.0, -1.0]], [1, 1, -1]
    >>> answer = dfeas.predict(dfeas.solve(X, labels), [[3.0, 3.0], [-2.0, 0.5]])
    >>> answer.classes, (answer.score > 0).tolist(), answer.predicted.tolist()
    (('-1', '1'), [True, False], [1, 0])
    """

    HIDDEN: ClassVar = ("score", "predicted", "ids")
    DERIVED: ClassVar = ("accuracy", "points")

    score: Floats | None
    predicted: NDArray[np.int16] | None
    classes: tuple[str, ...]
    labels: tuple[str, ...]
    confusion: list[list[int]] | None
    counts: dict[str, int]
    ids: list[int | str | None] | None = None

    @property
    def points(self) -> int:
        return sum(self.counts.values())

    @property
    def accuracy(self) -> float | None:
        """Share of points whose class is that of their label; None without labels."""
        if self.confusion is None:
            return None
        known = [(name, row) for name, row in zip(self.labels, self.confusion, strict=True) if name in self.classes]
        return sum(row[self.classes.index(name)] for name, row in known) / self.points

    def columns(self, values: Callable[[Sequence[str]], NDArray[Any]] | None) -> dict[str, Any]:
        """What a file has of the points: ids, where they have some, scores, and classes by their ``values``, or positions."""
        assert self.score is not None, "they are here"
        assert self.predicted is not None, "they are here"
        ids = {} if self.ids is None else {"id": self.ids}
        return ids | {"score": self.score, "class": self.predicted if values is None else values(self.classes)[self.predicted]}

    def after(self, before: Prediction | None) -> Prediction:
        """Of these points and those before, of which none is kept."""
        if before is None:
            return replace(self, score=None, predicted=None, ids=None)
        both = None if self.confusion is None or before.confusion is None else np.add(before.confusion, self.confusion).tolist()
        return replace(before, confusion=both, counts={name: before.counts[name] + k for name, k in self.counts.items()})

    def _parts(self) -> Iterator[Part]:
        yield Row("predicted", ", ".join(f"{count} are {name}" for name, count in self.counts.items()))
        if self.accuracy is None or self.confusion is None:
            return
        yield Row("accuracy", f"{self.accuracy:.6g}")
        # 20: classes whose confusion is printed
        if len(self.classes) <= 20:
            rows = [[name, *map(str, counts)] for name, counts in zip(self.labels, self.confusion, strict=True)]
            yield Grid(["label \\ predicted", *self.classes], rows)
