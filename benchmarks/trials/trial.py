"""A trial: what is done to a run on a cluster, what is expected, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from subprocess import CalledProcessError
from typing import Any

from benchmarks.trials.stage import Left, Stage, TooLateError

Codes = tuple[int, ...]
Play = Callable[[Stage], None]

KEPT_MB = 1.0
TRIALS: dict[str, Trial] = {}


@dataclass(frozen=True)
class Trial:
    """The first line of the docstring of ``play`` says what happens."""

    play: Play
    codes: Codes = (3,)
    also: Codes = ()  # as good
    same_bits: bool = True
    lost: float = 15.0  # most seconds beside a calm run
    says: str = ""  # a pattern that a line of a command has; {w1} is the address of that worker
    workers: int | None = 3  # in the end
    stays: int = 0  # tasks, each with a key, that are meant to: a submitted run is there for who asks for it later
    needs: frozenset[str] = frozenset()  # of namespaces, uv, faketime, store

    @property
    def about(self) -> str:
        return (self.play.__doc__ or "").strip().splitlines()[0].rstrip(".")


def trial(**expected: Any) -> Callable[[Play], Play]:
    """Register a function as a trial by its name."""

    def register(play: Play) -> Play:
        needs = frozenset(expected.pop("needs", "").split())
        TRIALS[play.__name__.replace("_", "-")] = Trial(play, needs=needs, **expected)
        return play

    return register


@dataclass(frozen=True)
class Outcome:
    """Of a trial; ``wrong`` says what was not as expected, ``skipped`` why it was not tried."""

    trial: str
    about: str
    codes: tuple[int | str, ...] = ()
    expected: Codes = ()
    same_bits: bool | None = None
    seconds: float = 0.0
    lost: float = 0.0
    most: float = 0.0
    left: Left | None = None
    plugins: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    message: str = ""
    notes: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    skipped: str = ""

    @property
    def ok(self) -> bool:
        return not self.wrong

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "ok": self.ok}

    def row(self) -> str:
        """A line of the table."""
        if self.skipped:
            return f"| {self.trial} | {self.about} | skipped: {self.skipped} | | | | | |"
        codes = ", ".join(map(str, self.codes))
        bits = {True: "yes", False: "no", None: ""}[self.same_bits]
        judged = "ok" if self.ok else f"NOT: {'; '.join(self.wrong)}"
        said = "; ".join((*self.notes, *([self.message] if self.message else [])))
        cells = (self.trial, self.about, judged, codes, f"{self.seconds:.0f}", f"{self.lost:+.0f}", bits, self.remains())
        return f"| {' | '.join(cells)} | {said[:200].replace('|', '/')} |"

    def remains(self) -> str:
        left = self.left
        if left is None:
            return ""
        parts = (
            f"{left.tasks} tasks" if left.tasks else "",
            f"{left.keys} keys" if left.keys else "",
            f"{left.kept_mb:.0f} MiB kept" if left.kept_mb else "",
            " ".join(self.plugins),
            f"{len(self.files)} files" if self.files else "",
        )
        return ", ".join(filter(None, parts)) or "nothing"


HEAD = """| trial | what happens | as expected | codes | seconds | lost | same bits | left | said |
|---|---|---|---|---|---|---|---|---|"""


def perform(name: str, trial: Trial, stage: Stage, calm_seconds: float, calm_bits: str) -> Outcome:
    """Play a trial and judge it. The stage is left as it is, with its processes."""
    wrong: list[str] = []
    try:
        trial.play(stage)
        stage.wait()
    except (TooLateError, CalledProcessError, AssertionError, OSError, ValueError, LookupError, StopIteration) as error:
        wrong.append(f"{type(error).__name__}: {error}")
        stage.wait()
    wrong.extend(stage.wrong)
    codes = tuple(command.code for command in stage.commands)
    if codes not in (trial.codes, trial.also):
        wrong.append(f"exit {codes}, expected {trial.codes}")
    found = [command.bits for command in stage.commands if command.bits and command.code in (0, 3)]
    same = all(bits == calm_bits for bits in found) if found and calm_bits else None
    if trial.same_bits and same is False:
        wrong.append(f"other bits: {', '.join(found)} for {calm_bits}")
    if {0, 3} & set(trial.codes) and not found:
        wrong.append("no result")
    seconds = elapsed(stage)
    lost = seconds - calm_seconds if calm_seconds else 0.0
    if lost > trial.lost:
        wrong.append(f"lost {lost:.0f} s, at most {trial.lost:g} expected")
    message = stage.last_words()
    if trial.says:
        message = stage.said(trial.says) or message
        if not stage.said(trial.says):
            wrong.append(f"nothing said like {trial.says!r}")
    message = message.replace(str(stage.folder.parent), "DIR")
    left, plugins = remaining(stage, trial, wrong)
    return Outcome(
        name,
        trial.about,
        codes,
        trial.codes,
        same,
        seconds,
        lost,
        trial.lost,
        left,
        plugins,
        tuple(stage.files()),
        message,
        tuple(stage.notes),
        tuple(wrong),
    )


def elapsed(stage: Stage) -> float:
    """Seconds in which a command ran: those of commands side by side count once."""
    total, end = 0.0, 0.0
    for command in sorted(stage.commands, key=lambda each: each.began):
        ended = command.began + command.seconds
        total += max(0.0, ended - max(command.began, end))
        end = max(end, ended)
    return total


def remaining(stage: Stage, trial: Trial, wrong: list[str]) -> tuple[Left | None, tuple[str, ...]]:
    """What a trial left on the cluster, and plugins that were not there before."""
    try:
        left = stage.left(trial.stays)
    except (TimeoutError, OSError) as error:
        wrong.append(f"the cluster does not answer afterwards: {type(error).__name__}: {error}")
        return None, ()
    if left.tasks > trial.stays or left.keys > trial.stays:
        wrong.append(f"{left.tasks} tasks and {left.keys} keys are left")
    if left.kept_mb > KEPT_MB:
        wrong.append(f"{left.kept_mb:.0f} MiB of blocks are kept")
    if trial.workers is not None and left.workers != trial.workers:
        wrong.append(f"{left.workers} workers are left, expected {trial.workers}")
    plugins = tuple(sorted(set(left.plugins) - set(stage.before.plugins)))
    return left, plugins
