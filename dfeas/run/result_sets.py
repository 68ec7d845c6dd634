"""Results of several tasks that read the data together: methods of a race, or classes, each against the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import quote

from dfeas.data.storage import files
from dfeas.run.results import CLASSES, RACE, Result, Saved, versions
from dfeas.run.soft_margin.result import SoftMarginResult
from dfeas.run.termination import UNDECIDED, Stop

NAME_LENGTH = 80
"""Of a class in the name of its folder."""


@dataclass(frozen=True)
class Race(Saved):
    """How each method ended, and what was read for all of them together."""

    FILE: ClassVar = RACE
    FORMAT: ClassVar = files.RACE

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


@dataclass(frozen=True)
class SoftMarginClasses:
    """One soft margin for each class, and what was read for all of them together."""

    results: dict[str, SoftMarginResult]  # in the order of the classes
    reads: float  # of the data: what several classes asked at once counts once


def folder_of(name: str, place: int) -> str:
    """The name of the folder of a class: its own name, with what a file system may not like written as %XX."""
    text = quote(name, safe=" +,=@")
    return f"class-{text}" if len(text) <= NAME_LENGTH and not text.endswith((" ", ".")) else f"class-{place}"
