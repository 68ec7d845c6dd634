"""Diabetes: which of the patients that a model has not seen lie outside of the hull of those it has seen?

python scripts/gallery/diabetes_hull.py [PICTURE]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial import ConvexHull
from sklearn.datasets import load_diabetes

import dfeas

BLUE, GREY, ORANGE = "#2a6fbb", "#9aa0a6", "#e08a1e"
plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})

X = np.ascontiguousarray(load_diabetes(scaled=False).data[:, [2, 3]])  # body mass index, blood pressure
seen, fresh = X[:60], X[60:140]
inside = np.array([bool(dfeas.in_hull(point, seen).inside) for point in fresh])
_, axis = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
axis.scatter(*seen.T, s=12, color=GREY, label=f"seen: {len(seen)}")
axis.fill(*seen[ConvexHull(seen).vertices].T, color=GREY, alpha=0.15)
for side, colour in ((True, BLUE), (False, ORANGE)):
    axis.scatter(
        *fresh[inside == side].T, s=22, color=colour, label=f"{'inside' if side else 'outside'}: {(inside == side).sum()}"
    )
axis.set(
    xlabel="body mass index", ylabel="blood pressure", title="A model extrapolates outside, which is proved for each point"
)
axis.legend()
print(f"{(~inside).sum()} of {len(fresh)} lie outside")
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "diabetes_hull.png", dpi=180)
