"""Every iris gets the wrong label once: how often is it the first of the points that conflict?

python scripts/gallery/iris_wrong_label.py [PICTURE]
"""

import numpy as np
from figure import BLUE, GREY, ORANGE, axes, save
from sklearn.datasets import load_iris

import dfeas

iris = load_iris()
setosa = iris.target == 0
place = np.full(len(setosa), -1)  # in the list of conflicts; -1: still separable
for wrong in range(0, len(setosa), 3):
    label = setosa.copy()
    label[wrong] = not label[wrong]
    named = [each["point"] for each in dfeas.solve(iris.data, label).conflicts]
    place[wrong] = named.index(wrong) if wrong in named else -1
asked = np.arange(0, len(setosa), 3)
axis = axes()
for text, chosen, colour in (
    ("named first", place == 0, BLUE),
    ("named later", place > 0, ORANGE),
    ("not named", place < 0, GREY),
):
    chosen = asked[chosen[asked]]
    axis.scatter(iris.data[chosen, 2], iris.data[chosen, 1], s=30, color=colour, label=f"{text}: {len(chosen)}")
axis.set(
    xlabel="length of petals in cm",
    ylabel="width of sepals in cm",
    title="Each iris mislabelled once: where it stands in the proof",
)
axis.legend()
print(f"named first: {(place[asked] == 0).sum()} of {len(asked)}")
save()
