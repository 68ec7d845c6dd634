"""The dual variables of a soft margin in a file, written as they are read: none of their n stays in memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from dfeas.engine import Engine
from dfeas.errors import UsageError
from dfeas.passes import Partial
from dfeas.passes.block import Floats
from dfeas.passes.multipliers import Multipliers, MultipliersAnswer
from dfeas.soft_margin_result import DualVariables
from dfeas.store import Dataset
from dfeas.store.places import local
from dfeas.store.placing import placed

GROUP_BYTES = 32 << 20
"""Dual variables that are asked for at a time."""


def dual_place(out: str | Path, run: str | Path | None) -> Path:
    """The file, which does not exist yet; it may be in the folder of the run. Raises UsageError for another one."""
    path = local(out, "--dual").absolute()
    if path.suffix != ".npy":
        raise UsageError(f"{path}: dual variables are written to a .npy file; give it such a name")
    if path.exists():
        raise UsageError(f"{path}: exists already; choose another output or remove it")
    if not path.parent.is_dir() and (run is None or path.parent != Path(run).absolute()):
        raise UsageError(f"{path.parent}: no such folder to write to")
    return path


def groups(engine: Engine, dataset: Dataset, question: Multipliers) -> Iterator[MultipliersAnswer]:
    """The dual variables of some blocks at a time, in the order of the points; one read in all."""
    many = max(1, GROUP_BYTES // (8 * dataset.block_rows))
    for first in range(0, dataset.blocks, many):
        yield engine.run(Partial(question, tuple(range(first, min(dataset.blocks, first + many)))))


def write_dual_variables(
    engine: Engine, dataset: Dataset, question: Multipliers, y: Floats, objective: float, out: Path, stop: Callable[[], bool]
) -> DualVariables:
    """Write alpha (n,) float64 to a .npy file, whole or not at all, and say what it is worth beside y and its objective.

    Raises KeyboardInterrupt when ``stop`` says so.
    """
    total, pull, support, full = 0.0, np.zeros(dataset.dimension), 0, 0
    with placed(out) as file:
        npy.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (dataset.n,)})
        for found in groups(engine, dataset, question):
            for _, alpha in found.pieces:
                file.write(alpha.data)
            total, pull = total + found.total, pull + found.pull
            support, full = support + found.support, full + found.full
            if stop():
                raise KeyboardInterrupt("asked to stop")
    value = total - float(pull @ pull) / 2
    most = math.sqrt(2 * max(0.0, objective - value))
    return DualVariables(str(out), value, float(np.linalg.norm(y - pull)), most, support, full)
