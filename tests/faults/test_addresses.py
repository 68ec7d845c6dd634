"""A process that may have few addresses, as of ulimit -v: it says what it needs, or works; and a signal ends it at any time."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import dfeas


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50_000, 20))
    labels = np.where(X @ rng.standard_normal(20) + 0.3 * rng.standard_normal(len(X)) > 0, 1, -1)
    path = tmp_path_factory.mktemp("addresses") / "data"
    dfeas.ingest(X, path, y=labels)
    return path


def limited(kib: int, *words: str | Path) -> subprocess.Popen[str]:
    """A command that may have so many KiB."""
    script = f'ulimit -v {kib}; exec "$0" -m dfeas "$@"'
    command = ["sh", "-c", script, sys.executable, *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_what_is_said_to_be_enough_is(data: Path, tmp_path: Path) -> None:
    kib, said = 250_000, []
    for _ in range(3):  # what the data needs is known before what its solution does
        with limited(kib, "solve", data, "--out", tmp_path / "run") as process:
            _, err = process.communicate(timeout=120)
        if process.returncode == 0:
            break
        assert process.returncode == 2, err
        assert err.splitlines()[-1].startswith("dfeas: error: this process may have")
        said.append(int(re.findall(r"set ulimit -v (\d+)", err)[0]))
        assert said[-1] > kib
        kib = said[-1] * 101 // 100  # the interpreter itself does not always take the same
    else:
        pytest.fail(f"{said} was not enough")
    assert said
    with limited(250_000, "verify", tmp_path / "run") as process:
        assert process.wait(timeout=120) == 2


def test_a_signal_ends_it_at_any_time(data: Path, tmp_path: Path) -> None:
    kib = 300_000
    for place, seconds in enumerate(np.random.default_rng(kib).uniform(0, 5, 4)):
        with limited(kib, "solve", data, "--out", tmp_path / str(place)) as process:
            try:
                process.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGTERM if place % 2 else signal.SIGINT)
            began = time.monotonic()
            process.communicate(timeout=60)
            assert process.returncode in (0, 2, 75, -signal.SIGTERM, -signal.SIGINT)  # before Python has begun it dies of it
            assert time.monotonic() - began < 30
