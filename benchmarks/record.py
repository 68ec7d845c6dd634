"""Run a benchmark and keep what it prints in benchmarks/results, with the date, the version and the machine.

python benchmarks/record.py working_set --only none --points 100000
"""

import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import dfeas

HERE = Path(__file__).parent


def main(words: list[str], results: Path = HERE / "results") -> int:
    """The exit code of the benchmark; what failed is kept, too, and said to have failed."""
    if not words or not (HERE / f"{words[0]}.py").is_file():
        sys.exit(f"expected one of {', '.join(sorted(path.stem for path in HERE.glob('*.py')))}")
    load = os.getloadavg()[0]
    done = subprocess.run([sys.executable, HERE / f"{words[0]}.py", *words[1:]], stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, end="")
    machine = f"{platform.machine()}, {os.cpu_count()} cores, load {load:.1f} before; Python {platform.python_version()}"
    said = "" if done.returncode == 0 else f"Ended with exit code {done.returncode}.\n\n"
    head = f"## {datetime.now(UTC):%Y-%m-%d}, dfeas {dfeas.__version__}\n\n`{' '.join(words)}` on {machine}\n\n{said}"
    results.mkdir(exist_ok=True)
    with (results / f"{words[0]}.md").open("a") as file:
        file.write(f"{head}{done.stdout.strip()}\n\n")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
