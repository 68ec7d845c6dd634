"""Rows of cones as the checker multiplies with them, stored as arrays or sparse, with bounds of every rounding.

The largest singular value of sparse rows of a large cone is bounded from above by eigenvalues of |X'X|: of a matrix without
negative entries none is above max_i (Gw)_i / w_i for a positive w (Collatz and Wielandt; Horn and Johnson, Matrix Analysis,
2013, 8.1.26). Where that is not close to what a vector shows from below, X'X is an array, and its eigenvalues are bounded as
those of others are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # loads its parts when they are used
from numpy.typing import NDArray

from dfeas.data.storage.layout import rows_of
from dfeas.exact.arithmetic import TINY, UP, Floats, Indices, U, floor_of, gamma, largest_singular, longest, shortest

SMALL = 1 << 18
"""Entries of a cone, as an array of its features, up to which it is one."""
ROUNDS = 50
"""Of looking for parts; rows that are connected by longer ways are looked at together."""


def triangle(k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns (k (k + 1) / 2,) of the entries of an element: the lower triangle, column by column."""
    columns, rows = np.triu_indices(k)
    return rows, columns


def unit(kind: str, size: int, d: int) -> Floats:
    """The element e (d,), whose product with another one is the sum of its traces."""
    e = np.zeros(d)
    if kind == "s":
        rows, columns = triangle(size)
        e[rows == columns] = 1.0
    else:
        e[0] = 1.0
    return e


def bound_least(kind: str, size: int, s: Floats, off: Floats) -> Floats:
    """Lower bounds (c,) of the least eigenvalues of elements (c, d) that are off by at most ``off`` (c, d) in each entry."""
    if kind == "l":
        least = s[:, 0] - off[:, 0] * UP
        return np.asarray(least - 2 * U * np.abs(least))
    if kind == "q":
        first, radius = s[:, 0] - off[:, 0] * UP, longest(np.abs(s[:, 1:]) + off[:, 1:] * UP)
        return np.asarray((first - radius) - 4 * U * (np.abs(first) + radius))
    rows, columns = triangle(size)
    S = np.zeros((len(s), size, size))
    S[:, rows, columns] = s * np.where(rows == columns, 1.0, 1 / np.sqrt(2.0))
    # entries off the diagonal count twice, by half of their squares: |off| is the Frobenius norm; sqrt 2 is rounded, too
    wrong = longest(off + 4 * U * np.abs(s))
    floor = floor_of(S)
    return np.asarray((floor - wrong) - 2 * U * (np.abs(floor) + wrong))


@dataclass(frozen=True)
class ConeRows(ABC):
    """Rows of some cones of one kind and size."""

    kind: str
    size: int
    row: Indices  # (c,) their first rows, as stored
    rows: Any

    @property
    def dimension(self) -> int:
        return rows_of(self.kind, self.size)

    @property
    @abstractmethod
    def terms(self) -> int:
        """Terms of a sum of all rows, at most."""

    @abstractmethod
    def most(self) -> Floats:
        """The greatest magnitude (c,) of each cone."""

    @abstractmethod
    def scores(self, y: Floats) -> tuple[Floats, Floats]:
        """X_c y (c, d), and how far they are off at most."""

    @abstractmethod
    def frobenius(self) -> Floats:
        """Upper bounds (c,) of the lengths of all entries together."""

    def norms(self, some: Indices) -> tuple[Floats, Floats]:
        """Bounds (s,) from below and above of the norms of some of the cones, see ``dfeas.cones.algebra``."""
        if self.kind == "s":
            return self.bound_singular(some, 0)
        below, above = self.bound_first(some)
        if self.kind == "q":
            low, high = self.bound_singular(some, 1)
            below, above = (below + low) * (1 - 2 * U), (above + high) * UP
        return below, above

    @abstractmethod
    def bound_first(self, some: Indices) -> tuple[Floats, Floats]:
        """Bounds (s,) from below and above of the lengths of the first rows of some of the cones."""

    @abstractmethod
    def bound_singular(self, some: Indices, first: int) -> tuple[Floats, Floats]:
        """The same of the largest singular values of their rows from ``first`` on."""

    @abstractmethod
    def sums(self, factor: Floats) -> tuple[Floats, Floats]:
        """All rows times factors (c, d), (m,), and the sum of their magnitudes."""


