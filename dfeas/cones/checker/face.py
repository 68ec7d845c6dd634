"""Proves that some z on the boundary of cones has X'z = 0, from one that nearly has: on the least face with all such z.

Each cone is one of matrices: an entry of the orthant is a matrix of order 1, and (t, u) is inside its second-order cone where
(t, u'; u, t I) is positive definite. If Z_c are positive semidefinite, not all zero, and sum_c <F_cj, Z_c> = 0 for each feature
j, then no y has all of sum_j y_j F_cj positive definite: their products with Z_c would add up to more than zero.

Where all such z are on the boundary they have the form Z_c = R_c M_c R_c', with the ranges R_c of the least face that has all
of them (Borwein and Wolkowicz, Regularizing the abstract convex program, 1981), and positive definite M_c inside of it. R_c is
the identity in some rows, and W_c in the others. The face solves polynomials with rational coefficients, so that the entries of
W_c are algebraic numbers, rational ones or others. Newton's method finds it,

    sum_c <F_cj, R_c M_c R_c'> = 0 for all j,    sum_j Y_j F_cj R_c = 0 for all c

where Y spans the y with this property: without them the solution of the first equations is often a singular one. Steps with one
approximate inverse then add digits, until these show the numbers (``exact.algebraic``); simple fractions are seen in float64,
and tried first. M_c follows from equations with rational coefficients. What is found proves itself: products vanish in integers
modulo a polynomial, and balls show that M_c is positive definite.

Off the diagonal rows of a semidefinite cone are read as ``svec`` writes them: as the shortest float64 whose product with sqrt 2
is rounded to what is stored. Others prove nothing here, for a face does not last when its rows are changed by rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy  # loads its parts when they are used
from numpy.typing import NDArray

from dfeas.cones.checker.rows import ConeRows, DenseConeRows, triangle
from dfeas.data.storage.patience import gives_up
from dfeas.exact.algebraic import Field
from dfeas.exact.arithmetic import Floats, Indices
from dfeas.exact.dyadic import Dyadic, Integers, undo_factor
from dfeas.exact.integers import complete

SIMPLE = 64
"""Denominators of rational entries that are seen in float64."""
SHARES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-7)
"""Of the largest eigenvalue of z: smaller ones are taken for zero. Which is right shows when it proves."""
BITS = (800, 2500)
"""Of the numbers of a face: the second for fields of degree 6, as two of four eigenvectors of a matrix of order 4 have."""
MOST_ENTRIES = 1 << 18
"""Of all F: half a second."""
MOST_UNKNOWN, MOST_REFINED = 300, 1 << 15
"""Numbers that Newton's method looks for, and entries of F then: three seconds."""
Numbers = NDArray[Any]
"""Floats, or integers that are numbers times a power of two."""


@dataclass(frozen=True)
class ConeOnFace:
    """A cone, on a face."""

    F: Floats  # (m, k, k) columns of the cone
    own: Indices  # (r,) rows of R that are the identity
    others: Indices
    R: Floats  # (k, r) nearly
    M: Floats  # (r, r) nearly

    @classmethod
    def of(cls, F: Floats, Z: Floats, least: float) -> ConeOnFace:
        """On the face of the eigenvalues of Z (k, k) above a number."""
        values, vectors = np.linalg.eigh(Z)
        V, large = vectors[:, values > least], values[values > least]
        R, own, others = _reduce(V)
        return cls(F, own, others, R, V[own] * large @ V[own].T)

    @property
    def lower(self) -> tuple[Indices, Indices]:
        """Places of the entries of M that are numbers of their own."""
        return np.tril_indices(len(self.own))


