"""Iris: one species can be separated from the others by a hyperplane, two cannot; the points that prove it.

python scripts/gallery/iris_planes.py [PICTURE]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

import dfeas

BLUE, GREY, ORANGE, RED = "#2a6fbb", "#9aa0a6", "#e08a1e", "#c0392b"
plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})

iris = load_iris()
X = np.ascontiguousarray(iris.data[:, 2:])  # length and width of petals
_, panels = plt.subplots(1, 2, sharey=True, figsize=(6.4, 3.8), layout="constrained")
for panel, (name, chosen) in zip(panels, {"setosa": X[:, 0] > 0, "versicolor": iris.target > 0}.items(), strict=True):
    points, label = X[chosen], iris.target_names[iris.target[chosen]] == name
    result = dfeas.solve(points, label)
    for side, colour in ((True, BLUE), (False, ORANGE)):
        panel.scatter(*points[label == side].T, s=14, color=colour, label=name if side else "others")
    if result.verdict == "feasible" and result.coef is not None:
        x = np.linspace(*panel.get_xlim(), 2)
        panel.plot(x, -(result.coef[0] * x + result.bias) / result.coef[1], color=GREY)
        panel.set_ylim(0, 2.7)
    if result.conflicts:
        panel.scatter(
            *points[[each["point"] for each in result.conflicts]].T, s=70, facecolor="none", edgecolor=RED, label="conflict"
        )
    panel.set(title=f"{name}: {result.verdict} ({result.proof})", xlabel="length of petals in cm")
    panel.legend(loc="lower right")
    print(f"{name}: {result.verdict}, {len(result.conflicts)} points in conflict")
panels[0].set_ylabel("width of petals in cm")
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "iris_planes.png", dpi=180)
