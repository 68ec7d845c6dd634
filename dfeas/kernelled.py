"""A solve with a kernel: what was asked for, gamma from the data, and the methods that work there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dfeas.errors import UsageError
from dfeas.kernels import Kernel, kernel_of, usual_gamma
from dfeas.kernels.kernel import Function
from dfeas.kernels.methods import KERNEL_METHODS as ON_ALL
from dfeas.kernels.select import seen
from dfeas.kernels.working_set import KernelWorkingSet
from dfeas.methods import AnyMethod
from dfeas.passes import Columns, sample
from dfeas.setting import Setting

KERNEL_METHODS: dict[str, Callable[[Kernel], AnyMethod]] = {"working-set": KernelWorkingSet, **ON_ALL}
"""Methods that work with a kernel."""

POINT_BYTES = 400
"""Memory of the driver for each point in methods that keep n-vectors, a few tens of them."""

SAMPLE = 1000
"""Points from which gamma is found."""
BLOCKS = 8
"""Blocks that they are drawn from, at least, where there are so many."""


@dataclass(frozen=True)
class Kernelled:
    """A kernel with all its parameters, and how gamma was found."""

    kernel: Kernel
    why: str


def kernelled(
    setting: Setting, name: str | Function, gamma: float | None, degree: int | None, coef0: float | None
) -> Kernelled:
    """The kernel that was asked for; a sample of the points says what gamma is, if nobody does.

    Raises UsageError for options that make no sense.
    """
    kernel, free = kernel_of(name, gamma, degree, coef0)
    if setting.dataset.intercept:
        raise UsageError("a kernel takes no intercept: leave it out; the polynomial kernel has coef0")
    if setting.dataset.entries is not None:
        raise UsageError("kernels take dense points only, these are sparse: ingest them with --dense, or leave the kernel out")
    if not free:
        return Kernelled(kernel, f"{kernel}, as asked for")
    dataset = setting.dataset
    question = sample(dataset.m, SAMPLE, dataset.n, dataset.blocks, min(BLOCKS, dataset.blocks), 0, unit=False)
    found: Columns = setting.engine.run(question)
    kernel = replace(kernel, gamma=usual_gamma(kernel, seen(found.points[:SAMPLE])))
    what = "features' variance times their number" if kernel.name == "polynomial" else "median of the distances"
    squared = " squared" if kernel.name == "rbf" else ""
    return Kernelled(kernel, f"{kernel}, gamma one over the {what}{squared} of {min(len(found), SAMPLE)} points")


def choose_kernel_method(method: str, n: int, memory: int) -> tuple[str, str]:
    """The method, and why. Raises UsageError when it has no kernels, or keeps n-vectors and memory does not hold them."""
    if method == "auto":
        return "working-set", "chosen for kernels: it evaluates them for few pairs of points"
    if method not in KERNEL_METHODS:
        raise UsageError(f"method {method} does not work with a kernel; expected {', '.join(KERNEL_METHODS)}")
    if method in ON_ALL and POINT_BYTES * n > memory:
        raise UsageError(f"{method} needs {POINT_BYTES * n / 1e6:.0f} MB of memory for {n} points; working-set needs less")
    return method, "asked for"
