"""Limits of containers: of real groups of processes where this user may make them, and in files as the kernel writes them."""

import json
import math
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from dfeas.machine import memory_bytes, read_limits

MIB = 1 << 20
MOUNTS = Path("/sys/fs/cgroup")
SEEN = """
import json
from dfeas.machine import available_bytes, memory_bytes, processors
from dfeas.run.execute import circumstances
from dfeas.settings import parse_bytes
noted = circumstances(0)["machine"]
print(json.dumps([processors(), memory_bytes(), available_bytes(), parse_bytes(None), noted["cores"], noted["memory_bytes"]]))
"""
V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup rw,nsdelegate\n"
V1 = """31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw
32 31 0:29 {top} /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 {top} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
"""
NO_LIMIT = str((1 << 63) - 4096)


@pytest.fixture
def groups() -> Iterator[tuple[Path, Path]]:
    """An outer and an inner group of version 1, for processors and for memory: the outer one allows a processor and a half, the
    inner one 600 MiB.
    """
    name, made = f"dfeas-{uuid.uuid4().hex}", []
    try:
        for kind in ("cpu", "memory"):
            inner = MOUNTS / kind / name / "inner"
            inner.mkdir(parents=True)
            made += [inner, inner.parent]
        (MOUNTS / "cpu" / name / "cpu.cfs_quota_us").write_text("50000")
        (MOUNTS / "memory" / name / "memory.limit_in_bytes").write_text(str(700 * MIB))
        (MOUNTS / "memory" / name / "inner" / "memory.limit_in_bytes").write_text(str(600 * MIB))
    except OSError as error:
        pytest.skip(f"no groups of version 1 can be made here: {error}")
    yield made[0], made[2]
    for folder in made:
        folder.rmdir()


def test_a_process_counts_the_limits_of_the_groups_around_it(groups: tuple[Path, Path]) -> None:
    def enter() -> None:
        for group in groups:
            (group / "cgroup.procs").write_text(str(os.getpid()))

    done = subprocess.run([sys.executable, "-c", SEEN], preexec_fn=enter, capture_output=True, text=True, check=True)
    cores, memory, available, budget, noted, noted_memory = json.loads(done.stdout)
    assert cores == noted == 1
    assert memory == noted_memory == 600 * MIB
    assert available <= memory
    assert budget == 300 * MIB


def write(root: Path, memberships: str, mounts: str, **limits: str) -> tuple[float, float]:
    """What is read where files of groups have these texts; underscores of their names stand for slashes."""
    files = {"proc/self/cgroup": memberships, "proc/self/mountinfo": mounts}
    for name, text in [*files.items(), *((f"sys/fs/cgroup/{name}", text) for name, text in limits.items())]:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return read_limits(root)


@pytest.mark.parametrize("level", ["", "a/", "a/b/", "a/b/c/"])
def test_the_least_limit_of_all_groups_counts(tmp_path: Path, level: str) -> None:
    """Of version 2; the outermost group has no files of limits unless it is that of a container."""
    limits = {f"{group}{name}": "max\n" for group in ("a/", "a/b/", "a/b/c/") for name in ("memory.max", "memory.high")}
    limits |= {f"{group}cpu.max": "max 100000\n" for group in ("a/", "a/b/", "a/b/c/")}
    assert write(tmp_path / "free", "0::/a/b/c\n", V2, **limits) == (math.inf, math.inf)
    limits |= {f"{level}cpu.max": "250000 100000\n", f"{level}memory.max": "1073741824\n"}
    assert write(tmp_path / "limited", "0::/a/b/c\n", V2, **limits) == (2.5, 1 << 30)
    limits |= {f"{level}memory.high": "536870912\n"}
    assert write(tmp_path / "slowed", "0::/a/b/c\n", V2, **limits) == (2.5, 1 << 29)


def test_a_group_that_is_not_around_the_process_limits_nothing(tmp_path: Path) -> None:
    limits = {"a/cpu.max": "max 100000\n", "b/cpu.max": "100000 100000\n", "a/b/memory.max": "1\n"}
    assert write(tmp_path, "0::/a\n", V2, **limits) == (math.inf, math.inf)


@pytest.mark.parametrize("top", ["/", "/docker/abc"])
def test_limits_of_version_1_are_found_in_a_container_that_sees_its_own_group_only(tmp_path: Path, top: str) -> None:
    """Where the group of the container is mounted as the root, the path of the process begins above it."""
    where = "" if top != "/" else "docker/abc/"
    quota, period = f"cpu,cpuacct/{where}cpu.cfs_quota_us", f"cpu,cpuacct/{where}cpu.cfs_period_us"
    limits = {quota: "-1\n", period: "100000\n", f"memory/{where}memory.limit_in_bytes": NO_LIMIT}
    memberships = "4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n0::/\n"
    mounts = V1.format(top=top)
    assert write(tmp_path / "free", memberships, mounts, **limits) == (math.inf, float(NO_LIMIT))
    limits |= {quota: "50000\n", f"memory/{where}memory.limit_in_bytes": "268435456\n"}
    assert write(tmp_path / "limited", memberships, mounts, **limits) == (0.5, 1 << 28)


def test_a_machine_without_groups_has_no_limits(tmp_path: Path) -> None:
    assert read_limits(tmp_path) == (math.inf, math.inf)
    assert memory_bytes() > 0
