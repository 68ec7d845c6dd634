"""Before a logistic regression: does the maximum of its likelihood exist, and if not, what is to blame and what helps?

python scripts/example_logistic.py
"""

import numpy as np
import pandas as pd

import dfeas

rng = np.random.default_rng(0)
age = rng.normal(50, 10, 300)
ill = age + 15 * rng.standard_normal(300) > 55
rare = np.isin(np.arange(300), np.flatnonzero(ill)[:3])  # an exposure that only ill people had
exposed = np.where(rare, "yes", "no")
visits = np.where(rare, 0, rng.poisson(1, 300))
people = pd.DataFrame({"age": age, "exposed": exposed})

print("ill by age:", dfeas.check_separation(people[["age"]], ill))
print("ill by age and exposure:", dfeas.check_separation(people, ill))
print("number of visits:", dfeas.check_separation(people, visits, outcome="poisson"))
