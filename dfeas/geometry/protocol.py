"""What a run asks of a geometry: the only place that knows points, kernels and cones apart."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dfeas.data.dataset import Dataset
from dfeas.engine.protocol import Engine
from dfeas.linalg.points import Floats, working_type
from dfeas.methods.protocol import AnyMethod, Facts
from dfeas.methods.vector import Expansion
from dfeas.passes.block import Block


@dataclass(frozen=True)
class Load:
    """Methods side by side on a dataset, each for some classes, within a budget of each process."""

    dataset: Dataset
    methods: tuple[str, ...]
    memory: int  # bytes
    workers: int = 0  # processes of a cluster that read
    threads: int = 1  # of each process that reads
    classes: int = 1
    max_passes: float = math.inf  # of each


@dataclass(frozen=True, slots=True)
class Needs:
    """Bytes that a run takes beside processes, blocks and what is kept of these."""

    own: float  # where the methods live
    worker: float  # in each worker, which has questions and answers only
    late: float = 0  # once all is read, in the place of what is kept of the blocks, wherever points are read
    late_worker: float = 0  # the same in a worker
    thread: int = 0  # of each thread that reads
    tiles: int = 0  # from one pass to the next
    reads: float = 1  # of the data by a later pass


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a method will take on the reads of some classes."""

    passes: float  # that are usual
    most: float  # by its theorem
    seconds: float  # usual
    remark: str
    classes: int = 1  # side by side


@dataclass(frozen=True)
class Forecasts:
    """Those of some methods, and fields of a plan that only one geometry has."""

    methods: dict[str, Forecast]
    more: dict[str, Any] = field(default_factory=dict)


Mend = Callable[[Block, slice, Floats], None]
"""Takes some rows of a block and their scores (r, k), and gives those that float64 cannot tell from zero their true signs."""


@dataclass(frozen=True)
class Trained:
    """Directions that a finished run left."""

    run: str  # what messages call it
    intercept: bool
    view: str  # how its data was seen, as its first certificate says
    directions: tuple[Floats | Expansion, ...]  # (m,), or (m+1,) with the intercept last; of each class, or one
    classes: tuple[str, ...] | None  # of a one-vs-rest run
    data: Dataset | None  # that it was on, where it is still there
    names: tuple[str, ...] = ()  # of the classes -1 and +1, where the run tells them itself
    mend: Mend | None = None  # of the scores of proved separators

    @property
    def entries(self) -> Floats:
        """Directions (m, k), or (m+1, k), that have entries; those of classes are of unit length."""
        ys = [y for y in self.directions if not isinstance(y, Expansion)]
        return np.column_stack(ys if self.classes is None else [y / np.linalg.norm(y) for y in ys])


class Rule(ABC):
    """How blocks are scored by a direction, or by several, and what their scores say."""

    @abstractmethod
    def score(self, block: Block) -> tuple[NDArray[Any], ...]:
        """Of its points, or cones, in order: what a file gets, then scores, unless they are that, then labels, or codes."""

    @abstractmethod
    def prediction(self, scored: Sequence[NDArray[Any]], dataset: Dataset) -> Any:
        """What ``score`` gave of all blocks of a dataset, and how it compares with labels, where there are any."""


