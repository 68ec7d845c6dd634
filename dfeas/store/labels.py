"""Labels of any two values become -1 and +1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.errors import BadInputError

_RUN = 1 << 20
_MOST_CLASSES = 1000


@dataclass(frozen=True)
class LabelMap:
    """Which of the source's values is positive."""

    positive: Any
    classes: tuple[str, ...]  # (negative, positive)

    def __call__(self, values: NDArray[Any]) -> NDArray[np.int8]:
        """Labels (b,) int8, -1 or +1."""
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


def require_usable(labels: NDArray[Any], where: str) -> None:
    """Raise BadInputError for labels that are no numbers, booleans or strings."""
    usable = labels.dtype.kind in "biufUST" or (
        labels.dtype.kind == "O" and all(isinstance(v, str) for v in labels.reshape(-1))
    )
    if not usable:
        raise BadInputError(f"{where}: labels of type {labels.dtype} cannot be used; give numbers, booleans or strings")


def map_labels(labels: Any, n: int, positive: str | None, where: str) -> LabelMap:
    """Look at all labels, in runs, and choose the positive class.

    ``positive`` names it; without it there must be two classes, of which the greater in order is positive
    ({0, 1}, {-1, +1}, False/True, strings). Raises BadInputError otherwise.
    """
    shape = tuple(labels.shape or ())
    if shape not in ((n,), (n, 1)):
        raise BadInputError(f"{where}: expected {n} labels, one a point, got an array of shape {shape}")
    found: set[Any] = set()
    for first, run in zip(range(0, n, _RUN), _runs(labels, n), strict=True):
        if run.dtype.kind == "f" and not np.isfinite(run).all():
            at = first + int(np.flatnonzero(~np.isfinite(run.reshape(-1)))[0])
            raise BadInputError(f"{where}: the label of point {at} is not a finite number; remove or correct it")
        require_usable(run, where)
        found.update(np.unique(run).tolist())
        if len(found) > _MOST_CLASSES:
            raise BadInputError(f"{where}: more than {_MOST_CLASSES} different labels; is this the label array?")
    return choose(found, n, positive, where)


def choose(found: set[Any], n: int, positive: str | None, where: str) -> LabelMap:
    """The positive class among those of all n labels, as in ``map_labels``."""
    classes = sorted(found)
    names = [plain(c) for c in classes]
    if len(classes) < 2:
        raise BadInputError(f"{where}: all {n} labels are {names[0]}; two classes are needed")
    if positive is None:
        if len(classes) > 2:
            raise BadInputError(
                f"{where}: {len(classes)} classes ({', '.join(names[:6])}{', ...' if len(names) > 6 else ''}); "
                "choose one against the rest with --positive CLASS"
            )
        return LabelMap(classes[1], (names[0], names[1]))
    try:
        chosen = names.index(plain(float(positive)) if _is_number(positive) and positive not in names else positive)
    except ValueError:
        raise BadInputError(f"{where}: no point has the label {positive}; the classes are {', '.join(names[:6])}") from None
    rest = names[1 - chosen] if len(names) == 2 else "rest"
    return LabelMap(classes[chosen], (rest, names[chosen]))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
