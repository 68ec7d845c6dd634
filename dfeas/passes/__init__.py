"""Passes: what one read of all blocks can answer. No I/O, no Dask."""

from dfeas.passes.block import Block
from dfeas.passes.protocol import AnyPass, Pass
from dfeas.passes.recover import Recover, SparseWeights
from dfeas.passes.select import Select, Selection
from dfeas.passes.softmin import Softmin, SoftminAnswer
from dfeas.passes.survey import Summary, Survey
from dfeas.passes.together import Together

__all__ = [
    "AnyPass",
    "Block",
    "Pass",
    "Recover",
    "Select",
    "Selection",
    "Softmin",
    "SoftminAnswer",
    "SparseWeights",
    "Summary",
    "Survey",
    "Together",
]
