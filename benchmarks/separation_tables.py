"""Kinds of separation of regression tables: each is compared with a proof in whole numbers, and timed.

    python benchmarks/separation_tables.py --designs 2000 --save wrong

Designs of the families in ``tables/designs.py`` are decided by ``dfeas.check_separation``. ``tables/oracle.py`` decides them
exactly and shares nothing with it. Wrong is another kind, unproved a kind whose proof is not exact (a separator may be
rigorous), and undecided no kind, data that was refused included. Seconds are of ``check_separation`` alone, in a process that
has called it before. Ends with exit code 1 when a kind is wrong, unproved or undecided, and lists the designs.

Peers say only whether the estimates are finite: the linear programme of Konis in HiGHS, and, where it is installed, Logit of
statsmodels, which may warn of separation, converge, or neither. Wrong is separated of an overlap, or finite of another kind.
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
from benchmarks.tables.oracle import COMPLETE, OVERLAP, QUASI, Answer, kind_of
from benchmarks.tables.peers import Peer, installed

SHAPE = (500, 20)
SHAPED = "500 x 20"
MEDIAN_BAR, WORST_BAR = 0.02, 5.0
"""Seconds: median of designs of SHAPE, and the most of any."""

HEAD = "| family | designs | complete/quasi/overlap | without truth | wrong | unproved | undecided | median s | worst s |"


@dataclass(frozen=True)
class Guess:
    """What a peer said of a design."""

    separated: bool | None
    seconds: float


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
    peers: dict[str, Guess]

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


@dataclass(frozen=True)
class Asker:
    oracle_seconds: float
    peers: dict[str, Peer]

    def ask(self, made: Design, family: str) -> Said:
        truth = kind_of(made.X, made.y, seconds=self.oracle_seconds)
        peers = {name: self.guess(peer, made) for name, peer in self.peers.items()}
        began = perf_counter()
        try:
            found = dfeas.check_separation(made.X, made.y)
        except DfeasError as error:
            return Said(made, family, truth, None, "none", f"refused: {error}", perf_counter() - began, peers)
        taken = perf_counter() - began
        return Said(made, family, truth, found.kind, found.proof, found.found.message, taken, peers)

    def guess(self, peer: Peer, made: Design) -> Guess:
        began = perf_counter()
        separated = peer(made.X, made.y)
        return Guess(separated, perf_counter() - began)


def row(name: str, said: Sequence[Said]) -> str:
    kinds = "/".join(str(sum(each.truth.kind == kind for each in said)) for kind in (COMPLETE, QUASI, OVERLAP))
    unknown = sum(each.truth.kind is None for each in said)
    faults = [sum(each.fault == fault for each in said) for fault in ("wrong", "unproved", "undecided")]
    seconds = [each.seconds for each in said]
    return table_row(name, len(said), kinds, unknown, *faults, f"{median(seconds):.4f}", f"{max(seconds):.3f}")


def peer_row(name: str, said: Sequence[Said], peers: Sequence[str]) -> str:
    known = [each for each in said if each.truth.kind is not None]
    cells: list[object] = []
    for peer in peers:
        guesses = [(each.peers[peer].separated, each.truth.kind != OVERLAP) for each in known]
        wrong = sum(guess is not None and guess != separated for guess, separated in guesses)
        cells += [wrong, sum(guess is None for guess, _ in guesses), f"{median(each.peers[peer].seconds for each in said):.4f}"]
    return table_row(name, len(known), *cells)


def table_row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--designs", type=int, default=2000)
    parser.add_argument("--shaped", type=int, default=50, help=f"designs of {SHAPED} beside them")
    parser.add_argument("--seed", type=int, default=0, help="of the first design of each family")
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--oracle-seconds", type=float, default=60.0, help="limit of the proof of a design")
    parser.add_argument("--save", type=Path, default=None, help="folder for the designs with a fault, as .npz")
    parser.add_argument("--peers", default=",".join(installed()), help="beside dfeas; empty: none")
    options = parser.parse_args(words)
    families = options.families.split(",")
    if unknown := set(families) - set(FAMILIES):
        parser.error(f"--families: {', '.join(sorted(unknown))}; there are {', '.join(FAMILIES)}")
    peers = [name for name in options.peers.split(",") if name]
    if strangers := set(peers) - set(installed()):
        parser.error(f"--peers: {', '.join(sorted(strangers))}; there are {', '.join(installed())}")
    asker = Asker(options.oracle_seconds, {name: installed()[name] for name in peers})
    asker.ask(design(FAMILIES[0], 0), "first calls load modules")
    print(HEAD)
    print(f"|{'---|' * 9}")
    said: dict[str, list[Said]] = {}
    for i, family in enumerate(families):
        seeds = range(options.seed, options.seed + len(range(i, options.designs, len(families))))
        said[family] = [asker.ask(design(family, seed), family) for seed in seeds]
        if said[family]:
            print(row(family, said[family]), flush=True)
    seeds = range(options.seed, options.seed + options.shaped)
    shaped = said[SHAPED] = [asker.ask(design("table", seed, SHAPE), SHAPED) for seed in seeds]
    if shaped:
        print(row(SHAPED, shaped))
    every = [each for of_family in said.values() for each in of_family]
    print(row("all", every))
    if asker.peers:
        heads = [f"{peer}: {what}" for peer in asker.peers for what in ("wrong", "no answer", "median s")]
        print(f"\n{table_row('family', 'designs', *heads)}\n|{'---|' * (len(heads) + 2)}")
        for family, of_family in {**said, "all": every}.items():
            if of_family:
                print(peer_row(family, of_family, list(asker.peers)))
    if shaped:
        middle = 1000 * median(each.seconds for each in shaped)
        print(f"\nMedian of {SHAPED}: {middle:.1f} ms, at most {1000 * MEDIAN_BAR:g} ms wanted")
    slowest = max(every, key=lambda each: each.seconds)
    where = f"{slowest.design.family} {slowest.design.seed} ({slowest.family})"
    print(f"\nWorst: {slowest.seconds:.2f} s, at most {WORST_BAR:g} s wanted: {where}")
    faults = [each for each in every if each.fault]
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
