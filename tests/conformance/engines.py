"""The laws of ``dfeas.engine.protocol.Engine``: the bits of one walk through the blocks, what it costs, and what is raised."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dfeas.data.dataset import Dataset
from dfeas.data.generate.points import Instance, generate
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.readers import Buffers, Cost
from dfeas.data.storage.scratch import Scratch
from dfeas.engine.local import LocalEngine
from dfeas.engine.scan import Tree, pairs_of, scan_pairs
from dfeas.errors import CorruptDataError
from dfeas.kernels.gram import GramProduct
from dfeas.kernels.kernel import kernel_of
from dfeas.passes.hinge import Hinge, SquaredHinge
from dfeas.passes.protocol import OnVectors, Ordered, Partial, Together
from dfeas.passes.select import Select, sample
from dfeas.passes.slacks import SampleCosts
from dfeas.passes.softmin import Softmin
from dfeas.passes.steps import Online
from dfeas.passes.survey import Gram, Histogram, Moments, Survey
from dfeas.passes.vectors import Positive, Recover, Shift
from tests.bits import digest, iterates

N, M, BLOCK_ROWS = 5000, 12, 300
BYTES = N * M * 4
RNG = np.random.default_rng(0)
Y = RNG.standard_normal((M, 3))
COSTS = SampleCosts(np.array([0.5, 1.0, 2.0]), np.full(3, -1))
PASSES = {
    "softmin": Softmin(Y, np.array([0.0, 0.05, 1.0])),
    "softmin that is large": Softmin(RNG.standard_normal((M, 800)), np.ones(800)),
    "select": Select(Y[:, 0], -0.1, 50, 10),
    "survey": Survey(),
    "moments": Moments(),
    "histogram": Histogram(Y[:, 0]),
    "gram": Gram(),
    "hinge": Hinge(Y, COSTS, 2, 40, 20),
    "squared hinge": SquaredHinge(Y, COSTS, 2, matrix=True),
    "recover": Recover(Y[:, 1:], np.array([0.05, 1.0]), np.array([60.0, 9.0]), np.array([0.4, 0.6]), 1e-9),
    "together": Together((Softmin(Y[:, :1], np.zeros(1)), Survey())),
}
BLOCKS = (1, 4, 5, 16)  # the last one is short
PARTIAL = {"some blocks": Partial(PASSES["softmin"], BLOCKS), "a sample": sample(M, 200, N, 17, 3, 0)}
PAIRS = GramProduct(kernel_of("rbf", 0.1)[0], RNG.standard_normal((N, 2)))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    """5,000 points of 12 features in 17 blocks."""
    path = tmp_path_factory.mktemp("engines") / "data"
    generate(Instance("halfspace", M, N, block_rows=BLOCK_ROWS), path)
    return Source(DataSpec(path, intercept=False))


def walked(question: Any, source: Source) -> Any:
    """The answer from one block after the other, in this thread, by no engine."""
    dataset = open_source(source)
    if isinstance(question, Ordered):
        carry = question.fold.start()
        for block in dataset.read_blocks(range(dataset.blocks), Cost()):
            carry = question.fold.step(carry, block)
        return question.fold.finish(carry)
    if isinstance(question, GramProduct):
        tree = Tree(question)
        for node in scan_pairs(dataset, 0, len(pairs_of(dataset, question)), question)[0]:
            tree.push(*node)
        return tree.finish()
    pass_, blocks = (question.pass_, question.blocks) if isinstance(question, Partial) else (question, range(dataset.blocks))
    tree = Tree(pass_)
    for position, index in enumerate(blocks):
        tree.push(0, position, pass_.scan(dataset.read(index, Buffers(), Cost())))
    return tree.finish()


def ranges_of(dataset: Dataset, first: int, stop: int, factor: int, stopped: Any = None) -> list[int]:
    return [factor * index for index in range(first, stop)]


def refusing(dataset: Dataset, first: int, stop: int, stopped: Any = None) -> None:
    if first <= 5 < stop:
        raise CorruptDataError("block 5 is not to be had")


class EngineTests(ABC):
    """Subclass for each engine, and each way to set one up."""

    keeps_blocks = False
    """Whether a second pass may read less than the data."""
    methods: tuple[str, ...] = ("working-set", "mirror-prox", "perceptron", "online-perceptron", "ispvn")
    """Whose first steps are compared: one of each kind of question, since others ask the same."""
    points_alone = False
    """Whether pairs of points, and vectors beside them, are refused."""

    @abstractmethod
    def make(self, source: Source, scratch: Scratch | None) -> Any:
        """An engine over the source."""

    @pytest.fixture
    def start(self) -> Iterator[Callable[..., Any]]:
        """Makes engines, and closes them."""
        with ExitStack() as stack:
            yield lambda source, scratch=None: stack.enter_context(closing(self.make(source, scratch)))

    def test_passes_have_the_bits_of_one_walk_through_the_blocks(self, start: Callable[..., Any], source: Source) -> None:
        engine = start(source)
        assert engine.shape == (M, N)
        pairs = {} if self.points_alone else {"pairs": PAIRS}
        for name, question in {**PASSES, **PARTIAL, "a fold": Ordered(Online(np.ones(M))), **pairs}.items():
            assert digest(engine.run(question)) == digest(walked(question, source)), name
        assert engine.parallel >= 1

    def test_methods_take_the_same_steps(self, start: Callable[..., Any], source: Source) -> None:
        assert iterates(start(source), self.methods) == iterates(LocalEngine(open_source(source), 1), self.methods)

    def test_pairs_that_are_kept_change_no_bit(self, start: Callable[..., Any], source: Source, tmp_path: Path) -> None:
        expected = digest(walked(PAIRS, source))
        for budget, scratch in ((1 << 30, None), (0, tmp_path), (40 << 20, None)):
            engine = start(source)
            engine.keep_pairs(budget, scratch)
            assert {digest(engine.run(PAIRS)) for _ in range(2)} == {expected}

    def test_ranges_cover_the_blocks_in_order(self, start: Callable[..., Any], source: Source) -> None:
        engine = start(source)
        for count in (None, 1, 5, *([] if self.points_alone else [100])):
            ranges = engine.map(ranges_of, 3, count=count)
            assert [value for range_ in ranges for value in range_] == [3 * i for i in range(17 if count is None else count)]

    def test_who_watches_is_told_how_far_a_read_is(self, start: Callable[..., Any], source: Source) -> None:
        engine, told = start(source), list[tuple[int, int, int]]()
        engine.watch(lambda *seen: told.append(seen))
        partial = PARTIAL["some blocks"]
        for question, blocks in ((PASSES["softmin"], 17), (partial, len(partial.blocks)), (Ordered(Online(np.ones(M))), 17)):
            told.clear()
            assert digest(engine.run(question)) == digest(walked(question, source))
            done = [each for each, _, _ in told]
            assert done[0] == 0
            assert done == sorted(done)
            assert done[-1] <= blocks
            assert {each[1:] for each in told} == {(blocks, blocks * BLOCK_ROWS * M * 4)}

    def test_every_byte_is_counted_once(self, start: Callable[..., Any], source: Source) -> None:
        engine, question = start(source), PASSES["softmin"]
        engine.run(question)
        assert (engine.cost.points, engine.cost.bytes_read, engine.cost.cached_bytes) == (N, BYTES, 0)
        assert min(engine.cost.wall_seconds, engine.cost.read_seconds, engine.cost.scan_seconds) > 0
        engine.run(question)
        assert engine.cost.bytes_read + engine.cost.cached_bytes == BYTES
        assert self.keeps_blocks or not engine.cost.cached_bytes
        some = min(N, BLOCK_ROWS * 17) - BLOCK_ROWS * 13
        engine.run(PARTIAL["some blocks"])
        assert engine.cost.points == some
        assert engine.cost.bytes_read + engine.cost.cached_bytes == some * M * 4
        engine.run(Ordered(Online(np.ones(M))))
        assert engine.cost.points == N
        assert engine.cost.bytes_read + engine.cost.cached_bytes == BYTES
        if not self.points_alone:
            engine.run(PAIRS)
            assert engine.cost.points >= N

    def test_vectors_are_written_read_and_forgotten(self, start: Callable[..., Any], source: Source, tmp_path: Path) -> None:
        scratch, y = Scratch(tmp_path / "scratch"), np.arange(float(M))
        engine = start(source, scratch)
        answer = engine.run(OnVectors(Shift(y, 2.0, 0.5), (), ("v",), points=True, keeps=("v",)))
        assert engine.cost.points == N
        v = scratch.read("v", range(N))
        assert v.max() == answer.greatest
        scores = np.concatenate([block.exact_scores(np.arange(block.size), y) for block in self.blocks(source)])
        assert np.allclose(v, 0.5 - scores / 2, atol=1e-12)
        engine.run(OnVectors(Shift(y, 1.0, 0.5), ("v",), ("w",), points=True, keeps=("w",)))
        assert not scratch.has("v")
        w = scratch.read("w", range(N)).copy()
        assert np.allclose(w, v - scores, atol=1e-12)
        positive = engine.run(OnVectors(Positive(0.0), ("w",), (), points=False, keeps=None))
        assert engine.cost.points == engine.cost.bytes_read == 0
        assert np.array_equal(positive.index(), np.flatnonzero(w > 0))
        assert np.array_equal(positive.weight(), w[w > 0])
        with pytest.raises(CorruptDataError, match="all workers must see this folder"):
            engine.run(OnVectors(Positive(0.0), ("v",), (), points=False, keeps=None))

    def blocks(self, source: Source) -> list[Any]:
        dataset = open_source(source)
        return [dataset.read(index, Buffers(), Cost()) for index in range(dataset.blocks)]

    def test_what_a_part_raises_is_raised(self, start: Callable[..., Any], source: Source) -> None:
        engine = start(source)
        with pytest.raises(CorruptDataError, match="block 5 is not to be had"):
            engine.map(refusing)
        assert digest(engine.run(PASSES["survey"])) == digest(walked(PASSES["survey"], source))  # and it goes on

    def test_a_damaged_chunk_is_corrupt_data(self, start: Callable[..., Any], tmp_path: Path) -> None:
        generate(Instance("gaussian", 10, 5000, block_rows=300), tmp_path / "data")
        engine = start(Source(DataSpec(tmp_path / "data", intercept=False)))
        chunk = tmp_path / "data" / "X" / "c.3.0"
        content = chunk.read_bytes()
        chunk.write_bytes(content[:40] + bytes([content[40] ^ 1]) + content[41:])
        for question in (Softmin(np.ones((10, 1)), np.ones(1)), Ordered(Online(np.ones(10)))):
            with pytest.raises(CorruptDataError, match=r"chunk 3 of X|X: block 3 "):
                engine.run(question)

    def test_closing_twice_is_no_harm(self, start: Callable[..., Any], source: Source) -> None:
        engine = start(source)
        engine.run(PASSES["survey"])
        engine.close()
