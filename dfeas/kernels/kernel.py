"""Kernels, normalised: K(x, z) / sqrt(K(x, x) K(z, z)) is the inner product of two unit vectors of the feature space.

A tile of it, all x of one block against all z of another one, is one matrix product of prepared points and one function of the
result in place (for exponents see ``distances``). A polynomial is a power of the cosine of x and z with one more
feature: gamma and coef0 count beside each other only, and no power of a length is taken, which float64 might not hold.

Reference: Schoelkopf and Smola 2002; Ramdas and Pena 2014, section 3.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy  # loads its parts when they are used: every command would wait for them
from numpy.typing import NDArray

from dfeas.data.views import stored_rows
from dfeas.errors import BadInputError, UsageError, none_of
from dfeas.geometry.protocol import Mend, Trained
from dfeas.kernels.distances import Distance, Prepared, inner, squares
from dfeas.linalg import csr
from dfeas.linalg.csr import Floats
from dfeas.linalg.points import Array, Points, any_entry, dense, in_type, is_dense, largest, row_slice, take_rows, working_type
from dfeas.methods.vector import Expansion
from dfeas.passes.block import against
from dfeas.problem import DISTANCES, KERNELS, PARAMETERS, PRODUCTS, Function

SQUARED = (1e-140, 1e140)
"""Lengths whose squares float64 holds with all digits."""


TILE_BYTES = 4 << 20
"""Kernel values of some points with all of an expansion, at a time."""


@dataclass(frozen=True)
class NormalisedKernel:
    """A kernel and its parameters; 0 where a kernel has none."""

    name: str
    gamma: float = 0.0
    degree: int = 0
    coef0: float = 0.0
    function: Function | None = None  # of "callable"

    @property
    def of_products(self) -> bool:
        """Whether products of prepared points in float64 are the kernel but for one elementwise function."""
        return self.name != "callable"

    @property
    def of_distance(self) -> bool:
        """Whether it is a function of a distance."""
        return self.name in DISTANCES

    @property
    def zero_at_zero(self) -> bool:
        """Whether the point 0 is the origin of the kernel's space, too."""
        return self.name in ("linear", "cosine") or (self.name == "polynomial" and self.coef0 == 0)

    def nonzero(self, points: Points) -> NDArray[np.bool_]:
        """Whether K(x, x) > 0 (b,), of a kernel that is no function of Python; it is 1 then."""
        return any_entry(points) if self.zero_at_zero else np.ones(points.shape[0], bool)

    def middle(self, points: Points) -> Floats | None:
        """Where points on either side of tiles in float64 are best seen from; None where it makes no difference."""
        return self._distance.middle(points) if self.of_distance else None

    def prepare(self, points: Points, single: bool, middle: Floats | None = None) -> tuple[Prepared, Prepared]:
        """Points (b, m) for the left and for the right of ``tile``, in float32 or float64; both sides have one middle."""
        if self.of_distance:
            return self._distance.prepare(points, single, None if single else middle)
        features = points
        if self.name in PRODUCTS:
            dtype: Any = np.float32 if single else np.float64
            features = in_type(self._unit(in_type(points, np.float64)), dtype)
        return (Prepared(points, features),) * 2

    @property
    def _distance(self) -> Distance:
        return Distance(self.name, self.gamma)

    def _unit(self, wide: Points) -> Points:
        """Vectors whose inner products are the kernel, but for its power; zero where K(x, x) is, which no power decides."""
        if self.name == "polynomial" and not self.zero_at_zero:
            root, more = np.sqrt(self.gamma), np.full((wide.shape[0], 1), np.sqrt(self.coef0))
            if is_dense(wide):
                wide = np.hstack([root * wide, more])
            else:
                wide = csr.with_columns(csr.with_data(wide, root * wide.data), more)
        with np.errstate(over="ignore"):
            norm = np.sqrt(squares(wide))
        lost = np.flatnonzero(~((norm > SQUARED[0]) & (norm < SQUARED[1])))
        if len(lost):
            size = np.ones(len(norm))
            size[lost] = np.ldexp(1.0, np.frexp(largest(take_rows(wide, lost)))[1].clip(-1000, 1000))
            wide = _over(wide, size)
            norm[lost] = np.sqrt(squares(take_rows(wide, lost)))
        return _over(wide, np.where(norm > 0, norm, 1.0))

    def tile(self, left: Prepared, right: Prepared) -> Array:
        """The kernel (b, c) of prepared points. Raises BadInputError for what a function must not return."""
        if self.of_distance:
            exponents = self._distance.exponents(left, right)
            return np.asarray(np.exp(exponents, out=exponents))
        if self.name == "callable":
            return self.evaluate(left.points, right.points)
        product = inner(left.features, right.features)
        return _power(product, self.degree) if self.name == "polynomial" else product

    def _diagonal(self, points: Points) -> Floats:
        """K(x, x) (b,) of a function. Raises BadInputError when that is anything but a number >= 0."""
        diagonal = np.empty(points.shape[0])
        diagonal_rows = 64  # points at a time whose K(x, x) is asked of a function
        for first in range(0, len(diagonal), diagonal_rows):
            some = row_slice(points, slice(first, first + diagonal_rows))
            diagonal[first : first + diagonal_rows] = np.diagonal(self._values(some, some))
        if not (diagonal >= 0).all():
            raise BadInputError(f"the kernel function is not positive: K(x, x) = {diagonal.min():g} for some point x")
        return diagonal

    def _values(self, left: Points, right: Points) -> Floats:
        assert self.function is not None, "a callable kernel has its function"
        answer: Any = self.function(left, right)
        expected = left.shape[0], right.shape[0]
        values = np.asarray(answer.toarray() if hasattr(answer, "toarray") else answer, np.float64)
        if values.shape != expected:
            raise BadInputError(
                f"the kernel function returned shape {values.shape} for blocks of {expected[0]} and {expected[1]} points, "
                f"expected {expected}"
            )
        if not np.isfinite(values).all():
            raise BadInputError("the kernel function returned numbers that are not finite")
        return values

    def evaluate(self, left: Points, right: Points) -> Floats:
        """What a function says of points (b, m) and (c, m), normalised (b, c). Raises BadInputError for what it must not."""
        ours, theirs = self._diagonal(left)[:, None], self._diagonal(right)
        ends = [np.sqrt(np.where(square == 0, 1.0, square)) for square in (ours, theirs)]
        return np.asarray(np.where((ours == 0) | (theirs == 0), 0.0, self._values(left, right) / ends[0] / ends[1]))

    def to_text(self) -> str:
        return json.dumps({name: getattr(self, name) for name in ("name", "gamma", "degree", "coef0")})

    @classmethod
    def from_text(cls, text: str, function: Function | None = None) -> NormalisedKernel:
        """From ``to_text``. Raises BadInputError when it is none, or when it needs a function that is not given."""
        try:
            values = json.loads(text)
            kernel = cls(str(values["name"]), float(values["gamma"]), int(values["degree"]), float(values["coef0"]), function)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise BadInputError(f"the kernel {text!r} cannot be read: {error}") from None
        if kernel.name == "callable" and function is None:
            raise BadInputError("this was solved with a kernel function of Python, which is needed again: kernel=function")
        if kernel.name != "callable":
            _check(kernel)
        return kernel

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={getattr(self, name):g}' for name in PARAMETERS.get(self.name, ()))})"


