"""The scheduler dies, freezes, or is left without workers: exit code 75, one clear line, and the bracket so far."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

from tests.faults.faulty import wait_until

IMPATIENT = """
from functools import partial
import dask.config
from dfeas.engine import watch
watch.Watch = partial(watch.Watch, look_seconds=0.5, answer_seconds=2.0, patience_seconds=2.0)
dask.config.set({"distributed.comm.timeouts.connect": "3s"})
from dfeas.cli.main import main
main()
"""


@contextmanager
def running(words: list[str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process, killed in the end even when it is frozen."""
    process = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def deployed(folder: Path) -> Iterator[tuple[subprocess.Popen[str], subprocess.Popen[str], Path]]:
    """A scheduler and a worker without a nanny, as processes of their own, and the scheduler file."""
    file = folder / "scheduler.json"
    dask, here = [sys.executable, "-W", "ignore", "-m", "dask"], ["--host", "127.0.0.1", "--scheduler-file", str(file)]
    with running([*dask, "scheduler", *here, "--port", "0", "--dashboard-address", "127.0.0.1:0"], folder) as scheduler:
        wait_until(file.exists)
        worker = [*dask, "worker", *here, "--no-nanny", "--no-dashboard", "--nthreads", "2"]
        with running([*worker, "--local-directory", str(folder)], folder) as process:
            with Client(scheduler_file=str(file)) as client:
                client.wait_for_workers(1, timeout=60)
            yield scheduler, process, file


@pytest.mark.parametrize(
    ("which", "sent", "said"),
    [
        (0, signal.SIGKILL, "the Dask cluster was lost: its scheduler cannot be reached any more"),
        (0, signal.SIGSTOP, "the Dask cluster was lost: no answer from the scheduler within"),
        (1, signal.SIGKILL, "the Dask cluster has (had no worker for 2 s|no workers)"),
    ],
    ids=["scheduler killed", "scheduler frozen", "last worker killed"],
)
def test_a_lost_cluster_is_exit_code_75(
    dataset: Callable[..., Any], tmp_path: Path, which: int, sent: signal.Signals, said: str
) -> None:
    path, _ = dataset("halfspace", 40, 40_000, block_rows=2000)
    trace = tmp_path / "run" / "trace.jsonl"
    with deployed(tmp_path) as (*processes, file):
        words = ["solve", str(path), "--out", "run", "--method", "mirror-prox", "--eps", "1e-9", "--json"]
        with running([sys.executable, "-c", IMPATIENT, *words, "--scheduler-file", str(file)], tmp_path) as solve:
            wait_until(lambda: solve.poll() is not None or (trace.exists() and trace.read_text().count('"pass"') > 3))
            assert solve.poll() is None, solve.communicate()
            os.kill(processes[which].pid, sent)
            began = time.monotonic()
            out, err = solve.communicate(timeout=60)
    assert solve.returncode == 75, err
    assert time.monotonic() - began < 45
    values = json.loads(out)
    assert (values["verdict"], values["stopped"]) == ("undecided", "interrupted")
    assert values["margin_upper"] < 1
    assert "Traceback" not in err
    assert len([line for line in err.splitlines() if re.search(said, line)]) == 1, err
    assert (tmp_path / "run" / "result.json").exists()
    assert not (tmp_path / "run" / "scratch").exists()
