"""Methods: the algorithms as ask/tell state machines, by name."""

from collections.abc import Callable

from dfeas.methods.ispvn import Ispvn
from dfeas.methods.margin_perceptron import margin_perceptron
from dfeas.methods.mirror_prox import FixedSteps, MirrorProx
from dfeas.methods.mirror_prox_one_pass import OnePassMirrorProx
from dfeas.methods.normalized_perceptron import NormalizedPerceptron
from dfeas.methods.online_perceptron import OnlinePerceptron
from dfeas.methods.perceptron import perceptron
from dfeas.methods.protocol import AnyMethod, Bracket, Evidence, Facts, Method, Mixture, Sparse, Stored
from dfeas.methods.ride_along import RideAlong
from dfeas.methods.smooth_perceptron import SmoothPerceptron
from dfeas.methods.von_neumann import VonNeumann
from dfeas.methods.winnow import winnow
from dfeas.methods.working_set import WorkingSet

METHODS: dict[str, Callable[[], AnyMethod]] = {
    "working-set": lambda: RideAlong(WorkingSet(), SmoothPerceptron(), "working-set"),
    "working-set-plain": WorkingSet,
    "mirror-prox": MirrorProx,
    "mirror-prox-one-pass": OnePassMirrorProx,
    "mirror-prox-fixed": lambda: MirrorProx(FixedSteps(), "mirror-prox-fixed"),
    "smooth-perceptron": SmoothPerceptron,
    "perceptron": perceptron,
    "normalized-perceptron": NormalizedPerceptron,
    "online-perceptron": OnlinePerceptron,
    "margin-perceptron": margin_perceptron,
    "margin-perceptron-unit": lambda: margin_perceptron(unit=True),
    "winnow": winnow,
    "von-neumann": VonNeumann,
    "von-neumann-away": lambda: VonNeumann(away=True),
    "ispvn": Ispvn,
}
"""All methods."""

__all__ = ["METHODS", "AnyMethod", "Bracket", "Evidence", "Facts", "Method", "Mixture", "Sparse", "Stored"]
