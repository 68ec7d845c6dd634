"""Which geometry a run has: that of its data, or of its kernel."""

from __future__ import annotations

from pathlib import Path

from dfeas.data.dataset import Dataset
from dfeas.errors import UsageError, none_of
from dfeas.geometry.cones.space import CONE_METHODS, ConeSpace
from dfeas.geometry.kernel.kernel import Function, NormalisedKernel, kernel_of
from dfeas.geometry.kernel.space import KernelSpace
from dfeas.geometry.points import PointSpace
from dfeas.geometry.protocol import Geometry
from dfeas.methods.registry import METHODS
from dfeas.problem import Kernel
from dfeas.settings import read_setting


def geometry_of(dataset: Dataset, kernel: Kernel | None = None) -> Geometry:
    """That of opened data, with the options of a kernel if one is asked for. Raises UsageError for a kernel on cones."""
    if dataset.cones is not None:
        cones = ConeSpace()
        cones.require(dataset, kernel=kernel)
        return cones
    return PointSpace() if kernel is None else KernelSpace.of(kernel)


def geometry_again(dataset: Dataset, text: str, function: Function | None = None) -> Geometry:
    """That of a run, from its ``text``. Raises BadInputError for a text that is no kernel, or needs a function not given."""
    return KernelSpace(NormalisedKernel.from_text(text, function)) if text else geometry_of(dataset)


def known_method(method: str, kernel: Kernel | None, more: tuple[str, ...] = ()) -> str:
    """The name of a method, or one ``more``, before the data is opened. Raises UsageError when no data has such a method."""
    if kernel is not None:
        return KernelSpace.of(kernel).check_method(method, more)
    names = (*more, *METHODS, *CONE_METHODS)
    if not isinstance(method, str) or method not in names:
        raise UsageError(f"unknown method {none_of(method, names)}")
    return method


def kernel_options(options: Kernel | None, scratch: str | Path | None = None) -> Kernel | None:
    """The options, if there is a kernel. Raises UsageError for options that make no sense without data."""
    if options is None:
        if scratch is not None and str(scratch) != read_setting("scratch", None):  # that is for runs with a kernel
            raise UsageError("a scratch folder is for tiles of a kernel, and none is given")
        return None
    kernel_of(options.kernel, options.gamma, options.degree, options.coef0)
    return options
