"""The working set on data of up to 8 GB, and beside solvers that need the data in memory.

    python benchmarks/working_set.py --dir SCRATCH          # needs 17 GB of disk

First table: ``dfeas solve`` as a user runs it, whole processes, warm page cache, in-process, beside one plain read of the files
of X by as many threads. Second table: all that can hold 100 x 500,000 points, each in a process of its own, which is stopped
after --limit seconds; times are of the solver alone, the data being in memory. ``margin`` is min_j a_j'y / |y| of what a solver
returned, computed in float64: at most 0 means that its answer does not separate.

Third table: processor time of the solver in memory, all columns at once and some at a time.

    HiGHS                maximise t, a_j'y >= t, |y_i| <= 1, through scipy
    LogisticRegression   C = 1e8, no intercept, tol 1e-6
    LinearSVC            C = 1e8, primal (dual=False), no intercept
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

import numpy as np

from dfeas.data.generate.points import Instance, generate
from dfeas.linalg.blas import one_thread
from dfeas.linalg.columns import ColumnMatrix
from dfeas.linalg.separate import FIRST_C, Round, fast, solve

RUNS = [  # name, instance, options of solve, most passes, most seconds (None: five plain reads and 20 s)
    ("halfspace 100 x 500,000", Instance("halfspace", 100, 500_000), [], 3, 5.0),
    ("the same, --margin-tolerance 1e-3", Instance("halfspace", 100, 500_000), ["--margin-tolerance", "1e-3"], 10, np.inf),
    ("halfspace 1000 x 500,000", Instance("halfspace", 1000, 500_000), [], 3, 40.0),
    ("halfspace 100 x 20,000,000, --memory 2GB", Instance("halfspace", 100, 20_000_000), ["--memory", "2GB"], 4, None),
    ("gaussian 1000 x 500,000", Instance("gaussian", 1000, 500_000), [], 2, 20.0),
    ("one-flip 100 x 5,000,000", Instance("one-flip", 100, 5_000_000), [], 3, np.inf),
    ("planted 1e-6, 200 x 1,000,000 float64", Instance("planted", 200, 1_000_000, 1e-6, dtype="float64"), [], 5, np.inf),
    ("halfspace 100 x 500,000, ride-along from the first pass", Instance("halfspace", 100, 500_000), None, 3, np.inf),
]

PEERS = ("working-set", "mirror-prox", "smooth-perceptron", "HiGHS", "LogisticRegression", "LinearSVC")

RIDING = """
import sys, dfeas
from dataclasses import replace
from dfeas.methods.registry import METHODS
METHODS["working-set"] = replace(METHODS["working-set"], after=0)
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


def own(data: Path, room: Path, scale: float, only: list[str]) -> None:
    print("| instance | verdict | passes | most | seconds | most | plain read s | seconds / plain read | named point |")
    print("|---|---|---|---|---|---|---|---|---|")
    chosen = [run for run in RUNS if any(words in run[0] for words in only)]
    for i, (name, full, options, passes, most) in enumerate(chosen):
        instance = Instance(full.kind, full.m, max(200, int(full.n * scale)), full.margin, dtype=full.dtype)
        path = data / f"{full.kind}-{full.m}-{instance.n}"
        if not path.exists():
            generate(instance, path)
        read = min(plain_read(path) for _ in range(3))
        program = RIDING if options is None else "from dfeas.cli.main import main; main()"
        words = [sys.executable, "-c", program, "solve", str(path), "--out", str(room / f"run-{i}"), "--json", *(options or [])]
        began = time.perf_counter()
        done = subprocess.run(words, check=True, capture_output=True, text=True)
        seconds = time.perf_counter() - began
        values = json.loads(done.stdout)
        named = ""
        if full.kind == "one-flip":
            named = f"{values['conflicts'][0]['point']} (flipped: {instance.flipped})"
        bound = 5 * read + 20 if most is None else most
        print(
            f"| {name} | {values['verdict']} | {values['passes']:.3f} | {passes} | {seconds:.2f} | "
            f"{bound:.1f} | {read:.2f} | {seconds / read:.1f} | {named} |",
            flush=True,
        )


