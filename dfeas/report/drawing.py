"""How figures look, and figures as pictures that a page can hold. No state of pyplot is touched."""

from __future__ import annotations

import base64
import io
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from numpy.typing import NDArray

BLUE, ORANGE, GREEN, PINK, SKY, RED, GREY = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#5f6b7a"
"""Colours that people with any kind of colour vision tell apart (Okabe and Ito 2008)."""

SERIES = (BLUE, RED, GREEN, PINK, ORANGE, SKY, "#000000")
"""Colours of several runs, in order."""

FLOOR = 1e-18
"""Margins nearer to zero are drawn here: a logarithmic axis down to 1e-300 would show nothing else."""

_STYLE: Any = {
    "figure.facecolor": "white",
    "font.family": ["DejaVu Sans"],  # comes with matplotlib
    "font.size": 10.0,
    "axes.edgecolor": "#9aa5b1",
    "axes.labelcolor": "#323f4b",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e7eb",
    "grid.linewidth": 0.8,
    "xtick.color": "#52606d",
    "ytick.color": "#52606d",
    "legend.frameon": False,
    "legend.fontsize": 9.0,
    "lines.linewidth": 1.8,
    "lines.markersize": 4.5,
    "svg.hashsalt": "dfeas",  # the same figure, the same bytes
    "svg.fonttype": "path",
}


@contextmanager
def style() -> Iterator[None]:
    """Figures made and drawn inside look alike, whatever the user's matplotlibrc says."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches."""
    return Figure(figsize=(width, height), layout="constrained")


def legend(figure: Figure, axes: Axes, columns: int) -> None:
    """A legend of the axes above everything."""
    handles, labels = axes.get_legend_handles_labels()
    unique = {label: handle for label, handle in zip(labels, handles, strict=True) if label}
    if unique:
        figure.legend(unique.values(), unique.keys(), loc="outside upper left", ncols=columns)


def data_uri(figure: Figure) -> str:
    """The figure as an SVG picture inside a ``data:`` address."""
    file = io.BytesIO()
    with warnings.catch_warnings():
        # names from data may use letters that the font does not have: they are drawn as boxes
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return "data:image/svg+xml;base64," + base64.b64encode(file.getvalue()).decode()


def logarithmic(axes: Axes, values: Sequence[float] | NDArray[np.float64]) -> None:
    """A logarithmic scale with room around the values, and at least a decade of it."""
    axes.set_yscale("log")
    held = np.maximum(np.asarray(values, np.float64), FLOOR)
    low, high = float(held.min()), float(held.max())
    if high < 10 * low:
        middle = math.sqrt(low * high)
        low, high = middle / 3.2, middle * 3.2
    axes.set_ylim(low / 1.6, high * 1.6)
    if high > 50 * low:
        axes.yaxis.set_minor_formatter(NullFormatter())


def count_label(value: float) -> str:
    """A count on a logarithmic axis."""
    return f"{value:.0f}" if value < 10_000 else f"$10^{{{round(math.log10(value))}}}$"


def plain(text: str) -> str:
    """Text from data, short and without mathematical markup."""
    return (text if len(text) <= 40 else text[:39] + "…").replace("$", r"\$")
