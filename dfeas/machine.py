"""What this process may use of its machine: processors and memory, within the limits of its container.

Dask and psutil read those of one group of processes at most; the groups around it, which SLURM and systemd make, limit it, too.
"""

from __future__ import annotations

import math
import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path


def processors() -> int:
    """Processors that this process may use; a part of one counts as one."""
    return math.ceil(min(len(os.sched_getaffinity(0)), read_limits()[0]))


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
    addresses, resident = Path("/proc/self/statm").read_bytes().split()[:2]
    return int(addresses) * resource.getpagesize(), int(resident) * resource.getpagesize()


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
