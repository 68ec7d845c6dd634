"""What methods take on cones: passes, and memory."""

from __future__ import annotations

from dfeas.coned import CONE_METHODS
from dfeas.cones.working_set_size import Rows
from dfeas.memory import WEIGHING
from dfeas.methods import Facts
from dfeas.store import Dataset

USUAL = {
    "mirror-prox": 0.03,
    "mirror-prox-one-pass": 0.025,
    "mirror-prox-euclidean": 0.03,
    "mirror-prox-fixed": 0.2,
    "smooth-perceptron": 0.25,
    "perceptron": 0.4,
    "normalized-perceptron": 0.4,
    "von-neumann": 0.25,
    "von-neumann-away": 0.12,
}
"""Passes that a run takes, as a share of the bound of its theorem: those of points."""

FULL_PASSES = 3.0
"""Of a working set of cones, with its sample: 2 to 6 in trials of all kinds, the hard ones too."""


def usual_cone_passes(method: str, facts: Facts, margin: float) -> float:
    """Passes until a margin, or |Ax|, of ``margin``."""
    if method == "working-set":
        return FULL_PASSES
    most = CONE_METHODS[method]().bound(facts, margin)
    return min(most, max(2.0, USUAL[method] * most))


def own_cone_bytes(method: str, dataset: Dataset, facts: Facts, passes: float) -> float:
    """Bytes that a method keeps."""
    assert dataset.cones is not None, "cones"
    if method == "working-set":
        return float(Rows(facts.m, facts.memory, dataset.cones.largest).usual_bytes)
    if method.replace("-euclidean", "") in WEIGHING:
        return 32 * facts.m * passes
    of_point = 8 * dataset.cones.rows / dataset.cones.many  # extreme points are remembered
    return 8 * facts.m * min(passes, 4 * facts.m) + (16 + of_point) * passes
