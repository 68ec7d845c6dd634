"""Commands that are started, waited for, and refused."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.typed import DFEAS


def start(*words: Any, cwd: Path, **options: Any) -> subprocess.Popen[str]:
    """A command in a process of its own."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*DFEAS, *map(str, words)], cwd=cwd, text=True, **pipes, **options)


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str], seconds: float = 60) -> None:
    """Look until it is so, while the process works."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.002)


def require_refused(done: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    """One line that says so, and nothing else."""
    assert done.returncode == code, (done.returncode, done.stderr)
    lines = [line for line in done.stderr.splitlines() if "error" in line.lower()]
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    for word in words:
        assert word in lines[0]
