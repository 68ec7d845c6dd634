"""A cluster for one trial, the commands that are run on it, and what they leave behind."""

from __future__ import annotations

import gc
import hashlib
import io
import json
import os
import re
import signal
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen
from typing import Any

import cloudpickle
import dask.config
import numpy as np
import psutil
from distributed import Client
from distributed.versions import VersionMismatchWarning

from benchmarks.trials.environments import Environments
from benchmarks.trials.hosts import BIN, Host, Network, alive, signal_group, wait_for
from benchmarks.trials.store import Store
from dfeas.engine.clusters import load_configuration

START_SECONDS = 60.0
LOOK_SECONDS = 20.0
CLOCK_SECONDS = 60.0
"""Clocks of a busy machine differ by less."""
SHIPPED = "distributed.scheduler.worker-ttl"
"""What our configuration says otherwise than Dask's own."""
KEEPERS = {"Kept": "taken", "TileCache": "bytes"}
"""Classes of dfeas that keep data in a worker, and where they say how many bytes."""
FAILED = ("1", "2", "4", "5", "6", "75", "hang")

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import this file


class TooLateError(Exception):
    """A run ended before what should have happened to it: the trial says nothing."""


def look_at_worker(dask_worker: Any) -> dict[str, Any]:
    """What is kept there for dfeas, by whatever holds it, and what else one would find."""
    ours = (thing for thing in gc.get_objects() if str(type(thing).__module__).startswith("dfeas."))
    kept = sum(getattr(thing, KEEPERS[type(thing).__name__]) for thing in ours if type(thing).__name__ in KEEPERS)
    rss = psutil.Process().memory_info().rss
    return {"kept": kept, "rss": rss, "keys": len(dask_worker.data), "plugins": sorted(dask_worker.plugins)}


def look_at_scheduler(dask_scheduler: Any) -> dict[str, Any]:
    return {
        "tasks": len(dask_scheduler.tasks),
        "plugins": sorted(dask_scheduler.plugins),
        "workers": len(dask_scheduler.workers),
    }


@dataclass(frozen=True)
class Left:
    """What is on a cluster between runs."""

    tasks: int = 0
    keys: int = 0
    kept_mb: float = 0.0
    workers: int = 0
    plugins: tuple[str, ...] = ()
    memory_mb: tuple[int, ...] = ()


def look(client: Client) -> Left:
    """Raises TimeoutError when a worker does not answer."""
    there = client.sync(client._run_on_scheduler, look_at_scheduler, callback_timeout=LOOK_SECONDS)
    answers = client.sync(client._run, look_at_worker, on_error="return", callback_timeout=LOOK_SECONDS)
    found = [each for each in answers.values() if isinstance(each, dict)]
    plugins = {*there["plugins"], *(name for each in found for name in each["plugins"])}
    kept = sum(each["kept"] for each in found) / 2**20
    memory = tuple(sorted(each["rss"] >> 20 for each in found))
    return Left(there["tasks"], sum(each["keys"] for each in found), kept, there["workers"], tuple(sorted(plugins)), memory)


@dataclass
class Command:
    """A dfeas command on a host, and its RUN."""

    process: Popen[str]
    log: Path
    out: str  # a folder, or an address in the store
    store: Store | None = None
    began: float = field(default_factory=time.monotonic)
    seconds: float = 0.0
    hangs: bool = False

    def wait(self, most: float) -> None:
        """For its end; one that takes longer is killed and counts as a hang."""
        if self.seconds:
            return
        deadline = self.began + most
        while self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        self.hangs = self.process.poll() is None
        self.seconds = time.monotonic() - self.began
        if self.hangs:
            signal_group(self.process, signal.SIGKILL)
            self.process.wait()

    @property
    def code(self) -> int | str:
        return "hang" if self.hangs else self.process.returncode

    def read(self, name: str) -> bytes:
        """A file of its RUN; empty where there is none."""
        if self.out.startswith("s3://"):
            assert self.store is not None
            return self.store.read(f"{self.out}/{name}")
        file = Path(self.out) / name
        return file.read_bytes() if file.exists() else b""

    @property
    def passes(self) -> int:
        """So far, by its trace."""
        return self.read("trace.jsonl").count(b'"event": "pass"')

    @property
    def text(self) -> str:
        return self.log.read_text()

    @property
    def result(self) -> dict[str, Any]:
        """Its result.json; empty where there is none."""
        content = self.read("result.json")
        return json.loads(content) if content else {}

    @property
    def bits(self) -> str:
        """Digest of its certificate, both ends of the bracket and the passes; empty without a result."""
        result, certificate = self.result, self.read("certificate.npz")
        if not result or not certificate:
            return ""
        found = hashlib.sha256(repr([result[name] for name in ("verdict", "margin_lower", "margin_upper", "passes")]).encode())
        with np.load(io.BytesIO(certificate)) as arrays:
            for name in sorted(set(arrays.files) - {"fingerprint"}):
                found.update(arrays[name].tobytes())
        return found.hexdigest()[:12]


