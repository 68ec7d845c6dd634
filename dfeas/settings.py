"""What people set once in the environment or Dask's configuration, sizes as they write them, and types of options."""

from __future__ import annotations

import os
import re
import reprlib
import sys
from collections.abc import Callable, Collection, Mapping, Set
from contextlib import suppress
from dataclasses import fields
from functools import cache
from typing import Any

import numpy as np

from dfeas.errors import UsageError, spell
from dfeas.machine import memory_bytes

SCHEMES = {"s3": "s3", "gs": "gs", "gcs": "gs", "az": "az", "abfs": "az", "abfss": "az", "https": "https", "http": "http"}
"""What URLs begin with, and what that is called here; others are names that fsspec has for the same."""
_SIZE = re.compile(r"((?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)([kmgtp]?)(i?)b?")


def parse_bytes(text: str | int | None, name: str = "memory") -> int:
    """Bytes from a number or from text such as ``2GB``, ``512MiB``, as ``dask.utils.parse_bytes`` reads them; None is the
    setting ``memory``. Raises UsageError for anything else, which names the argument.
    """
    text = read_setting("memory", None) if text is None else text
    if text is None:
        # bytes of the budget, or half of what this process may have where that is less
        return min(2_000_000_000, memory_bytes() // 2)
    match = _SIZE.fullmatch("".join(str(text).lower().split()))
    size = float(match[1]) * (1024 if match[3] else 1000) ** " kmgtp".index(match[2] or " ") if match else 0.0
    if match is None or (match[3] and not match[2]) or not size < 2.0**63:
        given = text if isinstance(text, int | float) else str(text)[:40]
        raise UsageError(f"{spell(name, given)}: expected a size such as 2GB or 512MiB")
    return int(size)


def read_setting(name: str, default: Any) -> Any:
    """What people set once: a variable of the environment, ``DFEAS_CACHE_DIR``, or where Dask is loaded its configuration,
    ``dfeas.cache-dir``; otherwise the default. Raises UsageError for what is no number from 0 on, where one is expected.
    """
    value: Any = os.environ.get(variable(name)) or None
    config = sys.modules.get("dask.config")
    if value is None and config is not None:
        value = config.get(f"dfeas.{name.replace('_', '-')}", None)
    if value is None or default is None or isinstance(default, str):
        return default if value is None else value
    if isinstance(default, bool):
        return str(value).lower() not in ("0", "false", "no", "off")
    with suppress(ValueError, TypeError):
        if (number := float(value)) >= 0:
            return number
    raise UsageError(f"{variable(name)} {value}: expected a number from 0 on")


def variable(name: str) -> str:
    """Of the environment, for an option that people set once."""
    return f"DFEAS_{name.upper()}"


_IS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "bool": ("True or False", lambda value: isinstance(value, bool | np.bool_)),
    "int": ("a whole number", lambda value: _is_number(value) and value == value // 1),
    "float": ("a number", lambda value: _is_number(value)),
    "str": ("text", lambda value: isinstance(value, str)),
    "Path": ("a path", lambda value: isinstance(value, os.PathLike)),
    "None": ("None", lambda value: value is None),
    "Sequence": ("several", lambda value: hasattr(value, "__len__") and not isinstance(value, str | bytes | Mapping | Set)),
    "Callable": ("a function", callable),
}
"""What is expected where an annotation says so, and whether a value is that; of other annotations nothing is known."""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool | np.bool_)


def require_type(name: str, value: Any, annotation: str) -> None:
    """Raise UsageError for an option that is not what its annotation, as text, says."""
    kinds = _kinds_of(annotation)
    if not all(kind in _IS for kind in kinds) or any(_IS[kind][1](value) for kind in kinds):
        return
    expected = " or ".join(_IS[kind][0] for kind in kinds if kind != "None")
    raise UsageError(f"{spell(name)}={reprlib.repr(value)}: expected {expected}")


@cache
def _kinds_of(annotation: str) -> list[str]:
    return [kind.partition("[")[0] for kind in re.sub(r"\[.*?\](?= \||$)", "[]", annotation).split(" | ")]


def require_types(values: Any, names: Collection[str] | None = None) -> None:
    """Raise UsageError for a field of options, of all or of these, that is not what its annotation says."""
    for each in fields(values):
        if names is None or each.name in names:
            value, kind = getattr(values, each.name), str(each.type)
            require_type(each.name, value, kind)
            if isinstance(value, float | np.number) and "int" in kind.split(" | ") and "float" not in kind:
                object.__setattr__(values, each.name, int(value))
