"""Figures of pages and for the caller: courses of runs, how far points are from a hyperplane, who conflicts, paths of C."""

from __future__ import annotations

import base64
import io
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from typing import Any, Literal

import numpy as np

from dfeas.data.storage.files import atomic_write
from dfeas.data.storage.places import Place
from dfeas.errors import UsageError, install, visible
from dfeas.linalg.points import Floats
from dfeas.passes.survey import LEAST, HistogramAnswer

try:
    import matplotlib as mpl
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.scale import SymmetricalLogScale
    from matplotlib.ticker import MaxNLocator, SymmetricalLogLocator
except ModuleNotFoundError:
    raise UsageError(f"a figure needs matplotlib: {install('report')}") from None

BLUE, ORANGE, GREEN, PINK, BLACK, RED, GREY = "#0072b2", "#8f7a00", "#00805d", "#b4558c", "#101010", "#cc5200", "#5f6b7a"
"""Colours that people with any kind of colour vision tell apart: those of Okabe and Ito (2008), some of them darker, so that
each stands out from white."""
SERIES = (BLUE, RED, GREEN, PINK, ORANGE, BLACK, GREY)
MARKERS = "os^DvPXp*"
"""Colours and dots of several runs, in order: after seven runs the same colour comes with another dot."""
_STYLE: Any = {
    "font.family": ["DejaVu Sans", "sans-serif"],  # the first comes with matplotlib
    "font.size": 11,
    "text.parse_math": False,  # names from data are text
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e7eb",
    "legend.frameon": False,
    "lines.markersize": 4.5,
    "svg.hashsalt": "dfeas",  # the same figure, the same bytes
    "svg.fonttype": "none",  # letters that the font does not have are those of who reads
}


@contextmanager
def style() -> Iterator[None]:
    """Figures made and drawn inside look alike, whatever the user's matplotlibrc says."""
    with mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)  # widths of such letters are guesses
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


def new_figure(width: float = 6.4, height: float = 3.4) -> Figure:
    """An empty figure, in inches."""
    return Figure(figsize=(width, height), layout="constrained")


def encode_figure(figure: Figure) -> str:
    """The figure as a URL that holds all of it: an image runs no scripts, and loads nothing."""
    file = io.BytesIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return "data:image/svg+xml;base64," + base64.b64encode(file.getvalue()).decode()


def draw_path(values: dict[str, Any], out: Place) -> None:
    """Write an SVG of the path in the keys of a result of ``dfeas.soft_margin`` with several C."""
    with style(), atomic_write(out) as file:
        draw_errors(values).savefig(file, format="svg", metadata={"Date": None, "Creator": None})


Curve = tuple[str, Sequence[float], Sequence[float], dict[str, Any]]
"""A name, passes, what was known after each of them, and how it looks."""


Passes = Sequence[Mapping[str, Any]]
"""What a run knew after each pass, with the keys of ``trace.jsonl``."""


AGAINST = {"passes": "passes over the data", "reads": "reads of the data", "seconds": "seconds"}
"""Keys of a trace that figures go along."""


def plot_traces(runs: Mapping[str, Passes], ax: Axes | None, gap: bool = False, against: str = "passes") -> Axes:
    """Draw what runs knew after each pass where the caller wants it, or in a figure of pyplot. Raises UsageError."""
    if against not in AGAINST:
        raise UsageError(f"against: expected {', '.join(AGAINST)}, got {against!r}")
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(layout="constrained")[1]
    if gap:
        draw_gaps(runs, against, ax)
    else:
        draw_brackets(runs, (), axes=ax, against=against)
    return ax


def draw_gaps(runs: Mapping[str, Passes], against: str, axes: Axes) -> Figure:
    """How far the ends of each run are from each other after each pass."""
    soft = any("objective" in next(iter(passes), {}) for passes in runs.values())
    upper, lower = ("objective", "lower") if soft else ("margin_upper", "margin_lower")
    curves: list[Curve] = []
    for colour, dot, (name, passes) in zip(cycle(SERIES), cycle(MARKERS), runs.items(), strict=False):
        above, below = (np.array([known[end] for known in passes], np.float64) for end in (upper, lower))
        look = {"color": colour, "marker": dot}
        curves.append((plain(name) if name else "", [known[against] for known in passes], (above - below).tolist(), look))
    return draw_course(curves, {}, f"{'objective' if soft else 'margin'}: upper - lower bound", axes, against)


