"""Kinds of separation of regression tables: each is compared with a proof in whole numbers, and timed.

    python benchmarks/separation_tables.py --designs 2000 --save wrong

Designs of the families in ``tables/designs.py`` are decided by ``dfeas.check_separation``. ``tables/oracle.py`` decides them
exactly and shares nothing with it. Wrong is another kind, unproved a kind whose proof is not exact (a separator may be
rigorous), and undecided no kind, data that was refused included. Seconds are of ``check_separation`` alone, in a process that
has called it before. Ends with exit code 1 when a kind is wrong, unproved or undecided, and lists the designs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

import dfeas
from dfeas.errors import DfeasError

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.tables.designs import FAMILIES, Design, design
from benchmarks.tables.oracle import COMPLETE, Answer, kind_of

SHAPE = (500, 20)
SHAPED = "500 x 20"
MEDIAN_BAR, WORST_BAR = 0.02, 5.0
"""Seconds: median of designs of SHAPE, and the most of any."""

HEAD = "| family | designs | complete/quasi/overlap | without truth | wrong | unproved | undecided | median s | worst s |"


@dataclass(frozen=True)
class Said:
    """What dfeas said of a design, beside the truth."""

    design: Design
    family: str  # of the table's row
    truth: Answer
    kind: str | None
    proof: str
    message: str
    seconds: float

    @property
    def fault(self) -> str | None:
        if self.truth.kind is None:
            return None
        if self.kind is None:
            return "undecided"
        if self.kind != self.truth.kind:
            return "wrong"
        return None if self.proof == "exact" or (self.proof, self.kind) == ("rigorous", COMPLETE) else "unproved"

    def __str__(self) -> str:
        made, (n, m) = self.design, self.design.X.shape
        text = f"{self.fault}: {made.family} {made.seed} ({n} x {m}, {made.labels}): {self.kind} ({self.proof})"
        return f"{text}, it is {self.truth.kind}; {self.seconds:.3g} s; {self.message}"


def asked(made: Design, family: str, oracle_seconds: float) -> Said:
    truth = kind_of(made.X, made.y, seconds=oracle_seconds)
    began = perf_counter()
    try:
        found = dfeas.check_separation(made.X, made.y)
        taken = perf_counter() - began
        return Said(made, family, truth, found.kind, found.proof, found.found.message, taken)
    except DfeasError as error:
        return Said(made, family, truth, None, "none", f"refused: {error}", perf_counter() - began)
    except Exception as error:
        error.add_note(f"design {made.family} {made.seed}")
        raise


def row(name: str, said: Sequence[Said]) -> str:
    kinds = "/".join(str(sum(each.truth.kind == kind for each in said)) for kind in ("complete", "quasi-complete", "overlap"))
    unknown = sum(each.truth.kind is None for each in said)
    faults = [sum(each.fault == fault for each in said) for fault in ("wrong", "unproved", "undecided")]
    seconds = [each.seconds for each in said]
    words = [name, len(said), kinds, unknown, *faults, f"{median(seconds):.4f}", f"{max(seconds):.3f}"]
    return f"| {' | '.join(map(str, words))} |"


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--designs", type=int, default=2000)
    parser.add_argument("--shaped", type=int, default=50, help=f"designs of {SHAPED} beside them")
    parser.add_argument("--seed", type=int, default=0, help="of the first design of each family")
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--oracle-seconds", type=float, default=60.0, help="limit of the proof of a design")
    parser.add_argument("--save", type=Path, default=None, help="folder for the designs with a fault, as .npz")
    options = parser.parse_args(words)
    families = options.families.split(",")
    if unknown := set(families) - set(FAMILIES):
        parser.error(f"--families: {', '.join(sorted(unknown))}; there are {', '.join(FAMILIES)}")
    dfeas.check_separation(np.arange(4.0)[:, None], np.array([0, 1, 0, 1]))
    print(HEAD)
    print(f"|{'---|' * 9}")
    said: list[Said] = []
    for i, family in enumerate(families):
        count = len(range(i, options.designs, len(families)))
        of_family = [asked(design(family, options.seed + j), family, options.oracle_seconds) for j in range(count)]
        if of_family:
            print(row(family, of_family), flush=True)
        said += of_family
    shaped = [asked(design("table", options.seed + j, SHAPE), SHAPED, options.oracle_seconds) for j in range(options.shaped)]
    if shaped:
        print(row(SHAPED, shaped))
    print(row("all", said + shaped))
    if shaped:
        middle = 1000 * median(each.seconds for each in shaped)
        print(f"\nMedian of {SHAPED}: {middle:.1f} ms, at most {1000 * MEDIAN_BAR:g} ms wanted")
    slowest = max(said + shaped, key=lambda each: each.seconds)
    where = f"{slowest.design.family} {slowest.design.seed} ({slowest.family})"
    print(f"\nWorst: {slowest.seconds:.2f} s, at most {WORST_BAR:g} s wanted: {where}")
    faults = [each for each in said + shaped if each.fault]
    if options.save is not None:
        save(options.save, faults)
    if faults:
        sys.exit("\n".join(map(str, faults)))


def save(folder: Path, faults: Sequence[Said]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for each in faults:
        name = f"{each.fault}-{each.family.replace(' ', '')}-{each.design.seed}.npz"
        np.savez(folder / name, X=each.design.X, y=each.design.y, truth=str(each.truth.kind), said=str(each.kind))


if __name__ == "__main__":
    main()
