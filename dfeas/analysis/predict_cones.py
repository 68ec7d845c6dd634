"""``dfeas.predict`` on cones: the least eigenvalue of each under the y of a finished run, streaming, and the critical cones."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.analysis.scoring import read_once
from dfeas.data.cones.groups import groups_of
from dfeas.data.cones.spectrum import least
from dfeas.data.dataset import Dataset
from dfeas.data.storage.layout import kind_of, rows_of
from dfeas.data.storage.readers import Cost, Stop, unless_stopped
from dfeas.errors import BadInputError
from dfeas.geometry.cones.softmin import exact_scores, factors

Floats = NDArray[np.float64]

SHOWN = 5
"""Critical cones that are named."""
AT_ONCE = 1 << 16
"""Rows whose scores are found at a time."""


@dataclass(frozen=True, slots=True)
class CriticalCone:
    """A cone whose least eigenvalue is among the lowest."""

    least: float
    row: int  # its first row, counted without padding: as in the X that was given
    kind: str
    size: int

    def __str__(self) -> str:
        name = self.kind if self.kind == "l" else f"{self.kind} {self.size}"
        return f"{name} at row {self.row} ({self.least:.6g})"


@dataclass(frozen=True)
class ConePrediction:
    """Where A*y lies in each cone."""

    least: Floats  # (cones,) in their order: least eigenvalue of X_c y / |y|, over the norm of the cone
    critical: tuple[CriticalCone, ...]  # the lowest

    @property
    def outside(self) -> int:
        """Cones that A*y is not in the interior of."""
        return int((self.least <= 0).sum())

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values without those of all cones."""
        return {
            "cones": len(self.least),
            "outside": self.outside,
            "margin": float(self.least.min()),
            "critical": [asdict(cone) for cone in self.critical],
        }


def predict_cones(dataset: Dataset, y: Floats, memory: str | int, out: str | Path | None, run: str | Path) -> ConePrediction:
    """Least eigenvalues of all cones under a direction y (m,), in one read; written to ``out``, a .npy file.

    Raises BadInputError when the rows have another length than y.
    """
    if dataset.m != len(y):
        raise BadInputError(f"{dataset.where}: cones of {dataset.m} features, the direction of the run {run} has {len(y)}")
    value, codes = read_once(dataset, looked_at, y / np.linalg.norm(y), memory, out)
    kinds = {int(each): kind_of(int(each)) for each in np.unique(codes)}
    sizes = np.zeros(len(codes), np.int64)
    for each, (kind, size) in kinds.items():
        sizes[codes == each] = rows_of(kind, size)
    first = np.cumsum(sizes) - sizes
    lowest = np.argsort(value, kind="stable")[:SHOWN]
    critical = tuple(CriticalCone(float(value[i]), int(first[i]), *kinds[int(codes[i])]) for i in lowest)
    return ConePrediction(value, critical)


def looked_at(
    dataset: Dataset, first: int, stop: int, y: Floats, stopped: Stop | None = None
) -> tuple[Floats, NDArray[np.int32]]:
    """Least eigenvalues and codes of the cones of some blocks, in order."""
    found, codes = [np.empty(0)], [np.empty(0, np.int32)]
    for block in unless_stopped(dataset.read_blocks(range(first, stop), Cost()), stopped):
        factor, value = factors(block), np.empty(block.size)
        for group in groups_of(block.label):
            at_once = max(1, AT_ONCE // group.dimension)
            for start in range(0, len(group.starts), at_once):
                rows = group.rows(slice(start, start + at_once))
                value[rows[:, 0]] = least(group.kind, group.size, exact_scores(block, rows, y, factor))
        starts = np.flatnonzero(block.label > 0)
        found.append(value[starts])
        codes.append(block.label[starts].astype(np.int32))
    return np.concatenate(found), np.concatenate(codes)
