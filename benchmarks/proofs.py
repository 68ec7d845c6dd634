"""Verdicts against exact rational linear programming, and what proofs cost.

    python benchmarks/proofs.py --instances 100000 --features 100,200,1000 --gb 2

* Small instances, random and adversarial, are solved and compared with the simplex method in rational arithmetic on the very
  floats. False is: ``feasible`` where there is a conflict, ``infeasible`` where there is none, ``eps-infeasible`` or a bracket
  whose upper end is below 0 or below the margin of a separator that the checker has proved. Data that is refused is counted.
* Exact proofs of infeasibility: seconds of the solve, and of them of the checker that proves it, against a plain read.
* Verification of a separator in the page cache against a plain pass, and against X @ y over the same blocks in memory, with as
  many threads.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

import dfeas
from dfeas.data.generate.points import Instance, generate
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.engine.local import LocalEngine
from dfeas.errors import BadInputError
from dfeas.exact.dyadic import Dyadic
from dfeas.machine import processors
from dfeas.passes.select import Select
from dfeas.verify.balance import balance

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.exact import conflicts, small_instance

FEATURES = 100

Made = tuple[np.ndarray, np.ndarray]
"""Points (n, m) and labels (n,)."""


def whole(rng: np.random.Generator, A: np.ndarray) -> Made:
    """As it is: small integers, with zeros of both signs."""
    X = A.T.astype(np.float64)
    return np.where(X == 0, np.where(rng.random(X.shape) < 0.5, 0.0, -0.0), X), np.ones(len(X), int)


def flipped(rng: np.random.Generator, A: np.ndarray) -> Made:
    """Labels of both classes."""
    labels = rng.choice([-1, 1], A.shape[1])
    return A.T * labels[:, None].astype(np.float64), labels


def cancelling(rng: np.random.Generator, A: np.ndarray) -> Made:
    """Every point is beside a multiple of one large direction: 1e8 to 1e32 that cancel."""
    size = 10.0 ** rng.integers(8, 33)
    X = A.T + np.outer(rng.choice([-1, 0, 1], A.shape[1]), rng.integers(-3, 4, A.shape[0])) * size
    return X, np.ones(len(X), int)


def scaled(rng: np.random.Generator, A: np.ndarray) -> Made:
    """Points of lengths from 1e-100 to 1e100, features of scales from 1e-6 to 1e6."""
    X = A.T * 10.0 ** rng.integers(-100, 101, A.shape[1])[:, None] * 10.0 ** rng.integers(-6, 7, A.shape[0])
    return X, np.ones(len(X), int)


def nudged(rng: np.random.Generator, A: np.ndarray) -> Made:
    """Some entries are moved by some last bits: touching sets overlap, or do not."""
    X = A.T.astype(np.float64)
    return X * (1 + rng.choice([0, 0, 0, 1, -1, 7], X.shape) * 2.0**-52), np.ones(len(X), int)


def single(rng: np.random.Generator, A: np.ndarray) -> Made:
    """Thirds in float32."""
    return (A.T / rng.choice([1, 3, 7], A.shape[1])[:, None]).astype(np.float32), np.ones(A.shape[1], int)


def mirrored(rng: np.random.Generator, A: np.ndarray) -> Made:
    """Duplicates, and points with both labels."""
    X = np.vstack([A.T, A.T[rng.integers(A.shape[1], size=2)]]).astype(np.float64)
    labels = np.ones(len(X), int)
    labels[-1] = rng.choice([-1, 1])
    return X * labels[:, None], labels


def normal(rng: np.random.Generator, A: np.ndarray) -> Made:
    """No integers at all: about as many points as features, or twice."""
    n, m = A.shape[1], A.shape[0]
    return rng.standard_normal((n, m)), rng.choice([-1, 1], n)


def tiny(rng: np.random.Generator, A: np.ndarray) -> Made:
    """Subnormal or huge entries, most of which are refused."""
    return A.T * float(rng.choice([5e-324, 1e-310, 1e-128, 1e128, 1e300])), np.ones(A.shape[1], int)


FAMILIES: dict[str, Callable[[np.random.Generator, np.ndarray], Made]] = {
    made.__name__: made for made in (whole, flipped, cancelling, scaled, nudged, single, mirrored, normal, tiny)
}


def examine(seed: int, method: str) -> tuple[str, str, str]:
    """Family, what came out, and whether it is true."""
    rng = np.random.default_rng(seed)
    family = list(FAMILIES)[seed % len(FAMILIES)]
    with np.errstate(over="ignore"):
        X, labels = FAMILIES[family](rng, small_instance(seed))
    given = labels if len(set(labels.tolist())) == 2 else "all-positive"
    try:
        result = dfeas.solve(X, given, intercept=False, method=method, max_passes=40)
    except BadInputError:
        return family, "refused", "true"
    out = f"{result.verdict}, {result.proof}"
    signed = X.astype(np.float64) * (1 if given is None else labels[:, None])
    # a power of two for each point changes nothing, and keeps the integers short
    columns = np.ldexp(signed, -np.frexp(np.abs(signed).max(axis=1, initial=0.0))[1][:, None])
    conflict = conflicts(Dyadic.of(columns.T).digits)
    if result.verdict in ("feasible", "infeasible"):
        return family, out, "true" if conflict == (result.verdict == "infeasible") else "FALSE"
    if conflict:
        return family, out, "true" if result.margin_upper >= 0 else "FALSE"
    again = dfeas.solve(X, given, intercept=False, eps=1e-12, max_passes=200)
    return family, out, "true" if result.margin_upper >= again.margin_lower else "FALSE"


def small(count: int, method: str) -> None:
    found: Counter[tuple[str, str, str]] = Counter()
    with ProcessPoolExecutor() as pool:
        for seed, each in enumerate(pool.map(partial(examine, method=method), range(count), chunksize=50)):
            found[each] += 1
            if each[2] == "FALSE":
                print(f"FALSE: seed {seed}, {each[0]}: {each[1]}", flush=True)
    outs = sorted({out for _, out, _ in found})
    print(f"{count} small instances with {method}; {sum(v for k, v in found.items() if k[2] == 'FALSE')} false verdicts")
    print(f"| family | {' | '.join(outs)} |\n|---|{'---|' * len(outs)}")
    for family in FAMILIES:
        cells = [sum(found[family, out, true] for true in ("true", "FALSE")) for out in outs]
        print(f"| {family} | {' | '.join(map(str, cells))} |")


def exact(features: list[int], points: int, folder: Path) -> None:
    print("\n| instance | verdict | proof | points that conflict | solve s | of it the exact proof s |")
    print("|---|---|---|---|---|---|")
    for m, kind in product(features, ("gaussian", "one-flip")):
        path = folder / f"{kind}-{m}"
        generate(Instance(kind, m, points), path)
        spent: list[float] = []
        with patch("dfeas.verify.balance.balance", lambda *words, spent=spent: clocked(spent, balance, *words)):
            began = perf_counter()
            result = dfeas.solve(path, intercept=False)
            seconds = perf_counter() - began
        size = 0 if result.support is None else len(result.support)
        print(
            f"| {kind} {m} x {points} | {result.verdict} | {result.proof} | {size} | {seconds:.2f} | {sum(spent):.2f} |",
            flush=True,
        )


def verification(gb: float, turns: int, folder: Path) -> None:
    path, run = folder / "large", folder / "run"
    generate(Instance("planted", FEATURES, int(gb * 1e9 / 4 / FEATURES), margin=0.01), path)
    dfeas.solve(path, intercept=False, out=run)
    files = sorted((path / "X").glob("c.*"))
    stored = [np.fromfile(file, np.float32, file.stat().st_size // 4 - 1).reshape(-1, FEATURES) for file in files]
    y = np.ones(FEATURES, np.float32)
    threads = processors()

    def multiply() -> None:
        with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda i: [block @ y for block in stored[i::threads]], range(threads)))

    engine = LocalEngine(open_source(Source(DataSpec(path, intercept=False))), threads)
    question = Select(np.ones(FEATURES), -1.0, 1, 1)
    turned: list[list[float]] = [[], [], []]
    for _ in range(turns + 1):
        clocked(turned[0], dfeas.verify_run, run)
        clocked(turned[1], engine.run, question)
        clocked(turned[2], multiply)
    engine.close()
    taken = [median(spent[1:]) for spent in turned]
    ratios = [median(one / two for one, two in zip(turned[0][1:], other[1:], strict=True)) for other in turned[1:]]
    print("\n| verification of a separator, warm | threads | s | a pass s | ratio | X @ y in memory s | ratio |")
    print("|---|---|---|---|---|---|---|")
    print(f"| {gb:g} GB | {threads} | {taken[0]:.2f} | {taken[1]:.2f} | {ratios[0]:.1f} | {taken[2]:.3f} | {ratios[1]:.1f} |")


def clocked(spent: list[float], action: Callable[..., Any], *words: Any) -> Any:
    began = perf_counter()
    found = action(*words)
    spent.append(perf_counter() - began)
    return found


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=100_000)
    parser.add_argument("--method", default="auto")
    parser.add_argument("--features", default="100,200,1000")
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--gb", type=float, default=2.0)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--dir", default=None, help="where the data is made")
    options = parser.parse_args(words)
    if options.instances:
        small(options.instances, options.method)
    with tempfile.TemporaryDirectory(dir=options.dir) as made:
        exact([int(m) for m in options.features.split(",") if m], options.points, Path(made))
        if options.gb:
            verification(options.gb, options.turns, Path(made))


if __name__ == "__main__":
    main()
