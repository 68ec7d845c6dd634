"""Breast cancer: five methods on the same reads, and how the bracket of each closes.

python scripts/gallery/cancer_race.py [PICTURE]
"""

from collections import defaultdict
from typing import Any

import numpy as np
from figure import axes, save
from sklearn.datasets import load_breast_cancer

import dfeas

METHODS = ["working-set", "mirror-prox-one-pass", "smooth-perceptron", "von-neumann-away", "normalized-perceptron"]
X, y = load_breast_cancer(return_X_y=True)
records: dict[str, list[Any]] = defaultdict(list)
found = dfeas.race(
    X[:, :20],
    y,
    methods=METHODS,
    transform=["std", "center"],
    to_the_end=True,
    max_passes=200,
    callback=lambda record: records[record.method].append(record) and False,
)
axis = axes()
for name, result in found.results.items():
    upper = np.minimum.accumulate([each.margin_upper for each in records[name]])
    axis.loglog([each.passes for each in records[name]], upper, label=f"{name}: {result.verdict}")
    print(f"{name}: {result.verdict} after {result.passes:.3g} passes, |Ax| <= {result.margin_upper:.2g}")
axis.set(
    xlabel="passes", ylabel="upper end of the bracket, |Ax|", title="569 cells, 20 measurements: no hyperplane separates them"
)
axis.set_ylim(bottom=5e-4)
axis.legend(loc="lower left")
save()