@dataclass(frozen=True)
class DenseConeRows(ConeRows):
    """Rows (c, d, m) that are stored dense."""

    @property
    def terms(self) -> int:
        return int(self.rows.shape[0] * self.rows.shape[1])

    def most(self) -> Floats:
        return np.asarray(np.abs(self.rows).max(axis=(1, 2)))

    def scores(self, y: Floats) -> tuple[Floats, Floats]:
        return self.rows @ y, off(len(y), np.abs(self.rows) @ np.abs(y))

    def frobenius(self) -> Floats:
        return longest(longest(self.rows))

    def bound_first(self, some: Indices) -> tuple[Floats, Floats]:
        return shortest(self.rows[some, 0]), longest(self.rows[some, 0])

    def bound_singular(self, some: Indices, first: int) -> tuple[Floats, Floats]:
        return largest_singular(self.rows[some, first:])

    def sums(self, factor: Floats) -> tuple[Floats, Floats]:
        flat, weights = self.rows.reshape(-1, self.rows.shape[2]), factor.reshape(-1)
        return weights @ flat, np.abs(weights) @ np.abs(flat)


@dataclass(frozen=True)
class SparseConeRows(ConeRows):
    """Rows (c d, m) of a CSR matrix, each feature of a row once."""

    @property
    def terms(self) -> int:
        return int(np.bincount(self.rows.indices, minlength=1).max())

    @property
    def _cone(self) -> Indices:
        count = np.diff(self.rows.indptr[:: self.dimension])
        return np.repeat(np.arange(len(count)), count)

    def most(self) -> Floats:
        most = np.zeros(len(self.row))
        np.maximum.at(most, self._cone, np.abs(self.rows.data))
        return most

    def scores(self, y: Floats) -> tuple[Floats, Floats]:
        terms = int(np.diff(self.rows.indptr).max(initial=0))
        return (self.rows @ y).reshape(-1, self.dimension), off(terms, abs(self.rows) @ np.abs(y)).reshape(-1, self.dimension)

    def frobenius(self) -> Floats:
        cone, most = self._cone, self.most()
        scale = np.where(most > 0, most, 1.0)
        squares = np.bincount(cone, (self.rows.data / scale[cone]) ** 2, minlength=len(scale))
        return np.asarray(np.sqrt(squares) * scale * (1 + gamma(len(cone) + 8)) * UP)

    def bound_first(self, some: Indices) -> tuple[Floats, Floats]:
        above = SparseConeRows("l", 1, some, self.rows[some * self.dimension]).frobenius()
        return above * (1 - 3 * gamma(len(self.rows.data) + 8)), above

    def bound_singular(self, some: Indices, first: int) -> tuple[Floats, Floats]:
        rows = some[:, None] * self.dimension + np.arange(first, self.dimension)
        return bound_singular_values(self.rows[rows.reshape(-1)], rows.shape[1])

    def sums(self, factor: Floats) -> tuple[Floats, Floats]:
        weights = factor.reshape(-1)
        return self.rows.T @ weights, abs(self.rows).T @ np.abs(weights)


def off(terms: int, magnitudes: Floats) -> Floats:
    """How far products of so many terms are off, at most, of rows that are themselves the rounding of a rounding."""
    terms += 2
    return np.asarray(gamma(terms) / (1 - 2 * gamma(terms)) * magnitudes * UP + 4 * terms * TINY)


