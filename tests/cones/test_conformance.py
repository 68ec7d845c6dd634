"""Every method on cones keeps the laws of the protocol."""

import shutil
import tempfile
import weakref
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import dfeas
from dfeas.cones.product import Placing, Product
from dfeas.cones.space import CONE_METHODS, ConeEngine
from dfeas.data.storage.scratch import Scratch
from dfeas.engine.local import LocalEngine
from dfeas.methods.protocol import Facts, ScratchVector, Sparse
from tests.cones.making import CONE
from tests.cones.plain import all_columns, cones_of, problem, scaled, spectrum, unit
from tests.conformance.methods import Instance, MethodTests


@cache
def best_margin(entries: bytes, shape: tuple[int, int]) -> tuple[float, float]:
    """Both ends, as the checker has proved them."""
    best = dfeas.solve(dfeas.from_cone_rows(np.frombuffer(entries).reshape(shape), CONE), margin_tolerance=1e-6)
    assert best.verdict == "feasible"
    return best.margin_lower, best.margin_upper


class TestConeMethods(MethodTests):
    names = tuple(name for name in CONE_METHODS if name != "mirror-prox-euclidean")
    cone = CONE
    families: ClassVar[dict[str, float | None]] = {"planted": 0.4, "random": None}

    def method(self, name: str) -> Any:
        return CONE_METHODS[name]

    def rows(self, family: str) -> tuple[np.ndarray, Any]:
        """As an array, and as they are given."""
        X = problem(np.random.default_rng(1), self.cone, 4, self.families[family])
        return X, X

    def instance(self, family: str) -> Instance:
        X, given = self.rows(family)
        A, dataset = scaled(X, self.cone), dfeas.from_cone_rows(given, self.cone)
        source = Placing(Product.from_scs(self.cone), dataset.block_rows).source
        folder = Path(tempfile.mkdtemp())
        engine = ConeEngine(LocalEngine(dataset, 1, Scratch(folder)))
        weakref.finalize(engine, shutil.rmtree, folder, ignore_errors=True)
        reader = ConeEngine(LocalEngine(dataset, 1))

        def image(gordan: Any) -> float:
            if isinstance(gordan, ScratchVector):
                stored = engine.scratch.read(gordan.name, range(dataset.n))
                gordan = Sparse.of(stored)
            elif not isinstance(gordan, Sparse):
                kept = reader.run(gordan.question(0.0))
                gordan = Sparse(kept.index(), kept.weight())
            x = np.zeros(len(X))
            x[source[gordan.index]] = gordan.weight
            cones = [(kind, size, x[rows]) for kind, size, rows in cones_of(self.cone)]
            assert abs(sum(float(part @ unit(kind, size)) for kind, size, part in cones) - 1) <= 1e-9
            assert all(not part.any() or spectrum(kind, size, part)[0].min() > -1e-12 for kind, size, part in cones)
            return float(np.linalg.norm(A.T @ x))

        margin, off = 0.0, 1e-12
        if self.families[family] is not None:  # the checker has proved both ends
            lower, upper = best_margin(X.tobytes(), X.shape)
            margin, off = lower, upper - lower + 1e-9
        return Instance(
            engine,
            Facts(dataset.m, dataset.rank, blocks=dataset.blocks),
            margin,
            off,
            lambda y: (float(np.linalg.norm(y)), float(all_columns(A, self.cone, y)[0].min())),
            image,
            1e-9,
        )
