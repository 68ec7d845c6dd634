"""The largest coefficients of a hyperplane, in the units of the data, and what a usual change of each feature does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dfeas.data.source import Transform
from dfeas.report.html import Html, element, joined, soft, table
from dfeas.report.numbers import signed

SHOWN = 12
"""Features that are listed."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Coefficients:
    """Of x'w + bias, which is above 0 on the positive side."""

    names: tuple[str, ...]  # (m,)
    w: Floats  # (m,) in the units of the data
    bias: float | None  # None without an intercept
    effect: Floats | None = None  # (m,) of one standard deviation more of a feature, where the data was read

    @classmethod
    def of(cls, y: Floats, m: int, names: Sequence[str], transform: Transform | None, deviation: Floats | None) -> Coefficients:
        """From y (m,) or (m+1,), the intercept last, of points as they were seen. Features without a name have a number."""
        w, bias = (y[:m], float(y[m:].sum())) if transform is None else transform.folded(y, m)
        named = tuple(names) if len(names) == m else tuple(f"feature {place}" for place in range(m))
        known = bias if len(y) > m or (transform is not None and transform.shift) else None
        return cls(named, w, known, None if deviation is None else y[:m] * deviation)

    @property
    def order(self) -> NDArray[np.int64]:
        """Features by how much they do, or by their coefficients where that is not known; those that are zero are left out."""
        weight = np.abs(self.w if self.effect is None else self.effect)
        return np.argsort(-weight, kind="stable")[: int(np.count_nonzero(weight))]

    def show(self, classes: tuple[str, str]) -> list[Html]:
        """A heading and a table of the first ones, towards which class each of them pulls."""
        title, order = element("h3", "Largest coefficients"), self.order
        if not len(order):
            return [title, soft("All coefficients are zero.")]
        weight = self.w if self.effect is None else self.effect
        longest = float(np.abs(weight[order[0]]))
        rows = []
        for place in order[:SHOWN]:
            sign = int(weight[place] > 0)
            length = f"width:{max(1.0, 100 * abs(weight[place]) / longest):.3g}%"
            bar = element("span", class_=f"bar side-{sign}", style=length)
            effect = [] if self.effect is None else [signed(float(self.effect[place]))]
            name = element("span", self.names[place], class_="name")
            rows.append((name, element("span", classes[sign], class_="name"), signed(float(self.w[place])), *effect, bar))
        head = ("feature", "towards", "coefficient", *([] if self.effect is None else ["one deviation"]), "")
        return [title, joined(soft(self._said(len(order))), table(head, rows, 2, "Largest coefficients", bars=True))]

    def _said(self, many: int) -> str:
        """What the numbers in the table are."""
        listed = f"{min(SHOWN, many)} of {len(self.w):,} features" if len(self.w) > SHOWN else "All features"
        bias = "" if self.bias is None else f"; the intercept is {signed(self.bias, 6)}"
        order = "the largest first. Features in small units have large coefficients. They are"
        if self.effect is not None:
            order = "in the order of what one standard deviation more of each adds to the score. Coefficients are"
        return f"{listed}, {order} in the units of the data{bias}."
