"""Wine: the hyperplane of maximum margin of each cultivar, and how scaling changes it.

python scripts/gallery/wine_margins.py [PICTURE]
"""

import numpy as np
from figure import BLUE, GREY, ORANGE, axes, save
from sklearn.datasets import load_wine

import dfeas

wine = load_wine()
axis = axes()
ways = {"as stored": ([], GREY), "maxabs": (["maxabs"], BLUE), "std": (["std", "center"], ORANGE)}
for offset, (scale, (seen, colour)) in zip((-0.25, 0, 0.25), ways.items(), strict=True):
    found = dfeas.one_vs_rest(wine.data, wine.target, transform=seen, margin_tolerance=0.05)
    lower = np.array([each.margin_lower for each in found.results.values()])
    upper = np.array([each.margin_upper for each in found.results.values()])
    axis.bar(np.arange(3) + offset, lower, 0.22, yerr=[0 * lower, upper - lower], color=colour, label=scale)
    print(scale, *(f"{each:.2e}" for each in lower))
axis.set(
    yscale="log",
    xticks=range(3),
    xticklabels=wine.target_names,
    ylabel="best margin",
    title="178 wines of 13 measurements, each cultivar against the rest",
)
axis.legend(title="scale")
save()
