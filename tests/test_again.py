"""Tests of clusters that fail once are run again, as ``scripts/test`` runs them, and no other test is."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TINY = """
from pathlib import Path
import pytest

def count(name):
    path = Path(__file__).with_name(name)
    path.write_text(path.read_text() + "." if path.exists() else ".")
    return len(path.read_text())

def test_passes():
    pass

@pytest.mark.cluster
def test_fails_once():
    assert count("once") > 1, "a worker was late"

@pytest.fixture
def late():
    assert count("late") > 1

@pytest.mark.cluster
def test_begins_late(late):
    pass

@pytest.mark.cluster
def test_fails_always():
    assert count("always") < 0

@pytest.mark.cluster
def test_fails_twice():
    assert count("twice") > 2

def test_has_no_cluster():
    assert count("plain") > 1
"""
FLAKY = ["test_fails_once", "test_begins_late"]


def run(folder: Path, chosen: str, *words: str) -> tuple[int, str, str]:
    """Exit code, the last line, and all that was said."""
    (folder / "test_tiny.py").write_text(TINY)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = cluster\naddopts = -ra\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.again", *words, "-k", chosen, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()[-1].strip("= "), done.stdout


@pytest.mark.parametrize("words", [(), ("-n", "2")])
def test_what_fails_once_has_passed(words: tuple[str, ...], tmp_path: Path) -> None:
    code, last, said = run(tmp_path, "once or late or passes", *words)
    assert (code, last[:8]) == (0, "3 passed")
    assert "failed" not in last
    assert sorted(re.findall(r"^FLAKY test_tiny.py::(\w+): ", said, re.MULTILINE)) == sorted(FLAKY)
    assert "a worker was late" in said
    assert not re.search("^(FAILED|ERROR)", said, re.MULTILINE)
    assert (tmp_path / "once").read_text() == "...."


def test_what_fails_once_more_has_failed(tmp_path: Path) -> None:
    code, last, said = run(tmp_path, "not late")
    assert (code, last.split(", ")[:2]) == (1, ["3 failed", "2 passed"])
    assert re.findall(r"^FLAKY test_tiny.py::(\w+)", said, re.MULTILINE) == ["test_fails_once"]
    assert set(re.findall(r"^FAILED \S*test_tiny.py::(\w+)", said, re.MULTILINE)) == {
        *("test_fails_always", "test_fails_twice", "test_has_no_cluster"),
    }
    assert (tmp_path / "always").read_text() == ".."
    assert (tmp_path / "plain").read_text() == ".", "a test that is none of clusters is never run again"


def test_the_script_and_the_workflow_run_tests_so() -> None:
    for name in ("scripts/test", "scripts/test_others", ".github/workflows/ci.yml"):
        calls = re.findall(r"-m pytest\b.*", (ROOT / name).read_text())
        assert calls
        assert all(call.startswith("-m pytest -p tests.again ") for call in calls), name
