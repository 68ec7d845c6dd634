"""The SLURM scripts without SLURM: stand-ins for its commands run the tasks and jobs here, on loopback."""

import json
import re
import signal
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import AWAY, STATUS

# about ten processes start for a run: on a busy machine that takes its time
pytestmark = pytest.mark.timeout(300)

PROJECT = Path(__file__).parents[2]
BATCH = PROJECT / "cluster" / "slurm.sbatch"
ELASTIC = PROJECT / "cluster" / "slurm_elastic.py"
JOB = {"SLURM_SUBMIT_DIR": PROJECT, "SLURM_JOB_ID": 77, "SLURM_JOB_NUM_NODES": 1}
# not imported here: it takes over Ctrl-C
jobqueue = pytest.mark.skipif(find_spec("dask_jobqueue") is None, reason="needs dask-jobqueue")
ONE_NODE_ONLY = "more than one node: set INTERFACE"

# as many tasks as the job asks for, each with its number; a signal to srun goes to all of them
SRUN = """
export SLURM_NTASKS=3
tasks=()
for number in 0 1 2; do SLURM_PROCID=$number "$@" & tasks+=($!); done
trap 'kill -TERM "${tasks[@]}"' TERM
wait
"""
# a scheduler file and nothing behind it
NO_TASKS = """printf '{"address": "tcp://127.0.0.1:1"}' > "$3"\nexec sleep 600"""
# the job starts at once, in a process group of its own
SBATCH = """
cp "$1" job.sh
set -m
bash job.sh >job.log 2>&1 </dev/null &
echo $! >> jobs
echo "Submitted batch job $!"
"""
NOTE = 'echo "$(basename "$0") $*" >> calls'
# the first start runs into the time limit and leaves a checkpoint; later ones reach a verdict
DRIVER = f"""{STATUS}
echo "dfeas $*" >> calls
[ "$1" = resume ] && exit 0
for name in TERM USR1; do trap "echo $name >> signals; mkdir -p run/checkpoint; exit 75" $name; done
echo ready >> calls
while :; do read -r -t 0.05 <&3 || true; done
"""


@pytest.fixture
def slurm(room: Any) -> Any:
    """A room with stand-ins for scontrol, srun and the driver, which note what they are asked for."""
    room.command("scontrol", NOTE)
    room.command("srun", NO_TASKS)
    room.command("dfeas", DRIVER)
    return room


def signalled(slurm: Any, until: Callable[..., None], number: signal.Signals, **settings: Any) -> int:
    """Exit code of a job that gets a signal once its driver is there."""
    with slurm.start("bash", BATCH, "points", "run", "--eps", "0.1", **JOB, **settings) as process:
        until(lambda: "ready" in slurm.said("calls") or process.poll() is not None)
        process.send_signal(number)
        process.communicate(timeout=30)
    assert not slurm.processes()
    return int(process.returncode)


SOLVE = "dfeas solve points --out run --scheduler-file ./.dfeas-scheduler-77-{}.json --eps 0.1"
RESUME = "dfeas resume run --scheduler-file ./.dfeas-scheduler-77-1.json"


def test_the_time_limit_sends_the_job_back_into_the_queue_and_it_resumes(slurm: Any, until: Callable[..., None]) -> None:
    assert signalled(slurm, until, signal.SIGUSR1) == 75
    assert slurm.said("signals") == ["USR1"]
    assert slurm.said("calls") == [SOLVE.format(0), "ready", "scontrol requeue 77"]
    done = slurm.run("bash", BATCH, "points", "run/", "--eps", "0.1", **JOB, SLURM_RESTART_COUNT=1)
    assert done.returncode == 0, done.stderr
    assert slurm.said("calls")[3:] == [RESUME]
    assert not list(slurm.path.glob(".dfeas-scheduler*"))


def test_a_cancelled_job_stays_cancelled(slurm: Any, until: Callable[..., None]) -> None:
    assert signalled(slurm, until, signal.SIGTERM) == 75
    assert slurm.said("calls") == [SOLVE.format(0), "ready"]


def test_a_job_is_not_restarted_for_ever(slurm: Any, until: Callable[..., None]) -> None:
    settings = {"SLURM_RESTART_COUNT": 3, "MAX_RESTARTS": 3}
    assert signalled(slurm, until, signal.SIGUSR1, **settings) == 75
    assert slurm.said("calls") == [SOLVE.format(3), "ready"]


def test_a_limit_that_comes_before_the_driver_is_no_loss(slurm: Any, until: Callable[..., None]) -> None:
    slurm.command("srun", "echo waiting >> calls\nexec sleep 600")
    with slurm.start("bash", BATCH, "points", "run", **JOB) as process:
        until(lambda: slurm.said("calls"))
        process.send_signal(signal.SIGUSR1)
        process.communicate(timeout=30)
    assert process.returncode == 75
    assert slurm.said("calls") == ["waiting", "scontrol requeue 77"]


@pytest.mark.parametrize(("code", "requeued"), [(0, False), (3, False), (4, False), (75, True)])
def test_only_a_resumable_end_is_requeued(slurm: Any, code: int, requeued: bool) -> None:
    slurm.command("dfeas", f"{STATUS}\nexit {code}")
    assert slurm.run("bash", BATCH, "points", "run", **JOB).returncode == code
    assert slurm.said("calls") == (["scontrol requeue 77"] if requeued else [])


