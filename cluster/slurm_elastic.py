"""Workers as SLURM jobs that come and go, as many as the queue gives; scheduler and driver run here, on a login node.

    INTERFACE=ib0 python cluster/slurm_elastic.py solve DATA --out RUN
    INTERFACE=ib0 python cluster/slurm_elastic.py resume RUN

The words are those of a dfeas command; DATA is on storage that all nodes see. Needs pip install dask-jobqueue. Others on the
same network can reach the scheduler: make certificates first, see cluster/README.md.

INTERFACE  network interface that the nodes reach this machine by (required)
QUEUE      partition [the default one]
ACCOUNT    account [the default one]
CORES      worker processes of a job [8]
MEMORY     of a job [32GB]
WALLTIME   of a job [01:00:00]; five minutes before its end a worker hands over its work and leaves
MIN_JOBS   jobs that are asked for at once, and again when they end [1]
MAX_JOBS   as many when passes take long; a pass has two tasks for each worker, so they at most double from pass to pass [10]
LOGS       folder for the output of the jobs [dfeas-slurm-logs]
MAX_RESTARTS, PAUSE  where storage was away for too long: how often the run goes on, and after how many seconds [100, 60]
"""

import os
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from threading import Event
from typing import Any

import click
import dask.config
from dask_jobqueue import SLURMCluster
from distributed.security import Security

SETTINGS = Path(__file__).with_name("dask.yaml")
LEAVE_SECONDS = 300
AGAIN = 75


def seconds(walltime: str) -> int:
    """Seconds of D-HH:MM:SS, or HH:MM:SS."""
    days, _, clock = walltime.rpartition("-")
    hours, minutes, rest = (int(part) for part in clock.split(":"))
    return ((int(days or 0) * 24 + hours) * 60 + minutes) * 60 + rest


def cluster() -> SLURMCluster:
    """The scheduler, and how a job of workers is asked for."""
    setting = os.environ.get
    if "INTERFACE" not in os.environ:
        raise click.UsageError("set INTERFACE to the network interface that the nodes reach this machine by, such as ib0")
    walltime, cores = setting("WALLTIME", "01:00:00"), int(setting("CORES", "8"))
    encrypted = dask.config.get("distributed.comm.default-scheme") == "tls"
    if not encrypted and os.environ["INTERFACE"] != "lo":
        click.echo("WARNING: whoever reaches the scheduler runs code as you: make certificates, see README.md", err=True)
    return SLURMCluster(
        queue=setting("QUEUE"),
        account=setting("ACCOUNT"),
        cores=cores,
        processes=cores,
        memory=setting("MEMORY", "32GB"),
        walltime=walltime,
        interface=os.environ["INTERFACE"],
        log_directory=setting("LOGS", "dfeas-slurm-logs"),
        security=Security() if encrypted else None,
        scheduler_options={"dashboard_address": "127.0.0.1:0"},
        worker_extra_args=[
            "--dashboard-address",
            "127.0.0.1:0",
            "--lifetime",
            f"{max(60, seconds(walltime) - LEAVE_SECONDS)}s",
            "--lifetime-stagger",
            "60s",
        ],
        job_script_prologue=["umask 077", f"export DASK_CONFIG={os.environ['DASK_CONFIG']}"],
    )


def drive(words: list[str], where: list[str]) -> int:
    """Exit code of a dfeas command, which gets the signals that come here. While that is 75, which is "again", and nobody has
    sent one, its run goes on after a pause.
    """
    run = next((after for before, after in pairwise(words) if before in ("--out", "resume")), None)
    drivers: list[subprocess.Popen[bytes]] = []
    asked = Event()

    def hand_on(number: int, _: Any) -> None:
        asked.set()
        drivers[-1].send_signal(number)

    for _ in range(1 + int(os.environ.get("MAX_RESTARTS", "100"))):
        with subprocess.Popen(["dfeas", *words, *where], stdin=subprocess.DEVNULL, start_new_session=True) as driver:
            drivers.append(driver)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
                signal.signal(number, hand_on)
            code = driver.wait()
        if code != AGAIN or run is None or asked.wait(float(os.environ.get("PAUSE", "60"))):
            break
        words = ["resume", run]
    return code


def main() -> None:
    """Run one dfeas command on an elastic cluster."""
    if len(sys.argv) < 2:
        sys.exit("usage: INTERFACE=ib0 python cluster/slurm_elastic.py solve DATA --out RUN [option]...")
    os.umask(0o077)
    os.environ.setdefault("DASK_CONFIG", str(SETTINGS))
    dask.config.refresh(paths=[*dask.config.paths, os.environ["DASK_CONFIG"]])
    try:
        with cluster() as jobs:
            # a worker that has been idle for a minute may leave; between two passes it is idle for less
            jobs.adapt(
                minimum_jobs=int(os.environ.get("MIN_JOBS", "1")),
                maximum_jobs=int(os.environ.get("MAX_JOBS", "10")),
                interval="5s",
                wait_count=12,
            )
            code = drive(sys.argv[1:], ["--scheduler", jobs.scheduler_address])
    except click.UsageError as error:
        sys.exit(error.message)
    sys.exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