def is_conflict_on_face(kept: Sequence[tuple[ConeRows, Floats]]) -> bool:
    """Whether some z >= 0, not zero, has X'z = 0 exactly, near weights x (c, d) of some cones, as far as time allows."""
    if sum(len(x) * cones.rows.shape[-1] * _order(cones) ** 2 for cones, x in kept) > MOST_ENTRIES:
        return False
    read = [pair for cones, x in kept for pair in _read_cones(cones, x)]
    used = np.any([F.any(axis=(1, 2)) for F, _ in read], axis=0)
    if len(read) < sum(len(x) for _, x in kept) or not used.any():
        return False
    # an equation may be multiplied by any number
    power = -np.frexp(np.max([np.abs(F[used]).max(axis=(1, 2)) for F, _ in read], axis=0))[1][:, None, None]
    top, seen = max(float(np.linalg.eigvalsh(Z)[-1]) for _, Z in read), set[tuple[int, ...]]()
    for share in SHARES:
        if gives_up():
            return False
        parts = [ConeOnFace.of(np.ldexp(F[used], power), Z, share * top) for F, Z in read]
        ranks = tuple(len(part.own) for part in parts)
        if ranks not in seen and ConeFace.of([part for part in parts if len(part.own)]).has_element():
            return True
        seen.add(ranks)
    return False


def _order(cones: ConeRows) -> int:
    return cones.size if cones.kind == "s" else cones.dimension


def _read_cones(cones: ConeRows, x: Floats) -> Iterator[tuple[Floats, Floats]]:
    """F (m, k, k) and Z (k, k) of cones that have such matrices, scaled."""
    rows = cones.rows if isinstance(cones, DenseConeRows) else cones.rows.toarray()
    norm, k = cones.norms(np.arange(len(x)))[1], _order(cones)
    power = np.frexp(norm)[1]
    z = x / np.where(norm > 0, norm, 1.0)[:, None] * np.ldexp(1.0, power)[:, None]
    i, j = triangle(k) if cones.kind == "s" else (np.arange(k), np.zeros(k, np.int64))
    for each, here, p in zip(rows.reshape(*x.shape, -1), z, power.tolist(), strict=True):
        sizes = np.abs(each[each != 0])
        if not 1e-100 < sizes.min(initial=1.0) <= sizes.max(initial=1.0) < 1e100:  # they are scaled exactly
            return
        F, Z = np.zeros((each.shape[1], k, k)), np.zeros((k, k))
        F[:, i, j] = F[:, j, i] = each.T
        if cones.kind == "s":
            plain = undo_factor(each[i != j], np.sqrt(2.0))
            if plain is None:
                return
            F[:, i[i != j], j[i != j]] = F[:, j[i != j], i[i != j]] = plain.T
            Z[i, j] = Z[j, i] = np.where(i == j, here, here / np.sqrt(2.0))
        else:
            F[:, i, i] = each[0][:, None]
            Z = _lift(here)
        yield np.ldexp(F, -p), Z


def _lift(z: Floats) -> Floats:
    """Z (d, d) for z = (t, u), of full rank where that is inside its cone, of rank 1 where it is on the boundary."""
    t, u, length = float(z[0]), z[1:], float(np.linalg.norm(z[1:]))
    if length > 0 and t - length < SHARES[-1] * t:
        v = np.append(1.0, u / length)
        return np.asarray(t / 2 * np.outer(v, v))
    if t <= 0 or not len(u):
        return np.diag(np.maximum(z, 0.0))
    Z = np.zeros((len(z), len(z)))
    Z[0] = Z[:, 0] = z / 2
    Z[1:, 1:] = np.outer(u, u) / (2 * t) + np.eye(len(u)) * (t - length**2 / t) / (2 * len(u))
    return Z


def _reduce(V: Floats) -> tuple[Floats, Indices, Indices]:
    """A basis (k, r) of the same range with the identity in some rows, these rows, and the others."""
    r = V.shape[1]
    own: Indices = (
        np.sort(scipy.linalg.qr(V.T, mode="r", pivoting=True)[1][:r]).astype(np.int64) if r else np.zeros(0, np.int64)
    )
    return V @ np.linalg.inv(V[own]), own, np.setdiff1d(np.arange(len(V)), own)


