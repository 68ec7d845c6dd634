"""The loop: draws cases until the time is over, judges each under an alarm, keeps those that fail."""

from __future__ import annotations

import faulthandler
import math
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, TracebackType

from tests.fuzzing.case import FAILED, Case, Judgement, Kind, Word

SEEDS = 1_000_000
"""Cases that a kind may draw from one seed of a run."""
PATIENCE = 6
"""Times the seconds of a processor that a case may take by the clock."""
DEAD = 600
"""Seconds without a case done, after which the process ends with a traceback: code that does not come back to Python."""
COLUMNS = (Word.REFUSED, Word.OPEN, Word.WRONG, Word.UNPROVED, Word.UNDECIDED, Word.CRASH, Word.HANG)


class HungError(BaseException):
    """The alarm of a case; no error of the code under test, so nothing there catches it."""


@dataclass
class Tally:
    """What came of the cases of one kind."""

    words: dict[Word, int] = field(default_factory=lambda: dict.fromkeys(Word, 0))
    seconds: float = 0.0

    def add(self, other: Tally) -> None:
        self.seconds += other.seconds
        for word, count in other.words.items():
            self.words[word] += count

    @property
    def failed(self) -> int:
        return sum(self.words[word] for word in FAILED)


class _Escaped:
    """What leaves a block of code: an exception is a crash, the alarm a hang."""

    found: Judgement | None = None

    def __enter__(self) -> _Escaped:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> bool:
        if error is None or isinstance(error, KeyboardInterrupt):
            return False
        word = Word.HANG if isinstance(error, HungError) else Word.CRASH
        frames = traceback.extract_tb(where)
        ours = [frame for frame in frames if "dfeas" in Path(frame.filename).parts] or frames
        place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "?"
        self.found = Judgement(word, f"{type(error).__name__} at {place}: {error}")
        return True


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raises HungError after so many seconds of this processor, or ``PATIENCE`` times as many by the clock: others may want it,
    too. And again each second, should somebody have swallowed it.
    """
    began, used = time.monotonic(), time.process_time()

    def ring(number: int, frame: FrameType | None) -> None:
        if time.process_time() - used > seconds or time.monotonic() - began > PATIENCE * seconds:
            raise HungError(f"not done in {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, min(seconds, 1.0), 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def judged(kind: Kind, case: Case) -> Judgement:
    """What comes of a case. Warnings say nothing here."""
    with _Escaped() as escaped, warnings.catch_warnings(), _alarm(kind.seconds):
        warnings.simplefilter("ignore")
        return kind.judge(case)
    assert escaped.found is not None
    return escaped.found


def drawn(kind: Kind, seed: int) -> Case | Judgement:
    """A case, or what escaped while it was drawn: kinds that forge ask dfeas for something to forge."""
    with _Escaped() as escaped, warnings.catch_warnings(), _alarm(kind.seconds):
        warnings.simplefilter("ignore")
        return kind.draw(seed)
    assert escaped.found is not None
    return escaped.found


def fuzz(
    kinds: Sequence[Kind],
    seconds: float,
    seed: int,
    out: Path,
    *,
    job: int = 0,
    jobs: int = 1,
    say: Callable[[str], object],
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, Tally]:
    """Judge cases until the time is over: always of the kind that had least of it, for its weight.

    Of several jobs each draws its own cases; the case of a kind and a number is the same whoever draws it.
    """
    tallies = {kind.name: Tally() for kind in kinds}
    number = dict.fromkeys(tallies, job)
    began, armed = clock(), -math.inf
    while clock() - began < seconds:
        if clock() - armed > DEAD / 10:  # a thread waits for it, which costs milliseconds
            faulthandler.dump_traceback_later(DEAD, exit=True, file=sys.__stderr__ or sys.stderr)
            armed = clock()
        kind = min(kinds, key=lambda each: tallies[each.name].seconds / each.weight)
        tally, start, this = tallies[kind.name], clock(), seed * SEEDS + number[kind.name]
        case = drawn(kind, this)
        found = case if isinstance(case, Judgement) else judged(kind, case)
        number[kind.name] += jobs
        tally.words[found.word] += 1
        tally.seconds += clock() - start
        if found.word in FAILED:
            family = "-" if isinstance(case, Judgement) else case.family
            path = out / f"{kind.name}-{this}-{found.word}.npz"
            if isinstance(case, Case):
                out.mkdir(parents=True, exist_ok=True)
                case.save(path, found)
            say(f"{path}: {family}: {found.word}: {' '.join(found.text.split())}")
    faulthandler.cancel_dump_traceback_later()
    return tallies


def table(tallies: dict[str, Tally]) -> str:
    """All kinds, one a line."""
    rows = [["kind", "cases", *COLUMNS, "seconds"]]
    for name, tally in tallies.items():
        counts = [str(tally.words[word]) for word in COLUMNS]
        rows.append([name, str(sum(tally.words.values())), *counts, f"{tally.seconds:.1f}"])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = (
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    )
    return "\n".join(lines)
