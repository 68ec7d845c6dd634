"""Some points of several datasets as a dataset: those that a mask keeps.

Blocks are made of those of the others when they are read, which verify themselves; nothing is written. Picked points, in order,
begin anywhere in a block of a store: one may be read for two of them. Of cones a mask keeps whole ones, and rows of zeros fill
chunks up, as on disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dfeas import leaves
from dfeas.data.dataset import AHEAD, Dataset, array_reader
from dfeas.data.frames import values_of
from dfeas.data.storage.layout import chunks_together, index_size
from dfeas.data.storage.numbers import array_of
from dfeas.data.storage.readers import Buffers, Cost, Looks, RowReader
from dfeas.data.storage.scratch import Picks
from dfeas.data.storage.sparse_readers import Entries
from dfeas.data.storage.zarr_arrays import load_npy
from dfeas.data.views import require_names
from dfeas.errors import BadInputError
from dfeas.linalg import csr
from dfeas.linalg.points import Points, is_dense, stack_points, take_rows

if TYPE_CHECKING:
    from dfeas.data.ids import Ids


class SubsetReader(Struct, frozen=True, eq=False):
    """A reader of picked points."""

    parts: tuple[Dataset, ...]
    starts: NDArray[np.int64]  # (parts + 1,) numbers of the first point of each, all counted through
    rows: NDArray[np.int64] | Picks | None  # (n,) ascending numbers of points, counted through, -1 for zeros; None for all
    n: int
    block_rows: int

    overlaps = False  # a thread reads ahead

    @property
    def distant(self) -> bool:
        """Whether blocks of a store come over a network."""
        return any(part.points.distant for part in self.parts)

    def _numbers(self, index: int) -> NDArray[np.int64]:
        """The points (b,) of a block, by their numbers; -1 for zeros, which fill its chunks up."""
        first, stop = index * self.block_rows, min(self.n, (index + 1) * self.block_rows)
        return np.arange(first, stop) if self.rows is None else self.rows[first:stop]

    def _pieces(self, index: int) -> Iterator[tuple[Dataset, int, NDArray[np.int64]]]:
        """(store, block in it, rows of that block) of a block."""
        wanted = self._numbers(index)
        wanted = wanted[wanted >= 0]
        for part, start, end in zip(self.parts, self.starts[:-1], self.starts[1:], strict=True):
            here = wanted[np.searchsorted(wanted, start) : np.searchsorted(wanted, end)] - start
            for block in np.unique(here // part.block_rows):
                begin = int(block) * part.block_rows
                low, high = np.searchsorted(here, [begin, begin + part.block_rows])
                yield part, int(block), here[low:high] - begin

    def read(self, index: int, buffers: Buffers) -> Points:
        first, there = self.parts[0], self._numbers(index) >= 0
        if first.entries is not None:
            some = stack_points([take_rows(points, chosen) for points, chosen in self._gather(index, buffers)])
            return some if is_dense(some) else csr.spread(some, there)
        rows = len(there)
        out = buffers.take("picked", rows * first.m * first.dtype.itemsize).view(first.dtype).reshape(rows, first.m)
        places = None if there.all() else np.flatnonzero(there)
        done = 0
        for points, chosen in self._gather(index, buffers):
            into = slice(done, done + len(chosen))
            out[into if places is None else places[into]] = take_rows(points, chosen)
            done += len(chosen)
        if places is not None:
            out[~there] = 0
        return out

    def _gather(self, index: int, buffers: Buffers) -> Iterator[tuple[Points, NDArray[np.int64]]]:
        """Blocks of the stores, and the rows that are wanted of each; a block is read over by the next one."""
        pieces, asked = list(self._pieces(index)), 0
        for place, (part, block, chosen) in enumerate(pieces):
            while self.distant and asked < min(len(pieces), place + AHEAD + 1):
                coming, there, _ = pieces[asked]
                coming.advise(there)
                asked += 1
            yield part.read(block, buffers, Cost()).points, chosen

    def entries(self) -> Entries | None:
        """How much sparse points store: what blocks of the stores do, in the share in which their rows are wanted."""
        if any(part.entries is None for part in self.parts):
            return None
        blocks = range(-(-self.n // self.block_rows))
        sizes = [sum(_average(part, block) * len(chosen) for part, block, chosen in self._pieces(index)) for index in blocks]
        offsets = np.cumsum([0, *map(ceil, sizes)])
        return Entries.of(self.n, offsets, self.block_rows, self.parts[0].dtype.itemsize, index_size(self.parts[0].m))

    def advise(self, index: int) -> None:
        """Nothing to do: a thread reads ahead."""

    def stamp(self, index: int, looks: Looks | None = None) -> int | None:
        """Of all blocks that it is gathered from."""
        stamps = [part.points.stamp(block, looks) for part, block, _ in self._pieces(index)]
        return None if any(stamp is None for stamp in stamps) else hash(tuple(stamps))


def join_datasets(parts: Sequence[Dataset], mask: Any = None) -> Dataset:
    """Several datasets as one, and of it the points for which ``mask`` (n,) is true, or of one dataset the cones. Raises
    BadInputError when features, their names, types, classes or the length of the mask differ, or nothing is kept.
    """
    first, named = parts[0], next((part for part in parts if part.features), parts[0])
    if not first.rows.take_labels:
        picked: Dataset = leaves.pick_cones(first, mask)
        return picked
    for part in parts[1:]:
        require_names(part.features, named.features, part.where, named.where)
        for name, what in _ALIKE.items():
            was, now = getattr(first, name), getattr(part, name)
            if was != now:
                raise BadInputError(f"{part.where}: its {what} are {now}, those of {first.where} {was}; ingest them alike")
        if (first.entries is None) != (part.entries is None):
            raise BadInputError(f"{part.where}: one of it and {first.where} is sparse, the other dense; ingest them alike")
    starts = np.cumsum([0, *(part.n for part in parts)])
    total, where = int(starts[-1]), " and ".join(part.where for part in parts)
    labels = first.signs(np.concatenate([label for part in parts for label in all_of(part, part.labels)]))
    rows = None
    if mask is not None:
        some = open_mask(mask, "point", where, total)
        rows, labels = Picks.of(some), labels[some]
    n = len(labels)
    chunk_rows = min(n, first.chunk_rows)
    together = chunks_together(chunk_rows, first.block_rows, n)
    return subset_of(
        SubsetReader(tuple(parts), starts, rows, n, together * chunk_rows),
        labels,
        where=where,
        together=together,
        classes=first.classes,
        intercept=first.intercept,
        numbers=rows,
        features=named.features,
        ids=_join_ids(parts),
        files=tuple(file for part in parts for file in part.files or ((part.where, part.n),)),
    )


def _join_ids(parts: Sequence[Dataset]) -> Ids | None:
    if all(part.ids is None for part in parts):
        return None
    from dfeas.data.ids import join_ids  # few datasets have some

    return join_ids([part.ids for part in parts], [part.n for part in parts])


_ALIKE = {"m": "features", "dtype": "entries", "classes": "classes", "positive": "labels"}
"""What datasets have in common that are one, and what messages call it."""


def subset_of(points: SubsetReader, labels: NDArray[Any], **more: Any) -> Dataset:
    """Picked points as a dataset."""
    first = points.parts[0]
    more |= {"m": first.m, "dtype": first.dtype, "block_rows": points.block_rows, "entries": points.entries()}
    return Dataset(n=points.n, points=points, labels=array_reader("label", labels, points.block_rows), **more)


def open_mask(mask: Any, what: str, where: str, count: int, rows: int | None = None) -> NDArray[np.bool_]:
    """A mask, of which 0 and 1 are truth values, too, with an entry for each of ``count`` points or cones, or of their rows."""
    if isinstance(mask, str):
        if not Path(mask).is_file():
            raise BadInputError(f"{mask}: no such file (mask); of a column give its values, an array")
        mask = load_npy(Path(mask))
    values = array_of(values_of(mask, "mask"), "the mask")
    whole = values.dtype.kind in "iu" and values.size > 0 and 0 <= values.min() <= values.max() <= 1
    truths = values.dtype == object and all(isinstance(value, bool | np.bool_) for value in values.reshape(-1).tolist())
    values = values.astype(np.bool_) if whole or truths else values
    if values.dtype != np.bool_ or values.shape not in ((count,), (rows,)):
        raise BadInputError(
            f"the mask has shape {values.shape} and type {values.dtype}, expected {count} booleans, one for each {what} of "
            f"{where}{'' if rows is None else f', or {rows}, one for each of their rows'}"
        )
    if not values.any():
        raise BadInputError(f"the mask keeps none of the {count} {what}s of {where}")
    return values


def _average(part: Dataset, block: int) -> float:
    assert part.entries is not None, "sparse points have entries"
    first, stop = part.entries.offsets[block : block + 2].tolist()
    return float(stop - first) / min(part.block_rows, part.n - block * part.block_rows)


def all_of(part: Dataset, reader: RowReader) -> Iterator[NDArray[Any]]:
    """Blocks of a part, one after the other."""
    for index in range(part.blocks):
        if index + AHEAD < part.blocks:
            reader.advise(index + AHEAD)
        yield reader.read(index, Buffers()).copy()
