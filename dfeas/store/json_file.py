"""JSON that somebody wrote: parsed, not deeper or longer than anything of ours, and of the shape that is expected.

A shape is a type or a union of types (a bool is no number), ``Number`` for a range, ``[shape]`` for a list of such,
``{str: shape}`` for any keys, and ``{"key": shape}`` for these keys among others; ``"key?"`` may be missing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dfeas import formats
from dfeas.errors import CorruptDataError
from dfeas.store.placing import placed

if TYPE_CHECKING:
    from dfeas.store.places import Place

MOST_BYTES = 256 << 20
"""Of a file: parsed it takes about ten times as much. A result with a million conflicts has 100 MB."""

MOST_DEPTH = 32
"""Of lists and objects in each other; ours have five."""


@dataclass(frozen=True)
class Number:
    """A finite number in a range, or None where there may be none."""

    low: float = -(2.0**63)
    high: float = 2.0**63
    whole: bool = False
    none: bool = False

    def takes(self, value: Any) -> bool:
        """Whether a value is one."""
        if value is None:
            return self.none
        kinds = (int,) if self.whole else (int, float)
        return type(value) in kinds and self.low <= value <= self.high and (isinstance(value, int) or isfinite(value))

    def __str__(self) -> str:
        return f"a {'whole ' if self.whole else ''}number from {self.low:g} to {self.high:g}{' or null' if self.none else ''}"


COUNT = Number(0, whole=True)


def write_json(path: Path, values: dict[str, Any], number: int) -> None:
    """Write a file of ours, of a format, whole or not at all."""
    with placed(path) as file:
        file.write((json.dumps({formats.KEY: number, **values}, indent=2) + "\n").encode())


def read_json(path: Place, shape: Any = object, what: str = "JSON file", newest: int | None = None) -> Any:
    """What a file says; messages call it ``what``; one of ours is of the ``newest`` format at most.

    Raises CorruptDataError with its name when it is no JSON of this shape, NewerFormatError for a newer format of any shape.
    """
    try:
        size = path.stat().st_size
        if isinstance(path, Path) and not path.is_file():
            raise ValueError("not a file")
        if size > MOST_BYTES:
            raise ValueError(f"{size / 1e6:.0f} MB, at most {MOST_BYTES / 1e6:.0f} MB are read")
        value = parsed(path.read_text())
        if newest is not None and isinstance(value, dict):
            formats.require_readable(path, value.get(formats.KEY, 0), newest)
        conform(value, shape)
        return value
    except (OSError, ValueError) as error:
        raise CorruptDataError(f"{path}: not a readable {what}: {error}") from None


def parsed(text: str | bytes, shape: Any = object) -> Any:
    """What a text says. Raises ValueError when it is no JSON of this shape."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    _require_flat(value)
    conform(value, shape)
    return value


def conform(value: Any, shape: Any, at: str = "it") -> None:
    """Raise ValueError, with the place, unless a value is of a shape."""
    if isinstance(shape, Number):
        good, expected = shape.takes(value), str(shape)
    elif isinstance(shape, dict | list):
        kind = type(shape)
        good, expected = isinstance(value, kind), "an object" if kind is dict else "a list"
    else:
        members = getattr(shape, "__args__", (shape,))  # of a union, or the one type
        good = isinstance(value, shape) and (not isinstance(value, bool) or bool in members or shape is object)
        expected = getattr(shape, "__name__", str(shape))
    if not good:
        raise ValueError(f"{at} is {_shown(value)}, expected {expected}")
    if isinstance(shape, list):
        for place, entry in enumerate(value):
            conform(entry, shape[0], f"{at}[{place}]")
    elif isinstance(shape, dict) and str in shape:
        for name, entry in value.items():
            conform(entry, shape[str], f"{at}.{name}")
    elif isinstance(shape, dict):
        for name, inner in shape.items():
            key = name.removesuffix("?")
            if key in value:
                conform(value[key], inner, key if at == "it" else f"{at}.{key}")
            elif key == name:
                raise ValueError(f"{key} is missing")


def _require_flat(value: Any) -> None:
    """Raise ValueError for a value that is nested too deeply for whoever walks it."""
    level = [value]
    for _ in range(MOST_DEPTH):
        held = [each for each in level if isinstance(each, dict | list)]
        if not held:
            return
        level = [entry for each in held for entry in (each.values() if isinstance(each, dict) else each)]
    if any(isinstance(each, dict | list) for each in level):
        raise ValueError(f"nested deeper than {MOST_DEPTH}")


def _shown(value: Any) -> str:
    text = repr(value) if not isinstance(value, dict | list) else f"a {type(value).__name__}"
    return text if len(text) <= 40 else f"{text[:40]}..."
