"""The same record with other fields, of either kind: structs of msgspec, which a solve makes as it starts, and dataclasses.

Each kind has a function of its own, which refuses the other kind when it is called, and no type checker sees the mistake.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs


def is_record(value: Any) -> bool:
    """Whether it is a record of either kind, and no class of them."""
    return isinstance(value, Struct) or hasattr(type(value), "__dataclass_fields__")


def names_of(kind: type[Any]) -> tuple[str, ...]:
    """Those of the fields."""
    if issubclass(kind, Struct):
        return kind.__struct_fields__
    from dataclasses import fields

    return tuple(each.name for each in fields(kind))


if TYPE_CHECKING:
    from dataclasses import replace as replace
else:

    def replace(record: Any, /, **changes: Any) -> Any:
        """A copy with other values of some fields. Raises TypeError for fields that there are not."""
        if isinstance(record, Struct):
            return structs.replace(record, **changes)
        import dataclasses

        return dataclasses.replace(record, **changes)
