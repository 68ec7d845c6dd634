"""Every linear method keeps the laws of the protocol."""

from typing import Any, ClassVar

import numpy as np

from dfeas.methods.protocol import Start
from dfeas.methods.registry import METHODS
from dfeas.methods.rescaled_perceptron import RescaledPerceptron
from dfeas.records import replace
from tests.conformance.methods import Instance, MethodTests
from tests.methods.making import best_margin, problem, weights


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
        method = METHODS[name]
        return replace(method, most=100) if isinstance(method, RescaledPerceptron) else method

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


class TestStartedMethods(TestLinearMethods):
    """They begin from what another run may have left: a direction that is right, wrong or aside, some points."""

    names = ("working-set", "working-set-plain")
    families: ClassVar[dict[str, dict[str, Any]]] = {
        "planted": {"margin": 0.1},
        "planted thin": {"margin": 0.01},
        "gaussian": {},
        "one-flip": {},
    }

    def instance(self, family: str) -> Instance:
        instance = super().instance(family)
        facts, draw = instance.facts, np.random.default_rng(len(family))
        y = draw.standard_normal(facts.m)
        rows = np.arange(0, facts.n, 40) if family in ("planted thin", "one-flip") else np.empty(0, np.int64)
        blocks = (0,) if family in ("planted", "planted thin") else ()
        start = Start(y / np.linalg.norm(y), blocks, rows)
        return replace(instance, facts=replace(facts, start=start))
