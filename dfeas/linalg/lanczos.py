"""The largest singular value of a matrix that is known by its products, by Lanczos steps with full reorthogonalisation.

Golub and Van Loan, Matrix Computations (2013), chapter 10. The first vector is fixed, and nothing is drawn, so that the value
is the same each time: ARPACK, as SciPy has it, draws anew where it breaks down.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # loads its parts when they are used
from numpy.typing import NDArray

Floats = NDArray[np.float64]

STEPS = 300
"""At most; a value that is not accurate by then is too small by the part of the square that it is not."""
ACCURATE = 1e-12
"""Residual, over the square of the value, that is small enough."""
LOOKED = 8
"""Steps between two looks at the values of the tridiagonal matrix."""


def largest_singular(X: Any) -> float:
    """The largest singular value of X (d, m), an array or a sparse matrix."""
    m = X.shape[1]
    across = X.T
    steps = min(m, STEPS)
    basis = np.empty((steps, m))
    diagonal, beside = np.zeros(steps), np.zeros(steps)
    v: Floats = np.cos(np.arange(m) * 0.7) + 1.5  # no structure of the data is across to it
    v /= np.linalg.norm(v)
    value, done = 0.0, 0
    for i in range(steps):
        basis[i], done = v, i + 1
        w: Floats = np.asarray(across @ (X @ v))
        diagonal[i] = w @ v
        for _ in range(2):
            w -= basis[:done].T @ (basis[:done] @ w)
        beside[i] = np.linalg.norm(w)
        last = done == steps or beside[i] <= ACCURATE * diagonal[:done].max()
        if last or done % LOOKED == 0:
            found, vectors = scipy.linalg.eigh_tridiagonal(diagonal[:done], beside[:i], select="i", select_range=(i, i))
            value = float(found[0])
            if last or beside[i] * abs(vectors[-1, 0]) <= ACCURATE * value:
                break
        v = w / beside[i]
    return float(np.sqrt(max(0.0, value)))
