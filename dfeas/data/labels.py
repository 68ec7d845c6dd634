"""Labels of any two values become -1 and +1, and more values become codes; also those of a stream, as they come."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from dfeas.data.storage.numbers import array_of, exact, is_missing
from dfeas.data.storage.places import require_short
from dfeas.errors import BadInputError, brief, near, spell

FEW = 4
"""Classes that are looked for one after the other."""
RUN = 1 << 20
"""Labels of an array that are looked at in one go."""
MOST_CLASSES = 1000
CODE = np.dtype(np.int16)
"""Of labels that are codes: positions of classes, where there are more than two."""


def stored_type(classes: Sequence[str]) -> np.dtype[Any]:
    """Of the labels of these classes: signs of at most two, codes of more."""
    return CODE if len(classes) > 2 else np.dtype(np.int8)


def points_of(label: NDArray[Any], classes: Sequence[str]) -> dict[str, Any]:
    """What a header says of labels (n,) of these classes: points of the positive one, or of each of more than two."""
    if len(classes) > 2:
        return {"positive": 0, "counts": tuple(np.bincount(label, minlength=len(classes)).tolist())}
    return {"positive": int((label > 0).sum()), "counts": ()}


class Categories(Struct, frozen=True, eq=False):
    """Labels (b,) as positions in a short list of different values."""

    codes: NDArray[Any]  # (b,) integers
    values: list[Any]  # numbers, booleans or text

    @classmethod
    def of(cls, labels: NDArray[Any]) -> Categories:
        """From an array of numbers or text; a few values, each of which takes a look at the rest, faster than by sorting."""
        if labels.dtype.kind in "biu" and len(labels) and (least := labels.min()) < (greatest := labels.max()):
            high = labels == greatest
            if (high != (labels == least)).all():  # two values: a quarter of the time of what follows
                return cls(high.view(np.int8), [least.item(), greatest.item()])
        codes, other = np.zeros(len(labels), CODE), np.ones(len(labels), np.bool_)
        values: list[Any] = []
        while len(values) < FEW and other.any():
            value = labels[other.argmax()]
            here = labels == value
            np.putmask(codes, here, CODE.type(len(values)))  # a sixth of the time of an assignment by a mask
            other &= ~here
            values.append(value.item() if isinstance(value, np.generic) else value)
        if not other.any():
            return cls(codes, values)
        different, places = np.unique(labels, return_inverse=True)
        return cls(places.reshape(-1), different.tolist())

    @classmethod
    def of_text(cls, labels: list[str]) -> Categories:
        """From text, in which NumPy would lose NUL characters at the end."""
        codes = {value: code for code, value in enumerate(dict.fromkeys(labels))}
        return cls(np.array([codes[label] for label in labels], np.int64), list(codes))

    @classmethod
    def none(cls, count: int) -> Categories:
        """For points without labels: all alike."""
        return cls(np.broadcast_to(CODE.type(0), count), [0])

    def __getitem__(self, rows: slice) -> Categories:
        return Categories(self.codes[rows], self.values)


class LabelEncoder:
    """Maps labels, part after part, to codes in the order in which classes appear; ``finish`` says what the codes mean.
    ``positive`` names the class that is +1, against all others. Of ``known`` classes, (negative, positive) or all in order,
    labels are what they are there. Labels of a ``column``, or beside one, may be text that reads as a number, and are that
    number then: 1, 1.0 and +1 are one class. Text with zeros before a number, or with a _ as Python's numbers may have, is a
    code, and as it is: 01 is not 1, and 1_0 is not 10.
    """

    def __init__(
        self, where: str, positive: str | None = None, known: tuple[str, ...] | None = None, column: bool = True
    ) -> None:
        self._where, self._positive, self._known, self._column = where, positive, known, column
        self._codes: dict[Any, int] = {}

    def encode(self, labels: Categories, first: int) -> NDArray[Any]:
        """Codes (b,) int16 of the labels of points from ``first`` on. Raises BadInputError for labels that cannot be used."""
        table = np.zeros(len(labels.values), CODE)
        for place in np.flatnonzero(np.bincount(labels.codes.astype(np.int64, copy=False), minlength=len(table))):
            key = _number_of(labels.values[place]) if self._column else labels.values[place]
            if key not in self._codes:
                if self._column and (key == "" or (isinstance(key, float) and not math.isfinite(key))):
                    point = first + int((labels.codes == place).argmax())
                    raise BadInputError(
                        f"{self._where}: the label of point {point} is missing or not finite; remove or correct it"
                    )
                self._add(key)
            table[place] = self._codes[key]
        return np.asarray(np.take(table, labels.codes, mode="clip"))  # a third of the time of indexing

    def _add(self, key: Any) -> None:
        if isinstance(key, bytes):
            try:
                key.decode()
            except UnicodeDecodeError:
                text = "is no text in UTF-8; give text, as by numpy.char.decode(labels, 'latin-1')"
                raise BadInputError(f"{self._where}: the label {key!r} {text}") from None
        if self._column:
            require_short(len(key) if isinstance(key, str) else 0, self._where)
        self._codes[key] = len(self._codes)
        if len(self._codes) > MOST_CLASSES:
            what = "column" if self._column else "array"
            raise BadInputError(f"{self._where}: more than {MOST_CLASSES} different labels; is this the label {what}?")
        if self._known is not None:
            self._known_label(key, self._known)

    def encode_all(self, parts: Iterable[Categories], first: int) -> NDArray[Any]:
        codes = []
        for part in parts:
            codes.append(self.encode(part, first))
            first += len(part.codes)
        if not codes:
            raise BadInputError(f"{self._where}: none come with the points; give an array (n,) or its path")
        return np.concatenate(codes)

    @property
    def values(self) -> list[Any]:
        return list(self._codes)

    def finish(self, n: int, many: bool = True) -> tuple[tuple[str, ...], NDArray[Any]]:
        """Names of the classes of all n labels, (negative, positive) or all in order, and the label for each code. Without
        ``positive`` there are two classes, of which the greater in order is positive ({0, 1}, {-1, +1}, False/True, strings),
        or ``many``, which are kept as codes. Raises BadInputError for one class, for more than two where not ``many`` are
        taken, and when none is called ``positive``.
        """
        if self._known is not None:
            return self._known, np.array([self._known_label(key, self._known) for key in self._codes], stored_type(self._known))
        text = self._column and any(isinstance(key, str) for key in self._codes)
        values = [plain(key) if text else key for key in self._codes]
        ordered = sorted(set(values))
        names = [plain(value) for value in ordered]
        if len(names) < 2:
            raise BadInputError(f"{self._where}: all {n} labels are {names[0]}; two classes are needed")
        if self._positive is None and len(names) > 2:
            if not many:
                raise too_many(names, self._where)
            places = {value: place for place, value in enumerate(ordered)}
            return tuple(names), np.array([places[value] for value in values], CODE)
        chosen = 1
        if self._positive is not None:
            name = plain(_number_of(self._positive)) if self._column else self._positive
            chosen = place_of(name, names, self._where)
        rest = names[1 - chosen] if len(names) == 2 else "rest"
        signs = [1 if value == ordered[chosen] else -1 for value in values]
        return (rest, names[chosen]), np.array(signs, np.int8)

    def _known_label(self, key: Any, classes: tuple[str, ...]) -> int:
        """The label of a class that a dataset has already. Raises BadInputError for one that it has not."""
        name = plain(key)
        if name not in classes and len(classes) == 2 and classes[0] == "rest":
            name = "rest"
        if name not in classes:
            raise BadInputError(
                f"{self._where}: class {name} is not one of the dataset's ({', '.join(classes[:6])}"
                f"{', ...' if len(classes) > 6 else ''}); ingest all again"
            )
        return classes.index(name) if len(classes) > 2 else 2 * classes.index(name) - 1


def encode_array(
    labels: Any,
    n: int,
    where: str,
    positive: str | None = None,
    many: bool = False,
    known: tuple[str, ...] | None = None,
    column: bool = False,
) -> tuple[tuple[str, ...], NDArray[Any]]:
    """Names of the classes, and labels (n,) as they are stored: one byte a point, or two; see ``LabelEncoder``. ``labels`` (n,)
    or (n, 1) is read in runs. Raises BadInputError for others, and for labels that cannot be used.
    """
    shape = tuple(labels.shape or ())
    if shape not in ((n,), (n, 1)):
        raise BadInputError(f"{where}: expected {n} labels, one a point, got an array of shape {shape}")
    encoder, codes = LabelEncoder(where, positive, known, column), np.empty(n, CODE)
    for first in range(0, n, RUN):
        run = array_of(labels[first : first + RUN], where).reshape(-1)
        run = exact(run, np.float64, where) if run.dtype.kind == "f" and run.dtype.itemsize > 8 else run
        require_usable(run, where, None if known else first, column)
        codes[first : first + RUN] = encoder.encode(Categories.of(run), first)
    classes, table = encoder.finish(n, many)
    return classes, np.take(table, codes, mode="clip")


def plain(value: Any) -> str:
    """How a class is called in messages and headers: 1.0 and 1 alike."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return value if isinstance(value, str) else brief(value, say=str)


