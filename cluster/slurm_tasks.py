"""Run by slurm.sbatch on every task of the allocation: task 0 becomes the Dask scheduler, the others workers."""

import os
import sys

from dask_jobqueue.slurm import SLURMRunner


def main() -> None:
    """Serve until the job ends. The driver is not one of the tasks, so that signals to it reach nothing else."""
    where = {"host": "127.0.0.1"}
    if os.environ.get("SLURM_JOB_NUM_NODES", "1") != "1":
        if "INTERFACE" not in os.environ:
            sys.exit("more than one node: set INTERFACE to the network interface between them, such as ib0")
        where = {"interface": os.environ["INTERFACE"]}
    inside = {**where, "dashboard_address": "127.0.0.1:0"}
    SLURMRunner(
        scheduler_file=sys.argv[1],
        client=False,
        scheduler_options={**inside, "port": 0},
        worker_class="distributed.Nanny",  # its processes get the environment of dask.yaml
        worker_options={**inside, "nthreads": 1, "local_directory": os.environ.get("TMPDIR", "/tmp")},
    )


if __name__ == "__main__":
    main()
