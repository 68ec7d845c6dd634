"""Scores of points, in one read of them: in memory, or in a file that is there whole or not at all."""

from __future__ import annotations

import csv
import math
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from dfeas.data.dataset import Dataset, call_point
from dfeas.data.labels import plain
from dfeas.data.storage.features import feature_name
from dfeas.data.storage.files import atomic_write, sync
from dfeas.data.storage.places import require_apart, require_folder
from dfeas.data.storage.readers import Cost, Stop, unless_stopped
from dfeas.data.writers.dataset import Progress
from dfeas.engine.local import local_engine
from dfeas.engine.memory import thread_bytes
from dfeas.errors import BadInputError, UsageError, install
from dfeas.geometry.protocol import Rule
from dfeas.linalg.points import Floats, nonfinite, row_slice
from dfeas.records import replace
from dfeas.settings import parse_bytes

if TYPE_CHECKING:
    from dfeas.geometry.prediction import Prediction

Write = Callable[[NDArray[Any], Any], None]
"""Writes what a .npy file gets of some points, or else what is said of them."""

SHARE, POINT_BYTES = 8, 128
"""A group of points whose scores are put together takes one part in so many of the memory, and so much for each."""


def class_values(names: Sequence[str]) -> NDArray[Any]:
    """Classes as labels have them, from their names: numbers where all are called as numbers are, and not ``001``."""
    if set(names) == {"False", "True"}:
        return np.array([name == "True" for name in names])
    for kind in (int, float):
        try:
            values = [kind(name) for name in names]
        except (ValueError, OverflowError):
            continue
        if list(map(plain, values)) == [name.removeprefix("+") for name in names] and all(map(math.isfinite, values)):
            return np.array(values)
    return np.array(names)


