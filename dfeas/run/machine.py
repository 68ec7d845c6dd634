"""The machine that a run began on, for those who read its trace."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from typing import Any

import psutil

from dfeas.linalg.blas import processors


def circumstances(workers: int) -> dict[str, Any]:
    """When a run began, on what kind of machine, and with how many ``workers`` of a cluster; no name of a machine or a user."""
    return {
        "began": datetime.now(UTC).isoformat(sep=" ", timespec="seconds"),
        "workers": workers,
        "machine": {
            "system": platform.system(),
            "processor": platform.machine(),
            "cores": processors(),  # that this process may use
            "memory_bytes": int(psutil.virtual_memory().total),
        },
    }
