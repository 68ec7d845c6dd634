"""Signals at any moment, of whole processes: one line, exit code 75, nothing left over. And ports that answer nothing."""

import http.server
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

import dask
import psutil
import pytest

from dfeas.engine.clusters import connect
from dfeas.engine.signals import SIGNALS, asked_to_stop, interruptible
from dfeas.errors import UsageError
from tests.faults.faulty import wait_until
from tests.typed import DFEAS
from tests.typed import dfeas as typed

INTERRUPTED = (75, "dfeas: interrupted\n")


@contextmanager
def running(*words: Any, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    """A command in a group of its own, which has the signals of a shell in a terminal."""

    def default() -> None:
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)

    process = subprocess.Popen(
        [*DFEAS, *map(str, words)],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=default,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def ended(process: subprocess.Popen[str], number: signal.Signals) -> tuple[int, str]:
    """How all of its group took a signal: the exit code, and what was said."""
    assert process.poll() is None, process.communicate()
    os.killpg(process.pid, number)
    said = process.communicate(timeout=30)[1]
    return process.returncode, said


def caught(process: subprocess.Popen[str]) -> bool:
    """Whether a process has said what the last of all signals is to do; Python itself catches the first."""
    masks = dict(line.split(":\t") for line in Path(f"/proc/{process.pid}/status").read_text().splitlines() if ":\t" in line)
    return bool(int(masks["SigCgt"], 16) >> (SIGNALS[-1] - 1) & 1)


@contextmanager
def mute() -> Iterator[str]:
    """The address of somebody who accepts connections and says nothing."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield f"tcp://127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def web() -> Iterator[str]:
    """The address of somebody who speaks HTTP."""
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"tcp://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@contextmanager
def talkative() -> Iterator[str]:
    """The address of somebody who says something else before it is asked anything."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            with listener.accept()[0] as there:
                there.sendall(b"HTTP/1.1 401 Unauthorized\r\n\r\n" * 9)
                there.recv(1)

        threading.Thread(target=answer, daemon=True).start()
        yield f"tcp://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize("somebody", [mute, web, talkative])
def test_a_port_that_does_not_speak_dask_is_refused(somebody: Any) -> None:
    with (
        somebody() as address,
        dask.config.set({"distributed.comm.timeouts.connect": "0.3s"}),
        pytest.raises(UsageError, match=f"{address}: what accepts connections there did not"),
        connect(address),
    ):
        pass


def test_a_signal_ends_what_waits_for_a_scheduler(tmp_path: Path) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(60)
        address = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        with running("solve", "data", "--out", "run", "--scheduler", address, cwd=tmp_path) as process:
            met = listener.accept()[0]
            assert ended(process, signal.SIGTERM) == INTERRUPTED
            met.close()


def test_a_signal_ends_what_is_being_imported(tmp_path: Path) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with running("solve", "data", "--out", "run", cwd=tmp_path) as process:
            wait_until(lambda process=process: caught(process))
            assert ended(process, number) == INTERRUPTED


def test_a_signal_ends_a_cluster_that_starts_with_all_its_processes(tmp_path: Path) -> None:
    number = signal.SIGINT
    assert typed("generate", "halfspace", "data", "--features", 5, "--points", 100, cwd=tmp_path).returncode == 0
    with running("solve", "data", "--out", "run", "--local", 2, cwd=tmp_path) as process:
        wait_until(lambda: len(psutil.Process(process.pid).children()) > 1)
        children = psutil.Process(process.pid).children(recursive=True)
        assert ended(process, number) == INTERRUPTED
        assert not psutil.wait_procs(children, 10)[1]
    assert not (tmp_path / "run").exists()


def test_a_signal_leaves_nothing_of_an_output(tmp_path: Path) -> None:
    number = signal.SIGHUP
    words = ("generate", "halfspace", "data", "--features", 200, "--points")
    with running(*words, 10_000_000, cwd=tmp_path) as process:
        wait_until(lambda: (tmp_path / "data" / "X" / "c.0.0").exists())
        assert ended(process, number) == INTERRUPTED
    assert not (tmp_path / "data").exists()


TEXT = """
import sys
from dfeas.engine.signals import at_once_from_now, mark_ended
at_once_from_now()
try:
    exec("raise KeyboardInterrupt")
except KeyboardInterrupt:
    print("said", end="")
mark_ended(75)
sys.exit(75)
"""


def test_an_interrupt_of_what_python_runs_from_a_text_has_the_exit_code_of_all(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(TEXT)
    done = subprocess.run([sys.executable, "-m", "program"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (75, "said", "")


@pytest.fixture
def hanging_up() -> Iterator[None]:
    """A terminal that goes ends this program, as by default, also where it was started so that it does not."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hanging_up")
def test_what_nobody_asks_about_yet_is_interrupted() -> None:
    with asked_to_stop() as stop, pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)
    with asked_to_stop() as stop:
        assert not stop()
        signal.raise_signal(signal.SIGHUP)
        assert stop()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)


def test_what_a_terminal_sends_twice_interrupts_once_and_what_was_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible():
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    "when", ["mark_ended(7); os.kill(os.getpid(), 15)", "mark_ended(7); atexit.register(os.kill, os.getpid(), 2)"]
)
def test_a_signal_after_the_end_changes_nothing(when: str) -> None:
    code = f"import atexit, os, sys; from dfeas.engine.signals import *; at_once_from_now(); {when}; sys.exit(7)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (7, "")


@pytest.mark.parametrize(
    ("number", "phase"),
    [
        (signal.SIGINT, "interruptible"),
        (signal.SIGTERM, "asked_to_stop"),
        (signal.SIGINT, "looked"),
        (signal.SIGTERM, "looked"),
    ],
)
def test_an_interrupt_where_nothing_can_be_raised_comes_once_more(number: signal.Signals, phase: str) -> None:
    begun = f"""
        import os, time
        from dfeas.engine.signals import *
        class Gone:
            def __del__(self):
                os.kill(os.getpid(), {number:d})
        at_once_from_now()
        with interruptible(), {"interruptible" if phase == "interruptible" else "asked_to_stop"}() as stop:
            try:
                {phase == "looked"} and stop()
                Gone()
                time.sleep(0 if {phase == "looked"} and stop() else 20)
                print("stopped")
            except KeyboardInterrupt:
                print("interrupted")
    """
    done = subprocess.run([sys.executable, "-c", dedent(begun)], capture_output=True, text=True, check=False)
    said = "stopped\n" if phase == "looked" and number == signal.SIGTERM else "interrupted\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")


def test_what_event_loops_of_others_had_begun_ends_in_silence() -> None:
    begun = """
        import asyncio, sys
        loop = asyncio.new_event_loop()
        task = loop.create_task(asyncio.sleep(100))
        loop.call_soon(loop.stop)
        loop.run_forever()
        sys.argv = ["dfeas", "solve", "nowhere"]
        from dfeas.__main__ import main
        main()
    """
    done = subprocess.run([sys.executable, "-c", dedent(begun)], capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("dfeas: error: ")
