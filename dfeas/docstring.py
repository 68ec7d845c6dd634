"""Docstrings in numpydoc's sections, and parameters that classes of options add to those of a call."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterable

PARAMETERS = "Parameters\n----------\n"
_SECTION = re.compile(r"\n\n(?=[A-Z][A-Za-z ]+\n-{3,}\n)")
"""Where the next one begins."""


def entries(described: object, names: Collection[str]) -> list[str]:
    """What a docstring says of these parameters."""
    text = inspect.getdoc(described) or ""
    _, _, rest = text.partition(PARAMETERS)
    each = re.split(r"\n(?=\S)", _SECTION.split(rest)[0].rstrip()) if rest else []
    return [entry for entry in each if entry.partition(" :")[0] in names]


def with_parameters(text: str, before: Iterable[str], after: Iterable[str]) -> str:
    """A docstring whose own parameters stand between others; where it has none, they come before all other sections."""
    first, *others = _SECTION.split(text)
    own = next((place for place, section in enumerate(others) if section.startswith(PARAMETERS)), None)
    listed = [] if own is None else [others.pop(own).removeprefix(PARAMETERS).rstrip()]
    section = PARAMETERS + "\n".join([*before, *listed, *after])
    return "\n\n".join([first.rstrip(), section, *others])
