"""Every regime beside what is true of it: verdict, proof, reads, Newton steps, processor seconds.

    python benchmarks/regimes.py --seeds 3
    python benchmarks/regimes.py --only hair,planted --scale 0.1

Families, sizes and memory are those of ``tables/regimes.py``. What is true is proved there in whole numbers on the stored
floats, by a direction or by points that conflict, and shares nothing with dfeas. Each is solved without an intercept and
without eps, in this process, on threads; processor seconds are those of the call. A row sums up its seeds: the verdicts with
the number of seeds that ended so, and the most reads, steps and seconds.

A verdict is wrong where the opposite is true; all else than the truth, eps-infeasible included, is undecided, as exact
arithmetic decides every regime. Ends with exit code 1 when a verdict is wrong, one is undecided, one has no proof that is
rigorous or exact, or a run took more than --most reads, and lists these.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import dfeas
from dfeas.errors import DfeasError

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.tables.regimes import FEASIBLE, INFEASIBLE, Regime, regimes

PROVED = ("rigorous", "exact")
COLUMNS = ("family", "m x n", "memory", "true", "verdict", "reads", "steps", "processor s", "fault")


@dataclass(frozen=True)
class Said:
    """What came out for one seed."""

    seed: int
    truth: str
    verdict: str
    proof: str
    why: str  # how it stopped, or was refused
    reads: float
    steps: int
    seconds: float  # of the processor

    def fault(self, most: float) -> str:
        if {self.verdict, self.truth} == {FEASIBLE, INFEASIBLE}:
            return "WRONG"
        if self.verdict != self.truth:
            return "undecided"
        if self.proof not in PROVED:
            return "unproved"
        return "reads" if self.reads > most else ""


def ask(regime: Regime, seed: int, scale: float, limit: float) -> Said:
    """Make the points, prove what is true of them, and solve."""
    points = regime.points(seed, scale)
    truth = points.truth()
    began = time.process_time()
    try:
        found = dfeas.solve(points.X, points.y, intercept=False, time_limit=limit, memory=regime.memory or None)
    except DfeasError as error:
        why = f"{type(error).__name__}: {error}".replace("\n", " ").replace("|", "/")
        return Said(seed, truth, "refused", "none", why, 0.0, 0, time.process_time() - began)
    taken = time.process_time() - began
    why = f"{found.stopped}, {found.margin_lower:+.1e} .. {found.margin_upper:+.1e}, {found.method}"
    return Said(seed, truth, found.verdict, found.proof, why, found.reads, found.iterations, taken)


def row(regime: Regime, said: Sequence[Said], most: float) -> str:
    """One line of the table."""
    verdicts = Counter(f"{each.verdict} ({each.proof})" for each in said)
    names = [name if len(verdicts) == 1 else f"{name} {times} of {len(said)}" for name, times in verdicts.items()]
    faults = Counter(fault for each in said if (fault := each.fault(most)))
    cells = [
        f"{regime.family} {regime.detail}".strip(),
        f"{regime.m} x {regime.n}",
        regime.memory,
        "/".join(dict.fromkeys(each.truth for each in said)),
        ", ".join(names),
        f"{max(each.reads for each in said):.2f}",
        str(max(each.steps for each in said)),
        f"{max(each.seconds for each in said):.2f}",
        ", ".join(faults),
    ]
    return f"| {' | '.join(cells)} |"


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="regimes whose names have one of these words, with commas between them")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the points, but three for each feature")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of each solve")
    parser.add_argument("--most", type=float, default=6.0, help="reads")
    options = parser.parse_args(words)
    chosen = [each for each in regimes() if any(word in each.name for word in options.only.split(","))]
    if not chosen:
        parser.error(f"--only: no regime is named like {options.only}; there are {', '.join(each.name for each in regimes())}")
    scaled = "" if options.scale == 1 else f", {options.scale:g} of the points"
    print(f"{len(chosen)} regimes, {options.seeds} seeds, at most {options.limit:.0f} s each{scaled}\n")
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    faults: list[str] = []
    every: list[Said] = []
    for regime in chosen:
        seeds = range(options.first_seed, options.first_seed + options.seeds)
        said = [ask(regime, seed, options.scale, options.limit) for seed in seeds]
        print(row(regime, said, options.most), flush=True)
        every += said
        for each in said:
            if fault := each.fault(options.most):
                came = f"{each.verdict} ({each.proof}), {each.reads:.2f} reads, {each.seconds:.1f} s; {each.why}"
                faults.append(f"{fault}: {regime.name}, seed {each.seed}: {came}")
    print(f"\n{len(every)} runs, {sum(each.seconds for each in every):.0f} processor seconds, {len(faults)} with a fault\n")
    print("\n".join(f"- {fault}" for fault in faults), flush=True)
    if faults:
        sys.exit(1)


if __name__ == "__main__":
    main()