def drop_features(rows: Any, d: int) -> tuple[Indices, Any]:
    """Room (c,) for the features of each cone, and what makes arrays (s, d, width) of some cones without the others."""
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    cone, m = row // d, rows.shape[1]
    key, where = np.unique(cone * m + rows.indices, return_inverse=True)
    first = np.searchsorted(key, m * np.arange(rows.shape[0] // d + 1))
    place = where.reshape(-1) - first[cone]

    def dense(some: Indices, width: int) -> Floats:
        at = np.full(len(first) - 1, -1)
        at[some] = np.arange(len(some))
        own = np.flatnonzero(at[cone] >= 0)
        found = np.zeros((len(some), d, width))
        found[at[cone[own]], row[own] % d, place[own]] = rows.data[own]
        return found

    return 2 ** np.ceil(np.log2(np.maximum(1, np.diff(first)))).astype(np.int64), dense


def bound_singular_values(rows: Any, d: int) -> tuple[Floats, Floats]:
    """Bounds (c,) from below and above of the largest singular values of matrices (d, m) below each other, of a CSR matrix."""
    below, above = np.zeros(rows.shape[0] // d), np.zeros(rows.shape[0] // d)
    for owner, part in split_rows(rows, d):
        size = part.shape[0] // len(owner)
        widths, dense = drop_features(part, size)
        for width in np.unique(widths).tolist():
            alike = np.flatnonzero(widths == width)
            if size * width <= SMALL:
                low, high = largest_singular(dense(alike, width))
            else:
                each = [sigma_of_large(part[i * size : (i + 1) * size]) for i in alike.tolist()]
                low, high = np.array(each).T
            np.maximum.at(below, owner[alike], low)
            np.maximum.at(above, owner[alike], high)
    return below, above


def split_rows(rows: Any, d: int) -> Iterator[tuple[Indices, Any]]:
    """Rows of matrices (d, m) in parts, those of as many rows at a time, with the matrix (p,) that each part is of. No feature
    of a matrix is in two of its parts, so XX' has no entry but in one, and its largest eigenvalue is that of a part.
    """
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    feature = np.unique(row // d * rows.shape[1] + rows.indices, return_inverse=True)[1].reshape(-1)
    part = np.arange(rows.shape[0])  # the first row of the part that each row is in
    for _ in range(ROUNDS):
        least = np.full(len(feature), len(part))
        np.minimum.at(least, feature, part[row])
        before = part.copy()
        np.minimum.at(part, row, least[feature])
        if np.array_equal(part, before):  # all rows of a feature are in one part
            break
    else:
        part = part // d * d  # as if all rows of a matrix had one
    order = np.argsort(part, kind="stable")
    order = order[np.diff(rows.indptr)[order] > 0]
    first, begin, many = np.unique(part[order], return_index=True, return_counts=True)
    for size in np.unique(many).tolist():
        alike = np.flatnonzero(many == size)
        yield first[alike] // d, rows[order[(begin[alike, None] + np.arange(size)).reshape(-1)]]


def sigma_of_large(rows: Any) -> tuple[float, float]:
    """Bounds from below and above of the largest singular value of a CSR matrix."""
    filled = rows[np.flatnonzero(np.diff(rows.indptr))]
    features, place = np.unique(filled.indices, return_inverse=True)
    if not len(features):
        return 0.0, 0.0
    power = int(np.frexp(np.abs(filled.data).max())[1])  # by a power of two squares neither overflow nor underflow
    shape = (filled.shape[0], len(features))
    X = scipy.sparse.csr_array((np.ldexp(filled.data, -power), place.reshape(-1), filled.indptr), shape=shape)
    if shape[1] > shape[0]:
        X = X.T.tocsr()
    above = float(longest(X.data))
    gram = (X.T @ X).tocsr()
    terms = int(np.bincount(X.indices).max())
    below = _bound_from_below(X, _find_leading_vector(gram))
    above = min(above, _bound_from_above(X, gram, terms))
    # bounds that are so near are good enough; X'X, or XX', is an array up to this order
    if above > below * (1 + 1e-6) and gram.shape[0] <= 1000:
        array = gram.toarray()
        wrong = 2 * gamma(terms) * above**2 * shape[0] * UP if terms > 1 else 2 * U * above**2
        ceiling = -float(floor_of(-array[None])[0]) + wrong
        above = min(above, float(np.sqrt(max(ceiling, 0.0))) * UP) if np.isfinite(ceiling) else above
        below = max(below, _bound_from_below(X, np.linalg.eigh(array)[1][:, -1]))
    return float(np.ldexp(below, power)), float(np.ldexp(above, power))


def _find_leading_vector(G: Any) -> Floats:
    """A vector (u,) that a matrix makes about as much longer as any."""
    v = 1 + 0.5 * np.cos(np.arange(G.shape[0]))
    for _ in range(100):  # steps of the power method: its vectors say where to look, and are not believed
        w = G @ v
        size = float(np.abs(w).max())
        if size == 0:
            break
        v = w / size
    return np.asarray(v)


def _bound_from_below(X: Any, v: Floats) -> float:
    """A lower bound of the largest singular value, by the length of Xv."""
    terms = int(np.diff(X.indptr).max())
    wrong = float(longest(off(terms, abs(X) @ np.abs(v))))
    return max(0.0, (float(shortest(X @ v)) - wrong) / float(longest(v))) * (1 - 4 * U)


def _bound_from_above(X: Any, G: Any, terms: int) -> float:
    """An upper bound of the largest singular value, from G = X'X as it was computed by sums of so many terms."""
    size = abs(G)
    w = _find_leading_vector(size)
    if not (w > 0).all():
        return float("inf")
    longest_row = int(np.diff(G.indptr).max())
    image = size @ w * (1 + gamma(longest_row + 2)) * UP
    image += gamma(terms + 2) * (abs(X).T @ (abs(X) @ w)) * (1 + gamma(X.shape[0] + X.shape[1])) * UP
    return float(np.sqrt((image / w).max() * UP) * UP)
