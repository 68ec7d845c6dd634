"""Arrays as a caller has them: every entry is taken exactly as it is, or refused in one line.

Points, labels, weights, a mask, the point of a hull and a start all go through ``array_of`` or ``exact``. NumPy drops masks,
imaginary parts and digits without a word, and what a library hands over when it is asked for a block need not have the type
that it declared. Dask casts blocks to the type of the first when it puts them together: each is looked at before.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Mapping
from decimal import Decimal
from numbers import Number, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfeas.errors import BadInputError, brief

EXACT = 2**53
"""Integers up to this are exact in float64."""


_CALLS = {
    "to_table": "{}.to_table(), or the path of its files",  # what a dataset of Arrow has, and no frame
    "read_all": "{}.read_all()",  # a reader of its batches
    "read_row_group": "{}.read(), or its path",  # a file of Parquet
    "toPandas": "{}.toPandas()",
    "to_pandas": "{}.to_pandas()",
    "readline": "its path",
    "__next__": "numpy.array(list({}))",
    "add_done_callback": "what comes of it, as by result(), or dask.array.from_delayed({}, (n, m), float)",  # a future
}
"""What makes numbers of objects of other libraries, by what only these have."""


def array_of(values: Any, where: str) -> NDArray[Any]:
    """An array of NumPy with the entries as they came. Raises BadInputError for masked ones, and for what is no array."""
    if type(values) is np.ndarray and values.dtype.names is None:
        return values
    values = unwrap_array(values)
    if is_dask_array(values):
        return _alike(values, _blocks(values, array_of, where), where)
    require_array(values, where)
    if hasattr(values, "__dlpack__") and not isinstance(values, np.ndarray):
        return _of_tensor(values, where)
    try:
        array = np.asanyarray(values)
    except TypeError:
        raise BadInputError(f"{where}: {type(values).__name__} is no array, nor anything that becomes one") from None
    except ValueError:
        if not isinstance(values, list | tuple):
            raise _no_numbers(values, where) from None
        raise BadInputError(f"{where}: rows of different lengths; give a rectangular array") from None
    if array.shape == () and array.dtype == object and not isinstance(values, Number | np.ndarray) and not is_missing(values):
        raise _no_numbers(values, where)
    if array.dtype.names is not None:
        raise BadInputError(f"{where}: an array of records, which have names; give pandas.DataFrame({where})")
    if isinstance(values, list | tuple):
        _require_kept(values, array, where)
    _require_unmasked(array, where)
    return np.asarray(array)


def _of_tensor(values: Any, where: str) -> NDArray[Any]:
    """A tensor of PyTorch, JAX or another library, not copied where it lies in memory. Raises BadInputError for others, for
    one that is to be differentiated, and for one of a type that NumPy does not have.
    """
    try:
        return np.asarray(values) if hasattr(values, "__array__") else np.from_dlpack(values)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        name, why = type(values).__name__, str(error).partition("\n")[0].rstrip(". ")
        raise BadInputError(
            f"{where}: this {name} is no array of NumPy ({why}); expected numbers in memory without gradients, such as "
            f"{where}.detach().cpu().float() of PyTorch"
        ) from None


def exact(values: Any, dtype: Any, where: str) -> NDArray[Any]:
    """Numbers in another type, each exactly; they are not copied where they have it. Raises BadInputError for numbers that the
    type does not hold, and for what are no real numbers.
    """
    values, target = unwrap_array(values), np.dtype(dtype)
    if is_dask_array(values):
        return _side_by_side(_blocks(values, lambda block, where: exact(block, target, where), where))
    array = array_of(values, where)
    if array.dtype == target:
        return array
    if array.dtype.kind == "O":
        array = _of_objects(array, where)
    if array.dtype.kind not in "biuf":
        raise BadInputError(f"{where}: entries of type {array.dtype} cannot be used; give real numbers")
    if target.kind == "f":
        require_exact(array, where)
    with np.errstate(all="ignore"):
        cast = array.astype(target)
        if np.can_cast(array.dtype, target):  # of integers, which NumPy always lets pass, float64 has those that are here
            return cast
        other = (cast != array) & ~(np.isnan(cast) & np.isnan(array))
    if other.any():
        value = array[other][0]
        if np.isnan(value):
            raise missing_error(where)
        raise BadInputError(f"{where}: {value!s} came as {array.dtype}, and {target} has no such number: round or declare it")
    return cast


def require_exact(values: NDArray[Any], where: str) -> None:
    """Raise BadInputError for integers beyond those that float64 has all of."""
    wide = values.dtype.kind in "iu" and values.dtype.itemsize == 8 and values.size > 0
    if wide and (int(values.max()) > EXACT or int(values.min()) < -EXACT):
        raise _beyond_error(where)


def _beyond_error(where: str) -> BadInputError:
    return BadInputError(f"{where}: an integer beyond 2**53 has no exact float64; rescale it, or drop an id")


def missing_error(where: str) -> BadInputError:
    """The error for an entry that is not there."""
    return BadInputError(f"{where}: a value is missing; fill it in, or leave out its row")


def is_dask_array(X: Any) -> bool:
    """Whether it is an array of Dask."""
    return hasattr(X, "_meta") and hasattr(X, "__dask_graph__") and hasattr(X, "rechunk")


def is_lazy_table(X: Any) -> bool:
    """Whether it is a frame, a series or an index of Dask. What is delayed has every attribute but those with an underscore."""
    return hasattr(X, "_meta") and hasattr(X, "to_dask_array")


def is_delayed(X: Any) -> bool:
    """Whether Dask knows no more of it than how it is computed: of what is delayed, and of bags."""
    return type(X).__module__.startswith("dask.") and hasattr(X, "__dask_graph__") and not hasattr(X, "_meta")


def unwrap_array(X: Any) -> Any:
    """The Dask array in an array of xarray, if there is one; anything else as it is."""
    lazy = not isinstance(X, np.ndarray) and hasattr(X, "encoding") and hasattr(X, "__dask_graph__")
    return X.data if lazy and X.__dask_graph__() is not None and is_dask_array(X.data) else X


def require_array(values: Any, where: str) -> None:
    """Raise BadInputError for what holds arrays and is none, or whose file is closed, with the call that works."""
    name = type(values).__name__
    if is_delayed(values):
        call = f"dask.array.from_delayed({where}, (n, m), float), or {where}.compute()"
        raise BadInputError(f"{where}: Dask knows no shape of this {name}; give {call}")
    if hasattr(values, "tocsr"):
        return
    h5py = sys.modules.get("h5py")
    if h5py is not None and isinstance(values, h5py.Dataset) and not values:
        raise BadInputError(f"{where}: a dataset of an HDF5 file that is closed; open the file, and close it after the call")
    if hasattr(values, "obs") and hasattr(values, "var_names"):
        column = next(iter(values.obs.columns), "label")
        file = str(values.filename) if getattr(values, "isbacked", False) else None
        call = f"{where}.X, {where}.obs[{column!r}]" if file is None else f"{file!r}, {column!r}"
        raise BadInputError(f"{where}: an {name} object; give its matrix and a column of labels: dfeas.solve({call})")
    if hasattr(values, "to_memory"):
        raise BadInputError(f"{where}: a matrix that lies in a file; give {where}.to_memory(), or the path of the file")
    if isinstance(values, Mapping) or hasattr(values, "array_keys"):
        held = [key for key in values if getattr(values[key], "ndim", 0)]
        first = next((key for key in held if values[key].ndim == 2), held[0]) if held else None
        call = "give an array" if first is None else f"give one of them, as {where}[{first!r}]"
        if not held and any(isinstance(values[key], list | tuple) for key in values):
            call = f"give pandas.DataFrame({where})"
        what = ", ".join(map(str, held[:5])) or "no array"  # names that a message has
        raise BadInputError(f"{where}: a group or mapping ({name}) that holds {what}; {call}")


def _require_unmasked(array: NDArray[Any], where: str) -> None:
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise BadInputError(f"{where}: a masked array; fill or drop the masked entries first")


def _require_kept(values: Any, array: NDArray[Any], where: str) -> None:
    """Raise BadInputError where NumPy dropped a mask in a list, or rounded an integer that stands beside other numbers."""
    for each in _masked_in(values):
        _require_unmasked(each, where)
    if array.dtype.kind == "f" and array.dtype.itemsize >= 8 and (np.abs(array) >= EXACT).any():
        whole = (v for v in np.asarray(values, object).reshape(-1).tolist() if isinstance(v, int | np.integer))
        if any(not _is_float(int(v)) for v in whole):
            raise _beyond_error(where)


def _masked_in(values: Any) -> list[Any]:
    kinds = set(map(type, values))
    some = any(issubclass(kind, np.ma.MaskedArray) for kind in kinds)
    found = [each for each in values if isinstance(each, np.ma.MaskedArray)] if some else []
    if kinds & {list, tuple}:
        found += [mask for each in values if isinstance(each, list | tuple) for mask in _masked_in(each)]
    return found


def _of_objects(array: NDArray[Any], where: str) -> NDArray[np.float64]:
    """Numbers of Python in float64, each exactly."""
    values = array.reshape(-1).tolist()
    for value in values:
        if is_missing(value):
            raise missing_error(where)
        if not isinstance(value, Real | Decimal | np.bool_):
            raise _no_numbers(value, where)
        if not _is_float(int(value) if isinstance(value, np.integer) else value):
            raise BadInputError(f"{where}: {brief(value, 40)} has no exact float64; round it, or scale it")
    return np.array([float(value) for value in values]).reshape(array.shape)


def _no_numbers(value: Any, where: str) -> BadInputError:
    """The error for what stands where numbers are expected, with the call that makes an array or a frame of it."""
    if isinstance(value, Mapping):
        call = f"pandas.DataFrame({where})"
    else:
        call = next((made.format(where) for has, made in _CALLS.items() if hasattr(value, has)), "")
    return BadInputError(f"{where}: expected numbers, got {type(value).__name__}{call and f'; give {call}'}")


def _is_float(value: Any) -> bool:
    """Whether float64 has a number of Python; they compare exactly."""
    try:
        return bool(float(value) == value)
    except ArithmeticError:
        return False


def is_missing(value: Any) -> bool:
    """Whether an object stands for what is not there."""
    if isinstance(value, Decimal):
        return value.is_nan()
    nan = isinstance(value, float | np.floating) and bool(value != value)
    return nan or value is None or type(value).__name__ in ("NAType", "NaTType")


def as_declared(block: Any) -> Any:
    """A chunk as the array that Dask was told of: a sparse one of what is declared to be dense as a dense one."""
    return block.toarray() if hasattr(block, "toarray") else block


def _blocks(X: Any, take: Callable[[Any, str], NDArray[Any]], where: str) -> NDArray[Any]:
    """The blocks of a Dask array, computed together, each as ``take`` has it. Raises BadInputError for another shape."""
    grid = X.to_delayed()
    blocks = np.empty(grid.shape, object)
    for place, block in zip(np.ndindex(grid.shape), sys.modules["dask"].compute(*grid.ravel().tolist()), strict=True):
        found = blocks[place] = take(as_declared(block), where)
        shape = tuple(sizes[i] for sizes, i in zip(X.chunks, place, strict=True))
        known = tuple(there if size != size else size for size, there in zip(shape, found.shape, strict=False))  # nan: unknown
        if known != found.shape:
            raise BadInputError(
                f"{where}: a chunk of shape {found.shape} where {shape} is declared; call compute_chunk_sizes()"
            )
    return blocks


def _side_by_side(blocks: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(blocks.flat[0] if blocks.size == 1 else np.block(blocks.tolist()))


def _alike(X: Any, blocks: NDArray[Any], where: str) -> NDArray[Any]:
    """Blocks of maybe different types side by side: numbers in the type that was declared, others as objects."""
    kinds = {block.dtype for block in blocks.flat}
    texts = {kind.kind for kind in kinds} in ({"U"}, {"S"})
    if len(kinds) > 1 and not texts:
        numbers = np.dtype(X.dtype).kind in "biuf" and all(kind.kind in "biuf" for kind in kinds)
        for place in np.ndindex(blocks.shape):
            here = blocks[place]
            blocks[place] = exact(here, X.dtype, where) if numbers else here.astype(object)
    return _side_by_side(blocks)


_NEUTRAL = {"scale_factor": 1, "add_offset": 0}
"""Values with which nothing is packed."""
_NUMBERS_THAT_ARE_NONE = ("_FillValue", "missing_value", "valid_range", "valid_min", "valid_max")


def require_unpacked(array: Any, where: str, stored: str, decoded: str = "", call: str = "dfeas.solve({}, ...)") -> None:
    """Raise BadInputError for numbers that stand for others, as attributes of netCDF say, in zarr, HDF5 and xarray. ``stored``
    is the expression of Python for the array, ``decoded`` one that decodes it, if there is a library for it, and ``call`` what
    is done with it.
    """
    said = _find_packing(array)
    if not said:
        return
    expression = decoded or stored
    if not decoded:
        expression += f".view({array.dtype.str.replace('i', 'u')!r})" if "_Unsigned" in said else ""
        expression += f" * {said['scale_factor']}" if "scale_factor" in said else ""
        expression += f" + {said['add_offset']}" if "add_offset" in said else ""
    none = [name for name in said if name in (*_NUMBERS_THAT_ARE_NONE, "fill_value")]
    rows = f", without rows of missing values by {' and '.join(none)}" if none else ""
    what = ", ".join(f"{name} {value}" for name, value in said.items())
    raise BadInputError(f"{where}: packed numbers ({what}); decode them{rows}, as in {call.format(expression)}")


def _find_packing(array: Any) -> dict[str, Any]:
    """What attributes say that changes the meaning of numbers."""
    attributes, kind = getattr(array, "attrs", None), getattr(getattr(array, "dtype", None), "kind", "O")
    if attributes is None or kind not in "biuf":
        return {}
    names = _NUMBERS_THAT_ARE_NONE[: 2 if hasattr(array, "encoding") else None]  # xarray keeps ranges beside what it decoded
    said = {name: attributes[name] for name in (*_NEUTRAL, *names, "_Unsigned") if name in attributes}
    zarr2 = getattr(getattr(array, "metadata", None), "zarr_format", 3) == 2 and "_ARRAY_DIMENSIONS" in attributes
    if zarr2 and array.fill_value is not None:  # where xarray has what is missing
        said["fill_value"] = array.fill_value
    said = {name: _number(value) if kind == "f" else value for name, value in said.items()}
    said = {name: value.item() if getattr(value, "size", 0) == 1 else value for name, value in said.items()}
    return {name: value for name, value in said.items() if not _says_nothing(name, value, kind)}


def _says_nothing(name: str, value: Any, kind: str) -> bool:
    if name in _NEUTRAL:
        return bool(np.all(value == _NEUTRAL[name]))
    if name == "_Unsigned":
        return (str(value).lower() == "true") == (kind == "u")
    try:
        return kind == "f" and name not in _NUMBERS_THAT_ARE_NONE[2:] and bool(np.isnan(value).all())  # refused without it, too
    except TypeError:
        return False


def _number(value: Any) -> Any:
    """A fill value, which zarr may have as text or as eight bytes in base64."""
    if not isinstance(value, str):
        return value
    from base64 import b64decode

    try:
        return (
            float(value)
            if value in ("NaN", "Infinity", "-Infinity")
            else struct.unpack("<d", b64decode(value, validate=True))[0]
        )
    except (ValueError, struct.error):
        return value
