"""Figures in README are those of a recorded run."""

import re
import runpy
import sys
from pathlib import Path

import pytest

from dfeas.methods.registry import METHODS

ROOT = Path(__file__).parents[1]


def rows(text: str) -> list[list[str]]:
    """Cells of the rows of Markdown tables."""
    return [[cell.strip() for cell in line.strip("|\n").split("|")] for line in text.splitlines() if line.startswith("|")]


def test_the_table_beside_others_is_what_was_recorded() -> None:
    recorded = {}
    for cells in rows((ROOT / "benchmarks/results/peers.md").read_text()):
        if cells[0] == "half-space, 100 x 200000" and len(cells) == 10:
            wrong = re.match(r"(all|\d+) on", cells[5])
            count = "" if wrong is None else wrong[1].replace("all", "0")
            recorded[cells[1]] = ["none in 8" if "nothing in 8 s" in cells[2] else cells[6], count, cells[4]]
    shown = (ROOT / "README.md").read_text().partition("## Compared with")[2].partition("A perceptron")[0]
    told = {cells[0]: cells[1:] for cells in rows(shown)[2:]}
    assert len(told) == 8
    for solver, cells in told.items():
        assert cells == recorded[solver], solver


def test_what_readme_says_of_records_is_what_they_have() -> None:
    readme = " ".join((ROOT / "README.md").read_text().split())
    regimes = rows((ROOT / "benchmarks/results/regimes.md").read_text())
    *others, most = sorted(float(cells[5]) for cells in regimes if re.fullmatch(r"[\d.]+", cells[5]))
    assert max(others) <= 6
    assert most == 10
    assert f"{len(others)} of {len(others) + 1} kinds of hard points in at most six reads, and the last one in ten" in readme
    peers = (ROOT / "benchmarks/results/peers.md").read_text()
    (flip,) = [cells for cells in rows(peers) if cells[:2] == ["one flip, 100 x 200000", "dfeas"] and len(cells) == 10]
    assert f"names {flip[5].split()[0]} points in conflict after {flip[6]} s" in readme
    assert peers.startswith("## 2026-11-30,")
    assert "on 30 November 2026" in readme


def test_the_figure_of_methods_has_all_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["passes", str(tmp_path / "figure.svg")])
    drawn = runpy.run_path(str(ROOT / "scripts" / "passes.py"), run_name="__main__")
    table = drawn["read_record"]((ROOT / "benchmarks/results/method_passes.md").read_text())
    planted = [passes for name, passes in table.items() if name.startswith("planted")]
    assert len(planted) == 4
    for passes in (*planted, table["one-flip 100 x 5000, margin 0.01"], table["halfspace 100 x 5000"]):
        assert set(passes) == set(METHODS)
    assert {passes["working-set"] for passes in planted} == {2}  # as the page says
    assert "currentColor" in (tmp_path / "figure.svg").read_text()