def plain_labels(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels that are objects of one plain type, truth values or numbers, in a type of NumPy; else as they are."""
    kinds = set(map(type, labels.tolist())) if labels.dtype.kind == "O" else set[type]()
    truths = kinds <= {bool, np.bool_}
    if not kinds or not (truths or all(issubclass(kind, int | float | np.integer | np.floating) for kind in kinds - {bool})):
        return labels
    plain = np.array(labels.tolist())
    same = (truths or bool not in kinds) and plain.tolist() == labels.tolist()
    return plain if same else labels


def require_usable(labels: NDArray[Any], where: str, first: int | None, column: bool = False) -> None:
    """Raise BadInputError for labels of points from ``first`` on that are no finite numbers, booleans or strings. Those of a
    ``column`` may be missing, which is said when they are encoded.
    """
    kinds = set(map(type, labels)) if labels.dtype.kind == "O" else set[type]()
    real = int | float | np.integer | np.floating
    numbers = bool(kinds) and all(issubclass(kind, real) and kind is not bool for kind in kinds)
    objects = not (all(issubclass(kind, str) for kind in kinds) or kinds <= {bool, np.bool_})
    if not column or labels.dtype.kind == "T":
        refuse_missing(labels, where, first)
    if (labels.dtype.kind == "f" or numbers) and not column:
        infinite = np.array([value in (math.inf, -math.inf) for value in labels]) if numbers else ~np.isfinite(labels)
        _refuse(infinite, "not a finite number", where, first)
    if labels.dtype.kind not in "biufUSTO" or (objects and not numbers):
        raise BadInputError(f"{where}: labels of type {labels.dtype} cannot be used; give numbers, booleans or strings")
    if labels.dtype.kind in "US":
        require_short(labels.dtype.itemsize // (4 if labels.dtype.kind == "U" else 1), where)
    if labels.dtype.kind in "OT" and not numbers and not kinds & {bool, np.bool_}:
        require_short(max(map(len, labels), default=0), where)


def refuse_missing(labels: NDArray[Any], where: str, first: int | None) -> None:
    """Raise BadInputError for labels of points from ``first`` on, objects or text of NumPy, of which one is missing."""
    if labels.dtype.kind in "OT":
        _refuse(np.array([is_missing(value) for value in labels], np.bool_), "missing", where, first)


def _refuse(wrong: NDArray[np.bool_], what: str, where: str, first: int | None) -> None:
    if wrong.any():
        which = "a label" if first is None else f"the label of point {first + int(wrong.argmax())}"
        raise BadInputError(f"{where}: {which} is {what}; remove or correct it")


def too_many(names: Sequence[str], where: str) -> BadInputError:
    """The error for more than two classes."""
    return BadInputError(
        f"{where}: {len(names)} classes ({', '.join(names[:6])}{', ...' if len(names) > 6 else ''}); "
        f"choose one against the rest, as {spell('positive', names[0])}, or solve for all, by {spell('one_vs_rest')}"
    )


def place_of(positive: str, names: Sequence[str], where: str) -> int:
    """Position of a class by its name; a number may be written in any way. Raises BadInputError when there is none."""
    name = plain(positive)
    try:
        return list(names).index(name if name in names else plain(_number_of(name)))
    except ValueError:
        raise BadInputError(
            f"{where}: no point has the label {name}{near(name, names)}; the classes are {', '.join(names[:6])}"
        ) from None


_WHOLE = re.compile(r"[+-]?[0-9]{1,400}")
_CODE = re.compile(r"[+-]?0[0-9]|.*_")


def _number_of(value: Any) -> Any:
    """A number for text that reads as one and is no code, anything else as it is."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if _CODE.match(text):
        return text
    if _WHOLE.fullmatch(text):
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text
