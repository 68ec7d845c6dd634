"""Errors are caught by who knows Python only, and mean what they say wherever a wider error is caught."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import dfeas


def test_errors_are_those_of_python_too(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no labels"):
        dfeas.solve(np.eye(3))
    with pytest.raises(ValueError, match="not finite"):
        dfeas.solve([[np.nan, 1.0], [1.0, 1.0]], [0, 1])
    dfeas.ingest(np.eye(4), tmp_path / "data", labels=[0, 1, 0, 1])
    (chunk,) = (
        (tmp_path / "data" / "X").glob("c*/0")
        if (tmp_path / "data" / "X" / "c").exists()
        else [path for path in (tmp_path / "data" / "X").rglob("*") if path.is_file() and path.suffix != ".json"][:1]
    )
    chunk.write_bytes(chunk.read_bytes()[:-1])
    with pytest.raises(OSError, match="bytes, expected"):
        dfeas.solve(tmp_path / "data")


@pytest.mark.parametrize("kind", [dfeas.UsageError, dfeas.BadInputError, dfeas.CorruptDataError])
def test_errors_travel(kind: type[Exception]) -> None:
    again = pickle.loads(pickle.dumps(kind("one line\x1b that says what to do")))
    assert type(again) is kind
    assert str(again) == "one line\\x1b that says what to do"


def test_commands_in_errors_can_be_typed_and_called(tmp_path: Path) -> None:
    (tmp_path / "two words.csv").write_text("1,x,3\n2,1,2\n")
    with pytest.raises(dfeas.UsageError) as caught:
        dfeas.solve(tmp_path / "two words.csv", "0")
    assert str(caught.value).endswith("two words.csv', 'two words.data')")
    assert caught.value.typed.endswith("two words.csv' 'two words.data'")
    with pytest.raises(dfeas.BadInputError, match=r"see dfeas ingest --help for other formats"):
        dfeas.solve(tmp_path)
