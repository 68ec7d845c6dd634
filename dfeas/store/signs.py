"""Labels of a stream become -1 and +1 as they come, in memory that does not depend on their number."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.errors import BadInputError
from dfeas.store.labels import LabelMap, choose, plain

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


class Signs:
    """Maps labels, run after run. Without ``positive`` the second class that appears is taken for the positive one.

    Text that reads as a number is that number: 1, 1.0 and +1 are one class.
    """

    def __init__(self, positive: str | None, where: str) -> None:
        self._positive, self._where = positive, where
        self._seen: list[Any] = []

    def __call__(self, labels: Coded, first: int) -> NDArray[np.int8]:
        """Signs (b,) of the labels of points from ``first`` on. Raises BadInputError for labels that cannot be used."""
        table: NDArray[np.int8] = np.zeros(len(labels.values), np.int8)
        for code, value in enumerate(labels.values):
            at = np.flatnonzero(labels.codes == code)
            if len(at):
                table[code] = self._sign(_key(value), first + int(at[0]))
        return np.asarray(table[labels.codes])

    def _sign(self, key: Any, point: int) -> int:
        if key == "" or (isinstance(key, float) and not math.isfinite(key)):
            raise BadInputError(f"{self._where}: the label of point {point} is missing or not finite; remove or correct it")
        if key not in self._seen:
            self._seen.append(key)
            self._refuse_many(point)
        if self._positive is None:
            return 1 if self._seen.index(key) else -1
        return 1 if plain(key) == plain(_key(self._positive)) else -1

    def _refuse_many(self, point: int) -> None:
        if self._positive is None and len(self._seen) > 2:
            names = ", ".join(map(plain, self._seen))
            raise BadInputError(
                f"{self._where}: more than two classes ({names}: the third at point {point}); "
                "choose one against the rest with --positive CLASS"
            )
        if len(self._seen) > _MOST_CLASSES:
            raise BadInputError(f"{self._where}: more than {_MOST_CLASSES} different labels; is this the label column?")

    def settle(self, n: int) -> tuple[LabelMap, bool]:
        """The classes of all n labels, and whether every sign that was given has to be swapped.

        Raises BadInputError when there is one class only, or none is called ``positive``.
        """
        text = any(isinstance(key, str) for key in self._seen)
        seen = [plain(key) for key in self._seen] if text else self._seen
        wanted = None if self._positive is None else plain(_key(self._positive))
        found = choose(set(seen), n, wanted, self._where)
        return found, self._positive is None and found.positive != seen[1]


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
