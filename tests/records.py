"""Records of both kinds: structs of msgspec, which those are that a solve loads, and dataclasses."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from msgspec import Struct

T = TypeVar("T")


def is_record(value: Any) -> bool:
    """Whether it is a record, or a class of records."""
    kind = value if isinstance(value, type) else type(value)
    return issubclass(kind, Struct) or dataclasses.is_dataclass(kind)


def is_frozen(value: Any) -> bool:
    """Whether no field of a record can be set."""
    return bool(value.__struct_config__.frozen if isinstance(value, Struct) else value.__dataclass_params__.frozen)


def names_of(value: Any) -> tuple[str, ...]:
    """The fields of a record, or of a class of records."""
    kind = value if isinstance(value, type) else type(value)
    return kind.__struct_fields__ if issubclass(kind, Struct) else tuple(each.name for each in dataclasses.fields(kind))
