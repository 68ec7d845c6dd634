"""Before a logistic regression: does the maximum of its likelihood exist, and if not, which column is to blame?

python scripts/example_logistic.py
"""

import numpy as np

import dfeas

rng = np.random.default_rng(0)
age = rng.normal(50, 10, 300)
ill = age + 15 * rng.standard_normal(300) > 55
rare = np.zeros(300)
rare[np.flatnonzero(ill)[:3]] = 1  # a rare exposure that only ill people had

for name, columns in (("age", [age]), ("age and rare exposure", [age, rare])):
    found = dfeas.check_separation(np.stack(columns, axis=1), ill)
    print(f"{name}: {found}")
