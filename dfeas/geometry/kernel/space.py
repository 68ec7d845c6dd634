"""Points in the space of a kernel: gamma from the data, and the methods that work there.

In a kernel's space y has no entries, only an expansion over points: so what is an m-vector to a linear method is an n-vector
here, with its product with the Gram matrix, as in the papers. They are kept by the driver, and are what a checkpoint keeps. A
product of a combination of vectors whose products are known is known: each step costs one new product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, sqrt
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dfeas.data.dataset import Dataset
from dfeas.data.storage.readers import Cost
from dfeas.engine.memory import cache_bytes, thread_bytes
from dfeas.engine.protocol import Engine
from dfeas.engine.scan import reads, runs_of
from dfeas.errors import UsageError, enough, format_bytes, near
from dfeas.geometry.kernel.distances import Array
from dfeas.geometry.kernel.gram import TILE_ROWS, GramProduct, TileRun
from dfeas.geometry.kernel.kernel import TILE_BYTES, Kernel, KernelDirections, as_floating, kernel_of, usual_gamma
from dfeas.geometry.kernel.nearest import Matrix
from dfeas.geometry.kernel.working_set import FIRST, KernelWorkingSet, capacity, point_bytes
from dfeas.geometry.points import rule_of
from dfeas.geometry.protocol import Forecast, Forecasts, Geometry, Load, Needs, Rule, Trained, facts_of, in_turns, least_seconds
from dfeas.linalg.blas import one_thread, processors
from dfeas.linalg.points import Floats, working_type
from dfeas.methods.protocol import AnyMethod, Evidence, Facts, Wrapping
from dfeas.methods.registry import ALL
from dfeas.methods.vector import FLOORS, Combination, CombinationSoftmin
from dfeas.passes.block import Columns
from dfeas.passes.select import sample
from dfeas.problem import Kernel as KernelOptions

SAMPLE = 1000
"""Points from which gamma is found."""
STATE = 40
"""Bytes of each point that a method keeps of its own, beside copies of the columns of a product."""
COPIES, NODES, MOST_COPIES = 4.0, 1.5, 40.0
"""Copies of the columns of a product: in question and answer, for each range of pairs, and at most. All measured with
tracemalloc.
"""
MATRICES = 6
"""Gram matrices of the points in memory, at the peak, with their factors."""
MOST_THREADS = 64
"""More would need no more memory."""
PREPARED = 20
"""Bytes of a feature of a run: as stored, and for the left and the right of tiles in float64."""
FULL_PASSES = 6.0
"""Of a working set, as a rule."""
EXPANSION = 30.0
"""Points of its expansion, as a rule, over the square root of n: benchmarks/kernel_working_set.py."""
SOLVES = 60
"""Factorisations of the Gram matrix of the expansion that a working set usually computes."""
BLOCKS = 8
"""Blocks that they are drawn from, at least, where there are so many."""


@dataclass(frozen=True, slots=True)
class KernelFacts(Facts):
    """Facts of a problem in the space of a kernel."""

    nonnegative: bool = False  # K is never negative

    @classmethod
    def of(cls, facts: Facts, kernel: Kernel) -> KernelFacts:
        known = {name: getattr(facts, name) for name in Facts.__dataclass_fields__}
        return cls(**known, nonnegative=kernel.of_distance)

    @property
    def row_sums(self) -> bool:
        return self.nonnegative

    def sums(self, count: int) -> int:
        """None: what is asked are combinations of points."""
        return 0

    @property
    def zero(self) -> Combination:
        return Combination.zero(self.n, FLOORS[self.itemsize])


@dataclass(frozen=True, slots=True)
class InKernel(Wrapping):
    """A method that asks about combinations, with a kernel."""

    method: AnyMethod
    kernel: Kernel

    @classmethod
    def of(cls, method: AnyMethod, matrix: Matrix, cap: int) -> InKernel:
        """Of a matrix only the kernel counts, as it keeps no points."""
        return cls(method, matrix.kernel)

    def init(self, facts: Facts) -> Any:
        return self.method.init(KernelFacts.of(facts, self.kernel))

    def ask(self, state: Any) -> GramProduct:
        question: Any = self.method.ask(state)
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
            more = "; points in float64 allow more" if floor == FLOORS[4] else ""
            stalled = f"|x|_G is as small as rounding lets it be{more}"
        return replace(evidence, bracket=bracket, stalled=stalled)


KERNEL_METHODS: dict[str, Callable[[Matrix, int], AnyMethod]] = {
    "working-set": KernelWorkingSet,
    **{method.name: partial(InKernel.of, method) for method in ALL if method.traits.kernel is not None},
}
"""Methods that work with a kernel: of its Gram matrix of points in memory, at most so many (0: what memory allows)."""


@dataclass(frozen=True)
class KernelSpace(Geometry):
    """The space of a kernel; ``free`` while its gamma is still to be found from the data."""

    expands: ClassVar[bool] = True

    kernel: Kernel
    free: bool = False

    @classmethod
    def of(cls, options: KernelOptions) -> KernelSpace:
        """Raises UsageError for options that make no sense."""
        assert options.kernel is not None, "of a kernel that is asked for"
        return cls(*kernel_of(options.kernel, options.gamma, options.degree, options.coef0))

    @property
    def text(self) -> str:
        return self.kernel.to_text()

    @property
    def zero_is_origin(self) -> bool:
        return self.kernel.zero_at_zero

    def check_method(self, method: str, more: tuple[str, ...] = ()) -> str:
        if method not in (*more, *KERNEL_METHODS):
            names = (*more, *KERNEL_METHODS)
            raise UsageError(f"method {method} does not work with a kernel{near(method, names)}; expected {', '.join(names)}")
        return method

    def choose(
        self, method: str, dataset: Dataset, memory: int, threads: int = 1, tolerance: float | None = None
    ) -> tuple[str, str]:
        """Of methods that keep n-vectors those whose vectors fit."""
        if method == "auto":
            return "working-set", "chosen for kernels: it evaluates them for few pairs of points"
        self.check_method(method, ("auto",))
        facts = facts_of(dataset, memory)
        need = missing_bytes(self.method(method), facts, threads)
        if need:
            raise UsageError(
                f"{method} needs --memory {enough(need)} for n-vectors of {facts.n} points, and "
                f"{format_bytes(4 * facts.memory)} are for it; working-set keeps some of the points only"
            )
        return method, "asked for"

    def resolve(self, engine: Engine, dataset: Dataset) -> tuple[KernelSpace, str]:
        """A sample of the points says what gamma is, if nobody does. Raises UsageError for an intercept."""
        if dataset.intercept:
            raise UsageError("a kernel takes no intercept: leave it out; the polynomial kernel has coef0")
        if not self.free:
            return self, f"; {self.kernel}, as asked for"
        question = sample(dataset.m, SAMPLE, dataset.n, dataset.blocks, min(BLOCKS, dataset.blocks), 0, unit=False)
        columns: Columns = engine.run(question)
        kernel = replace(self.kernel, gamma=usual_gamma(self.kernel, as_floating(columns.points[:SAMPLE])))
        what = "features' variance times their number" if kernel.name == "polynomial" else "median of the distances"
        squared = " squared" if kernel.name == "rbf" else ""
        how = f"; {kernel}, gamma one over the {what}{squared} of {min(len(columns), SAMPLE)} points"
        return replace(self, kernel=kernel, free=False), how

    def abreast(self, method: str, classes: int, dataset: Dataset, memory: int) -> int:
        """Working sets keep the points of each class, and the Gram matrix of one at a time."""
        whole = facts_of(dataset, memory)
        for count in dict.fromkeys(-(-classes // turns) for turns in range(1, classes + 1)):
            if self.check_method(method, ("auto",)) == "auto" or self.method(method).traits.columns:
                fits = 2 * capacity(whole, count) >= capacity(whole)
            else:
                fits = not missing_bytes(self.method(method), facts_of(dataset, memory // count), MOST_THREADS)
            if fits:
                return count
        return 1

    def maker(self, dataset: Dataset, memory: int, classes: int | None = None) -> Callable[[str], AnyMethod]:
        matrix, cap = Matrix(self.kernel), 0 if classes is None else capacity(facts_of(dataset, memory), classes)
        return lambda name: KERNEL_METHODS[name](matrix, cap)

    def candidates(self, method: str | None, dataset: Dataset, memory: int, threads: int, classes: int) -> tuple[str, ...]:
        return tuple(KERNEL_METHODS) if method is None else (self.choose(method, dataset, memory, threads)[0],)

    def prepare(self, engine: Engine, load: Load, scratch: Path | None) -> None:
        engine.keep_pairs(self._tile_bytes(load), scratch)

    def rule(self, trained: Trained, dataset: Dataset) -> Rule:
        return rule_of(trained, dataset, KernelDirections.of(self.kernel, trained))

    def needs(self, load: Load, margin: float, kept: int) -> Needs:
        own, worker = self._own_bytes(load)
        products = any(not self.method(name).traits.columns for name in load.methods)
        thread, tiles = scan_bytes(load, [self.method(name) for name in load.methods]), self._tile_bytes(load)
        return Needs(own, worker, thread=thread, tiles=tiles, reads=reads(load.dataset) if products else 1)

    def forecasts(self, methods: Sequence[str], load: Load, margin: float, pass_seconds: tuple[float, float]) -> Forecasts:
        (first, later), facts, forecasts = pass_seconds, facts_of(load.dataset, load.memory), {}
        computed, multiplied = (seconds / load.threads for seconds in value_seconds(load.dataset, self.kernel))
        for name in methods:
            method, together = self.method(name), self.abreast(name, load.classes, load.dataset, load.memory)
            rounds, columns = ceil(load.classes / together), method.traits.columns
            most = rounds * method.bound(facts, margin)
            products = rounds * self._usual(method, facts, margin)
            reading = first + (products - 1) * later if columns else products * reads(load.dataset) * later
            thinking = load.classes * solver_seconds(facts) if columns else 0.0
            share = 0.0
            if method.traits.weighs_all:
                tiles = self._tile_bytes(replace(load, methods=(name,), classes=together))
                share = tiles / all_tile_bytes(load.dataset, self.kernel)
            again = multiplied * share + computed * (1 - share)
            seconds = reading + values(method, facts) * (computed + (products - 1) * again) + thinking
            remark = "; ".join(
                text for text in (in_turns(together, load.classes), _remark(method, facts, load.threads)) if text
            )
            forecasts[name] = Forecast(products, most, seconds, remark, together)
        return Forecasts(forecasts, {"kernel": str(self.kernel), "value_seconds": computed})

    def method(self, name: str) -> AnyMethod:
        """One by itself, with a Gram matrix of its own."""
        return KERNEL_METHODS[name](Matrix(self.kernel), 0)

    def _usual(self, method: AnyMethod, facts: Facts, margin: float) -> float:
        """Products, or passes of a working set, that are usual."""
        if method.traits.columns:
            return min(method.bound(facts, margin), FULL_PASSES)
        return method.passes(facts, margin, method.traits.kernel or 1.0)

    def _own_bytes(self, load: Load) -> tuple[int, int]:
        """What methods and their questions take: where they live, and in each worker, which has questions and answers only."""
        memory, total = load.memory // len(load.methods), load.threads * max(1, load.workers)
        facts = facts_of(load.dataset, memory)
        share = facts_of(load.dataset, memory // load.classes)  # of each class, where methods keep n-vectors
        own = columns = 0
        for method in [self.method(name) for name in load.methods]:
            if method.traits.columns:
                own += points_bytes(facts, load.classes)
            else:
                own += load.classes * vector_bytes(method, share, total)
                columns += load.classes * method.cost(share).products
        return own, min(own, 8 * load.dataset.n * columns * 4)

    def _tile_bytes(self, load: Load) -> int:
        """What the budget of a process that reads leaves for tiles, from one product to the next; at most all of them."""
        dataset, methods = load.dataset, [self.method(name) for name in load.methods]
        if not any(method.traits.weighs_all for method in methods):
            return 0
        own = self._own_bytes(load)[load.workers > 0]
        scanning = load.threads * (thread_bytes(dataset) + scan_bytes(load, methods))
        left = load.memory - own - scanning - cache_bytes(dataset, load.memory, load.threads, worker=load.workers > 0)
        return max(0, min(left, all_tile_bytes(dataset, self.kernel)))


def all_tile_bytes(dataset: Dataset, kernel: Kernel) -> int:
    """Of the upper half of the Gram matrix, if products in float32 are safe wherever they may be."""
    single = working_type(dataset.dtype) == np.float32 and kernel.of_products and kernel.name != "exponential"
    return (4 if single else 8) * dataset.n * (dataset.n + TILE_ROWS) // 2


def scan_bytes(load: Load, methods: Sequence[AnyMethod]) -> int:
    """What a thread holds beside blocks: two prepared runs; or kernel values of some points with those of an expansion."""
    dataset = load.dataset
    longest = max(len(run) for run in runs_of(dataset))
    entries = dataset.entries
    width = dataset.m if entries is None else min(dataset.m, 2 * entries.count // dataset.n + 2)
    pairs = 2 * longest * width * PREPARED
    scores = 2 * TILE_BYTES + PREPARED * width * dataset.block_rows
    return max(scores if method.traits.columns else pairs for method in methods)


def expansion(facts: Facts) -> float:
    """Points of the expansion of a working set, as a rule: what memory holds, where that is less."""
    return min(float(capacity(facts)), EXPANSION * sqrt(facts.n))


def values(method: AnyMethod, facts: Facts) -> float:
    """Values of the kernel that a product, or a pass of a working set, evaluates as a rule."""
    n = float(facts.n)
    if method.traits.columns:
        return n * expansion(facts)
    return n * n / 2 if method.traits.weighs_all else min(n * n / 2, n * method.cost(facts).products)


def _remark(method: AnyMethod, facts: Facts, threads: int) -> str:
    if method.traits.columns:
        return f"an expansion of at most {capacity(facts)} points" if capacity(facts) < facts.n else ""
    need = missing_bytes(method, facts, threads)
    return f"does not fit: {enough(need)} of memory are needed" if need else ""


def solver_seconds(facts: Facts) -> float:
    """Seconds of the solver in memory, from the speed of a product."""
    trial = np.ones((TILE_ROWS, TILE_ROWS))
    return SOLVES * least_seconds(lambda: trial @ trial) / 6 * (expansion(facts) / TILE_ROWS) ** 3


def value_seconds(dataset: Dataset, kernel: Kernel) -> tuple[float, float]:
    """Seconds of a thread for one value of the kernel and its products with one column, from the first points; and for the
    products alone.
    """
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
    return vector_bytes(method, facts, max(threads, processors()))


def vector_bytes(method: AnyMethod, facts: Facts, threads: int) -> int:
    """Bytes of a method that keeps n-vectors, with so many threads that compute products."""
    ranges = 4 * threads if threads > 1 else 1
    copies = min(COPIES + NODES * ranges, MOST_COPIES)
    return int(facts.n * (STATE + 8 * copies * method.cost(facts).products))


def points_bytes(facts: Facts, classes: int = 1) -> int:
    """Bytes of the working sets of some classes that fill the memory they may have, or hold all points."""
    cap = min(facts.n, max(capacity(facts, classes), 2 * FIRST))
    return cap * (8 * MATRICES * cap + 2 * classes * point_bytes(facts))
