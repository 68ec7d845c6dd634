"""Passes of every method on generated instances, beside the bounds of its theorem.

    python benchmarks/method_passes.py

The bound is what the method's theorem gives for the instance: for a known margin rho the passes to a separator, otherwise those
to |Ax| <= eps. A ratio above 1 would be a broken theorem. Halfspace has no known margin: its bound is the one for eps.
``dfeas plan`` takes the usual share of a bound from here.
"""

from __future__ import annotations

import argparse

import numpy as np

import dfeas
from dfeas.data.generate.points import Instance
from dfeas.methods.protocol import Facts
from dfeas.methods.registry import METHODS

INSTANCES = [
    ("halfspace", 100, 5_000, {}),
    ("halfspace", 1000, 5_000, {}),
    ("halfspace", 100, 50_000, {}),
    ("halfspace", 100, 50_000, {"seed": 1}),
    ("halfspace", 100, 50_000, {"seed": 2}),
    *(("planted", 100, 50_000, {"margin": margin}) for margin in (0.1, 0.03, 0.01, 0.003)),
    ("gaussian", 100, 50_000, {}),
    ("one-flip", 100, 50_000, {"margin": 0.01}),
]


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--eps", type=float, default=1e-3)
    parser.add_argument("--max-passes", type=int, default=3000)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the points")
    parser.add_argument("--only", default="", help="instances whose kind begins so")
    options = parser.parse_args(words)
    print("| instance | method | verdict | passes | steps | bound of passes | passes / bound | margin | seconds |")
    print("|---|---|---|---|---|---|---|---|---|")
    for kind, m, n, extra in (each for each in INSTANCES if each[0].startswith(options.only)):
        instance = Instance(kind, m, max(20, int(n * options.scale)), **extra)
        blocks = [instance.block(i) for i in range(-(-instance.n // instance.rows))]
        X, labels = np.vstack([b[0] for b in blocks]), np.concatenate([b[1] for b in blocks])
        for method in METHODS:
            result = dfeas.solve(X, labels, intercept=False, method=method, eps=options.eps, max_passes=options.max_passes)
            name = f"{kind} {m} x {instance.n}" + "".join(f", {k} {v}" for k, v in extra.items())
            target = instance.margin if kind == "planted" else options.eps
            most = METHODS[method].bound(Facts(m, instance.n), target)
            print(
                f"| {name} | {method} | {result.verdict} | {result.passes:.4g} | {result.iterations} | {most:.0f} "
                f"| {result.passes / most:.4f} | {result.margin_lower:+.2e} .. {result.margin_upper:.2e} "
                f"| {result.seconds:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
