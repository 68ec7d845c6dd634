"""Methods: the algorithms as ask/tell state machines, by name. One is imported when it is looked up."""

from collections import UserDict
from collections.abc import MutableMapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dfeas.methods.protocol import AnyMethod
    from dfeas.methods.soft_margin.problem import SoftMargin


def base_name(method: str) -> str:
    """The name of a method without its options, which stand after a colon each."""
    return method.partition(":")[0]


class Directory(UserDict[str, Any]):
    """What is in modules of this package, by name: each is given by its place there, or as it is."""

    def __getitem__(self, name: str) -> Any:
        if ":" in name:
            return self[base_name(name)].with_options(name)
        found = self.data[name]
        if isinstance(found, str):
            module, _, what = found.partition(":")
            value = getattr(import_module(f"dfeas.methods.{module}"), what.removesuffix("()"))
            found = self.data[name] = value() if what.endswith("()") else value
        return found


METHODS: "MutableMapping[str, AnyMethod]" = Directory(
    {
        "working-set": "working_set.start:WORKING_SET",
        "working-set-plain": "working_set.start:PLAIN",
        "mirror-prox": "mirror_prox:MirrorProx()",
        "mirror-prox-one-pass": "mirror_prox_one_pass:OnePassMirrorProx()",
        "mirror-prox-fixed": "mirror_prox:FIXED",
        "smooth-perceptron": "smooth_perceptron:SmoothPerceptron()",
        "perceptron": "perceptron:perceptron()",
        "normalized-perceptron": "perceptron:NormalizedPerceptron()",
        "rescaled-perceptron": "rescaled_perceptron:BY_ONE",
        "rescaled-perceptron-ellipsoid": "rescaled_perceptron:BY_ALL",
        "online-perceptron": "perceptron:OnlinePerceptron()",
        "margin-perceptron": "margin_perceptron:margin_perceptron()",
        "margin-perceptron-unit": "margin_perceptron:OF_UNIT_POINTS",
        "winnow": "winnow:winnow()",
        "smooth-winnow": "mirror_prox_one_pass:SMOOTH_WINNOW",
        "von-neumann": "von_neumann:VonNeumann()",
        "von-neumann-away": "von_neumann:AWAY",
        "snkpvn": "ispvn:ONE_LOOP",
        "ispvn": "ispvn:Ispvn()",
    }
)
"""Those for points."""
FOR_KERNELS: "MutableMapping[str, AnyMethod]" = Directory(
    {
        "mirror-prox": "mirror_prox:MirrorProx()",
        "mirror-prox-fixed": "mirror_prox:FIXED",
        "smooth-perceptron": "smooth_perceptron:SmoothPerceptron()",
        "perceptron": "perceptron:KernelPerceptron()",
        "normalized-perceptron": "perceptron:NormalizedPerceptron()",
        "von-neumann": "von_neumann:VonNeumann()",
        "snkpvn": "snkpvn:Snkpvn()",
        "ispvn": "snkpvn:ITERATED",
    }
)
"""Those that ask about combinations of points."""
FOR_CONES: "MutableMapping[str, AnyMethod]" = Directory(
    {
        "mirror-prox": "mirror_prox:MirrorProx()",
        "mirror-prox-one-pass": "mirror_prox_one_pass:OnePassMirrorProx()",
        "mirror-prox-fixed": "mirror_prox:FIXED",
        "smooth-perceptron": "smooth_perceptron:SmoothPerceptron()",
        "perceptron": "perceptron:WORST",
        "normalized-perceptron": "perceptron:NormalizedPerceptron()",
        "von-neumann": "von_neumann:VonNeumann()",
        "von-neumann-away": "von_neumann:AWAY",
        "ispvn": "ispvn:ON_CONES",
        "mirror-prox-euclidean": "mirror_prox:BALL",
    }
)
"""Those that ask about eigenvalues as they do about points."""
SOFT_MARGINS: "MutableMapping[str, type[SoftMargin]]" = Directory(
    {
        "hinge": "soft_margin.hinge:HingeMargin",
        "squared-hinge": "soft_margin.squared_hinge:SquaredHingeMargin",
        "sgd": "soft_margin.sgd:StochasticMargin",
    }
)
"""Soft margins."""
