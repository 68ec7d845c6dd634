"""Methods: the algorithms as ask/tell state machines, by name."""

from dfeas.methods.ispvn import Ispvn
from dfeas.methods.margin_perceptron import margin_perceptron
from dfeas.methods.mirror_prox import BALL, FIXED, MirrorProx
from dfeas.methods.mirror_prox_one_pass import OnePassMirrorProx
from dfeas.methods.normalized_perceptron import WORST, NormalizedPerceptron
from dfeas.methods.online_perceptron import OnlinePerceptron
from dfeas.methods.perceptron import KernelPerceptron, perceptron
from dfeas.methods.protocol import AnyMethod, Led, RideAlong, Traits
from dfeas.methods.smooth_perceptron import SmoothPerceptron
from dfeas.methods.snkpvn import ITERATED, Snkpvn
from dfeas.methods.soft_margin.hinge import HingeMargin
from dfeas.methods.soft_margin.problem import SoftMargin
from dfeas.methods.soft_margin.sgd import StochasticMargin
from dfeas.methods.soft_margin.squared_hinge import SquaredHingeMargin
from dfeas.methods.von_neumann import AWAY, VonNeumann
from dfeas.methods.winnow import winnow
from dfeas.methods.working_set import PointWorkingSet, passes_ahead

RIDDEN = Traits("working-set", "a few reads; columns in memory; names conflicts", points=1.0, columns=True)

ALL: tuple[AnyMethod, ...] = (
    Led(RideAlong(PointWorkingSet(), SmoothPerceptron(), RIDDEN), OnePassMirrorProx(), passes_ahead),
    PointWorkingSet(),
    MirrorProx(),
    OnePassMirrorProx(),
    FIXED,
    SmoothPerceptron(),
    perceptron(),
    KernelPerceptron(),
    WORST,
    NormalizedPerceptron(),
    OnlinePerceptron(),
    margin_perceptron(),
    margin_perceptron(unit=True),
    winnow(),
    VonNeumann(),
    AWAY,
    Snkpvn(),
    Ispvn(),
    ITERATED,
    BALL,
)
"""All methods; of one name there may be one for each geometry."""

METHODS = {method.name: method for method in ALL if method.traits.points is not None}
"""Those for points."""

SOFT_MARGINS: dict[str, type[SoftMargin]] = {each.name: each for each in (HingeMargin, SquaredHingeMargin, StochasticMargin)}
"""Soft margins."""
