"""What a solver comes back with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

YES, NO = "yes", "no"


@dataclass(frozen=True)
class Data:
    """What is asked of a solver: points with labels, and what some questions have besides."""

    X: Any  # (n, m) dense or CSR
    y: np.ndarray  # (n,) -1 and 1
    folder: str  # with the points as text of Vowpal Wabbit, for who reads that
    C: float = 1.0  # of a soft margin
    gamma: float = 1.0  # of a kernel


@dataclass(frozen=True)
class Answer:
    """Nothing of it is believed but what a solver says that it proved."""

    said: str = ""  # YES, NO, in front of more words; of a classifier nothing
    proof: str = ""  # what the solver itself proved
    w: Any = None  # (m,) a direction
    x: Any = None  # (n,) weights on signed points, as they are stored
    wrong: Callable[[], int] | None = None  # counts points on the wrong side, where there is no direction (m,)
    lower: float | None = None  # of the least objective, proved