def draw_course(
    curves: Sequence[Curve], asked: Mapping[str, float], ylabel: str, axes: Axes | None = None, against: str = "passes"
) -> Figure:
    """What runs knew after each pass, and what was asked for, on a scale of decades; what is not finite leaves a gap. The axes
    are those of a new figure where none are given.
    """
    figure, values = new_figure(), [*asked.values()]
    place = figure.subplots() if axes is None else axes
    for label, passes, known, look in curves:
        values += known
        heights = np.array(known, np.float64)
        heights[~np.isfinite(heights)] = np.nan
        # up to so many points of a curve each one gets a dot; a longer one has few
        dots = {"marker": "o", "markevery": None if len(passes) <= 40 else 0.1}
        place.plot(passes, heights, label=label, **{"color": BLUE, **dots, **look})
    for label, value in asked.items():
        place.axhline(value, color=GREY, linestyle=":", label=label)
    if against == "passes":
        place.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    lengths = [max(passes) for _, passes, _, _ in curves if passes] or [1]
    if max(lengths) > 10 * min(lengths):  # one run has many times as many as another
        _scale_by_decades(place, "x", [pass_ for _, passes, _, _ in curves for pass_ in passes])
        place.set_xlim(right=1.2 * max(lengths))
    _scale_by_decades(place, "y", values)
    place.set(xlabel=AGAINST[against], ylabel=ylabel)
    if axes is not None and (asked or any(label for label, *_ in curves)):
        axes.legend()
    return _add_legend(figure, place) if axes is None else figure


def draw_brackets(
    runs: Mapping[str, Passes],
    eps: Sequence[float],
    *,
    upper_only: bool = False,
    axes: Axes | None = None,
    against: str = "passes",
) -> Figure:
    """Both ends of what each run looks for after each pass: upper ones solid, lower ones dashed."""
    soft = any("objective" in next(iter(passes), {}) for passes in runs.values())
    ends = [("objective", "-", "objective"), ("lower", "--", "lower bound")]
    if not soft:
        ends = [("margin_upper", "-", "upper bound"), ("margin_lower", "--", "lower bound")]
    curves: list[Curve] = []
    for colour, dot, (name, passes) in zip(cycle(SERIES), cycle(MARKERS), runs.items(), strict=False):
        for place, (end, dash, text) in enumerate(ends[:1] if upper_only else ends):
            label = text if len(runs) == 1 else "" if place else plain(name)
            look = {"color": colour, "marker": dot, "linestyle": dash}
            curves.append((label, [known[against] for known in passes], [known[end] for known in passes], look))
    if len(runs) > 1 and not upper_only:
        curves += [(text, [], [], {"color": GREY, "marker": "", "linestyle": dash}) for _, dash, text in ends]
    asked = {f"eps {value:g}": value for value in sorted(set(eps))}
    return draw_course(curves, asked, "objective" if soft else "margin", axes, against)


