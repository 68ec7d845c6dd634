"""A solve of a dataset of cones: the methods that work there, and what is asked of no cones."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from pathlib import Path

from dfeas.data.dataset import Dataset
from dfeas.data.open import open_source
from dfeas.data.source import Source
from dfeas.data.storage.layout import looks_like_dataset
from dfeas.data.storage.places import place
from dfeas.engine.memory import POINT_BYTES, WEIGHING
from dfeas.errors import UsageError
from dfeas.geometry.cones.methods import EuclideanMirrorProx, Recalled
from dfeas.geometry.cones.working_set import ConeWorkingSet, Rows
from dfeas.methods.normalized_perceptron import NormalizedPerceptron
from dfeas.methods.protocol import AnyMethod
from dfeas.methods.registry import METHODS
from dfeas.methods.von_neumann import VonNeumann

CONE_METHODS: dict[str, Callable[[], AnyMethod]] = {
    "working-set": ConeWorkingSet,
    **{name: METHODS[name] for name in ("mirror-prox", "mirror-prox-one-pass", "mirror-prox-fixed", "smooth-perceptron")},
    # the perceptron that corrects the worst column is the normalized one: its sum is k times the average
    "perceptron": lambda: Recalled(NormalizedPerceptron("perceptron")),
    "normalized-perceptron": lambda: Recalled(NormalizedPerceptron()),
    "von-neumann": lambda: Recalled(VonNeumann()),
    "von-neumann-away": lambda: Recalled(VonNeumann(away=True)),
    "mirror-prox-euclidean": EuclideanMirrorProx,
}
"""Methods that work on cones."""


def choose_cone_method(method: str, dataset: Dataset, memory: int) -> tuple[str, str]:
    """The method, and why. Raises UsageError when it is not one for these cones, or cannot work within the memory."""
    if method == "auto":
        need = missing_for_cones("working-set", dataset, memory)
        if not need:
            return "working-set", "chosen for cones: whole cones in memory, a few reads"
        other = missing_for_cones("mirror-prox-one-pass", dataset, memory)
        if other:
            raise UsageError(f"these cones need --memory {_mb(need)} for a working set, or {_mb(other)} for an x of all rows")
        return "mirror-prox-one-pass", f"chosen because a working set of these cones would need {_mb(need)} of memory"
    if method not in CONE_METHODS:
        raise UsageError(f"method {method} does not work on cones; expected {', '.join(CONE_METHODS)}")
    if not usable_on_cones(method, dataset):
        raise UsageError(f"{method} is for one second-order cone, this is {dataset.cones}; use mirror-prox")
    need = missing_for_cones(method, dataset, memory)
    if need:
        other_method = "mirror-prox-one-pass, which keeps no cones" if method == "working-set" else "working-set"
        raise UsageError(f"{method} needs --memory {_mb(need)} for these cones; or use {other_method}")
    return method, "asked for"


def usable_on_cones(method: str, dataset: Dataset) -> bool:
    """Whether a method is one for these cones."""
    counts = () if dataset.cones is None else dataset.cones.counts
    return method != "mirror-prox-euclidean" or [(kind, many) for kind, _, many in counts] == [("q", 1)]


def missing_for_cones(method: str, dataset: Dataset, memory: int) -> int:
    """Bytes of memory that a method needs, where they are more than there are; otherwise 0."""
    assert dataset.cones is not None, "cones"
    if method == "working-set":
        rows = Rows(dataset.m, memory // 4, dataset.cones.largest)
        return 0 if rows.fits else 4 * rows.least_memory
    need = POINT_BYTES * dataset.n if method.replace("-euclidean", "") in WEIGHING else 0
    return need if need > memory else 0


def _mb(size: int) -> str:
    return f"{ceil(size / 1e6)}MB"


def require_points(X: object, what: str) -> None:
    """Raise UsageError when X is cones, in memory or by the path of a dataset."""
    if isinstance(X, Dataset):
        raise UsageError(f"{what} asks about points, this is a product of cones: use solve")
    if isinstance(X, str | Path) and looks_like_dataset(place(X)):
        dataset = open_source(Source(str(X), cones=True))
        if dataset.cones is not None:
            raise UsageError(f"{X}: a dataset of cones; {what} asks about points: use solve")


def require_plain(dataset: Dataset, **asked: object) -> None:
    """Raise UsageError when something is asked of cones that has a meaning for points only."""
    wrong = [name for name, value in asked.items() if value]
    if dataset.cones is not None and wrong:
        raise UsageError(f"{dataset.where}: cones have no {' and no '.join(wrong)}; leave it out")
