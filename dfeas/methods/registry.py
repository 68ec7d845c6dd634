"""Methods: the algorithms as ask/tell state machines, by name."""

from collections.abc import Callable

from dfeas.methods.ispvn import Ispvn
from dfeas.methods.margin_perceptron import margin_perceptron
from dfeas.methods.mirror_prox import FixedSteps, MirrorProx
from dfeas.methods.mirror_prox_one_pass import OnePassMirrorProx
from dfeas.methods.normalized_perceptron import NormalizedPerceptron
from dfeas.methods.online_perceptron import OnlinePerceptron
from dfeas.methods.perceptron import perceptron
from dfeas.methods.protocol import AnyMethod, Bracket, Evidence, Expansion, Facts, Method, Mixture, RideAlong, Sparse, Stored
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

SUMMARY: dict[str, str] = {
    "working-set": "a few reads; columns in memory; names conflicts",
    "working-set-plain": "the same without a method that rides along",
    "mirror-prox": "two reads a step",
    "mirror-prox-one-pass": "one read a step",
    "mirror-prox-fixed": "two reads a step, the theorem's step",
    "smooth-perceptron": "one read a step",
    "perceptron": "one read for many corrections; proves infeasibility slowly",
    "normalized-perceptron": "one read a step; proves infeasibility slowly",
    "online-perceptron": "points in order, one core; proves infeasibility slowly",
    "margin-perceptron": "a quarter of the best margin, points as stored; infeasibility slowly, without a bound",
    "margin-perceptron-unit": "the same for unit points; proves infeasibility slowly",
    "winnow": "multiplicative weights, for separators of few features; proves infeasibility slowly",
    "von-neumann": "one read a step",
    "von-neumann-away": "the same with away steps",
    "ispvn": "two reads a step, and n-vectors on scratch storage",
}
"""What a method costs and gives, for people. Slowly: in corrections of the order of 1 / eps^2, and more; ``bound`` has them."""

__all__ = [
    "METHODS",
    "SUMMARY",
    "AnyMethod",
    "Bracket",
    "Evidence",
    "Expansion",
    "Facts",
    "Method",
    "Mixture",
    "Sparse",
    "Stored",
]