def _over(points: Points, sizes: Floats) -> Points:
    """Each point (b, m) in float64 over a size (b,)."""
    return np.asarray(points / sizes[:, None]) if is_dense(points) else csr.scale_rows(points, 1 / sizes)


def _power(tile: Array, degree: int) -> Array:
    """In place; powers by products, for ``**`` takes as long as an exponential."""
    if degree == 2:
        return np.asarray(np.multiply(tile, tile, out=tile))
    if degree == 3:
        return np.asarray(np.multiply(tile, tile * tile, out=tile))
    return np.asarray(np.power(tile, degree, out=tile))


def _check(kernel: NormalisedKernel) -> None:
    """Raises UsageError for a kernel that is none, or is not positive definite."""
    if kernel.name not in KERNELS:
        raise UsageError(f"unknown kernel {none_of(kernel.name, KERNELS)}, or a function of two blocks of points")
    if kernel.name in (*DISTANCES, "polynomial") and not 0 < kernel.gamma < np.inf:
        raise UsageError(f"gamma {kernel.gamma:g} of the {kernel.name} kernel: expected a number above 0")
    most_degree = 1_000_000  # of a polynomial: powers of numbers up to 1 lose as many units in the last place
    if kernel.name == "polynomial" and not 1 <= kernel.degree <= most_degree:
        raise UsageError(f"degree {kernel.degree} of the polynomial kernel: expected a whole number from 1 to {most_degree}")
    if kernel.name == "polynomial" and not 0 <= kernel.coef0 < np.inf:
        raise UsageError(
            f"coef0 {kernel.coef0:g} of the polynomial kernel: expected a number of at least 0, or it is no kernel"
        )


