"""The scripts that need no queue: run as they are shipped, on loopback, each to a verdict that is checked."""

import json
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from dfeas.engine.clusters import load_configuration
from tests.cluster.conftest import AWAY, STATUS

# about ten processes start for a run: on a busy machine that takes its time
pytestmark = pytest.mark.timeout(300)

CLUSTER = Path(__file__).parents[2] / "cluster"
SCRIPTS = ["container", "laptop", "scheduler-file", "ssh", "slurm.sbatch"]
# a driver that notes its words and waits for a signal, which it notes, too
PATIENT = f"""{STATUS}
echo "$*" >> calls
for name in INT TERM USR1; do trap "echo $name >> signals; exit 75" $name; done
echo ready >> calls
while :; do read -r -t 0.05 <&3 || true; done
"""
# a scheduler that writes its file, a worker that does nothing
DASK = """
echo "$1" >> parts
while [ $# -gt 1 ]; do [ "$1" = --scheduler-file ] && echo '{"address": "tcp://127.0.0.1:1"}' > "$2"; shift; done
exec sleep 600
"""


@pytest.mark.parametrize("name", [*SCRIPTS, "driver.bash"])
def test_bash_can_read_a_script(name: str) -> None:
    subprocess.run(["bash", "-n", CLUSTER / name], check=True)
    text = (CLUSTER / name).read_text()
    assert max(map(len, text.splitlines())) <= 128
    assert name == "driver.bash" or "set -euo pipefail" in text


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="needs shellcheck")
@pytest.mark.parametrize("name", SCRIPTS)
def test_shellcheck_finds_nothing(name: str) -> None:
    words = ["shellcheck", "-x", "-P", "SCRIPTDIR", "--severity=warning", CLUSTER / name]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_there_is_one_dask_configuration() -> None:
    file = CLUSTER / "dask.yaml"
    assert file.is_symlink()
    assert file.resolve() == CLUSTER.parent / "dfeas" / "engine" / "dask.yaml"
    assert (
        yaml.safe_load(file.read_text())["distributed"]["scheduler"]["worker-ttl"]
        == (load_configuration()["distributed.scheduler.worker-ttl"])
    )


def test_the_table_names_every_file() -> None:
    text = (CLUSTER / "README.md").read_text()
    shipped = {path.name for path in CLUSTER.iterdir() if path.is_file() and path.name != "README.md"}
    assert {name for name in shipped if f"cluster/{name}" not in text} == set()
    assert set(re.findall(r"cluster/([\w.-]*\w)", text)) == shipped


@pytest.mark.parametrize("name", ["container", "laptop", "scheduler-file", "ssh"])
def test_a_script_without_words_says_how_to_use_it(room: Any, name: str) -> None:
    done = room.run(CLUSTER / name)
    assert done.returncode == 2
    assert done.stderr.startswith("usage:")


def test_laptop_solves_and_says_so_when_it_is_typed_again(room: Any, points: Path) -> None:
    assert room.verdict(CLUSTER / "laptop", points, "run", "--json", WORKERS=2) == "feasible"
    assert json.loads((room.path / "run" / "result.json").read_text())["verdict"] == "feasible"
    assert not room.processes()
    before = {path.name: path.read_bytes() for path in (room.path / "run").iterdir()}
    again = room.run(CLUSTER / "laptop", points, "run", WORKERS=2)
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.startswith("run: feasible, pass 2, margin ")
    assert {path.name: path.read_bytes() for path in (room.path / "run").iterdir()} == before


