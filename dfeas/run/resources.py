"""What a run may take and use, where it is written, and who is told."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from dfeas.errors import UsageError
from dfeas.settings import DEFAULT_MEMORY, option, parse_bytes, require_types

if TYPE_CHECKING:
    from distributed import Client
    from distributed.deploy import Cluster

EVERY = 30.0
"""Seconds between checkpoints."""


def never() -> bool:
    """Says that nobody asks to stop."""
    return False


@dataclass(frozen=True, kw_only=True)
class Limits:
    """When to give up.

    Parameters
    ----------
    max_passes : int, optional
        Reads of the data.
    time_limit : float, optional
        Seconds.

    Raises
    ------
    UsageError
        No positive numbers.

    Examples
    --------
    >>> import dfeas
    >>> dfeas.Limits(time_limit=60)
    Limits(max_passes=None, time_limit=60)
    """

    HEADING: ClassVar[str] = "Limits"

    max_passes: int | None = option(None, "Stop after so many reads of the data.", metavar="N")
    time_limit: float | None = option(None, "Stop after a pass beyond this time.", metavar="SECONDS")

    def __post_init__(self) -> None:
        require_types(self)
        if self.max_passes is not None and self.max_passes < 1:
            raise UsageError(f"--max-passes {self.max_passes}: expected at least 1")
        if self.time_limit is not None and not self.time_limit > 0:
            raise UsageError(f"--time-limit {self.time_limit}: expected a positive number of seconds")

    def until(self, stop: Callable[[], bool], began: float) -> Callable[[], bool]:
        """Whether somebody asks to stop, or time is up for what began at a moment of the monotonic clock."""
        return lambda: stop() or (self.time_limit is not None and time.monotonic() - began >= self.time_limit)


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What a run may use. What is not given is a ``setting``, where there is one.

    Parameters
    ----------
    memory : int or str, optional
        Budget in bytes, per process, for blocks, answers and columns in memory; text such as ``"2GB"`` or ``"512MiB"``.
    cache_dir : path, optional
        Folder of each machine that keeps what was read of object stores, for later runs, too; nothing is ever removed.
    scratch : path, optional
        Folder of each machine for what methods with a kernel compute again and again and memory does not hold; removed at the
        end. Workers use the temporary-directory of Dask's configuration, where there is one and no other folder is given.
    checkpoint_every : float
        Seconds between checkpoints, at least; they never take more than a twentieth of the time.
    client : dask.distributed Client or cluster, str, or bool, optional
        The address of a scheduler, or True for the current client; workers see the data under its path, or compute the
        partitions of a Dask array or frame. None: threads of this process.

    Examples
    --------
    >>> import dfeas
    >>> dfeas.Resources(memory="512MiB").memory_bytes
    536870912
    """

    HEADING: ClassVar[str] = "Where"

    memory: str | int | None = option(
        DEFAULT_MEMORY, "Budget of a process for blocks and answers.", "memory", metavar="SIZE", shown=True, heading="Limits"
    )
    cache_dir: str | Path | None = option(
        None, "Keep blocks of object stores in this folder.", "cache_dir", metavar="DIR", place="local"
    )
    scratch: str | Path | None = option(
        None,
        "Folder for tiles of a kernel that memory does not hold.",
        "scratch",
        metavar="DIR",
        place="local",
        heading="Kernel",
    )
    checkpoint_every: float = option(
        EVERY, "Between checkpoints.", "checkpoint_every", metavar="SECONDS", shown=True, heading="Output"
    )
    client: Client | Cluster | str | bool | None = option(None)

    def __post_init__(self) -> None:
        require_types(self)

    @property
    def memory_bytes(self) -> int:
        """Raises UsageError for a budget that is none."""
        return parse_bytes(self.memory)


@dataclass(frozen=True, kw_only=True)
class Output:
    """Where a run is written, how it is shown, and who may end it; the result does not depend on it.

    Parameters
    ----------
    out : path, optional
        Folder for result.json, certificate.npz and trace.jsonl, and for checkpoints, from which ``dfeas.resume`` goes on.
    progress : bool
        Show a line of progress on stderr.
    callback : callable, optional
        Called with the record of each read, of each class; when it returns True or raises StopIteration, the run ends as
        ``interrupted``, unless that read decided it.
    stop : callable, optional
        Asked between reads; when it returns True the run ends as ``interrupted``, with a checkpoint, and is returned. So does a
        run then that Ctrl-C ends, or the loss of a cluster; without ``stop`` these are raised, KeyboardInterrupt and
        ClusterLostError, when the run has been saved.

    Examples
    --------
    >>> import dfeas
    >>> dfeas.Output(out="run", progress=True).out
    'run'
    """

    out: str | Path | None = option(None)
    progress: bool = option(False, "", "progress")
    callback: Callable[[Any], object] | None = option(None)
    stop: Callable[[], bool] = option(never)

    def __post_init__(self) -> None:
        require_types(self)
