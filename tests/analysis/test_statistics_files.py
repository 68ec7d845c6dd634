"""Tables of Stata and SPSS: the answer is that of the frame, of any number of rows at a time."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyreadstat
import pytest

import dfeas
from dfeas.data.ingest.tables import StatisticsColumns
from dfeas.data.storage.places import place

WRITERS = {"t.dta": pyreadstat.write_dta, "t.sav": pyreadstat.write_sav}
LABELS = {"ward": {1: "heart", 2: "lung", 3: "trauma"}}


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    ward = rng.integers(1, 4, 90)
    frame = pd.DataFrame({"age": rng.normal(50, 10, 90), "ward": ward, "sex": rng.choice(["f", "m"], 90)})
    return frame.assign(died=((rng.random(90) < 0.5) & (ward != 2)).astype(int))


@pytest.mark.parametrize("name", WRITERS)
def test_the_answer_is_that_of_the_frame_and_text_is_the_labels(name: str, tmp_path: Path) -> None:
    frame = table()
    WRITERS[name](frame, str(tmp_path / name), variable_value_labels=LABELS)
    coded = dfeas.check_separation(frame, "died")
    found = dfeas.check_separation(tmp_path / name, "died")
    assert [str(each) for each in found.estimates] == [str(each) for each in coded.estimates]
    assert found.notes == ["ward: numbers as stored, though values have labels"]
    labelled = dfeas.check_separation(tmp_path / name, "died", text="ward")
    named = dfeas.check_separation(frame.assign(ward=frame["ward"].map(LABELS["ward"])), "died")
    assert (labelled.levels, labelled.points) == (named.levels, named.points) == ({"ward": ["lung"]}, named.points)
    assert labelled.message == named.message
    assert dfeas.check_separation("died ~ age + C(ward)", tmp_path / name).points == named.points


@pytest.mark.parametrize("name", WRITERS)
def test_parts_are_the_rows_in_order_and_gaps_are_missing(name: str, tmp_path: Path) -> None:
    frame = table()
    frame.loc[7, "age"], frame.loc[11, "sex"] = np.nan, ""
    WRITERS[name](frame, str(tmp_path / name))
    for rows in (1, 7, 90, 1000):
        parts = [part.to_pandas() for part in StatisticsColumns(place(tmp_path / name)).batches(["sex", "age"], rows)]
        pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True)[["age"]], frame[["age"]])
        assert max(map(len, parts)) <= rows
    with pytest.raises(dfeas.BadInputError, match=r"age \(1, the first in row 7\), sex \(1, the first in row 11\)"):
        dfeas.check_separation(tmp_path / name, "died")
    assert dfeas.check_separation(tmp_path / name, "died", missing="drop").notes[0].startswith("2 of 90 rows")


def test_dates_damage_and_what_is_not_installed_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.dta"
    pyreadstat.write_dta(table().assign(born=pd.Timestamp("1950-01-01")), str(path))
    with pytest.raises(dfeas.BadInputError, match="column born holds dates or times"):
        dfeas.check_separation(path, "died")
    path.write_bytes(b"no table")
    with pytest.raises(dfeas.BadInputError, match="pyreadstat cannot read it"):
        dfeas.check_separation(path, "died")
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    with pytest.raises(dfeas.UsageError, match=r"pyreadstat, which is not installed: pip install .*pyreadstat>=1.3.7"):
        dfeas.check_separation(path, "died")
