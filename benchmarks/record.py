"""Run a benchmark and keep what it prints in benchmarks/results, with the commit, the machine and the libraries.

python benchmarks/record.py working_set --only none --points 100000
python benchmarks/record.py --anew regimes            # in the place of all that was recorded of it before
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_info

import dfeas
from dfeas.machine import memory_bytes, processors

HERE = Path(__file__).parent
LIBRARIES = ("numpy", "scipy", "dask", "distributed", "zarr", "python-flint", "scikit-learn")


def describe_commit(sources: Path = Path(dfeas.__file__).parents[1]) -> str:
    """The commit of the sources that are imported, and whether files of it were changed."""
    if not (sources / ".git").exists():
        return "of no repository"
    asked = ["git", "-C", str(sources)]
    commit = subprocess.run(
        [*asked, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    paths = ("dfeas", "benchmarks/*.py", "benchmarks/*/*.py")
    changed = subprocess.run([*asked, "status", "--porcelain", "--", *paths], capture_output=True, text=True, check=True).stdout
    return f"commit {commit}{' with changes' if changed else ''}"


def describe_processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Its model, as Linux names it; only its kind where that says nothing."""
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{models[0]}, {platform.machine()}" if models else platform.machine()


def describe_machine() -> str:
    """Its processor, and what this process may use of it."""
    return f"{describe_processor()}, {processors()} cores, {memory_bytes() / 2**30:.0f} GiB of memory"


def describe_libraries() -> str:
    """Python and libraries with their versions, and each BLAS with its kernels and threads."""
    found = [f"Python {platform.python_version()}"]
    for name in LIBRARIES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"no {name}")
    assert scipy.linalg.norm(np.eye(2)) > 0  # both libraries of BLAS are loaded then
    blas = [each for each in threadpool_info() if each["user_api"] == "blas"]
    kernels = [f"{b['internal_api']} {b['version']} ({b.get('architecture', '?')}, {b['num_threads']} threads)" for b in blas]
    return ", ".join([*found, *dict.fromkeys(kernels)])


def head(words: list[str], load: float) -> str:
    """What was run, on what, and of which commit."""
    machine = f"{describe_machine()}, load {load:.1f} before"
    return (
        f"## {datetime.now(UTC):%Y-%m-%d}, dfeas {dfeas.__version__}, {describe_commit()}\n\n"
        f"`{' '.join(words)}` on {machine}; {describe_libraries()}\n\n"
    )


def main(words: list[str], results: Path = HERE / "results") -> int:
    """The exit code of the benchmark; what failed is kept, too, and said to have failed."""
    anew = words[:1] == ["--anew"]
    words = words[anew:]
    if not words or not (HERE / f"{words[0]}.py").is_file():
        sys.exit(
            f"expected one of {', '.join(sorted(path.stem for path in HERE.glob('*.py')))}, got {' '.join(words) or 'none'}"
        )
    begin = head(words, os.getloadavg()[0])  # before the run: files may change while it lasts
    done = subprocess.run([sys.executable, HERE / f"{words[0]}.py", *words[1:]], stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, end="")
    said = "" if done.returncode == 0 else f"Ended with exit code {done.returncode}.\n\n"
    results.mkdir(exist_ok=True)
    with (results / f"{words[0]}.md").open("w" if anew else "a") as file:
        file.write(f"{begin}{said}{done.stdout.strip()}\n\n")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