def read_scores(dataset: Dataset, rule: Rule, memory: str | int | None) -> Iterator[list[NDArray[Any]]]:
    """What a rule gives of the blocks, some after the other; of cones of all. Raises BadInputError for a score that is not
    finite.
    """
    budget, first, done = parse_bytes(memory), 0, 0
    with local_engine(dataset, max(budget - budget // SHARE, min(budget, thread_bytes(dataset)))) as engine:
        step = max(1, budget // (SHARE * POINT_BYTES * dataset.block_rows)) if dataset.rows.scored_apart else dataset.blocks
        while first < dataset.blocks:
            count = min(step, dataset.blocks - first)
            arrays = [np.concatenate(each) for each in zip(*engine.map(_score_range, rule, first, count=count), strict=True)]
            wrong = ~np.isfinite(arrays[-2])
            if wrong.any():
                raise _not_finite(dataset, done + int(wrong.argmax()))
            yield arrays
            first, done = first + count, done + len(wrong)


def _not_finite(dataset: Dataset, point: int) -> BadInputError:
    """The error for a point whose score is not finite, with the first of its entries that is none."""
    which, at = "", point % dataset.block_rows
    if dataset.rows.scored_apart:
        (block,) = dataset.read_blocks([point // dataset.block_rows], Cost())
        _, columns, values = nonfinite(row_slice(block.points, slice(at, at + 1)))
        which = f" (feature {feature_name(dataset.features, int(columns[0]))}: {values[0]})" if len(columns) else ""
    return BadInputError(f"{dataset.where}: {call_point(point, dataset.files)} has entries that are not finite{which}")


def read_once(dataset: Dataset, rule: Rule, memory: str | int | None) -> list[NDArray[Any]]:
    """What a rule gives of all blocks, in the order of the points."""
    return [np.concatenate(each) for each in zip(*read_scores(dataset, rule, memory), strict=True)]


def _score_range(
    dataset: Dataset, first: int, stop: int, rule: Rule, begin: int, stopped: Stop | None = None
) -> tuple[NDArray[Any], ...]:
    blocks = unless_stopped(dataset.read_blocks(range(begin + first, begin + stop), Cost()), stopped)
    return tuple(np.concatenate(each) for each in zip(*(rule.score(block) for block in blocks), strict=True))


def require_name(out: Path, *data: Any) -> None:
    """Raise UsageError for a name that says no format, BadInputError where there is no folder."""
    if out.suffix not in WRITERS:
        raise UsageError(f"{out}: scores are a .npy, .csv or .parquet file, or a .zarr folder; choose such a name")
    require_folder(out)
    require_apart(out, *data)


@contextmanager
def _npy(out: Path, n: int) -> Iterator[Write]:
    """Scores; of several classes their positions."""
    with atomic_write(out) as file:

        def write(values: NDArray[Any], answer: Any) -> None:
            if file.tell() == 0:
                header = {"descr": values.dtype.str, "fortran_order": False, "shape": (n or len(values),)}
                npy.write_array_header_1_0(file, header)
            file.write(values.data)  # np.save does not say why it could not

        yield write


@contextmanager
def _csv(out: Path, n: int) -> Iterator[Write]:
    """Columns as in Parquet, numbers as Python writes them, so that they are read back as they are."""
    with atomic_write(out) as file:

        def write(values: NDArray[Any], answer: Any) -> None:
            columns = {name: np.asarray(column, object).tolist() for name, column in answer.columns(class_values).items()}
            text = StringIO()
            head = [] if file.tell() else [columns]
            csv.writer(text, lineterminator="\n").writerows([*head, *zip(*columns.values(), strict=True)])
            file.write(text.getvalue().encode())

        yield write


@contextmanager
def _parquet(out: Path, n: int) -> Iterator[Write]:
    """Columns ``score`` and ``class``, which has the class as labels have it, and ``id`` of points that have ids."""
    try:
        import pyarrow
        from pyarrow.parquet import ParquetWriter
    except ImportError:
        raise UsageError(f"{out}: Parquet is written by pyarrow, which is not installed: {install('formats')}") from None
    with atomic_write(out) as file:
        held: list[Any] = []

        def write(values: NDArray[Any], answer: Any) -> None:
            table = pyarrow.table(answer.columns(class_values))
            if held:
                table = table.cast(held[0].schema)  # ids of which all are missing have no type
            if not held:
                few = [name for name in table.column_names if name == "class"]  # a dictionary of scores took 60 MiB
                held.append(ParquetWriter(file, table.schema, use_dictionary=few or False))
            held[0].write_table(table)

        try:
            yield write
        finally:
            for writer in held:
                writer.close()


@contextmanager
def _zarr(out: Path, n: int) -> Iterator[Write]:
    """Arrays ``score`` and ``class``, which has positions in its attribute ``classes``, and ``id`` as text."""
    import zarr

    part, done = out.with_name(f".{out.name}.{os.getpid()}.part"), 0
    shutil.rmtree(part, ignore_errors=True)  # of a process that was killed, and had this number
    arrays: dict[str, Any] = {}

    def write(values: NDArray[Any], answer: Any) -> None:
        nonlocal done
        for name, column in answer.columns(None).items():
            if name == "id":  # a number that is missing is none in zarr
                column = np.array(["" if each is None else str(each) for each in column], np.dtypes.StringDType())
            if name not in arrays:  # whose chunks are the groups of points, each written once
                arrays[name] = group.create_array(name, shape=(n or len(column),), chunks=(len(column),), dtype=column.dtype)
                if name == "class":
                    arrays[name].attrs["classes"] = list(answer.classes)
            arrays[name][done : done + len(column)] = column
        done += len(column)

    try:
        group = zarr.create_group(str(part))
        yield write
        part.rename(out)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    sync(out.parent)


WRITERS = {".npy": _npy, ".csv": _csv, ".parquet": _parquet, ".zarr": _zarr}
"""How a file begins to be written, by the end of its name; n is 0 for cones."""


def write_scores(
    dataset: Dataset, rule: Rule, memory: str | int | None, out: Path, progress: Progress | None
) -> Prediction | Any:
    """What a rule says of all points, whose scores are in the file ``out`` and not in memory."""
    answer: Any = None
    done, named = 0, None if dataset.ids is None or out.suffix == ".npy" else dataset.ids.columns()
    with WRITERS[out.suffix](out, dataset.n if dataset.rows.scored_apart else 0) as write:
        for arrays in read_scores(dataset, rule, memory):
            found: Any = rule.prediction(arrays, dataset)
            write(arrays[0], found if named is None else replace(found, ids=named(len(arrays[0]))))
            answer, done = found.after(answer), done + len(arrays[0])
            if progress is not None:
                progress(done, max(done, dataset.n if dataset.rows.scored_apart else done))
    assert answer is not None, "a dataset has a block"
    return answer


Sigmoid = tuple[float, float]


def sigmoid(z: Floats) -> Floats:
    """1 / (1 + exp(-z)), which is never too large for its exponential."""
    return np.asarray(np.exp(-np.logaddexp(0, -z)))


def probabilities(scores: Floats, found: Sequence[Sigmoid]) -> Floats:
    """(n, 2) of scores (n,), or (n, classes) of scores of each class against the rest, which add up to 1 then."""
    (a, b) = np.array(found).T
    if scores.ndim == 1:
        z = scores * a[0] + b[0]
        return np.stack([sigmoid(-z), sigmoid(z)], axis=1)
    each = np.maximum(sigmoid(scores * a + b), np.finfo(np.float64).tiny)
    return np.asarray(each / each.sum(axis=1, keepdims=True))
