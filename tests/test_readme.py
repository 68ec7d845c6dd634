"""What README prints runs, and says what dfeas says."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dfeas

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.parametrize(
    ("kind", "intercept"), [("planted", False), ("gaussian", False), ("gaussian", True), ("halfspace", True)]
)
def test_the_independent_check(dataset: Callable[..., Any], tmp_path: Path, kind: str, intercept: bool) -> None:
    (script,) = (text.split("```")[0] for text in README.read_text().split("```python\n") if "python check.py" in text[:40])
    assert len(script.splitlines()) <= 40
    (tmp_path / "check.py").write_text(script)
    path, _ = dataset(kind, 6, 2000, block_rows=300)
    result = dfeas.solve(path, intercept=intercept, out=tmp_path / "run")
    words = [sys.executable, "check.py", path, "run/certificate.npz", *["--intercept"] * intercept]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    if result.verdict == "feasible":
        assert done.stdout == f"every point has a margin of {result.margin_lower:.6g} or more: feasible\n"
    else:
        assert done.stdout.startswith("|Ax| = ")
        assert float(done.stdout.split()[2]) < 1e-12
    label = (path / "label").glob("c*2*")
    file = next(label)
    file.write_bytes(bytes([file.read_bytes()[0] ^ 254]) + file.read_bytes()[1:])
    assert subprocess.run(words, cwd=tmp_path, capture_output=True, check=False).returncode != 0
