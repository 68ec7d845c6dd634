"""Diabetes: which of the patients that a model has not seen lie outside of the hull of those it has seen?

python scripts/gallery/diabetes_hull.py [PICTURE]
"""

import numpy as np
from figure import BLUE, GREY, ORANGE, axes, save
from scipy.spatial import ConvexHull
from sklearn.datasets import load_diabetes

import dfeas

X = np.ascontiguousarray(load_diabetes(scaled=False).data[:, [2, 3]])  # body mass index, blood pressure
seen, fresh = X[:60], X[60:140]
inside = np.array([bool(dfeas.in_hull(point, seen).inside) for point in fresh])
axis = axes()
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
save()
