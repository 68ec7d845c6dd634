"""Estimators for scikit-learn, which has to be installed. They are silent unless asked."""

from dfeas.errors import install

try:
    import sklearn as sklearn
except ImportError:
    raise ImportError(f"dfeas.estimators needs scikit-learn, which is not installed: {install('sklearn')}") from None

from dfeas.estimators.linear_svc import LinearSVC, LinearSVCCV
from dfeas.estimators.separator import KernelSeparator, Separator

__all__ = ["KernelSeparator", "LinearSVC", "LinearSVCCV", "Separator"]
