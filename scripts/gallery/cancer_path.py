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
path = dfeas.soft_margin(X, y, C=list(np.logspace(-3, 1, 10)), folds=5)
C = [each.C for each in path.validation]
whole = [each for each in path.fits if each.fold is None]
_, (left, right) = plt.subplots(1, 2, figsize=(6.4, 3.8), layout="constrained")
errors, deviations = ([100 * getattr(each, name) for each in path.validation] for name in ("error", "deviation"))
left.errorbar(C, errors, deviations, fmt="o-", color=BLUE, capsize=2, label="on points left out, ± standard error")
left.plot(C, [100 * each.error for each in whole], "s--", color=GREY, markersize=4, label="on the points of the fit")
left.set(xscale="log", xlabel="C", ylabel="error, %", ylim=(0, 10))
right.semilogx(C, [100 * each.support / len(X) for each in whole], "o-", color=ORANGE)
right.set(xlabel="C", ylabel="support vectors, % of all points", ylim=(0, 100))
for panel in (left, right):
    panel.axvline(path.C, color=GREY, linewidth=0.8, linestyle=":")
right.text(path.C, 0.9, f" chosen: C = {path.C:.2g}", transform=right.get_xaxis_transform())
left.legend(loc="upper right")
print(f"{len(path.fits)} fits in {path.reads:.0f} reads, each within {max(each.gap for each in path.fits):.1e} of its minimum")
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "cancer_path.png", dpi=180)
