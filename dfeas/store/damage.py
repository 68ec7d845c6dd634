"""What libraries raise when they read a file whose bytes are damaged, or were made up."""

from __future__ import annotations

import struct
import tokenize
import zipfile
import zlib

import zarr.errors

# RecursionError is a RuntimeError, OverflowError and ZeroDivisionError are ArithmeticErrors, UnicodeErrors are ValueErrors
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    tokenize.TokenError,
    zarr.errors.BaseZarrError,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)