def test_a_start_that_ended_before_its_first_checkpoint_is_put_aside(slurm: Any) -> None:
    slurm.command("dfeas", STATUS + NOTE)
    (slurm.path / "run").mkdir()
    assert slurm.run("bash", BATCH, "points", "run", "--eps", "0.1", **JOB, SLURM_RESTART_COUNT=2).returncode == 0
    assert slurm.said("calls") == [SOLVE.format(2)]
    assert (slurm.path / "run.before-restart-2").is_dir()


def test_tasks_that_end_at_once_end_the_job(slurm: Any) -> None:
    slurm.command("srun", "exit 1")
    done = slurm.run("bash", BATCH, "points", "run", **JOB)
    assert done.returncode == 1
    assert "the Dask scheduler did not start" in done.stderr
    assert slurm.said("calls") == []


def test_the_queue_is_asked_for_a_warning_and_a_requeue() -> None:
    asked = dict(re.findall(r"^#SBATCH --([a-z-]+)=?(\S*)", BATCH.read_text(), re.M))
    assert re.fullmatch(r"B:USR1@\d+", asked["signal"])
    assert asked["requeue"] == ""
    assert asked["open-mode"] == "append"
    assert asked["nodes"] == "1"
    # SLURM stops looking for them at the first command
    text = BATCH.read_text()
    assert text.rindex("#SBATCH") < text.index("set -euo pipefail")


@jobqueue
def test_one_allocation_solves(room: Any, points: Path, until: Callable[..., None]) -> None:
    """The scheduler and two workers of dask-jobqueue's runner, and the driver of this project."""
    room.command("srun", SRUN)
    room.command("scontrol", NOTE)
    go = room.hold()
    with room.start("bash", BATCH, points, "run", "--json", **JOB) as process:
        until(lambda: (room.path / "ready").exists() or process.poll() is not None)
        assert room.addresses() == {"127.0.0.1"}
        go.touch()
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert json.loads(out)["verdict"] == "feasible"
    assert room.said("calls") == []
    assert not room.processes()


@jobqueue
def test_tasks_on_several_nodes_need_an_interface(room: Any) -> None:
    settings = {**JOB, "SLURM_JOB_NUM_NODES": 2, "SLURM_PROCID": 0, "SLURM_NTASKS": 2}
    done = room.run(sys.executable, PROJECT / "cluster" / "slurm_tasks.py", "file", **settings)
    assert done.returncode == 1
    assert ONE_NODE_ONLY in done.stderr


@jobqueue
def test_an_elastic_cluster_solves(room: Any, points: Path, until: Callable[..., None]) -> None:
    """A job that the queue is given starts here at once; what is asked for, where things listen, and what remains."""
    room.command("sbatch", SBATCH)
    room.command("scancel", 'for job in "$@"; do echo $job >> cancelled; kill -TERM -- "-$job"; done')
    go = room.hold()
    settings = {"INTERFACE": "lo", "CORES": 1, "MEMORY": "2GB", "MAX_JOBS": 1, "QUEUE": "short", "WALLTIME": "1-02:00:00"}
    with room.start(sys.executable, ELASTIC, "solve", points, "--out", "run", "--json", **settings) as process:
        until(lambda: (room.path / "ready").exists() or process.poll() is not None)
        assert room.addresses() == {"127.0.0.1"}
        go.touch()
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert json.loads(out)["verdict"] == "feasible"
    job = (room.path / "job.sh").read_text()
    asked = ("#SBATCH -p short", "#SBATCH -t 1-02:00:00", "#SBATCH --cpus-per-task=1", "--lifetime 93300s", "umask 077")
    assert [words for words in asked if words not in job] == []
    assert room.said("cancelled") == room.said("jobs")
    assert len(room.said("jobs")) == 1
    until(lambda: not room.processes())


@jobqueue
@pytest.mark.parametrize(("ends_at", "code", "calls"), [(3, 0, ["solve", "resume", "resume"]), (2, 5, ["solve", "resume"])])
def test_an_elastic_cluster_goes_on_when_storage_was_away(room: Any, ends_at: int, code: int, calls: list[str]) -> None:
    room.command("sbatch", 'echo "Submitted batch job 1"')
    room.command("scancel", NOTE)
    room.command("dfeas", AWAY)
    settings = {"INTERFACE": "lo", "CORES": 1, "MEMORY": "2GB", "PAUSE": 0, "ENDS_AT": ends_at, "ENDS_WITH": code}
    done = room.run(sys.executable, ELASTIC, "solve", "points", "--out", "run", **settings)
    assert done.returncode == code, done.stderr
    drivers = [said.split() for said in room.said("calls") if not said.startswith("scancel")]
    assert [words[0] for words in drivers] == calls
    assert all(words[-2] == "--scheduler" and words[-1].startswith("tcp://127.0.0.1:") for words in drivers)


@jobqueue
def test_an_elastic_cluster_needs_an_interface(room: Any) -> None:
    done = room.run(sys.executable, ELASTIC, "solve", "points", "--out", "run")
    assert done.returncode == 1
    assert done.stderr.startswith("set INTERFACE")
