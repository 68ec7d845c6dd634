"""What mypy says of public calls: types that come back, and mistakes that it finds, which an unused ignore would betray."""

from typing import assert_type

import dfeas

X = [[1.0, 2.0]]
assert_type(dfeas.solve(X, [1]), dfeas.Result)
assert_type(dfeas.one_vs_rest(X, [1]), dfeas.OneVsRest)
assert_type(dfeas.soft_margin(X, [1], C=2.0), dfeas.SoftMarginResult)
assert_type(dfeas.soft_margin_classes(X, [1], C=2.0), dfeas.SoftMarginClasses)
dfeas.solve(X, [1], transform="stdd")  # type: ignore[arg-type]
dfeas.solve(X, [1], intercpt=True)  # type: ignore[call-arg]
assert_type(dfeas.solve(X, [1]).verify(X, [1]).verdict, str)
X @ dfeas.solve(X, [1]).coef + dfeas.solve(X, [1]).bias  # of what may be None nothing needs to be asserted
if dfeas.solve(X, [1]).verdict == "feasible":
    dfeas.ingest(X, "data", y=[1], force=True, progress=lambda done, of: None)
dfeas.solve(X, [1], out="run", force="yes")  # type: ignore[arg-type]
dfeas.soft_margin(X, [1], loss="squared")  # type: ignore[arg-type]
