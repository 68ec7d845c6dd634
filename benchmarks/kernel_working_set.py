"""The working set with a kernel beside scikit-learn's SVC, which stores what it can of the Gram matrix: growth with n.

    python benchmarks/kernel_working_set.py --points 5000,10000,20000 --alone 100000 --features 64

Points on both sides of a sphere, with a gap; rbf with the usual gamma. Both get the same arrays, SVC a C of 1e6, for it knows
no hard margin; and it has an intercept, which makes its problem the easier one. ``--alone`` is more than SVC is given. Each run
is a process of its own, whose memory is the most that it had above what it began with; the Gram matrix of 100,000 points has
80 GB. SVC says no verdict: points on its wrong side are counted. Last comes by which power of n time and memory grow.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from time import perf_counter
from typing import Any

import numpy as np

GAP = 0.1


def sphere(n: int, m: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, m) in float32, and labels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m))
    size = np.linalg.norm(X, axis=1)
    labels = np.where(size > np.sqrt(m), 1, -1)
    return (X * (1 + GAP * labels)[:, None]).astype(np.float32), labels


def ours(X: np.ndarray, labels: np.ndarray) -> tuple[str, int]:
    import dfeas

    result = dfeas.solve(X, labels, kernel="rbf", memory="2GB")
    used = 0 if result.support is None else len(result.support)
    return (
        f"{result.verdict}, {result.proof}, {result.margin_lower:.2g} .. {result.margin_upper:.2g}, {result.reads:g} reads",
        used,
    )


def theirs(X: np.ndarray, labels: np.ndarray) -> tuple[str, int]:
    from sklearn.svm import SVC

    from dfeas.kernels.kernel import kernel_of, usual_gamma

    gamma = usual_gamma(kernel_of("rbf")[0], X[:1000])
    found = SVC(C=1e6, kernel="rbf", gamma=gamma, cache_size=1000).fit(X, labels)
    return f"{int((found.predict(X) != labels).sum())} points on the wrong side", int(found.n_support_.sum())


def one(name: str, n: int, m: int) -> None:
    """Print what it says, points of the expansion, seconds, MB."""
    X, labels = sphere(n, m)
    function = {"dfeas": ours, "SVC": theirs}[name]
    function(X[:200], labels[:200])  # what is loaded and compiled does not count
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = perf_counter()
    said, used = function(X, labels)
    seconds = perf_counter() - began
    print(json.dumps([said, used, seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024]))


def measured(name: str, n: int, m: int) -> list[Any]:
    """The same in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--one", name, str(n), str(m)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{name} with {n} points: {done.stderr}")
    found: list[Any] = json.loads(done.stdout)
    return found


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", default="5000,10000,20000")
    parser.add_argument("--alone", default="100000")
    parser.add_argument("--features", type=int, default=64)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.one:
        one(options.one[0], int(options.one[1]), int(options.one[2]))
        return
    print("| points | | says | of the expansion | s | MB |\n|---|---|---|---|---|---|")
    both = [int(n) for n in options.points.split(",") if n]
    alone = [int(n) for n in options.alone.split(",") if n]
    found: dict[str, list[tuple[int, float, float]]] = {"dfeas": [], "SVC": []}
    for n, name in [*((n, name) for n in both for name in found), *((n, "dfeas") for n in alone)]:
        said, used, seconds, size = measured(name, n, options.features)
        found[name].append((n, seconds, size))
        print(f"| {n} | {name} | {said} | {used} | {seconds:.1f} | {size:.0f} |", flush=True)
    for name, runs in found.items():
        if len(runs) > 1:
            time, memory = growth(runs, 1), growth(runs, 2)
            span = f"from {runs[0][0]} to {runs[-1][0]} points"
            print(f"\n{name}: {span} time grows like n^{time:.2f}, memory like n^{memory:.2f}")


def growth(runs: list[tuple[int, float, float]], column: int) -> float:
    """The power of n by which a column grows, by least squares of logarithms."""
    n, values = np.log([run[0] for run in runs]), np.log([max(run[column], 1e-3) for run in runs])
    return float(np.polyfit(n, values, 1)[0])


if __name__ == "__main__":
    main()
