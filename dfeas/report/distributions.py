"""Figures of the evidence: how far the points are from a hyperplane, how heavy they are in a certificate."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from dfeas.passes import Counts
from dfeas.passes.histogram import LEAST
from dfeas.report.drawing import BLUE, GREY, PINK, RED, count_label, legend, logarithmic, new_figure, plain
from dfeas.report.margins import Margins

Floats = NDArray[np.float64]

ROOM = 10
"""Empty bins that are left around zero."""

MOST_WEIGHTS = 2000
"""Ranks that are drawn of the sorted weights."""


def distances(margins: Margins, margin: float, separates: bool) -> Figure:
    """Points by the score under y, one panel for each class, on a signed logarithmic scale without its empty middle."""
    counts = margins.counts.counts
    scale = _SignedScale.of(margins.counts)
    figure = new_figure(6.4, 4.2)
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
            axes.axvline(scale.place(margin), color="black", ls="--", lw=1.4, label=f"margin {margin:.3g}")
        name, signed = margins.classes[sign], "+1" if sign else "-1"
        axes.set_ylabel("points")
        axes.set_title(f"label {signed}" + ("" if name in (signed, "1") else f" ({plain(name)})"), loc="left", fontsize=10)
    panels[1].set_xticks(*scale.ticks())
    panels[1].set_xlim(0, len(scale.bins))
    panels[1].set_xlabel("signed distance of unit points from the hyperplane (logarithmic)")
    legend(figure, panels[0], 2)
    return figure


@dataclass(frozen=True)
class _SignedScale:
    """Bins of a histogram that are drawn, side by side."""

    edges: Floats
    bins: NDArray[np.int64]  # ascending

    @classmethod
    def of(cls, found: Counts) -> _SignedScale:
        """Those with points, with some room; around zero as many are left out on either side as are empty on both."""
        zero = len(found.edges) // 2 - 1
        used = np.flatnonzero(found.counts.any(axis=0))
        bins = np.arange(max(0, int(used[0]) - 6), min(len(found.edges) - 2, int(used[-1]) + 6) + 1)
        empty = int(np.abs(used[used != zero] - zero).min(initial=zero)) - ROOM
        return cls(found.edges, bins[(bins == zero) | (np.abs(bins - zero) > empty)])

    @property
    def zero(self) -> int:
        """The bin around zero."""
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
        named = [(float(x), f"${'-' if v < 0 else ''}10^{{{k}}}$") for x, v, k in chosen] + zero
        return [x for x, _ in named], [text for _, text in named]


def sorted_weights(weights: Floats) -> Figure:
    """Weights of a Gordan certificate, the heaviest first."""
    heavy = np.sort(weights[weights > 0])[::-1]
    rank = np.arange(1, len(heavy) + 1)
    if len(heavy) > MOST_WEIGHTS:
        chosen = np.unique(np.geomspace(1, len(heavy), MOST_WEIGHTS).astype(np.int64)) - 1
        heavy, rank = heavy[chosen], rank[chosen]
    figure = new_figure(6.4, 3.0)
    axes = figure.subplots()
    axes.plot(rank, heavy, "o" if len(heavy) <= 200 else "-", color=PINK)
    if rank[-1] > 500:
        axes.set_xscale("log")
    else:
        axes.set_xlim(0, float(rank[-1]) + 1)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    logarithmic(axes, heavy)
    axes.set_xlabel("points of the certificate, the heaviest first")
    axes.set_ylabel("weight")
    return figure
