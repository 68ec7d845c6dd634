"""The checkers of points, of kernels and of cones keep the laws of a checker."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np

import dfeas
from dfeas.data.dataset import Dataset
from dfeas.engine.local import LocalEngine
from dfeas.kernels.kernel import NormalisedKernel, kernel_of
from dfeas.records import replace
from dfeas.verify.certificate import Certificate, Check, load
from dfeas.verify.core import check
from tests.cones.plain import cones_of, problem, scaled, spectrum, unit
from tests.conformance.checkers import CheckerTests
from tests.decimals import widest_margin
from tests.verify.test_forged import is_true
from tests.verify.test_verify import marked


@dataclass(frozen=True)
class Claim:
    """A certificate, and what it is about."""

    dataset: Dataset
    certificate: Certificate
    truth: Any  # what ``require_true`` knows of the data

    def changed(self, **fields: Any) -> "Claim":
        return replace(self, certificate=replace(self.certificate, **fields))


def vector(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Claim], Claim]:
    """Another y, or where there is none other weights."""

    def made(claim: Claim) -> Claim:
        one = claim.certificate
        return claim.changed(**({"y": change(one.y)} if one.y.size else {"weights": change(one.weights)}))

    return made


def support(change: Callable[[np.ndarray, int], Any]) -> Callable[[Claim], Claim | None]:
    """Weights on other points; None for a certificate that has none."""

    def made(claim: Claim) -> Claim | None:
        before = claim.certificate.support
        return claim.changed(support=np.array(change(before, claim.dataset.n), np.int64)) if len(before) > 1 else None

    return made


def entry(value: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda v: np.append(v[:-1], value)


OTHER = {"separator": "gordan", "gordan": "separator"}
CHANGES: dict[str, Callable[[Claim], Claim | None]] = {
    "the other kind": lambda claim: (
        None
        if claim.certificate.kernel
        else claim.changed(kind={"separator": "gordan"}.get(claim.certificate.kind, "separator"))
    ),
    "a kind that there is not": lambda claim: claim.changed(kind="proof"),
    "a kind that proves nothing": lambda claim: None if claim.certificate.kernel else claim.changed(kind="hyperplane"),
    "other data": lambda claim: claim.changed(fingerprint="0" * 64),
    "seen in another way": lambda claim: claim.changed(view="{}"),
    "negated": vector(np.negative),
    "all zero": vector(np.zeros_like),
    "nothing": vector(lambda v: v[:0]),
    "one NaN": vector(entry(np.nan)),
    "one infinite": vector(entry(np.inf)),
    "one missing": vector(lambda v: v[:-1]),
    "one more": vector(lambda v: np.append(v, 0.0)),
    "a matrix": vector(lambda v: v[None]),
    "points that there are not": support(lambda points, n: points + n),
    "points below 0": support(lambda points, n: points - n),
    "points twice": support(lambda points, n: np.zeros_like(points)),
    "points descending": support(lambda points, n: points[::-1]),
}


class CertificateTests(CheckerTests):
    changes: ClassVar[Mapping[str, Callable[[Any], Any]]] = CHANGES

    def check(self, claim: Claim, threads: int = 1) -> Check:
        """By way of a file, as certificates come."""
        with TemporaryDirectory() as folder:
            claim.certificate.save(Path(folder) / "c.npz")
            certificate = load(Path(folder) / "c.npz")
        return check(LocalEngine(claim.dataset, threads), claim.dataset, certificate)


class TestPoints(CertificateTests):
    """Five points each, whose widest margin is known in 100 digits."""

    kernel: NormalisedKernel | None = None
    names = ("a separator", "a conflict", "a bound")

    def points(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        labels = np.array([1, -1, 1, -1, 1])
        X = np.array([[1.0, 0], [0, -1], [1, 1], [-2, -1], [3, 1]])
        if name == "a conflict":
            X[4] = X[3]
        if name == "a bound":
            X = np.random.default_rng(2).standard_normal((5, 2))
        return X, labels

    def claim(self, name: str) -> Claim:
        X, labels = self.points(name)
        dataset = marked(X, labels)
        margin, weights = widest_margin(self.kernel, X, labels)
        points = np.flatnonzero(weights)
        fields: dict[str, Any] = {"support": points, "weights": weights[points]}
        kind = "separator" if name == "a separator" else "gordan"
        if name == "a conflict":
            fields = {"support": np.array([3, 4]), "weights": np.array([0.5, 0.5])}
        if kind == "separator" and self.kernel is None:
            fields = {"y": (weights * labels) @ (X / np.linalg.norm(X, axis=1)[:, None])}
        text = self.kernel.to_text() if self.kernel else ""
        return Claim(dataset, Certificate(kind, dataset.fingerprint, kernel=text, **fields), margin)

    def require_true(self, claim: Claim, proved: Check) -> None:
        margin: Decimal = claim.truth
        assert is_true(proved, margin)
        expected = {"separator": "feasible", "gordan": "eps-infeasible" if margin else "infeasible"}
        assert proved.verdict == expected[claim.certificate.kind]
        assert proved.points == claim.dataset.n
        if margin:  # and it is sharp
            end = proved.margin_lower if proved.verdict == "feasible" else proved.margin_upper
            assert abs(Decimal(end) - margin) <= Decimal("1e-12")


class TestKernel(TestPoints):
    kernel = kernel_of("rbf", 0.7)[0]


class TestPolynomialKernel(TestPoints):
    kernel = kernel_of("polynomial", 0.5, 3, 1.0)[0]


class TestCones(CertificateTests):
    names = ("a separator", "a bound", "a conflict")
    cone: ClassVar[dict[str, Any]] = {"l": 3, "q": [2, 5, 5, 3], "s": [2, 4, 4, 3]}

    def claim(self, name: str) -> Claim:
        X = problem(np.random.default_rng(5), self.cone, 4, 0.5 if name == "a separator" else None)
        dataset = dfeas.from_cone_rows(X, self.cone)
        # extreme points are on the boundary of the cones, and an x of them is no more than a bound
        method = "von-neumann-away" if name == "a bound" else "working-set"
        return Claim(dataset, dfeas.solve(dataset, method=method, eps=1e-2).evidence, scaled(X, self.cone))

    def require_true(self, claim: Claim, proved: Check) -> None:
        A, certificate = claim.truth, claim.certificate
        if certificate.kind == "separator":
            y = certificate.y / np.linalg.norm(certificate.y)
            low = min(float(spectrum(kind, size, A[rows] @ y)[0].min()) for kind, size, rows in cones_of(self.cone))
            assert 0 < proved.margin_lower <= low * (1 + 1e-12)
            assert proved.margin_lower >= low * (1 - 1e-9)
            return
        x, trace = np.zeros(len(A)), 0.0
        x[certificate.support] = certificate.weights
        for kind, size, rows in cones_of(self.cone):
            trace += float(x[rows] @ unit(kind, size))
        size = np.linalg.norm(A.T @ x) / trace
        if proved.verdict == "eps-infeasible":
            assert size <= proved.margin_upper <= 1e-2
            return
        assert (proved.verdict, proved.proof, proved.margin_upper) == ("infeasible", "exact", 0.0)
        near = x - np.linalg.lstsq(A.T, A.T @ x)[0]
        assert np.linalg.norm(A.T @ near) < 1e-14
        assert all(spectrum(kind, size, near[rows])[0].min() > 0 for kind, size, rows in cones_of(self.cone))
