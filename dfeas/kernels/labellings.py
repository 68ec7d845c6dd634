"""Several labellings of the same points, as one class against the rest has for each class: one product for all of them.

Labels are only signs. With S_c the diagonal matrix of the labels of problem c its Gram matrix is S_c K~ S_c, so that all
problems multiply the same tiles, those of K~.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dfeas.errors import BadInputError
from dfeas.kernels.gram import GramProduct
from dfeas.kernels.kernel import Floats


def one_against_rest(labels: NDArray[np.generic]) -> tuple[NDArray[np.generic], Floats]:
    """The classes (c,) in order, and the signs (c, n) of each: +1 for its points, -1 for all others.

    Raises BadInputError for fewer than two classes.
    """
    classes, member = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise BadInputError(f"labels: {len(classes)} class, expected at least two")
    return classes, np.where(np.arange(len(classes))[:, None] == member.reshape(-1), 1.0, -1.0)


def together(questions: Sequence[GramProduct], signs: Floats) -> GramProduct:
    """One question for those of some problems with signs (c, n); the labels of the data do not matter."""
    columns = [_with_sign(question, sign, question.V) for question, sign in zip(questions, signs, strict=True)]
    widths = tuple(part.shape[1] for part in columns)
    return GramProduct(questions[0].kernel, np.hstack(columns), signed=False, widths=widths)


def apart(questions: Sequence[GramProduct], signs: Floats, answers: Sequence[Floats]) -> list[Floats]:
    """What each of them asked for, from the answers (n, k) to their question."""
    return [_with_sign(question, *rest) for question, *rest in zip(questions, signs, answers, strict=True)]


def _with_sign(question: GramProduct, sign: Floats, values: Floats) -> Floats:
    return np.where(question.signed, sign[:, None] * values, values)
