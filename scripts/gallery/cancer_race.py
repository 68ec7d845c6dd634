"""Breast cancer: five methods on the same reads, and how the bracket of each closes.

python scripts/gallery/cancer_race.py [PICTURE]
"""

import sys
from collections import defaultdict
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

import dfeas

plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})

METHODS = ["working-set", "mirror-prox-one-pass", "smooth-perceptron", "von-neumann-away", "normalized-perceptron"]
X, y = load_breast_cancer(return_X_y=True)
records: dict[str, list[Any]] = defaultdict(list)
found = dfeas.race(
    X[:, :20],
    y,
    methods=METHODS,
    transform=["std", "center"],
    max_passes=200,
    callback=lambda record: records[record.method].append(record) and False,
)
_, axis = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for name, result in found.results.items():
    upper = np.minimum.accumulate([each.margin_upper for each in records[name]])
    axis.loglog([each.passes for each in records[name]], upper, label=f"{name}: {result.verdict}")
    print(f"{name}: {result.verdict} after {result.passes:.3g} passes, best margin <= {result.margin_upper:.2g}")
axis.set(
    xlabel="passes", ylabel="upper end of the bracket, |Ax|", title="569 cells, 20 measurements: no hyperplane separates them"
)
axis.set_ylim(bottom=5e-4)
axis.legend(loc="lower left")
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "cancer_race.png", dpi=180)
