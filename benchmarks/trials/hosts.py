"""Hosts for clusters: network namespaces with a wire each, or, without root, plain processes on loopback."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen
from typing import Any

import psutil

import dfeas

NETWORK = "198.18.0"  # a network that RFC 2544 gives to benchmarks: no machine's own
SWITCH = f"{NETWORK}.1"
BIN = Path(sys.executable).parent
LEAST_FRAMES = 100
"""From a host with a slow wire, in a run."""
WIRES = Path(__file__).with_name("wires.py")


def wait_for(condition: Callable[[], object], seconds: float, what: str) -> None:
    """Raises TimeoutError that says what did not come."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not come within {seconds:g} s")
        time.sleep(0.02)


def possible() -> bool:
    """Whether this process may make namespaces."""
    return os.geteuid() == 0 and all(shutil.which(name) for name in ("ip", "nsenter", "unshare"))


def show_link(name: str, *prefix: str) -> dict[str, Any]:
    """What is known of a wire."""
    words = [*prefix, "ip", "-s", "-j", "link", "show", "dev", name]
    found: dict[str, Any] = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)[0]
    return found


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


@contextmanager
def switch() -> Iterator[str]:
    """The name of a namespace with a bridge; in the end it goes, with the namespaces that were made for its hosts."""
    name = f"trial{os.getpid()}"
    run("ip", "netns", "add", name)
    try:
        inside = ("nsenter", f"--net=/run/netns/{name}", "ip")
        for words in ("link set lo up", "link add br0 type bridge", f"addr add {SWITCH}/24 dev br0", "link set br0 up"):
            run(*inside, *words.split())
        yield name
    finally:
        for path in Path("/run/netns").glob(f"{name}*"):
            subprocess.run(["ip", "netns", "del", path.name], check=False)


