"""The store: what the data is and how a block of it is read."""

from dfeas.store.arrays import from_arrays
from dfeas.store.assembling import seen_from
from dfeas.store.dataset import Dataset
from dfeas.store.opening import open_source
from dfeas.store.source import Source, for_checker, source_of
from dfeas.store.transform import SCALES, Transform
from dfeas.store.transformed import transformed

__all__ = [
    "SCALES",
    "Dataset",
    "Source",
    "Transform",
    "for_checker",
    "from_arrays",
    "open_source",
    "seen_from",
    "source_of",
    "transformed",
]
