"""Figures of the course of a run, and how they look. Margins are those of unit points under a unit vector."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from dfeas.errors import visible
from dfeas.report.html import Html, inline
from dfeas.report.numbers import power_of_ten
from dfeas.run.termination import Record

BLUE, ORANGE, GREEN, PINK, SKY, RED, GREY = "#0072b2", "#a66f00", "#00805d", "#b4558c", "#2b87bd", "#cc5200", "#5f6b7a"
"""Colours that people with any kind of colour vision tell apart: those of Okabe and Ito (2008), some of them darker, so that
each stands out from white."""

INK, SOFT, LINE, AXIS = "#1f2933", "#52606d", "#e4e7eb", "#9aa5b1"

COLOURS = dict(
    zip(
        (BLUE, ORANGE, GREEN, PINK, SKY, RED, GREY, INK, SOFT, LINE, AXIS),
        ("blue", "orange", "green", "pink", "sky", "red", "grey", "ink", "soft", "line", "axis"),
        strict=True,
    )
)
"""How the page calls them, which has others on a dark ground."""

SERIES = (BLUE, RED, GREEN, PINK, ORANGE, SKY, INK)
"""Colours of several runs, in order."""

FLOOR = 1e-18
"""Margins nearer to zero are drawn here: a logarithmic axis down to 1e-300 would show nothing else."""

LEAST_MARGIN = 1.25
"""No margin is below -1: an axis ends a little beyond it."""

FEW_DECADES = 2
"""A logarithmic axis of no more has labels between the powers of ten, too."""

WIDTH = 5.2
"""Inches: a figure is as wide as the page of a phone, where its letters are smaller than on a screen by a fifth."""

_STYLE: Any = {
    "figure.facecolor": "white",
    "font.family": ["DejaVu Sans"],  # comes with matplotlib
    "font.size": 11.5,
    "text.color": INK,
    "text.parse_math": False,  # names from data are text, and powers of ten have digits of their own
    "axes.edgecolor": AXIS,
    "axes.labelcolor": SOFT,
    "axes.labelsize": 11.5,
    "axes.titlesize": 11.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 0.8,
    "xtick.color": AXIS,
    "ytick.color": AXIS,
    "xtick.labelcolor": SOFT,
    "ytick.labelcolor": SOFT,
    "xtick.labelsize": 11.0,
    "ytick.labelsize": 11.0,
    "legend.frameon": False,
    "legend.fontsize": 11.0,
    "legend.columnspacing": 1.4,
    "legend.handlelength": 1.6,
    "lines.linewidth": 1.8,
    "lines.markersize": 4.5,
    "svg.hashsalt": "dfeas",  # the same figure, the same bytes
    "svg.fonttype": "path",
}
_ON_A_PAGE: Any = {"figure.facecolor": "none", "axes.facecolor": "none", "svg.fonttype": "none"}
"""The page has its own ground and letters."""


@contextmanager
def style(*, on_a_page: bool = False) -> Iterator[None]:
    """Figures made and drawn inside look alike, whatever the user's matplotlibrc says."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update({**_STYLE, **(_ON_A_PAGE if on_a_page else {})})
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


def drawing(figure: Figure, alt: str) -> Html:
    """The figure as a part of a page, with a text for those who do not see it; to be used where the style is."""
    file = io.BytesIO()
    with warnings.catch_warnings():
        # names from data may use letters that the font does not have: their width is a guess
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return inline(file.getvalue(), alt, COLOURS)


def decades(axis: Axis, sign: int = 1) -> None:
    """Label a logarithmic axis by powers of ten, or by plain numbers where these are few and short."""

    def text(value: float, _: object) -> str:
        low, high = sorted(math.log10(max(abs(end), 1e-300)) for end in axis.get_view_interval())
        exponent = math.floor(math.log10(value) + 1e-9)
        digit = round(value / 10.0**exponent)
        if digit != 1 and (high - low > FEW_DECADES or digit not in (2, 5)):
            return ""
        times = f"{digit}·" if digit != 1 else ""
        shown = f"{value:,g}" if low >= -3.5 and high <= 4 else f"{times}{power_of_ten(exponent)}"
        return f"−{shown}" if sign < 0 else shown

    axis.set_major_formatter(FuncFormatter(text))
    axis.set_minor_formatter(FuncFormatter(text))


