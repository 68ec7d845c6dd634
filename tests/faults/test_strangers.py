"""Workers that cannot do what a run asks: they get no task, lose nothing, and the run says who they are."""

import logging
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client

import dfeas
from dfeas.errors import BadInputError, CorruptDataError, UsageError

ROOT = Path(dfeas.__file__).parents[1]
ANSWER_SECONDS = 90.0


class Yard:
    """A cluster of processes of other environments."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.stack = folder, ExitStack()

    def without(self) -> dict[str, str]:
        """An environment with all that dfeas needs, and no dfeas."""
        links = self.folder / "links"
        if not links.exists():
            links.mkdir()
            for each in Path(sysconfig.get_path("purelib")).iterdir():
                if "dfeas" not in each.name and each.suffix != ".pth":
                    (links / each.name).symlink_to(each)
        return {"PYTHONPATH": str(links), "FLAG": "-S"}

    def older(self) -> dict[str, str]:
        """One whose dfeas has other sources, and calls itself as this one does."""
        sources = self.folder / "older"
        if not sources.exists():
            shutil.copytree(ROOT / "dfeas", sources / "dfeas", ignore=shutil.ignore_patterns("__pycache__"))
            with (sources / "dfeas" / "passes" / "softmin.py").open("a") as file:
                file.write("\n# before\n")
        return {"PYTHONPATH": f"{sources}:{ROOT}"}

    def start(self, role: str, *args: str, wrap: tuple[str, ...] = (), **env: str) -> subprocess.Popen[bytes]:
        flag, command = env.pop("FLAG", ""), f"distributed.cli.dask_{role}"
        words = [*wrap, sys.executable, *([flag] if flag else []), "-m", command, *args]
        with (self.folder / f"{role}.log").open("ab") as log:
            process = subprocess.Popen(
                words, cwd=self.folder, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": str(ROOT), **env}
            )
        self.stack.callback(end, process)
        return process

    @contextmanager
    def open(self, **env: str) -> Iterator[Client]:
        found = self.folder / "scheduler.json"
        self.start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(found), **env)
        wait_until(found.exists)
        with self.stack, Client(scheduler_file=str(found), timeout=ANSWER_SECONDS) as self.client:
            yield self.client

    def join(self, name: str, wrap: tuple[str, ...] = (), **env: str) -> str:
        """The address of a new worker, below a nanny."""
        scratch = self.folder / f"scratch-{name}"
        scratch.mkdir()
        args = ("--nthreads", "1", "--name", name, "--no-dashboard", "--local-directory", str(scratch), "--host", "127.0.0.1")
        self.start("worker", "--scheduler-file", str(self.folder / "scheduler.json"), *args, wrap=wrap, **env)
        wait_until(lambda: name in self.names())
        return self.names()[name]

    def names(self) -> dict[str, str]:
        workers = self.client.scheduler_info(n_workers=-1)["workers"]
        return {str(each["name"]): str(address) for address, each in workers.items()}


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + ANSWER_SECONDS
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def executed(client: Client) -> dict[str, list[str]]:
    """Tasks of dfeas that each worker was told of, by its own log."""

    def told(dask_worker: Any) -> list[str]:
        return sorted({str(event[0]) for event in dask_worker.state.log if str(event[0]).startswith("dfeas-")})

    return dict(client.run(told))


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard(tmp_path)


@pytest.fixture
def data(dataset: Callable[..., Any]) -> Path:
    path, _ = dataset("planted", 5, 4000, margin=0.01, block_rows=500)
    return Path(path)


HOW: dict[str, Any] = {"method": "mirror-prox", "max_passes": 3, "eps": 1e-9}


def test_workers_without_dfeas_or_with_another_get_nothing_and_live(
    yard: Yard, data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with yard.open() as client:
        strange, good, old = yard.join("strange", **yard.without()), yard.join("good"), yard.join("old", **yard.older())
        with caplog.at_level(logging.WARNING, "dfeas"):
            found = dfeas.solve(data, client=client, **HOW)
        assert found.margin_upper == dfeas.solve(data, **HOW).margin_upper
        done = executed(client)
        assert done[good]
        assert not done[strange]
        assert not done[old]
        assert set(client.nthreads()) == {strange, good, old}
        assert f"worker {strange} on" in caplog.text
        assert "dfeas is not installed there" in caplog.text
        assert "with other source files than here" in caplog.text
        npy = yard.folder / "X.npy"
        np.save(npy, np.arange(12.0).reshape(6, 2) - 5)
        dfeas.ingest(npy, yard.folder / "made", labels=[0, 0, 0, 1, 1, 1], client=client)
        assert not executed(client)[strange]
        assert set(client.nthreads()) == {strange, good, old}


def test_nobody_who_has_dfeas_is_one_line_and_no_death(yard: Yard, data: Path) -> None:
    with yard.open() as client:
        strange = [yard.join(name, **yard.without()) for name in ("one", "two")]
        with pytest.raises(UsageError, match=r"no worker of the cluster can do this.*dfeas is not installed there") as caught:
            dfeas.solve(data, client=client)
        assert all(worker in str(caught.value) for worker in strange)
        assert set(client.nthreads()) == set(strange)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a mount that one process sees")
def test_data_that_a_worker_does_not_see_is_said_with_its_name(
    yard: Yard, data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hide = f'mount -t tmpfs none {data.parent}/data && exec "$@"'
    with yard.open() as client:
        blind = yard.join("blind", wrap=("unshare", "-m", "sh", "-c", hide, "sh"))
        with pytest.raises((BadInputError, CorruptDataError), match=f"{blind} on .*{data}: not the data there") as caught:
            dfeas.solve(data, client=client)
        assert caught.value.exit_code == 5  # an empty folder is there
        good = yard.join("good")
        with caplog.at_level(logging.WARNING, "dfeas"):
            dfeas.solve(data, client=client, **HOW)
        assert blind in caplog.text
        assert executed(client)[good]
        assert not executed(client)[blind]


def test_a_worker_that_joins_is_asked_first_and_then_works(yard: Yard, data: Path) -> None:
    seen: list[str] = []
    joined: dict[str, str] = {}

    def join(record: Any) -> None:
        seen.append(record.passes)
        if len(seen) == 2:
            joined["strange"] = yard.join("strange", **yard.without())
            joined["good"] = yard.join("good")

    with yard.open() as client:
        yard.join("first")
        options = {**HOW, "max_passes": 300, "margin_tolerance": 1e-6}
        found = dfeas.solve(data, client=client, callback=join, **options)
        assert len(seen) > 10
        assert executed(client)[joined["good"]]
        assert not executed(client)[joined["strange"]]
        assert set(joined.values()) < set(client.nthreads())
        assert found.margin_upper == dfeas.solve(data, **options).margin_upper


def test_a_frozen_worker_is_not_waited_for(yard: Yard, data: Path) -> None:
    with yard.open() as client:
        frozen, _ = yard.join("frozen"), yard.join("good")
        pid = client.run(os.getpid, workers=[frozen])[frozen]
        os.kill(pid, signal.SIGSTOP)
        try:
            before = time.monotonic()
            dfeas.solve(data, client=client, **HOW)
            assert time.monotonic() - before < 60
        finally:
            os.kill(pid, signal.SIGCONT)
