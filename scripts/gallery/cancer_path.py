"""Breast cancer: a soft margin for ten values of C, five folds, all on the same reads.

python scripts/gallery/cancer_path.py [PICTURE]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

import dfeas

BLUE, GREY, ORANGE = "#2a6fbb", "#9aa0a6", "#e08a1e"
plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})

X, y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
path = dfeas.soft_margin(X, y, C=list(np.logspace(-4, 0.5, 10)), folds=5)
C = [each.C for each in path.validation]
_, (left, right) = plt.subplots(1, 2, figsize=(6.4, 3.8), layout="constrained")
left.errorbar(C, [100 * v.error for v in path.validation], [100 * v.deviation for v in path.validation], fmt="o-", color=BLUE)
left.axvline(path.C, color=GREY, linestyle="--", label=f"chosen: {path.C:.2g}")
left.set(xscale="log", xlabel="C", ylabel="error on points left out, %")
left.legend()
whole = [each for each in path.fits if each.fold is None]
right.loglog(C, [each.objective / each.lower - 1 for each in whole], "o-", color=ORANGE)
right.set(xlabel="C", ylabel="objective over its proved lower bound, less 1")
print(f"{len(path.fits)} fits in {path.reads:.0f} reads, each within {max(each.gap for each in path.fits):.1e} of its minimum")
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "cancer_path.png", dpi=180)
