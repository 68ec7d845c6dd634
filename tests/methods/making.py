"""What tests of methods share: columns and soft margins by definition, an engine that counts, states after each pass."""

import shutil
import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls

from dfeas.data.dataset import Dataset
from dfeas.data.generate.points import Instance
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.scratch import Scratch
from dfeas.engine.local import LocalEngine
from dfeas.methods.mixture import Mixture
from dfeas.methods.protocol import Facts, ScratchVector, Sparse
from dfeas.passes.protocol import OnVectors


@dataclass
class Counting:
    """An engine that counts the passes it runs."""

    inner: LocalEngine
    passes: int = field(default=0)

    def run(self, question: Any) -> Any:
        self.passes += not isinstance(question, OnVectors) or question.points
        return self.inner.run(question)


def engine_of(dataset: Dataset) -> Counting:
    """With scratch storage of its own, which goes with the engine."""
    folder = Path(tempfile.mkdtemp())
    engine = Counting(LocalEngine(dataset, 1, Scratch(folder)))
    weakref.finalize(engine, shutil.rmtree, folder, ignore_errors=True)
    return engine


def in_memory(columns: np.ndarray) -> tuple[Counting, Facts]:
    """An engine over signed points given as columns (m, n), all with label +1, and the facts."""
    m, n = columns.shape
    dataset = open_source(Source(DataSpec(np.ascontiguousarray(columns.T))))
    return engine_of(dataset), Facts(m, n, radius=float(np.linalg.norm(columns.astype(np.float64), axis=0).max()))


def problem(kind: str, m: int, n: int, **options: Any) -> tuple[Counting, np.ndarray, Facts]:
    """An engine, the columns A (m, n) computed plainly, and the facts."""
    instance = Instance(kind, m, n, **options)
    blocks = [instance.block(i) for i in range(-(-n // instance.rows))]
    X, labels = np.vstack([b[0] for b in blocks]), np.concatenate([b[1] for b in blocks])
    wide = X.astype(np.float64) * labels[:, None]
    A = (wide / np.linalg.norm(wide, axis=1)[:, None]).T
    dataset = open_source(Source(DataSpec(X, labels, intercept=False)))
    radius = float(np.linalg.norm(X.astype(np.float64), axis=1).max())
    return engine_of(dataset), A, Facts(m, n, blocks=dataset.blocks, itemsize=X.itemsize, radius=radius)


def states(method: Any, engine: Counting, facts: Facts, passes: int) -> Iterator[Any]:
    """The state after each pass."""
    state = method.init(facts)
    for _ in range(passes):
        state = method.tell(state, engine.run(method.ask(state)))
        yield state


def weights(gordan: Mixture | Sparse | ScratchVector, A: np.ndarray, engine: Counting) -> np.ndarray:
    """The n-vector x of the evidence, computed plainly from its record."""
    if isinstance(gordan, ScratchVector):
        return engine.inner.scratch.read(gordan.name, range(A.shape[1]))
    if isinstance(gordan, Sparse):
        x = np.zeros(A.shape[1])
        x[gordan.index] = gordan.weight
        return x
    soft = np.exp(-(A.T @ gordan.Y) / gordan.mu)
    return (soft / soft.sum(axis=0)) @ gordan.share


FAMILIES = [("planted", {"margin": 0.1}), ("planted", {"margin": 0.01}), ("halfspace", {}), ("gaussian", {}), ("one-flip", {})]


def best_margin(A: np.ndarray) -> float:
    """max over unit y of min_j a_j'y = min |Ax| over the simplex, when it is positive: least distance programming."""
    x = nnls(np.vstack([A, np.ones(A.shape[1])]), np.append(np.zeros(len(A)), 1.0))[0]
    return float(np.linalg.norm(A @ x) / x.sum())


def overlapping(n: int, m: int, seed: int = 0, dtype: str = "float64") -> tuple[np.ndarray, np.ndarray]:
    """Points on both sides of a plane, 5 % of them with the wrong label."""
    rng = np.random.default_rng(seed)
    X, w = rng.standard_normal((n, m)).astype(dtype), rng.standard_normal(m)
    y = np.where(X @ w > 0, 1, -1)
    return X, np.where(rng.random(n) < 0.05, -y, y)


def objective(w: np.ndarray, X: np.ndarray, y: np.ndarray, c: Any = 1.0, power: int = 1, bias: float = 0.0) -> float:
    """By its definition."""
    return float(w @ w / 2 + (c * np.maximum(0, 1 - y * (np.asarray(X, float) @ w + bias)) ** power).sum())


def worth(alpha: np.ndarray, cost: np.ndarray, signed: np.ndarray, squared: bool) -> float:
    """The value of the other problem, by its definition."""
    w = alpha @ signed
    curved = alpha[cost > 0] ** 2 / (4 * cost[cost > 0]) if squared else np.zeros(1)
    return float(alpha.sum() - curved.sum() - w @ w / 2)