def logarithmic(axes: Axes, values: Sequence[float] | NDArray[np.float64], sign: int = 1) -> None:
    """A logarithmic scale with room around the values, and at least a decade of it."""
    axes.set_yscale("log")
    held = np.maximum(np.asarray(values, np.float64), FLOOR)
    low, high = float(held.min()), float(held.max())
    if high < 10 * low:
        middle = math.sqrt(low * high)
        low, high = middle / 3.2, middle * 3.2
    axes.set_ylim(low / 1.6, high * 1.6)
    decades(axes.yaxis, sign)


def count_label(value: float) -> str:
    """A count on a logarithmic axis."""
    return f"{value:,.0f}" if value < 1_000_000 else power_of_ten(round(math.log10(value)))


def plain(text: str) -> str:
    """Text from data, as it is shown in a terminal, cut where it is long."""
    text = visible(text)
    return text if len(text) <= 40 else text[:39] + "…"


Floats = NDArray[np.float64]

BARS = 120
"""More passes than these are drawn as means of some consecutive ones."""

DOTS = 40
"""Up to so many passes each one gets a dot."""


@dataclass(frozen=True)
class Curve:
    """One end of a bracket."""

    label: str
    x: Floats
    margin: Floats
    colour: str
    dash: str = "-"
    proved: float | None = None  # what the checker proved in the end


def bracket(curves: Sequence[Curve], x_label: str, eps: Sequence[float]) -> Figure:
    """Margins on a logarithmic scale: the positive ones above, the negative ones, if there are any, below."""
    values = np.concatenate([curve.margin for curve in curves])
    has_negative = bool((values < 0).any())
    figure = new_figure(WIDTH, 4.4 if has_negative else 3.2)
    if has_negative:
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    else:
        above = below = figure.subplots()
    for curve in curves:
        _draw(above, curve, np.maximum(curve.margin, FLOOR), curve.margin >= 0)
        if has_negative:
            _draw(below, curve, np.maximum(-curve.margin, FLOOR), curve.margin < 0)
        if curve.proved is not None:
            at = above if curve.proved >= 0 else below
            place = curve.x[-1], max(abs(curve.proved), FLOOR)
            at.plot(*place, "D", ms=9, mfc="none", mec=curve.colour, mew=1.6, clip_on=False)
    for value in sorted(set(eps)):
        above.axhline(value, color=GREY, ls=":", lw=1.4, label=f"eps {value:g}")
    proved = [abs(c.proved) for c in curves if c.proved is not None and c.proved >= 0]
    logarithmic(above, [*values[values >= 0], *proved, *eps])
    above.set_ylabel("margin")
    if has_negative:
        logarithmic(below, -values[values < 0], -1)
        low, high = below.get_ylim()
        below.set_ylim(min(high, LEAST_MARGIN), low)
        below.set_ylabel("margin below 0")
    course_axis(below, np.concatenate([curve.x for curve in curves]), whole="passes" in x_label)
    below.set_xlabel(x_label)
    legend(figure, above, 3)
    return figure


def _draw(axes: Axes, curve: Curve, height: Floats, shown: NDArray[np.bool_]) -> None:
    marker = "o" if len(curve.x) <= DOTS else ("o" if shown.sum() == 1 else "")
    axes.plot(curve.x, np.where(shown, height, np.nan), curve.dash, marker=marker, color=curve.colour, label=curve.label)


