"""What tests of analyses share: a table as each library has it, answers that are alike, runs that say something else."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.dataframe
import pandas as pd
import polars
import pyarrow

Edit = Callable[[dict[str, Any]], Any]
FRAMES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "nullable": lambda frame: frame.convert_dtypes(),
    "polars": polars.from_pandas,
    "arrow": lambda frame: pyarrow.Table.from_pandas(frame, preserve_index=False),
    "dask": lambda frame: dask.dataframe.from_pandas(frame, npartitions=3),
}
SAME = ("kind", "proof", "outcome", "classes", "columns", "direction", "intercept", "levels", "depending", "separated")


def require_alike(found: Any, by_hand: Any, rows: Any) -> None:
    """Both have found the same, or refused; points are among ``rows``."""
    if isinstance(by_hand, type):
        assert found is by_hand
        return
    assert {name: getattr(found, name) for name in SAME} == {name: getattr(by_hand, name) for name in SAME}
    assert found.points == [rows[place] for place in by_hand.points]
    assert [(each.text, each.finite) for each in found.advice] == [(each.text, each.finite) for each in by_hand.advice]


def forged(run: Path, edit: Edit, file: str = "result.json") -> Path:
    """A copy of a run, one of whose files says something else."""
    copy = run.with_name("forged")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(run, copy)
    values = json.loads((copy / file).read_text())
    edit(values)
    (copy / file).write_text(json.dumps(values))
    return copy
