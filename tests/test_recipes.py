"""The recipes of docs/development, followed to the letter in a copy of the sources: types, names and laws hold afterwards.

A block of Python below ``<!-- file: PATH -->`` is that file, and a ``diff`` block below ``<!-- change: PATH -->`` says what
changes in a file: each run of its lines that were there stands there once, and what is to stand there comes in its place.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documentation import PROJECT

COPIED = ["dfeas", "tests", "docs", "scripts", "pyproject.toml", "README.md"]
RECIPES = ["add_method", "add_format"]
TESTS = [
    ["tests/run/checkpoint/test_names.py", "tests/test_layers.py", "-m", "not long"],
    ["tests/data/test_fvecs.py", "tests/run/test_frugal.py"],
    ["tests/engine/test_backward.py", "-k", "not methods"],
    ["tests/comparisons"],
    ["tests/test_signatures.py", "tests/test_gate.py", "-k", "names_that_editors or every_method"],
    [
        "tests/methods/test_conformance.py",
        "tests/engine/test_conformance.py",
        "-k",
        "worst and planted or OneThread and passes",
    ],
]
"""What the recipes say to run, and what holds names and layers."""


STEP = re.compile(r"<!-- (file|change): (\S+) -->\n(?:<!-- not run: .*\n)?```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""A block below what it is for, of which may be said why documentation does not run it."""


def follow(page: Path, root: Path) -> list[str]:
    """Do what a recipe says; the files that it touched."""
    touched = []
    for kind, name, text in STEP.findall(page.read_text()):
        path = root / name
        if kind == "file":
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        else:
            path.write_text(change(path.read_text(), text.splitlines()))
        touched.append(name)
    return touched


def change(text: str, lines: list[str]) -> str:
    """Carry out a block of a diff without places: lines that begin with a space or - are there, those with + are to be."""
    parts: list[list[str]] = []
    for before, line in zip(["+", *lines], lines, strict=False):  # a part ends where lines that were there follow new ones
        if before.startswith("+") and not line.startswith("+"):
            parts.append([])
        parts[-1].append(line)
    for part in parts:
        there, to_be = ("\n".join(line[1:] for line in part if not line.startswith(mark)) for mark in "+-")
        assert text.count(f"\n{there}\n") == 1, f"{there!r} stands there {text.count(there)} times"
        text = text.replace(f"\n{there}\n", f"\n{to_be}\n")
    return text


@pytest.mark.timeout(1200)
def test_recipes_work_to_the_letter(tmp_path: Path) -> None:
    for name in COPIED:
        source = PROJECT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "_build"))
        else:
            shutil.copy(source, tmp_path)
    pages = [PROJECT / "docs" / "development" / f"{recipe}.md" for recipe in RECIPES]
    touched = [name for page in pages for name in follow(page, tmp_path)]

    def python(*words: str) -> subprocess.CompletedProcess[str]:
        here = {**os.environ, "PYTHONPATH": str(tmp_path)}
        return subprocess.run([sys.executable, *words], cwd=tmp_path, env=here, capture_output=True, text=True, check=False)

    def run(*words: str) -> None:
        done = python("-m", *words)
        assert done.returncode == 0, done.stdout + done.stderr

    run("ruff", "check", *touched)
    run("ruff", "format", "--check", *touched)
    run("mypy")
    for tests in TESTS:
        run("pytest", "-q", "-p", "no:cacheprovider", *tests)
    shutil.rmtree(tmp_path / "dfeas" / "comparisons")
    gone = python("-c", "import dfeas; assert dfeas.solve([[1.0], [2.0]], [-1, 1]); dfeas.from_comparisons")
    assert "UsageError: this installation of dfeas has no comparisons" in gone.stderr
