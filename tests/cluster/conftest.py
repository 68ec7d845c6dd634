"""A room for scripts: their own PATH, a dataset, and an end to everything that they started."""

import json
import os
import stat
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from dfeas.data.generate.points import Instance, generate

PROJECT = Path(__file__).parents[2]
MARK = "DFEAS_TEST_ROOM"
# what never says anything, so that "read -t" pauses without a process; opened once, as a trap fails while bash reads <(:)
SILENT = "exec 3<> <(:)"
# a stand-in for dfeas answers this first: how far the run is, by whether it has a checkpoint or a result
STATUS = """
if [ "$1" = status ]; then
    [ ! -e run/result.json ] || state=finished
    [ ! -d run/checkpoint ] || state=resumable
    [ -z "${state:-}" ] || echo "[{\\"state\\": \\"$state\\"}]"
    exit
fi
"""
# away until a start of some number
AWAY = f"""{STATUS}
echo "$*" >> calls
mkdir -p run/checkpoint
[ "$(wc -l < calls)" -lt "$ENDS_AT" ] && exit 75
exit "$ENDS_WITH"
"""
DFEAS = f'exec {sys.executable} -c "from dfeas.cli.main import main; main()" "$@"'


@dataclass
class Room:
    """A folder with a ``bin`` that comes first on PATH. Every process that is started in it carries its mark."""

    path: Path
    project: Path = PROJECT
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.mark = uuid.uuid4().hex
        (self.path / "bin").mkdir()
        (self.path / "tmp").mkdir()
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("DASK_", "SLURM_"))}
        python = Path(sys.executable).parent
        path = os.pathsep.join([str(self.path / "bin"), str(python), kept["PATH"]])
        mine = {"PATH": path, "TMPDIR": str(self.path / "tmp"), MARK: self.mark, "PYTHONPATH": str(PROJECT)}
        self.environment = {**kept, **mine}
        self.command("dfeas", DFEAS)

    def command(self, name: str, body: str) -> None:
        """Put an executable on PATH, before all others of its name."""
        file = self.path / "bin" / name
        file.write_text(f"#!/usr/bin/env bash\n{SILENT}\n{body}\n")
        file.chmod(0o755)

    def hold(self) -> Path:
        """Let dfeas wait, once it has left the file ``ready``, until there is the file that this returns; how far a run is
        it says at once.
        """
        asked = f'[ "$1" != status ] || {DFEAS}'
        self.command("dfeas", f"{asked}\ntouch ready\nwhile [ ! -e go ]; do read -r -t 0.05 <&3 || true; done\n{DFEAS}")
        return self.path / "go"

    def said(self, name: str) -> list[str]:
        """Lines of a file that commands wrote to."""
        file = self.path / name
        return file.read_text().splitlines() if file.exists() else []

    @contextmanager
    def start(self, *words: Any, **settings: Any) -> Iterator[subprocess.Popen[str]]:
        """A process of this room, in a session of its own. A test that fails does not wait for its end."""
        started = subprocess.Popen(
            [str(word) for word in words],
            cwd=self.path,
            env={**self.environment, **{k: str(v) for k, v in settings.items()}},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        with started as process:
            try:
                yield process
            except BaseException:
                process.kill()
                raise

    def run(self, *words: Any, timeout: float = 150, **settings: Any) -> subprocess.CompletedProcess[str]:
        """A process of this room, to its end."""
        with self.start(*words, **settings) as process:
            out, err = process.communicate(timeout=timeout)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def verdict(self, *words: Any, **settings: Any) -> str:
        """What a dfeas command, or a script that runs one, decides; its output is one JSON object."""
        done = self.run(*words, **settings)
        assert done.returncode == 0, done.stderr
        return str(json.loads(done.stdout)["verdict"])

    def processes(self) -> list[psutil.Process]:
        """Whatever still lives of this room."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
                if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK) == self.mark:
                    found.append(process)
        return found

    def addresses(self) -> set[str]:
        """Where processes of this room listen."""
        found: set[str] = set()
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                listening = (c for c in process.net_connections(kind="inet") if c.status == psutil.CONN_LISTEN)
                found.update(connection.laddr.ip for connection in listening)
        return found

    def left(self) -> list[str]:
        """Scratch of the scripts."""
        return [entry.name for entry in (self.path / "tmp").iterdir() if entry.name.startswith("dfeas-")]


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    """A room; its processes do not outlive the test."""
    made = Room(tmp_path)
    yield made
    deadline = time.monotonic() + 30
    while left := made.processes():
        assert time.monotonic() < deadline, left
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left, timeout=1)


@pytest.fixture(scope="session")
def points(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A separable dataset of a few blocks."""
    path = tmp_path_factory.mktemp("cluster") / "points"
    generate(Instance("planted", 20, 6_000, margin=0.05), path)
    return path


@pytest.fixture
def until() -> Callable[[Callable[[], Any]], None]:
    """Wait for a condition; the test fails when it does not come true within two minutes."""

    def wait(condition: Callable[[], Any]) -> None:
        deadline = time.monotonic() + 120
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.02)

    return wait


@pytest.fixture(scope="session")
def private() -> Callable[[Path], bool]:
    """Whether nobody but the owner can use a file or a folder."""
    return lambda path: not stat.S_IMODE(path.stat().st_mode) & 0o077
