"""``dfeas.solve(one_vs_rest=True)``: each class against the rest, on the same reads of the data.

Classes differ in signs only, so a block is read once for all that are still open, and their questions are one product; with a
kernel its values are those of all of them. Each class has a run folder of its own, which is one like any other. Where memory
cannot hold what all of them keep, some wait.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from dfeas.data.dataset import Dataset
from dfeas.data.source import Source
from dfeas.data.storage.places import local
from dfeas.problem import Request, abreast, choose, classes_to_share, facts_of
from dfeas.run.checkpoint.job import Checkpoint, Job, keeping, where
from dfeas.run.cost.projection import within_memory
from dfeas.run.execute import ran
from dfeas.run.kernel_choice import AskedKernel, choose_kernel_method, kernelled, kernels_abreast
from dfeas.run.progress import RunOptions, Scoreboard, lane_sinks, report_cost, report_start
from dfeas.run.results import CLASSES, Result, Saved, versions
from dfeas.run.session import Setting, run_folder, set_up
from dfeas.run.solve import projected, result_of
from dfeas.run.termination import RESUMABLE, UNDECIDED, Stop

if TYPE_CHECKING:
    from distributed import Client

NAME_LENGTH = 80
"""Of a class in the name of its folder."""


@dataclass(frozen=True)
class OneVsRest(Saved):
    """How each class ended, and what was read for all of them together."""

    results: dict[str, Result]  # in the order of the classes
    reads: float  # of the data: what several classes asked at once counts once
    seconds: float
    fingerprint: str  # of the data with all its classes

    @property
    def success(self) -> bool:
        """Whether every class has a verdict that was verified."""
        return all(result.success for result in self.results.values())

    @property
    def stopped(self) -> Stop:
        """Why the run ended: ``Stop.VERDICT``, or the reason of the first class that has none."""
        return next((result.stopped for result in self.results.values() if result.stopped != Stop.VERDICT), Stop.VERDICT)

    def to_json(self) -> dict[str, Any]:
        first = next(iter(self.results.values()))
        shared = ("m", "n", "intercept", "eps", "margin_tolerance", "method", "why")
        decided = sum(result.verdict != UNDECIDED for result in self.results.values())
        place = None if first.data is None else {**first.data, "positive": None, "many": True}
        return {
            "verdict": f"{decided} of {len(self.results)} classes decided",
            "stopped": self.stopped,
            "message": self.stopped.sentence,
            **{name: getattr(first, name) for name in shared},
            "reads": self.reads,
            "bytes_read": round(self.reads * first.bytes_read / first.reads) if first.reads else 0,
            "seconds": self.seconds,
            "fingerprint": self.fingerprint,
            "versions": versions(),
            "data": place,
            CLASSES: {
                name: {"folder": folder_of(name, place), **result.to_json()}
                for place, (name, result) in enumerate(self.results.items())
            },
        }


def folder_of(name: str, place: int) -> str:
    """The name of the folder of a class: its own name, with what a file system may not like written as %XX."""
    text = quote(name, safe=" +,=@")
    return f"class-{text}" if len(text) <= NAME_LENGTH and not text.endswith((" ", ".")) else f"class-{place}"


def one_vs_rest(
    data: tuple[Source | None, Dataset],
    asked: Request,
    how: RunOptions,
    *,
    method: str,
    out: str | Path | None,
    client: Client | None,
    kernel: AskedKernel | None = None,
    scratch: str | Path | None = None,
) -> OneVsRest:
    """Solve each class of opened data against the rest; arguments and errors are those of ``dfeas.solve``."""
    classes = classes_to_share(data[1], method if kernel is None else None)
    with ExitStack() as stack:
        function = None if kernel is None else kernel.function
        setting = set_up(stack, data, asked.memory, client, out, function, scratch)
        if kernel is None:
            count, text = abreast(method, len(classes), setting.dataset, asked.memory), ""
            facts = facts_of(setting.dataset, asked.memory // count)
            name, why = choose(method, facts)
            asked, said = within_memory(asked, (name,), facts)
            why += said
        else:
            count = kernels_abreast(method, len(classes), setting.dataset, asked.memory)
            threads = setting.threads * max(1, setting.workers)
            name, why = choose_kernel_method(method, facts_of(setting.dataset, asked.memory // count), threads)
            space = kernelled(setting.engine, setting.dataset, kernel)
            text, why = space.kernel.to_text(), f"{why}; {space.why}"
        waiting = f", {count} at a time for want of memory" if count < len(classes) else ""
        folder = None if out is None else stack.enter_context(run_folder(local(out, "--out")))
        job = Job(
            asked,
            (name,),
            (f"{why}, {len(classes)} classes on the same reads{waiting}",),
            race=False,
            to_the_end=True,
            positive=None,
            intercept=data[1].intercept,
            classes=classes,
            kernel=text,
            **where(setting),
        )
        return classes_solved(setting, job, folder, how)


def classes_solved(
    setting: Setting, job: Job, folder: Path | None, how: RunOptions, earlier: Checkpoint | None = None
) -> OneVsRest:
    """Carry out the job, from its beginning or from a checkpoint."""
    (method,), (why,) = job.methods, job.whys
    folders = {name: None if folder is None else folder / folder_of(name, place) for place, name in enumerate(job.classes)}
    with ExitStack() as stack:
        board = Scoreboard(sys.stderr, "class") if how.progress and sys.stderr is not None else None
        sinks = lane_sinks(stack, setting, folders, board, earlier, how.more)
        keeper = stack.enter_context(keeping(setting, job, sinks, folder, how.checkpoint_every, earlier))
        for name, own in sinks.items():
            report_start(own, setting.dataset, method, f"{name} against the rest: {why}", earlier, name)
        expected = projected(setting, job)
        if board is not None:
            board.say(f"{setting.dataset.where}: {len(job.classes)} classes, {method}\n{expected}")
        for own in sinks.values():
            report_cost(own, expected)
        done = ran(setting, job, sinks, keeper, earlier, how.stop)
        results = {}
        for name, outcome in done.outcomes.items():
            source = None if setting.source is None else replace(setting.source, positive=name)
            seen = replace(setting, dataset=setting.dataset.against_rest(name), source=source)
            result = result_of(seen, job, outcome, why, done.survey_reads + outcome.reads)
            place = folders[name]
            results[name] = result if place is None else result.save(place)
        seconds = max(result.seconds for result in results.values())
        found = OneVsRest(results, done.survey_reads + done.reads, seconds, setting.dataset.fingerprint)
        if folder is not None:
            found.save(folder)
        keeper.finished = not {result.stopped for result in results.values()} & set(RESUMABLE)
        return found
