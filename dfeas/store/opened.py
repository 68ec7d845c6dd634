"""What a worker process has open: datasets of the last runs, and the blocks of one of them."""

from __future__ import annotations

from threading import Lock

from dfeas.store.dataset import Dataset
from dfeas.store.opening import open_source
from dfeas.store.source import Source

_OPEN_RUNS = 8
_opened: dict[Source, Dataset] = {}
_opening = Lock()


def open_cached(source: Source) -> Dataset:
    """``open_source``, once a process and run. One dataset of a process keeps blocks: the one that was opened last."""
    with _opening:
        found = _opened.get(source)
        if found is None:
            found = open_source(source)
            if source.cache_bytes > 0:
                _close_caches(list(_opened.values()))
                found.keep(source.cache_bytes)
            _opened[source] = found
            for oldest in list(_opened)[:-_OPEN_RUNS]:
                del _opened[oldest]
        return found


def forget(run: str) -> None:
    """A run is over: what this process keeps of its data goes."""
    with _opening:
        ended = [source for source in _opened if source.run == run]
        _close_caches([_opened.pop(source) for source in ended])


def _close_caches(datasets: list[Dataset]) -> None:
    for dataset in datasets:
        dataset.close_cache()
