"""Which entry types are accepted, and their exact casts to float32 or float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.errors import BadInputError

_EXACT = {
    "b1": "float32",
    "i1": "float32",
    "u1": "float32",
    "i2": "float32",
    "u2": "float32",
    "f2": "float32",
    "f4": "float32",
    "i4": "float64",
    "u4": "float64",
    "i8": "float64",
    "u8": "float64",
    "f8": "float64",
}


def stored_dtype(dtype: np.dtype[Any], where: str) -> np.dtype[Any]:
    """float32 or float64, whichever holds every entry exactly; raises BadInputError for other kinds of numbers."""
    name = _EXACT.get(f"{dtype.kind}{dtype.itemsize}")
    if name is None:
        raise BadInputError(f"{where}: entries of type {dtype} cannot be used; give real numbers, float32 or float64")
    return np.dtype(name)


def cast(rows: NDArray[Any], where: str = "points") -> NDArray[Any]:
    """Cast exactly, to native byte order; raises BadInputError when an integer is beyond 2**53."""
    target = stored_dtype(rows.dtype, where)
    wide = rows.dtype.kind in "iu" and rows.dtype.itemsize == 8 and rows.size > 0
    if wide and (int(rows.max()) > 2**53 or int(rows.min()) < -(2**53)):
        raise BadInputError(f"{where}: an integer beyond 2**53 has no exact float64; rescale the data")
    return rows.astype(target, copy=False)
