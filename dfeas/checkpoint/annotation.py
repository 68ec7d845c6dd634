"""Whether values are what the annotations of their fields say: sound bytes may hold text where a number belongs."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from functools import lru_cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from dfeas.csr import is_csr

_NUMBERS: dict[Any, tuple[type, ...]] = {
    bool: (bool, np.bool_),
    int: (int, np.integer),
    float: (float, int, np.floating, np.integer),
    str: (str,),
}


def require_annotated(cls: type, values: Mapping[str, Any]) -> None:
    """Raise TypeError for values of fields that are not of their types."""
    hints = _hints(cls)
    for name, value in values.items():
        if name in hints and not fits(value, hints[name]):
            raise TypeError(f"{name} of {cls.__name__} is {type(value).__name__}, expected {hints[name]}")


@lru_cache(maxsize=256)
def _hints(cls: type) -> dict[str, Any]:
    """Types of its fields; none of a class that names what only a type checker imports."""
    try:
        return get_type_hints(cls, localns={"csr_array": _Csr, "NDArray": NDArray, "Any": Any})
    except (NameError, TypeError):
        return {}


class _Csr:
    """Stands for a sparse matrix, whose class is not loaded for it."""


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a type, all the way down. Protocols and type variables stand for any of our values."""
    origin, args = get_origin(hint), get_args(hint)
    if hint in _NUMBERS:
        return isinstance(value, _NUMBERS[hint]) and (hint is bool or not isinstance(value, bool))
    if origin in (Union, types.UnionType):
        return any(fits(value, each) for each in args)
    if origin is Literal:
        return value in args
    if origin is np.ndarray:
        return isinstance(value, np.ndarray) and _of_type(value.dtype, get_args(args[1]))
    if origin is tuple:
        return isinstance(value, tuple) and _entries_fit(value, args)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, dict) and all(fits(each, args[1]) for each in value.values())
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return isinstance(value, list | tuple) and all(fits(each, args[0]) for each in value)
    return _is_one(value, hint if origin is None else origin)


def _entries_fit(value: tuple[Any, ...], args: tuple[Any, ...]) -> bool:
    """Of a tuple of so many, or of any number."""
    if args[1:] == (Ellipsis,):
        return all(fits(each, args[0]) for each in value)
    return len(value) == len(args) and all(map(fits, value, args))


def _of_type(dtype: np.dtype[Any], args: tuple[Any, ...]) -> bool:
    """Whether entries are of a NumPy type, or of any."""
    return not args or not isinstance(args[0], type) or issubclass(dtype.type, args[0])


def _is_one(value: Any, kind: Any) -> bool:
    """Whether a value is of a class."""
    if kind is Any or isinstance(kind, TypeVar):
        return True
    if kind in (None, types.NoneType, Callable):
        return value is None
    if kind is _Csr:
        return is_csr(value)
    if getattr(kind, "_is_protocol", False):
        return is_dataclass(value)
    return isinstance(value, kind)
