"""A figure of a path of soft margins: error and support against C."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dfeas.report.drawing import BLUE, GREY, ORANGE, legend, new_figure, style
from dfeas.store.placing import placed


def draw_path(values: dict[str, Any], out: Path) -> None:
    """Write an SVG of the path in the keys of a result of ``dfeas.soft_margin`` with several C."""
    whole = [fit for fit in values["fits"] if fit["fold"] is None]
    C = [fit["C"] for fit in whole]
    with style():
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
        with placed(out) as file:
            figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
