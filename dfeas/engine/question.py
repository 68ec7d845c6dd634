"""What a process is asked before it gets work: its software, how it computes, and what it sees of the data.

It travels as text and runs where dfeas may not be, under any Python: at first it knows the standard library only.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import pickle
import platform
import socket
import time
import zipfile
from collections.abc import Iterator, Sequence
from importlib import metadata, util
from pathlib import Path
from typing import Any


def answer(digest: str, places: Sequence[str], module: str) -> dict[str, Any]:
    """Who this is. Of a dfeas with this ``digest`` a ``module`` is imported: something that it needs may lack."""
    version, found, broken = *_find_dfeas(), ""
    if found and found == digest:
        try:
            importlib.import_module(module)
        except ImportError as error:
            broken = f"{type(error).__name__}: {error}"
    return {
        "host": socket.gethostname(),
        "dfeas": version,
        "digest": found,
        "broken": broken,
        "arithmetic": _describe_arithmetic(),
        "seen": [look(place) for place in places],
    }


def begin(digest: str, work: bytes) -> Any:
    """Do pickled work where dfeas has this ``digest``. Elsewhere the task goes back to the scheduler, which gives it to another
    worker, who may have joined since.
    """
    if _find_dfeas()[1] != digest:
        import distributed

        distributed.secede()  # so that others may work here
        time.sleep(1.0)  # between two attempts to find a worker that can do it
        raise distributed.Reschedule
    return pickle.loads(work)()


def _find_dfeas() -> tuple[str, str]:
    """Its version, which a checkout has from its installation, and a digest of its source files; empty where it lacks."""
    spec = util.find_spec("dfeas")
    if spec is None or not spec.submodule_search_locations:
        return "", ""
    archive, folder = getattr(spec.loader, "archive", None), next(iter(spec.submodule_search_locations))
    joined = hashlib.sha256()
    for path, content in sorted(_read(zipfile.Path(archive, "dfeas/") if archive else Path(folder))):
        joined.update(f"{path} {hashlib.sha256(content).hexdigest()}\n".encode())
    try:
        return metadata.version("dfeas"), joined.hexdigest()
    except metadata.PackageNotFoundError:
        return "of no version", joined.hexdigest()


def _read(folder: Any, before: str = "") -> Iterator[tuple[str, bytes]]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _read(each, f"{before}{each.name}/")
        elif each.name.endswith(".py"):
            yield before + each.name, each.read_bytes()


def _describe_arithmetic() -> dict[str, str]:
    """What bits depend on: Python compensates sums of floats from 3.12 on, and libraries choose kernels by processor."""
    found = {"Python": ".".join(platform.python_version_tuple()[:2]), "libc": " ".join(platform.libc_ver())}
    try:
        import numpy
        import threadpoolctl

        config: Any = numpy.show_config(mode="dicts")
        blas, libraries = config["Build Dependencies"]["blas"], threadpoolctl.threadpool_info()
        libraries = [each for each in libraries if each["user_api"] == "blas"]
        own = [each for each in libraries if "numpy" in each["filepath"]] or libraries
        kernels = sorted({each.get("architecture") or each["internal_api"] for each in own})
        found |= {"NumPy": numpy.__version__, "SciPy": metadata.version("scipy"), "BLAS": f"{blas['name']} {blas['version']}"}
        found |= {"kernels": " ".join(kernels), "vectors": " ".join(config["SIMD Extensions"].get("found", []))}
    except (ImportError, LookupError, TypeError):
        found["NumPy"] = "none"
    return found


def look(place: str) -> str:
    """What is at a path: of a zarr group or array a digest of what describes it; of a URL whether libraries can read it."""
    if "://" in place:
        return "readable" if all(util.find_spec(each) for each in ("obstore", "boto3")) else ""
    described = os.path.join(place, "zarr.json")
    try:
        if os.path.isfile(described):
            with open(described, "rb") as file:
                return hashlib.sha256(file.read()).hexdigest()
        return "folder" if os.path.isdir(place) else f"{os.stat(place).st_size} bytes"
    except OSError:
        return ""
