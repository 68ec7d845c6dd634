"""An engine whose unit of work is a range of blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, TypeVar

from dfeas.data.dataset import Dataset
from dfeas.data.storage.readers import Cost
from dfeas.data.storage.scratch import Scratch
from dfeas.engine.protocol import Observer
from dfeas.engine.scan import join, pairs_of, parts, scan_range
from dfeas.linalg.blas import beat
from dfeas.passes.protocol import Fold, OnPairs, OnVectors, Ordered, Question

R = TypeVar("R")


class RangeEngine(ABC):
    """What both engines do alike with a question."""

    dataset: Dataset
    scratch: Scratch | None
    cost: Cost
    observer: Observer | None = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.dataset.dimension, self.dataset.n

    def run(self, question: Question) -> Any:
        began = perf_counter()
        if isinstance(question, Ordered):
            answer, self.cost = self._fold(question.fold)
            self._compare(None)
        elif isinstance(question, OnPairs):
            scanned = self._scan_pairs(question, len(pairs_of(self.dataset, question)))
            answer, self.cost = join(question, [(nodes, cost) for nodes, cost, _ in scanned])
            self._compare([block for _, _, blocks in scanned for block in blocks])
        else:
            chosen = parts(question)[1]
            count = None if chosen is None else len(chosen)
            answer, self.cost = self._scan(question, count)
            if not isinstance(question, OnVectors) or question.points:
                self._compare(chosen)
        if isinstance(question, OnVectors) and question.keeps is not None and self.scratch is not None:
            self.scratch.keep(question.keeps)
        self.cost.wall_seconds = perf_counter() - began
        return answer

    def watch(self, observer: Observer) -> None:
        self.observer = observer

    def observe(self, done: int, blocks: int) -> None:
        """Say how far a read is, now and then, which may end there (``beat``)."""
        beat()
        if self.observer is not None:
            self.observer(done, blocks, blocks * self.dataset.block_bytes if blocks <= self.dataset.blocks else 0)

    @abstractmethod
    def map(self, function: Callable[..., R], *args: Any, count: int | None = None) -> list[R]:
        """As that of an engine."""

    def _scan(self, question: Question, count: int | None) -> tuple[Any, Cost]:
        return join(question, self.map(scan_range, question, self.scratch, count=count))

    @abstractmethod
    def _fold(self, fold: Fold[Any, Any]) -> tuple[Any, Cost]:
        """The answer of a fold over all blocks, and what it took."""

    @abstractmethod
    def _scan_pairs(self, question: OnPairs, pairs: int) -> list[tuple[Any, Cost, list[int]]]:
        """What ``scan_pairs`` gives for ranges of so many pairs, in order."""

    @abstractmethod
    def _compare(self, blocks: Sequence[int] | None) -> None:
        """Raise CorruptDataError when other processes did not read what the survey saw in these blocks; None: in all."""
