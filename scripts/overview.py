"""Draws the figures of README: two clouds and the hyperplane between them, a wrong label, and bounds on the margin.

python scripts/overview.py [FOLDER]
"""

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
import numpy as np

import dfeas
from dfeas.figures import follow_theme

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
BLUE, ORANGE, GREY, RED = "#3b82d0", "#e08a1e", "#7d848b", "#d64535"


def draw_points(X: Any, label: Any) -> Any:
    """The points of both classes."""
    panel = plt.subplots(figsize=(2.75, 2.9), layout="constrained")[1]
    for side, colour, name in ((True, BLUE, "label +1"), (False, ORANGE, "label −1")):
        panel.scatter(*X[label == side].T, s=8, color=colour, label=name)
    panel.set(xticks=[], yticks=[], xlim=(-4.6, 4.6), ylim=(-3.6, 3.6), xlabel="feature 1", ylabel="feature 2")
    return panel


def save(folder: Path, name: str) -> None:
    """The last figure."""
    path = folder / f"overview-{name}.svg"
    plt.savefig(path, metadata={"Date": None})
    plt.close()
    path.write_text(follow_theme(path.read_text()))
    print(path)


def main(folder: Path) -> None:
    """Solve, and draw what came."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((260, 2)) * (1.3, 1.0)
    score = X @ (0.6, 0.8) + 0.3
    X, score = X[abs(score) > 0.25], score[abs(score) > 0.25]
    y = score > 0
    result = dfeas.solve(X, y, margin_tolerance=0.01)
    assert result.coef is not None
    wrong = y.copy()
    wrong[far := int(score.argmax())] = False
    conflict = [each["point"] for each in dfeas.solve(X, wrong).conflicts]

    mpl.rcParams.update(
        {"savefig.transparent": True, "svg.hashsalt": "overview", "font.size": 9, "axes.titlesize": 9, "legend.fontsize": 8}
    )
    mpl.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})
    below = {"loc": "lower left", "ncols": 2, "handletextpad": 0.1, "columnspacing": 0.8, "borderpad": 0}
    panel = draw_points(X, y)
    x = np.array([-4.6, 4.6])
    panel.plot(x, -(result.coef[0] * x + result.bias) / result.coef[1], color=GREY)
    panel.set_title("feasible: a separating\nhyperplane")
    panel.legend(**below)
    save(folder, "feasible")

    panel = draw_points(X, wrong)
    panel.scatter(*X[conflict].T, s=90, facecolor="none", edgecolor=RED, label=f"conflict, {len(conflict)} points")
    arrow = {"arrowstyle": "-|>", "color": RED, "shrinkA": 1, "shrinkB": 6, "linewidth": 1.2}
    panel.annotate("wrong label", X[far], (-4.3, 3.0), arrowprops=arrow, color=RED, va="center")
    panel.set_title("infeasible: points that\ncontradict each other")
    panel.legend(**{**below, "ncols": 1}, handles=panel.collections[2:])
    save(folder, "infeasible")

    data, plane = rng.standard_normal((50_000, 20)), rng.standard_normal(20)
    score = data @ plane / np.linalg.norm(plane) / np.linalg.norm(data, axis=1)
    records: list[Any] = []
    data, side = data[abs(score) > 0.1], score[abs(score) > 0.1] > 0
    dfeas.solve(
        data,
        side,
        intercept=False,
        margin_tolerance=0.05,
        method="mirror-prox-one-pass",
        callback=lambda record: records.append(record) and False,
    )
    passes = [each.passes for each in records]
    panel = plt.subplots(figsize=(2.75, 2.9), layout="constrained")[1]
    panel.plot(passes, np.minimum.accumulate([each.margin_upper for each in records]), color=ORANGE, label="upper bound")
    panel.plot(passes, np.maximum.accumulate([each.margin_lower for each in records]), color=BLUE, label="lower bound")
    panel.axhline(0, color=GREY, linewidth=0.6)
    panel.annotate("separated above 0", (passes[-1], 0.01), ha="right", fontsize=8, color=GREY)
    panel.set(ylim=(-0.3, 0.6), xlim=(1, passes[-1]), xlabel="passes over the data", ylabel="margin")
    panel.set_title("bounds on the maximum\nmargin, after each pass")
    panel.legend()
    folder.mkdir(parents=True, exist_ok=True)
    save(folder, "margin")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
