"""What a user calls in a loop: small problems from Python, warm, against a bare solver of the same arrays in the same run.

    python benchmarks/small_problems.py --turns 15

A solve of 10,000 x 20 stands beside HiGHS by ``scipy.optimize.linprog``, which looks for a separator with A'y >= 1 and proves
nothing; a ``check_separation`` of a frame of 500 x 20 (numbers, years, incomes, ids of ten digits, dummies and text) beside the
linear programme of Konis in HiGHS and scikit-learn's LogisticRegression without a penalty, of the columns as they are coded:
these say neither a column nor what helps. In turns after two to warm up; milliseconds and processor milliseconds are medians.
"Ratio" is processor time of the peer over that of dfeas, a median over turns: above one dfeas takes less. At the end stands
what a new process takes until a call can be made, beside one that imports NumPy, in turns.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from time import perf_counter, process_time

import numpy as np
import pandas as pd
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

import dfeas

sys.path.insert(0, str(Path(__file__).parents[1]))

WARM = 2
SOLVE_BAR, TABLE_BAR = 10, 20
"""Milliseconds that are wanted, at most."""
LOGISTIC = "LogisticRegression"
TOLERANCE = 1e-7
"""Sum of scores above which HiGHS, whose own tolerance this is, says that there is a direction."""


def konis(X: np.ndarray, y: np.ndarray) -> bool | None:
    """Largest sum of scores in the box, all of them zero or above (Konis 2007); columns divided by their largest entries."""
    columns = np.column_stack([X, np.ones(len(X))]).astype(float)
    points = columns / np.abs(columns).max(axis=0).clip(np.finfo(float).tiny) * np.where(y == y[0], 1, -1)[:, None]
    found = linprog(-points.sum(axis=0), A_ub=-points, b_ub=np.zeros(len(points)), bounds=(-1, 1))
    return None if found.status else bool(-found.fun > TOLERANCE)


def halfspace(rng: np.random.Generator, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian points on both sides of a plane through the origin."""
    X = rng.standard_normal((n, m))
    return X, np.where(X @ rng.standard_normal(m) > 0, 1, -1)


