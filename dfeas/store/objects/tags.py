"""ETags of the objects of a folder: what tells that one of them changed, without reading it."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from threading import Lock
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.store.objects.path import ObjectPath

FRESH_SECONDS = 10.0
"""A listing is used for so long, or for 20 times as long as it took. A request lists 1,000 ETags; what is read says its own."""

SELDOM = 20


class Tags:
    """Numbers that change with the objects below a folder, the same in every process. Safe to use from several threads."""

    def __init__(self, folder: ObjectPath) -> None:
        self.folder = folder
        self._keys: NDArray[np.uint64] = np.empty(0, np.uint64)  # sorted hashes: 16 bytes an object
        self._found: NDArray[np.uint64] = np.empty(0, np.uint64)
        self._until = 0.0
        self._lock = Lock()

    def __call__(self, name: str) -> int:
        """That of an object, by its name in the folder; 0 when there is none."""
        if monotonic() >= self._until:
            with self._lock:
                if monotonic() >= self._until:
                    self._list()
        return self._look(self._keys, self._found, _number(name))

    def _look(self, keys: NDArray[np.uint64], found: NDArray[np.uint64], key: int) -> int:
        place = int(np.searchsorted(keys, np.uint64(key)))
        return int(found[place]) if place < len(keys) and int(keys[place]) == key else 0

    def _list(self) -> None:
        began = monotonic()
        skipped = len(self.folder.key) + 1
        pairs = [(_number(found["path"][skipped:]), tag_of(found)) for found in self.folder.listed()]
        both = np.array(pairs, np.uint64).reshape(-1, 2)
        order = np.argsort(both[:, 0])
        self._keys, self._found = both[order, 0], both[order, 1]
        now = monotonic()
        self._until = now + max(FRESH_SECONDS, SELDOM * (now - began))

    def correct(self, name: str, tag: int) -> None:
        """What a request said of an object just now."""
        with self._lock:
            key = _number(name)
            place = int(np.searchsorted(self._keys, np.uint64(key)))
            if place < len(self._keys) and int(self._keys[place]) == key:
                self._found[place] = tag


def tag_of(found: Any) -> int:
    """A number for what obstore says of an object."""
    return _number(f"{found['e_tag']} {found['size']}") or 1


def _number(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def all_of(numbers: Iterable[int]) -> int:
    """One number for several, in their order."""
    return _number(" ".join(map(str, numbers)))
