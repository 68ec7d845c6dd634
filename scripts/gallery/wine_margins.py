"""Wine: the hyperplane of maximum margin of each cultivar, and how scaling changes it.

python scripts/gallery/wine_margins.py [PICTURE]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

import dfeas

BLUE, GREY, ORANGE = "#2a6fbb", "#9aa0a6", "#e08a1e"
plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})

wine = load_wine()
_, axis = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
widest = 0.0
ways = {"as stored": ([], GREY), "maxabs": (["maxabs"], BLUE), "std": (["std", "center"], ORANGE)}
for offset, (scale, (seen, colour)) in zip((-0.25, 0, 0.25), ways.items(), strict=True):
    found = dfeas.one_vs_rest(wine.data, wine.target, transform=seen, margin_tolerance=0.05)
    lower = np.array([each.margin_lower for each in found.results.values()])
    upper = np.array([each.margin_upper for each in found.results.values()])
    axis.bar(np.arange(3) + offset, lower, 0.25, color=colour, label=scale)
    widest = max(widest, (upper / lower).max() - 1)
    print(scale, *(f"{each:.2e}" for each in lower))
axis.set(
    yscale="log",
    xticks=range(3),
    xticklabels=wine.target_names,
    ylabel=f"maximum margin, to within {100 * widest:.0f} %",
    title="178 wines of 13 measurements, each cultivar against the rest",
)
axis.legend(title="features", ncols=3, loc="upper left")
axis.set_ylim(top=1)
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "wine_margins.png", dpi=180)
