"""Probabilities from scores that folds left out: Platt (1999), by Newton steps as Lin, Lin and Weng (2007) take them.

P(+1) = 1 / (1 + exp(-(a s + b))) for a score s. Each point is scored by the hyperplane that was found without its fold, and the
scores are counted in bins, whose means stand for them: neither memory nor messages grow with the points.
"""

from __future__ import annotations

import numpy as np

from dfeas.answers.prediction.scores import Sigmoid, sigmoid
from dfeas.engine.protocol import Engine
from dfeas.linalg.points import Floats
from dfeas.passes.protocol import of_class
from dfeas.passes.slacks import LeftOut, SampleCosts

STILL = 1e-10
"""Of the gradient, for each point."""


def calibrate(engine: Engine, Y: Floats, costs: SampleCosts, code: int | None) -> Sigmoid:
    """a and b, from the hyperplanes (m, folds) of all folds, in one read; of a class against the rest by its ``code``."""
    question = LeftOut(Y, costs)
    sums = engine.run(question if code is None else of_class(question, code)).sums
    weight, total = sums[:, 0].reshape(-1), sums[:, 1].reshape(-1)
    there, half = weight > 0, sums.shape[2]
    negative, positive = weight[:half].sum(), weight[half:].sum()
    target = np.repeat([1 / (negative + 2), (positive + 1) / (positive + 2)], half)[there]
    return fit_sigmoid(total[there] / weight[there], weight[there], target, np.log((positive + 1) / (negative + 1)))


def fit_sigmoid(score: Floats, weight: Floats, target: Floats, b: float) -> Sigmoid:
    """a and b of least cross-entropy with probabilities ``target`` (k,) of scores with weights, from 0 and this b on."""
    v, Z = np.array([0.0, b]), np.stack([score, np.ones_like(score)], axis=1)

    def entropy(v: Floats) -> float:
        z = Z @ v
        return float(weight @ (np.logaddexp(0, z) - target * z))

    for _ in range(100):
        p = sigmoid(Z @ v)
        gradient, H = Z.T @ (weight * (p - target)), (Z.T * (weight * p * (1 - p))) @ Z + 1e-12 * np.eye(2)
        if np.abs(gradient).max() <= STILL * weight.sum():
            break
        step, length = np.linalg.solve(H, gradient), 1.0
        while entropy(v - length * step) > entropy(v) - 1e-4 * length * float(gradient @ step) and length > STILL:
            length /= 2
        v = v - length * step
    return float(v[0]), float(v[1])
