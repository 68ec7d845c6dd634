"""Several outcomes of one table: what is said of each is what a call about it alone says."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dfeas
from dfeas.analysis.check_separation import Separations
from dfeas.analysis.regression.files import of_table, of_tables
from dfeas.analysis.regression.outcome import Asked
from dfeas.data.ingest.csv_file import CsvColumns
from dfeas.data.ingest.tables import ParquetColumns
from dfeas.errors import BadInputError
from dfeas.run.resources import Resources
from tests.analysis.making import FRAMES
from tests.typed import dfeas as typed


def stays(n: int = 120) -> pd.DataFrame:
    """Of outcomes one is separated by a ward, one overlaps, one misses values; and a weight."""
    rng = np.random.default_rng(3)
    ward, age = rng.choice(["heart", "lung", "trauma"], n), rng.integers(18, 95, n)
    died = (rng.random(n) < 0.4) & (ward != "lung")
    late = np.where(rng.random(n) < 0.2, None, np.where(rng.random(n) < 0.5, "yes", "no"))
    columns = {"age": age, "ward": ward, "died": died.astype(int), "readmitted": rng.integers(0, 2, n), "late": late}
    return pd.DataFrame({**columns, "weight": (np.arange(n) % 9 > 0).astype(float)})


SEVERAL = ["died", "readmitted", "late"]


def alone(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    return frame.drop(columns=[each for each in SEVERAL if each != name])


@pytest.mark.parametrize("kind", ["pandas", "arrow", "dask"])
def test_several_outcomes_are_those_of_single_calls(kind: str) -> None:
    frame, more = stays(), {"weights": "weight", "missing": "drop"}
    found = dfeas.check_separation(FRAMES[kind](frame), SEVERAL, **more)
    assert isinstance(found, Separations)
    assert list(found) == SEVERAL
    single = {name: dfeas.check_separation(FRAMES[kind](alone(frame, name)), name, **more) for name in SEVERAL}
    assert {name: each.to_json() for name, each in found.items()} == {name: each.to_json() for name, each in single.items()}
    assert [found[name].kind for name in SEVERAL] == ["quasi-complete", "overlap", "overlap"]
    told = found.to_frame()
    assert next(iter(told.columns if kind != "arrow" else told.column_names)) == "outcome"
    assert len(told) == sum(len(each.estimates) for each in single.values())


@pytest.mark.parametrize(("suffix", "memory"), [("csv", "1GB"), ("parquet", "24MB")])
def test_several_outcomes_of_a_file_are_read_once_where_memory_holds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, memory: str
) -> None:
    frame, path, reads = stays(400 if memory == "1GB" else 45_000), tmp_path / f"t.{suffix}", []
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    reader = CsvColumns if suffix == "csv" else ParquetColumns
    read = reader.batches
    monkeypatch.setattr(reader, "batches", lambda self, *args: (reads.append(1), read(self, *args))[1])
    found = of_tables(path, Asked(SEVERAL, missing="drop", weights="weight", resources=Resources(memory=memory)))
    assert len(reads) == 1 if memory == "1GB" else len(reads) > len(SEVERAL)
    single = {}
    for name in SEVERAL:
        left = [each for each in SEVERAL if each != name]
        asked = Asked(name, missing="drop", weights="weight", without=left, resources=Resources(memory=memory))
        single[name] = of_table(path, asked)
    assert {name: each.to_json() for name, each in found.items()} == {name: each.to_json() for name, each in single.items()}


def test_a_list_of_texts_that_are_no_columns_is_the_outcomes() -> None:
    frame = stays(8)[["age"]]
    assert dfeas.check_separation(frame, ["no", "yes"] * 4).classes == ("no", "yes")


def test_errors_name_the_outcome(tmp_path: Path) -> None:
    frame = stays()
    frame.to_csv(tmp_path / "t.csv", index=False)
    for table in (frame, tmp_path / "t.csv"):
        with pytest.raises(BadInputError, match=r"outcome late: .*miss"):
            dfeas.check_separation(table, ["readmitted", "late"])
        with pytest.raises(BadInputError, match="no column deid"):
            dfeas.check_separation(table, ["readmitted", "deid"])


def test_several_outcomes_as_they_are_typed(tmp_path: Path) -> None:
    frame = stays()
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = ("check-separation", "t.csv", "--without", "late")
    once = typed(*words, "--label-column", "died,readmitted", "--json", cwd=tmp_path)
    twice = typed(*words, "--label-column", "died", "--label-column", "readmitted", "--json", cwd=tmp_path)
    assert (once.returncode, once.stdout) == (0, twice.stdout)
    expected = dfeas.check_separation(frame.drop(columns="late"), ["died", "readmitted"])
    assert json.loads(once.stdout) == expected.to_json()
    shown = typed(*words, "--label-column", "died,readmitted", cwd=tmp_path).stdout
    assert shown.splitlines() == str(expected).splitlines()
    assert shown.splitlines()[1:3] == ["died        quasi-complete  ward[lung]", "readmitted  overlap         none"]
    frame.rename(columns={"died": "died,soon"}).to_csv(tmp_path / "t.csv", index=False)
    one = typed(*words, "--without", "readmitted", "--label-column", "died,soon", "--json", cwd=tmp_path)
    assert json.loads(one.stdout)["kind"] == "quasi-complete"
