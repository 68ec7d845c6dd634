"""Numbers in text: what one looks like, and many at once."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

try:
    import pyarrow
    import pyarrow.csv
except ImportError:
    pyarrow = None

NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""A decimal number; nan, inf, hexadecimal and digits with underscores are none."""

_NONE = b"\x01"


def numbers(text: bytes) -> NDArray[np.float64] | None:
    """The numbers (k,) of a text with one on each line, empty lines apart, each rounded to the nearest float64.

    None when one of them is not finite or not a number, and without pyarrow.
    """
    if pyarrow is None:
        return None
    try:
        table = pyarrow.csv.read_csv(
            pyarrow.BufferReader(text),
            pyarrow.csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=["number"]),
            pyarrow.csv.ParseOptions(delimiter=_NONE.decode(), quote_char=False, escape_char=False),
            pyarrow.csv.ConvertOptions(column_types={"number": pyarrow.float64()}, null_values=[]),
        )
    except pyarrow.ArrowInvalid:
        return None
    values: NDArray[np.float64] = table.column(0).to_numpy()
    return values if np.isfinite(values).all() else None
