"""Points in the space of a kernel: gamma from the data, and the methods that work there.

In a kernel's space y has no entries, only an expansion over points: so what is an m-vector to a linear method is an n-vector
here, with its product with the Gram matrix, as in the papers. They are kept by the driver, and are what a checkpoint keeps. A
product of a combination of vectors whose products are known is known: each step costs one new product.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import sqrt
from typing import Any, ClassVar

import numpy as np
from msgspec import structs

from dfeas.data.dataset import Dataset
from dfeas.data.storage.readers import Cost
from dfeas.engine.protocol import Engine
from dfeas.engine.scan import reads, runs_of
from dfeas.errors import UsageError
from dfeas.geometry.points import rule_of
from dfeas.geometry.protocol import Geometry, Load, LoadCost, Rule, Seconds, Trained, facts_of, least_seconds
from dfeas.kernels.distances import TILE_ROWS
from dfeas.kernels.gram import GramProduct, TileRun
from dfeas.kernels.kernel import TILE_BYTES, KernelDirections, NormalisedKernel, as_floating, kernel_of, usual_gamma
from dfeas.kernels.nearest import Matrix
from dfeas.kernels.working_set import FIRST, KernelWorkingSet, capacity, point_bytes
from dfeas.linalg.blas import one_thread
from dfeas.linalg.points import Array, Floats, working_type
from dfeas.machine import threads_here
from dfeas.methods.protocol import AnyMethod, Evidence, Facts, Wrapping
from dfeas.methods.registry import FOR_KERNELS, base_name
from dfeas.methods.vector import FLOORS, Combination, CombinationSoftmin, Products
from dfeas.passes.block import Columns
from dfeas.passes.select import sample
from dfeas.problem import Kernel
from dfeas.records import replace

SAMPLE = 1000
"""Points from which gamma is found."""
COPIES, NODES, MOST_COPIES = 4.0, 1.5, 40.0
"""Copies of the columns of a product: in question and answer, for each range of pairs, and at most. All measured with
tracemalloc.
"""


class KernelFacts(Facts, frozen=True):
    """Facts of a problem in the space of a kernel."""

    nonnegative: bool = False  # K is never negative
    degree: int = 1  # of a polynomial, which multiplies rounding

    @classmethod
    def of(cls, facts: Facts, kernel: NormalisedKernel) -> KernelFacts:
        return cls(**structs.asdict(facts), nonnegative=kernel.of_distance, degree=max(1, kernel.degree))

    @property
    def row_sums(self) -> bool:
        return self.nonnegative

    def sums(self, count: int) -> int:
        """None: what is asked are combinations of points."""
        return 0

    @property
    def zero(self) -> Combination:
        return Combination.zero(self.n, self.degree * FLOORS[self.itemsize])


@dataclass(frozen=True, slots=True)
class InKernel(Wrapping):
    """A method that asks about combinations, with a kernel."""

    method: AnyMethod
    kernel: NormalisedKernel

    @classmethod
    def of(cls, method: AnyMethod, matrix: Matrix, cap: int) -> InKernel:
        """Of a matrix only the kernel counts, as it keeps no points."""
        return cls(method, matrix.kernel)

    def with_options(self, name: str) -> InKernel:
        return replace(self, method=self.method.with_options(name))

    def init(self, facts: Facts) -> Any:
        return self.method.init(KernelFacts.of(facts, self.kernel))

    def ask(self, state: Any) -> GramProduct:
        question: Any = self.method.ask(state)
        if not isinstance(question, CombinationSoftmin | Products):
            raise UsageError(
                f"method {self.name}: with a kernel a vector is a combination of points: make them of facts.zero and of "
                f"column(answer, i), and ask by dfeas.methods.vector.softmin; it asked by {type(question).__name__}"
            )
        return GramProduct(self.kernel, question.alpha, signed=question.signed)

    def tell(self, state: Any, answer: Floats) -> Any:
        question: Any = self.method.ask(state)
        return self.method.tell(state, question.answer(answer))

    def evidence(self, state: Any) -> Evidence:
        """That of the method, with what is known of its next question."""
        question: Any = self.method.ask(state)
        evidence = self.method.evidence(state)
        bracket = evidence.bracket
        if isinstance(question, CombinationSoftmin):
            for y in question.y:
                bracket = bracket.with_known(y)
        stalled, floor = evidence.stalled, question.floor
        if not stalled and evidence.gordan is not None and bracket.upper <= floor**0.5:
            more = "; points in float64 allow more" if floor >= FLOORS[4] else ""
            stalled = f"|x|_G is as small as rounding lets it be{more}"
        return replace(evidence, bracket=bracket, stalled=stalled)


KERNEL_METHODS: dict[str, Callable[[Matrix, int], AnyMethod]] = {
    "working-set": KernelWorkingSet,
    **{name: partial(InKernel.of, method) for name, method in FOR_KERNELS.items()},
}
"""Methods that work with a kernel: of its Gram matrix of points in memory, at most so many (0: what memory allows)."""


@dataclass(frozen=True)
class KernelSpace(Geometry):
    """The space of a kernel; ``free`` while its gamma is still to be found from the data."""

    place: ClassVar[str] = "with a kernel"
    expands: ClassVar[bool] = True

    kernel: NormalisedKernel
    free: bool = False
    own: Mapping[str, AnyMethod] = field(default_factory=dict, compare=False)  # methods of the caller

    @classmethod
    def of(cls, options: Kernel) -> KernelSpace:
        """Raises UsageError for options that make no sense."""
        return cls(*kernel_of(options.kernel, options.gamma, options.degree, options.coef0))

    @property
    def text(self) -> str:
        return self.kernel.to_text()

    @property
    def exact(self) -> bool:
        return self.kernel.zero_at_zero and self.kernel.degree <= 1  # its unit vectors are those of the points

    @property
    def zero_is_origin(self) -> bool:
        return self.kernel.zero_at_zero

    @property
    def title(self) -> str:
        return f"{self.kernel.name}(gamma found by the run)" if self.free else str(self.kernel)

    @property
    def methods(self) -> Sequence[str]:
        return (*KERNEL_METHODS, *self.own)

    def with_methods(self, own: Mapping[str, AnyMethod]) -> KernelSpace:
        return replace(self, own=own)

    def choose_automatic(self, load: Load, tolerance: float | None) -> tuple[str, str]:
        return "working-set", "auto: it evaluates the kernel for few pairs of points"

    def resolve(self, engine: Engine, dataset: Dataset) -> tuple[KernelSpace, str]:
        """A sample of the points says what gamma is, if nobody does. Raises UsageError for an intercept."""
        if dataset.intercept:
            raise UsageError("a kernel takes no intercept: leave it out; the polynomial kernel has coef0")
        if not self.free:
            return self, f"; {self.kernel}, as asked for"
        # blocks that they are drawn from, at least, where there are so many
        question = sample(dataset.m, SAMPLE, dataset.n, dataset.blocks, min(8, dataset.blocks), 0, unit=False)
        columns: Columns = engine.run(question)
        kernel = replace(self.kernel, gamma=usual_gamma(self.kernel, as_floating(columns.points[:SAMPLE])))
        what = "features' variance times their number" if kernel.name == "polynomial" else "median of the distances"
        squared = " squared" if kernel.name == "rbf" else ""
        how = f"; {kernel}, gamma one over the {what}{squared} of {min(len(columns), SAMPLE)} points"
        return replace(self, kernel=kernel, free=False), how

    def maker(self, dataset: Dataset, memory: int, classes: int | None = None) -> Callable[[str], AnyMethod]:
        matrix, cap = Matrix(self.kernel), 0 if classes is None else capacity(facts_of(dataset, memory), classes)
        return lambda name: self._make(name, matrix, cap)

    def rule(self, trained: Trained, dataset: Dataset) -> Rule:
        return rule_of(trained, dataset, KernelDirections.of(self.kernel, trained))

    def cost(self, method: str, load: Load) -> LoadCost:
        """Working sets keep the points of each class, and the Gram matrix of one at a time."""
        each, whole = self.method(method), facts_of(load.dataset, load.memory)
        most, thread = each.bound(whole, load.margin), scan_bytes(load.dataset, each)
        if each.traits.columns:
            cap, passes = capacity(whole), min(most, 6.0)  # passes of a working set, as a rule
            own, enough = points_bytes(whole, load.classes), 2 * capacity(whole, load.classes) >= cap
            remark = f"an expansion of at most {cap} points" if cap < whole.n else ""
            return LoadCost(own=own, asked=0, passes=passes, most=most, thread=thread, enough=enough, remark=remark)
        return LoadCost(
            own=load.classes * vector_bytes(each, load.facts, load.threads),
            asked=32 * load.dataset.n * load.classes * each.cost(load.facts).products,
            passes=each.passes(whole, load.margin, each.traits.kernel or 1.0),
            most=most,
            thread=thread,
            tiles=all_tile_bytes(load.dataset, self.kernel) if each.traits.weighs_all else 0,
            reads=reads(load.dataset),
            least=load.classes * missing_bytes(each, load.facts, load.threads),
        )

    def measure_values(self, dataset: Dataset, threads: int) -> tuple[float, float]:
        computed, multiplied = value_seconds(dataset, self.kernel)
        return computed / threads, multiplied / threads

    def seconds(self, method: str, load: Load, values: tuple[float, float], tiles: int) -> Seconds:
        each, facts, (computed, multiplied) = self.method(method), facts_of(load.dataset, load.memory), values
        share, count = tiles / all_tile_bytes(load.dataset, self.kernel), count_values(each, facts)
        again = multiplied * share + computed * (1 - share)
        return Seconds(count * computed, count * again, solver_seconds(facts) if each.traits.columns else 0.0)

    def method(self, name: str) -> AnyMethod:
        """One by itself, with a Gram matrix of its own."""
        return self._make(name, Matrix(self.kernel), 0)

    def _make(self, name: str, matrix: Matrix, cap: int) -> AnyMethod:
        if name in self.own:
            return InKernel.of(self.own[name], matrix, cap)
        return KERNEL_METHODS[base_name(name)](matrix, cap).with_options(name)


def all_tile_bytes(dataset: Dataset, kernel: NormalisedKernel) -> int:
    """Of the upper half of the Gram matrix, if products in float32 are safe wherever they may be."""
    single = working_type(dataset.dtype) == np.float32 and kernel.of_products and kernel.name != "exponential"
    return (4 if single else 8) * dataset.n * (dataset.n + TILE_ROWS) // 2


def scan_bytes(dataset: Dataset, method: AnyMethod) -> int:
    """What a thread holds beside blocks: two prepared runs; or kernel values of some points with those of an expansion."""
    longest = max(len(run) for run in runs_of(dataset))
    entries = dataset.entries
    width = dataset.m if entries is None else min(dataset.m, 2 * entries.count // dataset.n + 2)
    prepared = 20  # bytes of a feature of a run: as stored, and for the left and the right of tiles in float64
    pairs = 2 * longest * width * prepared
    scores = 2 * TILE_BYTES + prepared * width * dataset.block_rows
    return scores if method.traits.columns else pairs


def expansion(facts: Facts) -> float:
    """Points of the expansion of a working set, as a rule: what memory holds, where that is less."""
    # points of its expansion, as a rule, over the square root of n
    return min(float(capacity(facts)), 30.0 * sqrt(facts.n))


def count_values(method: AnyMethod, facts: Facts) -> float:
    """Values of the kernel that a product, or a pass of a working set, evaluates as a rule."""
    n = float(facts.n)
    if method.traits.columns:
        return n * expansion(facts)
    return n * n / 2 if method.traits.weighs_all else min(n * n / 2, n * method.cost(facts).products)


def solver_seconds(facts: Facts) -> float:
    """Seconds of the solver in memory, from the speed of a product."""
    trial = np.ones((TILE_ROWS, TILE_ROWS))
    # factorisations of the Gram matrix of the expansion that a working set usually computes
    return 60 * least_seconds(lambda: trial @ trial) / 6 * (expansion(facts) / TILE_ROWS) ** 3


def value_seconds(dataset: Dataset, kernel: NormalisedKernel) -> tuple[float, float]:
    """Seconds for a value of the kernel and its products with one column, from the first points; and for the products."""
    block = next(iter(dataset.read_blocks(range(1), Cost())))
    points = as_floating(block.points[:TILE_ROWS]).copy()
    count = points.shape[0]
    run = TileRun(kernel, 0, points, block.label[:TILE_ROWS].astype(np.float64))
    with one_thread():
        ((left, right),) = run.tiles(run.safe)
        kept = kernel.tile(left, right)
        column = np.ones((count, 1), kept.dtype)
        computing = least_seconds(lambda: _multiply_both(kernel.tile(left, right), column))
        multiplying = least_seconds(lambda: _multiply_both(kept, column))
    return computing / count**2, multiplying / count**2


def _multiply_both(tile: Array, column: Array) -> tuple[Array, Array]:
    return tile @ column, tile.T @ column


def missing_bytes(method: AnyMethod, facts: Facts, threads: int) -> int:
    """Bytes that a method with n-vectors needs, where it does not fit; 0 where it does. More memory may mean more threads."""
    if method.traits.columns or vector_bytes(method, facts, threads) <= 4 * facts.memory:
        return 0
    return vector_bytes(method, facts, max(threads, threads_here()))


def vector_bytes(method: AnyMethod, facts: Facts, threads: int) -> int:
    """Bytes of a method that keeps n-vectors, with so many threads that compute products."""
    ranges = 4 * threads if threads > 1 else 1
    copies = min(COPIES + NODES * ranges, MOST_COPIES)
    # bytes of each point that a method keeps of its own, beside copies of the columns of a product
    return int(facts.n * (40 + 8 * copies * method.cost(facts).products))


def points_bytes(facts: Facts, classes: int = 1) -> int:
    """Bytes of the working sets of some classes that fill the memory they may have, or hold all points."""
    cap = min(facts.n, max(capacity(facts, classes), 2 * FIRST))
    # Gram matrices of the points in memory, at the peak, with their factors
    return cap * (8 * 6 * cap + 2 * classes * point_bytes(facts))