@dataclass(frozen=True)
class ConeFace:
    """A face that is near, with Y; all their numbers are one vector v (n,)."""

    parts: Sequence[ConeOnFace]
    digits: Sequence[Integers]  # of each F, times 2**exponent
    exponent: int
    Y: Floats  # (m, p) nearly
    own: Indices  # rows of Y that are the identity
    others: Indices

    @classmethod
    def of(cls, parts: Sequence[ConeOnFace]) -> ConeFace:
        """Of parts that are not zero."""
        across = np.concatenate([(part.F @ part.R).reshape(len(part.F), -1).T for part in parts])
        values, vectors = np.linalg.eigh(across.T @ across)
        # singular values below 1e-4 of the largest one are zeros of a face that is known to some digits
        Y, own, others = _reduce(vectors[:, values < 1e-8 * values[-1]])
        whole = Dyadic.of(np.concatenate([part.F.reshape(-1) for part in parts]))
        pieces = np.split(whole.digits, np.cumsum([part.F.size for part in parts])[:-1])
        digits = [each.reshape(part.F.shape) for each, part in zip(pieces, parts, strict=True)]
        return cls(parts, digits, whole.exponent, Y, own, others)

    def has_element(self) -> bool:
        """Whether it is proved that there is a face with a z of full rank in it."""
        near = [Fraction(each).limit_denominator(SIMPLE) for part in self.parts for each in part.R[part.others].flat]
        common = math.lcm(1, *(each.denominator for each in near))
        simple = np.array([[int(each * common)] for each in near], object).reshape(len(near), 1)
        if self._has_element(Field([0, 1], 0, BITS[0]), simple, common):
            return True
        numbers = [np.append(part.R[part.others], part.M[part.lower]) for part in self.parts]
        v = np.concatenate([*numbers, self.Y[self.others].reshape(-1)])
        if len(v) > MOST_UNKNOWN or sum(F.size for F in self.digits) > MOST_REFINED:
            return False
        for bits in BITS:
            ranges = None if gives_up() else self._refine(v, bits)
            if ranges is None:
                return False
            entries = [R[part.others].reshape(-1) for part, R in zip(self.parts, ranges, strict=True)]
            found = Field.of([int(each) for some in entries for each in some], bits)
            if found is not None:
                return self._has_element(*found)
        return False

    def _unpack(self, v: Numbers, one: float) -> tuple[list[tuple[Numbers, Numbers]], Numbers]:
        """R and M of each part, and Y, where 1 is ``one``."""
        found, at = list[tuple[Numbers, Numbers]](), 0
        for part in self.parts:
            R, M = np.zeros(part.R.shape, v.dtype), np.zeros(part.M.shape, v.dtype)
            R[part.own, np.arange(len(M))] = one
            own = v[at : at + part.R.size - M.size]
            R[part.others] = own.reshape(-1, len(M))
            at += len(own)
            i, j = part.lower
            M[i, j] = M[j, i] = v[at : at + len(i)]
            at += len(i)
            found.append((R, M))
        Y = np.zeros(self.Y.shape, v.dtype)
        Y[self.own, np.arange(len(self.own))] = one
        Y[self.others] = v[at:].reshape(len(self.others), len(self.own))
        return found, Y

    def _residuals(self, v: Numbers, columns: Sequence[Numbers], one: float) -> tuple[Numbers, Numbers]:
        """Of the equations of z, times one^3, and of those of Y, times one^2."""
        pairs, Y = self._unpack(v, one)
        of_z = sum(F.reshape(len(F), -1) @ (R @ M @ R.T).reshape(-1) for F, (R, M) in zip(columns, pairs, strict=True))
        of_y = [np.tensordot(Y.T, F @ R, 1).reshape(-1) for F, (R, _) in zip(columns, pairs, strict=True)]
        return np.asarray(of_z), np.concatenate(of_y)

    def _refine(self, v: Floats, bits: int) -> list[Integers] | None:
        """R of all parts times 2**bits, by steps of Newton's method; None where these do not converge."""
        columns, h = [part.F for part in self.parts], 1e-6 * np.eye(len(v))
        for _ in range(12):  # at most; each doubles the digits
            if gives_up():
                return None
            there, back = (
                np.array([np.concatenate(self._residuals(v + e, columns, 1.0)) for e in sign * h]) for sign in (1, -1)
            )
            # a solution is one of a family, of which the nearest is taken: below this singular values are rounding of zero
            inverse = np.linalg.pinv((there - back).T / 2e-6, rcond=1e-7)
            step = inverse @ np.concatenate(self._residuals(v, columns, 1.0))
            v = v - step
            if not np.abs(v).max() < 1e6:
                return None
            if np.abs(step).max() < 1e-13:
                break
        w = np.array([int(each) << (bits - 60) for each in np.ldexp(v, 60)], object)
        last = 1 << bits
        while True:  # each adds as many digits as the inverse has
            of_z, of_y = self._residuals(w, self.digits, 1 << bits)
            residual = [*(of_z >> (2 * bits - self.exponent)), *(of_y >> (bits - self.exponent))]
            size = max(map(abs, residual))
            if size < 1 << 40:
                return [R for R, _ in self._unpack(w, 1 << bits)[0]]
            if 2 * size > last or gives_up():
                return None
            last, shift = size, size.bit_length()
            step = inverse @ np.array([each / (1 << shift) for each in residual])
            w = w - np.array([int(each) << shift >> 60 for each in np.ldexp(step, 60)], object)

    def _has_element(self, field: Field, entries: Integers, common: int) -> bool:
        """Whether the face with these entries (w, degree) of R over a denominator has M > 0 that solve the equations of z."""
        at, ranges, rows = 0, list[Floats](), list[Integers]()
        for part, F in zip(self.parts, self.digits, strict=True):
            R = np.zeros((*part.R.shape, field.degree), object)
            R[part.own, np.arange(len(part.own)), 0] = common
            size = len(part.others) * len(part.own)
            R[part.others] = entries[at : at + size].reshape(len(part.others), len(part.own), field.degree)
            at += size
            ranges.append(field.floats(R, common))
            rows.append(_coefficients(field, F, np.moveaxis(R, 2, 0), part.lower))
        given, across = self._project(ranges)
        # numbers of a field are independent with all their coefficients, or none
        ranked = scipy.linalg.qr(across.T, mode="r", pivoting=True)[1][:, None] * field.degree + np.arange(field.degree)
        started = np.zeros((len(given), field.degree), object)
        started[:, 0] = [round(each * 2.0**50) for each in given]
        found = complete(np.concatenate(rows), started.reshape(-1), ranked.reshape(-1))
        if found is None:
            return False
        elements, at = list[Integers](), 0
        for part in self.parts:
            i, j = part.lower
            M = np.zeros((*part.M.shape, field.degree), object)
            M[i, j] = M[j, i] = found.reshape(-1, field.degree)[at : at + len(i)]
            elements.append(M)
            at += len(i)
        return field.are_definite(elements)

    def _project(self, ranges: Sequence[Floats]) -> tuple[Floats, Floats]:
        """Numbers (N,) of M = L (I + E) L' with the least E, where LL' nearly solve the equations of z, and these (N, m)."""
        m, factors = len(self.Y), [np.linalg.cholesky(part.M) for part in self.parts]
        each = list(zip(self.parts, factors, ranges, strict=True))
        flat = np.hstack([(L.T @ R.T @ part.F @ R @ L).reshape(m, -1) for part, L, R in each])
        flat[np.abs(flat) < 1e-14 * max(float(np.trace(part.M)) for part in self.parts)] = 0  # no entry of F is above 1
        even = np.concatenate([np.eye(len(L)).reshape(-1) for L in factors])
        even = even - np.linalg.pinv(flat, rcond=1e-10) @ (flat @ even)
        pieces = np.split(even, np.cumsum([L.size for L in factors])[:-1])
        found = [(L @ E.reshape(L.shape) @ L.T)[part.lower] for (part, L, _), E in zip(each, pieces, strict=True)]
        across = [(R.T @ part.F @ R)[(slice(None), *part.lower)] for part, _, R in each]
        return np.concatenate(found), np.hstack(across).T


def _coefficients(field: Field, F: Integers, R: Integers, lower: tuple[Indices, Indices]) -> Integers:
    """Equations of z (pairs degree, m degree): of a number of M those of each of its coefficients, for R (degree, k, r)."""
    degree, (i, j) = field.degree, lower
    products = np.zeros((2 * degree - 1, len(F), R.shape[2], R.shape[2]), object)
    for s, t in np.ndindex(degree, degree):
        products[s + t] += R[s].T @ F @ R[t]
    entries, powers = products[..., i, j] + np.where(i == j, 0, products[..., j, i]), field.power_table(3 * degree - 2)
    each = [np.tensordot(entries, powers[s : s + 2 * degree - 1], (0, 0)) for s in range(degree)]
    return np.stack(each).transpose(2, 0, 1, 3).reshape(len(i) * degree, -1)
