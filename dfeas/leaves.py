"""The two leaves of the house, and all that the core asks of them: ``cones`` and ``kernels``, folders that can be removed.

Each function loads its leaf when it is called, by name, so that no module of the core imports one. Asking for a leaf that is
not there is a UsageError.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dfeas.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LEAVES = ("cones", "kernels")


def load(name: str) -> Any:
    """A module of ours. Raises UsageError for one of a leaf that is not installed."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        leaf = name.split(".")[1]
        if leaf not in LEAVES or not f"{error.name}.".startswith(f"dfeas.{leaf}."):
            raise
        raise UsageError(f"this installation of dfeas has no {leaf}: the folder dfeas/{leaf} was removed") from None


def cone_space() -> Any:
    """The geometry of cones."""
    return load("dfeas.cones.space").ConeSpace()


def cone_checker() -> Any:
    """The checker of certificates about cones."""
    return load("dfeas.cones.checker.core").Cones()


def rows_of_cones(table: Any) -> Any:
    """What the core asks about rows of such cones."""
    return load("dfeas.cones.product").RowsOfCones(table)


def pick_cones(dataset: Any, mask: Any) -> Any:
    """The cones that a mask keeps, as a dataset."""
    return load("dfeas.cones.masks").pick_cones(dataset, mask)


def open_sdpa(path: Path) -> Any:
    """The cones of an SDPA sparse file, as a dataset in memory."""
    return load("dfeas.cones.sdpa").open_sdpa(path)


def ingest_cones(src: Any, out: Any, *more: Any, **options: Any) -> Any:
    """Write a dataset of cones, and return its header."""
    return load("dfeas.cones.sdpa").ingest_cones(src, out, *more, **options)


def cone_instance(kind: str, **options: Any) -> Any:
    """An instance of cones with a known answer."""
    return load("dfeas.cones.generate").ConeInstance(kind, **options)


def unpack_cvxpy(problem: Any, x: Any, dual: Any) -> None:
    """Set the variables and dual values of a problem of cvxpy."""
    load("dfeas.cones.cvxpy").unpack(problem, x, dual)


def linear_program(problem: Any) -> Any:
    """The constraints of a problem of cvxpy, all of which are linear."""
    return load("dfeas.cones.cvxpy").linear_program(problem)


def kernel_space(kernel: Any) -> Any:
    """The geometry of a kernel by its options. Raises UsageError for options that make no sense."""
    return load("dfeas.kernels.space").KernelSpace.of(kernel)


def kernel_space_again(text: str, function: Callable[[Any, Any], Any] | None) -> Any:
    """The geometry of a kernel by its text, as a run keeps it. Raises BadInputError for a text that is no kernel."""
    return load("dfeas.kernels.space").KernelSpace(normalised_kernel(text, function))


def normalised_kernel(text: str, function: Callable[[Any, Any], Any] | None) -> Any:
    """A kernel by its text."""
    return load("dfeas.kernels.kernel").NormalisedKernel.from_text(text, function)


def signed_gram(kernel: Any, points: Any, signs: Any) -> Any:
    """The signed Gram matrix (n, n) of points."""
    return load("dfeas.kernels.nearest").Matrix(kernel).signed_gram(points, signs)


def kernel_directions(kernel: Any, points: Any, amounts: Any) -> Any:
    """Functions of a kernel's space by their expansions."""
    return load("dfeas.kernels.kernel").KernelDirections(kernel, points, amounts)


def kernel_of_text(text: str, function: Callable[[Any, Any], Any] | None) -> Any:
    """The kernel of a certificate, as its checker has it."""
    return load("dfeas.kernels.checker.bounds").Kernel.from_text(text, function)


def kernel_checker(kernel: Any) -> Any:
    """The checker of certificates about points in a kernel's space."""
    return load("dfeas.kernels.checker.core").Kernels(kernel)
