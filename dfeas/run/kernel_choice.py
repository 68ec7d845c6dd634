"""A solve with a kernel: gamma from the data, and the methods that work there.

In a kernel's space y has no entries, only an expansion over points: so what is an m-vector to a linear method is an n-vector
here, with its product with the Gram matrix, as in the papers. They are kept by the driver, and are what a checkpoint keeps. A
product of a combination of vectors whose products are known is known: each step costs one new product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path

from dfeas.data.dataset import Dataset
from dfeas.engine.protocol import Engine
from dfeas.errors import UsageError
from dfeas.geometry.kernel.kernel import Function, Kernel, kernel_of, seen, usual_gamma
from dfeas.geometry.kernel.mirror_prox import KernelMirrorProx
from dfeas.geometry.kernel.nearest import Matrix
from dfeas.geometry.kernel.perceptrons import KernelNormalizedPerceptron, KernelPerceptron, KernelSmoothPerceptron
from dfeas.geometry.kernel.sizes import vector_bytes
from dfeas.geometry.kernel.snkpvn import KernelIspvn, Snkpvn
from dfeas.geometry.kernel.von_neumann import KernelVonNeumann
from dfeas.geometry.kernel.working_set import KernelWorkingSet, capacity
from dfeas.linalg.blas import processors
from dfeas.methods.mirror_prox import FixedSteps
from dfeas.methods.protocol import AnyMethod, Facts
from dfeas.passes.block import Columns
from dfeas.passes.select import sample
from dfeas.problem import facts_of

ON_ALL: dict[str, Callable[[Kernel], AnyMethod]] = {
    "mirror-prox": KernelMirrorProx,
    "mirror-prox-fixed": lambda kernel: KernelMirrorProx(kernel, FixedSteps(), "mirror-prox-fixed"),
    "smooth-perceptron": KernelSmoothPerceptron,
    "perceptron": KernelPerceptron,
    "normalized-perceptron": KernelNormalizedPerceptron,
    "von-neumann": KernelVonNeumann,
    "snkpvn": Snkpvn,
    "ispvn": KernelIspvn,
}
"""All of them."""

__all__ = ["KERNEL_METHODS"]

KERNEL_METHODS: dict[str, Callable[[Kernel], AnyMethod]] = {"working-set": KernelWorkingSet.of, **ON_ALL}
"""Methods that work with a kernel."""

SAMPLE = 1000
"""Points from which gamma is found."""
MOST_THREADS = 64
"""More would need no more memory."""
BLOCKS = 8
"""Blocks that they are drawn from, at least, where there are so many."""


@dataclass(frozen=True)
class AskedKernel:
    """Options of a kernel; None for one that was not given."""

    name: str | Function
    gamma: float | None = None
    degree: int | None = None
    coef0: float | None = None

    @property
    def function(self) -> Function | None:
        """Of Python, that is the kernel."""
        return None if isinstance(self.name, str) else self.name


@dataclass(frozen=True)
class Kernelled:
    """A kernel with all its parameters, and how gamma was found."""

    kernel: Kernel
    why: str


def asked_kernel(
    kernel: str | Function | None,
    gamma: float | None,
    degree: int | None,
    coef0: float | None,
    scratch: str | Path | None = None,
) -> Function | None:
    """The function of Python that is the kernel, if one is. Raises UsageError for options that make no sense without data."""
    if kernel is None:
        if scratch is not None:
            raise UsageError("a scratch folder is for tiles of a kernel, and none is given")
        if (gamma, degree, coef0) != (None, None, None):
            raise UsageError("gamma, degree and coef0 are those of a kernel, and none is given")
        return None
    kernel_of(kernel, gamma, degree, coef0)
    return None if isinstance(kernel, str) else kernel


def kernelled(engine: Engine, dataset: Dataset, asked: AskedKernel) -> Kernelled:
    """The kernel that was asked for; a sample of the points says what gamma is, if nobody does.

    Raises UsageError for options that make no sense.
    """
    kernel, free = kernel_of(asked.name, asked.gamma, asked.degree, asked.coef0)
    if dataset.intercept:
        raise UsageError("a kernel takes no intercept: leave it out; the polynomial kernel has coef0")
    if not free:
        return Kernelled(kernel, f"{kernel}, as asked for")
    question = sample(dataset.m, SAMPLE, dataset.n, dataset.blocks, min(BLOCKS, dataset.blocks), 0, unit=False)
    found: Columns = engine.run(question)
    kernel = replace(kernel, gamma=usual_gamma(kernel, seen(found.points[:SAMPLE])))
    what = "features' variance times their number" if kernel.name == "polynomial" else "median of the distances"
    squared = " squared" if kernel.name == "rbf" else ""
    return Kernelled(kernel, f"{kernel}, gamma one over the {what}{squared} of {min(len(found), SAMPLE)} points")


def known_kernel_method(method: str, more: tuple[str, ...] = ()) -> str:
    """The name of a method that works with a kernel. Raises UsageError for others."""
    if method not in (*more, *KERNEL_METHODS):
        raise UsageError(f"method {method} does not work with a kernel; expected {', '.join((*more, *KERNEL_METHODS))}")
    return method


def choose_kernel_method(method: str, facts: Facts, threads: int) -> tuple[str, str]:
    """The method, and why. Raises UsageError when it has no kernels, or keeps n-vectors and memory does not hold them.

    ``threads`` compute products; ``facts.memory`` is a quarter of the budget.
    """
    if method == "auto":
        return "working-set", "chosen for kernels: it evaluates them for few pairs of points"
    known_kernel_method(method, ("auto",))
    need = missing(method, facts, threads)
    if need:
        raise UsageError(
            f"{method} needs {ceil(need / 1e6)} MB of memory for n-vectors of {facts.n} points, and "
            f"{4 * facts.memory / 1e6:.0f} MB are for it: raise --memory; working-set keeps some of the points only"
        )
    return method, "asked for"


def kernels_abreast(method: str, classes: int, dataset: Dataset, memory: int) -> int:
    """How many classes can share the memory side by side; the same on any number of threads.

    Working sets keep the points of each class, and the Gram matrix of one at a time.
    """
    whole = facts_of(dataset, memory)
    for count in dict.fromkeys(-(-classes // turns) for turns in range(1, classes + 1)):
        if method in ON_ALL:
            fits = not missing(method, facts_of(dataset, memory // count), MOST_THREADS)
        else:
            fits = 2 * capacity(whole, count) >= capacity(whole)
        if fits:
            return count
    return 1


def kernel_methods(kernel: Kernel, dataset: Dataset, memory: int, classes: int | None) -> Callable[[str], AnyMethod]:
    """Makes methods by name; for one of some classes that share the memory, where these are given."""
    if classes is None:
        return lambda name: KERNEL_METHODS[name](kernel)
    matrix, cap = Matrix(kernel), capacity(facts_of(dataset, memory), classes)
    return lambda name: ON_ALL[name](kernel) if name in ON_ALL else KernelWorkingSet(matrix, cap)


def missing(method: str, facts: Facts, threads: int) -> int:
    """Bytes that a method with n-vectors needs, where it does not fit; 0 where it does. More memory may mean more threads."""
    if method not in ON_ALL or vector_bytes(method, facts, threads) <= 4 * facts.memory:
        return 0
    return vector_bytes(method, facts, max(threads, processors()))
