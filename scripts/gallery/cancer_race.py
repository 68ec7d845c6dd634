"""Breast cancer: five methods on the same reads, and how the bracket of each closes.

python scripts/gallery/cancer_race.py [PICTURE]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

import dfeas

plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})

METHODS = ["working-set", "mirror-prox-one-pass", "smooth-perceptron", "von-neumann-away", "normalized-perceptron"]
LOWEST = 5e-4
X, y = load_breast_cancer(return_X_y=True)
found = dfeas.race(
    X[:, :20],
    y,
    methods=METHODS,
    transform=["std", "center"],
    max_passes=200,
)
_, axis = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for name, result in found.results.items():
    assert result.trace is not None, "every run has one"
    upper = np.minimum.accumulate([known["margin_upper"] for known in result.trace])
    passes = [known["passes"] for known in result.trace]
    shown = np.maximum(upper, LOWEST)  # an |Ax| of zero, or nearly so, stands on the lower edge
    axis.loglog(
        passes,
        shown,
        marker="o",
        markevery=0.1 if len(passes) > 9 else 1,
        markersize=4,
        clip_on=False,
        label=f"{name}: {result.verdict}",
    )
    print(f"{name}: {result.verdict} after {result.passes:.3g} passes, best margin <= {result.margin_upper:.2g}")
axis.set(
    xlabel="passes", ylabel="upper end of the bracket, |Ax|", title="569 cells, 20 measurements: no hyperplane separates them"
)
axis.set_ylim(bottom=LOWEST)
axis.legend(loc="upper right")
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "cancer_race.png", dpi=180)
