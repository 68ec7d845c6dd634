"""The same numbers in every type and wrapping: the answer is that of the numbers, or one line refuses them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import h5py
import numpy as np
import pandas as pd
import scipy.sparse
import zarr

import dfeas
from tests.exact import conflict
from tests.fuzzing.case import RIGHT, Case, Judgement, Word, rng_of, wrong
from tests.fuzzing.oracle import whole

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
TYPES = (*INTEGERS, "float16", "float32", "float64", "longdouble", ">f8", ">f4", ">i4", "bool")
PACKED = {"scale_factor": 0.01, "add_offset": 10.0, "_FillValue": -1, "missing_value": 3, "valid_range": [0, 1]}
Numbers = list[list[Fraction]]


class NoneSuchError(Exception):
    """A type that has not the numbers."""


@dataclass(frozen=True)
class Given:
    """Numbers, as somebody gives them."""

    numbers: Numbers
    rng: np.random.Generator
    folder: Path

    def array(self, kind: str) -> np.ndarray:
        """In a type that has all of them. Raises NoneSuchError where it has not."""
        try:
            found = np.array([[_number(v, np.dtype(kind)) for v in row] for row in self.numbers], kind)
            back = [[Fraction(*v.as_integer_ratio()) if found.dtype.kind == "f" else int(v) for v in row] for row in found]
        except OverflowError:
            raise NoneSuchError(kind) from None
        if back != self.numbers:
            raise NoneSuchError(kind)
        return found

    def any_array(self) -> np.ndarray:
        """In one of the types that have them."""
        kinds = [TYPES[i] for i in self.rng.permutation(len(TYPES))]
        for kind in kinds:
            try:
                return self.array(kind)
            except NoneSuchError:
                continue
        raise NoneSuchError("none has them")

    def gap(self) -> np.ndarray:
        """Where one entry is missing."""
        mask = np.zeros((len(self.numbers), len(self.numbers[0])), bool)
        mask[self.rng.integers(len(mask)), self.rng.integers(mask.shape[1])] = True
        return mask


def _number(value: Fraction, kind: np.dtype) -> Any:
    if kind.kind in "iub":
        if value.denominator != 1:
            raise NoneSuchError(kind)
        return int(value)
    return np.longdouble(value.numerator) / np.longdouble(value.denominator) if kind.itemsize > 8 else float(value)


def plain(given: Given) -> Any:
    return given.any_array()


def objects(given: Given) -> Any:
    makers = (
        lambda v: v,
        lambda v: Decimal(v.numerator) / Decimal(v.denominator),
        lambda v: int(v) if v == int(v) else float(v),
    )
    made = [[makers[given.rng.integers(3)](v) for v in row] for row in given.numbers]
    if [[Fraction(v) for v in row] for row in made] != given.numbers:
        raise NoneSuchError("decimals end")
    return made if given.rng.random() < 0.5 else np.array(made, object)


def mixed(given: Given) -> Any:
    return [[int(v) if v == int(v) else float(given.array("float64")[i, j]) for j, v in enumerate(row)]
            for i, row in enumerate(given.numbers)]  # fmt: skip


def unmasked(given: Given) -> Any:
    return np.ma.masked_array(given.any_array(), mask=np.zeros((len(given.numbers), len(given.numbers[0])), bool))


def masked(given: Given) -> Any:
    return np.ma.masked_array(given.any_array(), mask=given.gap())


def dask_of(array: Any, given: Given, kind: Any) -> Any:
    """A Dask array of a type that its blocks, maybe of several types, need not have."""
    n, m = array.shape
    chunks = (int(given.rng.integers(1, n + 1)), int(given.rng.integers(1, m + 1)))
    others = [given.array(each) if each in TYPES else array for each in given.rng.choice(TYPES, 2) if _has(given, each)]
    kinds = [array.dtype, *(each.dtype for each in others)]

    def lie(block: Any, block_id: tuple[int, ...] = (0, 0)) -> Any:
        return block if isinstance(block, np.ma.MaskedArray) else block.astype(kinds[sum(block_id) % len(kinds)])

    lazy = da.from_array(array, chunks=chunks, asarray=False)
    return lazy.map_blocks(lie, dtype=kind, meta=np.empty((0, 0), kind))


def _has(given: Given, kind: str) -> bool:
    try:
        given.array(kind)
    except NoneSuchError:
        return False
    return True


def dask(given: Given) -> Any:
    return dask_of(given.any_array(), given, given.rng.choice(["int16", "int32", "float32", "float64", "bool", "uint8"]))


def dask_masked(given: Given) -> Any:
    return dask_of(masked(given), given, given.rng.choice(["int16", "float64"]))


def frame(given: Given, gap: np.ndarray | None = None) -> Any:
    whole_numbers = all(v.denominator == 1 for row in given.numbers for v in row)
    kinds = ("int8", "int16", "int32", "int64", "Int64", "boolean") if whole_numbers else ("float32", "float64", "Float64")
    kind = str(given.rng.choice(kinds))
    array = given.array({"Int64": "int64", "boolean": "bool"}.get(kind, kind.lower()))
    columns = {f"x{j}": pd.array(array[:, j], kind) for j in range(array.shape[1])}
    table, cut = pd.DataFrame(columns), int(given.rng.integers(1, len(array))) if len(array) > 1 else 1
    later = table[cut:].astype("float64") if given.rng.random() < 0.5 else table[cut:]
    parts = [table[:cut], later]
    if gap is not None:
        parts = [part.where(~pd.DataFrame(gap[part.index], part.index, part.columns)) for part in parts]
    meta = table[:0]
    return dd.from_map(lambda i: parts[i], [0, 1], meta=meta, enforce_metadata=False)


def frame_with_nulls(given: Given) -> Any:
    return frame(given, given.gap())


def in_xarray(given: Given) -> Any:
    xarray = of_xarray()
    array = given.any_array()
    lazy = given.rng.random() < 0.5
    return xarray.DataArray(dask_of(array, given, array.dtype) if lazy else array, dims=("n", "m"))


def in_zarr(given: Given, attributes: dict[str, Any] | None = None) -> Any:
    array = given.any_array()
    if array.dtype.itemsize > 8:
        raise NoneSuchError("zarr has no such type")
    kind, chunks = int(given.rng.choice([2, 3])), (int(given.rng.integers(1, len(array) + 1)), array.shape[1])
    group = zarr.open_group(str(given.folder / "g"), mode="w", zarr_format=kind)
    options = {"config": {"write_empty_chunks": True}, "attributes": attributes or {}}
    held = group.create_array("X", data=array, chunks=chunks, **options)
    return str(given.folder / "g" / "X") if kind == 3 and given.rng.random() < 0.5 else held


def zarr_packed(given: Given) -> Any:
    name = str(given.rng.choice(list(PACKED)))
    return in_zarr(given, {name: PACKED[name]})


def in_hdf5(given: Given, attributes: dict[str, Any] | None = None) -> Any:
    array = given.any_array()
    with h5py.File(given.folder / "a.h5", "w") as file:
        file["X"] = array
        file["X"].attrs.update(attributes or {})
    if given.rng.random() < 0.5:
        return str(given.folder / "a.h5")
    return h5py.File(given.folder / "a.h5")["X"]


def hdf5_packed(given: Given) -> Any:
    name = str(given.rng.choice(list(PACKED)))
    return in_hdf5(given, {name: PACKED[name]})


def in_npy(given: Given) -> Any:
    np.save(given.folder / "x.npy", np.asarray(given.any_array(), order="F" if given.rng.random() < 0.5 else "C"))
    return str(given.folder / "x.npy")


def of_xarray() -> Any:
    """The library, which dfeas does not need. Raises NoneSuchError where it is not installed."""
    try:
        import xarray
    except ImportError:
        raise NoneSuchError("xarray") from None
    return xarray


def sparse(given: Given) -> Any:
    array = given.any_array()
    if array.dtype.kind == "f" and array.dtype.itemsize == 2:
        raise NoneSuchError("SciPy has no such type")
    kind = given.rng.choice([scipy.sparse.csr_array, scipy.sparse.coo_array, scipy.sparse.csc_matrix])
    return kind(array.astype(array.dtype.newbyteorder("=")))


PRESENT = (plain, objects, mixed, unmasked, dask, frame, in_xarray, in_zarr, in_hdf5, in_npy, sparse)
ABSENT = (masked, dask_masked, frame_with_nulls, zarr_packed, hdf5_packed)
TAKEN = ("plain", "mixed", "unmasked", "in_hdf5", "in_npy", "in_xarray", "sparse")
"""Of numbers that float64 has, whatever their type."""
WRAPPINGS: dict[str, Callable[[Given], Any]] = {each.__name__: each for each in (*PRESENT, *ABSENT)}


def labels_of(signs: list[int], rng: np.random.Generator) -> Any:
    """Labels (n,) in some type or wrapping."""
    y = np.array(signs)
    kinds = [y, signs, y.astype("i1"), y.astype(float), np.ma.masked_array(y), y.astype(str), [2**53 + (s > 0) for s in signs],
             np.array([2**53 + (s > 0) for s in signs], np.uint64), [b"a" if s > 0 else b"b" for s in signs],
             da.from_array(y, chunks=2), pd.Series(y, dtype="Int64"), [[s] for s in signs]]  # fmt: skip
    return kinds[rng.integers(len(kinds))]


@dataclass(frozen=True)
class Arrays:
    """Ask by one of the verbs about numbers in a wrapping."""

    solve: Callable[..., Any] = dfeas.solve
    name: str = "arrays"
    weight: float = 1.0
    seconds: float = 30.0
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="dfeas-fuzz-arrays-")))

    def draw(self, seed: int) -> Case:
        rng = rng_of(self.name, seed)
        n, m = int(rng.integers(2, 8)), int(rng.integers(1, 4))
        X = [[Fraction(int(v)) for v in row] for row in rng.integers(-3, 4, (n, m))]
        step = (1, 1, 1, 1, Fraction(1, 2), Fraction(float(rng.random())), Fraction(1, 10), Fraction(1, 2**60))[rng.integers(8)]
        shift = (0, 0, 0, 3, 100, 2**53, 2**53 + 1, 2**63, Fraction(1, 3))[rng.integers(9)]
        X = [[v * step + shift * (rng.random() < 0.5) for v in row] for row in X]
        if rng.random() < 0.2:
            X = [[Fraction(int(v != 0)) for v in row] for row in X]
        labels = np.where(np.arange(n) == rng.integers(n), 1, rng.choice([-1, 1], n))
        labels[0], labels[1] = 1, -1
        family = list(WRAPPINGS)[rng.integers(len(WRAPPINGS))]
        options = {"intercept": bool(rng.random() < 0.5), "verb": ("solve", "check", "ingest", "hull")[rng.integers(4)]}
        return Case(self.name, seed, family, {"X": np.array([[str(v) for v in row] for row in X]), "labels": labels}, options)

    def judge(self, case: Case) -> Judgement:
        numbers = [[Fraction(v) for v in row] for row in case.arrays["X"].tolist()]
        rng, folder = rng_of("wrapping", case.seed), self.folder / str(case.seed)
        folder.mkdir()
        try:
            X = WRAPPINGS[case.family](Given(numbers, rng, folder))
            return self._asked(case, X, numbers, labels_of(case.arrays["labels"].tolist(), rng), folder)
        except NoneSuchError as error:
            return Judgement(Word.OPEN, f"{case.family} has no such numbers: {error}")
        finally:
            shutil.rmtree(folder)

    def _asked(self, case: Case, X: Any, numbers: Numbers, labels: Any, folder: Path) -> Judgement:
        intercept, verb = bool(case.options["intercept"]), case.options["verb"]
        signs = case.arrays["labels"]
        points = whole(np.array(numbers, object), signs, intercept=intercept)
        if verb == "hull":
            point, numbers = numbers[0], numbers[1:]
            differences = [[a - b for a, b in zip(row, point, strict=True)] for row in numbers]
            points = whole(np.array(differences, object))
        apart = conflict(points)[0] is None
        try:
            said = self._said(verb, X, labels, intercept, folder)
        except dfeas.DfeasError as error:
            text = str(error)
            if "\n" in text:
                return wrong(f"more than a line: {text}")
            taken = all(abs(v) <= 2**53 and v == Fraction(float(v)) for row in numbers for v in row)
            if taken and case.family in TAKEN and verb in ("solve", "ingest") and (case.family, verb) != ("mixed", "ingest"):
                return wrong(f"{case.family} is refused: {text}")
            return Judgement(Word.REFUSED, text)
        if case.family in [each.__name__ for each in ABSENT]:
            return wrong(f"{case.family} is taken: {said}")
        if said not in (apart, None):
            return wrong(f"apart is {apart}, said {said}")
        return RIGHT if said is not None else Judgement(Word.OPEN, "undecided")

    def _said(self, verb: str, X: Any, labels: Any, intercept: bool, folder: Path) -> bool | None:
        """Whether the points are apart, as a verb says it."""
        if isinstance(X, str):
            np.save(folder / "y.npy", np.asarray(labels))
            labels = str(folder / "y.npy")
        if verb == "hull":
            if isinstance(X, str | h5py.Dataset | zarr.Array) or hasattr(X, "columns") or hasattr(X, "tocsr"):
                raise NoneSuchError("no rows can be taken out as they are")
            inside = dfeas.in_hull(X[0] if isinstance(X, list) else X[0:1], X[1:]).inside
            return None if inside is None else not inside
        if verb == "check":
            found = dfeas.check_separation(X, labels, intercept=intercept)
            return {"complete": True, None: None}.get(found.kind, False)
        if verb == "ingest":
            options = {"y": labels} if not hasattr(X, "columns") else {"y": np.asarray(labels)}
            dfeas.ingest(X, folder / "d", **options)
            X, labels = folder / "d", None
        result = self.solve(X, labels, intercept=intercept, eps=1e-9)
        return {"feasible": True, "infeasible": False}.get(result.verdict)
