"""Whether values are what the annotations of their fields say: sound bytes may hold text where a number belongs.

Written are None, bools, numbers, text, tuples, lists, dicts with text keys, dataclasses that ``names`` knows, NumPy arrays and
scalars, and CSR matrices. Loading calls nothing but the constructors of these dataclasses. Arrays keep their strides: BLAS sums
a strided vector in another order, and a run that goes on must find the same bits. What was one array in several places is one
array again.
"""

from __future__ import annotations

import json
import math
import types
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, BinaryIO, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from dfeas import __version__
from dfeas.data.storage import files
from dfeas.data.storage.files import DAMAGE
from dfeas.errors import CorruptDataError, DfeasError
from dfeas.linalg.csr import checked, csr, is_csr
from dfeas.run.checkpoint.names import GONE, class_of, former_name, name_of

_NUMBERS: dict[Any, tuple[type, ...]] = {
    bool: (bool, np.bool_),
    int: (int, np.integer),
    float: (float, int, np.floating, np.integer),
    str: (str,),
}


def require_annotated(cls: type, values: Mapping[str, Any]) -> None:
    """Raise TypeError for values of fields that are not of their types."""
    hints = _hints(cls)
    for name, value in values.items():
        if name in hints and not fits(value, hints[name]):
            raise TypeError(f"{name} of {cls.__name__} is {type(value).__name__}, expected {hints[name]}")


@lru_cache(maxsize=256)
def _hints(cls: type) -> dict[str, Any]:
    """Types of its fields; none of a class that names what only a type checker imports."""
    try:
        return get_type_hints(cls, localns={"csr_array": _Csr, "NDArray": NDArray, "Array": NDArray, "Any": Any})
    except (NameError, TypeError):
        return {}


