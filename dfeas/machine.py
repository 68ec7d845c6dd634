"""What this process may use of its machine: processors and memory, within the limits of its container.

Dask and psutil read those of one group of processes at most; the groups around it, which SLURM and systemd make, limit it, too.
"""

from __future__ import annotations

import ctypes
import math
import os
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path

is_apart: ContextVar[bool] = ContextVar("is_apart", default=False)
"""Whether a task of Dask has given its thread to others."""


def processors() -> int:
    """Processors that this process may use; a part of one counts as one."""
    return math.ceil(min(len(os.sched_getaffinity(0)), read_limits()[0]))


_set: list[Callable[[], int | None]] = []
"""Says how many threads may work here, if that is set."""


def limit_threads(ask: Callable[[], int | None]) -> None:
    """Let somebody say how many threads may work here: the settings do, which stand on this room."""
    _set[:] = [ask]


def most_threads() -> int:
    """Threads that may work here: as many as processors, or fewer where that is set."""
    return min([processors(), *filter(None, (ask() for ask in _set))])


def threads_here() -> int:
    """The same; of a task of Dask, which a worker runs on each of its threads, one."""
    distributed = sys.modules.get("distributed")
    with suppress(ValueError, AttributeError):  # no task; half imported
        if distributed is not None and not is_apart.get():
            distributed.get_worker()
            return 1
    return most_threads()


@cache
def memory_bytes() -> int:
    """Memory that this process may have, together with others of its container."""
    return int(min(_read_memory("MemTotal"), read_limits()[1]))


def available_bytes() -> int:
    """Memory that is free or may be freed, within what this process may have: what the page cache can hold."""
    return int(min(_read_memory("MemAvailable"), read_limits()[1]))


def _read_memory(name: str) -> int:
    """Bytes on a line of the kernel's table; psutil, which reads the same, takes longer to load than a small solve."""
    with open("/proc/meminfo") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))


def used_bytes() -> tuple[int, int]:
    """Addresses and memory that this process has at the moment."""
    descriptor = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)  # two thirds of the time of a file object
    try:
        addresses, resident = os.read(descriptor, 200).split()[:2]
    finally:
        os.close(descriptor)
    return int(addresses) * resource.getpagesize(), int(resident) * resource.getpagesize()


M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Numbers of glibc's malloc.h."""


@cache
def free_at_once() -> None:
    """Have free memory go back to the kernel. By itself glibc puts arrays of up to 32 MiB into heaps as soon as one was freed,
    and what is free below others stays with the process: 220 of 500 MiB between two passes of 1000 features x 500,000 points.
    Of this whole process, so it is for those that are ours: commands and workers. Other C libraries have no such call.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    apart_bytes = 1 << 21  # arrays of so many bytes go back to the kernel when they are gone
    if set_option is not None:
        set_option(M_MMAP_THRESHOLD, apart_bytes)
        set_option(M_TRIM_THRESHOLD, apart_bytes)


@cache
def read_limits(root: Path = Path("/")) -> tuple[float, float]:
    """The fewest processors and bytes that cgroups below a root folder allow this process; infinite without a limit."""
    cores, bytes_ = [math.inf], [math.inf]
    for group in _find_groups(root):
        for names in (["cpu.max"], ["cpu.cfs_quota_us", "cpu.cfs_period_us"]):
            quota, period = _read_numbers(group, *names) or (-1, 1)
            cores += [quota / period] if quota > 0 else []
        for name in ("memory.max", "memory.high", "memory.limit_in_bytes"):
            bytes_ += _read_numbers(group, name)
    return min(cores), min(bytes_)


def _find_groups(root: Path) -> Iterator[Path]:
    """Folders of the groups of this process where their files are mounted, each with all that are around it."""
    with suppress(OSError, ValueError):  # no cgroups here
        lines = [line.split(":", 2) for line in (root / "proc/self/cgroup").read_text().splitlines()]
        own = {name: Path(path) for _, names, path in lines for name in names.split(",")}  # that of version 2 has no name
        for line in (root / "proc/self/mountinfo").read_text().splitlines():
            mount, _, system = line.partition(" - ")
            top, folder = (Path(word) for word in mount.split(" ")[3:5])
            kind, _, options = system.split(" ")[:3]
            names = {"cgroup2": [""], "cgroup": options.split(",")}.get(kind, [])
            for path in {own[name] for name in names if name in own}:
                mounted = root / folder.relative_to("/")
                inner = mounted / path.relative_to(top) if path.is_relative_to(top) else mounted
                yield from [inner, *(group for group in inner.parents if group.is_relative_to(mounted))]


def _read_numbers(group: Path, *names: str) -> list[float]:
    """Those in some files; none where a file is missing, or says ``max``."""
    with suppress(OSError, ValueError):
        return [float(word) for name in names for word in (group / name).read_text().split()]
    return []
