"""An error names what is asked for as it was asked: options on the command line, keyword arguments in Python."""

from pathlib import Path

import numpy as np
import pytest

import dfeas
from dfeas.errors import UsageError, keywords
from tests.typed import dfeas as typed


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("leave out --one-vs-rest and --also", "leave out one_vs_rest and also"),
        ("--eps 2.0: expected less", "eps=2.0: expected less"),
        ("--max-passes -1: expected at least 1", "max_passes=-1: expected at least 1"),
        ("raise --memory to --memory 400MB.", "raise memory to memory='400MB'."),
        ("as --positive 'b c', or", "as positive='b c', or"),
        ("with --label-column NAME; the", "with label_column='NAME'; the"),
        ("store them sparse: leave out --dense", "store them sparse: leave out sparse=False"),
        ("a file a--b.csv and a -- dash", "a file a--b.csv and a -- dash"),
    ],
)
def test_an_option_becomes_a_keyword_argument(text: str, asked: str) -> None:
    assert keywords(text) == asked
    assert str(UsageError(text)) == asked
    assert UsageError(text).typed == text


def test_the_same_mistake_in_both_languages(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "wards.npz", X=rng.standard_normal((60, 3)), y=np.repeat(["north", "south", "west"], 20))
    done = typed("ingest", "wards.npz", "wards.data", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = typed("solve", "wards.data", "--out", "run", cwd=tmp_path)
    assert done.returncode == 4
    assert "as --positive 'north', or ask for all with --one-vs-rest" in done.stderr
    with pytest.raises(dfeas.BadInputError, match="as positive='north', or ask for all with one_vs_rest"):
        dfeas.solve(tmp_path / "wards.data")
    done = typed("solve", "wards.data", "--positive", "nort", "--out", "run", cwd=tmp_path)
    assert (done.returncode, "did you mean north?" in done.stderr) == (4, True)
    with pytest.raises(dfeas.UsageError, match="max_passes=0: expected at least 1"):
        dfeas.solve(tmp_path / "wards.data", positive="west", max_passes=0)
    done = typed("solve", "wards.data", "--positive", "west", "--max-passes", 0, "--out", "run", cwd=tmp_path)
    assert "--max-passes 0: expected at least 1" in done.stderr


def test_what_is_near_to_a_file_or_a_column_that_there_is(tmp_path: Path) -> None:
    (tmp_path / "wards.csv").write_text("income,age,died\n41000,61,yes\n52000,44,no\n38000,70,yes\n")
    done = typed("ingest", "ward.csv", "wards.data", "--label-column", "died", cwd=tmp_path)
    assert (done.returncode, "did you mean wards.csv?" in done.stderr) == (4, True)
    done = typed("ingest", "wards.csv", "wards.data", "--label-column", "dead", cwd=tmp_path)
    assert (done.returncode, "did you mean died?" in done.stderr) == (4, True)