def kernel_of(
    name: str | Function, gamma: float | None = None, degree: int | None = None, coef0: float | None = None
) -> tuple[NormalisedKernel, bool]:
    """The kernel of some options, and whether gamma is still to be found from the data (it is 1 until then). A polynomial has a
    degree of 3 and a coef0 of 1, if none are given. Raises UsageError for options that make no sense.
    """
    if callable(name):
        if any(value is not None for value in (gamma, degree, coef0)):
            raise UsageError("a kernel function has its own parameters: leave out gamma, degree and coef0")
        return NormalisedKernel("callable", function=name), False
    given = {"gamma": gamma, "degree": degree, "coef0": coef0}
    takes = PARAMETERS.get(name, ())
    for option, value in given.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float | np.number)):
            raise UsageError(f"{option} {value!r}: expected a number")
        if value is not None and option not in takes and name in KERNELS:
            raise UsageError(f"the {name} kernel has no {option}")
        value = value.item() if isinstance(value, np.generic) else value
        if value is not None and not abs(value) <= sys.float_info.max:
            raise UsageError(f"{option} {value!r:.20}: expected a number of float64")
    if degree is not None and degree != int(degree):
        raise UsageError(f"degree {degree:g}: expected a whole number")
    polynomial = name == "polynomial"
    kernel = NormalisedKernel(
        name,
        (1.0 if gamma is None else float(gamma)) if "gamma" in takes else 0.0,
        (3 if degree is None else int(degree)) if polynomial else 0,
        (1.0 if coef0 is None else float(coef0)) if polynomial else 0.0,
    )
    _check(kernel)
    return kernel, gamma is None and "gamma" in takes


def as_floating(points: Points) -> Points:
    """Points as kernels see them: integers would overflow in a function of Python."""
    return in_type(points, working_type(points.dtype).type)


def usual_gamma(kernel: NormalisedKernel, sample: Points) -> float:
    """Gamma for a sample (s, m): one over the median of what it multiplies, 1 / m for x'z of features of variance one."""
    wide = in_type(sample, np.float64)
    if kernel.name == "polynomial":
        entries, count = wide if is_dense(wide) else wide.data, wide.shape[0] * wide.shape[1]
        mean = float(entries.sum() / count)
        spread = float(((entries - mean) ** 2).sum() + (count - entries.size) * mean**2) / count * wide.shape[1]
        return _inverse(spread)
    if is_dense(wide):
        metric: Any = {"rbf": "sqeuclidean", "exponential": "euclidean"}[kernel.name]
        distances = np.asarray(scipy.spatial.distance.pdist(wide, metric))
    else:
        size = squares(wide)
        both = size[:, None] + size
        square = both - 2 * csr.products(wide, wide)
        # a difference of numbers that is smaller than they are by so much is rounding
        distances = np.where(square > 1e-12 * both, square, 0)[np.triu_indices(len(size), 1)]
        distances = distances if kernel.name == "rbf" else np.sqrt(distances)
    distances = distances[distances > 0]
    return _inverse(float(np.median(distances)) if distances.size else 0.0)


