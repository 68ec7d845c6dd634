"""Labels of any two values become -1 and +1; more values become codes, their positions in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.errors import BadInputError
from dfeas.store.limits import require_short

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