class Geometry(ABC):
    """Points, cones, or points in the space of a kernel; what is not said otherwise holds for points. Frozen."""

    scored: ClassVar[str] = "points"  # what has a score
    rows: ClassVar[str] = "points"  # what a dataset has n of
    named: ClassVar[str] = "point"  # what the number of a row names
    expands: ClassVar[bool] = False  # whether a direction is a sum over points of the data that it was found on
    exact: ClassVar[bool] = False  # whether a verdict may be settled by exact arithmetic on the points themselves
    weighs_by_block: ClassVar[bool] = False  # whether weights of points are rebuilt block by block, from what was recorded
    labelled: ClassVar[bool] = True  # whether points have labels
    names_points: ClassVar[bool] = True  # whether a small Ax accuses points

    @property
    def text(self) -> str:
        """The kernel, as certificates and checkpoints keep it; empty where there is none."""
        return ""

    @property
    def zero_is_origin(self) -> bool:
        """Whether a zero point is the origin of the space, and so by itself a certificate."""
        return True

    @abstractmethod
    def check_method(self, method: str, more: tuple[str, ...] = ()) -> str:
        """The name of a method that works here, or one ``more``. Raises UsageError for others."""

    def require(self, dataset: Dataset, **asked: object) -> None:
        """Raise UsageError when something is asked that has no meaning here."""
        return

    def require_shared(self, method: str) -> None:
        """Raise UsageError for a method that shares no reads with others of its name."""
        return

    def describe(self, dataset: Dataset) -> str:
        """How many of what, for people."""
        return f"{dataset.n} points"

    def survey_counts(self, zero: int, positive: int) -> tuple[int, int]:
        """Zero points and points with label +1, from what a survey counts."""
        return zero, positive

    @abstractmethod
    def choose(
        self, method: str, dataset: Dataset, memory: int, threads: int = 1, tolerance: float | None = None
    ) -> tuple[str, str]:
        """The method, ``auto`` being one that fits the memory, and why; ``threads`` compute, and
        a margin within this ``tolerance`` of the widest is wanted.

        Raises UsageError for one that does not work here, or not within the memory, with what is needed.
        """

    @abstractmethod
    def candidates(self, method: str | None, dataset: Dataset, memory: int, threads: int, classes: int) -> tuple[str, ...]:
        """Methods that a plan compares, or the one that is asked for. Raises UsageError as ``choose``."""

    def resolve(self, engine: Engine, dataset: Dataset) -> tuple[Geometry, str]:
        """The same with parameters that a sample of the points tells, and how it told them; empty where there are none."""
        return self, ""

    def brief(self, facts: Facts) -> bool:
        """Whether a solver in memory takes no longer than a few steps of the loop, so that nothing need be told meanwhile."""
        return False

    def abreast(self, method: str, classes: int, dataset: Dataset, memory: int) -> int:
        """How many classes can share the memory side by side; the same on any number of threads."""
        return classes

    @abstractmethod
    def maker(self, dataset: Dataset, memory: int, classes: int | None = None) -> Callable[[str], AnyMethod]:
        """Makes methods by name; for one of some classes that share the memory, where these are given."""

    def wrap(self, engine: Engine) -> Engine:
        """The engine that answers what methods ask here."""
        return engine

    def prepare(self, engine: Engine, load: Load, scratch: Path | None) -> None:
        """Let an engine keep what is used from one pass to the next, in a ``scratch`` folder if memory has no room for it."""
        return

    @abstractmethod
    def rule(self, trained: Trained, dataset: Dataset) -> Rule:
        """How a run predicts on a dataset. Raises BadInputError when the run was of another kind, or on other classes."""

    @abstractmethod
    def needs(self, load: Load, margin: float, kept: int) -> Needs:
        """What methods take until a margin, or |Ax|, of ``margin``, where ``kept`` bytes of blocks are kept."""

    @abstractmethod
    def forecasts(self, methods: Sequence[str], load: Load, margin: float, pass_seconds: tuple[float, float]) -> Forecasts:
        """Of each method by itself, for all classes of the load; ``pass_seconds`` are of the first and of a later pass."""


def facts_of(dataset: Dataset, memory: int, tolerance: float | None = None, radius: float = 1.0, eps: float = 1e-3) -> Facts:
    """What a method may know: a quarter of the budget is for what it keeps, as much for answers, the rest for copies."""
    size = working_type(dataset.dtype).itemsize
    entries = 0.0 if dataset.entries is None else int(dataset.entries.offsets[-1]) / dataset.n + dataset.intercept
    return Facts(dataset.dimension, dataset.rank, memory // 4, dataset.blocks, size, tolerance, radius, entries, eps)


def in_turns(together: int, classes: int) -> str:
    """How classes share the memory, where they cannot all at once."""
    return f"{together} of {classes} classes at a time" if together < classes else ""


def least_seconds(work: Callable[[], object], turns: int = 3) -> float:
    """The least of some turns of the same work."""
    taken = []
    for _ in range(turns):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return min(taken)
