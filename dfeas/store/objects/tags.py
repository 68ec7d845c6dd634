"""ETags of the objects of a folder: what tells that one of them changed, without reading it."""

from __future__ import annotations

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
        # sorted hashes of keys, and of ETags: 16 bytes an object
        self._listed: tuple[NDArray[np.uint64], NDArray[np.uint64]] = np.empty(0, np.uint64), np.empty(0, np.uint64)
        self._until = 0.0
        self._lock = Lock()

    def __call__(self, name: str) -> int:
        """That of an object, by its name in the folder; 0 when there is none."""
        if monotonic() >= self._until:
            with self._lock:
                if monotonic() >= self._until:
                    self._list()
        keys, found = self._listed
        place = _place(keys, name)
        return 0 if place is None else int(found[place])

    def _list(self) -> None:
        began = monotonic()
        skipped = len(self.folder.key) + 1
        pairs = [(_number(found["path"][skipped:]), tag_of(found)) for found in self.folder.listed()]
        both = np.array(pairs, np.uint64).reshape(-1, 2)
        order = np.argsort(both[:, 0])
        self._listed = both[order, 0], both[order, 1]
        now = monotonic()
        self._until = now + max(FRESH_SECONDS, SELDOM * (now - began))

    def correct(self, name: str, tag: int) -> None:
        """What a request said of an object just now."""
        with self._lock:
            keys, found = self._listed
            place = _place(keys, name)
            if place is not None:
                found[place] = tag


def _place(keys: NDArray[np.uint64], name: str) -> int | None:
    key = np.uint64(_number(name))
    place = int(np.searchsorted(keys, key))
    return place if place < len(keys) and keys[place] == key else None


def tag_of(found: Any) -> int:
    """A number for what obstore says of an object: listings and answers may differ in quotes, and there may be no ETag."""
    mark = (found["e_tag"] or "").removeprefix("W/").strip('"') or int(found["last_modified"].timestamp())
    return _number(f"{mark} {found['size']}") or 1


def _number(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")
