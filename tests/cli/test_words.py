"""An error names what is asked for as it was asked: options on the command line, keyword arguments in Python."""

from pathlib import Path

import numpy as np
import pandas
import pytest

import dfeas
from dfeas.errors import UsageError, spell
from tests.typed import dfeas as typed


@pytest.mark.parametrize(
    ("text", "called", "typed"),
    [
        (
            f"leave out {spell('one_vs_rest')} and {spell('kernel')}",
            "leave out one_vs_rest and kernel",
            "leave out --one-vs-rest and --kernel",
        ),
        (f"{spell('eps', 2.0)}: expected less", "eps=2.0: expected less", "--eps 2.0: expected less"),
        (f"{spell('eps', np.float64(2))}: no", "eps=2.0: no", "--eps 2.0: no"),
        (f"{spell('memory', '400MB')}.", "memory='400MB'.", "--memory 400MB."),
        (f"as {spell('positive', 'b c')}, or", "as positive='b c', or", "as --positive 'b c', or"),
        (f"with {spell('label_column', 'NAME')}; the", "with label_column='NAME'; the", "with --label-column NAME; the"),
        (f"say {spell('header', False)}", "say header=False", "say --no-header"),
        (f"leave out {spell('sparse', False)}", "leave out sparse=False", "leave out --dense"),
        ("a file a--b.csv and --eps 2", "a file a--b.csv and --eps 2", "a file a--b.csv and --eps 2"),
        ("a name\x02 of a file", "a name of a file", "a name of a file"),
    ],
)
def test_an_argument_is_said_in_both_languages(text: str, called: str, typed: str) -> None:
    assert str(UsageError(text)) == called
    assert UsageError(text).as_typed == typed


def test_an_error_says_which_arguments_it_is_about() -> None:
    error = UsageError(f"{spell('sep', ';')} and {spell('label_column', 'NAME')} of data")
    assert error.arguments == {"sep", "label_column"}
    assert UsageError(error.about_labels()).as_typed == "--sep ';' and --label-column NAME of data"
    assert str(UsageError(error.about_labels())) == "sep=';' and y='NAME' of data"


def test_the_same_mistake_in_both_languages(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "wards.npz", X=rng.standard_normal((60, 3)), y=np.repeat(["north", "south", "west"], 20))
    done = typed("ingest", "wards.npz", "wards.data", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = typed("solve", "wards.data", "--out", "run", cwd=tmp_path)
    assert done.returncode == 4
    assert "as --positive north, or solve for all, by --one-vs-rest" in done.stderr
    with pytest.raises(dfeas.BadInputError, match="as positive='north', or solve for all, by one_vs_rest"):
        dfeas.solve(tmp_path / "wards.data")
    done = typed("solve", "wards.data", "--positive", "nort", "--out", "run", cwd=tmp_path)
    assert (done.returncode, "did you mean north?" in done.stderr) == (4, True)
    with pytest.raises(dfeas.UsageError, match="max_passes=0: expected at least 1"):
        dfeas.solve(tmp_path / "wards.data", positive="west", max_passes=0)
    done = typed("solve", "wards.data", "--positive", "west", "--max-passes", 0, "--out", "run", cwd=tmp_path)
    assert "--max-passes 0: expected at least 1" in done.stderr


def test_refusals_of_what_does_not_apply_have_the_words_of_the_caller(tmp_path: Path) -> None:
    path, data = tmp_path / "wards.csv", tmp_path / "wards.data"
    path.write_text("income,age,died\n41000,61,yes\n52000,44,no\n38000,70,yes\n")
    for option, flag in (
        ({"sparse": True}, "--sparse"),
        ({"sparse": False}, "--dense"),
        ({"zero_based": True}, "--zero-based"),
    ):
        with pytest.raises(dfeas.UsageError, match=f"^{next(iter(option))}.* is for .*; this is csv"):
            dfeas.ingest(path, data, label_column="died", **option)
        done = typed("ingest", path, data, "--label-column", "died", flag)
        assert (done.returncode, f"{flag} is for " in done.stderr) == (2, True), done.stderr
    X, y = np.eye(3), np.array([1, -1, 1])
    with pytest.raises(dfeas.UsageError, match=r"^transform is for the points themselves"):
        dfeas.solve(X, y, kernel="rbf", transform="std")
    with pytest.raises(dfeas.UsageError, match="reads points in their order, and classes share"):
        dfeas.soft_margin_classes(X, np.arange(3), method="sgd")
    with pytest.raises(dfeas.UsageError, match="after the bar"):
        dfeas.check_separation("y ~ a |", pandas.DataFrame({"y": [0, 1], "a": [1.0, 2.0]}))
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    done = typed("solve", tmp_path / "X.npy", "--labels", tmp_path / "y.npy", "--kernel", "rbf", "--scale", "std")
    assert (done.returncode, "--scale, --center or --no-normalize is for the points" in done.stderr) == (2, True), done.stderr


def test_what_is_near_to_a_file_or_a_column_that_there_is(tmp_path: Path) -> None:
    (tmp_path / "wards.csv").write_text("income,age,died\n41000,61,yes\n52000,44,no\n38000,70,yes\n")
    done = typed("ingest", "ward.csv", "wards.data", "--label-column", "died", cwd=tmp_path)
    assert (done.returncode, "did you mean wards.csv?" in done.stderr) == (4, True)
    done = typed("ingest", "wards.csv", "wards.data", "--label-column", "dead", cwd=tmp_path)
    assert (done.returncode, "did you mean died?" in done.stderr) == (4, True)
