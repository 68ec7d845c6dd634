"""The command: which kinds, how long, on how many processes, and a table at the end."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import click

from tests.fuzzing.arrays import Arrays
from tests.fuzzing.case import FAILED, Case, Kind
from tests.fuzzing.edited import Edited
from tests.fuzzing.flows import Flows
from tests.fuzzing.forged import Forged
from tests.fuzzing.hard import Hard
from tests.fuzzing.hostile import Hostile
from tests.fuzzing.hull import HullKind
from tests.fuzzing.inequalities import InequalitiesKind
from tests.fuzzing.kernel import KernelKind
from tests.fuzzing.kernel_proofs import KernelProof
from tests.fuzzing.kills import Kills
from tests.fuzzing.likelihoods import Likelihood
from tests.fuzzing.linear import Linear
from tests.fuzzing.loop import Tally, fuzz, judged, table
from tests.fuzzing.separation import Separation, Weightless
from tests.fuzzing.soft import Soft

KINDS: dict[str, Callable[[], Kind]] = {
    "linear": Linear,
    "separation": Separation,
    "weightless": Weightless,
    "hull": HullKind,
    "kernel": KernelKind,
    "kernel-proof": KernelProof,
    "forged": Forged,
    "edited": Edited,
    "hostile": Hostile,
    "soft": Soft,
    "hard": Hard,
    "kills": Kills,
    "arrays": Arrays,
    "flows": Flows,
    "inequalities": InequalitiesKind,
    **{name: partial(Likelihood, name) for name in ("cox", "conditional", "ordinal")},
}
"""What makes a kind, by its name: each process makes its own."""


def of_one(job: int, names: Sequence[str], seconds: float, seed: int, out: Path, jobs: int) -> dict[str, Tally]:
    """What one process found."""
    return fuzz([KINDS[name]() for name in names], seconds, seed, out, job=job, jobs=jobs, say=partial(click.echo, err=True))


def of_all(names: Sequence[str], seconds: float, seed: int, out: Path, jobs: int) -> dict[str, Tally]:
    """What all processes found together."""
    work = partial(of_one, names=names, seconds=seconds, seed=seed, out=out, jobs=jobs)
    if jobs == 1:
        return work(0)
    total = {name: Tally() for name in names}
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for tallies in pool.imap_unordered(work, range(jobs)):
            for name, tally in tallies.items():
                total[name].add(tally)
    return total


def replayed(path: Path) -> bool:
    """Whether a case that was kept fails again; what comes of it is printed."""
    case = Case.load(path)
    kind = KINDS[case.kind]()
    found = judged(kind, case)
    click.echo(f"{case.kind} {case.seed} ({case.family}): {found.word}{': ' if found.text else ''}{found.text}")
    return found.word in FAILED


@click.command()
@click.option("--seconds", default=60.0, show_default=True, help="How long, but for the last case of each kind.")
@click.option("--seed", default=0, show_default=True, help="The same seed draws the same cases.")
@click.option("--kinds", default=",".join(KINDS), show_default=True, metavar="A,B,..", help="What to ask.")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1), help="Processes side by side.")
@click.option(
    "--out", default="fuzz-failures", show_default=True, type=click.Path(path_type=Path), help="Where failures are kept."
)
@click.option(
    "--replay", default=None, type=click.Path(path_type=Path, exists=True), help="Ask a kept case again, nothing else."
)
def command(seconds: float, seed: int, kinds: str, jobs: int, out: Path, replay: Path | None) -> None:
    """Ask dfeas questions whose answers are known, until the time is over. Exit code 1 when an answer fails."""
    if replay is not None:
        sys.exit(int(replayed(replay)))
    names = [name.strip() for name in kinds.split(",") if name.strip()]
    strange = [name for name in names if name not in KINDS]
    if strange or not names:
        raise click.BadParameter(f"{', '.join(strange) or 'none'}: expected {', '.join(KINDS)}", param_hint="--kinds")
    began = time.monotonic()
    click.echo(f"seed {seed}, {jobs} x {seconds:g} s", err=True)
    tallies = of_all(names, seconds, seed, out, jobs)
    click.echo(table(tallies))
    failed = sum(tally.failed for tally in tallies.values())
    cases = sum(sum(tally.words.values()) for tally in tallies.values())
    click.echo(f"{cases} cases in {time.monotonic() - began:.0f} s, {failed} failed{f', kept in {out}' if failed else ''}")
    sys.exit(int(failed > 0))


def main() -> None:
    command()
