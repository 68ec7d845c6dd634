"""A solve of a dataset of cones: the methods that work there, and what is asked of no cones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dfeas.cones.euclidean import EuclideanMirrorProx
from dfeas.cones.recalled import Recalled
from dfeas.cones.working_set import ConeWorkingSet
from dfeas.errors import UsageError
from dfeas.methods import METHODS, AnyMethod
from dfeas.methods.normalized_perceptron import NormalizedPerceptron
from dfeas.methods.von_neumann import VonNeumann
from dfeas.store import Dataset, Source, open_source
from dfeas.store.layout import looks_like_dataset
from dfeas.store.places import place

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


def choose_cone_method(method: str, dataset: Dataset) -> tuple[str, str]:
    """The method, and why. Raises UsageError when it is not one for these cones."""
    if method == "auto":
        return "working-set", "chosen for cones: whole cones in memory, a few reads"
    if method not in CONE_METHODS:
        raise UsageError(f"method {method} does not work on cones; expected {', '.join(CONE_METHODS)}")
    counts = () if dataset.cones is None else dataset.cones.counts
    if method == "mirror-prox-euclidean" and [(kind, many) for kind, _, many in counts] != [("q", 1)]:
        raise UsageError(f"{method} is for one second-order cone, this is {dataset.cones}; use mirror-prox")
    return method, "asked for"


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
