"""What is kept of every run: a line of JSON each, after a line that says what the sitting ran on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.papers.instances import Group

ASIDE = "aside"
"""Of a run that goes on in a later sitting."""
TIMEOUT = "TO"
"""Of a run that reached a limit of the paper."""


Key = tuple[Group, str, int]
"""Instances, method, seed."""


@dataclass(frozen=True)
class Run:
    """One method on one instance, as far as it came."""

    part: str
    m: int
    n: int
    kappa: int
    seed: int
    method: str
    ending: str  # a verdict, TO, aside, or why it failed
    iterations: int
    passes: float
    processor: float  # seconds, of all sittings
    lower: float
    upper: float

    @property
    def group(self) -> Group:
        return Group(self.part, self.m, self.n, self.kappa)

    @property
    def key(self) -> Key:
        return self.group, self.method, self.seed

    @property
    def ended(self) -> bool:
        return self.ending != ASIDE

    @property
    def solved(self) -> bool:
        return "feasible" in self.ending


class Record:
    """The file of the runs; a line that a kill cut short is left out."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sittings: list[dict[str, str]] = []
        self.runs: dict[Key, Run] = {}  # the last of each
        for line in self._lines():
            if "sitting" in line:
                self.sittings.append(line)
            else:
                self._keep(Run(**line))

    def _lines(self) -> Iterator[dict[str, Any]]:
        text = self.path.read_text() if self.path.exists() else ""
        for line in text.splitlines(keepends=True):
            if line.endswith("}\n"):
                yield json.loads(line)
        if text and not text.endswith("\n"):
            self._write("\n")

    def _write(self, text: str) -> None:
        with self.path.open("a") as file:
            file.write(text)

    def _keep(self, run: Run) -> None:
        self.runs[run.key] = run

    def begin(self, sitting: dict[str, str]) -> None:
        """Say what the runs that follow ran on."""
        self.sittings.append(sitting)
        self._write(json.dumps(sitting) + "\n")

    def add(self, run: Run) -> None:
        self._keep(run)
        self._write(json.dumps(asdict(run)) + "\n")

    def of(self, group: Group, method: str) -> list[Run]:
        return [run for key, run in self.runs.items() if key[:2] == (group, method)]