class _Csr:
    """Stands for a sparse matrix, whose class is not loaded for it."""


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a type, all the way down. Protocols and type variables stand for any of our values."""
    origin, args = get_origin(hint), get_args(hint)
    if hint in _NUMBERS:
        return isinstance(value, _NUMBERS[hint]) and (hint is bool or not isinstance(value, bool))
    if origin in (Union, types.UnionType):
        return any(fits(value, each) for each in args)
    if origin is Literal:
        return value in args
    if origin is np.ndarray:
        return isinstance(value, np.ndarray) and _of_type(value.dtype, get_args(args[1]))
    if origin is tuple:
        return isinstance(value, tuple) and _entries_fit(value, args)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, dict) and all(fits(each, args[1]) for each in value.values())
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return isinstance(value, list | tuple) and all(fits(each, args[0]) for each in value)
    return _is_one(value, hint if origin is None else origin)


def _entries_fit(value: tuple[Any, ...], args: tuple[Any, ...]) -> bool:
    """Of a tuple of so many, or of any number."""
    if args[1:] == (Ellipsis,):
        return all(fits(each, args[0]) for each in value)
    return len(value) == len(args) and all(map(fits, value, args))


def _of_type(dtype: np.dtype[Any], args: tuple[Any, ...]) -> bool:
    """Whether entries are of a NumPy type, or of any."""
    return not args or not isinstance(args[0], type) or issubclass(dtype.type, args[0])


def _is_one(value: Any, kind: Any) -> bool:
    """Whether a value is of a class."""
    if kind is Any or isinstance(kind, TypeVar):
        return True
    if kind in (None, types.NoneType, Callable):
        return value is None
    if kind is _Csr:
        return is_csr(value)
    if getattr(kind, "_is_protocol", False):
        return is_dataclass(value)
    return isinstance(value, kind)


TREE, ARRAYS = "tree.json", "arrays"

CHUNK = 16 << 20
"""Bytes that are read at a time."""

_KINDS = "biuf"
"""Of arrays: booleans, integers, floats."""


def dump(value: Any, file: BinaryIO) -> None:
    """Write a value. Raises TypeError for what cannot be written."""
    arrays = _Arrays()
    tree = json.dumps(
        {files.KEY: files.CHECKPOINT, "version": __version__, "value": _encoded(value, arrays), "arrays": arrays.table}
    )
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(TREE, tree)
        with archive.open(ARRAYS, "w", force_zip64=True) as stream:
            for array in arrays.held:
                stream.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def load(file: BinaryIO, where: str) -> Any:
    """Read a value; ``where`` names the file in messages. Raises CorruptDataError when it is damaged or of a newer format."""
    version = __version__
    try:
        with zipfile.ZipFile(file) as archive:
            if any(archive.getinfo(name).compress_type != zipfile.ZIP_STORED for name in (TREE, ARRAYS)):
                raise ValueError("compressed, and its size in memory is not that of the file")
            tree = json.loads(archive.read(TREE))
            version = str(tree["version"])
            files.require_readable(where, tree.get(files.KEY, 0), files.CHECKPOINT)
            arrays = _read(archive, tree["arrays"])
        return _decoded(tree["value"], arrays)
    except DfeasError:
        raise
    except (*DAMAGE, AttributeError, ImportError) as error:
        other = "" if version == __version__ else f" (it was written by dfeas {version}, this is {__version__})"
        raise CorruptDataError(f"{where}: not a readable checkpoint: {type(error).__name__}: {error}{other}") from None


class _Arrays:
    """Arrays in the order in which they are met, each once."""

    def __init__(self) -> None:
        self.held: list[NDArray[Any]] = []
        self.table: list[list[Any]] = []  # dtype, shape, strides or None for C order
        self._place: dict[int, int] = {}

    def place(self, array: NDArray[Any]) -> int:
        if id(array) not in self._place:
            if array.dtype.kind not in _KINDS:
                raise TypeError(f"an array of {array.dtype} cannot be written")
            strides = None if array.flags.c_contiguous or min(array.strides) < 0 else list(array.strides)
            self._place[id(array)] = len(self.held)
            self.held.append(array)
            self.table.append([array.dtype.str, list(array.shape), strides])
        return self._place[id(array)]


def _encoded(value: Any, arrays: _Arrays) -> Any:
    if isinstance(value, np.generic):
        return {"scalar": arrays.place(np.asarray(value))}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        return {"array": arrays.place(value)}
    if is_csr(value):
        held = [arrays.place(array) for array in (value.data, value.indices, value.indptr)]
        return {"csr": [*held, value.shape[1]]}
    if isinstance(value, tuple | list):
        return {type(value).__name__: [_encoded(entry, arrays) for entry in value]}
    if isinstance(value, dict):
        return {"dict": {_text(key): _encoded(entry, arrays) for key, entry in value.items()}}
    name = name_of(type(value))
    return {"object": [name, {field.name: _encoded(getattr(value, field.name), arrays) for field in fields(value)}]}


def _text(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a dict with the key {key!r} cannot be written")
    return key


def _read(archive: zipfile.ZipFile, table: list[list[Any]]) -> list[NDArray[Any]]:
    """All arrays; to the end of the stream, so that its checksum is compared."""
    kinds = [np.dtype(kind) for kind, _, _ in table]
    if any(kind.kind not in _KINDS for kind in kinds):
        raise ValueError("an array of another kind")
    sizes = [math.prod(shape) * kind.itemsize for kind, (_, shape, _) in zip(kinds, table, strict=True)]
    if min(sizes, default=0) < 0 or sum(sizes) != archive.getinfo(ARRAYS).file_size:
        raise ValueError("its arrays have another size")
    arrays = []
    with archive.open(ARRAYS) as stream:
        for kind, (_, shape, strides) in zip(kinds, table, strict=True):
            plain = np.empty(shape, kind)
            target, done = plain.reshape(-1).view(np.uint8), 0
            while done < target.size:
                chunk = stream.read(min(CHUNK, target.size - done))
                if not chunk:
                    raise EOFError("its arrays end early")
                target[done : done + len(chunk)] = np.frombuffer(chunk, np.uint8)
                done += len(chunk)
            arrays.append(plain if strides is None else _strided(plain, strides))
        if stream.read(1):
            raise ValueError("its arrays do not end")
    return arrays


def _strided(plain: NDArray[Any], strides: list[int]) -> NDArray[Any]:
    """A copy that lies in memory as the array that was written."""
    extent = sum((length - 1) * stride for length, stride in zip(plain.shape, strides, strict=True)) + plain.itemsize
    if min(strides) < 0 or extent > max(1 << 20, 64 * plain.nbytes):
        return plain
    array: NDArray[Any] = np.ndarray(plain.shape, plain.dtype, np.zeros(extent, np.uint8).data, strides=tuple(strides))
    array[...] = plain
    return array


def _decoded(tree: Any, arrays: list[NDArray[Any]]) -> Any:
    if not isinstance(tree, dict):
        if isinstance(tree, list):
            raise ValueError("a list without its kind")
        return tree
    ((kind, content),) = tree.items()
    if kind == "array":
        return arrays[content]
    if kind == "scalar":
        return arrays[content][()]
    if kind == "csr":
        data, indices, indptr = (arrays[place] for place in content[:3])
        return checked(csr(data, indices, indptr, content[3]))
    if kind == "dict":
        return {key: _decoded(entry, arrays) for key, entry in content.items()}
    if kind in ("tuple", "list"):
        entries = [_decoded(entry, arrays) for entry in content]
        return tuple(entries) if kind == "tuple" else entries
    if kind != "object":
        raise ValueError(f"a value of kind {kind!r}")
    *place, values = content
    name = former_name(*place) if len(place) > 1 else place[0]
    cls = class_of(name)
    decoded = {key: _decoded(entry, arrays) for key, entry in values.items()}
    require_annotated(cls, decoded)
    value = cls(**decoded)
    return value.now() if name in GONE else value
