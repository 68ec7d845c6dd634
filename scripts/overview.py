"""Draws the picture of README: two clouds and the plane between them, and the bracket of a run closing.

python scripts/overview.py [PICTURE]
"""

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
import numpy as np

import dfeas

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "overview.png"
BLUE, ORANGE, GREY, RED = "#2a6fbb", "#e08a1e", "#7d848b", "#c0392b"


def main(picture: Path) -> None:
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

    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})
    left, middle, right = plt.subplots(1, 3, figsize=(10, 3.1), layout="constrained")[1]
    for panel, label in ((left, y), (middle, wrong)):
        for side, colour in ((True, BLUE), (False, ORANGE)):
            panel.scatter(*X[label == side].T, s=9, color=colour)
        panel.plot(0, 0, "+", color="black", markersize=9)
        panel.annotate("origin", (0, 0), (0.15, -0.5), fontsize=7, bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5})
        panel.set(xticks=[], yticks=[], xlim=(-3.8, 3.8), ylim=(-3, 3), xlabel="feature 1", ylabel="feature 2")
    x = np.array([-3.8, 3.8])
    left.plot(x, -(result.coef[0] * x + result.bias) / result.coef[1], color=GREY)
    left.set_title("feasible: a hyperplane,\nproved on every point")
    middle.scatter(*X[conflict].T, s=90, facecolor="none", edgecolor=RED)
    middle.annotate("the wrong label", X[far], (-0.4, 2.6), arrowprops={"arrowstyle": "->", "color": GREY}, color=GREY)
    middle.set_title(f"infeasible: {len(conflict)} points\nthat contradict each other")

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
    right.axhspan(0, 1, color=BLUE, alpha=0.06)
    right.plot(passes, np.minimum.accumulate([each.margin_upper for each in records]), color=ORANGE, label="no margin is above")
    right.plot(
        passes, np.maximum.accumulate([each.margin_lower for each in records]), color=BLUE, label="some margin is at least"
    )
    right.axhline(0, color=GREY, linewidth=0.6)
    right.set(
        ylim=(-0.3, 0.6),
        ylabel="margin",
        xlim=(1, passes[-1]),
        xlabel="reads of the data",
        title="the bracket of a run: above 0\nthe points are separated",
    )
    right.legend()
    picture.parent.mkdir(parents=True, exist_ok=True)
    plt.savefig(picture, dpi=200, metadata={"Software": None})
    print(picture)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE)
