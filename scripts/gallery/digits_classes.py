"""Handwritten digits: which of them can be told from all others by a hyperplane?

python scripts/gallery/digits_classes.py [PICTURE]
"""

import sys

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import dfeas

BLUE, RED = "#2a6fbb", "#c0392b"
plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})

digits = load_digits()
found = dfeas.one_vs_rest(digits.data, digits.target)
_, axis = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for digit, result in enumerate(found.results.values()):
    feasible = result.verdict == "feasible"
    axis.bar(digit, result.margin_upper if feasible else 0, color=BLUE, alpha=0.25, label="upper end" if digit == 0 else None)
    axis.bar(digit, max(0, result.margin_lower), color=BLUE, label="proved margin" if digit == 0 else None)
    if not feasible:
        axis.text(
            digit, 0.001, f"{result.verdict}\n{len(result.conflicts)} points", rotation=90, ha="center", va="bottom", color=RED
        )
axis.set(
    xticks=range(10),
    xlabel="digit against all others",
    ylabel="margin",
    title="1,797 images of 64 pixels, one read for all classes",
)
axis.legend(loc="upper right")
print("not separable:", *(name for name, result in found.results.items() if result.verdict != "feasible"))
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "digits_classes.png", dpi=180)