@dataclass
class Stage:
    """Where a trial plays: hosts without processes at first, data that all of them see, and a folder for RUNs."""

    network: Network
    environments: Environments
    data: str
    folder: Path
    question: tuple[str, ...]
    deadline: float  # seconds for one command
    store: Store | None = None
    other_data: str = ""  # of the same shape
    config: bool = True
    keys: Path | None = None  # folder of certificates: all speak TLS
    address: str = ""
    before: Left = field(default_factory=Left)
    workers: list[str] = field(default_factory=list)
    pids: dict[str, int] = field(default_factory=dict)  # of workers, when they had come
    commands: list[Command] = field(default_factory=list)
    addresses: dict[str, str] = field(default_factory=dict)
    threads: dict[str, int] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)  # bytes of memory
    notes: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)  # what only the trial itself can see

    def host(self, name: str) -> Host:
        return self.network.host(name)

    def env(self, **more: str) -> dict[str, str]:
        """Of all processes: this dfeas, nothing of this user's, and our configuration of Dask unless there is none."""
        configured = {}
        if self.config:
            configured["DASK_CONFIG"] = str(self.keys or self.environments.folder / "dask.yaml")
        store = self.store.env if self.store else {}
        path = f"{BIN}:{os.environ['PATH']}"
        return {"PATH": path, "PYTHONPATH": str(self.environments.current), "LANG": "C.UTF-8", **configured, **store, **more}

    def begin(self, workers: int = 3, scheduler: dict[str, Any] | None = None, **each: Any) -> None:
        """A scheduler, and workers of the same kind; what is given for both are arguments of the methods below."""
        self.start_scheduler(**(scheduler or {}))
        for number in range(1, workers + 1):
            self.start_worker(f"w{number}", **each)
        self.gather(workers)

    def start_scheduler(self, env: dict[str, str] | None = None, programs: Path = BIN, **more: Any) -> None:
        host = self.host("scheduler")
        file = self.folder / "scheduler.json"
        file.unlink(missing_ok=True)  # that of an earlier one
        listen = ("--host", host.address, "--port", 0, "--no-dashboard", "--scheduler-file", file)
        wire = ("--protocol", "tls") if self.keys else ()
        host.start(programs / "dask", "scheduler", *listen, *wire, log="scheduler.log", env=self.env(**(env or {})), **more)
        wait_for(lambda: file.exists() and file.read_text().endswith("}"), START_SECONDS, "the scheduler")
        assert alive(host.running[-1].pid), "the scheduler has ended"
        self.address = json.loads(file.read_text())["address"]

    def start_worker(
        self,
        name: str,
        *words: object,
        env: dict[str, str] | None = None,
        programs: Path = BIN,
        threads: int = 1,
        wrap: tuple[object, ...] = (),
    ) -> None:
        host = self.host(name)
        here = ("--host", host.address, "--no-dashboard", "--local-directory", host.folder / "scratch")
        about = ("--name", name, "--nthreads", threads, *here, *words)
        joins = self.env(**(env or {}))
        host.start(programs / "dask", "worker", self.address, *about, log="worker.log", wrap=wrap, env=joins)
        self.workers.append(name)
        self.threads[name] = threads

    def gather(self, workers: int) -> None:
        """Wait for so many workers, and see what the cluster looks like before anything was run on it."""
        with self.client() as client:
            wait_for(lambda: len(client.nthreads()) >= workers, START_SECONDS, f"workers, {workers} of them,")
            self.before = look(client)
            pids = client.run(os.getpid)
            named = client.scheduler_info(n_workers=-1)["workers"]
            self.pids = {about["name"]: pids[address] for address, about in named.items()}
            self.addresses = {about["name"]: address for address, about in named.items()}
            self.limits = {about["name"]: about["memory_limit"] for about in named.values()}
            asked = {name: self.threads[name] for name in self.pids}
            assert asked == {about["name"]: about["nthreads"] for about in named.values()}, "other threads than asked for"
            if self.keys is None:
                there = client.run_on_scheduler(dask.config.get, SHIPPED)
                assert (there == load_configuration()[SHIPPED]) == self.config, f"{SHIPPED} is {there} there"

    def require_clock(self, seconds: float, worker: str = "") -> None:
        """Raises AssertionError unless the clock of a worker, or the scheduler's, is so much ahead of this one."""
        with self.client() as client:
            there = client.run(time.time, workers=[self.addresses[worker]]) if worker else client.run_on_scheduler(time.time)
        ahead = (next(iter(there.values())) if worker else there) - time.time()
        assert abs(ahead - seconds) < CLOCK_SECONDS, f"the clock is {ahead:.0f} s ahead: the trial says nothing"

    @contextmanager
    def client(self) -> Iterator[Client]:
        """Another user of the cluster."""
        encrypted = [str(self.keys)] if self.keys else []
        known = {**load_configuration(), **dask.config.merge(dask.config.config, dask.config.collect(encrypted, env={}))}
        with dask.config.set(known), warnings.catch_warnings():
            warnings.simplefilter("ignore", VersionMismatchWarning)  # of trials with other versions
            with Client(self.address, timeout=START_SECONDS, set_as_default=False) as client:
                yield client

    def kept(self, client: Client) -> float:
        """MiB of blocks that workers keep."""
        return look(client).kept_mb

    def strike(self, command: Command, worker: str, number: int) -> None:
        """Send the process that works, not its nanny, a signal while a command runs."""
        self.still(command)
        process = psutil.Process(self.pids[worker])
        process.send_signal(number)
        if number == signal.SIGSTOP:
            wait_for(lambda: process.status() == psutil.STATUS_STOPPED, LOOK_SECONDS, f"the stop of {worker}")
        else:
            wait_for(lambda: not alive(process.pid), LOOK_SECONDS, f"the end of {worker}")

    def solve(self, *more: object, data: object = None, host: str = "driver", out: str = "", **env: str) -> Command:
        """Begin the trial's question."""
        run = out or str(self.folder / f"run{len(self.commands)}")
        words = ("solve", data or self.data, *self.question, "--out", run, "--scheduler", self.address)
        return self.command(*words, *more, host=host, run=run, **env)

    def resume(self, run: str, *more: object, host: str = "driver", **env: str) -> Command:
        return self.command("resume", run, "--scheduler", self.address, *more, host=host, run=run, **env)

    def command(self, *words: object, host: str = "driver", run: str = "", **env: str) -> Command:
        """Begin any command of dfeas; ``run`` is where its result will be."""
        log = f"command{len(self.commands)}.log"
        process = self.host(host).start(BIN / "dfeas", *words, log=log, env=self.env(**env))
        made = Command(process, self.host(host).folder / log, run, self.store)
        self.commands.append(made)
        return made

    def wait(self, *commands: Command) -> None:
        for command in commands or self.commands:
            command.wait(self.deadline)

    def at_pass(self, command: Command, passes: int) -> None:
        """Wait for it. Raises TooLateError when the command ends before."""
        wait_for(lambda: command.passes >= passes or command.process.poll() is not None, self.deadline, f"pass {passes}")
        self.still(command)

    def still(self, command: Command) -> None:
        """Raises TooLateError when the command has ended."""
        if command.process.poll() is not None:
            raise TooLateError(f"the command ended with {command.process.returncode} before the fault")

    def left(self, stays: int = 0, seconds: float = 40.0) -> Left:
        """What is there now that all can answer; what goes within so many seconds, as leases do, is not left."""
        for host in self.network.hosts.values():
            host.signal_all(signal.SIGCONT)
            if host.wire:
                host.cut(down=False)
        if not self.address or not alive(self.host("scheduler").running[-1].pid):
            return Left()
        deadline = time.monotonic() + seconds
        with self.client() as client:
            while True:
                found = look(client)
                if (max(found.tasks, found.keys) <= stays and not found.kept_mb) or time.monotonic() > deadline:
                    return found
                time.sleep(0.5)

    def files(self) -> list[str]:
        return [f"{host.name}/{name}" for host in self.network.hosts.values() for name in host.files()]

    def said(self, pattern: str) -> str:
        """The first line of any command with this pattern, where {w1} is the address of that worker; empty where none has."""
        for name, address in self.addresses.items():
            pattern = pattern.replace(f"{{{name}}}", re.escape(address))
        found = (line for command in self.commands for line in command.text.splitlines() if re.search(pattern, line))
        return next(found, "")

    def last_words(self) -> str:
        """The last line of the first command that ended with an error."""
        failed: Iterable[Command] = (command for command in self.commands if str(command.code) in FAILED)
        lines = next((command.text.strip().splitlines() for command in failed), [])
        errors = [line for line in lines if line.startswith("dfeas:")]
        return (errors or lines or [""])[-1]