@pytest.mark.parametrize(
    ("settings", "code", "calls"),
    [
        ({"ENDS_AT": 3, "ENDS_WITH": 0}, 0, ["solve", "resume", "resume"]),
        ({"ENDS_AT": 2, "ENDS_WITH": 5}, 5, ["solve", "resume"]),
        ({"ENDS_AT": 1, "ENDS_WITH": 4}, 4, ["solve"]),
        ({"ENDS_AT": 99, "ENDS_WITH": 0, "MAX_RESTARTS": 2}, 75, ["solve", "resume", "resume"]),
    ],
)
def test_a_driver_that_ends_with_75_goes_on(room: Any, settings: dict[str, int], code: int, calls: list[str]) -> None:
    room.command("dfeas", AWAY)
    done = room.run(CLUSTER / "laptop", "points", "run", "--eps", "0.1", WORKERS=3, PAUSE=0, **settings)
    assert done.returncode == code
    words = {"solve": "solve points --out run --local 3 --eps 0.1", "resume": "resume run --local 3"}
    assert room.said("calls") == [words[call] for call in calls]
    assert done.stderr.count("run: goes on in 0 s") == len(calls) - 1


def test_a_run_without_a_checkpoint_does_not_go_on(room: Any) -> None:
    room.command("dfeas", f'{STATUS}\necho "$*" >> calls\nexit 75')
    assert room.run(CLUSTER / "laptop", "points", "run", WORKERS=1, PAUSE=0).returncode == 75
    assert len(room.said("calls")) == 1


def test_who_ends_a_script_ends_its_pause(room: Any, until: Callable[..., None]) -> None:
    room.command("dfeas", AWAY)
    settings = {"WORKERS": 1, "PAUSE": 600, "ENDS_AT": 9, "ENDS_WITH": 0}
    with room.start(CLUSTER / "laptop", "points", "run", **settings) as process:
        until(lambda: any(asleep(p, "600") for p in room.processes()) or process.poll() is not None)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 75
    assert len(room.said("calls")) == 1


def test_scheduler_file_goes_on_while_its_scheduler_lives(room: Any) -> None:
    """The cluster is a stand-in here; a scheduler that has ended lets nothing go on."""
    room.command("dfeas", AWAY)
    room.command("dask", DASK)
    room.command("python", f'[ "$1" = - ] && exit\nexec {sys.executable} "$@"')
    settings = {"WORKERS": 1, "PAUSE": 0, "ENDS_AT": 2, "ENDS_WITH": 0}
    for option in ("--out", "resume"):
        (room.path / "calls").unlink(missing_ok=True)
        words = ("solve", "points", "--out", "run") if option == "--out" else ("resume", "run")
        done = room.run(CLUSTER / "scheduler-file", *words, **settings)
        assert done.returncode == 0, done.stderr
        first, second = room.said("calls")
        assert first.startswith(" ".join(words) + " --scheduler-file /")
        assert second.startswith("resume run --scheduler-file /")
    # with the driver ends its scheduler, whose number the stand-in has noted
    room.command("dask", f'[ "$1" = worker ] || echo $$ > scheduler\n{DASK}')
    gone = "read -r pid < scheduler; kill $pid; while kill -0 $pid 2>&-; do read -r -t 0.05 <&3 || true; done; exit 75"
    room.command("dfeas", AWAY.replace("exit 75", f"{{ {gone}; }}"))
    (room.path / "calls").unlink()
    done = room.run(CLUSTER / "scheduler-file", "solve", "points", "--out", "run", **settings)
    assert done.returncode == 75
    assert "the Dask scheduler has ended; dfeas resume run goes on" in done.stderr
    assert len(room.said("calls")) == 1


def test_scheduler_file_solves_and_leaves_nothing(room: Any, points: Path, until: Callable[..., None]) -> None:
    """A driver between two questions: where everything listens, who may read the scheduler file, and what remains."""
    go = room.hold()
    words = (CLUSTER / "scheduler-file", "solve", points, "--out", "run", "--json")
    with room.start(*words, WORKERS=2, FOLDER=room.path / "shared") as process:
        until(lambda: (room.path / "ready").exists() or process.poll() is not None)
        file = room.path / "shared" / "scheduler.json"
        assert file.stat().st_mode & 0o077 == 0
        assert room.addresses() == {"127.0.0.1"}
        go.touch()
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert json.loads(out)["verdict"] == "feasible"
    assert "WARNING" not in err
    assert not room.processes()
    assert not room.left()
    assert not file.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_the_driver_gets_the_signals_of_its_script(room: Any, number: signal.Signals, until: Callable[..., None]) -> None:
    room.command("dfeas", PATIENT)
    with room.start(CLUSTER / "laptop", "points", "run", WORKERS=1) as process:
        until(lambda: "ready" in room.said("calls"))
        process.send_signal(number)
        process.communicate(timeout=30)
    assert process.returncode == 75
    assert room.said("signals") == [number.name.removeprefix("SIG")]


