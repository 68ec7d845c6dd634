"""Labels of any two values become -1 and +1, and more values become codes; also those of a stream, as they come."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.data.storage.limits import require_short
from dfeas.errors import BadInputError

FEW = 4
"""Classes that are looked for one after the other."""

_RUN = 1 << 20
_MOST_CLASSES = 1000


CODE = np.dtype(np.int16)
"""Of labels that are codes: positions of classes, where there are more than two."""


def stored_type(classes: Sequence[str]) -> np.dtype[Any]:
    """Of the labels of these classes: signs of at most two, codes of more."""
    return CODE if len(classes) > 2 else np.dtype(np.int8)


@dataclass(frozen=True)
class LabelMap:
    """Which of the source's values is positive, or which values there are."""

    positive: Any  # None: labels become codes
    classes: tuple[str, ...]  # (negative, positive), or all in order
    values: tuple[Any, ...] = ()  # of the source, in order, where labels become codes

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the labels that come out."""
        return CODE if self.values else np.dtype(np.int8)

    def __call__(self, values: NDArray[Any]) -> NDArray[Any]:
        """Labels (b,) int8, -1 or +1; or codes (b,) int16 from 0."""
        if self.values:
            return np.searchsorted(np.array(self.values, values.dtype), values).astype(CODE)
        return np.where(values == self.positive, 1, -1).astype(np.int8)


def _runs(labels: Any, n: int) -> Iterator[NDArray[Any]]:
    for first in range(0, n, _RUN):
        yield np.asarray(labels[first : first + _RUN])


def plain(value: Any) -> str:
    """How a class is called in messages and headers: 1.0 and 1 alike."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def distinct(values: NDArray[Any]) -> list[Any]:
    """The different values of an array; of a few, each of which takes a look at the rest, faster than sorting or hashing."""
    values = values.reshape(-1)
    found: list[Any] = []
    other = np.ones(len(values), np.bool_)
    while len(found) < FEW and other.any():
        value = values[other.argmax()]
        found.append(value.item() if isinstance(value, np.generic) else value)
        other &= values != value
    found += np.unique(values[other]).tolist()
    return found


def require_usable(labels: NDArray[Any], where: str) -> None:
    """Raise BadInputError for labels that are no numbers, booleans or strings."""
    usable = labels.dtype.kind in "biufUST" or (
        labels.dtype.kind == "O" and all(isinstance(v, str) for v in labels.reshape(-1))
    )
    if not usable:
        raise BadInputError(f"{where}: labels of type {labels.dtype} cannot be used; give numbers, booleans or strings")
    if labels.dtype.kind in "US":
        require_short(labels.dtype.itemsize // (4 if labels.dtype.kind == "U" else 1), where)
    if labels.dtype.kind in "OT":
        require_short(max(map(len, labels.reshape(-1)), default=0), where)


def map_labels(labels: Any, n: int, positive: str | None, where: str, many: bool = False) -> LabelMap:
    """Look at all labels, in runs, and choose the positive class.

    ``positive`` names it; without it there must be two classes, of which the greater in order is positive
    ({0, 1}, {-1, +1}, False/True, strings), unless ``many`` may be kept as codes. Raises BadInputError otherwise.
    """
    shape = tuple(labels.shape or ())
    if shape not in ((n,), (n, 1)):
        raise BadInputError(f"{where}: expected {n} labels, one a point, got an array of shape {shape}")
    found: set[Any] = set()
    for first, run in zip(range(0, n, _RUN), _runs(labels, n), strict=True):
        require_usable(run, where)
        if run.dtype.kind == "f" and not np.isfinite(run).all():
            at = first + int(np.flatnonzero(~np.isfinite(run.reshape(-1)))[0])
            raise BadInputError(f"{where}: the label of point {at} is not a finite number; remove or correct it")
        found.update(distinct(run))
        if len(found) > _MOST_CLASSES:
            raise BadInputError(f"{where}: more than {_MOST_CLASSES} different labels; is this the label array?")
    return choose(found, n, positive, where, many)


def choose(found: set[Any], n: int, positive: str | None, where: str, many: bool = False) -> LabelMap:
    """The positive class among those of all n labels, as in ``map_labels``."""
    classes = sorted(found)
    names = [plain(c) for c in classes]
    if len(classes) < 2:
        raise BadInputError(f"{where}: all {n} labels are {names[0]}; two classes are needed")
    if positive is None:
        if len(classes) > 2 and many:
            return LabelMap(None, tuple(names), tuple(classes))
        if len(classes) > 2:
            raise too_many(names, where)
        return LabelMap(classes[1], (names[0], names[1]))
    chosen = place_of(positive, names, where)
    rest = names[1 - chosen] if len(names) == 2 else "rest"
    return LabelMap(classes[chosen], (rest, names[chosen]))


@dataclass(frozen=True)
class KnownLabels:
    """Labels of classes that a dataset has already."""

    classes: tuple[str, ...]  # as in a header
    where: str

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the labels that come out."""
        return stored_type(self.classes)

    def label(self, value: Any) -> int:
        """Of one value. Raises BadInputError for a class that is not one of them."""
        name = plain(value)
        names = list(self.classes)
        if name not in names and len(names) == 2 and names[0] == "rest":
            name = "rest"
        if name not in names:
            raise BadInputError(
                f"{self.where}: class {name} is not one of the dataset's ({', '.join(names[:6])}"
                f"{', ...' if len(names) > 6 else ''}); ingest all again"
            )
        return names.index(name) if len(names) > 2 else 2 * names.index(name) - 1

    def __call__(self, values: NDArray[Any]) -> NDArray[Any]:
        """Labels (b,) of values (b,)."""
        require_usable(values, self.where)
        found, place = np.unique(values, return_inverse=True)
        if found.dtype.kind == "f" and not np.isfinite(found).all():
            raise BadInputError(f"{self.where}: a label is not a finite number; remove or correct it")
        table = np.array([self.label(value) for value in found.tolist()], self.dtype)
        return np.asarray(table[place.reshape(-1)])


def too_many(names: Sequence[str], where: str) -> BadInputError:
    """The error for more than two classes."""
    return BadInputError(
        f"{where}: {len(names)} classes ({', '.join(names[:6])}{', ...' if len(names) > 6 else ''}); "
        "choose one against the rest with --positive CLASS, or ask for all with --one-vs-rest"
    )


def place_of(positive: str, names: Sequence[str], where: str) -> int:
    """Position of a class by its name; a number may be written in any way. Raises BadInputError when there is none."""
    name = str(positive)
    try:
        return list(names).index(plain(float(name)) if _is_number(name) and name not in names else name)
    except ValueError:
        raise BadInputError(f"{where}: no point has the label {positive}; the classes are {', '.join(names[:6])}") from None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


_WHOLE = re.compile(r"[+-]?[0-9]{1,400}")


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
