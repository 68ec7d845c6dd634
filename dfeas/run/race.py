"""``dfeas.race``: several methods on the same reads of the data, until the first has a verdict or each has ended."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from dfeas.data.storage import formats
from dfeas.data.storage.places import local
from dfeas.engine.memory import DEFAULT_MEMORY
from dfeas.errors import UsageError
from dfeas.geometry.cones.choice import CONE_METHODS, choose_cone_method, require_plain
from dfeas.geometry.kernel.kernel import Function
from dfeas.problem import choose, facts_of, known, request
from dfeas.run.checkpoint.job import EVERY, Checkpoint, Job, keeping, where
from dfeas.run.cost.projection import within_memory
from dfeas.run.driver import never
from dfeas.run.execute import ran
from dfeas.run.kernel_choice import AskedKernel, asked_kernel, choose_kernel_method, kernelled, known_kernel_method
from dfeas.run.progress import RunOptions, Scoreboard, lane_sinks, report_cost, report_start
from dfeas.run.results import RACE, Result, Saved
from dfeas.run.session import Setting, open_data, require_free, run_folder, set_up
from dfeas.run.solve import projected, result_of
from dfeas.run.termination import RESUMABLE
from dfeas.run.transform import asked_transform, with_transform

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True)
class Race(Saved):
    """How each method ended, and what was read for all of them together."""

    FILE: ClassVar = RACE
    FORMAT: ClassVar = formats.RACE

    results: dict[str, Result]  # in the order of the methods
    reads: float  # of the data: what several methods asked at once counts once

    @property
    def first(self) -> Result | None:
        """The result that reached what was asked for in the fewest seconds; None when there is none."""
        reached = [result for result in self.results.values() if result.stopped == "verdict"]
        return min(reached, key=lambda result: result.seconds, default=None)

    def to_json(self) -> dict[str, Any]:
        first = self.first
        results = {name: result.to_json() for name, result in self.results.items()}
        return {"first": None if first is None else first.method, "reads": self.reads, "results": results}


def race(
    X: Any,
    labels: Any = None,
    *,
    methods: Sequence[str],
    to_the_end: bool = False,
    eps: float = 1e-3,
    margin_tolerance: float | None = None,
    intercept: bool = False,
    positive: str | None = None,
    also: Sequence[str | Path] = (),
    mask: Any = None,
    scale: str | None = None,
    center: bool = False,
    normalize: bool = True,
    kernel: str | Function | None = None,
    gamma: float | None = None,
    degree: int | None = None,
    coef0: float | None = None,
    max_passes: int | None = None,
    time_limit: float | None = None,
    memory: str | int = DEFAULT_MEMORY,
    out: str | Path | None = None,
    cache_dir: str | Path | None = None,
    scratch: str | Path | None = None,
    checkpoint_every: float = EVERY,
    client: Client | None = None,
    progress: bool = False,
    stop: Callable[[], bool] = never,
) -> Race:
    """Run several methods side by side: their questions ride on the same reads of the data.

    Parameters
    ----------
    methods : at least two names of ``dfeas.METHODS``, or with a kernel of ``dfeas.KERNEL_METHODS``, each once.
    to_the_end : go on until each has a verdict of its own or reaches a limit; otherwise the first verdict ends all.
    max_passes : for each method.
    memory : budget in bytes, per process, for all of them together.
    out : folder with a run folder for each method, as ``dfeas.solve`` writes it, and race.json.

    The others are those of ``dfeas.solve``, which also says what is raised. Samples of working sets are of the same blocks, and
    share a read. Points in order and n-vectors are read on reads of their own. With a kernel all products with the Gram matrix
    are one.
    """
    function = asked_kernel(kernel, gamma, degree, coef0, scratch)
    names = [known(method, tuple(CONE_METHODS)) if kernel is None else known_kernel_method(method) for method in methods]
    if len(names) < 2 or len(set(names)) < len(names):
        raise UsageError(f"methods {','.join(names)}: expected at least two, each once")
    asked = request(eps, margin_tolerance, max_passes, time_limit, memory)
    seen_as = asked_transform(scale, center, normalize)
    if seen_as and out is not None:  # its numbers take reads
        require_free(local(out, "--out"), RACE)
    if seen_as and kernel is not None:
        raise UsageError("scale, center and normalize are for the points themselves: leave them out with a kernel")
    data = open_data(X, labels, positive, intercept, also=also, mask=mask, cache_dir=cache_dir, cones=True)
    require_plain(data[1], kernel=kernel, transform=seen_as)
    data = with_transform(data, seen_as, asked.memory, client, progress)
    with ExitStack() as stack:
        setting = set_up(stack, data, asked.memory, client, out, function, scratch)
        facts, text = facts_of(setting.dataset, asked.memory // len(names)), ""
        if setting.dataset.cones is not None:
            share = asked.memory // len(names)
            whys = {name: f"{choose_cone_method(name, setting.dataset, share)[1]}, in a race of {len(names)}" for name in names}
        elif kernel is None:
            whys = {name: f"{choose(known(name), facts)[1]}, in a race of {len(names)}" for name in names}
            asked, said = within_memory(asked, names, facts)
            whys = {name: why + said for name, why in whys.items()}
        else:
            threads = setting.threads * max(1, setting.workers)
            whys = {name: choose_kernel_method(name, facts, threads)[1] for name in names}
            found = kernelled(setting.engine, setting.dataset, AskedKernel(kernel, gamma, degree, coef0))
            text = found.kernel.to_text()
            whys = {name: f"{why}, in a race of {len(names)}; {found.why}" for name, why in whys.items()}
        folder = None if out is None else stack.enter_context(run_folder(local(out, "--out"), RACE))
        job = Job(
            asked,
            tuple(names),
            tuple(whys.values()),
            True,
            to_the_end,
            positive=positive,
            intercept=intercept,
            kernel=text,
            **where(setting),
        )
        return raced(setting, job, folder, RunOptions(checkpoint_every, progress, stop))


def raced(setting: Setting, job: Job, folder: Path | None, how: RunOptions, earlier: Checkpoint | None = None) -> Race:
    """Carry out the job of a race, from its beginning or from a checkpoint."""
    with ExitStack() as stack:
        board = Scoreboard(sys.stderr) if how.progress and sys.stderr is not None else None
        folders = {name: None if folder is None else folder / name for name in job.methods}
        sinks = lane_sinks(stack, setting, folders, board, earlier)
        keeper = stack.enter_context(keeping(setting, job, sinks, folder, how.checkpoint_every, earlier))
        whys = dict(zip(job.methods, job.whys, strict=True))
        for name, why in whys.items():
            report_start(sinks[name], setting.dataset, name, why, earlier)
        expected = projected(setting, job)
        if board is not None:
            board.say(str(expected))
        for each in sinks.values():
            report_cost(each, expected)
        done = ran(setting, job, sinks, keeper, earlier, how.stop)
        results = {}
        for name, outcome in done.outcomes.items():
            result = result_of(setting, job, outcome, whys[name], done.survey_reads + outcome.reads)
            place = folders[name]
            results[name] = result if place is None else result.save(place)
        found = Race(results, done.survey_reads + done.reads)
        if folder is not None:
            found.save(folder)
        keeper.finished = not {result.stopped for result in results.values()} & set(RESUMABLE)
        return found
