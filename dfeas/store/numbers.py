"""Which types of entries are accepted, and in which they are stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.errors import BadInputError
from dfeas.passes.points import LOW, working

_EXACT = {
    "b1": "uint8",
    "i1": "int8",
    "u1": "uint8",
    "i2": "int16",
    "u2": "uint16",
    "f2": "float16",
    "f4": "float32",
    "i4": "float64",
    "u4": "float64",
    "i8": "float64",
    "u8": "float64",
    "f8": "float64",
}


def stored_dtype(dtype: np.dtype[Any], where: str) -> np.dtype[Any]:
    """The same for what float32 holds exactly, otherwise float64; raises BadInputError for other kinds of numbers."""
    name = _EXACT.get(f"{dtype.kind}{dtype.itemsize}")
    if name is None:
        raise BadInputError(f"{where}: entries of type {dtype} cannot be used; give real numbers")
    return np.dtype(name)


def cast(rows: NDArray[Any], where: str = "points") -> NDArray[Any]:
    """As they are stored, in native byte order; raises BadInputError when an integer is beyond 2**53."""
    target = stored_dtype(rows.dtype, where)
    wide = rows.dtype.kind in "iu" and rows.dtype.itemsize == 8 and rows.size > 0
    if wide and (int(rows.max()) > 2**53 or int(rows.min()) < -(2**53)):
        raise BadInputError(f"{where}: an integer beyond 2**53 has no exact float64; rescale the data")
    return rows.astype(target, copy=False)


def joint_dtype(dtypes: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """The narrowest type that holds the entries of several stored types."""
    found = np.result_type(*dtypes)
    if found.name in (*LOW, "float32"):
        return found
    return np.dtype(np.float64 if any(working(dtype) == np.float64 for dtype in dtypes) else np.float32)
