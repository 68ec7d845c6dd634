"""Estimators for scikit-learn, which has to be installed. They are silent unless asked."""

from dfeas.estimators.linear_svc import LinearSVC, LinearSVCCV
from dfeas.estimators.separator import KernelSeparator, Separator

__all__ = ["KernelSeparator", "LinearSVC", "LinearSVCCV", "Separator"]
