"""Work in one process where the system has no more than Windows: no fcntl, no positioned reads, no signals of terminals.

What cannot be had here is Windows itself. Python's own library and psutil have loaded what they need before.
``msvcrt.locking`` is stood in for by the system's flock, whose semantics it shares as far as they are used: one holder, an
error for the others, and an end with the process. ``mypy --platform win32`` finds what Python has not there.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BARE = """
import asyncio, ctypes, errno, mmap, multiprocessing.util, os, shutil, signal, subprocess, sys, tempfile, types, uuid
import psutil

for name in ("fcntl", "resource", "pwd", "grp", "termios", "_posixshmem"):
    sys.modules[name] = None
for owner, names in (
    (os, "fork forkpty register_at_fork preadv readv pread pwrite pwritev posix_fadvise POSIX_FADV_WILLNEED O_DIRECTORY "
         "sched_getaffinity process_cpu_count getuid geteuid statvfs killpg"),
    (signal, "SIGHUP SIGUSR1 SIGUSR2 pthread_sigmask SIG_BLOCK"),
    (mmap, "MADV_HUGEPAGE"),
):
    for name in names.split():
        if hasattr(owner, name):
            delattr(owner, name)

os.process_cpu_count = os.cpu_count  # Python 3.13 has one everywhere, here by sched_getaffinity
flock = ctypes.CDLL(None, use_errno=True).flock
msvcrt = types.ModuleType("msvcrt")
msvcrt.LK_NBLCK, msvcrt.LK_UNLCK = 2, 0


def locking(descriptor, mode, count):
    assert count == 1
    if flock(descriptor, {2: 2 | 4, 0: 8}[mode]):
        raise OSError(errno.EACCES, "Permission denied")


msvcrt.locking = locking
sys.modules["msvcrt"] = msvcrt
"""


def bare(script: str, *words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A script in a process that has no more."""
    return subprocess.run([sys.executable, "-c", BARE + script, *words], cwd=cwd, capture_output=True, text=True, timeout=200)


def command(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """``dfeas`` in one."""
    return bare("from dfeas.__main__ import main\nsys.argv[0] = 'dfeas'\nmain()", *words, cwd=cwd)


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """Incomes, ages, ten-digit ids and a dummy, who owes, in .npy files."""
    rng = np.random.default_rng(5)
    n = 4000
    income, age = np.round(rng.lognormal(10, 0.6, n), 2), rng.integers(18, 95, n)
    X = np.column_stack([income, age, rng.integers(10**9, 10**10, n), rng.random(n) < 0.3]).astype(np.float64)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", (income > 300 * age).astype(np.int64))
    return tmp_path


def test_ingest_solve_resume_verify(people: Path) -> None:
    done = command("ingest", "X.npy", "data", "--labels", "y.npy", cwd=people)
    assert done.returncode == 0, done.stderr
    words = ("data", "--method", "mirror-prox-fixed", "--scale", "std", "--out")
    done = command("solve", *words, "run", "--max-passes", "4", cwd=people)
    assert done.returncode == 3, done.stderr
    done = command("resume", "run", "--max-passes", "9", cwd=people)
    assert done.returncode in (0, 3), done.stderr
    done = command("solve", *words, "whole", "--max-passes", "9", cwd=people)
    assert done.returncode in (0, 3), done.stderr
    files = [np.load(people / name / "certificate.npz") for name in ("run", "whole")]
    assert all(np.array_equal(files[0][name], files[1][name]) for name in files[0].files)
    assert not list(people.rglob("*.lock")) + list((people / "run").glob("lock"))
    done = command("solve", "data", "--out", "sure", cwd=people)
    assert done.returncode == 0, done.stderr
    done = command("verify", "sure", "--json", cwd=people)
    assert done.returncode == 0, done.stderr
    done = command("append", "data", "X.npy", "--labels", "y.npy", cwd=people)
    assert done.returncode == 0, done.stderr
    assert json.loads(command("info", "data", "--json", cwd=people).stdout)["n"] == 8000


def test_the_bits_are_those_of_this_system(people: Path) -> None:
    script = """
import dfeas, hashlib, numpy, scipy.sparse
X, y = numpy.load("X.npy"), numpy.load("y.npy")
for points in (X, scipy.sparse.csr_array(X * (X > 1))):
    dfeas.ingest(points, name := f"data-{type(points).__name__}", labels=y)
    for options in ({"method": "working-set"}, {"method": "ispvn"}, {"kernel": "rbf", "scratch": "tiles"}):
        found = dfeas.solve(name, max_passes=8, memory="300MB", intercept="kernel" not in options, **options)
        print(found.verdict, float(found.margin_upper).hex())
"""
    there = bare(script, cwd=people)
    assert there.returncode == 0, there.stderr
    for folder in people.glob("data-*"):
        folder.rename(people / f"was-{folder.name}")
    here = subprocess.run([sys.executable, "-c", script], cwd=people, capture_output=True, text=True, timeout=200)
    assert here.returncode == 0, here.stderr
    assert there.stdout == here.stdout != ""
    assert len(here.stdout.splitlines()) == 6


HOLD = """
from pathlib import Path
from dfeas.data.storage.scratch import being_written, claim
held = claim(Path("out"), "result.json")
print("held", being_written(Path("out")), flush=True)
sys.stdin.read()
"""


def test_the_lock_of_a_process_that_was_killed_is_free(people: Path) -> None:
    look = "from pathlib import Path\nfrom dfeas.data.storage.scratch import being_written\nprint(being_written(Path('out')))"
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", BARE + HOLD], cwd=people, **pipes) as holder:
        assert holder.stdout.readline().split() == ["held", "True"]
        done = command("solve", "X.npy", "--out", "out", cwd=people)
        assert bare(look, cwd=people).stdout.strip() == "True"
        done = bare("import dfeas\ndfeas.solve([[1.0], [-2.0]], [1, 0], out='out')", cwd=people)
        assert "another process is writing it" in done.stderr
        os.kill(holder.pid, signal.SIGKILL)
    assert bare(look, cwd=people).stdout.strip() == "False"
    assert (people / "out").is_dir()
    done = bare("import dfeas\nprint(dfeas.solve([[1.0], [-2.0]], [1, 0], out='out').verdict)", cwd=people)
    assert done.stdout.strip() == "feasible", done.stderr
