"""Soft margins by name."""

from dfeas.methods.soft_margin.hinge import HingeMargin
from dfeas.methods.soft_margin.problem import SoftMargin
from dfeas.methods.soft_margin.sgd import StochasticMargin
from dfeas.methods.soft_margin.squared_hinge import SquaredHingeMargin

SOFT_MARGINS: dict[str, type[SoftMargin]] = {each.name: each for each in (HingeMargin, SquaredHingeMargin, StochasticMargin)}
"""All of them."""