def draw_margins(found: HistogramAnswer, classes: tuple[str, str], margin: float) -> Figure:
    """A histogram of the points of each class by their score, on a scale of decades; a margin above 0 is marked."""
    figure = new_figure()
    axes, used = figure.subplots(), np.flatnonzero(found.counts.any(axis=0))
    away = used[used != len(found.edges) // 2 - 1]  # not around zero
    least = _scale_by_decades(axes, "x", [*found.edges[away], *found.edges[away + 1], *[0.0][: len(used) - len(away)]])
    edges = np.where(np.abs(found.edges) > LEAST, found.edges, np.sign(found.edges) * least / 4)[used[0] : used[-1] + 2]
    for sign, colour, label in ((1, BLUE, "label +1"), (0, RED, "label -1")):
        called = "" if classes[sign] in ("+1", "-1", "1") else f" ({plain(classes[sign])})"
        counts = found.counts[sign, used[0] : used[-1] + 1]
        axes.stairs(counts, edges, fill=True, alpha=0.6, color=colour, label=label + called)
    if margin > 0:
        axes.axvline(margin, color="black", linestyle="--", label=f"margin {margin:.3g}")
    axes.set_yscale("symlog", linthresh=1)
    axes.set_ylim(0, 2 * int(found.counts.max()))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set(xlabel="signed distance of unit points from the hyperplane", ylabel="points")
    return _add_legend(figure, axes)


def draw_ranks(values: Floats, label: str, outliers: int = 0) -> Figure:
    """Scores or weights of a conflict in their order; the first ones may stand out."""
    shown = np.unique(np.geomspace(1, len(values), 2000).astype(np.int64)) - 1  # points of a certificate that are drawn
    figure = new_figure()
    axes = figure.subplots()
    for some, colour, text in ((shown[outliers:], BLUE, "points of the conflict"), (shown[:outliers], RED, "stands out")):
        if len(some):
            axes.plot(some + 1, values[some], "o", color=colour, label=text)
    axes.axhline(0, color=GREY)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set(xlabel="points of the conflict, in their order", ylabel=label)
    return _add_legend(figure, axes)


def draw_errors(values: dict[str, Any]) -> Figure:
    """Errors and support points of soft margins against C; to be used where the style is."""
    whole = [fit for fit in values["fits"] if fit["fold"] is None]
    C = [fit["C"] for fit in whole]
    figure = new_figure(height=4.4)
    above, below = figure.subplots(2, 1, sharex=True)
    above.plot(C, [100 * (fit["error"] or 0.0) for fit in whole], color=GREY, marker="o", label="of all points")
    tested = [entry for entry in values["validation"] if entry["error"] is not None]
    if tested:
        errors, spread = ([100 * (entry[name] or 0.0) for entry in tested] for name in ("error", "deviation"))
        prices = [entry["C"] for entry in tested]
        above.errorbar(prices, errors, spread, color=BLUE, marker="o", capsize=3, label="of points left out")
        above.axvline(values["C"], color=ORANGE, linestyle="--", label="chosen C")
    above.set_ylabel("error, %")
    below.plot(C, [fit["support"] for fit in whole], color=BLUE, marker="o")
    below.set(xlabel="C", ylabel="points at the margin\nor beyond it")
    _scale_by_decades(below, "x", C)
    return _add_legend(figure, above)


def plain(text: str) -> str:
    """Text from data, as it is shown in a terminal, cut where it is long; matplotlib leaves out what begins with _."""
    text = visible(text)
    return f" {text if len(text) <= 40 else text[:39] + '…'}"


def _scale_by_decades(axes: Axes, which: Literal["x", "y"], values: Sequence[float] | Floats) -> float:
    """Decades on those sides of zero where there are values; the axis ends at powers of ten, which have labels. Returns the
    least size that is in a decade; below it the axis is linear.
    """
    found = np.array(values, np.float64)
    found = found[np.isfinite(found)]
    # margins nearer to zero are drawn as if they were linear in it: decades down to 1e-300 would show nothing else
    floor = 1e-18
    positive, negative = found[found > floor], -found[found < -floor]
    sizes = np.concatenate([positive, negative])
    least = 10.0 ** math.floor(math.log10(sizes.min(initial=1.0)))
    above, below = (10.0 ** math.ceil(math.log10(side.max())) if side.size else 0.0 for side in (positive, negative))
    if not negative.size:
        above = max(above, 10 * least)
    low = least if found.min(initial=1.0) > floor else -below
    axis: Axis = axes.xaxis if which == "x" else axes.yaxis
    axes.set(**{f"{which}scale": SymmetricalLogScale(axis, linthresh=least), f"{which}lim": (low, above)})
    locator = axis.get_major_locator()
    assert isinstance(locator, SymmetricalLogLocator), "that of the scale"
    locator.set_params(numticks=7)
    axis.set_major_formatter("{x:g}")
    return least


def _add_legend(figure: Figure, axes: Axes) -> Figure:
    """A legend above everything, if there is anything to name."""
    handles, labels = axes.get_legend_handles_labels()
    if labels:
        for columns in (4, 3, 2, 1):
            legend = figure.legend(handles, labels, loc="outside upper left", ncols=columns)
            if columns == 1 or legend.get_window_extent().width <= figure.bbox.width:
                break
            legend.remove()
    return figure
