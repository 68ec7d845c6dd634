"""What a machine is asked before it gets work: its software, how it computes, and what it sees of the data.

It travels as text and runs where dfeas may not be, under any Python: it knows the standard library, and nothing of dfeas.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import platform
import re
import socket
import zipfile
from collections.abc import Sequence
from importlib import metadata, util
from typing import Any

STORES = ("obstore", "boto3")
"""What reads object stores."""


def answer(digest: str, places: Sequence[str]) -> dict[str, Any]:
    """Who this is. A dfeas of the given ``digest``, or of any where that is empty, is imported: it may lack something."""
    version, found, broken = *_find_package("dfeas"), ""
    if found and found == digest:
        try:
            importlib.import_module("dfeas.engine.worker")
        except ImportError as error:
            broken = f"{type(error).__name__}: {error}"
    return {
        "host": socket.gethostname(),
        "dfeas": version,
        "digest": found,
        "broken": broken,
        "python": platform.python_version(),
        "arithmetic": _describe_arithmetic(),
        "cores": len(os.sched_getaffinity(0)),
        "free": _free_bytes(),
        "seen": [look(place) for place in places],
    }


def _find_package(name: str) -> tuple[str, str]:
    """Version of a package and a digest of its source files; empty texts where it is not there.

    Two checkouts may call themselves alike: versions come from the time of installation.
    """
    spec = util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        return "", ""
    folder = next(iter(spec.submodule_search_locations))
    archive = getattr(spec.loader, "archive", None)
    sources = _unpack(archive, name) if archive else _read(folder)
    joined = hashlib.sha256()
    for path, content in sorted(sources):
        joined.update(f"{path} {hashlib.sha256(content).hexdigest()}\n".encode())
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        version = "of no version"
    return version, joined.hexdigest()


def _read(folder: str) -> list[tuple[str, bytes]]:
    found = []
    for root, _, names in os.walk(folder):
        for each in names:
            if each.endswith(".py"):
                with open(os.path.join(root, each), "rb") as file:
                    found.append((os.path.relpath(os.path.join(root, each), folder), file.read()))
    return found


def _unpack(archive: str, name: str) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(archive) as file:
        names = [each for each in file.namelist() if each.startswith(f"{name}/") and each.endswith(".py")]
        return [(each[len(name) + 1 :], file.read(each)) for each in names]


def _describe_arithmetic() -> dict[str, str]:
    """What bits depend on: sums of Python's floats are compensated from 3.12 on, and kernels are chosen by processor."""
    found = {
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()),
    }
    try:
        import numpy

        config: Any = numpy.show_config(mode="dicts")
        found["NumPy"] = numpy.__version__
        found["SciPy"] = metadata.version("scipy")
        blas = config["Build Dependencies"]["blas"]
        found["BLAS"] = f"{blas['name']} {blas['version']}"
        found["vectors"] = " ".join(config["SIMD Extensions"].get("found", []))
        import threadpoolctl

        libraries = [each for each in threadpoolctl.threadpool_info() if each["user_api"] == "blas"]
        own = [each for each in libraries if "numpy" in each["filepath"]] or libraries
        found["kernels"] = " ".join(sorted({each.get("architecture") or each["internal_api"] for each in own}))
    except (ImportError, LookupError, TypeError):
        pass
    return found


def _free_bytes() -> int:
    try:
        with open("/proc/meminfo") as file:
            return 1024 * int(dict(line.split(":", 1) for line in file)["MemAvailable"].split()[0])
    except (OSError, LookupError, ValueError):
        return 0


def look(place: str) -> str:
    """What is at a path: of a zarr group or array a digest of what describes it; of a URL whether it can be read at all."""
    if re.match(r"\w+://", place):
        lacking = [each for each in STORES if util.find_spec(each) is None]
        return "" if lacking else "readable"
    described = os.path.join(place, "zarr.json")
    try:
        if os.path.isfile(described):
            with open(described, "rb") as file:
                return hashlib.sha256(file.read()).hexdigest()
        return "folder" if os.path.isdir(place) else f"{os.stat(place).st_size} bytes"
    except OSError:
        return ""
