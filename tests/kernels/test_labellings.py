"""Several labellings at once: the answers of each are those of its own problem."""

from typing import Any

import numpy as np
import pytest

from dfeas.engine import LocalEngine
from dfeas.errors import BadInputError
from dfeas.kernels import kernel_of
from dfeas.kernels.gram import GramProduct
from dfeas.kernels.labellings import apart, one_against_rest, together
from dfeas.kernels.methods import KERNEL_METHODS
from dfeas.methods import Facts
from tests.kernels.dense import dense, in_blocks

KERNEL = kernel_of("exponential", 0.7)[0]


def blobs(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Three classes."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, n)
    return rng.standard_normal((n, 2)) + 2 * np.eye(3)[labels][:, :2], np.array(["a", "b", "c"])[labels]


def test_one_against_the_rest_are_signs() -> None:
    classes, signs = one_against_rest(np.array([5, 3, 5, 9]))
    assert classes.tolist() == [3, 5, 9]
    assert signs.tolist() == [[-1, 1, -1, -1], [1, -1, 1, -1], [-1, -1, -1, 1]]
    with pytest.raises(BadInputError, match="1 class, expected at least two"):
        one_against_rest(np.ones(4))


@pytest.mark.parametrize("name", KERNEL_METHODS)
def test_a_method_answers_each_class_as_it_does_alone(name: str) -> None:
    X, labels = blobs(80)
    signs = one_against_rest(labels)[1]
    method = KERNEL_METHODS[name](KERNEL)
    engine = LocalEngine(in_blocks(X, np.where(np.arange(80) % 2, 1, -1), 30), 1)  # labels of the data do not matter
    alone = [method.init(Facts(2, 80)) for _ in signs]
    shared = list(alone)
    for _ in range(5):
        asked: list[Any] = [method.ask(state) for state in shared]
        answers = apart(asked, signs, engine.run(together(asked, signs)))
        shared = [method.tell(state, answer) for state, answer in zip(shared, answers, strict=True)]
        for i, sign in enumerate(signs):
            question: Any = method.ask(alone[i])
            G = dense(KERNEL, X, sign if question.signed else np.ones(80))
            alone[i] = method.tell(alone[i], G @ question.V)
    engine.close()
    for one, other in zip(shared, alone, strict=True):
        ours, theirs = method.evidence(one).bracket, method.evidence(other).bracket
        assert ours.upper == pytest.approx(theirs.upper, abs=1e-6)
        assert ours.lower == pytest.approx(theirs.lower, abs=1e-6)


def test_columns_that_no_problem_needs_are_not_asked() -> None:
    signs = one_against_rest(np.array([0, 1, 2]))[1]
    asked = [GramProduct(KERNEL, np.eye(3, k)) for k in (1, 2)]
    question = together(asked, signs[:2])
    assert question.V.shape == (3, 3)
    assert question.widths == (1, 2)
    assert question.signed is False
