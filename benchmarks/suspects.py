"""Wrong labels that ``dfeas.suspects`` finds, what it proves, and what that takes.

    python benchmarks/suspects.py
    python benchmarks/suspects.py --shapes 20x20000 --flips 10,100 --seeds 1

Points are normal, on both sides of a random plane, and none is nearer to it than a margin, as a share of its length; then
labels of some are flipped. ``digits``: the images of scikit-learn, zeros against others, seen by their first eight principal
components. Each row has the least and the greatest over the seeds. Ends with exit code 1 where what is said to be enough is
not.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import numpy as np

import dfeas

Array = np.ndarray[Any, Any]
HEAD = ("data", "flipped", "of these listed", "listed", "enough", "at least", "passes", "reads", "processor s")
COMPONENTS = 8


def halves(m: int, n: int, margin: float, seed: int) -> tuple[Array, Array]:
    """Points (n, m) in float32 and labels that a hyperplane separates."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(m)
    w /= np.linalg.norm(w)
    X = rng.standard_normal((n, m))
    short = margin * np.linalg.norm(X, axis=1) - np.abs(X @ w)
    X += np.outer(np.where(short > 0, 1.1 * short, 0) * np.sign(X @ w), w)
    return X.astype(np.float32), X @ w > 0


def digits() -> tuple[Array, Array]:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    X = X - X.mean(axis=0)
    return X @ np.linalg.svd(X, full_matrices=False)[2][:COMPONENTS].T, y == 0


def trial(X: Array, y: Array, flips: int, seed: int) -> tuple[list[float], bool]:
    """The figures of a row, and whether the points that stay are separated."""
    wrong = np.random.default_rng(seed).choice(len(X), flips, replace=False)
    labels = y.copy()
    labels[wrong] = ~labels[wrong]
    began = time.process_time()
    found = dfeas.suspects(X, labels)
    took = time.process_time() - began
    listed = {each["point"] for each in found.points}
    needed = [each["point"] for each in found.points if each["needed"]]
    kept = np.delete(np.arange(len(X)), needed)
    sound = found.is_decided and dfeas.solve(X[kept], labels[kept]).verdict == "feasible"
    figures = [len(listed & {*wrong.tolist()}), len(listed), found.enough, found.at_least, found.passes, found.reads, took]
    return figures, sound


def show(low: float, high: float) -> str:
    """Both ends of a range, or one number."""
    first, last = f"{low:.3g}" if low % 1 else f"{low:.0f}", f"{high:.3g}" if high % 1 else f"{high:.0f}"
    return first if first == last else f"{first} .. {last}"


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", default="20x20000,100x200000,digits", help="features x points, or digits")
    parser.add_argument("--flips", default="1,10,100,1000")
    parser.add_argument("--margin", type=float, default=0.01)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args(words)
    print("|", " | ".join(HEAD), "|")
    print("|", " | ".join("-" * (3 if name == "data" else 2) + ("" if name == "data" else ":") for name in HEAD), "|")
    right = True
    for shape in given.shapes.split(","):
        for flips in map(int, given.flips.split(",")):
            rows = []
            for seed in range(given.seeds):
                X, y = digits() if shape == "digits" else halves(*map(int, shape.split("x")), given.margin, seed)  # type: ignore[arg-type]
                if flips > len(X) // 10:
                    break
                figures, sound = trial(X, y, flips, seed)
                rows.append(figures)
                right = right and sound
            if rows:
                ranges = [show(min(column), max(column)) for column in zip(*rows, strict=True)]
                print("|", " | ".join([shape.replace("x", " x "), str(flips), *ranges]), "|", flush=True)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
