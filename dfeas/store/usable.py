"""What no dataset may hold."""

from __future__ import annotations

from collections.abc import Sequence

from dfeas.errors import BadInputError
from dfeas.passes.survey import NORM_RANGE, Summary


def refuse_unusable(summary: Summary, where: str, names: Sequence[str] | None = None) -> None:
    """Raise BadInputError for non-finite entries and for norms that cannot be squared."""
    if summary.nonfinite:
        shown = ", ".join(f"point {p} feature {names[f] if names else f}: {v}" for p, f, v in summary.first_nonfinite)
        raise BadInputError(f"{where}: {summary.nonfinite} or more entries are not finite ({shown}); remove or correct them")
    if summary.extreme:
        shown = ", ".join(str(j) for j in summary.first_extreme)
        least, most = NORM_RANGE
        raise BadInputError(f"{where}: norms outside {least:g} .. {most:g} (point {shown}); scale the data by a power of two")
