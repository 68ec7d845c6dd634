"""Methods: the algorithms as ask/tell state machines, by name."""

from collections.abc import Callable

from dfeas.methods.mirror_prox import FixedSteps, MirrorProx
from dfeas.methods.perceptron import Perceptron
from dfeas.methods.protocol import AnyMethod, Bracket, Evidence, Facts, Method, Mixture, Sparse
from dfeas.methods.ride_along import RideAlong
from dfeas.methods.smooth_perceptron import SmoothPerceptron
from dfeas.methods.working_set import WorkingSet

METHODS: dict[str, Callable[[], AnyMethod]] = {
    "working-set": lambda: RideAlong(WorkingSet(), SmoothPerceptron(), "working-set"),
    "working-set-plain": WorkingSet,
    "mirror-prox": MirrorProx,
    "mirror-prox-fixed": lambda: MirrorProx(FixedSteps(), "mirror-prox-fixed"),
    "smooth-perceptron": SmoothPerceptron,
    "perceptron": Perceptron,
}
"""All methods."""

__all__ = ["METHODS", "AnyMethod", "Bracket", "Evidence", "Facts", "Method", "Mixture", "Sparse"]
