"""Soft margins for several C, chosen by cross-validation, all values and folds on the same reads.

    python scripts/example_svm_path.py [FOLDER]

FOLDER gets the run, with path.svg where matplotlib is installed.
"""

import sys

import numpy as np

import dfeas

rng = np.random.default_rng(0)
X = rng.standard_normal((3000, 60)).astype(np.float32)
y = X[:, :5].sum(axis=1) + 3 * rng.standard_normal(3000) > 0
found = dfeas.soft_margin(X, y, C=[1e-4, 1e-3, 1e-2, 1e-1], folds=5, out=sys.argv[1] if len(sys.argv) > 1 else None)
for entry in found.validation:
    mark = "  <- chosen" if entry.C == found.C else ""
    print(f"C = {entry.C:g}: error {100 * entry.error:.1f} % +- {100 * entry.deviation:.1f} %{mark}")
widest = max(fit.gap for fit in found.fits)
print(f"{len(found.fits)} hyperplanes in {found.reads:.3g} reads, each within {widest:.1e} of its minimum")
