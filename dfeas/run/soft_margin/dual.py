"""Dual variables of a soft margin, in a file, and what they are worth."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from dfeas.answers.soft_margin import DualVariables
from dfeas.data.dataset import Dataset
from dfeas.data.storage.files import atomic_write
from dfeas.data.storage.places import local, place
from dfeas.engine.protocol import Engine
from dfeas.errors import UsageError
from dfeas.linalg.points import Floats
from dfeas.methods.soft_margin.band import Width
from dfeas.passes.protocol import Partial
from dfeas.passes.slacks import Multipliers
from dfeas.records import replace

GROUP_BYTES = 32 << 20
"""Dual variables that are asked for at a time."""


def dual_place(out: str | Path, run: str | Path | None) -> Path:
    """The file, which does not exist yet; it may be in the folder of the run. Raises UsageError for another one."""
    path = local(out, "dual").absolute()
    if path.suffix != ".npy":
        raise UsageError(f"{path}: dual variables are written to a .npy file; give it such a name")
    if path.exists():
        raise UsageError(f"{path}: exists already; choose another output or remove it")
    if not path.parent.is_dir() and (run is None or path.parent != place(run).absolute()):
        raise UsageError(f"{path.parent}: no such folder to write to")
    return path


def write_dual_variables(
    engine: Engine, dataset: Dataset, question: Multipliers, y: Floats, width: Width, out: Path, stop: Callable[[], bool]
) -> DualVariables:
    """Write alpha (n,) float64 to a .npy file, whole or not at all, and say what it is worth beside y, with the objective of
    ``width``. Raises KeyboardInterrupt when ``stop`` says so.
    """
    total, pull, support, full = 0.0, np.zeros(dataset.dimension), 0, 0
    many = max(1, GROUP_BYTES // (8 * dataset.block_rows))
    with atomic_write(out) as file:
        npy.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (dataset.n,)})
        for first in range(0, dataset.blocks, many):
            answer = engine.run(Partial(question, range(first, min(dataset.blocks, first + many))))
            for _, alpha in answer.pieces:
                file.write(alpha.data)
            total, pull = total + answer.total, pull + answer.pull
            support, full = support + answer.support, full + answer.full
            if stop():
                raise KeyboardInterrupt("asked to stop")
    value, kept = total - width.largest(pull), width.squares > 0
    # each bound tells how long w may be, and so the bias, which tells a better bound
    for _ in range(8):  # f(v) - f* is at least half of the square of v - w
        length = float(np.linalg.norm(y[kept])) + math.sqrt(2 * max(0.0, width.objective - value))
        value = max(value, total - replace(width, length=length).largest(pull))
    most = math.sqrt(2 * max(0.0, width.objective - value))
    missing = width.of(np.where(kept, y - pull / np.where(kept, width.squares, 1.0), 0.0))
    return DualVariables(str(out), value, math.sqrt(2 * float(missing)), most, support, full)