def test_an_interrupted_driver_takes_its_cluster_with_it(room: Any, until: Callable[..., None]) -> None:
    """The cluster is a stand-in here, which lives until it is stopped."""
    room.command("dfeas", PATIENT)
    room.command("dask", DASK)
    room.command("python", "printf tcp://127.0.0.1:1")
    with room.start(CLUSTER / "scheduler-file", "solve", "points", "--out", "run", WORKERS=1) as process:
        until(lambda: "ready" in room.said("calls") or process.poll() is not None)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 75
    assert room.said("signals") == ["TERM"]
    assert room.said("parts") == ["scheduler", "worker"]
    assert not room.processes()
    assert not room.left()


@pytest.mark.parametrize(
    ("address", "warned"),
    [
        ("tcp://127.0.0.1:8786", False),
        ("tcp://[::1]:8786", False),
        ("tls://10.0.0.5:8786", False),
        ("tcp://10.0.0.5:8786", True),
        ("tcp://node127.example.com:8786", True),
        ("tcp://0.0.0.0:8786", True),
    ],
)
def test_a_scheduler_that_others_reach_is_said(room: Any, address: str, warned: bool) -> None:
    done = room.run("bash", "-c", '. "$1" && warn_of "$2"', "bash", CLUSTER / "driver.bash", address)
    assert done.returncode == 0
    assert ("WARNING" in done.stderr) == warned


def test_a_scheduler_that_does_not_start_is_said(room: Any) -> None:
    room.command("dask", "exit 1")
    done = room.run(CLUSTER / "scheduler-file", "solve", "points", "--out", "run", WORKERS=1)
    assert done.returncode == 1
    assert "the Dask scheduler did not start" in done.stderr
    assert not room.left()


def test_ssh_starts_both_hosts_and_solves(room: Any, points: Path) -> None:
    """ssh is a stand-in that runs the words here, as a login shell there would; the hosts are two loopback addresses."""
    room.command("ssh", 'echo "$3" >> hosts\nshift 3\nexec sh -c "$*"')
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {"HOSTS": "127.0.0.1 user@127.0.0.2", "WORKERS": 1, "PORT": port}
    assert room.verdict(CLUSTER / "ssh", "solve", points, "--out", "run", "--json", **settings) == "feasible"
    assert sorted(room.said("hosts")) == ["127.0.0.1", "127.0.0.1", "user@127.0.0.2"]
    assert not room.processes()
    assert not room.left()


def test_workers_that_do_not_come_are_said(room: Any) -> None:
    words = ("bash", "-c", '. "$1" && wait_for_workers "$2" 1', "bash", CLUSTER / "driver.bash")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        done = room.run(*words, address, PATIENCE=1)
    assert done.returncode == 1
    assert f"no Dask scheduler answers at {address}" in done.stderr
    assert "Traceback" not in done.stderr


def asleep(process: psutil.Process, seconds: str) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.cmdline()[-2:] == ["sleep", seconds]
    return False


def test_remote_processes_end_with_the_script(room: Any, until: Callable[..., None]) -> None:
    """Killed, the script can stop nothing any more: its end is the end of their standard input."""
    room.command("ssh", 'shift 3\nexec sh -c "$*"')
    room.command("dask", "echo there >> calls\nexec sleep 600")
    room.command("python", "exec sleep 601")
    with room.start(CLUSTER / "ssh", "solve", "points", "--out", "run", HOSTS="127.0.0.1 127.0.0.2", WORKERS=1) as process:
        until(lambda: len(room.said("calls")) == 3)
        process.kill()
        until(lambda: not any(asleep(p, "600") for p in room.processes()))
        assert process.wait(timeout=10) == -signal.SIGKILL
