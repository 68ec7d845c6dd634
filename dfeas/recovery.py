"""From what a method recorded to a certificate: one last pass rebuilds the n-vector of a mixture of softmaxes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dfeas.certificate import Certificate
from dfeas.engine import Engine
from dfeas.methods import Evidence, Mixture
from dfeas.passes import Recover
from dfeas.termination import FEASIBLE, SLACK

Floats = NDArray[np.float64]


def recover(engine: Engine, evidence: Evidence, verdict: str, eps: float, fingerprint: str) -> tuple[Certificate, int]:
    """The certificate for a verdict, and the number of reads that it took (0 or 1)."""
    if verdict == FEASIBLE:
        assert evidence.bracket.y is not None
        return Certificate("separator", fingerprint, y=evidence.bracket.y), 0
    assert evidence.gordan is not None
    gordan = evidence.gordan()
    if not isinstance(gordan, Mixture):
        return Certificate("gordan", fingerprint, support=gordan.index, weights=gordan.weight), 0
    short = shorten(gordan)
    n = engine.shape[1]
    # what is left out weighs at most SLACK eps / 2 in all, so |Ax| grows by no more than that
    found = engine.run(Recover(short.Y, short.mu, short.lse, short.share, SLACK * eps / 2 / n))
    weight = found.weight()
    weight /= weight.sum()
    return Certificate("gordan", fingerprint, support=found.index(), weights=weight), 1


def shorten(mixture: Mixture) -> Mixture:
    """The same Ax from at most m + 1 of the softmaxes (Caratheodory), so that the last pass asks fewer questions.

    Works on batches of m + 1 further softmaxes; in each, directions that change neither Ax nor the sum of the shares are
    followed until a share reaches zero.
    """
    most = mixture.mean.shape[0] + 1
    count = len(mixture.share)
    if count <= most:
        return mixture
    share = mixture.share.copy()
    active = np.arange(0)
    for first in range(0, count, most):
        active = np.concatenate([active, np.arange(first, min(first + most, count))])
        if len(active) > most:
            system = np.vstack([mixture.mean[:, active], np.ones(len(active))])
            share[active] = _basic(system, share[active])
            active = active[share[active] > 0]
    kept = share[active] / share[active].sum()
    return replace(
        mixture,
        Y=mixture.Y[:, active],
        mu=mixture.mu[active],
        lse=mixture.lse[active],
        share=kept,
        mean=mixture.mean[:, active],
    )


def _basic(system: Floats, x: Floats) -> Floats:
    """A vector >= 0 with the same product by ``system`` (r, c), and at most r entries above zero."""
    x = x.copy()
    directions = np.linalg.svd(system)[2][system.shape[0] :].T.copy()  # (c, c - r), a basis of the null space
    for d in range(directions.shape[1]):
        v = directions[:, d]
        if not (v > 0).any():
            v = -v
        steps = np.divide(x, v, out=np.full(len(x), np.inf), where=v > 1e-14 * np.abs(v).max())
        out = int(steps.argmin())
        x = np.maximum(x - steps[out] * v, 0.0)
        x[out] = 0.0
        # the other directions leave the entry that is now zero alone
        rest = directions[:, d + 1 :]
        rest -= np.outer(v / v[out], rest[out])
        rest[out] = 0.0
    return x
