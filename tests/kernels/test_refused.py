"""What is refused of kernels, of functions that are none, and of questions with them, and the sentence that says why."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import dfeas
from dfeas.errors import BadInputError, DfeasError, UsageError
from dfeas.kernels.kernel import NormalisedKernel, kernel_of
from tests.kernels.making import ring

X, LABELS = ring(300, 2)
MANY = np.zeros((100_000, 2), np.float32), np.arange(100_000) % 2


def solve(kernel: Any, points: Any = X, **options: Any) -> Any:
    return dfeas.solve(points, LABELS, kernel=kernel, **options)


REFUSED: list[tuple[Callable[[], Any], type[DfeasError], str]] = [
    (lambda: kernel_of("other"), UsageError, "unknown kernel other; expected rbf"),
    (lambda: kernel_of("rbf", 0.0), UsageError, "gamma 0 of the rbf kernel: expected a number above 0"),
    (lambda: kernel_of("rbf", -1), UsageError, "gamma -1"),
    (lambda: kernel_of("rbf", "x"), UsageError, "gamma 'x': expected a number"),  # type: ignore[arg-type]
    (lambda: kernel_of("rbf", 1.0, 3), UsageError, "the rbf kernel has no degree"),
    (lambda: kernel_of("linear", 1.0), UsageError, "the linear kernel has no gamma"),
    (lambda: kernel_of("polynomial", 1.0, 0), UsageError, "degree 0"),
    (lambda: kernel_of("polynomial", 1.0, 2, -1), UsageError, "coef0 -1"),
    (lambda: kernel_of("polynomial", 1.0, 10**6 + 1), UsageError, "degree .*: expected a whole number"),
    (lambda: kernel_of("polynomial", 1.0, 10**400), UsageError, "degree .*: expected a number of float64"),
    (lambda: kernel_of("polynomial", 1.0, 2.5), UsageError, "degree .*: expected a whole number"),  # type: ignore[arg-type]
    (lambda: kernel_of("polynomial", 1.0, float("nan")), UsageError, "degree .*: expected a "),  # type: ignore[arg-type]
    (lambda: kernel_of(lambda a, b: a @ b.T, 1.0), UsageError, "its own parameters"),
    (lambda: NormalisedKernel.from_text("{}"), BadInputError, "cannot be read"),
    (lambda: NormalisedKernel.from_text(kernel_of(np.dot)[0].to_text()), BadInputError, "kernel=function"),
    (lambda: solve(lambda a, b: np.ones(3)), BadInputError, r"returned shape \(3,\) for blocks"),
    (lambda: solve(lambda a, b: (a @ b.T)[:1], scipy.sparse.csr_array(X)), BadInputError, "returned shape"),
    (lambda: solve(lambda a, b: np.full((len(a), len(b)), np.nan)), BadInputError, "not finite"),
    (lambda: solve(lambda a, b: -(a @ b.T)), BadInputError, r"not positive: K\(x, x\) = -"),
    (
        lambda: solve(lambda a, b: np.exp(((a[:, None] - b[None]) ** 2).sum(2))),
        BadInputError,
        "not positive definite: its least eigenvalue on 300 points is -",
    ),
    (
        lambda: solve(lambda a, b: 1.0 + 0.1 * np.outer(a[:, 0] > 0, b[:, 0] > -9)),
        BadInputError,
        r"not symmetric: K\(x, z\) =",
    ),
    (lambda: solve("rbf", intercept=True), UsageError, "takes no intercept"),
    (lambda: solve(dfeas.Kernel("rbf", degree=2)), UsageError, "has no degree"),
    (lambda: solve("rbf", method="winnow"), UsageError, "method winnow does not work with a kernel"),
    (lambda: dfeas.plan(X, LABELS, kernel="rbf", method="winnow"), UsageError, "does not work with a kernel"),
    (lambda: dfeas.one_vs_rest(X, LABELS, kernel="rbf", method="winnow"), UsageError, "does not work with a kernel"),
    (lambda: dfeas.race(X, LABELS, methods=["working-set", "winnow"], kernel="rbf"), UsageError, "winnow does not work"),
    (lambda: dfeas.race(X, LABELS, methods=["working-set", "snkpv"]), UsageError, "unknown method snkpv"),
    (lambda: dfeas.plan(X, LABELS, method="snkpv"), UsageError, "unknown method"),
    (lambda: dfeas.plan(X, LABELS, one_vs_rest=True, positive="1"), UsageError, "asks about every class"),
    (lambda: dfeas.plan(X, LABELS, one_vs_rest=True, method="ispvn"), UsageError, "classes share their reads"),
    (
        lambda: dfeas.race(*MANY, methods=["mirror-prox", "perceptron"], kernel="rbf", memory="20MB"),
        UsageError,
        "mirror-prox needs .* for what it keeps of 100000 points",
    ),
]


@pytest.mark.parametrize(("ask", "error", "said"), REFUSED)
def test_what_makes_no_sense_is_refused_in_one_line(ask: Callable[[], Any], error: type[DfeasError], said: str) -> None:
    with pytest.raises(error, match=said) as raised:
        ask()
    assert "\n" not in str(raised.value)


def test_the_kernel_of_a_run_is_not_given_again(tmp_path: Path) -> None:
    solve("polynomial", max_passes=1, out=tmp_path / "run")
    with pytest.raises(UsageError, match="kernel is for the Python function"):
        dfeas.resume(tmp_path / "run", kernel="rbf")
