"""Methods for kernels, by name: twins of the linear ones that keep n-vectors.

In a kernel's space y has no entries, only an expansion over points: so what is an m-vector to a linear method is an n-vector
here, with its product with the Gram matrix, as in the papers. They are kept by the driver, and are what a checkpoint keeps. A
product of a combination of vectors whose products are known is known: each step costs one new product.
"""

from collections.abc import Callable

from dfeas.kernels.kernel import Kernel
from dfeas.kernels.methods.ispvn import KernelIspvn
from dfeas.kernels.methods.mirror_prox import KernelMirrorProx
from dfeas.kernels.methods.normalized_perceptron import KernelNormalizedPerceptron
from dfeas.kernels.methods.perceptron import KernelPerceptron
from dfeas.kernels.methods.smooth_perceptron import KernelSmoothPerceptron
from dfeas.kernels.methods.snkpvn import Snkpvn
from dfeas.kernels.methods.von_neumann import KernelVonNeumann
from dfeas.methods import AnyMethod
from dfeas.methods.mirror_prox import FixedSteps

KERNEL_METHODS: dict[str, Callable[[Kernel], AnyMethod]] = {
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
