"""The house stays within its budget, and the command that says so is red where it does not."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run_budget(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "architecture"), "--budget", "--root", str(root)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_house_is_within_its_budget() -> None:
    done = run_budget(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_lines_beyond_the_budget_are_red(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "dfeas", tmp_path / "dfeas", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "tests").mkdir()
    shutil.copy(ROOT / "tests" / "budget.toml", tmp_path / "tests")
    for name in ("more", "and_more"):
        (tmp_path / "dfeas" / "passes" / f"{name}.py").write_text("MORE = 1\n" * 9_999)
    done = run_budget(tmp_path)
    red = [line.split() for line in done.stdout.splitlines() if "ABOVE" in line]
    assert done.returncode == 1
    assert {(line[0], line[1]) for line in red} >= {("passes", "lines"), ("passes", "modules"), ("passes", "code")}