def course_axis(axes: Axes, x: Floats, *, whole: bool) -> None:
    """Linear from 0; logarithmic when some runs or the first passes would not be seen. Passes have ``whole`` numbers."""
    positive = x[x > 0]
    if len(positive) > 50 and positive.max() > 50 * positive.min():
        axes.set_xscale("log")
        axes.set_xlim(float(positive.min()) / 1.15, float(positive.max()) * 1.15)
        decades(axes.xaxis)
    else:
        axes.set_xlim(0, max(float(x.max()) * 1.06, 1e-6))
        if whole and x.max() >= 1:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def violations(records: Sequence[Record]) -> Figure:
    """Points on the wrong side after each pass that counted them."""
    counted = [(r.passes, r.violated) for r in records if r.violated is not None]
    x, points = (np.array(column, np.float64) for column in zip(*counted, strict=True))
    figure = new_figure(WIDTH, 3.0)
    axes = figure.subplots()
    axes.plot(x, points, "-o" if len(x) <= DOTS else "-", color=BLUE)
    axes.set_yscale("symlog", linthresh=1)  # so that 0 is seen
    axes.set_ylim(-0.15, max(1.0, float(points.max())) * 2)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: count_label(v)))
    course_axis(axes, x, whole=True)
    axes.set_xlabel("passes over the data")
    axes.set_ylabel("points on the wrong side")
    return figure


def times(records: Sequence[Record]) -> Figure:
    """Wall seconds of each read. Reading and scanning go on in several threads: their sum is cut down to the time it took."""
    wall = np.array([r.pass_seconds for r in records])
    engine = np.minimum(wall, [r.engine_seconds for r in records])
    read, scan = (np.array([getattr(r, name) for r in records]) for name in ("read_seconds", "scan_seconds"))
    share = np.divide(read, read + scan, out=np.zeros(len(records)), where=read + scan > 0)
    busy = wall - engine
    parts = {
        "reading": (busy * share, BLUE),
        "scanning": (busy * (1 - share), SKY),
        "engine": (engine, GREY),
        "method": (np.array([r.method_seconds for r in records]), ORANGE),
    }
    group = -(-len(records) // BARS)
    edges = np.append(np.arange(0, len(records), group), len(records))
    figure = new_figure(WIDTH, 3.0)
    axes = figure.subplots()
    base = np.zeros(len(edges) - 1)
    for label, (seconds, colour) in parts.items():
        mean = np.add.reduceat(seconds, edges[:-1]) / np.diff(edges)
        width = np.diff(edges) * (0.8 if len(edges) <= DOTS else 1.0)
        centre = (edges[:-1] + edges[1:] + 1) / 2
        axes.bar(centre, mean, width, base, color=colour, label=label, linewidth=0)
        base = base + mean
    axes.set_ylim(0, max(float(base.max()) * 1.08, 1e-6))
    axes.set_xlim(0.4 - (len(records) == 1), len(records) + 0.6 + (len(records) == 1))
    axes.xaxis.set_major_locator(FixedLocator([1]) if len(records) == 1 else MaxNLocator(integer=True, min_n_ticks=1))
    axes.grid(False, axis="x")
    axes.set_xlabel("read" if group == 1 else f"read (each bar the mean of {group})")
    axes.set_ylabel("seconds")
    legend(figure, axes, 4)
    return figure


def upper_and_lower(records: Sequence[Record], x: str, proved: tuple[float, float] | None) -> list[Curve]:
    """Both ends of the bracket against ``passes`` or ``seconds``; values that are not finite leave a gap."""
    at = np.array([getattr(r, x) for r in records], np.float64)
    ends = (("upper bound", "margin_upper", BLUE), ("lower bound", "margin_lower", GREEN))
    return [
        Curve(label, at, _finite([getattr(r, name) for r in records]), colour, proved=None if proved is None else proved[i])
        for i, (label, name, colour) in zip((1, 0), ends, strict=True)
    ]


def overlay(runs: Mapping[str, Sequence[Record]], x: str) -> list[Curve]:
    """The brackets of several runs, by name: the upper end of each solid, the lower one dashed, in one colour."""
    curves = []
    for i, (name, records) in enumerate(runs.items()):
        at = np.array([getattr(r, x) for r in records], np.float64)
        label = " " + plain(name)  # matplotlib leaves out what begins with an underscore
        for end, dash, said in (("margin_upper", "-", label), ("margin_lower", "--", "")):
            curves.append(Curve(said, at, _finite([getattr(r, end) for r in records]), SERIES[i % len(SERIES)], dash))
    return curves


def _finite(values: Sequence[float]) -> Floats:
    """Values that are not finite as nan, which leaves a gap."""
    numbers = np.array(values, np.float64)
    return np.where(np.isfinite(numbers), numbers, np.nan)
