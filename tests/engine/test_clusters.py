"""Worker processes that dfeas starts on this machine."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil

import dfeas


def test_workers_of_this_machine_that_still_start_are_ended_at_the_limit(tmp_path: Path) -> None:
    stored = str(tmp_path / "data")
    dfeas.ingest(np.random.default_rng(0).standard_normal((60, 3)), stored, y=np.arange(60) % 2)
    words = ["solve", stored, "--out", str(tmp_path / "run"), "--local", "3", "--time-limit", "0.3"]
    # without the two seconds that a wait may last at least, in which workers of a quiet machine start
    program = "from dfeas.data.storage import patience; patience.GRACE = 0.1; from dfeas.__main__ import main; main()"
    before = set(psutil.Process().children(recursive=True))
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 3
    assert "the time limit is over before 3 worker processes have started; nothing was read" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "run").exists()
    assert not {*psutil.Process().children(recursive=True)} - before
