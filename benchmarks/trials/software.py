"""Trials: workers and schedulers without dfeas, with an older one, with another NumPy or other kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

from benchmarks.trials.stage import Command, Stage
from benchmarks.trials.trial import trial

NOWHERE = {"PYTHONPATH": ""}
LEFT_OUT = "{w3} on .*dfeas"


def mixed(stage: Stage, *words: object, **other: Any) -> Command:
    """A run on two workers like this process, and w3, which is not."""
    stage.start_scheduler()
    for name in ("w1", "w2"):
        stage.start_worker(name)
    stage.start_worker("w3", **other)
    stage.gather(3)
    command = stage.solve(*words)
    stage.wait(command)
    return command


@trial(lost=20, says=LEFT_OUT, needs="uv")
def one_worker_without_dfeas(stage: Stage) -> None:
    """One worker has no dfeas"""
    mixed(stage, programs=stage.environments.plain(), env=NOWHERE)


@trial(codes=(2,), says=LEFT_OUT, needs="uv")
def no_worker_with_dfeas(stage: Stage) -> None:
    """No worker has dfeas"""
    stage.begin(programs=stage.environments.plain(), env=NOWHERE)
    stage.solve()


@trial(lost=20, says=LEFT_OUT)
def one_worker_with_older_dfeas(stage: Stage) -> None:
    """One worker has an older dfeas"""
    mixed(stage, env={"PYTHONPATH": str(stage.environments.older())})


@trial(codes=(2,), says="dfeas")
def older_dfeas_everywhere(stage: Stage) -> None:
    """Scheduler and workers have an older dfeas"""
    older = {"PYTHONPATH": str(stage.environments.older())}
    stage.begin(scheduler={"env": older}, env=older)
    stage.solve()


@trial(codes=(2,), also=(3,), says="scheduler", needs="uv")
def scheduler_without_dfeas(stage: Stage) -> None:
    """Only the scheduler has no dfeas"""
    stage.begin(scheduler={"env": NOWHERE, "programs": stage.environments.plain()})
    stage.solve()


@trial(lost=20, needs="uv")
def older_dask_on_one(stage: Stage) -> None:
    """One worker has Dask 2026.3.0"""
    mixed(stage, programs=stage.environments.other_dask())


def other_bits(command: Command) -> None:
    """The result says that other bits were possible."""
    said = command.result.get("bits")
    assert said not in (None, "same"), f"bits in result.json are {said}"


@trial(lost=20, same_bits=False, says="{w3}.*(?i:numpy)", needs="uv")
def other_numpy(stage: Stage) -> None:
    """One worker has another NumPy"""
    other_bits(mixed(stage, programs=stage.environments.other_numpy()))


@trial(codes=(2,), says="{w3}.*(?i:numpy)", needs="uv")
def other_numpy_refused(stage: Stage) -> None:
    """One worker has another NumPy, and --same-bits is given"""
    mixed(stage, "--same-bits", programs=stage.environments.other_numpy())


def kernels() -> str:
    """Of BLAS, that this processor has and does not take by itself."""
    own = {str(each.get("architecture")) for each in threadpool_info()}
    return "Haswell" if "Haswell" not in own else "Sandybridge"


@trial(lost=20, same_bits=False, says="{w3}.*(?i:kernel|blas)")
def other_kernels(stage: Stage) -> None:
    """One worker's OpenBLAS has the kernels of another processor"""
    other_bits(mixed(stage, env={"OPENBLAS_CORETYPE": kernels()}))


@trial(codes=(2,), says="{w3}.*(?i:kernel|blas)")
def other_kernels_refused(stage: Stage) -> None:
    """One worker's OpenBLAS has other kernels, and --same-bits is given"""
    mixed(stage, "--same-bits", env={"OPENBLAS_CORETYPE": kernels()})


def hidden(path: str, other: str | None = None) -> tuple[object, ...]:
    """Words before a command, for which the folder is empty or another one."""
    mount = f"mount --bind {other} {path}" if other else f"mount -t tmpfs none {path}"
    return ("unshare", "-m", "sh", "-c", f'{mount} && exec "$@"', "sh")


@trial(lost=20, says="{w3}", needs="namespaces")
def data_not_on_one(stage: Stage) -> None:
    """One worker does not see the data"""
    mixed(stage, wrap=hidden(str(Path(stage.data).parent)))


@trial(codes=(4,), says="error.*{w1}", needs="namespaces")
def data_on_none(stage: Stage) -> None:
    """No worker sees the data"""
    stage.begin(wrap=hidden(str(Path(stage.data).parent)))
    stage.solve()


@trial(codes=(5,), also=(3,), says="{w3}", needs="namespaces")
def other_data_on_one(stage: Stage) -> None:
    """One worker has another dataset under the same path"""
    mixed(stage, wrap=hidden(stage.data, stage.other_data))


@trial()
def relative_path(stage: Stage) -> None:
    """DATA is a path relative to the driver's folder, which is not that of the workers"""
    stage.begin()
    work = stage.host("driver").folder / "work"
    work.mkdir(parents=True)
    (work / "points").symlink_to(stage.data)  # by a path with .. workers beside the driver would find the data, too
    stage.solve(data="points")
