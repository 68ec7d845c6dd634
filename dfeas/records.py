"""The same record with other fields, of either kind: structs of msgspec, which a solve makes as it starts, and dataclasses.

Each kind has a function of its own, which refuses the other kind when it is called, and no type checker sees the mistake.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs


def names_of(kind: type[Any]) -> tuple[str, ...]:
    """Those of the fields."""
    return kind.__struct_fields__ if issubclass(kind, Struct) else tuple(each.name for each in dataclasses.fields(kind))


if TYPE_CHECKING:
    from dataclasses import replace as replace
else:

    def replace(record: Any, /, **changes: Any) -> Any:
        """A copy with other values of some fields. Raises TypeError for fields that there are not."""
        kind = structs if isinstance(record, Struct) else dataclasses
        return kind.replace(record, **changes)
