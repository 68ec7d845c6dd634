"""Passes of methods until points of a tiny margin are separated, on many seeds.

    python benchmarks/tiny_margins.py

Points are planted with the margin, in float64; a run that has no separator after ``--max-passes`` counts with them.
"""

from __future__ import annotations

import argparse
import statistics
import time

import dfeas

METHODS = "rescaled-perceptron-ellipsoid,rescaled-perceptron,perceptron,von-neumann,smooth-perceptron"


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--features", default="2,5,10,20,30")
    parser.add_argument("--margins", default="1e-2,1e-4,1e-6,1e-9")
    parser.add_argument("--points", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--max-passes", type=int, default=200)
    options = parser.parse_args(words)
    print("| features | margin | method | separated | passes, median | most | corrections or steps | processor seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for m in map(int, options.features.split(",")):
        for margin in options.margins.split(","):
            for method in options.methods.split(","):
                began, results = time.process_time(), []
                for seed in range(options.seeds):
                    instance = dfeas.Instance("planted", m, options.points, margin=float(margin), seed=seed, dtype="float64")
                    X, labels = instance.block(0)
                    limits = {"eps": 1e-12, "max_passes": options.max_passes}
                    results.append(dfeas.solve(X, labels, intercept=False, method=method, **limits))
                passes = [result.passes for result in results]
                feasible = sum(result.verdict == "feasible" for result in results)
                print(
                    f"| {m} | {margin} | {method} | {feasible} of {len(results)} | {statistics.median(passes):g} "
                    f"| {max(passes):g} | {statistics.median(result.iterations for result in results):g} "
                    f"| {(time.process_time() - began) / len(results):.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
