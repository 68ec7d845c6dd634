"""Linear inequalities, equalities and bounds as points: x = y / t has A x <= b where b_j t - a_j'y >= 0 for all j, and t > 0.

Point j is (-a_j, b_j). Behind those of A come (-e, f) and (e, -f) of each equality e'x = f, those of upper and of lower bounds,
and (0, 1), which is t; these are in memory. A block of the others is made of one of A when it is read: nothing is written.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import scipy  # loads its parts when they are used
from numpy.typing import NDArray

from dfeas.data.arrays import open_given
from dfeas.data.collections import is_collection
from dfeas.data.dataset import Dataset, array_reader
from dfeas.data.frames import bring_here, columns_of, has_other_coordinates, is_frame, open_frame, require_aligned, values_of
from dfeas.data.open import open_source
from dfeas.data.partitions import Compute, table_of
from dfeas.data.programs import LinearProgram, is_program, read_program
from dfeas.data.source import ALL_POSITIVE, ChosenTable, DataSpec, Source
from dfeas.data.storage.features import order_by, shorten
from dfeas.data.storage.layout import default_block_rows, index_size
from dfeas.data.storage.numbers import array_of, exact, is_missing, require_array
from dfeas.data.storage.places import absolute
from dfeas.data.storage.readers import Buffers, Cost, Looks
from dfeas.data.storage.sparse_readers import Entries, block_of
from dfeas.data.views import stored_rows
from dfeas.errors import BadInputError, CorruptDataError, UsageError, spell
from dfeas.linalg.points import Floats, Points
from dfeas.records import replace


@dataclass(frozen=True, eq=False, repr=False)
class HomogeneousReader:
    """Blocks of (-A, b), and of the rows behind them."""

    inner: Dataset  # A (n, m), which verifies what it reads
    right: Floats  # (n,)
    more: Any  # (k, m + 1) CSR
    block_rows: int  # those of A, where that has several blocks

    overlaps = False  # a thread reads ahead

    @property
    def distant(self) -> bool:
        return self.inner.points.distant

    def read(self, index: int, buffers: Buffers) -> Points:
        n, m, first = self.inner.n, self.inner.m, index * self.block_rows
        right = self.right[first : first + self.block_rows]
        more = self.more[max(0, first - n) : max(0, first + self.block_rows - n)]
        points: Any = self.inner.read(index, buffers, Cost()).points if len(right) else self.more[:0, :m]
        if self.inner.entries is None:
            wide = buffers.take("homogeneous", (len(right) + more.shape[0]) * (m + 1) * 8).view(np.float64).reshape(-1, m + 1)
            if len(right):
                np.negative(points, out=wide[: len(right), :m], dtype=np.float64)
            wide[: len(right), m], wide[len(right) :] = right, more.toarray()
            return wide
        rows = scipy.sparse.vstack([_beside(-points.astype(np.float64), right), more], "csr")
        return block_of(rows.data, rows.indices, rows.indptr, m + 1)

    def advise(self, index: int) -> None:
        if index < self.inner.blocks:
            self.inner.points.advise(index)

    def stamp(self, index: int, looks: Looks | None = None) -> int | None:
        return self.inner.points.stamp(
            min(index, self.inner.blocks - 1), looks
        )  # blocks without one are in no digest of a read


@dataclass(frozen=True, repr=False)
class Sides:
    """What makes points of the rows of A: it travels to workers, which read A themselves."""

    mark: str  # by which one is told from another
    right: Floats = field(compare=False)  # (n,)
    more: Any = field(compare=False)  # (k, m + 1) CSR, the points behind

    @classmethod
    def of(cls, right: Floats, more: Any) -> Sides:
        parts = (right, more.data, more.indices, more.indptr)
        return cls(sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest(), right, more)

    def see(self, A: Dataset) -> Dataset:
        """A (n, m) as points (n + k, m + 1)."""
        right, more = self.right, self.more
        n = A.n + more.shape[0]
        block_rows, entries = A.block_rows if A.blocks > 1 else max(A.n, default_block_rows(A.m + 1, 8, n)), None
        if A.entries is not None:
            behind = more.indptr[np.clip(block_rows * np.arange(-(-n // block_rows) + 1) - A.n, 0, more.shape[0])]
            of_A = np.append(A.entries.offsets, np.full(len(behind) - A.blocks - 1, A.entries.offsets[-1]))
            of_b = np.minimum(block_rows * np.arange(len(behind)), A.n)
            entries = Entries.of(n, (of_A + of_b + behind).astype(np.int64), block_rows, 8, index_size(A.m + 1))
        return Dataset(
            where="A" if A.where == "X" else A.where,
            n=n,
            m=A.m + 1,
            dtype=np.dtype(np.float64),
            block_rows=block_rows,
            points=HomogeneousReader(A, right, more, block_rows),
            labels=array_reader("label", np.ones(n, np.int8), block_rows),
            entries=entries,
        )


Names = Callable[[Sequence[int]], Mapping[int, Any]]
"""What some rows are called, by their numbers."""
MOST_TERMS = 5
"""Of an inequality that is written out."""


@dataclass(frozen=True, eq=False, repr=False)
class Inequalities:
    """What is asked, as points, and which of them say what."""

    X: Any  # a Dataset of the points, or a Dask array
    there: DataSpec | None  # as others open them, where A is given by path
    given: int  # points of rows of A; without such rows one, of 0 <= 1
    stand_in: bool  # whether that one is no row of A
    equal: int  # equalities
    m: int
    upper: NDArray[np.int64]  # variables with an upper bound, ascending
    lower: NDArray[np.int64]
    features: tuple[str, ...]  # names of the variables; empty where they have none
    names: tuple[Names, Names]  # of rows of A, and of equalities
    turned: Sequence[bool] = ()  # rows of A that are a x >= b where they come from
    kind: str = ""  # what rows and equalities are called; empty: these
    behind: int = 0  # entries of points that are not rows of A

    @classmethod
    def of(cls, A: Any, b: Any, equal: Any, bounds: Any, memory: int, compute: Compute | None = None) -> Inequalities:
        """What is not known of a Dask array or frame is seen by ``compute``. Raises BadInputError for shapes that do not fit,
        for right sides in another order than rows, and for numbers that cannot be used.
        """
        E: Dataset | None = None
        left, f = None, np.zeros(0)
        program = _program_of(A, b, equal, bounds, memory)
        if program is not None:
            A, b, equal, bounds = program.A, program.b, (program.E, program.f), program.bounds
        if equal is not None:
            if not isinstance(equal, list | tuple) or len(equal) != 2:
                raise BadInputError(f"{spell('equal')}: expected E and f, a pair, of equalities E x = f")
            if A is None or not _has_no_rows("E", *equal):
                E, left, f = _open_equalities(equal[0], equal[1], memory)
                if has_other_coordinates(A, equal[0], slice(-1, None)):
                    raise BadInputError("E: other coordinates of its columns than A, or the same in another order: align them")
        if A is None and E is None:
            raise BadInputError("expected A and b, of A x <= b, or E and f of equalities, or both")
        names, b, called = () if E is None else E.features, bring_here(b), (_names_in(A), _names_in(equal and equal[0]))
        with call_rows("A"):
            stand_in = A is None or _has_no_rows("A", A, b)
            if stand_in:
                names = names if A is None else columns_of(A) or names
                shape = 1, E.m if A is None and E is not None else A.shape[1]
                A, b = scipy.sparse.csr_array(shape) if E is None or E.entries is not None else np.zeros(shape), [1.0]  # 0 <= 1
            table = table_of(A, None, compute) if is_collection(A) else None
            require_aligned(A, b, "b", None if table is None else table.names, "A")
            spec = None if table is not None else DataSpec(A, ALL_POSITIVE)
            A = table.X if table is not None else _open(A, memory)
        names = (A.features if table is None else table.features) or names
        if program is not None:
            names = program.features
            called = partial(program.names, program.rows), partial(program.names, program.equalities)
        n, m = (A.n, A.m) if isinstance(A, Dataset) else map(int, A.shape)
        if E is not None and E.m != m:
            raise BadInputError(f"E has {E.m} columns, A has {m}; give each a column for each variable")
        low, high = _limits(bounds, m, names).T
        upper, lower = np.flatnonzero(high < np.inf), np.flatnonzero(low > -np.inf)
        eye = scipy.sparse.eye_array(m, format="csr")
        parts = [(-eye[upper], high[upper]), (eye[lower], -low[lower]), (0 * eye[:1], np.ones(1))]
        if E is not None and left is not None:
            order = order_by(E.features, names, "E", "A")
            left = left if order is None else left[:, order]
            parts = [(-left, f), (left, -f), *parts]
        more = scipy.sparse.vstack([_beside(*part) for part in parts], "csr")
        more.eliminate_zeros()
        sides = Sides.of(_column(b, n, "b", "A"), more)
        X = sides.see(A) if isinstance(A, Dataset) else _homogenise_lazily(A, sides)
        there = replace(spec, intercept=False, system=sides) if spec is not None and spec.by_path else None
        turned, kind = ((), "") if program is None else (program.turned, program.kind)
        return cls(X, there, n, stand_in, len(f), m, upper, lower, tuple(names), called, turned, kind, more.nnz)

    @property
    def n(self) -> int:
        """Points, of which the last one is t."""
        return self.given + 2 * self.equal + len(self.upper) + len(self.lower) + 1

    @property
    def count(self) -> int:
        """Inequalities of the caller, of which an equality is two."""
        return self.n - 1 - self.stand_in

    @property
    def equalities(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Points (p,) and (p,) of either side of each."""
        first = self.given + np.arange(self.equal)
        return first, first + self.equal

    def divide(self, support: NDArray[np.int64], weights: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """Weights of the points of a support: those of A, of equalities (p,), of upper and of lower bounds (m,). That of 0 <= 1
        is left out: its point is the one of t, so that b'u without it is minus both weights.
        """
        of_A = support < self.given
        behind, upper, lower = (np.zeros(size, object) for size in (self.n - self.given, self.m, self.m))
        behind[support[~of_A] - self.given] = weights[~of_A]
        sizes = self.equal, self.equal, len(self.upper), len(self.lower)
        plus, minus, upper[self.upper], lower[self.lower], _ = np.split(behind, np.cumsum(sizes))
        return weights[of_A & (not self.stand_in)], plus - minus, upper, lower

    def list_constraints(self, support: NDArray[np.int64], weights: NDArray[Any], points: Floats) -> list[dict[str, Any]]:
        """The constraints whose points (s, m + 1) are in a support, as their user calls them, with their multipliers."""
        kinds = (self.kind or "row", *([self.kind or "equality"] * 2), "upper bound", "lower bound")
        ends = np.cumsum([self.given, self.equal, self.equal, len(self.upper), len(self.lower)])
        parts = np.searchsorted(ends, support, "right")
        places = support - np.append(0, ends)[parts]
        named: list[Mapping[int, Any]] = []
        for names, some in zip(self.names, (places[parts == 0], np.unique(places[(parts == 1) | (parts == 2)])), strict=True):
            named.append(names(some.tolist()) if len(some) else {})
        found = []
        for part, place, weight, point in zip(parts.tolist(), places.tolist(), weights.tolist(), points, strict=True):
            sign = -1 if part == 2 else 1
            if part < 3:
                name = named[part > 0][place]
                turned = part == 0 and len(self.turned) > 0 and self.turned[place]
                side = -1 if turned else sign
                text = self._write_out(-side * point[:-1], "=" if part else ">=" if turned else "<=", side * point[-1])
            else:
                place = int((self.upper if part == 3 else self.lower)[place])
                name = self.features[place] if self.features else place
                sense, right = ("<=", point[-1]) if part == 3 else (">=", -point[-1])
                text = self._write_out(np.abs(point[:-1]), sense, right)
            entry = {"kind": kinds[part], "place": place, "name": name, "text": text, "multiplier": sign * weight}
            found.append(entry)
        return found

    def _write_out(self, left: Floats, sense: str, right: float) -> str:
        """``2 a - c <= 5``, of many terms the first."""
        held = np.flatnonzero(left)
        terms = [
            f"{'-' if left[j] < 0 else '+'} {'' if abs(left[j]) == 1 else f'{_digits(abs(left[j]))} '}{self._variable(j)}"
            for j in held[:MOST_TERMS].tolist()
        ]
        text = " ".join(terms).removeprefix("+ ") or "0"
        text = f"-{text[2:]}" if text.startswith("- ") else text
        more = f" + .. ({len(held)} terms)" if len(held) > MOST_TERMS else ""
        return f"{text}{more} {sense} {_digits(right)}"

    def _variable(self, place: int) -> str:
        return shorten(self.features[place]) if self.features else f"x[{place}]"

    def join(
        self, rows: NDArray[np.int64], u: Sequence[int], v: Sequence[int], upper: Sequence[int], lower: Sequence[int]
    ) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Points, without the one of t, and weights that such multipliers are. Raises ValueError for what is none."""
        of_A, equal, high, low = (np.array(each, object) for each in (u, v, upper, lower))
        shapes = (len(of_A), len(equal), len(high), len(low)) == (len(rows), self.equal, self.m, self.m)
        if not shapes or (np.diff(rows) <= 0).any() or (len(rows) and not 0 <= rows[0] <= rows[-1] < self.given):
            raise ValueError("there are more multipliers, or fewer, than rows, equalities and variables")
        if (self.stand_in and len(rows)) or np.delete(high, self.upper).any() or np.delete(low, self.lower).any():
            raise ValueError("a row or a bound has a multiplier and is not there")
        behind = np.concatenate([np.maximum(equal, 0), np.maximum(-equal, 0), high[self.upper], low[self.lower]])
        if (of_A <= 0).any() or (behind < 0).any():
            raise ValueError("a multiplier of an inequality is negative")
        held = np.flatnonzero(behind)
        return np.concatenate([rows, self.given + held]), np.concatenate([of_A, behind[held]])


def _program_of(A: Any, b: Any, equal: Any, bounds: Any, memory: int) -> LinearProgram | None:
    """That of a file, which has all of the system; None for any other A."""
    if not is_program(A):
        return None
    if (b, equal, bounds) != (None, None, None):
        raise UsageError("A is a linear programme, with its own right sides, equalities and bounds: leave out the others")
    return read_program(A, memory)


def _digits(value: float) -> str:
    """The shortest decimals that are this float."""
    return repr(float(value) + 0.0).removesuffix(".0")


def _names_in(table: Any) -> Names:
    """What its rows are called: by an index, by a column of ids, or by number."""
    return lambda places: open_source(Source(DataSpec(table, ALL_POSITIVE))).name_points(places)


def places_of_system(A: Any, b: Any, equal: Any, bounds: Any) -> dict[str, Any] | None:
    """Where a system is, as a file may keep it: absolute paths, and bounds of all variables; None where memory has a part."""
    pair = isinstance(bounds, list | tuple) and len(bounds) == 2 and all(each is None or np.isscalar(each) for each in bounds)
    given = {"A": A, "b": b, "equal": equal, "bounds": None if pair else bounds}
    choice = {"choice": A.choice.to_json()} if isinstance(A, ChosenTable) else {}
    found = {name: _place_of(value) for name, value in given.items()}
    if any(found[name] is None and given[name] is not None for name in found):
        return None
    return found | choice | ({"bounds": [*bounds]} if pair else {})


def _place_of(given: Any) -> Any:
    given = given.X if isinstance(given, ChosenTable) else given
    if isinstance(given, list | tuple):
        return [absolute(each) for each in given] if given and all(isinstance(each, str | Path) for each in given) else None
    return absolute(given) if isinstance(given, str | Path) else None


def list_parts(given: Any) -> list[Any]:
    """What is given as one or as several, however deep."""
    return [each for part in given for each in list_parts(part)] if isinstance(given, list | tuple) else [given]


def _has_no_rows(name: str, table: Any, values: Any) -> bool:
    """Whether a table in memory, and what is beside it, are empty, as of a problem without such rows."""
    if isinstance(table, ChosenTable):
        return False
    require_array(table, name)
    return (
        not is_collection(table)
        and getattr(table, "shape", ())[:1] == (0,)
        and len(table.shape) == 2
        and np.shape(values)[:1] == (0,)
    )


_WORDS = {
    "expected points as an array": "expected a matrix",
    r"\bpoint (?=\d)": "row ",
    r"(?<=row )(\d+) feature\b": r"\1 column",
}


@contextmanager
def call_rows(name: str) -> Iterator[None]:
    """Errors in here call X as it is called in a system, and points and features rows and columns."""
    try:
        yield
    except (BadInputError, CorruptDataError) as error:
        text = str(error.args[0])
        text = re.sub(r"\bX\b", name, text) if text.startswith("X:") else text
        for words, here in _WORDS.items():
            text = re.sub(words, here, text)
        raise type(error)(text) from None


def _open(X: Any, memory: int) -> Dataset:
    return open_source(Source(DataSpec(X, ALL_POSITIVE)).within(memory))


def _open_equalities(E: Any, f: Any, memory: int) -> tuple[Dataset, Any, Floats]:
    """E, its rows (p, m) as CSR, and f (p,)."""
    f = bring_here(f)
    with call_rows("E"):
        dataset = _open(E, memory)
        left = scipy.sparse.csr_array(stored_rows(dataset, np.arange(dataset.n))[0].astype(np.float64))
    require_aligned(E, f, "f", dataset.names, "E")
    if not np.isfinite(left.data).all():
        raise BadInputError("E: 1 or more entries are not finite; correct them, or drop their rows")
    return dataset, left, _column(f, dataset.n, "f", "E")


def _column(values: Any, n: int, name: str, beside: str) -> Floats:
    if values is None:
        raise BadInputError(f"{name} is missing; give a number for each row of {beside}")
    given: Floats = exact(open_given(values_of(values, name), name)[...], np.float64, name)
    if given.shape not in ((n,), (n, 1), *([()] if n == 1 else [])):
        raise BadInputError(f"{name} has shape {given.shape}, expected {n} finite numbers, one for each row of {beside}")
    given = given.reshape(-1)
    if not np.isfinite(given).all():
        row = int((~np.isfinite(given)).argmax())
        what = "missing" if np.isnan(given[row]) else "infinite"
        raise BadInputError(f"{name}: the entry of row {row} is {what}, expected a finite number for each row of {beside}")
    return given


_SIDES = {"low": 0, "lower": 0, "high": 1, "upper": 1}
"""Columns of a frame of bounds."""


def _limits(bounds: Any, m: int, features: Sequence[str]) -> Floats:
    """Lower and upper bounds (m, 2) of the features, infinite where there are none. Those that have names are found by them."""
    if bounds is None:
        return np.tile([-np.inf, np.inf], (m, 1))
    bounds, names = _sides(bring_here(bounds))
    order = order_by(names, features, "bounds", "A")
    if names and not features:
        raise BadInputError("bounds: they are of variables by name, and A has no names of columns; give them in its order")
    try:
        table = open_given(bounds, "bounds")[...]
        pairs = np.broadcast_to(table if table.shape[-1:] == (2,) else (), (m, 2))
    except ValueError as error:
        if isinstance(error, BadInputError):
            raise
        raise BadInputError(f"bounds: expected a pair (low, high), or {m} pairs, one for each variable") from None
    if pairs.dtype == object:
        given = [(-np.inf if low is None else low, np.inf if high is None else high) for low, high in pairs.tolist()]
        pairs = np.array(given, object)
    found: Floats = exact(pairs if order is None else pairs[order], np.float64, "bounds")
    if not ((found[:, 0] < np.inf) & (found[:, 1] > -np.inf)).all():
        raise BadInputError("bounds: a pair that no number is within; None is no bound")
    return found


def _sides(bounds: Any) -> tuple[Any, tuple[str, ...]]:
    """Bounds as pairs, and the names of their variables, if they have any: a frame names both, a dict or series variables."""
    if hasattr(bounds, "lb") and hasattr(bounds, "ub"):  # of SciPy
        both = np.broadcast_arrays(array_of(bounds.lb, "bounds"), array_of(bounds.ub, "bounds"))
        return np.stack(both, axis=-1), ()
    index = getattr(bounds, "index", None) if hasattr(bounds, "iloc") else None
    names = () if index is None or type(index).__name__ == "RangeIndex" else tuple(map(str, index))
    if isinstance(bounds, Mapping):
        return list(bounds.values()), tuple(map(str, bounds))
    if not is_frame(bounds):
        return (list(bounds) if names else bounds), names
    if type(bounds.columns).__name__ == "RangeIndex":
        return bounds.to_numpy(), names
    frame = open_frame(bounds, "bounds")
    # a cell that is missing is no bound: pandas makes None one
    sides = {_SIDES.get(name): [None if is_missing(v) else v for v in frame[name].to_list()] for name in frame.columns}
    if set(sides) != {0, 1} or len(frame.columns) != 2:
        shown = ", ".join(frame.columns[:8])
        raise BadInputError(f"bounds: expected a frame of the columns low and high, or lower and upper, got {shown}")
    return list(zip(sides[0], sides[1], strict=True)), names


def _beside(left: Any, values: Floats) -> Any:
    return scipy.sparse.hstack([left, scipy.sparse.csr_array(values[:, None])], "csr")


def _homogenise_lazily(A: Any, sides: Sides) -> Any:
    da = sys.modules["dask.array"]
    beside = da.from_array(sides.right[:, None], chunks=(A.chunks[0], 1))
    rows = da.concatenate([-A.astype(np.float64), beside], axis=1).rechunk({1: -1})
    return da.concatenate([rows, da.from_array(sides.more.toarray(), chunks=-1)])
