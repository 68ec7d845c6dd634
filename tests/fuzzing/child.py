"""Real dfeas commands without the seconds that imports take: a process that has imported dfeas forks for each of them.

It has no threads, so a fork is as good as a start. Run as a module it is that process: a line of JSON in, one out.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import resource
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

import dfeas
from dfeas.__main__ import main
from dfeas.engine.signals import SIGNALS, at_once_from_now

ROOT = Path(__file__).parents[2]
ADDRESS_SPACE = 8 << 30
"""What a command may map at most: far above what any is to use, below what a machine has."""
LOOK = 0.002


@dataclass(frozen=True)
class Asked:
    """A command."""

    words: list[str]
    folder: str  # where it runs; what it prints is kept there
    limit: float  # seconds, then it is killed
    signal: int = 0  # that it gets
    after: float = 0.0  # so many seconds


@dataclass(frozen=True)
class Ended:
    """How it ended."""

    code: int  # of a signal negative
    seconds: float
    bytes: int  # of resident memory at most
    hung: bool
    out: str = ""
    err: str = ""

    @property
    def failed(self) -> bool:
        """Whether it ended with an error of the contract."""
        return self.code in (2, 4, 5, 6)


@dataclass
class Child:
    """That process, started when it is first needed, and anew after a question that was broken off."""

    process: subprocess.Popen[str] | None = None
    asking: bool = False

    def start(self) -> None:
        """Start it, unless it is there, and wait until it has imported everything."""
        if self.process is not None and self.process.poll() is None and not self.asking:
            return
        self.close()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzzing.child"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", "DFEAS_CHECKPOINT_EVERY": "0.01"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.process.stdout.readline()

    def run(self, words: list[str], folder: Path, limit: float, number: int = 0, after: float = 0.0) -> Ended:
        """Run ``dfeas`` with these words in a folder, and send it a signal after some seconds."""
        self.start()
        assert self.process is not None
        self.asking = True
        pipes: tuple[IO[str] | None, IO[str] | None] = self.process.stdin, self.process.stdout
        assert pipes[0] is not None
        assert pipes[1] is not None
        print(json.dumps(asdict(Asked(words, str(folder), limit, number, after))), file=pipes[0], flush=True)
        answer: dict[str, Any] = json.loads(pipes[1].readline())
        self.asking = False
        files = [folder / name for name in ("stdout", "stderr")]  # which are not there yet where it was killed at once
        said = [file.read_bytes().decode(errors="replace") if file.exists() else "" for file in files]
        for file in files:
            file.unlink(missing_ok=True)
        return Ended(**answer, out=said[0], err=said[1])

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for pipe in (self.process.stdin, self.process.stdout):
                assert pipe is not None
                pipe.close()
            self.process, self.asking = None, False


@cache
def shared() -> Child:
    """The one of this process."""
    return Child()


def _begin(asked: Asked) -> None:
    """Become the command: its folder, its output, its limits."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.chdir(asked.folder)
    for number, name in enumerate((os.devnull, "stdout", "stderr")):
        handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(handle, number)
        os.close(handle)
    sys.argv = ["dfeas", *asked.words]


def _watched(asked: Asked, pid: int) -> dict[str, Any]:
    """Wait for the command, and send it what it is to get."""
    began, sent, hung = time.monotonic(), asked.signal == 0, False
    while True:
        there, status, usage = os.wait4(pid, os.WNOHANG)
        seconds = time.monotonic() - began
        if there:
            code = os.waitstatus_to_exitcode(status)
            return {"code": code, "seconds": seconds, "bytes": usage.ru_maxrss * 1024, "hung": hung}
        if not sent and seconds >= asked.after:
            os.kill(pid, asked.signal)
            sent = True
        if not hung and seconds >= asked.limit:
            os.killpg(pid, signal.SIGKILL)
            hung = True
        time.sleep(LOOK)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def serve() -> None:
    """Answer until the questions end; in the child, be the command."""
    for module in pkgutil.walk_packages(dfeas.__path__, "dfeas."):
        importlib.import_module(module.name)
    for name in ("h5py", "pandas", "pyarrow.csv", "pyarrow.parquet"):  # what is imported when it is needed
        importlib.import_module(name)
    gc.freeze()  # nothing of this is looked at again, in this process or in a fork
    _say("ready")
    for line in iter(sys.stdin.readline, ""):
        asked = Asked(**json.loads(line))
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        pid = os.fork()
        if not pid:
            at_once_from_now()  # a command that starts for itself does so before it can be asked anything
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        if not pid:
            _begin(asked)
            main()
            return
        _say(json.dumps(_watched(asked, pid)))


if __name__ == "__main__":
    serve()
