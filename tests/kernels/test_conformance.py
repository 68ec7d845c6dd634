"""Every kernel method keeps the laws of the protocol."""

from math import sqrt
from typing import Any

import numpy as np

from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.engine.local import LocalEngine
from dfeas.kernels.space import KERNEL_METHODS, KernelSpace
from tests.conformance.methods import Instance, MethodTests
from tests.kernels.making import FAMILIES, problem


class TestKernelMethods(MethodTests):
    names = tuple(KERNEL_METHODS)
    families = FAMILIES
    passes = 20

    def method(self, name: str) -> Any:
        return KernelSpace(self.kernel).method(name)

    def instance(self, family: str) -> Instance:
        points = problem(family)
        self.kernel = points.kernel

        def length(alpha: np.ndarray) -> float:
            return sqrt(max(0.0, float(alpha @ points.G @ alpha)))

        def score(y: Any) -> tuple[float, float]:
            alpha = np.zeros(len(points.X))
            alpha[y.index] = y.amount
            return length(alpha), float((points.G @ alpha).min())

        def image(sparse: Any) -> float:
            x = np.zeros(len(points.X))
            x[sparse.index] = sparse.weight
            assert abs(x.sum() - 1) <= 1e-12
            assert (x >= 0).all()
            return length(x)

        engine = LocalEngine(open_source(Source(DataSpec(points.X, points.labels, intercept=False))), 1)
        return Instance(engine, points.facts, points.rho, 1e-7, score, image, 1e-6)
