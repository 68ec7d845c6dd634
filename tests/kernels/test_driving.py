"""The driver runs a kernel method as any other: verdicts, reads, checks."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dfeas.engine.local import LocalEngine
from dfeas.errors import BadInputError
from dfeas.kernels.space import KernelSpace
from dfeas.run import driver
from dfeas.run.resources import Limits
from dfeas.run.task import VerdictTask
from dfeas.run.termination import Goal
from dfeas.verify.certificate import Certificate, Check
from tests.checkers import Each
from tests.kernels.dense import in_blocks
from tests.kernels.running import ON_ALL, Dense, Problem, problem, states


def checked_by(found: Problem) -> Callable[[Certificate], Check]:
    """A check of certificates by the stored matrix."""

    def check(certificate: Certificate) -> Check:
        alpha = np.zeros(len(found.X))
        alpha[certificate.support] = certificate.weights
        length = float(np.sqrt(max(0.0, alpha @ found.G @ alpha)))
        if certificate.kind == "separator":
            assert (found.G @ alpha).min() > 0
            return Check("feasible", "rigorous", (found.G @ alpha).min() / length, 1.0, len(alpha), 0, "checked")
        assert (alpha >= 0).all()
        return Check("eps-infeasible", "rigorous", -1.0, length / alpha.sum(), len(alpha), 0, "checked")

    return check


@pytest.mark.parametrize("name", ON_ALL)
@pytest.mark.parametrize(("family", "verdict"), [("blobs", "feasible"), ("linear, no margin", "eps-infeasible")])
def test_a_verdict_of_each_method(name: str, family: str, verdict: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dfeas.engine.scan.LEAST_ROWS", 16)
    monkeypatch.setattr("dfeas.engine.scan.MOST_RUNS", 10**6)
    found = problem(family)
    method = KernelSpace(found.kernel).method(name)
    engine = LocalEngine(in_blocks(found.X, found.labels, 8), 2)
    records: list[Any] = []

    class Sink:
        def record(self, record: Any) -> None:
            records.append((record, engine.cost.points))

        def note(self, event: str, text: str, **values: Any) -> None:
            assert event != "refused"

    lane = VerdictTask(method, method.init(found.facts), Goal(eps=0.05), (Sink(),), kernel=found.kernel.to_text())
    (outcome,), reads = driver.run(engine, [lane], Each(checked_by(found)), driver.Course(Limits(max_passes=20_000)))
    engine.close()
    assert outcome.decision.verdict == verdict
    assert outcome.decision.stopped == "verdict"
    assert outcome.certificate is not None
    assert outcome.certificate.kernel == found.kernel.to_text()
    assert outcome.record.passes == sum(min(1, points / len(found.X)) for _, points in records)
    assert outcome.reads >= sum(points for _, points in records) / len(found.X)
    assert reads >= outcome.record.passes + 1 - 1e-9  # and the check


@pytest.mark.parametrize("name", ON_ALL)
def test_a_kernel_that_is_none_is_said_with_a_number(name: str) -> None:
    found = problem("blobs")
    G = -found.G + 2 * np.eye(60)  # ones on the diagonal, and symmetric
    method, engine = KernelSpace(found.kernel).method(name), Dense(G, found.labels)
    with pytest.raises(BadInputError, match=r"not positive definite: .* has a squared length of -"):
        list(states(method, engine, found.facts, 60))
