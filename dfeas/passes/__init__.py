"""Passes: what one read of all blocks can answer. No I/O, no Dask."""

from dfeas.passes.block import Block
from dfeas.passes.classes import OfClass, OfClasses, of_class, together
from dfeas.passes.columns import Columns
from dfeas.passes.gram import Gram, GramAnswer
from dfeas.passes.histogram import Counts, Histogram
from dfeas.passes.moments import Moments, MomentsAnswer
from dfeas.passes.online import Online, OnlineAnswer
from dfeas.passes.project import Combine, CombineAnswer, Excess, ExcessAnswer, Positive, Shift, ShiftAnswer
from dfeas.passes.protocol import (
    Alone,
    AnyPass,
    Fold,
    InCompany,
    Keeps,
    OnPairs,
    OnVectors,
    Ordered,
    Partial,
    Pass,
    Question,
    Spills,
    VectorPass,
)
from dfeas.passes.recover import Recover, SparseWeights
from dfeas.passes.sample import Sample, sample
from dfeas.passes.select import Select, Selection
from dfeas.passes.softmin import Softmin, SoftminAnswer
from dfeas.passes.survey import Summary, Survey
from dfeas.passes.together import Together

__all__ = [
    "Alone",
    "AnyPass",
    "Block",
    "Columns",
    "Combine",
    "CombineAnswer",
    "Counts",
    "Excess",
    "ExcessAnswer",
    "Fold",
    "Gram",
    "GramAnswer",
    "Histogram",
    "InCompany",
    "Keeps",
    "Moments",
    "MomentsAnswer",
    "OfClass",
    "OfClasses",
    "OnPairs",
    "OnVectors",
    "Online",
    "OnlineAnswer",
    "Ordered",
    "Partial",
    "Pass",
    "Positive",
    "Question",
    "Recover",
    "Sample",
    "Select",
    "Selection",
    "Shift",
    "ShiftAnswer",
    "Softmin",
    "SoftminAnswer",
    "SparseWeights",
    "Spills",
    "Summary",
    "Survey",
    "Together",
    "VectorPass",
    "of_class",
    "sample",
    "together",
]
