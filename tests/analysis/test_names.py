"""Columns and outcomes as people call them: by an integer, a tuple, a dot, and with numbers of Python in them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dfeas


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(50, 10, 60), "rare": np.arange(60) < 3, "died": rng.integers(0, 2, 60)})
    frame.loc[:2, "died"] = 1
    return frame


@pytest.mark.parametrize("names", [[0, 1, 2], [("a", 0), ("a", 1), ("b", 0)]])
def test_an_outcome_is_called_as_its_column_is(names: list[Any]) -> None:
    frame = table()
    given = frame.set_axis(pd.MultiIndex.from_tuples(names) if isinstance(names[0], tuple) else names, axis=1)
    found, plain = dfeas.check_separation(given, names[2]), dfeas.check_separation(frame, "died")
    assert (found.kind, found.points, found.columns) == (plain.kind, plain.points, [f"{names[1]}[True]"])
    solved = dfeas.solve(given.astype(float), names[2], max_passes=2)
    assert solved.verdict == dfeas.solve(frame[["age", "rare"]].astype(float), frame["died"], max_passes=2).verdict


def test_a_dot_stands_for_all_other_columns(tmp_path: Path) -> None:
    frame = table().assign(weight=1.0)
    frame.to_csv(tmp_path / "t.csv", index=False)
    named = dfeas.check_separation("died ~ age + rare", frame)
    for given in (frame, tmp_path / "t.csv"):
        found = dfeas.check_separation("died ~ .", given, weights="weight")
        assert [each.estimate for each in found.estimates] == [each.estimate for each in named.estimates]
        assert found.points == named.points
    assert [each.name for each in dfeas.check_separation("died ~ . - age - weight", frame).estimates][1:] == ["intercept"]


@pytest.mark.parametrize("kind", [float, Decimal])
def test_objects_that_are_numbers_are_numbers(kind: type) -> None:
    frame = table()
    held = frame.assign(age=frame["age"].map(kind).astype(object))
    for X in ("died ~ age + rare", None) if kind is float else (None,):
        asked = [dfeas.check_separation(*((each, "died") if X is None else (X, each))) for each in (held, frame)]
        assert [each.estimate for each in asked[0].estimates] == [each.estimate for each in asked[1].estimates]
    mixed = frame.assign(age=frame["age"].astype(object))
    mixed.loc[5, "age"] = "old"
    with pytest.raises(dfeas.BadInputError, match="column age holds float and str: make one type of it"):
        dfeas.check_separation(mixed, "died")
