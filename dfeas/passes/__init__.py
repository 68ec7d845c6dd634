"""Passes: what one read of all blocks can answer. No I/O, no Dask."""

from dfeas.passes.block import Block
from dfeas.passes.columns import Columns
from dfeas.passes.histogram import Counts, Histogram
from dfeas.passes.protocol import AnyPass, Partial, Pass, Question
from dfeas.passes.recover import Recover, SparseWeights
from dfeas.passes.sample import Sample, sample
from dfeas.passes.select import Select, Selection
from dfeas.passes.softmin import Softmin, SoftminAnswer
from dfeas.passes.survey import Summary, Survey
from dfeas.passes.together import Together

__all__ = [
    "AnyPass",
    "Block",
    "Columns",
    "Counts",
    "Histogram",
    "Partial",
    "Pass",
    "Question",
    "Recover",
    "Sample",
    "Select",
    "Selection",
    "Softmin",
    "SoftminAnswer",
    "SparseWeights",
    "Summary",
    "Survey",
    "Together",
    "sample",
]
