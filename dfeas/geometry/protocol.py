"""What a run asks of a geometry: the only place that knows points, kernels and cones apart."""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dfeas.data.dataset import Dataset
from dfeas.engine.protocol import Engine
from dfeas.errors import UsageError, near
from dfeas.linalg.points import Floats, working_type
from dfeas.methods.protocol import AnyMethod, Facts
from dfeas.methods.registry import base_name
from dfeas.methods.vector import Expansion
from dfeas.passes.block import Block


class Load(Struct, frozen=True, eq=False):
    """One method on a dataset, for some classes side by side, within its share of the budget of a process."""

    dataset: Dataset
    memory: int  # bytes
    threads: int = 1  # of all processes that read
    classes: int = 1
    margin: float = 1e-3  # until this margin, or |Ax|
    max_passes: float = math.inf

    @property
    def facts(self) -> Facts:
        """What the method may know for each class."""
        return facts_of(self.dataset, self.memory // self.classes)


class LoadCost(Struct, frozen=True):
    """What a load takes, in bytes where nothing else is said, beside processes, blocks and what is kept of these."""

    own: float  # where the method lives
    asked: float  # of questions and answers, in each worker
    passes: float = 1.0  # that are usual, of each class
    most: float | None = None  # by its theorem
    late: float = 0.0  # once all is read, in the place of what is kept of the blocks, wherever points are read
    folds: bool = False  # a worker holds what comes next, and what the method keeps in the end
    sums: int = 0  # of answers, of each thread that reads
    thread: int = 0  # of other things, of each thread that reads
    tiles: int = 0  # from one pass to the next, at most
    reads: float = 1  # of the data by a pass
    per_pass: int = 0  # kept of each pass of a class until the end
    remembered: float = math.inf  # passes of which that is kept, at most
    least: int = 0  # of the share, without which the method cannot work
    enough: bool = True  # whether the share is as much as is wanted
    remark: str = ""  # for a plan


class Seconds(Struct, frozen=True):
    """What a load takes beside reading."""

    first: float = 0.0  # in the first pass
    later: float = 0.0  # in each later one
    solver: float = 0.0  # in memory, of each class


Mend = Callable[[Block, slice, Floats], None]
"""Takes some rows of a block and their scores (r, k), and gives those that float64 cannot tell from zero their true signs."""


class Trained(Struct, frozen=True, eq=False):
    """Directions that a finished run left."""

    run: str  # what messages call it
    intercept: bool
    view: str  # how its data was seen, as its first certificate says
    directions: tuple[Floats | Expansion, ...]  # (m,), or (m+1,) with the intercept last; of each class, or one
    classes: tuple[str, ...] | None  # of a one-vs-rest run
    data: Dataset | None  # that it was on, where it is still there
    names: tuple[str, ...] = ()  # of the classes -1 and +1, where the run tells them itself
    mend: Mend | None = None  # of the scores of proved separators
    fitted: bool = False  # soft margins, whose scores are compared as they are: lengths of separators say nothing

    @property
    def entries(self) -> Floats:
        """Directions (m, k), or (m+1, k), that have entries; separators of classes are of unit length."""
        ys = [y for y in self.directions if not isinstance(y, Expansion)]
        return np.column_stack(ys if self.classes is None or self.fitted else [y / np.linalg.norm(y) for y in ys])


class Rule:
    """How blocks are scored by a direction, or by several, and what their scores say."""

    @abstractmethod
    def score(self, block: Block) -> tuple[NDArray[Any], ...]:
        """Of its points, or cones, in order: what a file gets, then scores, unless they are that, then labels, or codes."""

    @abstractmethod
    def prediction(self, scored: Sequence[NDArray[Any]], dataset: Dataset) -> Any:
        """What ``score`` gave of all blocks of a dataset, and how it compares with labels, where there are any."""


class Geometry:
    """Points, cones, or points in the space of a kernel; what is not said otherwise holds for points. Frozen."""

    place: ClassVar[str] = "on points"  # where methods work
    scored: ClassVar[str] = "points"  # what has a score
    rows: ClassVar[str] = "points"  # what a dataset has n of
    named: ClassVar[str] = "point"  # what the number of a row names
    expands: ClassVar[bool] = False  # whether a direction is a sum over points of the data that it was found on
    weighs_by_block: ClassVar[bool] = False  # whether weights of points are rebuilt block by block, from what was recorded
    labelled: ClassVar[bool] = True  # whether points have labels
    names_points: ClassVar[bool] = True  # whether a small Ax accuses points

    @property
    def text(self) -> str:
        """The kernel, as certificates and checkpoints keep it; empty where there is none."""
        return ""

    @property
    def title(self) -> str:
        """The kernel, for people."""
        return ""

    @property
    def exact(self) -> bool:
        """Whether points as they are stored may settle a verdict, by exact arithmetic."""
        return False

    @property
    def zero_is_origin(self) -> bool:
        """Whether a zero point is the origin of the space, and so by itself a certificate."""
        return True

    @property
    @abstractmethod
    def methods(self) -> Sequence[str]:
        """Names of the methods that work here."""

    def check_method(self, method: str, more: tuple[str, ...] = ()) -> str:
        """The name of a method that works here, or one ``more``. Raises UsageError for others."""
        names = (*more, *self.methods)
        if method not in more and base_name(method) not in self.methods:
            raise UsageError(f"method {method} does not work {self.place}{near(method, names)}; expected {', '.join(names)}")
        return method

    def with_methods(self, own: Mapping[str, AnyMethod]) -> Geometry:
        """The same with methods of the caller, too. Raises UsageError where they cannot work."""
        if own:
            raise UsageError(f"methods {', '.join(own)}: those of your own work on points, not {self.place}")
        return self

    def refuse(self, method: str, dataset: Dataset, shared: bool) -> str:
        """Why a method cannot work on this data, or on reads that are ``shared`` with others of its name; empty if it can."""
        return ""

    def require(self, dataset: Dataset, **asked: object) -> None:
        """Raise UsageError when something is asked that has no meaning here."""
        return

    def describe(self, dataset: Dataset) -> str:
        """How many of what, for people."""
        return f"{dataset.n} points"

    def survey_counts(self, zero: int, positive: int) -> tuple[int, int]:
        """Zero points and points with label +1, from what a survey counts."""
        return zero, positive

    @abstractmethod
    def choose_automatic(self, load: Load, tolerance: float | None) -> tuple[str, str]:
        """The method for a load, of which a margin within this ``tolerance`` of the widest is wanted, and why."""

    @abstractmethod
    def cost(self, method: str, load: Load) -> LoadCost:
        """What a method takes."""

    def measure_values(self, dataset: Dataset, threads: int) -> tuple[float, float]:
        """Seconds of a value of the kernel and its products, and of the products alone."""
        return 0.0, 0.0

    @abstractmethod
    def seconds(self, method: str, load: Load, values: tuple[float, float], tiles: int) -> Seconds:
        """What a method takes where so many bytes of ``tiles`` are kept; ``values`` are the seconds of one."""

    def resolve(self, engine: Engine, dataset: Dataset) -> tuple[Geometry, str]:
        """The same with parameters that a sample of the points tells, and how it told them; empty where there are none."""
        return self, ""

    def brief(self, facts: Facts) -> bool:
        """Whether a solver in memory takes no longer than a few steps of the loop, so that nothing need be told meanwhile."""
        return False

    @abstractmethod
    def maker(self, dataset: Dataset, memory: int, classes: int | None = None) -> Callable[[str], AnyMethod]:
        """Makes methods by name; for one of some classes that share the memory, where these are given."""

    def wrap(self, engine: Engine) -> Engine:
        """The engine that answers what methods ask here."""
        return engine

    @abstractmethod
    def rule(self, trained: Trained, dataset: Dataset) -> Rule:
        """How a run predicts on a dataset. Raises BadInputError when the run was of another kind, or on other classes."""


def facts_of(dataset: Dataset, memory: int, tolerance: float | None = None, radius: float = 1.0, eps: float = 1e-3) -> Facts:
    """What a method may know: a quarter of the budget is for what it keeps, as much for answers, the rest for copies."""
    size = working_type(dataset.dtype).itemsize
    entries = 0.0 if dataset.entries is None else int(dataset.entries.offsets[-1]) / dataset.n + dataset.intercept
    blocks, rows = dataset.blocks, dataset.block_rows
    return Facts(dataset.dimension, dataset.rank, memory // 4, blocks, size, tolerance, radius, entries, eps, block_rows=rows)


def least_seconds(work: Callable[[], object], turns: int = 3) -> float:
    """The least of some turns of the same work."""
    taken = []
    for _ in range(turns):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return min(taken)
