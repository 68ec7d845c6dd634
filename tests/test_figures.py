"""Figures in README are those of a recorded run."""

import re
from pathlib import Path

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
    shown = (ROOT / "README.md").read_text().partition("## Beside others")[2].partition("Trust the ratios")[0]
    told = {cells[0]: cells[1:] for cells in rows(shown)[2:]}
    assert len(told) == 8
    for solver, cells in told.items():
        assert cells == recorded[solver], solver
