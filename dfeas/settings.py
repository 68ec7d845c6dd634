"""What people set once in the environment or Dask's configuration, sizes as they write them, and types of options.

A site sets it in /etc/dask/*.yaml, below ``dfeas``; ``dfeas info --settings`` says what holds, and where it stands.
"""

from __future__ import annotations

import os
import re
import site
import sys
from collections.abc import Callable, Collection, Mapping, Set
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct, structs

from dfeas.errors import UsageError, brief, spell
from dfeas.machine import limit_threads, memory_bytes
from dfeas.records import names_of

SCHEMES = {"s3": "s3", "gs": "gs", "gcs": "gs", "az": "az", "abfs": "az", "abfss": "az", "https": "https", "http": "http"}
"""What URLs begin with, and what that is called here; others are names that fsspec has for the same."""
_SIZE = r"((?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)([kmgtp]?)(i?)b?"
PREFIX, DASK_PREFIX = "DFEAS_", "DASK_DFEAS__"
"""Of variables of the environment, ours and those that Dask makes its configuration of."""
_SECTION = rb"\bdfeas[\"']?\s*:"


class Setting(Struct, frozen=True):
    """What is set once for a machine, and how its value is read."""

    kind: str  # of KINDS
    default: Any
    text: str  # what it sets, for people


SETTINGS = {
    "memory": Setting("size", None, "budget of a process (--memory)"),
    "threads": Setting("count", None, "threads of a process, at most"),
    "time_limit": Setting("time", None, "seconds after which a run stops (--time-limit)"),
    "scheduler": Setting("text", None, "Dask cluster of commands (--scheduler)"),
    "cluster": Setting("text", None, "function that returns their Dask cluster (--cluster)"),
    "cache_dir": Setting("text", None, "folder that keeps blocks of object stores"),
    "scratch": Setting("text", None, "folder for what memory does not hold"),
    "checkpoint_every": Setting("seconds", 30.0, "seconds between checkpoints (--checkpoint-every)"),
    "storage_patience": Setting("seconds", 300.0, "seconds to wait for storage that does not answer"),
    "same_bits": Setting("switch", False, "refuse workers of another kind (--same-bits)"),
    "progress": Setting("switch", None, "show progress; commands do, Python does not"),
}
"""By the name of the option. Where None is the default, ``none`` asks for it in the environment."""
OF_DASK = ("workers", "resources", "priority")
"""What else stands under ``dfeas`` in Dask's configuration: see ``dask.annotate``."""


def parse_bytes(text: str | int | None, name: str = "memory") -> int:
    """Bytes from a number or from text such as ``2GB``, ``512MiB``, as ``dask.utils.parse_bytes`` reads them; None is the
    setting ``memory``. Raises UsageError for anything else, which names the argument.
    """
    if text is None:
        # bytes of the budget, or half of what this process may have where that is less
        found: int | None = read_setting("memory")
        return min(2_000_000_000, memory_bytes() // 2) if found is None else found
    try:
        return _read_size(text)
    except ValueError:
        given = text if isinstance(text, int | float) else str(text)[:40]
        raise UsageError(f"{spell(name, given)}: expected {KINDS['size'][0]}") from None


def _read_size(text: Any) -> int:
    match = re.fullmatch(_SIZE, "".join(str(text).lower().split()))
    size = float(match[1]) * (1024 if match[3] else 1000) ** " kmgtp".index(match[2] or " ") if match else 0.0
    if match is None or (match[3] and not match[2]) or not size < 2.0**63:
        raise ValueError
    return int(size)


def _read_number(value: Any, least: float = 0.0) -> float:
    if isinstance(value, bool) or not (number := float(value)) >= least:
        raise ValueError
    return number


def _read_time(value: Any) -> float:
    if not (seconds := _read_number(value)) > 0:
        raise ValueError
    return seconds


def _read_count(value: Any) -> int:
    if (number := _read_number(value, 1.0)) != number // 1:
        raise ValueError
    return int(number)


def _read_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _read_switch(value: Any) -> bool:
    for found, words in {False: ("0", "false", "no", "off"), True: ("1", "true", "yes", "on")}.items():
        if str(value).lower() in words:
            return found
    raise ValueError


KINDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "size": ("a size such as 2GB or 512MiB", _read_size),
    "seconds": ("a number from 0 on", _read_number),
    "time": ("a number of seconds above 0", _read_time),
    "count": ("a whole number from 1 on", _read_count),
    "text": ("text", _read_text),
    "switch": ("1 or 0", _read_switch),
}
"""What is expected of a value, and what reads it or raises ValueError."""


