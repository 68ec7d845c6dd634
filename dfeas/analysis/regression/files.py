"""A regression on a table in a file, of any size: CSV and TSV (also .gz), Parquet, or a folder of it; Stata, SPSS, SAS.

A first read of text finds which columns are numbers. One read finds levels, classes and what is missing; one writes the signed
points to a scratch folder, as a dataset, which is removed at the end, or holds them where memory has room; one more, of what is
separated, finds who is to blame. Memory grows with the number of levels, not with that of rows.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from dfeas.analysis.regression.blame import Part, Tally, find_advice
from dfeas.analysis.regression.design import (
    MOST_LEVELS,
    ColumnSurvey,
    Design,
    Matrix,
    Places,
    columns_of,
    find_gaps,
    inside,
    note_dropped,
    points_of,
    require_column,
)
from dfeas.analysis.regression.fits import find_fits
from dfeas.analysis.regression.likelihood import (
    NAMED,
    Separated,
    Separations,
    check_likelihood,
    describe_answer,
    describe_separation,
    direction_of,
    extent_of,
)
from dfeas.analysis.regression.models import Formula, without_bar
from dfeas.analysis.regression.outcome import (
    OF_ZEROS,
    THRESHOLDS,
    Asked,
    Codes,
    Regression,
    Response,
    Values,
    find_weighted,
    flat,
    row_numbers,
    sign_rows,
    weightless,
)
from dfeas.analysis.regression.thresholds import find_order, read_beside, require_decided
from dfeas.analysis.separation import separate
from dfeas.data.ids import Ids
from dfeas.data.ingest.options import IngestOptions
from dfeas.data.ingest.readers import ids_of, open_columns
from dfeas.data.ingest.source import Batch, cut
from dfeas.data.labels import Categories
from dfeas.data.source import ALL_POSITIVE
from dfeas.data.storage.layout import default_block_rows, sparse_block_rows
from dfeas.data.writers.dataset import DatasetWriter, Progress
from dfeas.data.writers.sparse import SparseWriter
from dfeas.errors import BadInputError, UsageError
from dfeas.linalg.csr import csr
from dfeas.linalg.points import is_dense, stack_points
from dfeas.problem import Problem
from dfeas.records import replace
from dfeas.run.resources import Output
from dfeas.verify.separation import COMPLETE

if TYPE_CHECKING:  # pyarrow may be absent
    from dfeas.data.ingest.csv_file import CsvColumns
    from dfeas.data.ingest.tables import ParquetColumns, StatisticsColumns

LEAST_ROWS, MOST_ROWS = 256, 1 << 16
ENTRY = 16
"""Bytes of an entry of a sparse point, with its place."""
SHARE = 16
"""Part of memory that a design may have to be held, and levels, with their names in Python."""


@dataclass(frozen=True)
class RowBatch:
    """Some rows of a table that follow on each other."""

    frame: nw.DataFrame[Any]  # all of them, without those that are dropped
    places: Places  # their numbers
    counted: Places | None  # places of those in the likelihood; None: all
    dropped: int  # rows that miss a value

    @property
    def inside(self) -> nw.DataFrame[Any]:
        return inside(self.frame, self.counted)  # type: ignore[no-any-return]

    @property
    def numbers(self) -> Places:
        return np.asarray(inside(self.places, self.counted))


class _Lines:
    """What a row of a text is called: by its line, which is looked for when a message needs it."""

    def __init__(self, line_of: Callable[[int], int]) -> None:
        self._line_of = line_of

    def __getitem__(self, row: int) -> str:
        return f"line {self._line_of(row)}"


@dataclass(frozen=True)
class RegressionFile:
    """A table in a file, in batches of rows, without columns that are left out."""

    where: str
    reader: CsvColumns | ParquetColumns | StatisticsColumns
    columns: list[str]  # with that of the weights
    weights: str | None  # the column that says which rows are in the likelihood
    beside: list[str]  # columns that are no regressors, such as it
    drop: bool  # rows that miss a value
    ids: Ids | None = None  # names of the rows
    held: list[Any] | None = None  # all batches, where memory holds them

    @classmethod
    def of(cls, path: str | Path, asked: Asked) -> RegressionFile:
        for each, what in ((asked.weights, "weights"), (asked.strata, "strata"), (asked.times, "times")):
            if not isinstance(each, str | None):
                raise UsageError(f"{what} of a file are one of its columns: expected a name, got {type(each).__name__}")
        weights, names = asked.beside, asked.y if isinstance(asked.y, list) else [asked.y]
        labels = None if asked.y else ""
        options = IngestOptions(label_column=names[0], labels=labels, sep=asked.sep, decimal=asked.decimal)
        named = [] if asked.id is None else [asked.id]
        reader = open_columns(path, options, [*weights, *names, *named], [*asked.text, *named])
        ids = ids_of(reader, asked.id)
        for name in (*asked.without, *weights, *asked.text, *named):
            require_column(name, reader.columns if ids is None else [*reader.columns, ids.name], str(path))
        columns = [name for name in reader.columns if name not in (*asked.without, *named) or name in weights]
        return cls(reader.where, reader, columns, asked.weights, asked.beside, asked.missing == "drop", ids)

    @property
    def names(self) -> _Lines | None:
        """What messages call rows beside their numbers: lines of a text."""
        return _Lines(self.reader.line_of) if hasattr(self.reader, "line_of") else None

    def name_rows(self, answer: Separated) -> Separated:
        """With the ids of its rows, where they have some."""
        if self.ids is None:
            return answer
        names = self.ids.take(answer.points)
        return replace(answer, points=[names.get(row, row) for row in answer.points])

    def batches(self, width: int, columns: Sequence[str]) -> Iterator[RowBatch]:
        """All rows in order, so many that ``width`` numbers for each take few megabytes; of some columns. Raises BadInputError
        for weights that are none, and KeyboardInterrupt when it is to stop.
        """
        stop, rows = Output().stop, max(LEAST_ROWS, min(MOST_ROWS, (16 << 20) // (8 * max(1, width))))
        number, read = 0, [*columns, *(name for name in self.beside if name not in columns)]
        for batch in self.reader.batches(read, rows) if self.held is None else (each.select(read) for each in self.held):
            if stop():
                raise KeyboardInterrupt
            for first in range(0, batch.num_rows, rows):
                table = sys.modules["pyarrow"].Table.from_batches([batch.slice(first, rows)])
                every = nw.from_native(table, eager_only=True)
                kept = np.flatnonzero(~find_gaps(table)) if self.drop else np.arange(len(every))
                frame, numbers = every[kept] if len(kept) < len(every) else every, number + kept
                weights = None if self.weights is None else frame[self.weights]
                counted = find_weighted(weights, len(frame), f"{self.where}: column {self.weights}", numbers)
                yield RowBatch(frame.select(*columns), numbers, counted, len(every) - len(frame))
                number += len(every)


@dataclass(frozen=True)
class TableRegression:
    """A design, and how its rows are read from a table."""

    table: RegressionFile
    columns: Sequence[str]  # that are read
    code_rows: Callable[[RowBatch], tuple[Matrix, Codes]]  # of the rows in the likelihood
    design: Design
    outcome: Response
    n: int  # rows in the likelihood
    signs: int  # rows of the question

    def parts(self) -> Iterator[Part]:
        for rows in self.table.batches(8 * len(self.design.columns), self.columns):
            if len(rows.numbers):
                yield (*self.code_rows(rows), rows.numbers)

    @property
    def explicit(self) -> bool:
        """Whether the intercept is a column of the points, all of which are positive."""
        return self.outcome.kind == "multinomial" or (self.outcome.kind in OF_ZEROS and self.signs == self.n)

    @property
    def sparse(self) -> bool:
        return self.design.sparse or self.outcome.kind == "multinomial"

    @property
    def m(self) -> int:
        return self.outcome.blocks * (len(self.design.columns) + int(self.explicit and self.design.intercept))

    @property
    def entries(self) -> float:
        """How many entries of a point are not zero, about."""
        terms = len(self.design.terms) + 1
        return min(self.m, 2 * terms if self.outcome.kind == "multinomial" else terms) if self.sparse else self.m

    @property
    def size(self) -> float:
        return self.signs * (self.entries * ENTRY + 24) if self.sparse else self.signs * 8 * self.m

    def question(self) -> Generator[Batch, None, None]:
        for rows, codes, _ in self.parts():
            points, labels = sign_rows(rows, codes, self.outcome, self.design.intercept, positive=self.explicit)
            yield Batch(points, Categories(labels, []))

    def write(self, folder: Path, memory: int, progress: Progress) -> None:
        most = max(1, int(memory / 64 / (self.size / self.signs)))  # blocks of the scratch dataset that memory holds
        rows = default_block_rows(self.m, 8, self.signs)
        if self.sparse:
            rows = sparse_block_rows(self.entries, ENTRY, self.signs)
        rows = min(rows, most)
        kind = SparseWriter if self.sparse else DatasetWriter
        target = kind(folder, self.signs, self.m, np.dtype(np.float64), rows)
        for index, (block, labels) in enumerate(cut(self.question(), rows)):
            if not is_dense(block):
                indices, indptr = block.indices.astype(np.int32), block.indptr.astype(np.int32)
                block = csr(block.data, indices, indptr, self.m)  # as it is stored
            target.write(index, block, np.concatenate([each.codes for each in labels]))
            progress(min(self.signs, (index + 1) * rows), self.signs)
        target.finish(() if self.explicit else ("0", "1"))

    def rows_of(self, support: Any) -> list[int]:
        """Rows whose signed points are in a conflict; reads all again where not every row has one."""
        if support is None or (self.signs == self.n and self.table.weights is None and not self.table.drop):
            return [] if support is None else [int(row) for row in support]
        found, sign = list[int](), 0
        for _, codes, numbers in self.parts():
            rows = row_numbers(codes, self.outcome)
            here = support[(support >= sign) & (support < sign + len(rows))] - sign
            found += numbers[np.unique(rows[here])].tolist()
            sign += len(rows)
        return found


def of_table(path: str | Path, asked: Asked) -> Separated:
    """What is proved of a table in a file; one whose design has room in memory is looked at there."""
    return _of_columns(RegressionFile.of(path, asked), asked)


def of_tables(path: str | Path, asked: Asked) -> Separations:
    """The same of each of several outcomes, whose names may have commas between them."""
    table = RegressionFile.of(path, asked)
    names = [each.strip() for name in asked.y for each in ([name] if name in table.columns else name.split(","))]
    for name in names:
        require_column(name, table.columns, table.where)
    held, room = list[Any](), asked.resources.memory_bytes / SHARE
    for batch in table.reader.batches(table.columns, MOST_ROWS):
        held.append(batch)
        room -= batch.nbytes
        if room < 0:
            held.clear()
            break
    table = replace(table, held=None if room < 0 else held)

    def find(name: str) -> Separated:
        columns = [each for each in table.columns if each == name or each not in names]
        return _of_columns(replace(table, columns=columns), replace(asked, y=name))

    return Separations.of(names, find)


def _of_columns(table: RegressionFile, asked: Asked) -> Separated:
    name = asked.y
    require_column(name, table.columns, table.where)
    columns = [column for column in table.columns if column not in asked.beside]

    def values(rows: RowBatch) -> NDArray[Any]:
        return flat(rows.inside[name], name, rows.numbers)

    seen = _Seen(table, asked, name, columns, values)
    seen.read([name], [column for column in columns if column != name])
    design = seen.survey.design(asked.intercept)
    return _decide(seen, design, lambda rows: points_of(columns_of(rows.inside), len(rows.numbers), design, table.where))


def of_formula(path: str | Path, formula: str, asked: Asked) -> Separated:
    """What is proved of a formula about a table. Raises BadInputError for one that needs all rows, and they have no room."""
    table = RegressionFile.of(path, asked)
    parsed = Formula(formula, [name for name in table.columns if name not in asked.beside], asked.trust_formula)
    asked = replace(asked, formula=without_bar(formula))
    needed = parsed.list_needed(table.columns)
    needed += [name for name in asked.beside if name not in (*needed, asked.weights)]
    every, size, values = list[RowBatch](), 0, Values(parsed.outcome)
    for rows in table.batches(len(needed), needed):
        every.append(rows)
        values.add(np.empty(0), 0, _find_order(rows, parsed.outcome, asked))  # before dictionaries of files are joined
        size += int(rows.frame.estimated_size())
        if size > asked.resources.memory_bytes / SHARE:
            return _in_parts(parsed, table, needed, asked)
    if not every:
        raise BadInputError(f"{table.where}: no rows")
    whole = nw.concat([rows.frame for rows in every])
    places, counted = np.concatenate([rows.places for rows in every]), None
    if asked.weights is not None:
        counted = np.searchsorted(places, np.concatenate([rows.numbers for rows in every]))
    weightless(len(whole), len(whole) if counted is None else len(counted))
    strata, times = (None if name is None else whole[name] for name in (asked.strata, asked.times))
    regression = parsed.of(whole, replace(asked, strata=strata, times=times), places.tolist(), counted)
    dropped = sum(rows.dropped for rows in every)
    notes = (*table.reader.notes, *note_dropped(dropped, dropped + len(whole)), *regression.outcome.notes)
    about = replace(regression.outcome, notes=notes)
    return table.name_rows(check_likelihood(replace(regression, outcome=about), asked))


def _in_parts(parsed: Formula, table: RegressionFile, needed: Sequence[str], asked: Asked) -> Separated:
    def values(rows: RowBatch) -> NDArray[Any]:
        return parsed.outcomes(rows.inside, rows.numbers)

    seen, regressors = _Seen(table, asked, parsed.outcome, needed, values), parsed.regressors(needed)
    seen.read([name for name in needed if name not in regressors] or needed, regressors)
    seen.survey.refuse()
    design, points = parsed.in_parts(seen.sample[0], seen.survey.variables)
    return _decide(seen, design, lambda rows: points(rows.inside, rows.numbers))


def _find_order(rows: RowBatch, name: str, asked: Asked) -> list[str] | None:
    """Categories of an ordinal outcome in some rows; none of one that is computed of columns."""
    return find_order(rows.frame[name], asked) if name in rows.frame.columns else None


class _Seen:
    """What one read of all rows shows of regressors and outcomes."""

    def __init__(
        self,
        table: RegressionFile,
        asked: Asked,
        name: str,
        columns: Sequence[str],
        outcomes: Callable[[RowBatch], NDArray[Any]],
    ) -> None:
        self.table, self.asked, self.columns, self.outcomes, self.name = table, asked, columns, outcomes, name
        most = min(MOST_LEVELS, asked.resources.memory_bytes // (SHARE * 1000))  # bytes of a level
        categories = getattr(table.reader, "categories", ())
        self.survey = ColumnSurvey(table.where, table.names, most, asked.text, categories)
        self.values, self._above, self._between, self._dropped = Values(name), 0, 0, 0
        self.sample = list[nw.DataFrame[Any]]()  # some rows, where any is in the likelihood

    def read(self, left: Sequence[str], right: Sequence[str]) -> None:
        """Look at all rows. Raises BadInputError for an outcome that is missing, and regressors that cannot be used."""
        for rows in self.table.batches(len(self.columns), self.columns):
            look = ColumnSurvey(self.table.where, self.table.names)
            look.places = self.survey.places = rows.places
            self._dropped += rows.dropped
            look.add(columns_of(rows.frame.select(*left)), len(rows.frame))
            look.refuse()
            outcome = self.outcomes(rows) if len(rows.numbers) else np.empty(0)
            self.values.add(outcome, len(rows.frame), _find_order(rows, self.name, self.asked))
            if outcome.dtype.kind in "iufb":
                self._above += int((outcome > 0).sum())
                self._between += int(((outcome > 0) & (outcome < 1)).sum())
            self.survey.add(columns_of(rows.frame.select(*right)), len(rows.frame), rows.counted)
            # rows by which a formula says what columns it makes
            self.sample += [rows.inside.head(1000)] if len(rows.numbers) and not self.sample else []
        if not self.values.rows:
            raise BadInputError(f"{self.table.where}: no rows")
        about = self.values.outcome(self.asked.outcome, self.asked.positive)
        notes = note_dropped(self._dropped, self.values.rows + self._dropped)
        self.outcome = replace(about, notes=(*self.table.reader.notes, *notes, *about.notes))

    @property
    def signs(self) -> int:
        more = self._above if self.outcome.kind in OF_ZEROS else self._between * self.outcome.of_shares
        return self.values.counted * self.outcome.blocks + more


def _decide(seen: _Seen, design: Design, points: Callable[[RowBatch], Matrix]) -> Separated:
    return seen.table.name_rows(_decide_rows(seen, design, points))


def _decide_rows(seen: _Seen, design: Design, points: Callable[[RowBatch], Matrix]) -> Separated:
    about, asked = seen.outcome, seen.asked
    require_decided(design, about)

    def code_rows(rows: RowBatch) -> tuple[Matrix, Codes]:
        return points(rows), about.codes(seen.outcomes(rows))

    found = TableRegression(seen.table, seen.columns, code_rows, design, about, seen.values.counted, seen.signs)
    if found.size > asked.resources.memory_bytes / SHARE:
        if asked.strata is not None or about.kind in THRESHOLDS:
            raise BadInputError(f"{seen.table.where}: outcome {about.kind} needs all rows in memory: give more memory")
        return _decide_on_disk(found, asked)
    matrices, codes, numbers = zip(*found.parts(), strict=True)
    rows, names = np.concatenate(numbers), [name for name in (asked.strata, asked.times) if name is not None]
    kept = rows
    if names:
        read = [*seen.table.batches(1, [*seen.columns, *names])]
        columns = {None: None} | {name: np.concatenate([each.frame[name].to_numpy() for each in read]) for name in names}
        asked = replace(asked, strata=columns[asked.strata], times=columns[asked.times])
        kept = np.searchsorted(np.concatenate([each.places for each in read]), rows)
    of = read_beside(asked, range(seen.values.rows), kept)
    return check_likelihood(Regression(design, stack_points(matrices), np.concatenate(codes), about, rows.tolist(), *of), asked)


def _decide_on_disk(found: TableRegression, asked: Asked) -> Separated:
    with tempfile.TemporaryDirectory(prefix="dfeas-separation-", dir=asked.resources.scratch) as scratch:
        folder = Path(scratch) / "data"
        found.write(folder, asked.resources.memory_bytes, asked.progress or (lambda done, total: None))
        labels, intercept = (ALL_POSITIVE, None) if found.explicit else (None, found.design.intercept)
        problem, output = Problem.of(str(folder), labels, intercept=intercept), Output(progress=asked.progress is not None)
        answer = separate(problem, "auto", asked.limits, asked.resources, output)
    direction = direction_of(answer, found.design, found.outcome)
    if direction is None:
        return describe_answer(found.design, found.outcome, answer, found.rows_of(answer.support)[:NAMED])
    extent = extent_of(found.design, found.outcome, answer)
    tally = Tally.of(extent.watch(found.parts()), found.outcome, answer.kind == COMPLETE, direction, NAMED)
    told = describe_answer(found.design, found.outcome, answer, list(tally.rows))
    advice = list(find_advice(found.design, found.outcome, direction, tally, lambda change: None))
    described = describe_separation(found.design, found.outcome, direction, tally)
    fits = find_fits(found.design, found.outcome, asked)
    return replace(told, **described, advice=advice, estimates=extent.estimates(direction), fits=fits)
