"""The SLURM scripts with SLURM: its three daemons run here, on one node that pretends to have many processors."""

import json
import os
import re
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

MISSING = [name for name in ("munged", "slurmctld", "slurmd", "sbatch") if shutil.which(name) is None]
pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(MISSING), reason=f"needs slurm-wlm and munge: no {' '.join(MISSING)}"),
    pytest.mark.skipif(os.geteuid() != 0, reason="daemons of SLURM run as root"),
    pytest.mark.skipif(find_spec("dask_jobqueue") is None, reason="needs dask-jobqueue"),
]

PROJECT = Path(__file__).parents[2]
Until = Callable[..., None]

# 16 processors whatever there are; no cgroups, which a machine may have in any version; short waits
CONFIGURATION = """
ClusterName=dfeas
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
SlurmUser=root
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0
MpiDefault=none
KillWait=60
CompleteWait=0
NodeName={host} NodeAddr=127.0.0.1 CPUs=16 RealMemory=65536
PartitionName=short Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
# three tasks in the place of eight: a scheduler and two workers
SMALL = ("--ntasks=3", "--mem-per-cpu=2G", "--output=job.log")
LONG = ("--method", "mirror-prox", "--margin-tolerance", "1e-6", "--max-passes", "150", "--checkpoint-every", "0.01")


@dataclass(frozen=True)
class Slurm:
    """A queue, and the room that its jobs run in."""

    room: Any
    until: Until

    def submit(self, *words: Any) -> str:
        """The number of a job."""
        done = self.room.run("sbatch", "--parsable", *words)
        assert done.returncode == 0, done.stderr
        return str(done.stdout.strip())

    def show(self, job: str) -> dict[str, str]:
        """What SLURM says of it."""
        text = self.room.run("scontrol", "show", "job", job).stdout
        return dict(re.findall(r"(\w+)=(\S*)", text))

    def wait(self, job: str, *states: str) -> dict[str, str]:
        """What SLURM says of it when it is in one of these states."""
        self.until(lambda: self.show(job)["JobState"] in states)
        return self.show(job)

    @property
    def log(self) -> str:
        file = self.room.path / "job.log"
        return file.read_text() if file.exists() else ""


@pytest.fixture
def slurm(room: Any, until: Until) -> Iterator[Slurm]:
    """SLURM's daemons, with everything that they write in the room."""
    folder = room.path / "slurm"
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    (room.path / "cluster").symlink_to(PROJECT / "cluster")
    (folder / "key").write_bytes(os.urandom(1024))
    (folder / "key").chmod(0o400)
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        ports = {"controller": one.getsockname()[1], "node": other.getsockname()[1]}
    host = socket.gethostname().partition(".")[0]
    (folder / "slurm.conf").write_text(CONFIGURATION.format(host=host, folder=folder, **ports))
    room.environment["SLURM_CONF"] = str(folder / "slurm.conf")
    files = {name: folder / f"munge.{name}" for name in ("socket", "pid-file", "log-file", "seed-file")}
    munge = [f"--{name}={file}" for name, file in files.items()]
    with ExitStack() as stack:
        # the folder of a test is under one that others may write to: munge is told to bear that
        daemons = [
            stack.enter_context(room.start("munged", "--foreground", "--force", f"--key-file={folder / 'key'}", *munge)),
            stack.enter_context(room.start("slurmctld", "-D")),
            stack.enter_context(room.start("slurmd", "-D")),
        ]
        made = Slurm(room, until)
        until(lambda: "idle" in room.run("sinfo", "--noheader").stdout)
        yield made
        room.run("scancel", "--user", "root", "--full")
        until(lambda: not room.run("squeue", "--noheader").stdout)
        for daemon in reversed(daemons):
            daemon.terminate()
            daemon.communicate(timeout=60)


def result(run: Path) -> Any:
    return json.loads((run / "result.json").read_text())


def certificate(run: Path) -> dict[str, bytes]:
    with np.load(run / "certificate.npz") as found:
        return {name: found[name].tobytes() for name in found.files}


def test_an_allocation_reaches_a_verdict(slurm: Slurm, points: Path) -> None:
    job = slurm.submit(*SMALL, "cluster/slurm.sbatch", points, "run")
    ended = slurm.wait(job, "COMPLETED", "FAILED", "CANCELLED")
    assert (ended["JobState"], ended["ExitCode"]) == ("COMPLETED", "0:0"), slurm.log
    assert result(slurm.room.path / "run")["verdict"] == "feasible"
    assert not list(slurm.room.path.glob(".dfeas-scheduler*"))


def test_a_job_at_its_time_limit_goes_on(slurm: Slurm, points: Path) -> None:
    """USR1 is what SLURM sends before the limit. The certificate is that of a run that nobody has interrupted."""
    run = slurm.room.path / "run"
    job = slurm.submit(*SMALL, "cluster/slurm.sbatch", points, "run", *LONG)
    trace = run / "trace.jsonl"
    slurm.until(lambda: trace.exists() and trace.read_text().count('"pass') > 5)
    slurm.room.run("scancel", "--batch", "--signal=USR1", job)
    back = slurm.wait(job, "PENDING", "COMPLETED", "FAILED", "CANCELLED")
    assert (back["JobState"], back["Restarts"]) == ("PENDING", "1"), slurm.log
    # SLURM holds a job that was put back for two minutes; within its second slurmd takes it for the one that was ended
    slurm.room.run("scontrol", "update", f"JobId={job}", "StartTime=now+5seconds")
    ended = slurm.wait(job, "COMPLETED", "FAILED", "CANCELLED")
    assert ended["ExitCode"] == "3:0", slurm.log
    assert "going on after pass" in slurm.log
    assert result(run)["passes"] == 150
    done = slurm.room.run("dfeas", "solve", points, "--out", "alone", *LONG)
    assert done.returncode == 3, done.stderr
    assert certificate(run) == certificate(slurm.room.path / "alone")


def test_a_cancelled_job_leaves_a_checkpoint_and_does_not_go_on(slurm: Slurm, points: Path) -> None:
    run = slurm.room.path / "run"
    job = slurm.submit(*SMALL, "cluster/slurm.sbatch", points, "run", *LONG)
    trace = run / "trace.jsonl"
    slurm.until(lambda: trace.exists() and trace.read_text().count('"pass') > 5)
    slurm.room.run("scancel", job)
    ended = slurm.wait(job, "CANCELLED", "PENDING", "COMPLETED")
    assert (ended["JobState"], ended["Restarts"]) == ("CANCELLED", "0"), slurm.log
    slurm.until(lambda: "to go on: dfeas resume run" in slurm.log)
    assert slurm.show(job)["JobState"] == "CANCELLED"
    assert (run / "checkpoint").is_dir()


def test_jobs_of_workers_come_and_go(slurm: Slurm, points: Path) -> None:
    settings = {"INTERFACE": "lo", "CORES": 1, "MEMORY": "2GB", "MAX_JOBS": 1, "QUEUE": "short"}
    words = (sys.executable, "cluster/slurm_elastic.py", "solve", points, "--out", "run", "--json")
    assert slurm.room.verdict(*words, **settings) == "feasible"
    slurm.until(lambda: not slurm.room.run("squeue", "--noheader").stdout)
