"""Which geometry a run has: that of its data, or of its kernel. Cones and kernels are imported for runs that have them."""

from __future__ import annotations

from pathlib import Path

from dfeas import leaves
from dfeas.data.dataset import Dataset
from dfeas.data.open import open_source
from dfeas.data.source import DataSpec, Source
from dfeas.data.storage.places import place
from dfeas.errors import UsageError, none_of
from dfeas.geometry.points import PointSpace
from dfeas.geometry.protocol import Geometry
from dfeas.methods.registry import FOR_CONES, METHODS, base_name
from dfeas.problem import Function, Kernel
from dfeas.settings import read_setting


def geometry_of(dataset: Dataset, kernel: Kernel | None = None) -> Geometry:
    """That of opened data, with the options of a kernel if one is asked for. Raises UsageError for a kernel on cones."""
    if dataset.kind == "cones":
        cones: Geometry = leaves.cone_space()
        cones.require(dataset, kernel=kernel)
        return cones
    return PointSpace() if kernel is None else _space_of(kernel)


def _space_of(kernel: Kernel) -> Geometry:
    space: Geometry = leaves.kernel_space(kernel)
    return space


def geometry_again(dataset: Dataset, text: str, function: Function | None = None) -> Geometry:
    """That of a run, from its ``text``. Raises BadInputError for a text that is no kernel, or needs a function not given."""
    if not text:
        return geometry_of(dataset)
    space: Geometry = leaves.kernel_space_again(text, function)
    return space


def require_points(X: object, what: str) -> None:
    """Raise UsageError when X is cones, in memory or by the path of a dataset."""
    if isinstance(X, Dataset):
        raise UsageError(f"{what} asks about points, this is a product of cones: use solve")
    from dfeas.data.storage.stored_array import looks_like_dataset

    stored = isinstance(X, str | Path) and looks_like_dataset(place(X))
    if stored and not open_source(Source(DataSpec(X), cones=True)).rows.take_labels:
        raise UsageError(f"{X}: a dataset of cones; {what} asks about points: use solve")


def known_method(method: str, kernel: Kernel | None, more: tuple[str, ...] = ()) -> str:
    """The name of a method, or one ``more``, before the data is opened. Raises UsageError when no data has such a method."""
    if kernel is not None:
        return _space_of(kernel).check_method(method, more)
    if method not in more and (not isinstance(method, str) or base_name(method) not in (*METHODS, *FOR_CONES)):
        cones = ", ".join(name for name in FOR_CONES if name not in METHODS)
        raise UsageError(f"unknown method {none_of(method, (*more, *METHODS))}; of cones also {cones}")
    return method


def kernel_options(options: Kernel | None, scratch: str | Path | None = None) -> Kernel | None:
    """The options, if there is a kernel. Raises UsageError for options that make no sense without data."""
    if options is None:
        if scratch is not None and str(scratch) != read_setting("scratch"):  # that is for runs with a kernel
            raise UsageError("a scratch folder is for tiles of a kernel, and none is given")
        return None
    _space_of(options)
    return options