def _inverse(size: float) -> float:
    """One over it, a number of float64; 1 for nothing."""
    return min(1 / size, sys.float_info.max) if 0 < size < np.inf else 1.0


def opposite(points: Points, labels: NDArray[Any]) -> tuple[int, int] | None:
    """Rows of two equal points (s, m) with opposite labels (s,), whatever the kernel; None when there are none."""
    keys = _keys(points)
    if len({*keys}) == len(keys):
        return None
    first: dict[bytes, int] = {}
    pairs: list[tuple[int, int]] = []
    for row, key in enumerate(keys):
        other = first.setdefault(key, row)
        if labels[row] * labels[other] < 0:
            pairs.append((row, other) if labels[row] > 0 else (other, row))
    return min(pairs, key=lambda pair: (min(pair), max(pair)), default=None)


def _keys(points: Points) -> list[bytes]:
    """The same for equal points, which may differ in the sign of their zeros."""
    if is_dense(points):
        whole = (points + points.dtype.type(0)).tobytes()  # a call for each row takes ten times as long
        width = points.shape[1] * points.dtype.itemsize
        return [whole[row * width : (row + 1) * width] for row in range(len(points))]
    tidy = csr.canonicalise(points)
    edges = pairwise(tidy.indptr.tolist())
    return [tidy.indices[a:b].astype(np.int64).tobytes() + tidy.data[a:b].tobytes() for a, b in edges]


def scores(kernel: NormalisedKernel, points: Points, amounts: Floats, others: Points, single: bool) -> Floats:
    """Scores (r,) or (r, k) of other points (r, m) under sums of unit vectors of points (s, m) times amounts (s,) or (s, k)."""
    middle = kernel.middle(points)
    _, right = kernel.prepare(points, single, middle)
    weights: Array = amounts.astype(np.float32) if single else amounts
    score = np.empty((others.shape[0], *amounts.shape[1:]))
    size = max(1, TILE_BYTES // (weights.dtype.itemsize * max(1, len(amounts))))
    for first in range(0, len(score), size):
        left, _ = kernel.prepare(row_slice(others, slice(first, first + size)), single, middle)
        score[first : first + size] = kernel.tile(left, right) @ weights
    return score


@dataclass(frozen=True)
class KernelDirections:
    """Directions y = sum_i amount_i a_i of one kernel."""

    kernel: NormalisedKernel
    points: Points  # (s, m) of all of them
    amounts: Floats  # (s, k) of unit vectors without signs
    mend: Mend | None = None

    @classmethod
    def of(cls, kernel: NormalisedKernel, trained: Trained) -> KernelDirections:
        """Those of a run, whose data is needed: each is about a class, or about labels as the data is seen."""
        data, sums = trained.data, [y for y in trained.directions if isinstance(y, Expansion)]
        assert data is not None, "a kernel needs its points"
        index = np.unique(np.concatenate([each.index for each in sums]))
        points, labels = stored_rows(data, index)
        amounts = np.zeros((len(index), len(sums)))
        for column, each in enumerate(sums):
            rows = np.searchsorted(index, each.index)
            if trained.classes is None:
                signs = data.signs(labels)
            else:
                signs = against(labels, data.codes[data.classes.index(trained.classes[column])])
            amounts[rows, column] = each.amount * signs[rows]
        return cls(kernel, as_floating(points), amounts, trained.mend)

    @property
    def width(self) -> int:
        return int(max(self.amounts.shape))

    def scores(self, points: Points) -> Floats:
        """Scores (b, k) of points (b, m), which may be sparse or not, whatever those of the expansion are."""
        others = as_floating(points)
        if is_dense(others) != is_dense(self.points):
            others = scipy.sparse.csr_array(others) if is_dense(others) else dense(others)
        return scores(self.kernel, in_type(self.points, np.float64), self.amounts, others, False)
