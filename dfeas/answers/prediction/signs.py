"""Scores whose signs are those of exact arithmetic: a point that was proved to be on a side is found there again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dfeas.data.dataset import Dataset
from dfeas.data.source import parse_view
from dfeas.data.views import stored_rows
from dfeas.exact.arithmetic import TINY, UP_LOOSE, gamma
from dfeas.exact.dyadic import Dyadic, Integers, integer_signs
from dfeas.linalg.points import Floats, Points, dense, is_dense, row_slice, terms, with_ones
from dfeas.passes.block import Block
from dfeas.verify.certificate import Certificate
from dfeas.verify.separation import rows as rows_of


def plane_of(certificate: Certificate, m: int) -> Integers:
    """A separator for points (x, 1) as they are stored, (m + 1,) in whole numbers, up to a power of two; no bit is lost."""
    whole = np.array(certificate.integers, object)
    y = Dyadic(whole, 0) if certificate.integers else Dyadic.of(certificate.y)
    normal, constant = Dyadic(y.digits[:m], y.exponent), Dyadic(y.digits[m:].sum(keepdims=True), y.exponent)
    transform = parse_view(certificate.view)[1]
    if transform is not None and transform.factor:
        factor = Dyadic.of(np.array(transform.factor))
        normal = Dyadic(normal.digits * factor.digits, normal.exponent + factor.exponent)
    if transform is not None and transform.shift:
        constant = constant + -(normal @ Dyadic.of(np.array(transform.shift)[:, None]))
    least = min(normal.exponent, constant.exponent)
    return np.append(normal.at(least), constant.at(least))


def signs_of_sums(certificates: Sequence[Certificate], data: Dataset, classes: Sequence[str] | None) -> TrueSigns | None:
    """Those of separators that weigh points of data by whole numbers, one of each of the classes; None where none does."""
    m = data.m
    planes, sizes = np.zeros((len(certificates), m + 1), object), np.zeros((m + 1, len(certificates)))
    for j, each in enumerate(certificates):
        if each.integers:
            some = rows_of(data if classes is None else data.against_rest(classes[j]), each.support)
            points = Dyadic.of(some if isinstance(some, np.ndarray) else some.toarray())
            planes[j, :m] = np.array(each.integers, object) @ points.digits
            # a value of the kernel, and a sum of them, is off by few roundings for each term
            sizes[m, j] = (m + len(each.support) + 10) * np.abs(each.weights).sum()
    return TrueSigns(tuple(planes), sizes, None) if sizes.any() else None


def give_true_signs(points: Points, planes: Sequence[Integers], scores: Floats, near: NDArray[np.bool_]) -> None:
    """Change scores (r, k) of stored points (r, m) that are ``near`` (r, k) to zero, so that their signs are right."""
    for j in np.flatnonzero(near.any(axis=0)).tolist():
        chosen = np.flatnonzero(near[:, j])
        sign, _ = integer_signs(with_ones(dense(points[chosen])), planes[j])
        scores[chosen, j] = sign * np.maximum(np.abs(scores[chosen, j]), TINY)


def near_zero(points: Points, Y: Floats, scores: Floats) -> NDArray[np.bool_]:
    """Which scores (r, k) under Y (m, k) or (m+1, k) may have a wrong sign, up to what a centred, scaled point lost."""
    m = points.shape[1]
    entries = points if is_dense(points) else points.data
    most = float(max(entries.max(initial=0), -float(entries.min(initial=0))))
    size = most * np.abs(Y[:m]).sum(axis=0) + np.abs(Y[m:]).sum(axis=0)
    small = np.abs(scores) <= gamma(terms(points) + 8) * UP_LOOSE * size + 4 * (m + 1) * TINY
    return np.asarray(np.isfinite(scores) & small)


@dataclass(frozen=True)
class TrueSigns:
    """Separators as whole numbers, of points as a dataset stores them."""

    planes: tuple[Integers, ...]
    Y: Floats  # (m, k) or (m+1, k): the same, as scores are computed
    stored: Dataset | None  # None: points are seen as they are stored

    def __call__(self, block: Block, rows: slice, scores: Floats) -> None:
        """Change scores (r, k) of some rows of a block, as it is seen."""
        near = near_zero(row_slice(block.points, rows), self.Y, scores)
        some = np.flatnonzero(near.any(axis=1))
        if some.size:
            changed, place = scores[some], rows.start + some
            points = block.points[place] if self.stored is None else stored_rows(self.stored, block.start + place)[0]
            give_true_signs(points, self.planes, changed, near[some])
            scores[some] = changed