def read_setting(name: str) -> Any:
    """What people set once: a variable of the environment, ``DFEAS_CACHE_DIR``, or in Dask's configuration ``dfeas.cache-dir``;
    otherwise the default. Raises UsageError, which says where it stands, for a value that cannot be read.
    """
    setting, given = SETTINGS[name], os.environ.get(variable(name)) or set_in_dask(name)
    if given is None or (setting.default is None and str(given).lower() == "none"):
        return setting.default
    expected, read = KINDS[setting.kind]
    try:
        return read(given)
    except (ValueError, TypeError, OverflowError):
        where = source_of(name)
        key = "" if where == variable(name) else f": {key_of(name)}"
        raise UsageError(f"{where}{key} {str(given)[:40]}: expected {expected}") from None


def source_of(name: str) -> str:
    """Where a setting stands: the name of a variable or of a file, ``dask.config.set``, or ``default``."""
    if name in SETTINGS and os.environ.get(variable(name)):
        return variable(name)
    given, config = set_in_dask(name), sys.modules.get("dask.config")
    if given is None or config is None:
        return "default"
    missing = object()
    for place, values in _sections(config):
        if (found := config.get(key_of(name), missing, config=values)) is not missing:
            place = place + name.upper() if place == DASK_PREFIX else place
            return place if found == given else "dask.config.set"
    return "dask.config.set"


def unknown_settings() -> dict[str, str]:
    """Names that look like settings and are none, each with where it stands."""
    ours = {variable(name) for name in SETTINGS} | {f"{PREFIX}TRACEBACK"}
    found = {name: "the environment" for name in os.environ if name.startswith(PREFIX) and name not in ours}
    config = _configuration()
    known = {name.replace("_", "-") for name in (*SETTINGS, *OF_DASK)}
    for place, values in [] if config is None else _sections(config):
        found |= {f"dfeas.{key}": place for key in values.get("dfeas") or () if str(key).replace("_", "-") not in known}
    return found


def set_in_dask(name: str) -> Any:
    """What Dask's configuration says. Raises UsageError for one without keys under ``dfeas``."""
    config = _configuration()
    section = {} if config is None else config.get("dfeas", None)
    if config is not None and section is not None and not isinstance(section, Mapping):
        place = next((place for place, values in _sections(config) if values.get("dfeas") == section), "dask.config.set")
        raise UsageError(f"{place}: dfeas {str(section)[:40]}: expected keys below it, such as memory: 2GB")
    return None if config is None else config.get(key_of(name), None)


def key_of(name: str) -> str:
    """In Dask's configuration, for the same."""
    return f"dfeas.{name.replace('_', '-')}"


def _sections(config: Any) -> list[tuple[str, Any]]:
    """What each place of Dask's configuration says, the one that counts most first."""
    files = [(str(path), values) for path, values in config.collect_yaml(config.paths, return_paths=True)]
    return [(DASK_PREFIX, config.collect_env()), *reversed(files)]


def _configuration() -> Any:
    """The module ``dask.config``, if it is loaded, or something is set there; loading it takes as long as a small solve."""
    if "dask.config" not in sys.modules and _is_set_in_dask():
        try:
            import_module("dask.config")
        except ValueError as error:  # a file that Dask cannot read
            raise UsageError(f"{' '.join(str(error).split())}") from None
    return sys.modules.get("dask.config")


