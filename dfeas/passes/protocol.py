"""What an engine knows of a question: a read of all blocks, of some, in order, or of n-vectors beside them; alone, together
with others, or asked of one class against the rest.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from operator import add
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import astuple

from dfeas.linalg.points import Array, Floats
from dfeas.passes.block import Block

P = TypeVar("P")
R = TypeVar("R", bound=Struct)
A = TypeVar("A", covariant=True)
C = TypeVar("C")


class Pass(Protocol[P, A]):
    """A question to all blocks. Picklable, small; ``merge`` is associative and commutative up to rounding."""

    def scan(self, block: Block) -> P:
        """Answer for one block. Must not keep views of the block."""

    def merge(self, first: P, second: P) -> P:
        """Answer for the union of two disjoint sets of blocks."""

    def finish(self, partial: P) -> A:
        """Turn the partial of all blocks into the answer."""


AnyPass = Pass[Any, Any]


def scans_runs(pass_: Any) -> bool:
    """Whether it has ``scan_run(blocks)``, what merging the answers for consecutive blocks gives: less is done for each."""
    return hasattr(pass_, "scan_run")


def absorb_partial(pass_: Any, first: Any, second: Any) -> Any:
    """``merge`` of partials that nobody else has: a pass with long ones may have ``absorb``, which works in their memory."""
    return getattr(pass_, "absorb", pass_.merge)(first, second)


def width(pass_: Any) -> int:
    """How many sums over all columns, each as long as one, a partial of a pass holds."""
    return int(getattr(pass_, "width", 0))


def sums_bytes(dimension: int, blocks: int, count: int) -> int:
    """Bytes of ``count`` such sums of a thread: of a block, of a merge, and of waiting blocks, one a level of the tree."""
    return 8 * dimension * count * (4 + blocks.bit_length())


class Plain(Generic[P]):
    """A pass whose answer is the partial of all blocks."""

    __slots__ = ()

    def finish(self, partial: P) -> P:
        return partial


class SumPass(Plain[R]):
    """One whose partials are records of sums."""

    __slots__ = ()

    def merge(self, first: R, second: R) -> R:
        return add_fields(first, second)


def add_fields(first: R, second: R) -> R:
    """Two records of sums, added field by field."""
    return type(first)(*map(add, astuple(first), astuple(second)))


class ScoringPass:
    """A pass that begins with the scores of all points under one ``y``: of several the products are one product of matrices."""

    __slots__ = ()

    @abstractmethod
    def scored_by(self) -> Floats:
        """The y (dimension,) of these scores."""

    @abstractmethod
    def scan_scored(self, block: Block, fast: Array) -> Any:
        """``scan`` from fast scores (b,), which are right up to the rounding of a product in their precision."""


Blocks = tuple[int, ...] | range
"""Numbers of some blocks; of consecutive ones a range, which is as small of a million of them."""


class Partial(Struct, frozen=True):
    """A pass that reads some blocks only. It counts as its share of a read."""

    pass_: AnyPass
    blocks: Blocks  # ascending, at least one


class Fold(Protocol[C, A]):
    """A question whose answer depends on the order of the points. Picklable; so is the carry, which is small."""

    def start(self) -> C:
        """The carry before the first block."""

    def step(self, carry: C, block: Block) -> C:
        """The carry after one more block; the one given is not changed. Must not keep views of the block."""

    def finish(self, carry: C) -> A:
        """Turn the last carry into the answer."""


class Ordered(Struct, frozen=True):
    """A fold over all blocks, one after the other; the engine reads ahead."""

    fold: Fold[Any, Any]


class VectorPass(Protocol[P, A]):
    """A pass that also reads and writes n-vectors, a block of rows at a time. Written vectors are new ones."""

    def scan(self, rows: range, block: Block | None, vectors: tuple[Floats, ...]) -> tuple[P, tuple[Floats, ...]]:
        """Answer for some rows, and their entries of the vectors to write. ``block`` is None if no points are read."""

    def merge(self, first: P, second: P) -> P: ...

    def finish(self, partial: P) -> A: ...


class OnVectors(Struct, frozen=True):
    """A vector pass over scratch storage, with or without a read of the points. What is written is never read by the same pass,
    and written once, so that lost work can be done again.
    """

    pass_: VectorPass[Any, Any]
    reads: tuple[str, ...]  # names of the n-vectors that ``scan`` is given
    writes: tuple[str, ...]  # names of those that it gives
    points: bool  # whether the points are read: a pass that reads vectors only costs no read of the data
    keeps: tuple[str, ...] | None  # all others may be forgotten when this pass is done; None: nothing may
    blocks: tuple[int, ...] | None = None  # those that are gone through, ascending; None: all


class Batchable:
    """A question that shares what it computes with others of its ``batch_key``; the engine is asked once for all of them."""

    __slots__ = ()

    @property
    @abstractmethod
    def batch_key(self) -> Hashable:
        """Questions with equal keys can be asked as one."""

    @abstractmethod
    def batch(self, questions: Sequence[Any]) -> Any:
        """Questions with this key, itself among them, as one; its answer is a tuple in their order."""

    @abstractmethod
    def of_class(self, code: int) -> Any:
        """The same asked of one class, whose label is ``code``, against the rest."""


class OnPairs(Batchable):
    """A question to all pairs of points, asked of two runs of rows at a time; every two runs, and each with itself, meet once.
    Picklable. The runs, their order and the tree in which partials are merged follow from the shape of the data only.
    """

    __slots__ = ()

    @abstractmethod
    def touches(self, rows: range) -> bool:
        """Whether pairs with these rows count; two runs that do not are not read."""

    @abstractmethod
    def prepare(self, block: Block) -> Any:
        """What is held of a run while it meets others. The block has memory of its own, so that views may be kept."""

    @abstractmethod
    def scan(self, left: Any, right: Any, tile_cache: Any = None) -> Any:
        """Answer for two prepared runs, the left one first in the data; or for one and itself. The tile cache of an engine has
        what earlier questions put there; it changes no bit of the answer.
        """

    @abstractmethod
    def merge(self, first: Any, second: Any) -> Any:
        """The same as ``Pass`` has it: of two disjoint sets of pairs."""

    @abstractmethod
    def finish(self, partial: Any) -> Any:
        """The same as ``Pass`` has it: from the partial of all pairs."""


Exclusive = Partial | Ordered | OnVectors | OnPairs
"""Questions that read in a way of their own; nothing else rides with them, but pairs of one batch key ride together."""
Question = AnyPass | Exclusive
"""What an engine executes."""


class Together(Struct, frozen=True):
    """Answers each of its passes from the same read; the answer is a tuple in their order."""

    passes: tuple[AnyPass, ...]

    @property
    def width(self) -> int:
        return sum(map(width, self.passes))

    def scan(self, block: Block) -> tuple[Any, ...]:
        return tuple(p.scan(block) for p in self.passes)

    def merge(self, first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(p.merge(a, b) for p, a, b in zip(self.passes, first, second, strict=True))

    def absorb(self, first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(absorb_partial(p, a, b) for p, a, b in zip(self.passes, first, second, strict=True))

    def finish(self, partial: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(p.finish(a) for p, a in zip(self.passes, partial, strict=True))


class OfClass(Struct, frozen=True):
    """A pass as it is asked of one class, whose label is ``code``, against the rest."""

    pass_: AnyPass
    code: int

    @property
    def parts(self) -> tuple[AnyPass, ...]:
        return self.pass_.passes if isinstance(self.pass_, Together) else (self.pass_,)

    @property
    def width(self) -> int:
        return width(self.pass_)

    def scan(self, block: Block) -> Any:
        return self.pass_.scan(block.against(self.code))

    def merge(self, first: Any, second: Any) -> Any:
        return self.pass_.merge(first, second)

    def absorb(self, first: Any, second: Any) -> Any:
        return absorb_partial(self.pass_, first, second)

    def finish(self, partial: Any) -> Any:
        return self.pass_.finish(partial)


class OfClasses(Together, frozen=True):
    """Answers the passes of several classes from one read; the answer is a tuple in their order. A class only changes signs. So
    the products of all selections are one product of matrices, and only what is chosen from the scores is done class by class.
    """

    passes: tuple[OfClass, ...]

    def scan(self, block: Block) -> tuple[Any, ...]:
        """All scores by one product, the rest class by class."""
        ys = [part.scored_by() for each in self.passes for part in each.parts if isinstance(part, ScoringPass)]
        if len(ys) < 2 or not block.size:
            return tuple(each.scan(block) for each in self.passes)
        scores, partials = iter(block.unsigned_scores(ys)), []
        for each in self.passes:
            signed = block.against(each.code)
            parts = tuple(
                part.scan_scored(signed, next(scores) * signed.label) if isinstance(part, ScoringPass) else part.scan(signed)
                for part in each.parts
            )
            partials.append(parts if isinstance(each.pass_, Together) else parts[0])
        return tuple(partials)


def of_class(question: Question, code: int) -> Question:
    """A question as it is asked of one class. Raises TypeError for one that reads points in order, or n-vectors."""
    if isinstance(question, Partial):
        return Partial(OfClass(question.pass_, code), question.blocks)
    if isinstance(question, Batchable):
        signed: Question = question.of_class(code)
        return signed
    if isinstance(question, Exclusive):
        raise TypeError("one class against the rest asks passes over blocks")
    return OfClass(question, code)


def together(passes: Sequence[AnyPass]) -> AnyPass:
    """At least two passes on one read."""
    of_classes = tuple(each for each in passes if isinstance(each, OfClass))
    return OfClasses(of_classes) if len(of_classes) == len(passes) else Together(tuple(passes))
