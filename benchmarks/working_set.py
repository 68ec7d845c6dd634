"""The working set on data of up to 8 GB, beside one plain read of it.

    python benchmarks/working_set.py --dir SCRATCH          # needs 17 GB of disk

First table: ``dfeas solve`` as a user runs it, whole processes, warm page cache, in-process, beside one plain read of the files
of X by as many threads; seconds are the least of three turns, memory is the most of a process. Second table: processor time of
the solver in memory, all columns at once and some at a time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from dfeas.data.generate.points import Instance, generate
from dfeas.linalg.blas import one_thread
from dfeas.linalg.separation import AT
from dfeas.linalg.separation.rounds import Round
from dfeas.linalg.separation.solver import fast, solve
from dfeas.linalg.separation.sparse_columns import column_matrix

RUNS = [  # name, instance, options of solve, most reads, most seconds (None: five plain reads and 20 s)
    ("halfspace 100 x 500,000", Instance("halfspace", 100, 500_000), [], 2.2, 0.65),
    ("the same, --margin-tolerance 1e-3", Instance("halfspace", 100, 500_000), ["--margin-tolerance", "1e-3"], 10, np.inf),
    ("halfspace 1000 x 500,000", Instance("halfspace", 1000, 500_000), [], 2.5, 3.5),
    ("the same, --memory 600MB", Instance("halfspace", 1000, 500_000), ["--memory", "600MB"], 4, None),
    ("one-flip 1000 x 500,000", Instance("one-flip", 1000, 500_000), [], 1.3, 3.5),
    ("gaussian 1000 x 500,000", Instance("gaussian", 1000, 500_000), [], 1.3, 3.5),
    ("halfspace 100 x 20,000,000", Instance("halfspace", 100, 20_000_000), [], 4, None),
    ("one-flip 100 x 5,000,000", Instance("one-flip", 100, 5_000_000), [], 1.2, np.inf),
    ("planted 1e-6, 200 x 1,000,000 float64", Instance("planted", 200, 1_000_000, 1e-6, dtype="float64"), [], 5, np.inf),
    ("halfspace 100 x 500,000, ride-along from the first pass", Instance("halfspace", 100, 500_000), None, 3, np.inf),
]

RIDING = """
import sys, dfeas
from dfeas.methods.registry import METHODS
from dfeas.records import replace
led = METHODS["working-set"]
METHODS["working-set"] = replace(led, method=replace(led.method, after=0))
from dfeas.cli.main import main
main()
"""


def plain_read(path: Path) -> float:
    """Seconds to read the files of X with as many threads as there are processors."""
    files = [p for p in (path / "X").rglob("*") if p.is_file()]
    threads = os.cpu_count() or 1

    def some(mine: list[Path]) -> None:
        buffer = bytearray(max(p.stat().st_size for p in files))
        for name in mine:
            with name.open("rb", buffering=0) as file:
                while file.readinto(buffer):
                    pass

    began = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(some, [files[i::threads] for i in range(threads)]))
    return time.perf_counter() - began


TURNS = 3


def run_once(words: list[str]) -> tuple[float, float, float, dict[str, Any]]:
    """Seconds, processor seconds and MiB of a process, and what it prints."""
    with tempfile.TemporaryFile("w+") as told:
        began = time.perf_counter()
        process = subprocess.Popen(words, stdout=told, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        seconds, process.returncode = time.perf_counter() - began, os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"exit code {process.returncode}: {' '.join(words)}")
        told.seek(0)
        return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, json.load(told)


def own(data: Path, room: Path, scale: float, only: list[str]) -> None:
    print(
        "| instance | verdict | reads | most | seconds | most | processor s | MiB | plain read s | seconds / it | named point |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    chosen = [run for run in RUNS if any(words in run[0] for words in only)]
    for i, (name, full, options, passes, most) in enumerate(chosen):
        instance = Instance(full.kind, full.m, max(200, int(full.n * scale)), full.margin, dtype=full.dtype)
        path = data / f"{full.kind}-{full.m}-{instance.n}"
        if not path.exists():
            generate(instance, path)
        read = min(plain_read(path) for _ in range(3))
        program = RIDING if options is None else "from dfeas.cli.main import main; main()"
        words = [sys.executable, "-c", program, "solve", str(path), "--no-intercept", "--force", *(options or [])]
        turns = [run_once([*words, "--out", str(room / f"run-{i}"), "--json"]) for _ in range(TURNS)]
        seconds, processor, memory, values = min(turns, key=lambda turn: turn[0])
        named = ""
        if values["conflicts"] and full.kind == "one-flip":
            named = f"{values['conflicts'][0]['point']} (flipped: {instance.wrong_point})"
        bound = 5 * read + 20 if most is None else most
        print(
            f"| {name} | {values['verdict']} | {values['reads']:.3f} | {passes} | {seconds:.2f} | "
            f"{bound:.2f} | {processor:.2f} | {memory:.0f} | {read:.2f} | {seconds / read:.1f} | {named} |",
            flush=True,
        )


ROUNDS = ((100, 150_000), (400, 40_000), (1000, 225_000), (2000, 55_000))
"""Features and columns of the second table."""


def rounds(scale: float) -> None:
    """Processor seconds of the solver in memory, all columns at once and some at a time."""
    print("\nThe solver in memory on halfspace, float32\n")
    print("| features | columns | at once s | in rounds s | at once / in rounds | margins |")
    print("|---|---|---|---|---|---|")
    for m, full in ROUNDS:
        instance = Instance("halfspace", m, max(200, int(full * scale)))
        blocks = [instance.block(i) for i in range(-(-instance.n // instance.rows))]
        points = np.vstack([X * y[:, None].astype(X.dtype) for X, y in blocks])
        matrix = column_matrix(points, np.ones(len(points)))
        began = time.process_time()
        with one_thread(of_scipy=True):
            whole = fast(matrix, Round(matrix, np.zeros(m), at_once=True), AT.first_c)
        middle = time.process_time()
        some = solve(matrix)
        once, parted = middle - began, time.process_time() - middle
        margins = f"{'none' if whole is None else format(whole.margin, '.1e')}, {some.margin:.1e}"
        print(f"| {m} | {len(points)} | {once:.2f} | {parted:.2f} | {once / parted:.1f} | {margins} |", flush=True)


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", default=None, help="keep the datasets here, and use them again")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the points")
    parser.add_argument("--only", default="", help="instances whose names have one of these words")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(dir=options.dir) as made:
        own(Path(options.dir or made), Path(made), options.scale, options.only.split(","))
    rounds(options.scale)


if __name__ == "__main__":
    main()
