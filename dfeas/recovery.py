"""From what a method recorded to a certificate: one last pass rebuilds the n-vector of a mixture of softmaxes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from dfeas.certificate import Certificate
from dfeas.methods import Evidence, Expansion, Mixture, Sparse, Stored
from dfeas.passes import OnVectors, Positive, Question, Recover, SparseWeights
from dfeas.passes.block import Floats
from dfeas.termination import FEASIBLE, SLACK
from dfeas.workingset import basic


class Runs(Protocol):
    """What recovery needs of an engine."""

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n) of A."""

    def run(self, question: Question) -> Any:
        """One read of the data."""


def recover(
    engine: Runs, evidence: Evidence, verdict: str, eps: float, fingerprint: str, kernel: str = ""
) -> tuple[Certificate, int]:
    """The certificate for a verdict, and the number of reads that it takes beside one of the checker (0 or 1)."""
    if verdict == FEASIBLE:
        assert evidence.bracket.y is not None
        found = separator(evidence.bracket.y, fingerprint, kernel)
        return found, found.checking_reads - 1
    assert evidence.gordan is not None
    gordan = evidence.gordan()
    n = engine.shape[1]
    if isinstance(gordan, Stored):
        stored = OnVectors(Positive(floor=0.0), (gordan.name,), (), points=False, keeps=None)
        return _certificate(engine.run(stored), fingerprint), 0
    if isinstance(gordan, Sparse):
        return Certificate("gordan", fingerprint, support=gordan.index, weights=gordan.weight, kernel=kernel), 0
    short = shorten(gordan)
    # what is left out weighs at most SLACK eps / 2 in all, so |Ax| grows by no more than that
    weights = engine.run(Recover(short.Y, short.mu, short.lse, short.share, SLACK * eps / 2 / n))
    return _certificate(weights, fingerprint), 1


def separator(y: Floats | Expansion, fingerprint: str, kernel: str = "") -> Certificate:
    """A direction as evidence."""
    if isinstance(y, Expansion):
        return Certificate("separator", fingerprint, support=y.index, weights=y.amount, kernel=kernel)
    return Certificate("separator", fingerprint, y=y)


def _certificate(found: SparseWeights, fingerprint: str) -> Certificate:
    weight = found.weight()
    weight /= weight.sum()
    return Certificate("gordan", fingerprint, support=found.index(), weights=weight)


def shorten(mixture: Mixture) -> Mixture:
    """The same Ax from at most m + 1 of the softmaxes (Caratheodory), so that the last pass asks fewer questions."""
    if len(mixture.share) <= mixture.mean.shape[0] + 1:
        return mixture
    kept, share = basic(lambda chosen: mixture.mean.T[chosen], len(mixture.mean), mixture.share)
    return replace(
        mixture,
        Y=mixture.Y[:, kept],
        mu=mixture.mu[kept],
        lse=mixture.lse[kept],
        share=share / share.sum(),
        mean=mixture.mean[:, kept],
    )