@dataclass
class Host:
    """A machine: an address, a folder of its own, and what runs there."""

    name: str
    address: str
    folder: Path
    prefix: tuple[str, ...] = ()
    wire: str = ""  # its end at the switch
    running: list[Popen[str]] = field(default_factory=list)
    slow: Popen[str] | None = None  # the program of a slow wire

    def start(self, *words: object, log: str, wrap: tuple[object, ...] = (), env: dict[str, str] | None = None) -> Popen[str]:
        """A process there; what it says is in the file ``log`` of the host's folder."""
        for each in ("work", "tmp"):
            (self.folder / each).mkdir(parents=True, exist_ok=True)
        named = ("unshare", "--uts", "sh", "-c", f'hostname {self.name} && exec "$@"', "sh") if self.wire else ()
        own = {"HOME": str(self.folder), "TMPDIR": str(self.folder / "tmp"), **(env or {})}
        with (self.folder / log).open("w") as file:
            process = Popen(
                [*self.prefix, *named, *map(str, (*wrap, *words))],
                cwd=self.folder / "work",
                env=own,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        self.running.append(process)
        return process

    def signal_all(self, number: int) -> None:
        """To all processes of this host."""
        for process in self.running:
            signal_group(process, number)

    def strike(self, number: int) -> None:
        """The same, as a fault. Raises AssertionError when nothing runs here."""
        assert any(alive(process.pid) for process in self.running), f"nothing runs on {self.name}: the trial says nothing"
        self.signal_all(number)

    def cut(self, down: bool = True) -> None:
        """Pull its wire out, or put it in again."""
        run("ip", "link", "set", self.wire, "down" if down else "up")
        assert ("UP" in show_link(self.wire)["flags"]) != down, f"the wire {self.wire} is not as it should be"

    def slow_down(self, bits_per_second: float = 1e9, seconds: float = 0.0, loss: float = 0.0) -> None:
        """Another wire in the place of its own, until the end of the trial."""
        far, near = f"{self.wire}far", f"{self.wire}near"
        words = [sys.executable, str(WIRES), far, near, *map(str, (bits_per_second, seconds, loss))]
        self.slow = Popen(words, stdout=subprocess.PIPE, text=True)
        assert self.slow.stdout is not None
        assert self.slow.stdout.readline(), "the slow wire did not start"
        shown = show_link("eth0", *self.prefix)
        run("ip", "link", "set", near, "master", "br0", "up")
        run("ip", "link", "set", far, "netns", Path(self.prefix[1]).name)
        for words in (
            "link set eth0 down",
            "addr flush dev eth0",
            f"link set {far} address {shown['address']}",  # others know this host by it
            f"addr add {self.address}/24 dev {far}",
            f"link set {far} up",
        ):
            run(*self.prefix, "ip", *words.split())

    def require_slow(self) -> None:
        """Raises AssertionError unless what came here went over the slow wire."""
        assert self.slow is not None
        assert self.slow.poll() is None, "the slow wire has ended: the trial says nothing"
        frames = show_link(f"{self.wire}near")["stats64"]["rx"]["packets"]
        assert frames > LEAST_FRAMES, f"{frames} frames went over the slow wire: the trial says nothing"

    def take_own_wire(self) -> None:
        """The wire is as new."""
        if self.slow is not None:
            self.slow.kill()
            self.slow.communicate()
            self.slow = None
            for words in (f"addr add {self.address}/24 dev eth0", "link set eth0 up"):
                run(*self.prefix, "ip", *words.split())
        self.cut(down=False)

    def end(self) -> None:
        """End what runs there, as it is, and let the wire be as new."""
        self.signal_all(signal.SIGKILL)
        for process in self.running:
            process.wait()
        self.running.clear()
        if self.wire:
            self.take_own_wire()

    def files(self) -> list[str]:
        """What lies in its folders beside the logs and Dask's own locks."""
        made = (path for each in ("work", "tmp", "scratch") for path in (self.folder / each).rglob("*") if path.is_file())
        return sorted(str(path.relative_to(self.folder)) for path in made if not path.name.endswith(("lock", ".lock")))


def signal_group(process: Popen[str], number: int) -> None:
    """To a process that was started here and all that it started; one that has ended may have left some."""
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return


def alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


class Network:
    """Hosts by name, made when they are asked for; ``switch`` is the namespace of the bridge, None for loopback."""

    def __init__(self, folder: Path, switch: str | None) -> None:
        self.folder, self.switch = folder, switch
        self.hosts: dict[str, Host] = {}
        self.here = SWITCH if switch else "127.0.0.1"

    def host(self, name: str) -> Host:
        if name not in self.hosts:
            self.hosts[name] = self._make(name)
        return self.hosts[name]

    def _make(self, name: str) -> Host:
        if self.switch is None:
            return Host(name, "127.0.0.1", self.folder / name)
        number = len(self.hosts)
        space, wire, address = f"{self.switch}-{name}", f"v{number}", f"{NETWORK}.{number + 10}"
        run("ip", "netns", "add", space)
        inside = ("nsenter", f"--net=/run/netns/{space}")
        run("ip", "link", "add", "name", wire, "type", "veth", "peer", "name", "eth0", "netns", f"/run/netns/{space}")
        run("ip", "link", "set", wire, "master", "br0", "up")
        for words in (f"addr add {address}/24 dev eth0", "link set eth0 up", "link set lo up"):
            run(*inside, "ip", *words.split())
        return Host(name, address, self.folder / name, inside, wire)

    def end(self, aside: Path) -> None:
        """End all processes, put the folders of hosts aside, and begin with empty ones."""
        for host in self.hosts.values():
            host.end()
            if host.folder.exists():
                host.folder.rename(aside / host.name)


def package(folder: Path, version: str = dfeas.__version__) -> Path:
    """A folder for ``PYTHONPATH`` with this dfeas and nothing else, so that any environment may work with it."""
    folder.mkdir()
    folder.joinpath("dfeas").symlink_to(Path(dfeas.__file__).parent)
    about = folder / f"dfeas-{version}.dist-info"
    about.mkdir()
    about.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: dfeas\nVersion: {version}\n")
    return folder
