"""Draws the figure of the page on choosing a method: passes of all methods against the margin, as they were last recorded.

python scripts/passes.py [FIGURE]
"""

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt

from dfeas.figures import MARKERS, SERIES, follow_theme

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "benchmarks" / "results" / "method_passes.md"
FIGURE = ROOT / "docs" / "explanation" / "which_method.svg"
DECIDED = ("feasible", "infeasible", "eps-infeasible")


def read_record(text: str) -> dict[str, dict[str, float]]:
    """Passes until a verdict, by instance and method, as last recorded; infinite where a limit was reached first."""
    table: dict[str, dict[str, float]] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and len(cells) == 9 and cells[0] != "instance":
            table.setdefault(cells[0], {})[cells[1]] = float(cells[3]) if cells[2] in DECIDED else float("inf")
    return table


def main(figure: Path) -> None:
    """Read the record, and draw it."""
    table = read_record(RECORD.read_text())
    planted = {float(name.rpartition("margin ")[2]): passes for name, passes in table.items() if name.startswith("planted")}
    others = {name: passes for name, passes in table.items() if name.startswith(("halfspace 100", "one-flip"))}
    mpl.rcParams.update({"savefig.transparent": True, "svg.hashsalt": "passes", "font.size": 9, "legend.frameon": False})
    mpl.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})
    left, right = plt.subplots(1, 2, figsize=(8.6, 4.4), layout="constrained", gridspec_kw={"width_ratios": [3, 2]})[1]
    margins = sorted(planted)
    ranked = sorted(planted[margins[0]], key=lambda method: [planted[margin][method] for margin in margins])
    for place, method in enumerate(ranked):
        known = [(margin, planted[margin][method]) for margin in margins if planted[margin][method] < float("inf")]
        look = {"color": SERIES[place % 7], "marker": MARKERS[place % len(MARKERS)], "linestyle": ["-", "--", ":"][place // 7]}
        left.loglog(*zip(*known, strict=True), markersize=4, label=method, **look)
    left.set(xlabel="margin of planted points", ylabel="passes until they are separated")
    left.invert_xaxis()
    left.figure.legend(loc="outside upper left", ncols=4, fontsize=8)
    flips = next(passes for name, passes in others.items() if name.startswith("one-flip"))
    halves = next(passes for name, passes in others.items() if name.startswith("halfspace"))
    for place, method in enumerate(ranked):
        for passes, marker, colour in ((halves, "o", SERIES[0]), (flips, "x", SERIES[1])):
            if passes.get(method, float("inf")) < float("inf"):
                right.semilogx(passes[method], place, marker, color=colour)
    right.set(yticks=range(len(ranked)), yticklabels=ranked, xlabel="passes until a verdict", ylim=(len(ranked) - 0.5, -0.5))
    right.tick_params(axis="y", labelsize=7)
    right.grid(axis="y", alpha=0.3)
    kinds = enumerate([("o", "half-space"), ("x", "one flip")])
    handles = [right.plot([], [], mark, color=SERIES[place], label=label)[0] for place, (mark, label) in kinds]
    right.legend(handles=handles, loc="lower left")
    plt.savefig(figure, metadata={"Date": None})
    figure.write_text(follow_theme(figure.read_text()))
    print(figure)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FIGURE)
