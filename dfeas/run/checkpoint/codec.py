"""Values in a file, the same bits when they are read.

Written are None, bools, numbers, text, tuples, lists, dicts with text keys, records that have a name here, NumPy arrays and
scalars, and CSR matrices. Loading calls nothing but the constructors of these records, after a look
at the values of their fields: sound bytes may hold text where a number belongs. Arrays keep their strides: BLAS sums
a strided vector in another order, and a run that goes on must find the same bits. What was one array in several places is one
array again.

A file is a line of JSON, the bytes of all arrays in the order of its table, and the crc32c of all before it.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import math
import os
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, BinaryIO

import numpy as np
from fastcrc.crc32 import iscsi as crc32c
from numpy.typing import NDArray

from dfeas import __version__
from dfeas.data.storage import files
from dfeas.data.storage.files import MOST_BYTES, damage
from dfeas.data.storage.stored_array import CRC
from dfeas.errors import CorruptDataError, DfeasError
from dfeas.linalg.csr import csr, is_csr
from dfeas.records import is_record, names_of

PLACES = {
    "checkpoint.Sealed": "dfeas.run.checkpoint.folder:Sealed",
    "checkpoint.Seal": "dfeas.data.storage.scratch:Seal",
    "run.Checkpoint": "dfeas.run.checkpoint.folder:Checkpoint",
    "run.Job": "dfeas.run.spec:RunSpec",
    "run.Request": "dfeas.run.spec:Request",
    "run.SoftMarginOptions": "dfeas.run.spec:SoftMarginOptions",
    "run.Survey": "dfeas.run.session:Surveyed",
    "run.Transform": "dfeas.data.source:Transform",
    "run.Choice": "dfeas.data.source:Choice",
    "run.DataSpec": "dfeas.data.source:DataSpec",
    "run.Moment": "dfeas.run.driver:RunState",
    "run.Lane": "dfeas.run.task:TaskState",
    "run.MarginLane": "dfeas.run.soft_margin.fit:SoftMarginState",
    "run.MarginRecord": "dfeas.run.soft_margin.fit:SoftMarginRecord",
    "run.Record": "dfeas.run.termination:Record",
    "run.Goal": "dfeas.run.termination:Goal",
    "run.Decision": "dfeas.run.termination:Decision",
    "Certificate": "dfeas.verify.certificate:Certificate",
    "Check": "dfeas.verify.certificate:Check",
    "Kind": "dfeas.verify.certificate:Kind",
    "Facts": "dfeas.methods.protocol:Facts",
    "Start": "dfeas.methods.protocol:Start",
    "Bracket": "dfeas.methods.protocol:Bracket",
    "Expansion": "dfeas.methods.vector:Expansion",
    "Sparse": "dfeas.methods.protocol:Sparse",
    "Columns": "dfeas.passes.block:Columns",
    "ispvn.State": "dfeas.methods.ispvn:IspvnState",
    "ispvn.Search": "dfeas.methods.ispvn:Search",
    "ispvn.Threshold": "dfeas.methods.ispvn:Threshold",
    "mixture.Average": "dfeas.methods.mixture:Average",
    "mixture.Softmax": "dfeas.methods.mixture:Softmax",
    "mirror_prox.State": "dfeas.methods.mirror_prox:MirrorProxState",
    "mirror_prox_one_pass.State": "dfeas.methods.mirror_prox_one_pass:OnePassState",
    "mistakes.State": "dfeas.methods.mistakes:MistakesState",
    "mistakes.Amounts": "dfeas.methods.mistakes:Amounts",
    "normalized_perceptron.State": "dfeas.methods.perceptron:NormalizedPerceptronState",
    "rescaled_perceptron.State": "dfeas.methods.rescaled_perceptron:RescaledPerceptronState",
    "online_perceptron.State": "dfeas.methods.perceptron:OnlinePerceptronState",
    "led.State": "dfeas.methods.protocol:LedState",
    "ride_along.State": "dfeas.methods.protocol:RideAlongState",
    "smooth_perceptron.State": "dfeas.methods.smooth_perceptron:SmoothPerceptronState",
    "von_neumann.State": "dfeas.methods.von_neumann:VonNeumannState",
    "warm_start.State": "dfeas.methods.working_set.start:StartState",
    "working_set.State": "dfeas.methods.working_set.method:PointWorkingSetState",
    "working_set.Solution": "dfeas.linalg.separation.solver:Solution",
    "kernel.Combination": "dfeas.methods.vector:Combination",
    "Ends": "dfeas.methods.protocol:Ends",
    "kernel.perceptron.State": "dfeas.methods.perceptron:KernelPerceptronState",
    "kernel.snkpvn.State": "dfeas.methods.snkpvn:SnkpvnState",
    "kernel.snkpvn.Loop": "dfeas.methods.snkpvn:Loop",
    "kernel.working_set.State": "dfeas.kernels.working_set:KernelWorkingSetState",
    "cones.Recalled": "dfeas.cones.space:RecalledState",
    "cones.working_set.State": "dfeas.cones.working_set:ConeWorkingSetState",
    "cones.working_set.Cones": "dfeas.cones.barrier:ScaledCones",
    "soft_margin.Best": "dfeas.methods.soft_margin.problem:Best",
    "soft_margin.Dual": "dfeas.methods.soft_margin.problem:Dual",
    "soft_margin.hinge.State": "dfeas.methods.soft_margin.hinge:HingeState",
    "soft_margin.sgd.State": "dfeas.methods.soft_margin.sgd:StochasticState",
    "soft_margin.sgd.Carry": "dfeas.passes.steps:StochasticCarry",
    "soft_margin.squared_hinge.State": "dfeas.methods.soft_margin.squared_hinge:SquaredHingeState",
    "soft_margin.squared_hinge.Conjugate": "dfeas.methods.soft_margin.squared_hinge:Conjugate",
}
"""Name -> module:class. Names stay when a class moves, so that old runs can be resumed: a class that is moved or renamed gets
another place here, never another name. One whose fields change so that an older state does not fit any more gets a new name.
"""
_NAMES = {place: name for name, place in PLACES.items()}


def name_of(cls: type) -> str:
    """The name of a class. Raises TypeError for one that has none."""
    place = f"{cls.__module__}:{cls.__qualname__}"
    if place not in _NAMES:
        raise TypeError(f"{cls.__module__}.{cls.__qualname__} cannot be written")
    return _NAMES[place]


def class_of(name: str) -> type[Any]:
    """The class of a name. Raises ValueError where there is none."""
    if name not in PLACES:
        raise ValueError(f"no class is called {name}")
    module, _, cls = PLACES[name].partition(":")
    value: type[Any] = getattr(importlib.import_module(module), cls)
    return value


_SCALARS: dict[str, tuple[type, ...]] = {
    "bool": (bool, np.bool_),
    "int": (int, np.integer),
    "float": (float, int, np.floating, np.integer),
    "str": (str,),
}
_ARRAYS_OF = {"Floats": "float64", "Indices": "int64"}
"""Our names of arrays -> the type of their entries."""
_UNIONS: dict[str, tuple[Callable[[Any], bool], ...]] = {
    "Any": (lambda value: True,),
    "Vector": (lambda value: _is_array(value, "float64"), lambda value: is_record(value)),
    "Tile": (lambda value: isinstance(value, np.ndarray), is_csr),
    "BetweenReads": (lambda value: is_record(value),),
}
"""Our names of what may be several things -> what tells them."""


def require_fields(cls: type, values: Mapping[str, Any]) -> None:
    """Raise TypeError for values of fields that are not what the class says they are."""
    for name, hint in _hints(cls).items():
        if name in values and not is_of_hint(values[name], hint):
            raise TypeError(f"{name} of {cls.__name__} is {type(values[name]).__name__}, expected {ast.unparse(hint)}")


@lru_cache(maxsize=256)
def _hints(cls: type) -> dict[str, ast.expr]:
    """Annotations of the fields as our sources have them. What libraries make of such a text changes with their versions."""
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        texts |= inspect.get_annotations(base)
    return {name: ast.parse(texts[name], mode="eval").body for name in names_of(cls)}


def is_of_hint(value: Any, hint: ast.expr) -> bool:
    """Whether a value is what an annotation says, all the way down."""
    match hint:
        case ast.Constant(value=None):
            return value is None
        case ast.BinOp(left=left, right=right):
            return is_of_hint(value, left) or is_of_hint(value, right)
        case ast.Subscript(value=ast.Name(id="NDArray"), slice=ast.Attribute(attr=kind)):
            return _is_array(value, kind)
        case ast.Subscript(value=ast.Name(id="dict"), slice=ast.Tuple(elts=[_, each])):
            return isinstance(value, dict) and all(is_of_hint(entry, each) for entry in value.values())
        case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=[each, ast.Constant(value=more)])) if more is ...:
            return isinstance(value, tuple) and all(is_of_hint(entry, each) for entry in value)
        case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=entries)):
            return isinstance(value, tuple) and len(value) == len(entries) and all(map(is_of_hint, value, entries))
        case ast.Name(id=name):
            return _is_one(value, name)
    return False


def _is_one(value: Any, name: str) -> bool:
    """Whether a value is of a class or of an alias of this name."""
    if name in _SCALARS:
        return isinstance(value, _SCALARS[name]) and (name == "bool" or not isinstance(value, bool))
    if name in _ARRAYS_OF:
        return _is_array(value, _ARRAYS_OF[name])
    if name in _UNIONS:
        return any(tells(value) for tells in _UNIONS[name])
    return name in (cls.__name__ for cls in type(value).__mro__)


def _is_array(value: Any, kind: str) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.name == kind


CHUNK = 16 << 20
"""Bytes that are read at a time."""
_KINDS = "biuf"
"""Of arrays: booleans, integers, floats."""


def dump(value: Any, file: BinaryIO) -> None:
    """Write a value. Raises TypeError for what cannot be written."""
    arrays = _Arrays()
    tree = json.dumps(
        {files.KEY: files.CHECKPOINT, "version": __version__, "value": _encode(value, arrays), "arrays": arrays.table}
    )
    crc, line = 0, np.frombuffer(f"{tree}\n".encode(), np.uint8)
    for part in (line, *(np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in arrays.held)):
        file.write(part.data)
        crc = crc32c(part.data, crc)
    file.write(crc.to_bytes(CRC, "little"))


def load(file: BinaryIO, where: str) -> Any:
    """Read a value; ``where`` names the file in messages. Raises CorruptDataError when it is damaged or of a newer format."""
    version = __version__
    try:
        line = file.readline(MOST_BYTES)
        tree = json.loads(line)
        version = str(tree["version"])
        files.require_readable(where, tree.get(files.KEY, 0), files.CHECKPOINT)
        arrays = _read_arrays(file, tree["arrays"], crc32c(line))
        return _decode(tree["value"], arrays)
    except DfeasError:
        raise
    except damage(ImportError) as error:
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


def _encode(value: Any, arrays: _Arrays) -> Any:
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
        return {type(value).__name__: [_encode(entry, arrays) for entry in value]}
    if isinstance(value, dict):
        return {"dict": {_require_text(key): _encode(entry, arrays) for key, entry in value.items()}}
    name = name_of(type(value))
    return {"object": [name, {field: _encode(getattr(value, field), arrays) for field in names_of(type(value))}]}


def _require_text(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a dict with the key {key!r} cannot be written")
    return key


def _read_arrays(file: BinaryIO, table: list[list[Any]], crc: int) -> list[NDArray[Any]]:
    """All arrays that follow in a file, whose bytes before them have this checksum."""
    kinds = [np.dtype(kind) for kind, _, _ in table]
    if any(kind.kind not in _KINDS for kind in kinds):
        raise ValueError("an array of another kind")
    sizes = [math.prod(shape) * kind.itemsize for kind, (_, shape, _) in zip(kinds, table, strict=True)]
    first = file.tell()
    if min(sizes, default=0) < 0 or sum(sizes) + CRC != file.seek(0, os.SEEK_END) - first:
        raise ValueError("its arrays have another size")
    file.seek(first)
    plain = [np.empty(shape, kind) for kind, (_, shape, _) in zip(kinds, table, strict=True)]
    for array in plain:
        target = array.reshape(-1).view(np.uint8)
        for place in range(0, target.size, CHUNK):
            content = file.read(min(CHUNK, target.size - place))
            target[place : place + CHUNK] = np.frombuffer(content, np.uint8)
            crc = crc32c(content, crc)
    expected = int.from_bytes(file.read(CRC), "little")
    if crc != expected:
        raise ValueError(f"crc32c {crc:08x}, expected {expected:08x}")
    return [
        array if strides is None else _with_strides(array, strides) for array, (*_, strides) in zip(plain, table, strict=True)
    ]


def _with_strides(plain: NDArray[Any], strides: list[int]) -> NDArray[Any]:
    """A copy that lies in memory as the array that was written."""
    extent = sum((length - 1) * stride for length, stride in zip(plain.shape, strides, strict=True)) + plain.itemsize
    if min(strides) < 0 or extent > max(1 << 20, 64 * plain.nbytes):
        return plain
    array: NDArray[Any] = np.ndarray(plain.shape, plain.dtype, np.zeros(extent, np.uint8).data, strides=tuple(strides))
    array[...] = plain
    return array


def _decode(tree: Any, arrays: list[NDArray[Any]]) -> Any:
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
        matrix = csr(data, indices, indptr, content[3])
        matrix.check_format(full_check=True)  # raises ValueError for arrays that are none
        return matrix
    if kind == "dict":
        return {key: _decode(entry, arrays) for key, entry in content.items()}
    if kind in ("tuple", "list"):
        entries = [_decode(entry, arrays) for entry in content]
        return tuple(entries) if kind == "tuple" else entries
    if kind != "object":
        raise ValueError(f"a value of kind {kind!r}")
    name, values = content
    cls = class_of(name)
    decoded = {key: _decode(entry, arrays) for key, entry in values.items()}
    require_fields(cls, decoded)
    return cls(**decoded)
