"""Figures of the evidence: how far points are from a hyperplane, which stand out of a conflict, the path of a soft margin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from dfeas.data.storage.files import atomic_write
from dfeas.passes.survey import LEAST, Counts
from dfeas.report.conflict import Conflict
from dfeas.report.figures import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PINK,
    RED,
    WIDTH,
    count_label,
    course_axis,
    decades,
    legend,
    logarithmic,
    new_figure,
    plain,
    style,
)
from dfeas.report.margins import Margins
from dfeas.report.numbers import power_of_ten

Floats = NDArray[np.float64]

ROOM = 10
"""Empty bins that are left around zero."""

MOST_DRAWN = 2000
"""Points of a certificate that are drawn; of more those between them are left out."""
FEW = 200
"""Up to so many points each one gets a dot."""


def distances(margins: Margins, margin: float, separates: bool) -> Figure:
    """Points by the score under y, one panel for each class, on a signed logarithmic scale without its empty middle."""
    counts = margins.counts.counts
    scale = _SignedScale.of(margins.counts)
    figure = new_figure(WIDTH, 4.0)
    panels = figure.subplots(2, 1, sharex=True, sharey=True)
    for axes, sign, colour in ((panels[0], 1, BLUE), (panels[1], 0, RED)):
        # the axis counts bins, so that each is equally wide
        shown = counts[sign, scale.bins]
        axes.stairs(shown, np.arange(len(shown) + 1), fill=True, color=colour, alpha=0.75, baseline=0)
        axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(0, float(counts.max()) * 2)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: count_label(v)))
        if scale.centre is not None:
            axes.axvline(scale.centre, color=GREY, lw=1.2, label="0: the hyperplane")
        if separates and margin > LEAST:
            axes.axvline(scale.place(margin), color=INK, ls="--", lw=1.4, label=f"margin {margin:.3g}")
        name, signed = margins.classes[sign], "+1" if sign else "−1"
        axes.set_ylabel("points")
        axes.set_title(f"label {signed}" + ("" if name in ("+1", "-1", "1") else f" ({plain(name)})"), loc="left")
    panels[1].set_xticks(*scale.ticks())
    panels[1].set_xlim(0, len(scale.bins))
    panels[1].set_xlabel("signed distance of unit points, logarithmic")
    legend(figure, panels[0], 2)
    return figure


@dataclass(frozen=True)
class _SignedScale:
    """Bins of a histogram that are drawn, side by side."""

    edges: Floats
    bins: NDArray[np.int64]  # ascending

    @classmethod
    def of(cls, counts: Counts) -> _SignedScale:
        """Those with points, with some room; around zero as many are left out on either side as are empty on both."""
        zero = len(counts.edges) // 2 - 1
        used = np.flatnonzero(counts.counts.any(axis=0))
        bins = np.arange(max(0, int(used[0]) - 6), min(len(counts.edges) - 2, int(used[-1]) + 6) + 1)
        empty = int(np.abs(used[used != zero] - zero).min(initial=zero)) - ROOM
        return cls(counts.edges, bins[(bins == zero) | (np.abs(bins - zero) > empty)])

    @property
    def zero(self) -> int:
        return len(self.edges) // 2 - 1

    @property
    def centre(self) -> float | None:
        """Where zero is drawn, if it is."""
        return float(np.searchsorted(self.bins, self.zero)) + 0.5 if self.zero in self.bins else None

    def place(self, score: float) -> float:
        """Where a score is drawn."""
        i = int(np.clip(np.searchsorted(self.edges, score, side="right") - 1, 0, len(self.edges) - 2))
        low, high = self.edges[i], self.edges[i + 1]
        return float(np.searchsorted(self.bins, i)) + math.log(score / low) / math.log(high / low)

    def ticks(self) -> tuple[list[float], list[str]]:
        """Whole decades, thinned to what can be read, and zero."""
        marks = [(x, float(self.edges[i])) for x, i in enumerate(self.bins) if i != self.zero]  # left edges
        if self.bins[-1] == len(self.edges) - 2:
            marks.append((len(self.bins), 1.0))
        decades = [(x, v, round(math.log10(abs(v)))) for x, v in marks if abs(math.log10(abs(v)) % 1 - 0.5) > 0.499]
        step = -(-len(decades) // 9)
        apart = 0.05 * len(self.bins)
        chosen = [d for d in decades if d[2] % step == 0 and (self.centre is None or abs(d[0] - self.centre) > apart)]
        zero = [] if self.centre is None else [(self.centre, "0")]
        named = [(float(x), f"{'−' if v < 0 else ''}{power_of_ten(k)}") for x, v, k in chosen] + zero
        return [x for x, _ in named], [text for _, text in named]


def conflict_scores(conflict: Conflict) -> Figure:
    """Points of a conflict by their score, the most suspect first; those that stand out are named."""
    scores, many = conflict.scores, len(conflict.scores)
    rank = _drawn_ranks(many)
    figure = new_figure(WIDTH, 3.4)
    axes = figure.subplots()
    apart = rank <= conflict.outliers
    for shown, colour, label in ((~apart, BLUE, "points of the conflict"), (apart, RED, "stands out")):
        if shown.any():
            height = scores[rank[shown] - 1]
            if many <= FEW:
                axes.vlines(rank[shown], 0, height, color=colour, lw=1.2, alpha=0.6)
            axes.plot(rank[shown], height, "o" if many <= FEW or label == "stands out" else "-", color=colour, label=label)
    axes.axhline(0, color=GREY, lw=1.2)
    low, high = min(float(scores[0]), 0.0), max(float(scores[-1]), 0.0)
    room = 0.12 * ((high - low) or 1.0)
    axes.set_ylim(low - room, high + room)
    if 0 < conflict.outliers <= 3:
        for place in range(conflict.outliers):
            text = f"point {conflict.points[place]}, {plain(conflict.labels[place])}"
            axes.annotate(
                text, (place + 1, float(scores[place])), va="center", color=RED, xytext=(8, 0), textcoords="offset points"
            )
    _rank_axis(axes, many)
    axes.set_ylabel("score")
    axes.set_xlabel("points of the conflict, the most suspect first")
    legend(figure, axes, 2)
    return figure


def sorted_weights(weights: Floats) -> Figure:
    """Weights of a Gordan certificate, the heaviest first."""
    heavy = np.sort(weights[weights > 0])[::-1]
    rank = _drawn_ranks(len(heavy))
    figure = new_figure(WIDTH, 3.0)
    axes = figure.subplots()
    axes.plot(rank, heavy[rank - 1], "o" if len(heavy) <= FEW else "-", color=PINK)
    _rank_axis(axes, len(heavy))
    logarithmic(axes, heavy)
    axes.set_xlabel("points of the certificate, the heaviest first")
    axes.set_ylabel("weight")
    return figure


def _drawn_ranks(many: int) -> NDArray[np.int64]:
    """Ranks from 1, all of them or the first ones and ever fewer of the others."""
    if many <= MOST_DRAWN:
        return np.arange(1, many + 1)
    return np.unique(np.geomspace(1, many, MOST_DRAWN).astype(np.int64))


def _rank_axis(axes: Axes, many: int) -> None:
    if many > 500:
        axes.set_xscale("log")
        decades(axes.xaxis)
    else:
        axes.set_xlim(0, many + 1)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def draw_path(values: dict[str, Any], out: Path) -> None:
    """Write an SVG of the path in the keys of a result of ``dfeas.soft_margin`` with several C."""
    with style(), atomic_write(out) as file:
        path_figure(values).savefig(file, format="svg", metadata={"Date": None, "Creator": None})


def ends_figure(passes: Sequence[dict[str, Any]]) -> Figure:
    """Objective and lower bound of a single fit after each pass."""
    figure = new_figure(WIDTH, 3.2)
    axes, known = figure.subplots(), [each for each in passes if each["objective"] is not None]
    x = [each["passes"] for each in known]
    axes.plot(x, [each["objective"] for each in known], color=ORANGE, marker="o", label="objective")
    axes.plot(x, [each["lower"] for each in known], color=BLUE, marker="o", label="minimum at least")
    course_axis(axes, np.array(x, np.float64), whole=True)
    axes.set_xlabel("passes over the data")
    legend(figure, axes, 2)
    return figure


def gap_figure(passes: Sequence[dict[str, Any]], target: float) -> Figure:
    """The widest relative gap of all fits after each pass, which never grows, and the one that was asked for."""
    figure = new_figure(WIDTH, 3.2)
    axes, known = figure.subplots(), [each for each in passes if each["objective"] is not None]
    gap = [max(each["gap"], target / 100) for each in known]  # a gap of 0 has no place on this axis
    x = np.array([each["passes"] for each in known], np.float64)
    axes.plot(x, gap, color=GREEN, marker="o", label="widest gap")
    axes.axhline(target, color=GREY, ls=":", lw=1.4, label=f"asked: {target:g}")
    logarithmic(axes, [*gap, target])
    course_axis(axes, x, whole=True)
    axes.set_xlabel("passes over the data")
    axes.set_ylabel("relative gap")
    legend(figure, axes, 2)
    return figure


def path_figure(values: dict[str, Any]) -> Figure:
    """Errors and support points against C; to be used where the style is."""
    whole = [fit for fit in values["fits"] if fit["fold"] is None]
    C = [fit["C"] for fit in whole]
    figure = new_figure(WIDTH, 4.4)
    above, below = figure.subplots(2, 1, sharex=True)
    above.plot(C, [100 * (fit["error"] or 0.0) for fit in whole], color=GREY, marker="o", label="of all points")
    checked = [entry for entry in values["validation"] if entry["error"] is not None]
    if checked:
        error, spread = (
            [100 * entry["error"] for entry in checked],
            [100 * (entry["deviation"] or 0.0) for entry in checked],
        )
        tested = [entry["C"] for entry in checked]
        above.errorbar(tested, error, spread, color=BLUE, marker="o", capsize=3, label="of points left out")
        above.axvline(values["C"], color=ORANGE, linestyle="--", label="chosen C")
    above.set_ylabel("error, %")
    below.plot(C, [fit["support"] for fit in whole], color=BLUE, marker="o")
    below.set_ylabel("points at the margin\nor beyond it")
    below.set_xlabel("C")
    below.set_xscale("log")
    decades(below.xaxis)
    legend(figure, above, 2)
    return figure
