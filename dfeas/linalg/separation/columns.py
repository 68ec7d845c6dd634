"""Columns in memory, seen through the few products that the solvers need; sparse ones are in ``sparse_columns``, and few are
multiplied out: where a product takes microseconds, what it takes to call one is what costs.

A column is a_j = scale_j times the stored row j. Rows keep their dtype; sums are taken in float64 where it matters: a product
in float32 is wrong by about 2**-24 |w|, so scores that are not clearly above a level are computed again in float64.

With feature factors D the solver works on the columns D a_j with v, and w = D v: a'w = (D a)'v. Features of wildly different
scale become alike, and the sign of a score means the same.

What is dense is of the size of d, or of the square of at most ``direct`` columns or features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dfeas.linalg.blas import beat, cut_evenly, side_by_side
from dfeas.linalg.points import Array, Floats, Indices, buffer, convert_entries, fresh, gather_rows
from dfeas.linalg.separation import AT
from dfeas.records import replace


class ColumnMatrix(Struct, frozen=True, dict=True):
    """c columns of dimension d, one a row."""

    points: Any  # (c, d), an array in C order
    scale: Floats  # (c,)
    feature: Floats  # (d,) D, factors of features, > 0
    exact: bool = False  # all products in float64
    direct: int = AT.direct  # largest system that is factorised
    room: int = AT.basis_bytes  # largest float64 copy of some columns, or basis

    @property
    def wide(self) -> bool:
        """Whether a basis is too large: it is looked for among a few columns, of sparse ones with the features they have."""
        c, d = self.shape
        return 8 * min(c, d) * d > self.room

    @property
    def shape(self) -> tuple[int, int]:
        return self.points.shape[0], self.points.shape[1]

    @property
    def large(self) -> bool:
        """Whether it pays to look at some columns, or at products with vectors, before a Gram matrix of all."""
        return self.wide or int(self.points.size) >= AT.large

    @cached_property
    def single(self) -> bool:
        return self.points.dtype == np.float32 and not self.exact

    def equilibrate(self) -> ColumnMatrix:
        """The same columns with features brought to one size, if their sizes differ much, without what may be rounding."""
        if self.single and self._are_alike():
            return self
        size = np.sqrt(self.squares() / max(1, self.shape[0]))
        some, most = size > 0, float(size.max(initial=0.0))
        if not some.any() or most <= 30.0 * size[some].min():
            return self
        noise = 2.0**-48 * most  # smaller ones may be rounding of the largest, and then a separator along them is as thin
        factor = np.where(size > noise, 1 / np.maximum(size, noise), 1 / most)
        return self._with(factor / factor.min())

    def even_out(self) -> ColumnMatrix:
        """With features of one size as far as some columns tell, in products of the same precision."""
        seen = min(300, self.shape[0], max(50, (1 << 17) // self.shape[1]))
        some = self.some(np.arange(seen) * self.shape[0] // seen)
        if some._are_alike():
            return self
        size = np.sqrt(some.squares())
        return replace(self, feature=size.max() / np.where(size > 0, size, size.max()))

    def _are_alike(self) -> bool:
        """Whether sizes of features certainly differ little: by sums in float32, a third of what those of float64 take."""
        squares, mass = np.zeros(self.shape[1]), (self.scale**2).astype(np.float32)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            for here, part in self._stored_tiles(range(self.shape[0]), single=True):
                squares += mass[here] @ np.multiply(part, part, out=buffer("squares", part.shape, part.dtype))
            return bool(squares.max() <= 25.0**2 * squares.min())

    def even_units(self) -> ColumnMatrix | None:
        """Columns of length 1 again where each feature is seen in a power of two for its unit; None where that is no matter."""
        c, seen = self.shape[0], 300  # points that tell whether sizes of features are as far apart as 2^36
        even = replace(self, scale=np.sign(self.scale), exact=True)
        with np.errstate(all="ignore"):
            size = (even.some(np.arange(0, c, c // seen)) if c > seen else even).squares()
            if not self.scale.all() or not size.any() or size.max() <= 2.0**72 * size[size > 0].min():
                return None
            for _ in range(3):  # units of points first: lengths of columns hide them
                size = even.squares()
                even = replace(even, feature=np.ldexp(even.feature, np.where(size > 0, -np.frexp(size)[1] // 2, 0)))
                even = replace(even, scale=even.scale / even.lengths(np.arange(c)))
        return even if np.isfinite(even.feature).all() and np.isfinite(even.scale).all() and even.scale.all() else None

    def _with(self, factor: Floats) -> ColumnMatrix:
        """With more factors (d,) of features, in float64."""
        return replace(self, feature=self.feature * factor, exact=True)

    def vector(self, v: Floats) -> Floats:
        """The w (d,) of a v, with (D a)'v = a'w."""
        return self.feature * v

    def coordinates(self, w: Floats) -> Floats:
        return w / self.feature

    def weights(self, x: Floats, rows: Indices | slice = slice(None)) -> Floats:
        """Weights of the columns a_j whose sum is zero where x weighs some columns, as the solver sees them, to zero."""
        return x

    def lowest(self, score: Floats) -> float:
        """The least a_j'w of such scores."""
        return float(score.min())

    def squares(self) -> Floats:
        """Sums (d,) of the squares of each feature."""
        squares = np.zeros(self.shape[1])
        for _, part in self._tiles(range(self.shape[0])):
            squares += np.einsum("ij,ij->j", part, part)
        return squares

    def some(self, rows: Indices) -> ColumnMatrix:
        if len(rows) * self.shape[1] <= AT.tile_bytes:
            return replace(self, points=self.points[rows], scale=self.scale[rows])
        return self._take_into(fresh((len(rows), self.shape[1]), self.points.dtype), rows)

    def _take_into(self, points: NDArray[Any], rows: Indices) -> ColumnMatrix:
        """Some columns, copied into memory for their points (r, d)."""
        halves = cut_evenly(len(rows), 2)

        def take(i: int) -> None:
            # another mode would make a copy first
            np.take(self.points, rows[halves[i]], axis=0, out=points[halves[i]], mode="clip")

        side_by_side(take, 2)  # most of it is what fresh memory takes
        return replace(self, points=points, scale=self.scale[rows])

    def gather_active(self, active: NDArray[np.bool_]) -> tuple[ColumnMatrix, Indices | slice]:
        """What is multiplied in place of active columns, and where it is: they alone, unless nearly all are. It holds until the
        next call, in memory that stays with this matrix: fresh memory takes as long as a product.
        """
        rows = np.flatnonzero(active)
        if len(rows) > (AT.gathered if self.points.nbytes <= AT.gathered_bytes else 0.5) * len(active):
            return self, slice(None)
        held = vars(self).get("active")
        if held is None or len(held) < len(rows):
            self.forget_active()
            del held
            held = vars(self)["active"] = fresh((len(rows), self.shape[1]), self.points.dtype)
        return self._take_into(held[: len(rows)], rows), rows

    def forget_active(self) -> None:
        """Free the memory of active columns."""
        vars(self).pop("active", None)

    def part(self, rows: Indices) -> ColumnMatrix:
        """Some columns, by ascending rows, in float64 products; of all of them no copy is made."""
        return replace(self if len(rows) == self.shape[0] else self.some(rows), exact=True)

    def take_columns(self, rows: Indices) -> Any:
        """Columns D a_j (r, d) of some rows in float64, as products take them."""
        return self.gather(rows)

    def has_room(self, rows: Indices) -> bool:
        """Whether there is room for a basis of some columns, without features that do not matter to them."""
        return 8 * len(rows) * self.shape[1] <= self.room

    def within(self, rows: Indices) -> ColumnMatrix:
        """Some columns, without features that do not matter to them."""
        return self.part(rows)

    def project_to_span(self) -> ColumnMatrix:
        """Columns D a_j in an orthonormal basis of the space they span, where that has fewer dimensions: a QR turns them."""
        c, d = self.shape
        if c >= d:
            return self
        factor = np.asarray(np.linalg.qr(self.gather(slice(None)).T, mode="r"))
        return ColumnMatrix(np.ascontiguousarray(factor.T), np.ones(c), np.ones(c), exact=True)

    def gather(self, rows: Indices | slice) -> Floats:
        """Columns D a_j (r, d) of some rows in float64."""
        chosen: Floats = self.points[rows].astype(np.float64)
        chosen *= self.scale[rows, None]
        if (self.feature != 1).any():
            chosen *= self.feature
        return chosen

    def _tiles(self, rows: Indices | range, least: int = 1) -> Iterator[tuple[slice, Floats]]:
        """(positions, columns) of some rows, or of a range of them; ``least`` of them at a time. The next take their memory."""
        for here, chosen in self._cut(rows, least):
            some = gather_rows(self.points, chosen)
            columns: Floats = buffer("columns", some.shape, np.dtype(np.float64))
            np.copyto(columns, some)
            columns *= self.scale[chosen, None]
            if (self.feature != 1).any():
                columns *= self.feature
            yield here, columns

    def _stored_tiles(self, rows: Indices | range, *, single: bool = False) -> Iterator[tuple[slice, Any]]:
        """(positions, rows without factors) of the same in float64, or float32; the next ones take their memory."""
        for here, chosen in self._cut(rows):
            yield here, convert_entries(gather_rows(self.points, chosen), np.dtype(np.float32 if single else np.float64))

    def _cut(self, rows: Indices | range, least: int = 1) -> Iterator[tuple[slice, Indices | slice]]:
        """Positions, and the rows there."""
        count = len(rows)
        size = max(least, AT.tile_bytes // (8 * self.shape[1]))
        for first in range(0, count, size):
            here = slice(first, min(count, first + size))
            yield here, _place(rows[here])

    def _groups(self, count: int, most: int = AT.groups) -> list[slice]:
        return cut_evenly(count, most if count * self.shape[1] >= 4 * AT.worth else 1)

    def scores(self, v: Floats, level: float = 1.0, within: float = 0.0) -> Floats:
        """Scores (c,) (D a_j)'v, wrong by ``within`` at most, or in float64 where they are not clearly above ``level``."""
        if not self.single or level == np.inf:
            return self._wide(v)
        return self.settle(self._narrow((self.feature * v).astype(np.float32)), v, level, within)

    def settle(self, score: Floats, v: Floats, level: float = 1.0, within: float = 0.0) -> Floats:
        """``scores`` from some (c,) that are wrong by as much as products in float32 are, which are overwritten."""
        error = AT.narrow * float(np.linalg.norm(v))
        if not self.single or error <= within:
            return score
        unsure = np.flatnonzero(score < level + error)
        if 3 * len(unsure) > len(score):
            return self._wide(v)
        score[unsure] = self.scores_of(unsure, v)
        return score

    def _narrow(self, v: NDArray[np.float32]) -> Floats:
        """Scores (c,) in products of float32, of a v that has the feature factors."""
        score = np.empty(self.shape[0])
        groups = self._groups(len(score))

        def multiply(g: int) -> None:
            rows = groups[g]
            with np.errstate(invalid="ignore"):  # OpenBLAS computes on lanes that it then throws away
                np.multiply(self.points[rows] @ v, self.scale[rows], out=score[rows])

        side_by_side(multiply, len(groups))
        return score

    def products(self, vectors: Floats) -> Array:
        """Scores (k, c) of vectors (k, d), in the precision of the points."""
        products: Array = (vectors * self.feature).astype(self.points.dtype) @ self.points.T
        products *= self.scale.astype(products.dtype)
        return products

    def scores_of(self, rows: Indices, v: Floats) -> Floats:
        return self._products(rows, self.feature * v)

    def _wide(self, v: Floats) -> Floats:
        rows, wide = range(self.shape[0]), np.empty(self.shape[0])
        groups = self._groups(len(wide))

        def multiply(g: int) -> None:
            wide[groups[g]] = self._products(rows[groups[g]], self.feature * v)

        side_by_side(multiply, len(groups))
        return wide

    def _products(self, rows: Indices | range, v: Floats) -> Floats:
        """Products (r,) of some columns, without feature factors, in float64."""
        products = np.empty(len(rows))
        for here, part in self._stored_tiles(rows):
            products[here] = part @ v
        return products * self.scale[_place(rows)]

    def combine(self, x: Floats, less: Floats | float = 0.0, share: float = 0.0) -> Floats:
        """sum_j x_j D a_j - ``less`` (d,) over the entries that are not zero; in float64, or wrong by a share of its length."""
        if share and self.single:
            fast = self._add_columns(x, single=True) - less
            if AT.narrow * float(np.abs(x).sum()) <= share * float(np.linalg.norm(fast)):
                return fast
        return self._add_columns(x) - less

    def _add_columns(self, x: Floats, *, single: bool = False) -> Floats:
        some = np.flatnonzero(x)
        rows = range(len(x)) if 2 * len(some) > len(x) else some
        weight = x * self.scale
        groups = self._groups(len(rows))

        def add(g: int) -> Floats:
            mine, total = rows[groups[g]], np.zeros(self.shape[1])
            mass = weight[_place(mine)]
            with np.errstate(over="ignore", invalid="ignore"):  # of columns that float32 does not hold
                for here, part in self._stored_tiles(mine, single=single):
                    total += mass[here].astype(part.dtype) @ part
            return total

        return np.asarray(self.feature * np.sum(side_by_side(add, len(groups)), axis=0))

    def combine_rows(self, rows: Indices, weight: Floats) -> Floats:
        """sum_j weight_j D a_j (d,) over some rows, in float64."""
        x = np.zeros(self.shape[0])
        x[rows] = weight
        return self.combine(x)

    def lengths(self, rows: Indices) -> Floats:
        length = np.empty(len(rows))
        for here, part in self._tiles(rows):
            length[here] = np.sqrt(np.einsum("ij,ij->i", part, part))
        return length

    def normal(self, active: NDArray[np.bool_]) -> Callable[[Floats], Floats]:
        """sum over active columns of D a_j (D a_j)'v (d,), for many v; in the precision of the rows unless ``exact``. A tile is
        multiplied twice while the cache holds it, so that a product reads the columns once.
        """
        square = self.scale**2 * active
        groups = self._groups(len(square))

        def product(v: Floats) -> Floats:
            question = (self.feature * v).astype(np.float32 if self.single else np.float64)

            def add(g: int) -> Floats:
                factor, total = square[groups[g]], np.zeros(self.shape[1])
                for here, tile in self._stored_tiles(range(len(square))[groups[g]], single=self.single):
                    total += ((tile @ question) * factor[here]).astype(tile.dtype) @ tile
                return total

            return np.asarray(self.feature * np.sum(side_by_side(add, len(groups)), axis=0))

        return product

    def gram(self, rows: Indices) -> tuple[Floats, Floats]:
        """sum_j D a_j (D a_j)' (d, d) and sum_j D a_j (d,) over some rows, in float64."""
        d = self.shape[1]
        pieces, least = max(1, min(AT.groups, (256 << 20) // (8 * d * d))), max(1, d // 4)
        # two tiles of each piece before it is asked whether to go on: with 4000 features they take half a second
        most = 2 * pieces * max(least, AT.tile_bytes // (8 * d))
        square, total = self._gram_of(rows[:most], pieces, least)
        for first in range(most, len(rows), most):
            beat()
            more, rest = self._gram_of(rows[first : first + most], pieces, least)
            square += more
            total += rest
        return square, total

    def _gram_of(self, rows: Indices, pieces: int, least: int) -> tuple[Floats, Floats]:
        """The same by so many pieces side by side, of tiles of so many rows: fewer take as long to sum as to multiply."""
        d, groups = self.shape[1], self._groups(len(rows), pieces)

        def add(g: int) -> tuple[Floats, Floats]:
            square, total = np.zeros((d, d)), np.zeros(d)
            for _, part in self._tiles(rows[groups[g]], least):
                square += part.T @ part
                total += part.sum(axis=0)
            return square, total

        parts = side_by_side(add, len(groups))
        square, total = parts[0]
        for more, rest in parts[1:]:
            square += more
            total += rest
        return square, total


def _place(rows: Indices | range) -> Indices | slice:
    return slice(rows.start, rows.stop) if isinstance(rows, range) else rows


class FewColumns(ColumnMatrix, frozen=True):
    """c columns of dimension d, one a row: ``points`` (c, d) are D a_j in float64, and ``scale`` is 1."""

    @classmethod
    def of(cls, matrix: ColumnMatrix, rows: Indices | slice = slice(None)) -> FewColumns:
        """Some columns of another matrix."""
        columns = matrix.gather(rows)
        return cls(columns, np.ones(len(columns)), matrix.feature, True, matrix.direct, matrix.room)

    def _with(self, factor: Floats) -> ColumnMatrix:
        return replace(self, points=self.points * factor, feature=self.feature * factor)

    def gather(self, rows: Indices | slice) -> Floats:
        chosen: Floats = self.points[rows]
        return chosen

    def _tiles(self, rows: Indices | range, least: int = 1) -> Iterator[tuple[slice, Floats]]:
        for here, chosen in self._cut(rows, least):
            yield here, self.points[chosen]

    def scores_of(self, rows: Indices, v: Floats) -> Floats:
        score: Floats = self.points[rows] @ v
        return score

    def scores(self, v: Floats, level: float = 1.0, within: float = 0.0) -> Floats:
        score: Floats = self.points @ v
        return score

    def _add_columns(self, x: Floats, *, single: bool = False) -> Floats:
        some = x.nonzero()[0]
        total: Floats = x[some] @ self.points[some] if 4 * len(some) < len(x) else x @ self.points
        return total

    def normal(self, active: NDArray[np.bool_]) -> Callable[[Floats], Floats]:
        part: Floats = self.points[active]
        return lambda v: (part @ v) @ part

    def gram(self, rows: Indices) -> tuple[Floats, Floats]:
        part: Floats = self.points if len(rows) == len(self.points) else self.points[rows]
        return part.T @ part, part.sum(axis=0)


def multiply_out(matrix: ColumnMatrix, rows: Indices | None = None) -> ColumnMatrix:
    """The same columns, or some of them, multiplied out where they are few."""
    count = matrix.shape[0] if rows is None else len(rows)
    if count * matrix.shape[1] < AT.worth and not isinstance(matrix, FewColumns):
        return FewColumns.of(matrix, slice(None) if rows is None else rows)
    return matrix if rows is None else matrix.some(rows)
