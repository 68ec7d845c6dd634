"""RAND health insurance: may a Poisson regression of visits be estimated, as rare levels become rarer?

python scripts/gallery/survey_counts.py [PICTURE]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import statsmodels.api as sm

import dfeas

BLUE, RED = "#2a6fbb", "#c0392b"
plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})

data = sm.datasets.randhie.load_pandas()
visits, X = data.endog.to_numpy(), data.exog
rng = np.random.default_rng(0)
sizes, shares = [20, 40, 80, 160, 320, 1280], []
for size in sizes:
    finite = 0
    for _ in range(10):
        rows = rng.choice(len(X), size, replace=False)
        finite += bool(dfeas.check_separation(X.iloc[rows], visits[rows], outcome="poisson").finite)
    shares.append(finite / 10)
whole = dfeas.check_separation(X, visits, outcome="poisson")
_, axis = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
axis.semilogx(sizes, 100 * np.array(shares), "o-", color=BLUE)
axis.axhline(100, color=RED, linewidth=0.5)
axis.set(
    xlabel="people in a random sample",
    ylabel="samples with finite estimates, %",
    title="Visits to a doctor, nine variables: ten samples of each size",
)
print(f"all {len(X)} people: {whole.kind}; of samples of {sizes[0]}: {100 * shares[0]:.0f} % have finite estimates")
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "survey_counts.png", dpi=180)
