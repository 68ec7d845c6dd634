"""Every iris gets the wrong label once: how often is it the first of the points that conflict?

python scripts/gallery/iris_wrong_label.py [PICTURE]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

import dfeas

BLUE, GREY, ORANGE = "#2a6fbb", "#9aa0a6", "#e08a1e"
plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})

iris = load_iris()
setosa = iris.target == 0
place = np.full(len(setosa), -1)  # in the list of conflicts; -1: still separable
for wrong in range(0, len(setosa), 3):
    label = setosa.copy()
    label[wrong] = not label[wrong]
    named = [each["point"] for each in dfeas.solve(iris.data, label).conflicts]
    place[wrong] = named.index(wrong) if wrong in named else -1
asked = np.arange(0, len(setosa), 3)
_, axis = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for text, chosen, colour in (
    ("named first", place == 0, BLUE),
    ("named later", place > 0, ORANGE),
    ("not named", place < 0, GREY),
):
    chosen = asked[chosen[asked]]
    if len(chosen):
        axis.scatter(iris.data[chosen, 2], iris.data[chosen, 1], s=30, color=colour, label=f"{text}: {len(chosen)}")
axis.set(
    xlabel="length of petals in cm",
    ylabel="width of sepals in cm",
    title="Each iris mislabelled once: where it stands in the proof",
)
axis.legend()
print(f"named first: {(place[asked] == 0).sum()} of {len(asked)}")
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "iris_wrong_label.png", dpi=180)