def problems(n: int, m: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Points that a plane separates, by a margin and without, and some that none does."""
    rng = np.random.default_rng(0)
    X, y = halfspace(rng, n, m)
    wrong = y.copy()
    wrong[:: max(2, n // 100)] *= -1
    apart = X + 0.5 * y[:, None] * np.eye(m)[0]
    return {"no margin": (X, y), "margin": (apart, np.where(apart[:, 0] > 0, 1, -1)), "1 % wrong": (X, wrong)}


def tables(n: int) -> dict[str, tuple[pd.DataFrame, np.ndarray]]:
    """20 columns of a table as it is collected, with outcomes of the three kinds."""
    rng = np.random.default_rng(1)
    values = {f"x{i}": rng.standard_normal(n) for i in range(13)}
    more = {
        "income": rng.lognormal(10, 1, n).round(2),
        "year": rng.integers(1950, 2020, n),
        "id": rng.integers(10**9, 10**10, n),
        "ward": rng.choice(list("abcd"), n),
        "kind": rng.choice(["new", "old"], n),
        "sex": rng.integers(0, 2, n),
        "smoker": rng.integers(0, 2, n),
    }
    frame = pd.DataFrame(values | more)
    score = frame.x0 + frame.x1 - frame.x2 + 0.5 * frame.sex
    chance = (score + rng.logistic(size=n) > 0).to_numpy()
    return {
        "complete": (frame, (score > 0).to_numpy()),
        "quasi-complete": (frame, np.where(frame.ward == "d", True, chance)),
        "overlap": (frame, chance),
    }


def feasible(X: np.ndarray, y: np.ndarray) -> object:
    """Whether some v has y_j x_j'v >= 1 for all points."""
    return linprog(np.zeros(X.shape[1]), A_ub=-y[:, None] * X, b_ub=-np.ones(len(X)), bounds=(None, None)).status


def logistic(X: np.ndarray, y: np.ndarray) -> object:
    """Of columns of unit spread; where it does not converge it says so, which is not shown."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LogisticRegression(C=np.inf, max_iter=1000).fit((X - X.mean(axis=0)) / X.std(axis=0), y)


def taken(action: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds of an action: by the clock, and of the processor."""
    began, used = perf_counter(), process_time()
    action()
    return 1000 * (perf_counter() - began), 1000 * (process_time() - used)


def row(name: str, turns: int, ours: Callable[[], object], peers: dict[str, Callable[[], object]]) -> float:
    """Print a row, and return the median of the clock."""
    times: dict[str, list[tuple[float, float]]] = {each: [] for each in ("dfeas", *peers)}
    for _ in range(WARM + turns):
        for each, action in {"dfeas": ours, **peers}.items():
            times[each].append(taken(action))
    clock, used = np.array(times.pop("dfeas")[WARM:]).T
    cells = [f"{median(clock):.1f}", f"{median(used):.1f}"]
    for found in times.values():
        other = np.array(found[WARM:])[:, 1]
        cells += [f"{median(other):.1f}", f"{median(other / used):.2f}"]
    print(f"| {name} | {' | '.join(cells)} |", flush=True)
    return float(median(clock))


STARTS = ("import numpy", "import dfeas; dfeas.solve", "import dfeas; dfeas.check_separation")
"""What a new process does; the first one is what the others are beside."""


def start(code: str) -> float:
    """Processor milliseconds of a new process that imports."""
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True)
    after = getrusage(RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def starts(turns: int) -> None:
    """Print what new processes take, medians of turns in which each has had its first."""
    found = np.array([[start(code) for code in STARTS] for _ in range(1 + turns)])[1:]
    print("\n| new process | processor ms | over NumPy's |\n|---|---|---|")
    for code, taken in zip(STARTS, found.T, strict=True):
        print(f"| `{code}` | {median(taken):.0f} | {median(taken / found[:, 0]):.2f} |")


def head(what: str, *peers: str) -> None:
    """The first lines of a table."""
    cells = [what, "ms", "processor ms", *(text for peer in peers for text in (f"{peer} ms", "ratio"))]
    print(f"\n| {' | '.join(cells)} |\n|{'---|' * len(cells)}")


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--turns", type=int, default=15)
    options = parser.parse_args(words)
    print(f"{options.turns} turns after {WARM} to warm up; load {os.getloadavg()[0]:.1f}")
    with threadpool_limits(1):
        head(f"solve of {options.points} x {options.features}", "HiGHS")
        clocks = []
        for name, (X, y) in problems(options.points, options.features).items():
            verdict = dfeas.solve(X, y, intercept=False).verdict
            clocks.append(
                row(
                    f"{name}: {verdict}",
                    options.turns,
                    lambda X=X, y=y: dfeas.solve(X, y, intercept=False),
                    {"": lambda X=X, y=y: feasible(X, y)},
                )
            )
        print(f"\nSlowest {max(clocks):.1f} ms, at most {SOLVE_BAR} ms wanted")
        head(f"check_separation of {options.rows} x 20", "Konis", LOGISTIC)
        clocks = []
        for kind, (frame, y) in tables(options.rows).items():
            assert dfeas.check_separation(frame, y).kind == kind
            coded = pd.get_dummies(frame, drop_first=True).to_numpy(np.float64)
            peers = {"Konis": lambda X=coded, y=y: konis(X, y), LOGISTIC: lambda X=coded, y=y: logistic(X, y)}
            clocks.append(row(kind, options.turns, lambda X=frame, y=y: dfeas.check_separation(X, y), peers))
        print(f"\nSlowest {max(clocks):.1f} ms, median {median(clocks):.1f} ms, at most {TABLE_BAR} ms wanted")
    starts(options.turns)


if __name__ == "__main__":
    main()
