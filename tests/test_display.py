"""All answers are shown in three ways: on a line, as their commands print them, and as a table that quotes what data says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import chdir
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st

import dfeas
from dfeas.cli.info import SettingsHere
from dfeas.cli.outputs import run_status
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.display import BRIEF, LEAST_NAME, Displayed, Grid, Row, fold, lines
from dfeas.records import replace
from tests import typed
from tests.records import is_record, names_of

HOSTILE = "<b>&\x1b[31m"
SEEN = "<b>&\\x1b[31m"
RUNS: dict[str, tuple[str, ...]] = {
    "result": ("solve", "yes"),
    "conflict": ("solve", "no"),
    "unlabelled": ("solve", "bare", "--unlabelled"),
    "hard": ("solve", "yes", "--hard-margin"),
    "kind": ("solve", "no", "--separation"),
    "classes": ("solve", "three", "--one-vs-rest"),
    "race": ("race", "yes", "--methods", "perceptron,working-set"),
    "soft": ("svm", "no", "--C", "0.1,1", "--folds", "2"),
    "on-cones": ("solve", "q"),
}
ASKED = {"Instance", "Kernel"}
"""Classes of questions; all other public ones are answers, and errors."""


class Markup(HTMLParser):
    """Elements are closed as they were opened; tags, attributes and texts of all of them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str | None]] = set()
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.add(tag)
        self.attributes |= set(attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def printed(*words: Any, cwd: Path) -> str:
    done = typed.dfeas(*words, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Datasets with a feature and a class of a hostile name, and runs on them."""
    path = tmp_path_factory.mktemp("faces")
    rng = np.random.default_rng(0)
    centres = np.eye(3).repeat(20, axis=0)
    X = np.round((4 * centres + rng.standard_normal((60, 3)) / 4) * 64) / 64
    place = centres.argmax(axis=1)
    kinds = {"three": place, "yes": np.minimum(place, 1), "no": rng.permutation(np.minimum(place, 1))}
    for name, codes in kinds.items():
        frame = pd.DataFrame(X, columns=[HOSTILE, "b", "c"]).assign(kind=np.array(["a", HOSTILE, "z"])[codes])
        dfeas.ingest(frame, path / name, label_column="kind")
        frame.to_csv(path / f"{name}.csv", index=False)
    frame.assign(late=frame.kind).to_csv(path / "two.csv", index=False)
    zarr.save_array(path / "bare", np.abs(X) + 1 / 64)
    dfeas.ingest(dfeas.from_cone_rows(np.eye(3), {"q": [3]}), path / "q")
    for name, words in RUNS.items():
        (path / f"{name}.txt").write_text(printed(*words, "--out", name, "-q", cwd=path))
    return path


@pytest.fixture(scope="module")
def shown(room: Path) -> dict[str, tuple[Any, str]]:
    """Answers of all kinds, and what their commands printed of them."""
    found: dict[str, tuple[Any, str]] = {}

    def add(name: str, answer: Any, words: str = "", last: str = "") -> None:
        text = printed(*words.split(), cwd=room) if words else (room / f"{name}.txt").read_text()
        assert text.endswith(f"{last}\n")
        found[name] = answer, text.removesuffix(f"{last}\n") if last else text

    np.save(room / "X.npy", [[1.0, 2.0], [-1.0, -1.0]])
    np.save(room / "right.npy", [1.0, -2.0])
    for name in RUNS:
        add(name, dfeas.load(room / name), last=f"results      {name}")
    with chdir(room):
        add("hull", dfeas.in_hull([0, 0, 0], "yes", out="again"), "in-hull 0,0,0 yes --out h -q", "results      h")
        system = dfeas.feasible("X.npy", "right.npy", out="system")
        add("feasible", system, "feasible X.npy right.npy --out f -q", "results      f")
        add("check", dfeas.verify_run("result"), "verify result")
        add("checks", dfeas.verify_run("classes"), "verify classes")
        add("scores", dfeas.predict("result", "yes"), "predict result yes s.npy", "written      s.npy")
        add("places", dfeas.predict("classes", "three"), "predict classes three p.npy", "written      p.npy")
        add("cones", dfeas.predict("on-cones", "q"), "predict on-cones q e.npy", "written      e.npy")
        add("compared", dfeas.compare(["result", "race"]), "compare result race")
        add("regression", dfeas.check_separation("no.csv", "kind"), "check-separation no.csv --label-column kind")
        two = dfeas.check_separation("two.csv", ["kind", "late"])
        add("outcomes", two, "check-separation two.csv --label-column kind,late")
        add("suspects", dfeas.suspects("no.csv", "kind"), "suspects no.csv --label-column kind")
        add("status", run_status("result"), "status result")
        add("settings", SettingsHere.find(), "info --settings")
        add("plan", dfeas.plan("yes"), "plan yes")
        add("info", dfeas.info("yes"), "info yes")
        header = open_source(Source(DataSpec("yes"))).header
        found["dataset"] = header, printed("info", "yes", cwd=room).removeprefix("data         yes\n")
        # what no command prints
        for answer in (
            dfeas.table("no.csv", "kind", columns="*"),
            dfeas.soft_margin_classes("three"),
            replace(run_status("result"), run=HOSTILE, out="out", task="processing"),
            dfeas.load("result").evidence,
            dfeas.firth([[0.0]] * 5 + [[1.0]] * 5, [0, 0, 0, 1, 1, 1, 1, 1, 1, 1]),
        ):
            found[type(answer).__name__] = answer, f"{answer}\n"
    return found


def answers(shown: dict[str, tuple[Any, str]]) -> list[Any]:
    return [answer for answer, _ in shown.values()]


def subclasses(kind: type) -> Iterator[type]:
    for each in kind.__subclasses__():
        yield each
        yield from subclasses(each)


def timeless(text: str) -> str:
    """Without the seconds of a run, and what was measured, which two have not in common."""
    return re.sub(r" +", " ", re.sub(r"[\d.]+(e[-+]?\d+)? (s|min|h|d|[kMG]?i?B)(/s)?", "#", text))


def test_every_public_answer_is_displayed_and_shown_here(shown: dict[str, tuple[Any, str]]) -> None:
    kinds = {each.__qualname__ for each in subclasses(Displayed) if not each.__subclasses__()}
    assert {type(answer).__qualname__ for answer in answers(shown)} == kinds
    public = {each for name in dfeas.__all__ if isinstance(each := getattr(dfeas, name), type)}
    others = {each.__name__ for each in public if not issubclass(each, Displayed | Exception)}
    assert others == ASKED


def test_an_answer_prints_what_its_command_prints(shown: dict[str, tuple[Any, str]]) -> None:
    for name, (answer, text) in shown.items():
        here, there = f"{answer}\n", text
        if name in ("hull", "plan", "feasible", "suspects"):  # each has run by itself
            here, there = timeless(here), timeless(there)
        assert here == there, name
        assert "\x1b" not in here


def test_a_repr_is_one_short_line(shown: dict[str, tuple[Any, str]]) -> None:
    for answer in answers(shown):
        text = repr(answer)
        assert text.startswith(f"<{type(answer).__name__} ")
        assert text.endswith(">")
        assert len(text) <= BRIEF
        assert text.isprintable(), text


def test_what_an_editor_offers_is_there_and_no_constant(shown: dict[str, tuple[Any, str]]) -> None:
    for answer in answers(shown):
        offered = {name for name in dir(answer) if not name.startswith("_")}
        kept = {name for name in (names_of(answer) if is_record(answer) else ()) if not name.startswith("_")}
        assert kept <= offered
        assert {name for name in offered if name.isupper()} <= kept
        for name in offered:
            getattr(answer, name)


def test_a_table_says_the_same_and_quotes_names(shown: dict[str, tuple[Any, str]]) -> None:
    hostile = 0
    for answer in answers(shown):
        markup = Markup(answer._repr_html_())
        assert (markup.tags, markup.attributes) == ({"pre"}, set())  # no colours: it may be dark
        assert "".join(markup.texts) == str(answer)
        hostile += SEEN in "".join(markup.texts)
    assert hostile >= 8  # classes, features, ids


def test_a_question_without_labels_says_so(room: Path, shown: dict[str, tuple[Any, str]]) -> None:
    said = "\nlabels       none: all points count as +1\n"
    assert [name for name, (_, text) in shown.items() if said in text] == ["unlabelled"]
    points = np.ones((4, 2))
    assert said in str(dfeas.solve(points, "all-positive"))
    assert said in str(dfeas.race(points, "all-positive", methods=["perceptron", "working-set"]))
    assert said in str(dfeas.separation(points, "all-positive"))


CELLS = st.text(st.characters(codec="ascii", exclude_categories=["Cc"], exclude_characters=" "), min_size=1, max_size=12)


@given(st.data(), st.integers(30, 120))
def test_a_grid_has_room_or_loses_spare_columns_and_the_ends_of_names(data: st.DataObject, columns: int) -> None:
    head = ["run", *(f"c{i}" for i in range(data.draw(st.integers(1, 8))))]
    names = st.text("abc", min_size=1, max_size=60)
    rows = [
        [data.draw(names), *(data.draw(CELLS) for _ in head[1:]), *data.draw(st.lists(names, max_size=1))]
        for _ in range(data.draw(st.integers(1, 4)))
    ]
    spare = data.draw(st.permutations(head[1:]))
    grid = Grid(head, rows, spare=spare)
    whole, fitted = grid.lines(), grid.lines(columns)
    assert [line.split() for line in whole] == [head, *rows]
    assert all(len(line) <= columns or len(line.split()) == 1 for line in fitted)
    kept = fitted[0].split()
    assert kept == [word for word in head if word in kept]
    assert set(head) - set(kept) == set(spare[: len(head) - len(kept)])
    if max(map(len, whole)) <= columns:
        assert fitted == whole
    if all(len(row[0]) <= LEAST_NAME for row in rows):
        cells = [[row[head.index(word)] for word in kept] for row in rows]
        assert [line.split()[: len(kept)] for line in fitted if not line.startswith("    ")][1:] == cells


def test_lines_have_controls_as_escapes_and_a_verdict_is_painted_alone() -> None:
    row = Row("verdict", f" of {HOSTILE}", "feasible")
    assert list(lines([row], paint=lambda text: f"[{text}]")) == [f"verdict      [feasible] of {SEEN}"]


@given(st.lists(st.text("ab1/.-", min_size=1, max_size=30), min_size=1, max_size=40), st.integers(20, 90), st.integers(0, 13))
def test_a_folded_text_has_its_words_whole(words: list[str], columns: int, indent: int) -> None:
    text = " ".join(words)
    assert fold(" " * indent + text, columns, indent)[0].startswith(" " * indent + words[0])
    folded = fold(text, columns, indent)
    assert " ".join(line.strip() for line in folded) == text
    assert all(len(line) <= columns or len(line.split()) == 1 for line in folded)
    assert all(line.startswith(" " * indent) for line in folded[1:])
    assert fold(text, float("inf")) == [text]


def test_a_number_stays_with_its_unit() -> None:
    assert fold("reads in all, 3.05 MiB, 0.98 s", 20) == ["reads in all,", "3.05 MiB, 0.98 s"]
    assert fold("a read of 12 MiB/s and 3 points", 14) == ["a read of", "12 MiB/s and 3", "points"]


def test_a_verdict_is_painted_where_its_line_is_folded() -> None:
    row = Row("verdict", " (proof: exact), and more is said of it", "infeasible")
    assert [*lines([row], 40, lambda text: f"[{text}]")] == [
        "verdict      [infeasible] (proof: exact),",
        "             and more is said of it",
    ]


def test_files_are_named_only_where_there_are_some(tmp_path: Path) -> None:
    points, labels = [[1.0, 0.0], [-3.0, 0.0]], [1, -1]
    for out in (None, tmp_path / "hard"):
        assert ("margin.json" in str(dfeas.hard_margin(points, labels, out=out))) == (out is not None)
    for out in (None, tmp_path / "hull"):
        assert ("certificate.npz" in str(dfeas.in_hull([5.0, 5.0], points, out=out))) == (out is not None)


@given(st.lists(st.text("abcdef()-.", min_size=1, max_size=30), min_size=1, max_size=30).map(" ".join), st.integers(46, 120))
def test_a_long_text_continues_below_its_first_line_between_words(text: str, columns: int) -> None:
    shown = list(lines([Row("verdict", f" {text}", "feasible")], columns, lambda word: f"<{word}>"))
    assert shown[0].startswith("verdict      <feasible>")
    assert all(len(line) - 2 * ("<feasible>" in line) <= columns for line in shown)
    assert " ".join(line[13:] for line in shown).replace("<feasible>", "feasible").split() == f"feasible {text}".split()
    assert list(lines([Row("verdict", f" {text}", "feasible")])) == [f"verdict      feasible {text}".rstrip()]
