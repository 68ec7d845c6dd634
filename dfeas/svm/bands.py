"""Bands over the same points that are almost alike, such as without one fold each: they share most of the work.

From the minimum w of one of them the others are not far. So a point far from the margin at w stands for its line there, which
is nowhere above its hinge: what is left is a small band, whose lower bound is one of the whole. Where the whole at the small
one's minimum is above that by more than is wanted, because far points changed their side, it is solved from there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dfeas.svm.band import Band, BandSolution
from dfeas.workingset.matrix import Floats

NEAR = 0.2
"""The share of the points that are kept: what a fold changes is a fraction of what the points in memory allow for."""


def minimise_alike(bands: Sequence[Band], first: BandSolution, gaps: Floats) -> list[BandSolution]:
    """The minima of bands over the same rows, each up to its gap, from that of one that is like them."""
    rows = bands[0].rows
    score = rows.scores(first.w)
    distance = np.abs(1 - score)
    near = np.flatnonzero(distance <= np.quantile(distance, NEAR)) if len(distance) else np.arange(0)
    far = score < 1
    far[near] = False
    costs = np.stack([band.cost for band in bands], axis=1)
    lines = costs * far[:, None]
    linear, constant = rows.combine(lines), lines.sum(axis=0)
    part, small = rows.part(near), list[BandSolution]()
    for i, band in enumerate(bands):
        multiplier = np.minimum(first.multiplier[near], band.cost[near])
        small.append(Band(part, band.cost[near], band.linear + linear[i]).minimise(first.w, multiplier, gaps[i] / 2))
    scores = rows.scores(np.stack([each.w for each in small], axis=1))
    found = []
    for i, (band, each) in enumerate(zip(bands, small, strict=True)):
        multiplier = lines[:, i]
        multiplier[near] = each.multiplier
        whole = BandSolution(each.w, multiplier, band.value(each.w, scores[:, i]), each.lower + constant[i], each.steps)
        found.append(whole if whole.value - whole.lower <= gaps[i] else band.minimise(each.w, multiplier, gaps[i]))
    return found
