"""One wrong label among many points: dfeas proves that no hyperplane separates them, and names the points in conflict.

python scripts/example_mislabelled.py
"""

import numpy as np

import dfeas

rng = np.random.default_rng(0)
plane = rng.standard_normal(10)
X = rng.standard_normal((20_000, 10))
y = np.where(X @ plane > 0, "healthy", "ill")
wrong = int(np.abs(X @ plane).argmax())  # far from the plane: nobody's opinion can differ
y[wrong] = "ill" if y[wrong] == "healthy" else "healthy"

result = dfeas.solve(X, y)
print(f"{result.verdict} ({result.proof}): {len(result.conflicts)} points are in conflict")
suspect = result.conflicts[0]
print(f"the most suspect is point {suspect['point']}, labelled {suspect['label']}; the wrong one is {wrong}")

kept = np.arange(len(X)) != suspect["point"]
print(f"without it: {dfeas.solve(X[kept], y[kept]).verdict}")
