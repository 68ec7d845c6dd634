"""Runs that pages are about."""

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import dfeas
from dfeas.data.generate.points import Instance
from tests.reports.making import Page, page_of


@pytest.fixture(scope="session")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two datasets; runs of a separator, of conflicts, of a limit, and a race."""
    path = tmp_path_factory.mktemp("report")
    for kind, name in (("planted", "yes"), ("one-flip", "no")):
        dfeas.generate(Instance(kind, 8, 3000, 0.05), path / name)
    dfeas.solve(path / "yes", out=path / "separator")
    dfeas.solve(path / "no", out=path / "conflict")
    dfeas.solve(path / "no", out=path / "limit", method="mirror-prox", eps=1e-9, max_passes=70)
    (path / "race").mkdir()
    for method in ("perceptron", "mirror-prox", "working-set"):
        dfeas.solve(path / "yes", out=path / "race" / method, method=method)
    return path


@pytest.fixture(scope="session")
def page(room: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Page]:
    """The page of a run, which is drawn once."""
    return cache(lambda name: page_of(room / name, out=tmp_path_factory.mktemp("pages") / "page.html"))


@pytest.fixture
def copy(room: Path, tmp_path: Path) -> Callable[..., Path]:
    """A run that a test may damage, with keys of its result changed."""

    def make(name: str, **changes: Any) -> Path:
        folder = Path(shutil.copytree(room / name, tmp_path / name))
        values = json.loads((folder / "result.json").read_text())
        (folder / "result.json").write_text(json.dumps({**values, **changes}))
        return folder

    return make
