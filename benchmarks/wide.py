"""Wide data: what ``auto`` takes, mirror prox, and LIBLINEAR, on tens of thousands to a million of features.

    python benchmarks/wide.py --dir SCRATCH                 # needs 2 GB of disk, 16 GB of memory, half an hour
    python benchmarks/wide.py --dir SCRATCH --calibrate     # fits the constants of dfeas/methods/work.py

``dfeas solve`` as a user runs it, a whole process that reads the points from the page cache; LIBLINEAR (scikit-learn's
LinearSVC, C = 1e3) has the points in memory, and its times are those of its fit alone. Every solver is stopped after --limit
seconds, and its process a minute later. LIBLINEAR's verdict counts points that are not on the positive side of what it
returned; it proves nothing where some are.

Calibrating runs both methods of ``auto`` on a grid of narrower data, and fits to their processor time, less that of a process
on nearly nothing, the constants by which ``auto`` predicts work: least squares of relative errors, none negative. Every third
case is held out. A table has what they and the constants of the code predict of all cases, what ``auto`` takes, and what that
costs beside the faster method.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree

import numpy as np
from scipy.optimize import nnls

from dfeas.data.generate.points import Instance, SparseInstance, generate
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.geometry.points import compare_work
from dfeas.geometry.protocol import facts_of
from dfeas.linalg.csr import stack_rows
from dfeas.methods import work
from dfeas.methods.protocol import Facts
from dfeas.settings import parse_bytes

SHAPES = ((20_000, 20_000, 0), (100_000, 5_000, 0), (1_000_000, 200_000, 100))
"""Features, points, and entries of a sparse one."""

KINDS = {"planted": "margin 0.01", "halfspace": "thin margin", "one-flip": "one wrong label"}
GRID = (
    (1000, 50_000, 0),
    (2000, 20_000, 0),
    (4000, 20_000, 0),
    (10_000, 5_000, 0),
    (20_000, 5_000, 0),
    (100_000, 20_000, 100),
    (200, 500_000, 0),
)
"""The same of the data on which constants are fitted."""

SOLVERS = ("auto", "mirror-prox-one-pass", "LinearSVC")
MEMORY = "10GB"
BYTE_SECONDS = 4e-11
"""Processor time of a byte."""
LEAST = 0.01
"""Seconds below which nothing is told from the start of a process."""

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


@dataclass(frozen=True, slots=True)
class Case:
    """Data of the grid, and processor seconds on it of both methods, and of ``auto``; inf where one was stopped."""

    name: str
    facts: Facts
    seconds: dict[str, float]

    def terms(self, method: str) -> np.ndarray:
        return BYTE_SECONDS * np.array(METHODS[method][0](self.facts))

    def predicted(self, method: str) -> float:
        """Seconds by the constants of the code."""
        return BYTE_SECONDS * METHODS[method][1](self.facts)


METHODS: dict[str, tuple[Callable[[Facts], tuple[float, ...]], Callable[[Facts], float]]] = {
    "working-set-plain": (work.working_set_terms, work.working_set),
    "mirror-prox-one-pass": (work.mirror_prox_terms, work.mirror_prox),
}


def seconds_of(cells: list[str]) -> float:
    """Processor seconds of a run that ended with a verdict."""
    return float(cells[5]) if cells[0] in ("feasible", "infeasible", "eps-infeasible") else math.inf


def case_of(kind: str, shape: tuple[int, int, int], folder: str | None, limit: float, start: dict[str, float]) -> Case:
    """Both methods and ``auto`` on one dataset, less the ``start`` of a process of each."""
    instance = instance_of(kind, *shape)
    with tempfile.TemporaryDirectory(dir=folder) as made:
        path = Path(made) / "data"
        generate(instance, path)
        facts = facts_of(open_source(Source(DataSpec(path, intercept=False))), parse_bytes(MEMORY))
        taken = {each: seconds_of(measured(each, path, [], Path(made), limit)) for each in ("auto", *METHODS)}
    taken = {each: max(LEAST, seconds - start.get(each, 0.0)) for each, seconds in taken.items()}
    name = f"{kind} {shape[0]} x {shape[1]}" + (f", {shape[2]} entries" if shape[2] else "")
    print(f"{name}: " + ", ".join(f"{each} {seconds:.2f} s" for each, seconds in taken.items()), file=sys.stderr, flush=True)
    return Case(name, facts, taken)


def fit(cases: list[Case], method: str) -> np.ndarray:
    """Constants >= 0 with the least sum of squares of relative errors."""
    some = [case for case in cases if case.seconds[method] < math.inf]
    relative = np.array([case.terms(method) / case.seconds[method] for case in some])
    used = relative.any(axis=0)
    constants = np.zeros(len(used))
    constants[used] = nnls(relative[:, used], np.ones(len(some)))[0]
    return constants


def calibrate(kinds: list[str], grid: tuple[tuple[int, int, int], ...], folder: str | None, limit: float) -> None:
    """Print the constants that fit two thirds of the cases, and what they and those of the code predict of all."""
    start = case_of("planted", (50, 50, 0), folder, limit, {}).seconds
    cases = [case_of(kind, shape, folder, limit, start) for shape in grid for kind in kinds]
    known = [case for i, case in enumerate(cases) if i % 3 != 2 - i // 3 % 3]
    fitted = {method: fit(known, method) for method in METHODS}
    for method, constants in fitted.items():
        print(f"{method}: {', '.join(f'{value:.3g}' for value in constants)} for {METHODS[method][0].__doc__}")
    print("| points | held out | method | processor s | fitted | code | auto | faster | auto over faster |")
    print("|---|---|---|---|---|---|---|---|---|")
    for case in cases:
        auto, faster = compare_work(case.facts)[0], min(METHODS, key=lambda method: case.seconds[method])
        lost = case.seconds["auto"] / case.seconds[faster] if case.seconds[faster] < math.inf else 1.0
        for method in METHODS:
            seconds = case.seconds[method]
            guess, code = float(fitted[method] @ case.terms(method)), case.predicted(method)
            held = "" if case in known else "yes"
            figures = f"{seconds:.1f} | {guess:.1f} | {code:.1f}"
            print(f"| {case.name} | {held} | {method} | {figures} | {auto} | {faster} | {lost:.2f} |", flush=True)


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", default=None, help="where there is room for a dataset")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the points and features")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--solvers", default=",".join(SOLVERS))
    parser.add_argument("--shapes", default="", help="numbers of the shapes, such as 0,2; all, unless given")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of each solver")
    parser.add_argument("--calibrate", action="store_true", help="fit the constants of dfeas/methods/work.py")
    options = parser.parse_args(words)
    if options.calibrate:
        some = [GRID[int(place)] for place in options.shapes.split(",")] if options.shapes else GRID
        grid = tuple((max(40, int(m * options.scale)), max(40, int(n * options.scale)), each) for m, n, each in some)
        calibrate(options.kinds.split(","), grid, options.dir, options.limit)
        return
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