def peer(name: str, n: int, folder: str) -> None:
    """Solve in this process and print one JSON object."""
    X, labels = np.load(f"{folder}/X.npy"), np.load(f"{folder}/y.npy")
    A = X * labels[:, None].astype(X.dtype)  # unit points
    passes, verdict = "", ""
    began = time.perf_counter()
    if name in PEERS[:3]:
        import dfeas

        result = dfeas.solve(X, labels, method=name)
        y, passes, verdict = result.y, f"{result.passes:.3f}", result.verdict
    elif name == "HiGHS":
        from scipy.optimize import linprog

        m = X.shape[1]
        rows = np.hstack([-A, np.ones((n, 1), A.dtype)])
        bounds = [(-1, 1)] * m + [(None, 1)]
        found = linprog(np.append(np.zeros(m), -1.0), A_ub=rows, b_ub=np.zeros(n), bounds=bounds, method="highs")
        y, verdict = (found.x[:m], found.message.split(".")[0]) if found.x is not None else (None, found.message)
    elif name == "LogisticRegression":
        from sklearn.linear_model import LogisticRegression

        y = LogisticRegression(C=1e8, fit_intercept=False, tol=1e-6, max_iter=10_000).fit(X, labels).coef_[0]
    else:
        from sklearn.svm import LinearSVC

        y = LinearSVC(C=1e8, dual=False, fit_intercept=False, max_iter=10_000).fit(X, labels).coef_[0]
    seconds = time.perf_counter() - began
    margin = wrong = None
    if y is not None and len(y):
        wide = np.asarray(y, np.float64) / np.linalg.norm(y)
        score = np.concatenate([A[i : i + 50_000].astype(np.float64) @ wide for i in range(0, n, 50_000)])
        margin, wrong = float(score.min()), int((score <= 0).sum())
    print(json.dumps([verdict, passes, seconds, margin, wrong]))


def peers(room: Path, n: int, limit: float, names: list[str]) -> None:
    instance = Instance("halfspace", 100, n)
    blocks = [instance.block(i) for i in range(-(-n // instance.rows))]
    np.save(room / "X.npy", np.vstack([b[0] for b in blocks]))
    np.save(room / "y.npy", np.concatenate([b[1] for b in blocks]))
    print(f"\nhalfspace 100 x {n} in memory, at most {limit:.0f} s each\n")
    print("| solver | says | passes | seconds | seconds / working set | margin | points wrong |")
    print("|---|---|---|---|---|---|---|")
    reference = 0.0
    for name in names:
        words = [sys.executable, __file__, "--peer", name, "--points", str(n), "--dir", str(room)]
        try:
            done = subprocess.run(words, check=True, capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            print(f"| {name} | stopped | | above {limit:.0f} | above {limit / reference:.0f} | | |", flush=True)
            continue
        verdict, passes, seconds, margin, wrong = json.loads(done.stdout)
        reference = reference or seconds
        shown = "" if margin is None else f"{margin:.2e}"
        print(
            f"| {name} | {verdict} | {passes} | {seconds:.2f} | {seconds / reference:.1f} | {shown} "
            f"| {'' if wrong is None else wrong} |",
            flush=True,
        )


ROUNDS = ((100, 150_000), (400, 40_000), (1000, 225_000), (2000, 55_000))
"""Features and columns of the third table."""


def rounds(scale: float) -> None:
    """Processor seconds of the solver in memory, all columns at once and some at a time."""
    print("\nThe solver in memory on halfspace, float32\n")
    print("| features | columns | at once s | in rounds s | at once / in rounds | margins |")
    print("|---|---|---|---|---|---|")
    for m, full in ROUNDS:
        instance = Instance("halfspace", m, max(200, int(full * scale)))
        blocks = [instance.block(i) for i in range(-(-instance.n // instance.rows))]
        points = np.vstack([X * y[:, None].astype(X.dtype) for X, y in blocks])
        matrix = ColumnMatrix.of(points, np.ones(len(points)))
        began = time.process_time()
        with one_thread(of_scipy=True):
            whole = fast(matrix, Round(matrix, np.zeros(m), at_once=True), FIRST_C)
        middle = time.process_time()
        some = solve(matrix)
        once, parted = middle - began, time.process_time() - middle
        margins = f"{'none' if whole is None else format(whole.margin, '.1e')}, {some.margin:.1e}"
        print(f"| {m} | {len(points)} | {once:.2f} | {parted:.2f} | {once / parted:.1f} | {margins} |", flush=True)


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", default=None, help="keep the datasets here, and use them again")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the points")
    parser.add_argument("--only", default="", help="instances of the first table whose names have one of these words")
    parser.add_argument("--points", type=int, default=500_000, help="of the second table")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds of a peer")
    parser.add_argument("--peers", default=",".join(PEERS), help="of the second table, the working set first")
    parser.add_argument("--peer", choices=PEERS, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.peer is not None:
        peer(options.peer, options.points, options.dir)
        return
    with tempfile.TemporaryDirectory(dir=options.dir) as made:
        own(Path(options.dir or made), Path(made), options.scale, options.only.split(","))
        peers(Path(made), options.points, options.limit, options.peers.split(","))
    rounds(options.scale)


if __name__ == "__main__":
    main()
