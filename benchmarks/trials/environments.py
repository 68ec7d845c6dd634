"""Other environments beside this one: without dfeas, with an older one, with another NumPy."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from packaging.requirements import Requirement

from benchmarks.trials.hosts import BIN, package

OLDER_DASK = "2026.3.0"
RENAMED = "class Softmin("
"""In an older dfeas."""
LISTED = """
import json
from importlib.metadata import distributions
print(json.dumps({each.name.lower().replace("_", "-"): each.version for each in distributions()}))
"""
"""What a Python prints of its environment."""


def needed(name: str, found: dict[str, str] | None = None) -> dict[str, str]:
    """The versions here of a distribution and of what it needs."""
    found = {} if found is None else found
    try:
        found[name] = version(name)
    except PackageNotFoundError:
        return found
    for each in map(Requirement, requires(name) or ()):
        if each.name not in found and (each.marker is None or each.marker.evaluate({"extra": ""})):
            needed(each.name, found)
    return found


def install(folder: Path, pins: dict[str, str], prefix: tuple[str, ...] = ()) -> Path:
    """The folder of programs of a new environment. Raises FileNotFoundError without uv, CalledProcessError when it fails."""
    uv = shutil.which("uv") or shutil.which("uv", path=str(BIN))
    if uv is None:
        raise FileNotFoundError("uv")
    python = folder / "bin" / "python"
    for words in (
        ("venv", "--python", sys.executable, folder),
        ("pip", "install", "--python", python, *(f"{name}=={number}" for name, number in pins.items())),
    ):
        subprocess.run([*prefix, uv, "--quiet", *map(str, words)], check=True, capture_output=True, text=True)
    return folder / "bin"


class Environments:
    """Made in a folder when they are asked for, and kept for the next trial.

    ``outside`` are words before a command that needs the internet.
    """

    def __init__(self, folder: Path, numpy: str, outside: tuple[str, ...] = ()) -> None:
        self.folder, self.numpy, self.outside = folder, numpy, outside
        folder.mkdir(exist_ok=True)
        self.current = package(folder / "package")

    def plain(self) -> Path:
        """Programs of an environment with the same Dask and NumPy, without dfeas."""
        pins = {**needed("distributed"), "numpy": version("numpy")}
        return self._made("plain", pins)

    def other_numpy(self) -> Path:
        """Programs of an environment with all that dfeas needs, and another NumPy."""
        return self._other("numpy", numpy=self.numpy)

    def other_dask(self) -> Path:
        """The same with this NumPy and an older Dask."""
        return self._other("dask", dask=OLDER_DASK, distributed=OLDER_DASK)

    def _other(self, name: str, **versions: str) -> Path:
        pins = needed("dfeas")
        del pins["dfeas"]
        return self._made(name, {**pins, **versions})

    def _made(self, name: str, pins: dict[str, str]) -> Path:
        folder = self.folder / name
        programs = folder / "bin" if folder.exists() else install(folder, pins, self.outside)
        words = [programs / "python", "-I", "-c", LISTED]  # and not what lies in this folder
        found = json.loads(subprocess.run(words, check=True, capture_output=True, env={"PATH": str(programs)}).stdout)
        there = {each: found.get(each.lower().replace("_", "-")) for each in ("dfeas", *pins)}
        assert there == {"dfeas": None, **pins}, f"{folder} has {there}: the trial says nothing"
        return programs

    def older(self) -> Path:
        """A folder for ``PYTHONPATH`` with a dfeas of a lower version, in which one class has another name."""
        folder, changed = self.folder / "older", Path("dfeas", "passes", "softmin.py")
        text = (self.current / changed).read_text()
        assert text.count(RENAMED) == 1, f"{changed} has no {RENAMED}: the trial says nothing"
        if not folder.exists():
            package(folder, "0.0.1")
            original = (folder / "dfeas").resolve()
            (folder / "dfeas").unlink()
            shutil.copytree(original, folder / "dfeas", ignore=shutil.ignore_patterns("__pycache__"))
            (folder / changed).write_text(text.replace(RENAMED, "class OldSoftmin("))
        return folder
