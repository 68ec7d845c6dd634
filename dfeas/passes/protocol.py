"""What an engine knows of a question: a read of all blocks, of some, in order, or of n-vectors beside them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dfeas.linalg.points import Floats
from dfeas.passes.block import Block

P = TypeVar("P")
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


class Plain(Generic[P]):
    """A pass whose answer is the partial of all blocks."""

    __slots__ = ()

    def finish(self, partial: P) -> P:
        return partial


class Sums(Plain[P]):
    """One whose partials are dataclasses of sums."""

    __slots__ = ()

    def merge(self, first: P, second: P) -> P:
        names = type(first).__dataclass_fields__  # type: ignore[attr-defined]
        return type(first)(*(getattr(first, name) + getattr(second, name) for name in names))


@dataclass(frozen=True, slots=True)
class Partial:
    """A pass that reads some blocks only. It counts as its share of a read."""

    pass_: AnyPass
    blocks: tuple[int, ...]  # ascending, at least one


class Fold(Protocol[C, A]):
    """A question whose answer depends on the order of the points. Picklable; so is the carry, which is small."""

    def start(self) -> C:
        """The carry before the first block."""

    def step(self, carry: C, block: Block) -> C:
        """The carry after one more block; the one given is not changed. Must not keep views of the block."""

    def finish(self, carry: C) -> A:
        """Turn the last carry into the answer."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """A fold over all blocks, one after the other; the engine reads ahead."""

    fold: Fold[Any, Any]


class VectorPass(Protocol[P, A]):
    """A pass that also reads and writes n-vectors, a block of rows at a time. Written vectors are new ones."""

    def scan(self, rows: range, block: Block | None, vectors: tuple[Floats, ...]) -> tuple[P, tuple[Floats, ...]]:
        """Answer for some rows, and their entries of the vectors to write. ``block`` is None if no points are read."""

    def merge(self, first: P, second: P) -> P: ...

    def finish(self, partial: P) -> A: ...


@dataclass(frozen=True, slots=True)
class OnVectors:
    """A vector pass over scratch storage, with or without a read of the points.

    What is written is never read by the same pass, and written once, so that lost work can be done again.
    """

    pass_: VectorPass[Any, Any]
    reads: tuple[str, ...]  # names of the n-vectors that ``scan`` is given
    writes: tuple[str, ...]  # names of those that it gives
    points: bool  # whether the points are read: a pass that reads vectors only costs no read of the data
    keeps: tuple[str, ...] | None  # all others may be forgotten when this pass is done; None: nothing may


class Spills(Protocol):
    """Keeps arrays on the disk."""

    def write(self, name: str, arrays: Iterable[NDArray[Any]], size: int) -> bool:
        """Keep arrays one behind the other, ``size`` bytes in all; whether there is room for them."""

    def read(self, name: str, offset: int, shape: tuple[int, int], dtype: np.dtype[Any]) -> NDArray[Any]:
        """One of the arrays, from a byte on."""


class Keeps(Protocol):
    """Keeps what a question can use again, as long as there is room."""

    @property
    def spill(self) -> Spills | None:
        """For arrays that memory has no room for."""

    def get(self, key: Hashable) -> Any:
        """The value, or None."""

    def take(self, size: int) -> bool:
        """Whether there is room for so many bytes more; they are taken then."""

    def put(self, key: Hashable, value: Any) -> None:
        """Keep a value whose bytes were taken, or that is in ``spill``."""


class Batchable(ABC):
    """A question that shares what it computes with others of its ``batch_key``; the engine is asked once for all of them."""

    __slots__ = ()

    @property
    @abstractmethod
    def batch_key(self) -> Hashable:
        """Questions with equal keys can be asked as one."""

    @abstractmethod
    def joined(self, questions: Sequence[Any]) -> Any:
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
    def scan(self, left: Any, right: Any, tile_cache: Keeps | None = None) -> Any:
        """Answer for two prepared runs, the left one first in the data; or for one and itself.

        The tile cache is that of the data, and has what earlier questions put there; it changes no bit of the answer.
        """

    @abstractmethod
    def merge(self, first: Any, second: Any) -> Any:
        """As for a pass."""

    @abstractmethod
    def finish(self, partial: Any) -> Any:
        """As for a pass."""


Exclusive = Partial | Ordered | OnVectors | OnPairs
"""Questions that read in a way of their own; nothing else rides with them, but pairs of one batch key ride together."""

Question = AnyPass | Exclusive
"""What an engine executes."""


@dataclass(frozen=True, slots=True)
class Together:
    """Answers each of its passes from the same read; the answer is a tuple in their order."""

    passes: tuple[AnyPass, ...]

    def scan(self, block: Block) -> tuple[Any, ...]:
        """Scan the block once for each pass, while it is in cache."""
        return tuple(p.scan(block) for p in self.passes)

    def merge(self, first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(p.merge(a, b) for p, a, b in zip(self.passes, first, second, strict=True))

    def finish(self, partial: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(p.finish(a) for p, a in zip(self.passes, partial, strict=True))
