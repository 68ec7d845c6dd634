"""Kernels: the question in a reproducing-kernel space, without storing the Gram matrix."""

from dfeas.kernels.kernel import NAMES, Kernel, kernel_of, usual_gamma

__all__ = ["NAMES", "Kernel", "kernel_of", "usual_gamma"]
