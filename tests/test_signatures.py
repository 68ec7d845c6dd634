"""What editors and type checkers read of the public calls is what the calls are."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_written_signatures_are_those_of_the_calls() -> None:
    checked = subprocess.run([sys.executable, ROOT / "scripts" / "signatures", "--check"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
