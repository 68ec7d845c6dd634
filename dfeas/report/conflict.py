"""The points of an infeasible verdict by their score: which of them stand out, and what is said of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.report.numbers import signed

NAMED = 3
"""Points that stand out are named up to so many."""
APART = 4
"""Who stands out is so many times as far from the plane as any other point of the conflict. One wrong label among Gaussian
points of 2 to 30 features was at 6 to 12 times, the first of a conflict of overlapping classes at 2 at most."""


@dataclass(frozen=True)
class Conflict:
    """Points that no hyperplane separates, the most suspect first.

    A score is a_j'y of a unit column under the direction that most of them agree with: below 0 the point is on the wrong side
    of it. A mislabelled point is far below all others.
    """

    points: tuple[int, ...]
    labels: tuple[str, ...]
    scores: NDArray[np.float64]  # (k,) ascending

    @classmethod
    def of(cls, entries: Sequence[Mapping[str, Any]]) -> Conflict | None:
        """From the list in a result; None where the method knew no direction, so that nobody is accused."""
        if not entries or any(entry["score"] is None for entry in entries):
            return None
        ordered = sorted(entries, key=lambda entry: float(entry["score"]))
        return cls(
            tuple(int(entry["point"]) for entry in ordered),
            tuple(str(entry["label"]) for entry in ordered),
            np.array([entry["score"] for entry in ordered], np.float64),
        )

    @property
    def outliers(self) -> int:
        """How many of the first ones stand out: fewer than the others, and far beyond the plane that these lie close to.

        Where classes overlap the others are far from the plane as well, on either side, and nobody stands out.
        """
        steps = np.diff(self.scores)
        if not len(steps):
            return 0
        count = int(steps.argmax()) + 1
        apart = np.abs(self.scores[count:]).max() <= -self.scores[count - 1] / APART
        return count if apart and self.scores[count - 1] < 0 and 2 * count < len(self.scores) else 0

    @property
    def suspects(self) -> str:
        """Who stands out, in a few words; empty where nobody does."""
        count = self.outliers
        if not 0 < count <= NAMED:
            return f"{count:,} points stand out" if count else ""
        named = [f"{point} (labelled {label})" for point, label in zip(self.points[:count], self.labels, strict=False)]
        return f"suspect: point {named[0]}" if count == 1 else f"suspects: points {', '.join(named)}"

    def explain(self) -> str:
        """What the scores say, in a sentence or two."""
        count, many = self.outliers, len(self.points)
        if not count:
            first = f"point {self.points[0]}, labelled {self.labels[0]}, has the lowest score, {signed(self.scores[0])}"
            return f"{many:,} points conflict, and none stands out: {first}, the next {signed(self.scores[min(1, many - 1)])}."
        scores = f"its score is {signed(self.scores[0])}"
        if count > 1:
            scores = f"their scores are {signed(self.scores[count - 1])} or less"
        subject = f"Point {self.points[0]}" if count == 1 else f"{count:,} points"
        verb = "stands" if count == 1 else "stand"
        rest = f"that of the other {many - count:,} points of the conflict {signed(self.scores[count])} or more"
        return f"{subject} {verb} out: {scores}, {rest}. Look at {'its label' if count == 1 else 'their labels'} first."
