"""Commands on a real terminal of 80 columns."""

import json
import os
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import ESCAPE, generated, typed
from tests.typed import apart, dfeas

VERDICT = re.compile(r"verdict +\x1b\[\d+m\x1b\[1m(\w+)\x1b\[0m")


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generated(tmp_path_factory.mktemp("terminal"), 30, 100_000, 0.003)


def test_a_run_takes_one_row_for_its_progress_however_long_it_is(room: Path, tmp_path: Path) -> None:
    words = ("--method", "perceptron", "--margin-tolerance", 1e-3, "--max-passes", 150)
    code, written, screen = typed("solve", "yes", "--out", tmp_path / "run", *words, cwd=room)
    assert code == 3
    rows = [row.rstrip() for row in re.split(r"[\r\n]", ESCAPE.sub("", written)) if row.startswith("pass ")]
    assert len(rows) >= 3
    assert max(map(len, rows)) < 80
    fixed = [row for row in screen.rows if row.strip()]
    assert not [row for row in fixed if row.startswith("pass ")]
    assert len(fixed) <= 18  # what stays, in lines of the terminal: notes, the result, and what to do next


def test_the_time_left_is_not_zero_while_a_margin_is_looked_for(tmp_path: Path) -> None:
    """It was, from the first separator on."""
    made = dfeas("generate", "planted", "data", "--features", 10, "--points", 2000, "--margin", 0.1, cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    words = ("--method", "mirror-prox", "--margin-tolerance", 1e-5, "--max-passes", 100)
    done = dfeas("solve", "data", "--out", "run", *words, "--json", cwd=tmp_path)
    assert (done.returncode, json.loads(done.stdout)["verdict"]) == (3, "feasible")
    assert "pass 100  margin +" in done.stderr
    assert "about 0 s left" not in done.stderr


def test_tables_of_answers_do_not_wrap(room: Path, tmp_path: Path) -> None:
    words = ("--methods", "perceptron,mirror-prox-one-pass,normalized-perceptron", "--max-passes", 2)
    assert dfeas("race", "yes", "--out", tmp_path / "a-race-of-three", *words, "-q", cwd=room).returncode == 3
    assert dfeas("svm", "yes", "--out", tmp_path / "a-soft-margin-of-two", "--C", 1, "-q", cwd=room).returncode == 0
    for name in ("compare a-race-of-three", "compare a-soft-margin-of-two", f"plan {room / 'yes'} --intercept"):
        whole = dfeas(*name.split(), cwd=tmp_path).stdout.splitlines()
        assert max(map(len, whole)) > 80, "there is something to leave out"
        _, written, _ = typed(*name.split(), cwd=tmp_path)
        table = _table(written, "method " if name.startswith("plan") else "run ")
        assert max(map(len, table)) < 80
        assert [row.split()[0] for row in table if row[0] != " "] == [
            row.split()[0] for row in _table("\n".join(whole), table[0][:4])
        ]
    _, written, _ = typed("resume", "a-race-of-three", "--max-passes", 3, "-q", cwd=tmp_path)
    table = _table(written, "run ")
    assert max(map(len, table)) < 80
    assert {"verdict", "margin", "lower", "upper"} <= set(table[0].split())


def _table(text: str, head: str) -> list[str]:
    """The rows from the headings on, up to a sentence."""
    rows = re.split(r"\r?\n\r?|\r", text)
    (first,) = (place for place, row in enumerate(rows) if row.startswith(head))
    after = (place for place, row in enumerate(rows) if place > first and (not row or " reads of " in row))
    return rows[first : next(after, None)]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data and finished runs with long names, and a table that does not say what it should."""
    folder = tmp_path_factory.mktemp("a-folder-whose-name-fills-a-line")
    generated(folder, 12, 4000, 0.02)
    (folder / "wards-of-the-north.csv").write_text("income,age,died\n" + "41000,61,1\n52000,44,0\n38000,70,1\n39000,71,0\n" * 9)
    for words in ("solve no --out run", "solve yes --out early --method perceptron --max-passes 1", "svm no --out soft"):
        assert dfeas(*words.split(), "-q", cwd=folder).returncode in (0, 3)
    return folder


COMMANDS = (
    "solve no --out new --force",
    "solve yes --method mirror-prox --max-passes 2 --out new --force",
    "solve yes --kernel rbf --scale std --center --out new --force",
    "suspects no",
    "status run",
    "resume early --max-passes 2",
    "resume run",
    "plan no",
    "race yes --methods perceptron,mirror-prox --max-passes 3 --out new --force",
    "svm no --C 0.1,1 --folds 2 --out new --force",
    "check-separation wards-of-the-north.csv --label-column died",
    "verify run",
    "info no",
    "solve there-is-no-such-file-of-points.parquet --label-column died",
    "solve no --memory 1MB",
)


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("words", COMMANDS)
def test_no_word_number_or_path_is_broken(words: str, columns: int, answers: Path) -> None:
    _, written, _ = typed(*words.split(), cwd=answers, columns=columns)
    rows = [row.rstrip() for row in re.split(r"[\r\n]", ESCAPE.sub("", written)) if row.strip()]
    assert rows
    too_long = [row for row in rows if len(row) >= columns and len(row.split()) > 1]
    assert not too_long, "a word that is longer than a line stands alone"
    apart = [pair for pair in pairwise(rows) if pair[0][-1].isdigit() and re.match(r" *(s|ms|min|[kM]iB)\b", pair[1])]
    assert not apart, "a number stays with its unit"


def test_the_last_line_at_a_limit_says_no_time_left(room: Path, tmp_path: Path) -> None:
    for limit in ("--max-passes 5", "--time-limit 2"):
        words = f"--method perceptron --margin-tolerance 1e-6 {limit} --force".split()
        done = dfeas("solve", "yes", "--out", tmp_path / "run", *words, cwd=room)
        assert done.returncode == 3
        last = [line for line in done.stderr.splitlines() if line.startswith("pass ")][-1]
        assert "left" not in last


def test_a_verdict_has_a_colour_on_a_terminal_only(room: Path, tmp_path: Path) -> None:
    for data, word, colour in (("yes", "feasible", "32"), ("no", "infeasible", "31")):
        code, written, _ = typed("solve", data, "--out", tmp_path / data, "-q", cwd=room)
        assert (code, VERDICT.findall(written)) == (0, [word])
        assert f"\x1b[{colour}m" in written
    _, written, _ = typed("solve", "yes", "--out", tmp_path / "a", "-q", cwd=room, NO_COLOR="1")
    assert "\x1b[" not in written
    assert "\x1b" not in apart("solve", "yes", "--out", tmp_path / "b", "-q", cwd=room).stdout


def test_colour_can_be_forced(room: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert VERDICT.findall(apart("solve", "yes", "--out", tmp_path / "run", cwd=room).stdout) == ["feasible"]


@pytest.mark.parametrize(
    ("words", "code"),
    [(("solve", "nowhere", "--out", "run"), 4), (("solve",), 2), (("svm", "x", "--tol", "a", "--out", "r"), 2)],
)
def test_an_error_is_json_for_who_asks_for_json(words: tuple[str, ...], code: int, tmp_path: Path) -> None:
    done = dfeas(*words, "--json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    said = json.loads(done.stderr.splitlines()[-1])
    assert said["exit_code"] == code
    plain = dfeas(*words, cwd=tmp_path).stderr.splitlines()[-1]
    assert plain == f"dfeas: error: {said['error']}"
    assert os.listdir(tmp_path) == []
