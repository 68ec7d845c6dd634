"""Races with a kernel: the answers are those of each method alone, from one product a round."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dfeas
from dfeas.engine.local import LocalEngine
from dfeas.errors import UsageError
from dfeas.kernels.gram import GramProduct
from dfeas.kernels.kernel import kernel_of
from dfeas.kernels.space import KernelSpace
from dfeas.run.driver import Course, run
from dfeas.run.resources import Limits
from dfeas.run.task import VerdictTask
from dfeas.run.termination import Goal
from tests.kernels.dense import dense, in_blocks
from tests.kernels.running import ON_ALL, problem
from tests.kernels.test_driving import checked_by


class Recording(LocalEngine):
    """Keeps what it was asked."""

    def run(self, question: Any) -> Any:
        self.asked = [*getattr(self, "asked", []), question]
        return super().run(question)


def test_one_product_a_round_answers_all_methods() -> None:
    found = problem("random labels", 100)
    names = [name for name in ON_ALL if name != "snkpvn"]
    methods = [KernelSpace(found.kernel).method(name) for name in names]
    goal = Goal(eps=1e-9, tolerance=1e-9)
    lanes = [VerdictTask(method, method.init(found.facts), goal, kernel=found.kernel.to_text()) for method in methods]
    engine = Recording(in_blocks(found.X, found.labels, 8), 2)
    outcomes, reads = run(engine, lanes, checked_by(found), Course(Limits(max_passes=4), to_the_end=True))
    engine.close()
    assert len(engine.asked) == 4
    assert all(isinstance(question, GramProduct) for question in engine.asked)
    assert engine.asked[0].V.shape[1] == sum(engine.asked[0].widths)
    assert [outcome.record.passes for outcome in outcomes] == [4] * len(names)
    assert reads == pytest.approx(outcomes[0].reads)
    alone = found.engine()
    for name, outcome in zip(names, outcomes, strict=True):
        method = KernelSpace(found.kernel).method(name)
        state = method.init(found.facts)
        for _ in range(4):
            state = method.tell(state, alone.run(method.ask(state)))
        expected = method.evidence(state).bracket
        assert outcome.record.margin_upper == pytest.approx(expected.upper, abs=1e-7), name
        assert outcome.record.margin_lower == pytest.approx(expected.lower, abs=1e-7), name


def test_each_question_gets_its_columns_and_its_signs() -> None:
    rng = np.random.default_rng(0)
    X, labels = rng.standard_normal((90, 3)), np.where(rng.random(90) < 0.5, -1, 1)
    kernel = kernel_of("rbf", 0.3)[0]
    G = dense(kernel, X, labels)
    asked = [
        GramProduct(kernel, rng.standard_normal((90, 2))),
        GramProduct(kernel, np.eye(90, 3), signed=False),
        GramProduct(kernel, rng.standard_normal((90, 1))),
    ]
    engine = LocalEngine(in_blocks(X, labels, 20), 1)
    answers = engine.run(asked[1].batch(asked))
    engine.close()
    assert np.allclose(answers[0], G @ asked[0].V, atol=1e-12)
    assert np.allclose(answers[1], labels[:, None] * (G @ (labels[:, None] * asked[1].V)), atol=1e-12)
    assert np.allclose(answers[2], G @ asked[2].V, atol=1e-12)


def ring(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points inside and outside a circle, a little apart."""
    X = np.random.default_rng(seed).standard_normal((n, 2))
    labels = np.where(np.linalg.norm(X, axis=1) > np.sqrt(2), 1, -1)
    return X * (1 + 0.1 * labels)[:, None], labels


METHODS = ["working-set", "mirror-prox", "perceptron", "ispvn"]


def test_a_race_ends_goes_on_and_says_its_kernel(tmp_path: Path) -> None:
    X, labels = ring(200, 0)
    options: dict[str, Any] = {"methods": METHODS, "kernel": "exponential"}
    whole = dfeas.race(X, labels, max_passes=40, **options)
    dfeas.race(X, labels, out=tmp_path / "race", max_passes=3, **options)
    found = dfeas.resume(tmp_path / "race", X, labels, max_passes=40)
    assert isinstance(found, dfeas.Race)
    assert whole.results["working-set"].verdict == "feasible"
    for name, result in whole.results.items():
        assert result.kernel is not None
        assert result.kernel["name"] == "exponential"
        again = found.results[name]
        assert (again.margin_lower, again.margin_upper, again.kernel) == (
            result.margin_lower,
            result.margin_upper,
            result.kernel,
        )
        assert result.success == again.success
    assert found.reads == whole.reads + 1  # arrays are looked at again


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"methods": ["working-set", "winnow"], "kernel": "rbf"}, "method winnow does not work with a kernel"),
        ({"methods": ["working-set", "snkpv"]}, "unknown method snkpv"),
        (
            {"methods": ["mirror-prox", "perceptron"], "kernel": "rbf", "memory": "20MB"},
            "mirror-prox needs .* for what it keeps of 100000 points",
        ),
    ],
)
def test_what_makes_no_race_is_refused(options: dict[str, Any], words: str) -> None:
    X, labels = ring(100_000, 0)
    with pytest.raises(UsageError, match=words):
        dfeas.race(X, labels, **options)
