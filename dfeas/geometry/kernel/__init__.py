"""Kernels: the question in a reproducing-kernel space, without storing the Gram matrix."""
