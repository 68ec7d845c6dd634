"""Labels of a stream become codes as they come, and signs or codes in order at its end, in memory that does not grow."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.errors import BadInputError
from dfeas.store.labels import CODE, KnownLabels, LabelMap, choose, plain
from dfeas.store.limits import require_short

_WHOLE = re.compile(r"[+-]?[0-9]{1,400}")
_MOST_CLASSES = 1000


@dataclass(frozen=True, slots=True)
class Coded:
    """Labels (b,) as positions in a short list of different values."""

    codes: NDArray[Any]  # (b,) integers
    values: list[Any]  # numbers, booleans or text

    @classmethod
    def of(cls, labels: NDArray[Any]) -> Coded:
        """From an array of numbers or text."""
        values, codes = np.unique(labels, return_inverse=True)
        return cls(codes.reshape(-1), values.tolist())

    @classmethod
    def of_text(cls, labels: list[str]) -> Coded:
        """From text, in which NumPy would lose NUL characters at the end."""
        codes = {value: code for code, value in enumerate(dict.fromkeys(labels))}
        return cls(np.array([codes[label] for label in labels], np.int64), list(codes))

    @classmethod
    def none(cls, count: int) -> Coded:
        """For points without labels: all alike."""
        return cls(np.zeros(count, np.int64), [0])

    def __getitem__(self, rows: slice) -> Coded:
        return Coded(self.codes[rows], self.values)


class Codes:
    """Maps labels, run after run, to codes in the order in which classes appear.

    With ``positive`` they are signs: this class against all others. Text that reads as a number is that number: 1, 1.0 and +1
    are one class. Of ``known`` classes labels are what they are there.
    """

    def __init__(self, positive: str | None, where: str, known: KnownLabels | None = None) -> None:
        self._positive, self._where, self._known = positive, where, known
        self._seen: dict[Any, int] = {}

    def __call__(self, labels: Coded, first: int) -> NDArray[Any]:
        """Codes (b,) int16 of the labels of points from ``first`` on, or signs (b,) int8.

        Raises BadInputError for labels that cannot be used.
        """
        table = np.zeros(len(labels.values), self.dtype)
        for code, value in enumerate(labels.values):
            at = np.flatnonzero(labels.codes == code)
            if len(at):
                table[code] = self._code(_key(value), first + int(at[0]))
        return np.asarray(table[labels.codes])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of what is given."""
        if self._known is not None:
            return self._known.dtype
        return CODE if self._positive is None else np.dtype(np.int8)

    def _code(self, key: Any, point: int) -> int:
        if key == "" or (isinstance(key, float) and not math.isfinite(key)):
            raise BadInputError(f"{self._where}: the label of point {point} is missing or not finite; remove or correct it")
        if key not in self._seen:
            require_short(len(key) if isinstance(key, str) else 0, self._where)
            self._seen[key] = len(self._seen)
            if len(self._seen) > _MOST_CLASSES:
                raise BadInputError(f"{self._where}: more than {_MOST_CLASSES} different labels; is this the label column?")
        if self._known is not None:
            return self._known.label(key)
        if self._positive is None:
            return self._seen[key]
        return 1 if plain(key) == plain(_key(self._positive)) else -1

    @property
    def values(self) -> list[Any]:
        """The label of each code, while there is neither a positive class nor known ones."""
        return list(self._seen)

    def settle(self, n: int) -> tuple[LabelMap, NDArray[Any] | None]:
        """The classes of all n labels, and the label for each code that was given; None when these were signs.

        Raises BadInputError when there is one class only, or none is called ``positive``.
        """
        text = any(isinstance(key, str) for key in self._seen)
        seen = [plain(key) for key in self._seen] if text else list(self._seen)
        wanted = None if self._positive is None else plain(_key(self._positive))
        found = choose(set(seen), n, wanted, self._where, many=True)
        if self._positive is not None:
            return found, None
        if not found.values:
            return found, np.where([key == found.positive for key in seen], 1, -1).astype(np.int8)
        places = {value: place for place, value in enumerate(found.values)}
        return found, np.array([places[key] for key in seen], CODE)


def coded(codes: Codes, labels: Iterable[Coded], first: int) -> NDArray[Any]:
    """Codes (b,) of labels that come in parts, for points from ``first`` on."""
    parts = []
    for part in labels:
        parts.append(codes(part, first))
        first += len(part.codes)
    return np.concatenate(parts)


def _key(value: Any) -> Any:
    """A number for text that reads as one, anything else as it is."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if _WHOLE.fullmatch(text):
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text
