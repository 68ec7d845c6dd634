"""The data of a finished run, opened again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dfeas.errors import BadInputError, CorruptDataError
from dfeas.store import Dataset, open_source, source_of


def trained_on(values: dict[str, Any], needed: bool, run: str | Path) -> Dataset | None:
    """The data that the run of a ``result.json`` was on; None when it is gone and not ``needed``."""
    if values["data"] is None:
        if needed:
            raise BadInputError(f"{run}: the data was in memory, and the points of the expansion went with it")
        return None
    try:
        found = open_source(source_of(values["data"], cones=True))
    except (BadInputError, CorruptDataError):
        if needed:
            raise
        return None
    if found.cones is not None:
        raise BadInputError(f"{run}: a run on cones; its direction is for cones, not for points")
    if (found.stored or found).header is not None and found.fingerprint != values["fingerprint"]:
        if needed:
            raise CorruptDataError(f"{found.where}: no longer the data of the run {run} (fingerprints differ)")
        return None
    return found
