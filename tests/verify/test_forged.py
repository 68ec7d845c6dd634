"""Certificates that were tampered with, in every way that came to mind, with a kernel and without: no verdict is false."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from dfeas.engine.local import LocalEngine
from dfeas.errors import BadInputError, CheckFailedError, CorruptDataError, UsageError
from dfeas.kernels.kernel import NormalisedKernel, kernel_of
from dfeas.records import replace
from dfeas.verify.certificate import Certificate, Check
from dfeas.verify.core import check
from tests.decimals import widest_margin
from tests.verify.test_verify import marked

POINTS = 5
Forge = Callable[[Certificate, np.random.Generator], Certificate]


def _numbers(change: Callable[[np.ndarray, np.random.Generator], np.ndarray]) -> Forge:
    """Of a certificate's weights, or of its y."""

    def forged(one: Certificate, rng: np.random.Generator) -> Certificate:
        return replace(one, y=change(one.y, rng)) if one.y.size else replace(one, weights=change(one.weights, rng))

    return forged


def _support(change: Callable[[np.ndarray], Any]) -> Forge:
    def forged(one: Certificate, rng: np.random.Generator) -> Certificate:
        support = one.support if len(one.support) else np.arange(len(one.y))
        return replace(one, support=np.array(change(support), np.int64))

    return forged


