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
