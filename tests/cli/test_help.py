"""What the help texts say, and whether what they show can be typed."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

import dfeas as dfeas_package
from dfeas.cli.command import Command
from dfeas.cli.main import SECTIONS, TOPICS, commands
from dfeas.settings import SETTINGS, variable
from tests.typed import apart, dfeas

NAMES = commands.list_commands(click.Context(commands))
MOST = 80
"""Columns of a terminal."""
UNTOLD = {"TEXT", "INTEGER", "FLOAT", "PATH", "FILENAME", "INTEGER RANGE"}
"""Metavars that say a type and not what is meant."""


def command(name: str) -> Command:
    found = commands.get_command(click.Context(commands), name)
    assert isinstance(found, Command)
    return found


def test_a_word_of_options_is_a_topic() -> None:
    """Each command that has the option is named, and no other."""
    said = dfeas("help", "weights").stdout.splitlines()
    at = said.index("--weights FILE")
    assert said[at + 1 : at + 3] == ["    A .npy file with a weight for each point.", "    of svm, submit"]
    assert any(line.startswith("--weights-column") for line in said)
    assert dfeas("help", "nothing").returncode == 2


def test_dfeas_alone_shows_what_there_is(tmp_path: Path) -> None:
    done = apart(cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == apart("--help", cwd=tmp_path).stdout == dfeas("help").stdout
    shown = done.stdout.splitlines()
    places = [shown.index(f"{heading}:") for heading in SECTIONS]
    assert places == sorted(places)
    for heading, names in SECTIONS.items():
        for row, name in enumerate(names, shown.index(f"{heading}:") + 1):
            assert shown[row].split()[0] == name


def test_the_page_has_the_commands_in_the_groups_of_the_help_text() -> None:
    page = (Path(dfeas_package.__file__).parents[1] / "docs" / "reference" / "command_line.md").read_text()
    groups = [part.partition("\n") for part in page.split("\n## Exit codes\n")[0].split("\n## ")[1:]]
    listed = {heading: re.findall(r":prog: dfeas (.+)", text) for heading, _, text in groups}
    assert listed == {heading: list(names) for heading, names in SECTIONS.items()}
    named = [
        f"dfeas.cli.{module}:{name.replace('-', '_')}" for names in SECTIONS.values() for name, (module, _) in names.items()
    ]
    assert re.findall(r"click:: (.+)", page) == named


@pytest.mark.parametrize("name", NAMES)
def test_a_command_is_said_in_the_list_as_in_its_own_help(name: str) -> None:
    summary = next(names[name][1] for names in SECTIONS.values() if name in names)
    assert (command(name).help or "").partition("\n\n")[0].replace("\n", " ") == summary


def test_each_topic_fits_a_terminal_and_all_settings_are_in_one() -> None:
    for topic in TOPICS:
        lines = dfeas("help", topic).stdout.splitlines()
        assert max(map(len, lines)) <= MOST + 10 * (topic == "completion"), topic
    assert all(f"  {variable(each)} " in dfeas("help", "environment").stdout for each in SETTINGS)


@pytest.mark.parametrize("name", ["", *NAMES])
def test_no_line_is_wider_than_a_terminal_and_no_summary_is_cut(name: str) -> None:
    shown = CliRunner().invoke(commands, [name, "--help"] if name else [], terminal_width=MOST).output
    texts = shown.partition("\nExamples:")[0].splitlines()
    assert max(map(len, texts)) <= MOST
    if not name:
        assert "..." not in shown.partition("Options:")[2]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_required_is_asked_for_by_its_name(name: str) -> None:
    types = [each.type for each in command(name).params if isinstance(each, click.Argument)]
    words = [each.choices[0] if isinstance(each, click.Choice) else "x" for each in types]
    for each in command(name).params:
        if isinstance(each, click.Option) and each.required:
            done = dfeas(name, *words)
            assert (done.returncode, f"Missing option '{each.opts[0]}'" in done.stderr) == (2, True)


def test_what_only_lists_commands_imports_none(tmp_path: Path) -> None:
    look = "import sys, dfeas.__main__\ntry: dfeas.__main__.main()\nfinally: print('numpy' in sys.modules)"
    for words, more in (
        (["--help"], {}),
        (["-V"], {}),
        ([], {"_DFEAS_COMPLETE": "bash_complete", "COMP_WORDS": "dfeas c", "COMP_CWORD": "1"}),
    ):
        done = subprocess.run(
            [sys.executable, "-c", look, *words], env=os.environ | more, cwd=tmp_path, capture_output=True, text=True
        )
        assert done.stdout.splitlines()[-1] == "False", done.stderr
        assert not more or "plain,check-separation" in done.stdout.splitlines()


@pytest.mark.parametrize("name", NAMES)
def test_each_command_has_two_examples_that_can_be_typed(name: str) -> None:
    assert len(command(name).examples) == 2 or name == "report"
    for example in command(name).examples:
        program, typed, *words = shlex.split(example)
        assert (program, typed) == ("dfeas", name)
        made = command(name).make_context(name, list(words), parent=click.Context(commands))
        assert not made.args


@pytest.mark.parametrize("name", NAMES)
def test_options_stand_under_headings_and_say_what_they_want(name: str) -> None:
    for param in command(name).params:
        if isinstance(param, click.Option) and name != "report":
            assert getattr(param, "heading", ""), param.name
            assert param.help
            names, _ = param.get_help_record(click.Context(command(name))) or ("", "")
            assert param.is_flag or not names.endswith(tuple(f" {word}" for word in UNTOLD)), param.name


def test_the_line_for_bash_completes_commands(tmp_path: Path, monkeypatch: Any) -> None:
    assert "_DFEAS_COMPLETE=bash_source dfeas" in dfeas("help", "completion").stdout
    monkeypatch.setenv("_DFEAS_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "dfeas so")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert CliRunner().invoke(commands, prog_name="dfeas").output.split() == ["plain,solve"]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("solv",), "did you mean solve?"),
        (("help", "sovle"), "did you mean solve?"),
        (("help", "complete"), "did you mean completion?"),
        (("solve", "x", "--out", "y", "--method", "mirorprox"), "did you mean mirror-prox?"),
        (("solve", "x", "--out", "y", "--kernel", "rfb"), "did you mean rbf?"),
        (("generate", "plant", "x", "--features", 2), "did you mean planted?"),
        (("race", "x", "--out", "y", "--methods", "perceptron,ispvm"), "did you mean ispvn?"),
        (("svm", "x", "--out", "y", "--loss", "hing"), "did you mean hinge?"),
    ],
)
def test_a_near_miss_is_named(words: tuple[Any, ...], wanted: str, tmp_path: Path) -> None:
    done = dfeas(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert wanted in done.stderr
    listed = done.stderr.rpartition("expected ")[2].partition(" (see")[0].split(", ")
    assert len(set(listed)) == len(listed)


VERBS = ("solve", "suspects", "svm", "predict", "plan", "ingest", "verify")


@pytest.mark.parametrize("verb", [*VERBS, "resume"])
@pytest.mark.parametrize(
    ("typed", "meant"),
    [("--label", "--label-column"), ("--target=y", "--label-column"), ("--drop", "--without"), ("--id", "--id-column")],
)
def test_an_option_of_another_tool_is_told_as_ours(verb: str, typed: str, meant: str) -> None:
    done = CliRunner().invoke(commands, [verb, "x", typed, "y"])
    assert done.exit_code == 2
    assert (f"Did you mean {meant}?" in done.output) == (verb in VERBS), "where the command has it"


@pytest.mark.parametrize("words", [("solve",), ("plan",), ("ingest", "--label-column", "y", "new")])
@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("parts/*.parquet", r"give the folder \S*parts: all .parquet files below it are one table"),
        ("*.parquet", r"give the folder \S+: "),
        ("/no/year=*/*.parquet", "give the folder /no: "),
        ("parts/*", r"give the folder \S*parts: "),
        ("parts/*.csv", "give one file"),
    ],
)
def test_a_pattern_is_answered_by_what_to_give(words: tuple[str, ...], pattern: str, said: str, tmp_path: Path) -> None:
    done = dfeas(words[0], *words[1:-1], pattern, *words[1:][-1:], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (4, "")
    assert re.search(f"no .parquet file matches, and patterns are expanded for these only; {said}", done.stderr), done.stderr
