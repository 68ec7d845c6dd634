"""Every linear method keeps the laws of the protocol."""

from typing import Any, ClassVar

import numpy as np

from dfeas.methods.registry import METHODS
from tests.conformance.methods import Instance, MethodTests
from tests.methods.running import best_margin, problem, weights


class TestLinearMethods(MethodTests):
    names = tuple(METHODS)
    families: ClassVar[dict[str, dict[str, Any]]] = {
        "halfspace": {},
        "planted": {"margin": 0.1},
        "planted thin": {"margin": 0.01},
        "gaussian": {},
        "one-flip": {},
    }

    def method(self, name: str) -> Any:
        return METHODS[name]

    def instance(self, family: str) -> Instance:
        options = self.families[family]
        engine, A, facts = problem(family.split()[0], 8, 300, dtype="float64", **options)
        separable = family not in ("gaussian", "one-flip")

        def image(gordan: Any) -> float:
            x = weights(gordan, A, engine)
            assert abs(x.sum() - 1) <= 1e-9
            assert (x >= 0).all()
            return float(np.linalg.norm(A @ x))

        margin = options.get("margin", best_margin(A) if separable else 0.0)
        return Instance(
            engine.inner,
            facts,
            margin,
            1e-12 if options or not separable else 1e-9,
            lambda y: (float(np.linalg.norm(y)), float((A.T @ y).min())),
            image,
            1e-12,
        )
