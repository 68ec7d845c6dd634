"""The Dask configuration that we ship, and where Dask reads it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import dask.config
import yaml

from dfeas.data.storage.files import atomic_write
from dfeas.errors import UsageError

FILE = "dfeas.yaml"
"""Ours, in a folder of Dask's."""


def text() -> str:
    """As it is shipped, with its comments."""
    return resources.files("dfeas.engine").joinpath("dask.yaml").read_text("utf-8")


def configuration() -> dict[str, Any]:
    """What we ship, by the dotted names of Dask."""
    return dict(_flat("", yaml.safe_load(text())))


def _flat(prefix: str, values: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(values, dict):
        yield prefix, values
        return
    for name, value in values.items():
        yield from _flat(f"{prefix}.{name}" if prefix else name, value)


def scheduler_address() -> str | None:
    """Dask's ``scheduler-address``, which is ``DASK_SCHEDULER_ADDRESS`` in the environment."""
    found = dask.config.get("scheduler-address", None)
    return None if found is None else str(found)


def place() -> Path:
    """The file that Dask reads: that of ``DASK_CONFIG``, or ours in that folder, else in ``~/.config/dask``."""
    where = Path(dask.config.PATH)
    return where if where.is_file() or where.suffix in (".yaml", ".yml") else where / FILE


def write(*, force: bool = False) -> Path:
    """Put what is shipped in its place, whole or not at all. Raises UsageError where another file stands, without ``force``."""
    path, content = place(), text().encode()
    if path.is_file() and path.read_bytes() == content:
        return path
    if path.exists() and not (force and path.is_file()):
        raise UsageError(f"{path}: is there already and says something else; compare them, and replace it with --force")
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(content)
    return path
