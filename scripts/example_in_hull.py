"""Is a new point within what was seen before, in the convex hull of the points, or would a model extrapolate?

python scripts/example_in_hull.py
"""

import numpy as np

import dfeas

seen = np.random.default_rng(0).uniform(0, 1, (5000, 4))
for point in ([0.5, 0.4, 0.6, 0.5], [0.5, 0.4, 1.2, 0.5]):
    found = dfeas.in_hull(point, seen)
    if found.inside and found.support is not None and found.weights is not None:
        again = found.weights @ seen[found.support]
        print(f"{point} is inside: {len(found.support)} points make it, up to {np.abs(again - point).max():.1e}")
    elif found.coef is not None:
        print(f"{point} is outside: all points are on one side, {((seen - point) @ found.coef).min():.3g} away or more")
