"""Verdicts with a kernel against exact linear programming in explicit features.

    python benchmarks/kernel_verdicts.py --instances 1000

Random small points of integers and random labels, polynomial kernel of degree 2, whose features are written out and given to
the simplex method in rational arithmetic: the instances of the tests, and more. Wrong is ``feasible`` where the features
conflict, an infeasible verdict where they do not (eps is 1e-6, far below any margin of these), a verdict without proof, and a
bracket that contradicts that of another method. Ends with exit code 1 when any is.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from time import perf_counter

import dfeas

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.kernels.quadratic import KERNEL, instance

_FALSE = {True: ("feasible",), False: ("infeasible", "eps-infeasible")}
"""Verdicts for an eps far below any margin, by whether the points conflict."""
ROUNDING = 1e-9
"""Ends of brackets that cross by no more do not contradict each other: lower ends are proved, upper ones are those of x."""


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first one")
    parser.add_argument("--methods", default="working-set")
    parser.add_argument("--max-passes", type=int, default=300)
    options = parser.parse_args(words)
    names = options.methods.split(",")
    counts: dict[str, Counter[str]] = {name: Counter() for name in names}
    seconds = dict.fromkeys(names, 0.0)
    failures = []
    for seed in range(options.first, options.first + options.instances):
        X, labels, conflict = instance(seed)
        lower, upper = -1.0, 1.0
        for name in names:
            began = perf_counter()
            result = dfeas.solve(X, labels, method=name, eps=1e-6, max_passes=options.max_passes, kernel=KERNEL)
            seconds[name] += perf_counter() - began
            counts[name][f"{result.verdict}, {'conflict' if conflict else 'separable'}"] += 1
            lower, upper = max(lower, result.margin_lower), min(upper, result.margin_upper)
            if result.verdict in _FALSE[conflict] or (result.success and result.proof not in ("exact", "rigorous")):
                failures.append(f"instance {seed}, {name}: {result.verdict} ({result.proof}), conflict: {conflict}")
        if lower > upper + ROUNDING:
            failures.append(f"instance {seed}: brackets contradict each other, {lower:.6g} and {upper:.6g}")
    print("| method | verdict and truth | instances |\n|---|---|---|")
    for name, found in counts.items():
        for what, count in sorted(found.items()):
            print(f"| {name} | {what} | {count} |")
    for name, taken in seconds.items():
        print(f"\n{name}: {1000 * taken / options.instances:.3g} ms an instance")
    print(f"\n{options.instances} instances, {len(failures)} wrong")
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
