"""The nearest point of the base of a product of cones, on scratch storage: the passes of ISPVN over eigenvalues.

An element is x = sum_i w_i q_i over its extreme points q_i, and the prox of ISPVN is half of |w - w'|^2, that of the simplex.
Of orthants and semidefinite cones |w| is |x|; of second-order cones, whose extreme points have the length sqrt 2, it is
|x| / sqrt 2. Eigenvalues of A*y are its products with the q_i, so

    p = argmin over the base of <A*y, p> + (mu / 2) |p - q|^2 = sum_i max(v_i - tau, 0) q_i

where v_i are the weights of v = q - A*y / mu, in a second-order cone of q - 2 A*y / mu, with tau such that they sum to 1. Some
element commutes with the projection, so that decomposing v is all that it takes (Lewis 1996). |A x| <= sum |w_i| <= sqrt(rank)
|w| for cones of norm 1: lambda is the rank.

Of v there are two vectors: its weights in the first rows of each cone, with -inf in its other rows, among which ``Excess``
finds tau as among points; and the element itself, which ``Combine`` decomposes again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dfeas.cones.algebra import Group, Spectrum, groups_of, unit
from dfeas.cones.softmin import ConeWeights, SpectralSoftmin, combine_scaled, factors, fast_scores
from dfeas.linalg.points import Floats, Indices
from dfeas.passes.block import Block
from dfeas.passes.protocol import OnVectors
from dfeas.passes.vectors import Combine, Excess, Positive, Shift, ShiftAnswer, SparseWeights
from dfeas.records import replace


def on_cones(question: OnVectors) -> OnVectors:
    """One of ``QUESTIONS`` as it is asked of cones: v has a second vector, which is forgotten with the first."""
    pass_: Any = question.pass_
    asked = replace(question, keeps=None if question.keeps is None else (*question.keeps, *map(_element_of, question.keeps)))
    if isinstance(pass_, Shift):
        writes = (*question.writes, *map(_element_of, question.writes))
        return replace(asked, pass_=ShiftCones(pass_.y, pass_.mu, pass_.uniform), writes=writes)
    if isinstance(pass_, Combine):
        v, *old = question.reads
        combine = CombineCones(pass_.dimension, pass_.tau, pass_.total, pass_.theta)
        return replace(asked, pass_=combine, reads=(_element_of(v), *old))
    if isinstance(pass_, Positive):
        return replace(asked, pass_=NonzeroEntries(pass_.floor))
    return asked


QUESTIONS = Shift | Excess | Combine | Positive
"""Those of ISPVN, and the one that brings its certificate."""


def _element_of(name: str) -> str:
    return f"{name}-element"


def _square(group: Group) -> float:
    """Squared length of an extreme point."""
    return 2.0 if group.kind == "q" else 1.0


class ShiftCones(Shift, frozen=True):
    """Write the weights of v, and v."""

    def scan(self, rows: range, block: Block | None, vectors: tuple[Floats, ...]) -> tuple[ShiftAnswer, tuple[Floats, ...]]:
        """One block; the least eigenvalue of A*y is that of a softmin."""
        assert block is not None
        (low,) = SpectralSoftmin(self.y[:, None], np.zeros(1)).scan(block).low.tolist()
        (scores,) = fast_scores(block, self.y[:, None], factors(block), False)
        weight, v = np.full(block.size, -np.inf), np.zeros(block.size)
        for group in groups_of(block.label):
            place, square = group.rows(), _square(group)
            q = vectors[0][place] if vectors else self.uniform * square * unit(group.kind, group.size)
            v[place] = q - square / self.mu * scores[place]
            weight[place[:, : group.rank]] = Spectrum.of(group.kind, group.size, v[place]).values / square
        return ShiftAnswer(low, float(weight.max(initial=-np.inf)), float(weight[weight > -np.inf].sum())), (weight, v)


class CombineCones(Combine, frozen=True):
    """A p of the projection, and the average."""

    def project(self, block: Block, v: Floats) -> Floats:
        p = np.zeros(block.size)
        for group in groups_of(block.label):
            place = group.rows()
            spectrum = Spectrum.of(group.kind, group.size, v[place])
            p[place] = spectrum.combine(np.maximum(spectrum.values / _square(group) - self.tau, 0.0) / self.total)
        return p

    def multiply(self, block: Block, p: Floats, some: Indices) -> Floats:
        return combine_scaled(block, some, p[some], factors(block))


class NonzeroEntries(Positive, frozen=True):
    """The entries of an element of the base, of any sign, but zeros."""

    def scan(self, rows: range, block: Block | None, vectors: tuple[Floats, ...]) -> tuple[SparseWeights, tuple[Floats, ...]]:
        kept = np.flatnonzero(np.abs(vectors[0]) > self.floor)
        return SparseWeights(((rows.start + kept, vectors[0][kept]),)), ()

    def finish(self, partial: SparseWeights) -> ConeWeights:
        return ConeWeights(partial.pieces, 1.0)