def _entry(value: Callable[[float], float]) -> Forge:
    """One number is another one."""

    def change(numbers: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        found, place = numbers.copy(), rng.integers(len(numbers))
        found[place] = value(float(found[place]))
        return found

    return _numbers(change)


def _on(*points: int) -> Forge:
    """Weights on these only."""

    def forged(one: Certificate, rng: np.random.Generator) -> Certificate:
        weights = np.full(len(points), 1 / len(points))
        return replace(one, kind="gordan", y=np.empty(0), support=np.array(points), weights=weights)

    return forged


def _other_kernel(one: Certificate, rng: np.random.Generator) -> Certificate:
    others = [kernel_of("linear")[0], kernel_of("rbf", 1e20)[0], kernel_of("polynomial", 1e-300, 3, 0.0)[0]]
    return replace(one, kernel=others[rng.integers(3)].to_text())


def _other_parameter(one: Certificate, rng: np.random.Generator) -> Certificate:
    if not one.kernel:
        return one
    kernel = NormalisedKernel.from_text(one.kernel)
    return replace(one, kernel=replace(kernel, gamma=kernel.gamma * 10.0 ** rng.integers(-300, 20), coef0=0.0).to_text())


FORGED: dict[str, Forge] = {
    "as it was": lambda one, rng: one,
    "the other kind": lambda one, rng: replace(one, kind="gordan" if one.kind == "separator" else "separator"),
    "other data": lambda one, rng: replace(one, fingerprint="0" * 64),
    "negated": _numbers(lambda v, rng: -v),
    "one sign": _entry(lambda v: -v),
    "one greater": _entry(lambda v: v + 1e3),
    "one left out": _entry(lambda v: 0.0),
    "one off by a bit": _entry(lambda v: float(np.nextafter(v, np.inf))),
    "one is NaN": _entry(lambda v: np.nan),
    "one is infinite": _entry(lambda v: np.inf),
    "too small": _numbers(lambda v, rng: v * 1e-161),
    "far too small": _numbers(lambda v, rng: v * 1e-250),
    "far too great": _numbers(lambda v, rng: v * 1e250),
    "in another order": _numbers(lambda v, rng: np.roll(v, 1)),
    "random": _numbers(lambda v, rng: rng.standard_normal(len(v))),
    "on the first point": _on(0),
    "on the last point": _on(POINTS - 1),
    "on two points": _on(0, 1),
    "descending": _support(lambda support: support[::-1]),
    "twice": _support(lambda support: np.zeros_like(support)),
    "beyond": _support(lambda support: support + POINTS),
    "below": _support(lambda support: support - POINTS),
    "of the points behind": _support(lambda support: (support + 1) % POINTS),
    "another kernel": _other_kernel,
    "another parameter": _other_parameter,
}

KERNELS: list[NormalisedKernel | None] = [
    None,
    kernel_of("linear")[0],
    kernel_of("cosine")[0],
    kernel_of("polynomial", 1e-3, 200, 0.0)[0],
    kernel_of("polynomial", 1e-300, 2, 0.0)[0],
    kernel_of("polynomial", 0.5, 3, 1.0)[0],
    kernel_of("rbf", 0.7)[0],
    kernel_of("rbf", 1e14)[0],
    kernel_of("exponential", 1e3)[0],
    kernel_of("exponential", 1e200)[0],
]


def instances() -> list[tuple[np.ndarray, np.ndarray]]:
    """Five points each: of integers, with twins a bit apart, far from the origin, with a conflict, with a zero."""
    rng, labels = np.random.default_rng(0), np.array([1, -1, 1, -1, 1])
    whole = np.array([[1.0, 0], [0, 1], [1, 1], [-2, 1], [3, 1]])
    near = rng.standard_normal((POINTS, 2))
    near[1] = np.nextafter(near[0], np.inf)
    conflict, zero = whole.copy(), whole.copy()
    conflict[4], zero[3] = conflict[3], 0
    opposite = np.array([[1.0, 2], [1, 2], [3, 1], [2, -1], [-1, 1]])
    return [(X, labels) for X in (whole, near, near + 1e7, conflict, zero, opposite)]


def proved(dataset: Any, certificate: Certificate) -> Check | None:
    try:
        return check(LocalEngine(dataset, 1), dataset, certificate)
    except (CheckFailedError, CorruptDataError, BadInputError, UsageError):
        return None


def is_true(found: Check, margin: Decimal) -> bool:
    """What a check says, of a margin that may be off in its fifteenth digit."""
    low, high = margin * (1 - Decimal(10) ** -14), margin * (1 + Decimal(10) ** -14)
    if found.verdict == "feasible":
        return margin > 0 and Decimal(found.margin_lower) <= high
    return margin == 0 if found.verdict == "infeasible" else low <= Decimal(found.margin_upper)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_no_forged_certificate_proves_what_is_false(kernel: NormalisedKernel | None) -> None:
    text, rng = kernel.to_text() if kernel else "", np.random.default_rng(1)
    accepted = dict.fromkeys(FORGED, 0)
    for X, labels in instances():
        data = marked(X, labels)
        margins: dict[str, Decimal] = {}
        margins[text], weights = widest_margin(kernel, X, labels)
        support = np.flatnonzero(weights)
        gordan = Certificate("gordan", data.fingerprint, support=support, weights=weights[support], kernel=text)
        unit = X / np.maximum(np.linalg.norm(X, axis=1), 1e-300)[:, None]
        plain = Certificate("separator", data.fingerprint, y=(weights * labels) @ unit + 1e-9)
        for one in (gordan, replace(gordan, kind="separator") if kernel else plain):
            for name, forge in FORGED.items():
                forged = forge(one, rng)
                found = proved(data, forged)
                if found is None:
                    continue
                if forged.kernel not in margins:
                    other = NormalisedKernel.from_text(forged.kernel) if forged.kernel else None
                    margins[forged.kernel] = widest_margin(other, X, labels)[0]
                assert is_true(found, margins[forged.kernel]), (name, found, margins[forged.kernel], X)
                accepted[name] += 1
    assert accepted["as it was"] >= len(instances())
    refused = ("other data", "one is NaN", "one is infinite", "descending", "twice", "beyond", "below")
    assert sum(accepted[name] for name in refused) == 0 if kernel else accepted["other data"] == 0


MALFORMED: dict[str, tuple[str, dict[str, Any], str]] = {
    "points beside y": ("separator", {"support": np.arange(1)}, "has no weights"),
    "weights beside y": ("separator", {"weights": np.ones(1)}, "has no weights"),
    "a shorter y": ("separator", {"y": np.ones(1)}, "the separator has 1 entries, the data 2 features"),
    "y = 0": ("separator", {"y": np.zeros(2)}, "zero or not finite"),
    "y without an end": ("separator", {"y": np.array([np.inf, 1.0])}, "zero or not finite"),
    "another length of y beside weights": ("gordan", {"y": np.ones(3)}, "has not 2 finite entries"),
    "no number in y beside weights": ("gordan", {"y": np.array([np.nan, 1.0])}, "has not 2 finite entries"),
    "no y of a ball": ("ball", {}, "has not 2 finite entries"),
    "half of all": ("gordan", {"weights": np.full(2, 0.25)}, "their sum is"),
    "a plane": ("hyperplane", {}, "proves nothing"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_what_a_certificate_lacks_or_has_too_much_of_is_said(name: str) -> None:
    kind, changes, said = MALFORMED[name]
    data = marked(np.array([[1.0, 2.0], [1.0, 2.0]]), np.array([1, -1]))
    whole = {"y": np.ones(2)} if kind == "separator" else {"support": np.arange(2), "weights": np.full(2, 0.5)}
    with pytest.raises((CheckFailedError, CorruptDataError), match=said):
        check(LocalEngine(data, 1), data, Certificate(kind, data.fingerprint, **{**whole, **changes}))
