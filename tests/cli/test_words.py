"""An error names what is asked for as it was asked: options on the command line, keyword arguments in Python."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
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


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three classes in a dataset, a table, and arrays."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    dfeas.ingest(rng.standard_normal((60, 3)), "wards.data", y=np.repeat(["north", "south", "west"], 20))
    Path("wards.csv").write_text("income,age,died\n41000,61,yes\n52000,44,no\n38000,70,yes\n")
    np.save("X.npy", np.eye(3))
    np.save("y.npy", [1, -1, 1])


TABLE = partial(dfeas.ingest, "wards.csv", "new.data")
BOTH: list[tuple[str, Callable[[], Any], str]] = [
    ("solve wards.data", lambda: dfeas.solve("wards.data"), "as positive='north', or solve for all, by one_vs_rest"),
    ("solve wards.data --positive nort", lambda: dfeas.solve("wards.data", positive="nort"), "did you mean north?"),
    ("solve wards.data --max-passes 0", lambda: dfeas.solve("wards.data", max_passes=0), "max_passes=0: expected at least 1"),
    ("ingest wards.csv new.data --label-column died --sparse", lambda: TABLE(label_column="died", sparse=True), "this is csv"),
    ("ingest wards.csv new.data --label-column died --dense", lambda: TABLE(label_column="died", sparse=False), "this is csv"),
    ("ingest wards.csv new.data --label-column dead", lambda: TABLE(label_column="dead"), "did you mean died?"),
    ("ingest ward.csv new.data", lambda: dfeas.ingest("ward.csv", "new.data"), "did you mean wards.csv?"),
    (
        "solve X.npy --labels y.npy --kernel rbf --no-normalize",
        lambda: dfeas.solve("X.npy", "y.npy", kernel="rbf", transform="lengths"),
        "leave out 'lengths'; transform='std' scales features",
    ),
]


@pytest.mark.usefixtures("room")
@pytest.mark.parametrize(("words", "call", "said"), BOTH)
def test_the_same_mistake_in_both_languages(words: str, call: Callable[[], Any], said: str) -> None:
    with pytest.raises(dfeas.DfeasError) as caught:
        call()
    assert said in str(caught.value)
    done = typed(*words.split())
    assert (done.returncode, done.stderr) == (caught.value.exit_code, f"dfeas: error: {caught.value.as_typed}\n")
