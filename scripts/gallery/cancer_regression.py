"""Breast cancer: with all 30 measurements a logistic regression has no finite estimates, with ten it has. Proof, and picture.

python scripts/gallery/cancer_regression.py [PICTURE]
"""

import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression

import dfeas

BLUE, ORANGE = "#2a6fbb", "#e08a1e"
plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
scaled = (X - X.mean()) / X.std()
penalties = np.logspace(0, 8, 9)
_, axis = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
for m, colour in ((10, BLUE), (30, ORANGE)):
    found = dfeas.check_separation(X.iloc[:, :m], y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of iterations: the minimum runs away
        lengths = [
            np.linalg.norm(LogisticRegression(C=C, solver="newton-cholesky", max_iter=60).fit(scaled.iloc[:, :m], y).coef_)
            for C in penalties
        ]
    axis.loglog(penalties, lengths, "o-", color=colour, label=f"{m} measurements: {found.kind} ({found.proof})")
    print(f"{m} measurements: {found.kind}")
axis.set(
    xlabel="C of scikit-learn, one over the penalty",
    ylabel="length of the coefficients",
    title="Without a penalty, estimates are finite or run away",
)
axis.legend()
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "cancer_regression.png", dpi=180)
