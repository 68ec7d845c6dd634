"""US macroeconomy: is a vector autoregression stable? Lyapunov's matrix inequalities, with a proof either way.

python scripts/gallery/macro_stability.py [PICTURE]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import statsmodels.api as sm
from matplotlib.patches import Circle

import dfeas

BLUE, GREY, ORANGE = "#2a6fbb", "#9aa0a6", "#e08a1e"
plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})

table = sm.datasets.macrodata.load_pandas().data[["realgdp", "realcons", "realinv"]]
growth = np.diff(np.log(table.to_numpy()), axis=0)
growth -= growth.mean(axis=0)
A = np.linalg.lstsq(growth[:-1], growth[1:], rcond=None)[0].T
pairs = [(i, j) for i in range(3) for j in range(i + 1)]
basis = np.zeros((len(pairs), 3, 3))
for k, (i, j) in enumerate(pairs):
    basis[k, i, j] = basis[k, j, i] = 1


def lyapunov(A: np.ndarray) -> dfeas.Result:
    """Whether some P has P and P - A'PA positive definite, by a margin above 1e-6."""
    rows = np.vstack([dfeas.svec(basis).T, dfeas.svec(basis - A.T @ basis @ A).T])
    return dfeas.solve(dfeas.from_cone_rows(rows, {"s": [3, 3]}), eps=1e-6)


_, (left, right) = plt.subplots(1, 2, figsize=(6.4, 3.8), layout="constrained")
left.add_patch(Circle((0, 0), 1, fill=False, color=GREY))
for scale, colour in ((1.0, BLUE), (2.5, ORANGE)):
    result, values = lyapunov(scale * A), np.linalg.eigvals(scale * A)
    left.scatter(values.real, values.imag, color=colour, label=f"{scale:g} A: {result.verdict}")
    steps = [np.linalg.norm(np.linalg.matrix_power(scale * A, t)) for t in range(13)]
    right.semilogy(steps, "o-", color=colour, markersize=3)
    print(f"{scale:g} A: {result.verdict} ({result.proof}), spectral radius {abs(values).max():.2f}")
left.set(aspect="equal", xlim=(-1.7, 1.7), ylim=(-1.7, 1.7), title="eigenvalues and the unit circle")
left.legend(loc="lower left")
right.set(xlabel="quarters", title="length of the powers")
plt.savefig(sys.argv[1] if len(sys.argv) > 1 else "macro_stability.png", dpi=180)
