"""Working set: columns in memory, separated or found in conflict. Usable alone on an in-memory matrix."""

from dfeas.workingset.basic import basic
from dfeas.workingset.matrix import ColumnMatrix
from dfeas.workingset.solver import CONFLICT, SEPARATED, UNRESOLVED, Solution, solve

__all__ = ["CONFLICT", "SEPARATED", "UNRESOLVED", "ColumnMatrix", "Solution", "basic", "solve"]