@cache
def _is_set_in_dask() -> bool:
    """Whether a file of Dask's configuration, or a variable, may have something under ``dfeas``."""
    if any(name.startswith(DASK_PREFIX) for name in os.environ):
        return True
    files = (file for place in dask_places() for file in ([place] if place.is_file() else sorted(place.glob("*"))))
    for file in files:
        with suppress(OSError):
            if file.suffix.lower() in (".json", ".yaml", ".yml") and re.search(_SECTION, file.read_bytes()):
                return True
    return False


def dask_places() -> list[Path]:
    """Files and folders where Dask looks for its configuration; those that come later count more."""
    home, prefixes = Path("~/.config/dask").expanduser(), [sys.prefix, *site.PREFIXES]
    places = [Path(os.getenv("DASK_ROOT_CONFIG", "/etc/dask")), *(Path(prefix, "etc", "dask") for prefix in prefixes), home]
    places += [Path(os.environ["DASK_CONFIG"])] if "DASK_CONFIG" in os.environ else []
    return list(dict.fromkeys(reversed(places)))[::-1]


def variable(name: str) -> str:
    """Of the environment, for an option that people set once."""
    return f"{PREFIX}{name.upper()}"


limit_threads(partial(read_setting, "threads"))


_IS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "bool": ("True or False", lambda value: isinstance(value, bool | np.bool_)),
    "int": ("a whole number", lambda value: _is_number(value) and value == value // 1 and abs(value) < 2**63),
    "float": ("a number", lambda value: _is_number(value)),
    "str": ("text", lambda value: isinstance(value, str)),
    "Path": ("a path", lambda value: isinstance(value, os.PathLike)),
    "None": ("None", lambda value: value is None),
    "Sequence": (
        "several",
        lambda value: (
            getattr(value, "shape", (0,)) != ()
            and hasattr(value, "__len__")
            and not isinstance(value, str | bytes | Mapping | Set)
        ),
    ),
    "Callable": ("a function", callable),
}
"""What is expected where an annotation says so, and whether a value is that; of other annotations nothing is known."""


def _is_number(value: Any) -> bool:
    """Whether float64 has it, but for its last digits."""
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**1023
    return whole or isinstance(value, float | np.integer | np.floating)


def require_type(name: str, value: Any, annotation: str) -> None:
    """Raise UsageError for an option that is not what its annotation, as text, says."""
    if type(value) in _plain_types(annotation):
        return
    kinds = _kinds_of(annotation)
    if not kinds or any(_IS[kind][1](value) for kind in kinds):
        return
    expected = " or ".join(_IS[kind][0] for kind in kinds if kind != "None")
    raise UsageError(f"{spell(name)}={brief(value, 60)}: expected {expected}")


@cache
def _kinds_of(annotation: str) -> list[str]:
    """Keys of ``_IS``; none where something else may stand there."""
    kinds = [kind.partition("[")[0] for kind in re.sub(r"\[.*?\](?= \||$)", "[]", annotation).split(" | ")]
    return kinds if all(kind in _IS for kind in kinds) else []


@cache
def _plain_types(annotation: str) -> set[type]:
    """Of which any value is what an annotation says."""
    kinds, plain = _kinds_of(annotation), {"bool": bool, "float": float, "str": str, "None": type(None)}
    return {plain[kind] for kind in kinds if kind in plain}


@cache
def _annotations_of(record: Any) -> dict[str, str]:
    """Of fields, also of those that a class below names."""
    each = {name: text for kind in record.__mro__[::-1] for name, text in getattr(kind, "__annotations__", {}).items()}
    return {name: each[name] for name in names_of(record)}


def require_types(values: Any, names: Collection[str] | None = None) -> None:
    """Raise UsageError for a field of options, of all or of these, that is not what its annotation says."""
    put = structs.force_setattr if isinstance(values, Struct) else object.__setattr__
    record: Any = type(values)
    for name, kind in _annotations_of(record).items():
        if names is None or name in names:
            value = getattr(values, name)
            if type(value) in _plain_types(kind):
                continue
            require_type(name, value, kind)
            if isinstance(value, float | np.number) and "int" in kind.split(" | ") and "float" not in kind:
                put(values, name, int(value))
