"""Soft margins: the hyperplane that trades the width of the margin for points on its wrong side. Same protocol as methods."""

from dfeas.svm.dual import Dual
from dfeas.svm.hinge import HingeMargin
from dfeas.svm.memory import kept_bytes, kept_points, least_memory, matrix_bytes, wanted
from dfeas.svm.problem import STEEP, Best, Progress, SoftMargin, counted, problems
from dfeas.svm.sgd import StochasticMargin
from dfeas.svm.squared_hinge import SquaredHingeMargin

__all__ = [
    "STEEP",
    "Best",
    "Dual",
    "HingeMargin",
    "Progress",
    "SoftMargin",
    "SquaredHingeMargin",
    "StochasticMargin",
    "counted",
    "kept_bytes",
    "kept_points",
    "least_memory",
    "matrix_bytes",
    "problems",
    "wanted",
]
