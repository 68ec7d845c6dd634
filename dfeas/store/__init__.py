"""The store: what the data is and how a block of it is read."""

from dfeas.store.across import View
from dfeas.store.dataset import Dataset
from dfeas.store.opening import Source, for_checker, from_arrays, open_source, seen_across, seen_from, source_of

__all__ = ["Dataset", "Source", "View", "for_checker", "from_arrays", "open_source", "seen_across", "seen_from", "source_of"]
