"""What a method adds to the reads that it asks for: one pass of the real loop against the bare read of the same question.

    python benchmarks/iteration_cost.py --gb 0.5

Data on disk, in the page cache. Each turn times, in random order, (a) a pass as the driver makes it: the method is asked, the
engine reads, the method is told and its record is written; and (b) ``engine.run`` of that very question, its answer thrown
away. The ratios are medians of a / b, turn by turn, with quartiles. "Tell" is the part of (a) after the read: what methods that
correct mistakes, and the working set, do in memory with the columns that they gathered; the others do next to nothing there.
"Without tell" leaves it out. Only turns that read all points count; a method that has ended begins again.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

from dfeas.data.dataset import Dataset
from dfeas.data.generate.points import Instance, generate
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.scratch import Scratch
from dfeas.engine.local import LocalEngine
from dfeas.geometry.protocol import facts_of
from dfeas.methods.registry import METHODS
from dfeas.problem import LEAST_EPS
from dfeas.run.resources import Limits
from dfeas.run.task import VerdictTask
from dfeas.run.termination import Goal
from dfeas.settings import DEFAULT_MEMORY, parse_bytes

OTHERS = ("working-set", "working-set-plain", "ispvn")
"""For information: a read of a sample, and what is done beside the reads, belong to their design."""

MOST = 1.15
"""The ratio that methods of one question a read are to stay below."""


def begun(name: str, dataset: Dataset) -> VerdictTask:
    """A method before its first pass, that only its own end ends."""
    method = METHODS[name]
    radius = 1.0 if dataset.header is None else dataset.header.norm_max
    facts = facts_of(dataset, parse_bytes(DEFAULT_MEMORY), radius=radius)
    return VerdictTask(method, method.init(facts), Goal(LEAST_EPS))


def turn(lane: VerdictTask, engine: LocalEngine, bare_first: bool) -> tuple[float, float, float, bool]:
    """Seconds of ask and read, of tell, and of the bare read; and whether all points were read."""
    question, bare = lane.method.ask(lane.state), 0.0
    if bare_first:
        bare = bare_read(engine, question)
    began = perf_counter()
    answer = engine.run(lane.method.ask(lane.state))
    read = perf_counter()
    lane.tell(answer, engine, Limits(), perf_counter)
    told = perf_counter()
    everything = engine.cost.points == engine.shape[1]
    if not bare_first:
        bare = bare_read(engine, question)
    return read - began, told - read, bare, everything


def bare_read(engine: LocalEngine, question: object) -> float:
    began = perf_counter()
    engine.run(question)
    return perf_counter() - began


def measure(name: str, dataset: Dataset, engine: LocalEngine, warm_up: int, turns: int) -> list[tuple[float, float, float]]:
    """Seconds of ask and read, of tell, and of the bare read, of each turn."""
    chance, lane, found = random.Random(0), begun(name, dataset), []
    for _ in range(warm_up):
        turn(lane, engine, True)
    while len(found) < turns:
        if lane.decision is not None:
            lane = begun(name, dataset)
        read, tell, bare, everything = turn(lane, engine, chance.random() < 0.5)
        if everything:
            found.append((read, tell, bare))
    return found


def spread(values: list[float]) -> str:
    """Median and quartiles."""
    low, _, high = quantiles(values, n=4) if len(values) > 1 else values * 3
    return f"{median(values):.3f} ({low:.3f} .. {high:.3f})"


def report(path: Path, room: Path, names: list[str], warm_up: int, turns: int) -> None:
    dataset = open_source(Source(DataSpec(path, intercept=False)))
    engine = LocalEngine(dataset, scratch=Scratch(room / "scratch"))
    size = f"{dataset.bytes / 1e9:.2f} GB, {dataset.m} features, {dataset.blocks} blocks"
    print(f"{size}, {engine.parallel} threads; {turns} turns after {warm_up} passes\n")
    print("| method | bare read s | tell s | loop / bare (quartiles) | without tell (quartiles) | most |")
    print("|---|---|---|---|---|---|")
    above = []
    for name in names:
        found = measure(name, dataset, engine, warm_up, turns)
        whole = [(read + tell) / bare for read, tell, bare in found]
        reads = [read / bare for read, _, bare in found]
        bare, tell = median(bare for _, _, bare in found), median(tell for _, tell, _ in found)
        most = "" if name in OTHERS else f"{MOST}"
        if most and median(whole) > MOST:
            above.append(f"{name} {median(whole):.3f}, without tell {median(reads):.3f}")
        print(f"| {name} | {bare:.4f} | {tell:.4f} | {spread(whole)} | {spread(reads)} | {most} |", flush=True)
    engine.close()
    print(f"\nabove {MOST}: {'; '.join(above) or 'none'}")


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gb", type=float, default=0.5)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--warm-up", type=int, default=3, help="passes of a method before its turns")
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--dir", default=None, help="keep the dataset here, and use it again")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(dir=options.dir) as made:
        instance = Instance("halfspace", options.features, int(options.gb * 1e9 / 4 / options.features))
        path = Path(options.dir or made) / f"halfspace-{instance.m}-{instance.n}"
        if not path.exists():
            generate(instance, path)
        report(path, Path(made), options.methods.split(","), options.warm_up, options.turns)


if __name__ == "__main__":
    main()
