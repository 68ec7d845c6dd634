"""A figure of a path of soft margins: error and support against C."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from dfeas.report.drawing import BLUE, GREY, ORANGE, legend, new_figure, style
from dfeas.store.placing import placed


def draw_path(values: dict[str, Any], out: Path) -> None:
    """Write an SVG of the path in the keys of a result of ``dfeas.soft_margin`` with several C."""
    with style(), placed(out) as file:
        path_figure(values).savefig(file, format="svg", metadata={"Date": None, "Creator": None})


def ends_figure(passes: Sequence[dict[str, Any]]) -> Figure:
    """Objective and lower bound after each pass, of the problem whose gap was the widest then."""
    figure = new_figure(6.4, 3.2)
    axes, known = figure.subplots(), [each for each in passes if each["objective"] is not None]
    x = [each["passes"] for each in known]
    axes.plot(x, [each["objective"] for each in known], color=ORANGE, marker="o", label="objective")
    axes.plot(x, [each["lower"] for each in known], color=BLUE, marker="o", label="minimum at least")
    axes.set_xlabel("passes over the data")
    legend(figure, axes, 2)
    return figure


def path_figure(values: dict[str, Any]) -> Figure:
    """Errors and support points against C; to be used where the style is."""
    whole = [fit for fit in values["fits"] if fit["fold"] is None]
    C = [fit["C"] for fit in whole]
    figure = new_figure(6.4, 4.4)
    above, below = figure.subplots(2, 1, sharex=True)
    above.plot(C, [100 * (fit["error"] or 0.0) for fit in whole], color=GREY, marker="o", label="of all points")
    checked = [entry for entry in values["validation"] if entry["error"] is not None]
    if checked:
        error, spread = (
            [100 * entry["error"] for entry in checked],
            [100 * (entry["deviation"] or 0.0) for entry in checked],
        )
        tested = [entry["C"] for entry in checked]
        above.errorbar(tested, error, spread, color=BLUE, marker="o", capsize=3, label="of points that were left out")
        above.axvline(values["C"], color=ORANGE, linestyle="--", label="chosen C")
    above.set_ylabel("error, %")
    below.plot(C, [fit["support"] for fit in whole], color=BLUE, marker="o")
    below.set_ylabel("points at the margin\nor beyond it")
    below.set_xlabel("C")
    below.set_xscale("log")
    legend(figure, above, 3)
    return figure
