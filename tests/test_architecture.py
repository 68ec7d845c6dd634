"""What docs/architecture.md says of rooms, and of the way of a run, is so."""

import re
import sys
from itertools import chain, groupby, pairwise
from keyword import iskeyword
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import dfeas
from dfeas.data.open import OPENERS

PAGE = (Path(__file__).parents[1] / "docs/architecture.md").read_text()
PACKAGE = Path(dfeas.__file__).parent
MOST = 12
"""Files of the way of a run: a reader has to find it again."""


def _section(title: str) -> str:
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


ROWS = [line.split("|")[1:3] for line in _section("Rooms, from the ground").splitlines() if line.startswith("| `")]


def _names(cell: str) -> list[str]:
    return [name for name in re.findall(r"`([a-z_.]+)`", cell) if not iskeyword(name)]


def _exists(path: Path) -> bool:
    return path.is_dir() or path.with_suffix(".py").is_file()


def test_the_table_names_the_rooms_that_there_are() -> None:
    rooms = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert sorted(name for cell, _ in ROWS for name in _names(cell)) == sorted(rooms - {"__init__", "__main__"})


@pytest.mark.parametrize(("cell", "text"), ROWS)
def test_what_is_said_to_be_in_a_room_is_there(cell: str, text: str) -> None:
    for name in _names(text):
        place = name.replace(".", "/")
        assert any(_exists(PACKAGE / room / place) for room in ("", *_names(cell))), name


LISTED = re.findall(r"^\d+\. `([\w/]+\.py)`", _section("The way of a run"), re.M)
UP = {("run/execute.py", "run/session.py"), ("engine/local.py", "engine/ranges.py"), ("engine/scan.py", "engine/local.py")}
"""Calls of listed files to one above them: the survey; who watches an engine, and how its threads share blocks out."""
X, LABELS = np.array([[-1000.0, 0.0], [1.0, 0.0], [2.0, 1.0]]), [-1, -1, 1]
"""The sum of these has one on its wrong side, so that a method has to scan them."""


def _files_on_the_stack(frame: FrameType | None) -> list[str]:
    """Files of dfeas whose functions are under way, the verb's first, each as often as the way comes to it from another one."""
    files: list[str] = []
    while frame is not None:
        if frame.f_code.co_filename.startswith(str(PACKAGE)):
            files.append(str(Path(frame.f_code.co_filename).relative_to(PACKAGE)))
        frame = frame.f_back
    return [file for file, _ in groupby(reversed(files))]


def _solve(*data: Any) -> tuple[list[list[str]], set[tuple[str, str]]]:
    """Files on the stack when data is opened and when the first block is scanned, and which listed file calls which before."""
    stacks: list[list[str]] = []
    calls: set[tuple[str, str]] = set()
    scanned = False
    places = {
        str(path) for path in PACKAGE.rglob("*.py") if path.parent.name == "passes" or str(path.relative_to(PACKAGE)) in LISTED
    }
    openers = {opener.__name__ for opener in OPENERS.values()} - {"<lambda>"}

    def look(frame: FrameType, event: str, _: Any) -> None:
        nonlocal scanned
        path = frame.f_code.co_filename
        if event != "call" or scanned or path not in places:
            return
        stack = _files_on_the_stack(frame)
        scanned = frame.f_code.co_name == "scan" and Path(path).parent.name == "passes"
        if scanned or frame.f_code.co_name in openers:
            stacks.append(stack)
        calls.update(pairwise([file for file, _ in groupby(file for file in stack if file in LISTED)]))

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        dfeas.solve(*data)
    finally:
        sys.setprofile(before)
    assert scanned
    return stacks, calls


def test_the_way_of_a_run_goes_through_the_files_that_the_page_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the verb to the dataset that is opened, and on to the first block that is scanned."""
    monkeypatch.chdir(tmp_path)
    dfeas.ingest(X, "data", y=LABELS)
    stacks, _ = _solve("data")
    assert list(dict.fromkeys(chain.from_iterable(stacks))) == LISTED
    assert len(LISTED) <= MOST


@pytest.mark.parametrize("data", [("data",), ("points.csv", "y"), ("X.npy", "y.npy"), (X, LABELS)], ids=str)
def test_the_way_of_a_run_goes_down_the_page(data: tuple[Any, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    dfeas.ingest(X, "data", y=LABELS)
    np.save("X.npy", X)
    np.save("y.npy", LABELS)
    Path("points.csv").write_text("y,a,b\n-1,-1000,0\n-1,1,0\n1,2,1\n")
    stacks, calls = _solve(*data)
    assert all(len({*stack}) == len(stack) for stack in stacks)
    assert {(caller, called) for caller, called in calls if LISTED.index(caller) > LISTED.index(called)} <= UP
