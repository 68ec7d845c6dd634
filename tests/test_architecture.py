"""What docs/architecture.md says of rooms, and of the way of a run, is so."""

import re
import sys
from keyword import iskeyword
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import dfeas

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


def _files_on_the_stack(frame: FrameType | None) -> list[str]:
    """Files of dfeas whose functions are under way, the verb's first, without repeats."""
    files: list[str] = []
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(PACKAGE):
            files.append(str(path.relative_to(PACKAGE)))
        frame = frame.f_back
    return list(dict.fromkeys(reversed(files)))


def test_the_way_of_a_run_goes_through_the_files_that_the_page_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the verb to the dataset that is opened, and on to the first block that is scanned."""
    monkeypatch.chdir(tmp_path)
    dfeas.ingest(np.array([[1.0, 2.0], [2.0, 1.0], [-1.0, -1.0]]), "data", y=[1, 1, -1])
    way: list[str] = []
    scanned = False

    def look(frame: FrameType, event: str, _: Any) -> None:
        nonlocal scanned
        path = Path(frame.f_code.co_filename)
        if event != "call" or scanned or not path.is_relative_to(PACKAGE):
            return
        scanned = frame.f_code.co_name == "scan" and path.parent.name == "passes"
        if scanned or frame.f_code.co_name == "_open_dataset":
            way.extend(_files_on_the_stack(frame))

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        dfeas.solve("data")
    finally:
        sys.setprofile(before)
    assert scanned
    files = dict.fromkeys(way)
    listed = re.findall(r"^\d+\. `([\w/]+\.py)`", _section("The way of a run"), re.M)
    assert listed == list(files)
    assert len(listed) <= MOST
