"""What a run would cost, as ``dfeas plan`` says it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run with one method would cost."""

    method: str
    auto: bool  # whether ``auto`` takes it
    memory_bytes: int  # of this process, at the peak
    passes: float  # usual; with a kernel a product with the Gram matrix is one
    most_passes: float | None  # by its theorem, for a margin, or |Ax|, of ``margin``; None: there is none
    seconds: float  # usual
    remark: str


def in_turns(together: int, classes: int) -> str:
    """How classes share the memory, where they cannot all at once."""
    return f"{together} of {classes} classes at a time" if together < classes else ""


@dataclass(frozen=True, slots=True)
class Plan:
    """Estimates for a dataset."""

    n: int
    m: int
    bytes: int  # of one read of the data
    later_bytes: int  # that a later pass reads from storage: what this process does not keep
    threads: int
    first_seconds: float  # of a pass as the data is now, measured
    later_seconds: float  # of one after it
    margin: float | None  # None of a soft margin
    estimates: tuple[Estimate, ...]
    classes: int = 1  # that are set against the rest on the same reads
    kernel: str = ""  # with its parameters
    product_bytes: int = 0  # that a product with its Gram matrix reads from storage
    value_seconds: float = 0.0  # of one value of it, with all threads, measured
    cones: str = ""  # which ones; n counts their rows

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)
