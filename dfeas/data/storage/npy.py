"""Arrays in the format of .npy: the header is compared with the size of the file before anything is allocated."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from dfeas.data.storage.files import DAMAGE
from dfeas.data.storage.places import Place, require_column
from dfeas.errors import BadInputError, CorruptDataError


def read_header(stream: IO[bytes], size: int, where: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of the array in a .npy stream of ``size`` bytes, which is in C order and has no Python objects.

    Raises CorruptDataError when it says more than these bytes can hold.
    """
    try:
        version = npy.read_magic(stream)
        reader = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = reader(stream)
        if any(isinstance(length, bool) or length < 0 for length in shape):
            raise ValueError(f"shape {shape}")
    except DAMAGE as error:
        raise CorruptDataError(f"{where}: not a readable .npy array: {error}") from None
    if dtype.hasobject:
        raise BadInputError(f"{where}: an array of Python objects is not accepted; save numbers")
    if fortran and len(shape) > 1:
        raise BadInputError(f"{where}: stored in Fortran order; save np.ascontiguousarray(array) instead")
    wanted = prod(shape) * dtype.itemsize
    if wanted > size:
        raise CorruptDataError(
            f"{where}: shape {_shape_text(shape)} of {dtype} takes {wanted:.4g} bytes, the file has {size}: truncated"
        )
    return tuple(shape), dtype


def load_npy(path: Place) -> NDArray[Any]:
    """A whole .npy file of one entry a point: labels, weights, a mask.

    Raises CorruptDataError when it is none, BadInputError when it does not fit in memory.
    """
    try:
        if isinstance(path, Path) and not path.is_file():
            raise BadInputError(f"{path}: not a file; a pipe or a device is not read")
        size = path.stat().st_size
        with path.open("rb") as file:
            shape, dtype = read_header(file, size, str(path))
            require_column(prod(shape) * dtype.itemsize, str(path))
            content = file.read(prod(shape) * dtype.itemsize)
        return np.frombuffer(content, dtype).reshape(shape).copy()
    except DAMAGE as error:
        raise CorruptDataError(f"{path}: not a readable .npy file: {error}") from None


def _shape_text(shape: tuple[int, ...]) -> str:
    """A shape in a message; NumPy takes 64 axes, each of any length."""
    return " x ".join(f"{length:.6g}" if length >= 10**18 else str(length) for length in shape[:4]) or "()"
