"""Wide data: what ``auto`` takes, mirror prox, and LIBLINEAR, on tens of thousands to a million of features.

    python benchmarks/wide.py --dir SCRATCH                 # needs 2 GB of disk, 16 GB of memory, half an hour

``dfeas solve`` as a user runs it, a whole process that reads the points from the page cache; LIBLINEAR (scikit-learn's
LinearSVC, C = 1e3) has the points in memory, and its times are those of its fit alone. Every solver is stopped after --limit
seconds, and its process a minute later. LIBLINEAR's verdict counts points that are not on the positive side of what it
returned; it proves nothing where some are.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from shutil import rmtree

import numpy as np

from dfeas.data.generate.points import Instance, SparseInstance, generate
from dfeas.linalg.csr import stack_rows

SHAPES = ((20_000, 20_000, 0), (100_000, 5_000, 0), (1_000_000, 200_000, 100))
"""Features, points, and entries of a sparse one."""

KINDS = {"planted": "margin 0.01", "halfspace": "thin margin", "one-flip": "one wrong label"}
SOLVERS = ("auto", "mirror-prox-one-pass", "LinearSVC")
MEMORY = "10GB"
OWN = """
import json, resource, sys
from dfeas.cli.main import main
try:
    main()
finally:
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss / 1e6]), file=sys.stderr)
"""
PEER = """
import sys
from benchmarks.wide import fitted
fitted(sys.argv[1:])
"""


def instance_of(kind: str, m: int, n: int, entries: int) -> Instance | SparseInstance:
    return SparseInstance(kind, m, n, min(0.5, entries / m)) if entries else Instance(kind, m, n)


def fitted(words: list[str]) -> None:
    """Fit LinearSVC in this process, and print what is measured."""
    from sklearn.svm import LinearSVC

    instance = instance_of(words[0], *map(int, words[1:]))
    blocks = [instance.block(i) for i in range(-(-instance.n // instance.rows))]
    X = (np.vstack if isinstance(instance, Instance) else stack_rows)([block[0] for block in blocks])
    labels = np.concatenate([block[1] for block in blocks])
    wall, cpu = time.perf_counter(), time.process_time()
    machine = LinearSVC(C=1e3, fit_intercept=False, dual=True, max_iter=1000).fit(X, labels)
    taken = time.perf_counter() - wall, time.process_time() - cpu
    wrong = int((labels * (X @ machine.coef_[0]) <= 0).sum())
    print(json.dumps({"verdict": f"{wrong} wrong", "seconds": taken[0], "cpu": taken[1]}))


def measured(solver: str, path: Path, words: list[str], room: Path, limit: float) -> list[str]:
    """Cells of a row: verdict, proof, method, reads, seconds, processor seconds, and GB of memory at the peak."""
    if solver == "LinearSVC":
        command = [sys.executable, "-c", PEER, *words]
    else:
        options = ["--memory", MEMORY, "--method", solver, "--time-limit", str(limit), "--json", "--out", str(room / "run")]
        command = [sys.executable, "-c", OWN, "solve", str(path), "--force", "--quiet", "--no-intercept", *options]
    began = time.perf_counter()
    place = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    try:
        environment = {**os.environ, "PYTHONPATH": place}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=limit + 60, check=False)
    except subprocess.TimeoutExpired:
        return [f"nothing in {limit + 60:.0f} s", "", "", "", "", "", ""]
    seconds = time.perf_counter() - began
    try:
        values = json.loads(done.stdout)
    except ValueError:
        return [f"failed, exit code {done.returncode}", "", "", "", f"{seconds:.1f}", "", ""]
    if solver == "LinearSVC":
        return [values["verdict"], "none", "", "", f"{values['seconds']:.1f}", f"{values['cpu']:.1f}", ""]
    method = "working set" if values["method"].startswith("working") else "mirror prox"
    cpu, peak = json.loads(done.stderr.splitlines()[-1])
    return [values["verdict"], values["proof"], method, f"{values['reads']:.2f}", f"{seconds:.1f}", f"{cpu:.1f}", f"{peak:.1f}"]


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", default=None, help="where there is room for a dataset")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the points and features")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--solvers", default=",".join(SOLVERS))
    parser.add_argument("--shapes", default="", help="numbers of the shapes, such as 0,2; all, unless given")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of each solver")
    options = parser.parse_args(words)
    print("| features x points | points | solver | verdict | proof | method | reads | seconds | processor s | GB |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for place in map(int, (options.shapes or "0,1,2").split(",")):
        m, n = (max(40, int(size * options.scale)) for size in SHAPES[place][:2])
        entries = min(SHAPES[place][2], m // 10)
        for kind in options.kinds.split(","):
            with tempfile.TemporaryDirectory(dir=options.dir) as made:
                path = Path(made) / "data"
                generate(instance_of(kind, m, n, entries), path)
                for solver in options.solvers.split(","):
                    cells = measured(solver, path, [kind, *map(str, (m, n, entries))], Path(made), options.limit)
                    name = f"{m} x {n}" + (f", {entries} entries" if entries else "")
                    print(f"| {name} | {KINDS[kind]} | {solver} | {' | '.join(cells)} |", flush=True)
                rmtree(path)


if __name__ == "__main__":
    main()
