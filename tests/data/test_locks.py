"""The lock of an output: one process has it, and that it was killed gives it back."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dfeas
from dfeas.data.storage.locks import being_written
from dfeas.errors import UsageError

HOLD = """
import sys
from pathlib import Path
from dfeas.data.storage.locks import claim
held = claim(Path("out"), "result.json")
print("held", flush=True)
sys.stdin.read()
"""


def test_the_lock_of_a_process_that_was_killed_is_free(tmp_path: Path) -> None:
    X, labels, out = np.array([[1.0], [-2.0]]), [1, 0], tmp_path / "out"
    command = [sys.executable, "-c", HOLD]
    with subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert being_written(out)
        with pytest.raises(UsageError, match="another process is writing it"):
            dfeas.solve(X, labels, out=out)
        holder.kill()
    assert out.is_dir()
    assert not being_written(out)
    assert dfeas.solve(X, labels, out=out).verdict == "feasible"
