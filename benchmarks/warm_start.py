"""Reads of a run that begins from an earlier one, beside a run of its own, where points or labels have changed.

    python benchmarks/warm_start.py --seeds 8
    python benchmarks/warm_start.py --points 20000 --new 200 --seeds 1

Points are normal, in float32, labelled by the side of a random plane; blocks have a thousand points. The earlier run has all
but the new points. Each row has the mean of the reads over the seeds, the least and the greatest. Ends with exit code 1 where a
verdict or a proof is another one than without a start.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dfeas

Floats = np.ndarray[Any, Any]
BLOCK_ROWS = 1000


class Trial:
    """Points of one seed, and what may become of them."""

    def __init__(self, m: int, n: int, new: int, seed: int) -> None:
        self.n, self.random = n, np.random.default_rng(seed)
        self.X = self.random.standard_normal((n + new, m)).astype(np.float32)
        self.w, aside = self.random.standard_normal((2, m))
        self.w /= np.linalg.norm(self.w)
        aside -= (aside @ self.w) * self.w
        self.aside = aside / np.linalg.norm(aside)
        self.labels = np.where(self.X @ self.w > 0, 1, -1)

    def flipped(self, rows: Floats) -> Floats:
        labels = self.labels.copy()
        labels[rows] *= -1
        return labels

    def drifted(self, angle: float) -> Floats:
        return np.where(self.X @ (np.cos(angle) * self.w + np.sin(angle) * self.aside) > 0, 1, -1)

    def some(self, count: int, first: int = 0) -> Floats:
        return self.random.choice(np.arange(first, len(self.X)), count, replace=False)


def wrong_one(trial: Trial) -> Floats:
    return trial.flipped(np.array([trial.n // 3]))


Points = tuple[Floats, Floats]
Change = Callable[[Trial], tuple[Floats, Points]]
"""Labels of the earlier run, and points and labels of the later one."""

CHANGES: dict[str, Change] = {
    "new points": lambda t: (t.labels, (t.X, t.labels)),
    "new points, one of them wrong": lambda t: (t.labels, (t.X, t.flipped(t.some(1, t.n)))),
    "new points, ten of them wrong": lambda t: (t.labels, (t.X, t.flipped(t.some(10, t.n)))),
    "half of the points": lambda t: (t.labels, (t.X[: t.n // 2], t.labels[: t.n // 2])),
    "new points, all in another order": lambda t: (
        t.labels,
        (t.X[order := t.random.permutation(len(t.X))], t.labels[order]),
    ),
    "the plane turned by 0.01": lambda t: (t.labels, (t.X, t.drifted(0.01))),
    "the plane turned by 0.1": lambda t: (t.labels, (t.X, t.drifted(0.1))),
    "one wrong, and new points": lambda t: (wrong_one(t), (t.X, wrong_one(t))),
    "one wrong, and mended": lambda t: (wrong_one(t), (t.X, t.labels)),
    "a tenth wrong, and new points": lambda t: (few := t.flipped(t.some(len(t.X) // 10)), (t.X, few)),
}


def ask(change: Change, trial: Trial, folder: Path) -> tuple[str, str, list[dfeas.Result]]:
    """What comes with a start and without, verdict and proof, and both results."""
    before, (X, labels) = change(trial)
    old, new = folder / "old", folder / "new"
    dfeas.ingest(trial.X[: trial.n], old, y=before[: trial.n], block_rows=BLOCK_ROWS)
    dfeas.ingest(X, new, y=labels, block_rows=BLOCK_ROWS)
    dfeas.solve(old, out=folder / "run")
    both = [dfeas.solve(new, start=start) for start in (None, folder / "run")]
    said = [f"{each.verdict} ({each.proof})" for each in both]
    return said[0], said[1], both


def spread(values: list[float]) -> str:
    return f"{np.mean(values):.2f} ({min(values):.2f} .. {max(values):.2f})"


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--new", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=8)
    asked, failed = parser.parse_args(words), False
    print("| what has changed | verdict | reads, from the earlier run | reads, without |\n|---|---|---|---|")
    for name, change in CHANGES.items():
        own, started, verdicts = list[float](), list[float](), dict[str, None]()
        for seed in range(asked.seeds):
            with tempfile.TemporaryDirectory() as folder:
                expected, got, both = ask(change, Trial(asked.features, asked.points, asked.new, seed), Path(folder))
            own.append(both[0].reads)
            started.append(both[1].reads)
            verdicts[got] = None
            if got != expected:
                failed = True
                print(f"{name}, seed {seed}: {got}, without a start {expected}", file=sys.stderr)
        print(f"| {name} | {', '.join(verdicts)} | {spread(started)} | {spread(own)} |", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
